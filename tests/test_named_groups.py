"""Names of groups: quarters that can be told apart, and the same names from every file."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.evaluation.named_groups import Attribute, NamedGroups
from dafh.exceptions import InputError
from dafh.tables.schema import TableSchema


def quarters(values):
    return Attribute.of(pd.Series(values, name="income")).values[:-1]


def test_quarters_of_large_numbers_have_different_names():
    assert quarters(10_000_000 + np.arange(40)) == [
        "10,000,000 to 10,000,009", "10,000,010 to 10,000,019", "10,000,020 to 10,000,029", "10,000,030 to 10,000,039",
    ]  # fmt: skip


@given(st.integers(0, 10**12), st.sampled_from([1e-6, 0.01, 1.0, 1e3]))
def test_quarters_are_told_apart_at_every_size(start, step):
    values = np.unique(start + step * np.arange(40))
    if len(values) > 12:
        names = quarters(values)
        assert len(set(names)) == len(names)


def test_quarters_of_one_day_are_named_by_their_time():
    names = quarters(pd.date_range("2020-01-01", periods=40, freq="min"))
    assert names[0] == "2020-01-01 00:00:00 to 2020-01-01 00:09:00"
    assert len(set(names)) == 4
    assert quarters(pd.date_range("2020-01-01", periods=40))[0] == "2020-01-01 to 2020-01-10"


def test_every_row_falls_into_the_quarter_that_its_value_is_named_by():
    values = pd.Series([*np.arange(30.0), np.nan, np.inf], name="age")
    attribute = Attribute.of(values)
    for value, code in zip(values[:30], attribute.codes, strict=False):
        low, high = map(float, attribute.values[code].split(" to "))
        assert low <= value <= high
    assert [attribute.values[code] for code in attribute.codes[30:]] == ["(missing)"] * 2


def test_a_frequent_value_leaves_fewer_quarters():
    assert quarters([0.0] * 60 + list(range(1, 21))) == ["0 to 0", "1 to 20"]


def test_few_numbers_are_named_one_by_one_whatever_their_type():
    for values in ([1, 2, 2], [1.0, 2.0, np.nan], pd.array([1, 2, None], dtype="Int64"), ["1", "2", "2"]):
        assert Attribute.of(pd.Series(values, name="n")).values == ["1", "2", "(missing)"]


def test_attributes_have_the_same_names_from_text_and_from_types():
    rng = np.random.default_rng(0)
    typed = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 200),
            "income": 1e7 + rng.normal(size=200).round(3),
            "member": rng.random(200) < 0.5,
            "since": pd.date_range("2020-01-01", periods=200),
            "grade": rng.integers(1, 4, 200),
        }
    )
    text = typed.astype(str).astype(object)
    names = list(typed.columns)
    groups = [NamedGroups.of(TableSchema("y", {}).attributes_of(t, names), 200) for t in (typed, text)]
    assert [a.values for a in groups[0].attributes] == [a.values for a in groups[1].attributes]
    assert groups[0].attributes[2].values == ["False", "True", "(missing)"]


def test_too_many_combinations_are_refused():
    table = pd.DataFrame({f"a{i}": [f"{j}" for j in range(40)] for i in range(20)})
    groups = NamedGroups.of(table, 40)
    with pytest.raises(InputError, match="too many combinations to be intersected: lower depth"):
        groups.tabulate(np.zeros(40, np.intp), 1, np.ones(40), depth=20)


# ---- tables of groups ----

ATTRIBUTE = st.sampled_from(["a", "b", "c", None])


def counted_by_hand(table, outcome, n_outcomes, weight, depth):
    """Weight of every named group and outcome, row by row."""
    found = {}
    columns = list(table.columns)
    for size in range(1, depth + 1):
        for chosen in itertools.combinations(columns, size):
            for row in range(len(table)):
                values = ["(missing)" if pd.isna(v) else v for v in table.loc[row, list(chosen)]]
                name = " & ".join(f"{column} = {value}" for column, value in zip(chosen, values, strict=True))
                found.setdefault(name, np.zeros(n_outcomes))[outcome[row]] += weight[row]
    return found


@given(
    st.lists(st.tuples(ATTRIBUTE, ATTRIBUTE, ATTRIBUTE, st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=40),
    st.integers(1, 4),
)
def test_groups_are_counted_as_by_hand_alone_and_intersected(rows, depth):
    table = pd.DataFrame([row[:3] for row in rows], columns=["x", "y", "z"], dtype=object)
    outcome, weight = np.array([row[3] for row in rows]), np.array([row[4] for row in rows], float)
    found = NamedGroups.of(table, len(rows)).tabulate(outcome, 3, weight, depth)
    expected = counted_by_hand(table, outcome, 3, weight, min(depth, 3))
    assert sorted(found.names) == sorted(expected)
    for name, total in zip(found.names, found.total, strict=True):
        np.testing.assert_array_equal(total, expected[name])


def test_rows_without_weight_make_no_group():
    groups = NamedGroups.of(pd.DataFrame({"x": ["a", "b"]}), 2)
    found = groups.tabulate(np.zeros(2, np.intp), 1, np.array([1.0, 0.0]), depth=1)
    assert found.names == ["x = a"]


def test_an_attribute_of_one_group_holds_all_rows_and_its_names_are_sorted():
    attribute = Attribute.of(pd.Series(["b", "a", None, "b", "10", "9"], name="x"))
    assert attribute.values == ["10", "9", "a", "b", "(missing)"]
    assert [attribute.values[code] for code in attribute.codes] == ["b", "a", "(missing)", "b", "10", "9"]


def test_spellings_of_one_code_are_one_group_and_written_gaps_are_gaps():
    attribute = Attribute.of(pd.Series(["1", "1.0", "(missing)", None, "2"], name="x", dtype=object))
    assert attribute.values == ["1", "2", "(missing)"]
    assert attribute.codes.tolist() == [0, 0, 2, 2, 1]


@pytest.mark.parametrize(("n_values", "n_listed"), [(50, 50), (51, 50), (80, 50)])
def test_of_many_categories_the_rare_ones_are_put_together(n_values, n_listed):
    values = [f"v{i:02d}" for i in range(n_values)]
    column = pd.Series([*values, *values[::-1][:5], "(missing)"], name="x")
    attribute = Attribute.of(column)
    named = [value for value in attribute.values if not value.startswith("(")]
    assert len(attribute.values) == n_listed + 1
    assert ("(other)" in attribute.values) is (n_values > 50)
    assert set(values[-5:]) <= set(named)  # Those with two rows each.
    for value, code in zip(column, attribute.codes, strict=True):
        assert attribute.values[code] == (value if value in named or value == "(missing)" else "(other)")


@pytest.mark.parametrize(("n_values", "n_groups"), [(12, 12), (13, 4)])
def test_more_than_twelve_numbers_are_cut_into_quarters(n_values, n_groups):
    assert len(quarters(np.arange(n_values))) == n_groups
    assert len(quarters(pd.date_range("2020-01-01", periods=n_values))) == n_groups


# Between 0 and the smallest number there is no number for a quartile to lie at.
@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=20, max_size=60, unique=True))
def test_quarters_hold_a_quarter_of_the_rows_each(values):
    attribute = Attribute.of(pd.Series(values, name="x"))
    counts = np.bincount(attribute.codes, minlength=len(attribute.values))
    assert len(counts) == 5
    assert counts[-1] == 0
    assert abs(counts[:4] - len(values) / 4).max() <= 1


def test_few_dates_are_named_by_the_day():
    attribute = Attribute.of(pd.Series(pd.to_datetime(["2020-02-01", "2020-01-01", None]), name="d"))
    assert attribute.values == ["2020-01-01", "2020-02-01", "(missing)"]
    assert attribute.codes.tolist() == [1, 0, 2]


def test_long_names_are_cut_and_stay_groups_of_their_own():
    groups = NamedGroups.of(pd.DataFrame({"x" * 500: ["a" * 500, "b" * 500]}), 2)
    found = groups.tabulate(np.zeros(2, np.intp), 1, np.ones(2), depth=1)
    assert len(found.names) == 2
    assert max(map(len, found.names)) < 250


@pytest.mark.parametrize(
    ("table", "sentence"),
    [(pd.DataFrame({"x": ["a"]}), "has 1 rows, the data have 2"), (pd.DataFrame(index=[0, 1]), "no columns")],
)
def test_tables_that_do_not_fit_the_data_are_refused(table, sentence):
    with pytest.raises(InputError, match=sentence):
        NamedGroups.of(table, 2)
