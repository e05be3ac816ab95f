"""Conditions and regions: what they select, how they simplify, and what they say."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.columns.bins import Binning
from dafh.regions import Condition, Region
from dafh.regions.conditions import first_match

NUMBERS = pd.Series([1.0, 5.0, 5.1, np.nan, 9.0], name="age")
JOBS = pd.Series(["cook", "clerk", None, "pilot", "cook"], name="job")


@pytest.mark.parametrize(
    ("condition", "inside", "words"),
    [
        (Condition("age", "number", high=5.0), [1, 1, 0, 0, 0], "age is 5 or less"),
        (Condition("age", "number", low=5.0), [0, 0, 1, 0, 1], "age is above 5"),
        (Condition("age", "number", low=1.0, high=5.1), [0, 1, 1, 0, 0], "age is above 1, up to 5.1"),
        (Condition("age", "number", high=5.0, with_missing=True), [1, 1, 0, 1, 0], "age is 5 or less or missing"),
        (Condition("age", "number", low=np.inf, with_missing=True), [0, 0, 0, 1, 0], "age is missing"),
        (Condition("age", "number"), [1, 1, 1, 0, 1], "age is not missing"),
        (Condition("age", "number", with_missing=True), [1, 1, 1, 1, 1], "age is anything"),
    ],
)
def test_numbers(condition, inside, words):
    assert condition.holds(NUMBERS).astype(int).tolist() == inside
    assert str(condition) == words


@pytest.mark.parametrize(
    ("condition", "inside", "words"),
    [
        (Condition("job", "category", values=("cook",)), [1, 0, 0, 0, 1], "job is cook"),
        (Condition("job", "category", values=("clerk", "cook")), [1, 1, 0, 0, 1], "job is clerk or cook"),
        (Condition("job", "category", values=("cook",), is_negated=True), [0, 1, 1, 1, 0], "job is not cook"),
        (Condition("job", "category", values=("(missing)",)), [0, 0, 1, 0, 0], "job is missing"),
    ],
)
def test_categories_that_training_never_saw_are_not_those_in_a_list(condition, inside, words):
    assert condition.holds(JOBS).astype(int).tolist() == inside
    assert str(condition) == words


def test_dates_are_written_as_dates():
    day = pd.Timestamp("2024-03-01")
    days = float((day - pd.Timestamp(0)).days)
    condition = Condition("since", "date %Y-%m-%d", high=days)
    assert str(condition) == "since is 2024-03-01 or less"
    assert condition.holds(pd.Series(["2024-03-01", "2024-03-02", None])).tolist() == [True, False, False]


numbers = st.one_of(st.none(), st.integers(-5, 5).map(float))
half_lines = st.builds(
    lambda low, high, with_missing: Condition("x", "number", low, high, with_missing), numbers, numbers, st.booleans()
)
lists = st.builds(
    lambda values, is_negated: Condition("job", "category", values=tuple(sorted(values)), is_negated=is_negated),
    st.sets(st.sampled_from(["a", "b", "c", "(missing)"])),
    st.booleans(),
)


@given(st.lists(st.one_of(half_lines, lists), max_size=4))
def test_a_region_selects_the_rows_that_satisfy_all_its_conditions(conditions):
    table = pd.DataFrame({"x": [-6.0, -1, 0, 1, 3, 5, 7, np.nan], "job": ["a", "b", "c", "d", None, "a", "b", "c"]})
    region = Region.of(conditions)
    each = [condition.holds(table[condition.column]) for condition in conditions]
    assert (region.holds(table) == np.logical_and.reduce([np.ones(len(table), bool), *each])).all()
    assert region.n_conditions == len({condition.column for condition in conditions})


def test_everybody_needs_no_condition():
    assert str(Region()) == "everybody"
    assert Region().holds(pd.DataFrame({"x": [1, 2]})).all()


def test_words_join_conditions():
    region = Region.of([Condition("age", "number", high=30.0), Condition("job", "category", values=("cook",))])
    assert str(region) == "age is 30 or less and job is cook"
    assert region.columns == ["age", "job"]


@given(st.data())
def test_conditions_of_bins_hold_for_exactly_the_rows_in_these_bins(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    table = pd.DataFrame(
        {"x": np.where(rng.random(200) < 0.1, np.nan, rng.normal(size=200)), "job": rng.choice(list("abc"), 200)}
    )
    binning = Binning.learn(table, most=16, readable=True)
    codes = binning.codes(table)
    x, job = binning.columns
    first = data.draw(st.integers(0, len(x.cuts)))
    last = data.draw(st.integers(first, len(x.cuts)))
    of_x = np.zeros(x.n_bins, bool)
    of_x[first : last + 1] = True
    of_x[-1] = data.draw(st.booleans())
    of_job = np.array([*data.draw(st.lists(st.booleans(), min_size=3, max_size=3)), data.draw(st.booleans())])
    for column, allowed, position in ((x, of_x, 0), (job, of_job, 1)):
        condition = Condition.of_bins(column, allowed)
        assert (condition.holds(table[column.name]) == allowed[codes[:, position]]).all()


def test_the_first_match_decides():
    inside = [np.array([True, False, False, True]), np.array([True, True, False, False])]
    assert first_match(inside, 4).tolist() == [0, 1, 2, 0]
    assert first_match([], 2).tolist() == [0, 0]
