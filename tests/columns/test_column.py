"""Columns: round cuts between values, the bin of every value, words, and columns that are awkward."""

import json
from dataclasses import asdict
from decimal import ROUND_CEILING, Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dafh.columns.bins import Binning, named_table
from dafh.columns.column import Column, round_between

moderate = st.floats(-1e9, 1e9).filter(lambda value: value == 0 or abs(value) > 1e-9)
short = st.decimals(-10_000, 10_000, places=3, allow_nan=False).map(float)


def column_of(values, name="x", **settings):
    return Column.learn(pd.Series(values, name=name), **settings)


# ---- round cuts ----


def roundest_power(below, beyond):
    """Largest power of ten with a multiple from `below` on and before `beyond`, found by trying them."""
    low, high = Decimal(repr(below)), Decimal(repr(beyond))
    for exponent in range(12, -30, -1):
        step = Decimal(10) ** exponent
        if (low / step).to_integral_value(ROUND_CEILING) * step < high:
            return exponent
    raise AssertionError


@given(st.one_of(moderate, short), st.one_of(moderate, short))
def test_a_cut_lies_between_its_two_values(one, other):
    assume(one != other)
    below, beyond = sorted((one, other))
    assert below <= round_between(below, beyond) < beyond


@given(short, short)
def test_no_shorter_number_lies_between_two_values(one, other):
    assume(one != other)
    below, beyond = sorted((one, other))
    cut = round_between(below, beyond)
    assert cut == 0 or Decimal(repr(cut)).normalize().as_tuple().exponent >= roundest_power(below, beyond)


@pytest.mark.parametrize(
    ("below", "beyond", "cut"),
    [
        (24, 25, 24),
        (0.3712, 0.3845, 0.38),
        (1234, 1310, 1300),
        (-0.4, 0.3, 0),
        (999, 1001, 1000),
        (-31, -29, -30),
        (1.1, 1.15, 1.1),
        (0.07, 0.075, 0.07),
        (96, 105, 100),
        (-1e99, -1000.0, -1e99),
        (0.0, 1e-300, 0.0),
        (5e-324, 1.0, 0.1),
    ],
)
def test_cuts_by_hand(below, beyond, cut):
    assert round_between(below, beyond) == pytest.approx(cut, rel=1e-12)


# ---- numbers ----


@given(st.lists(st.one_of(short, st.just(np.nan)), min_size=1, max_size=40))
def test_few_values_have_a_bin_each_in_their_order(values):
    codes = column_of(values).codes(pd.Series(values))
    known = ~np.isnan(values)
    np.testing.assert_array_equal(codes[known], np.unique(np.array(values)[known], return_inverse=True)[1])


@given(st.lists(moderate, min_size=10, max_size=200), st.integers(2, 8))
def test_bins_are_in_the_order_of_the_values_and_no_more_than_allowed(values, most):
    column = column_of(values, most=most)
    codes = column.codes(pd.Series(np.sort(values)))
    assert (np.diff(codes.astype(int)) >= 0).all()
    assert len(np.unique(codes)) == len(column.centers) <= most


def test_values_on_a_cut_lie_below_it():
    column = Column("x", "number", (10.0, 20.0), (5.0, 15.0, 25.0))
    assert column.codes(pd.Series([10.0, np.nextafter(10, 11), 20.0, 20.5, -99])).tolist() == [0, 1, 1, 2, 0]


def test_a_weight_of_2_places_cuts_as_the_row_twice_does():
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=400), rng.integers(1, 4, 400)
    once, twice = column_of(values, weight=weight.astype(float), most=16), column_of(np.repeat(values, weight), most=16)
    assert once.cuts == twice.cuts
    np.testing.assert_allclose(once.centers, twice.centers)


def test_many_values_are_divided_into_bins_of_about_the_same_number_of_rows():
    values = np.random.default_rng(0).lognormal(size=2000)
    column = column_of(values, most=10)
    assert np.abs(np.bincount(column.codes(pd.Series(values)), minlength=10)[:10] - 200).max() <= 2


def test_a_value_that_most_rows_share_takes_little_room_from_the_others():
    values = np.concatenate([np.zeros(5000), np.arange(1, 1001)])
    counts = np.bincount(column_of(values, most=20).codes(pd.Series(values)))
    assert counts[0] == 5000
    assert len(counts) > 15
    assert counts[1:].max() < 70


def test_gaps_infinities_and_numbers_too_large_to_square_share_the_last_bin():
    column = column_of([1.0, 2.0, 3.0])
    codes = column.codes(pd.Series([np.nan, np.inf, -np.inf, 1e200, -1e100, 1e99]))
    assert codes.tolist() == [3, 3, 3, 3, 3, 2]
    assert column.words(3) == "missing"


def test_a_column_of_gaps_has_a_bin_for_values_and_one_for_gaps():
    column = column_of([np.nan, np.nan])
    assert (column.n_bins, column.has_gaps, column.words(0)) == (2, True, "any value")
    assert column.codes(pd.Series([np.nan, 7.0])).tolist() == [1, 0]


def test_bins_are_named_by_their_cuts():
    column = column_of([20, 30, 31])
    assert [column.words(code) for code in range(4)] == ["up to 20", "20 to 30", "above 30", "missing"]


def test_flags_have_two_bins():
    column = column_of([True, False, True])
    assert (column.kind, column.cuts) == ("flag", (0.0,))
    assert column.codes(pd.Series([False, True, None], dtype=object)).tolist() == [0, 1, 2]


# ---- dates ----


def test_dates_are_cut_at_midnight_where_one_lies_between_them():
    days = pd.to_datetime(["2020-01-01 10:00", "2020-01-03 08:00", "2020-01-03 09:00"])
    column = column_of(days)
    assert [column.words(code) for code in range(3)] == [
        "up to 2020-01-02",
        "2020-01-02 to 2020-01-03 08:00:00",
        "above 2020-01-03 08:00:00",
    ]
    assert column.codes(pd.Series(days)).tolist() == [0, 1, 2]


# ---- categories ----


def test_a_category_has_a_bin_and_a_gap_is_a_category():
    column = column_of(["b", "a", None])
    assert column.categories == ("(missing)", "a", "b")
    assert column.codes(pd.Series(["a", None, "b", "new"])).tolist() == [1, 0, 2, 3]
    assert [column.words(code) for code in range(4)] == ["missing", "a", "b", "never seen"]


def test_rare_categories_of_a_long_list_share_a_bin_with_unseen_ones():
    names = [f"n{number:03}" for number in range(100) for _ in range(number + 1)]
    column = column_of(names)
    codes = column.codes(pd.Series(["n000", "unheard of", "n099"]))
    assert (column.n_bins, column.has_other) == (61, True)
    assert [column.words(int(code)) for code in codes] == ["(other)", "(other)", "n099"]


def test_no_two_bins_of_a_column_have_the_same_name():
    names = ("(missing)", "(other)", "a" * 45, "a" * 46, "missing", "never seen")
    column = Column("x", "category", categories=names, has_other=True)
    assert len({column.words(code) for code in range(column.n_bins)}) == column.n_bins


def test_whole_numbers_as_categories_are_found_again_as_fractions():
    column = column_of(pd.Categorical([1, 2, 2]))
    assert column.codes(pd.Series([1.0, 2.0, np.nan])).tolist() == [0, 1, 2]


# ---- tables ----


def test_columns_of_an_array_are_named_by_their_place():
    assert list(named_table(np.zeros((2, 2))).columns) == ["x0", "x1"]


def test_codes_are_bins_column_by_column():
    table = pd.DataFrame({"age": [20, 30, None], "job": ["cook", "clerk", "cook"]})
    binning = Binning.learn(table)
    assert binning.n_bins == [3, 3]
    np.testing.assert_array_equal(binning.codes(table), [[0, 1], [1, 0], [2, 1]])
    assert binning.codes(table).flags.f_contiguous


def test_cuts_of_a_large_table_are_learned_from_evenly_spread_rows():
    assert len(Binning.learn(np.arange(100.0)[:, None], most_rows=50).columns[0].centers) == 50


@pytest.mark.parametrize(
    ("values", "needed"),
    [
        ([1, 2], False),
        ([True, False], False),
        ([1.0, None], True),
        (["a", "b"], True),
        ([1.0, np.inf], True),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), True),
    ],
)
def test_only_numbers_and_flags_without_gaps_need_no_encoding(values, needed):
    table = pd.DataFrame({"x": values})
    assert Binning.learn(table).needs_encoding(table) is needed


# ---- plain values ----


@pytest.mark.parametrize(
    "values",
    [
        range(40),
        [1.5, None],
        [True, False],
        ["a", None],
        [f"c{i}" for i in range(80)],
        pd.date_range("2020", periods=9),
    ],
    ids=["numbers", "gaps", "flags", "categories", "many categories", "dates"],
)
def test_a_column_is_the_same_after_its_way_through_json(values):
    column = column_of(values)
    assert Column.from_dict(json.loads(json.dumps(asdict(column)))) == column


def test_what_no_column_is_is_refused():
    with pytest.raises(ValueError, match="str"):
        Column.from_dict(asdict(column_of([1.0, 2.0, 3.0])) | {"name": 3})
