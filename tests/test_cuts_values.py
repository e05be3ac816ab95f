"""How many cuts there are, how small a part they may cut off, and how much they must gain: worked out by hand."""

import numpy as np
import pytest

from dafh.groups.cuts import find_cuts


def cut(x, residual, weight=None, most=64):
    x = np.asarray(x, float)
    X = x if x.ndim == 2 else x[:, None]
    return find_cuts(X, np.asarray(residual, float)[:, None], np.ones(len(X)) if weight is None else weight, most)


def steps(n_steps, rows=50):
    """A staircase: every step has its own residual."""
    x = np.repeat(np.arange(n_steps), rows)
    return x, np.where(x % 2, 0.5, -0.5) + 0.01 * x


def test_a_column_has_seven_cuts_at_most():
    assert cut(*steps(8)).threshold.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
    assert len(cut(*steps(12))) == 7


def test_cuts_come_in_the_order_of_columns_and_thresholds():
    x, residual = steps(4, rows=200)
    other = np.tile(np.arange(4), 200)
    cuts = cut(np.column_stack([other, x]), residual + np.where(other > 1, 2.0, 0.0))
    assert cuts.column.tolist() == sorted(cuts.column)
    assert cuts.threshold[cuts.column == 1].tolist() == [0.5, 1.5, 2.5]
    assert 1.5 in cuts.threshold[cuts.column == 0]


@pytest.mark.parametrize(("n", "fewest"), [(400, 20), (4000, 20), (40_000, 100)])
def test_a_cut_leaves_twenty_rows_and_a_four_hundredth_on_either_side(n, fewest):
    for n_beyond, expected in ((fewest - 1, 0), (fewest, 1)):
        x = np.r_[np.zeros(n // 2), np.ones(n - n // 2 - n_beyond), np.full(n_beyond, 2)]
        assert (cut(x, x == 2).threshold == 1.5).sum() == expected


def test_a_handful_of_rows_can_be_asked_for_cuts():
    x = np.repeat([0, 1, 2], 10)
    assert len(cut(x, x > 0)) == 0  # No part may have fewer than twenty rows, or than half of them.


def jump(ratio, n=400):
    """Three values, and residuals that jump between two of them by so much that a cut gains `ratio` variances.

    Halves at ±1 gain n; noise of ±s in equal numbers makes the variance 1 + s².
    """
    x = np.repeat([0, 1, 2], [n // 2, n // 4, n // 4])
    noise = np.sqrt(n / ratio - 1) * np.where(np.arange(n) % 2, 1, -1)
    return x, np.where(x > 0, 1.0, -1.0) + noise


@pytest.mark.parametrize(("ratio", "expected"), [(11.9, []), (12.1, [0.5]), (100, [0.5])])
def test_a_cut_gains_more_than_twelve_variances_of_the_errors(ratio, expected):
    x, residual = jump(ratio)
    assert cut(x, residual).threshold.tolist() == expected


@pytest.mark.parametrize("ratio", [11.9, 12.1])
def test_neither_a_constant_error_nor_the_unit_of_the_weights_matters(ratio):
    x, residual = jump(ratio)
    plain = cut(x, residual).threshold.tolist()
    assert cut(x, residual + 10).threshold.tolist() == plain
    for unit in (1e-3, 1e3):
        assert cut(x, residual, np.full(len(x), unit)).threshold.tolist() == plain
        assert cut(x, residual * unit).threshold.tolist() == plain


def test_rows_of_hardly_any_weight_hardly_count():
    x, residual = jump(13.0)
    more = np.resize([0, 0, 1, 2], 48)  # As many of each value as before: they move no jump, but the mean error.
    both, far = np.r_[x, more], np.r_[residual, np.full(48, 100.0)]
    assert cut(both, far, np.r_[np.ones(len(x)), np.full(48, 1e-9)]).threshold.tolist() == [0.5]
    assert cut(both, far).threshold.tolist() == []


def test_two_values_are_their_own_cut():
    x = np.arange(400) % 2
    assert len(cut(x, x - 0.5)) == 0


def test_up_to_256_values_are_cut_exactly_however_many_rows_share_one():
    """Bins of equal mass would put neighbours together where one value has most of the rows."""
    x = np.r_[np.arange(255), np.full(5100, 255)]
    places = range(20, 235, 3)
    found = [cut(x, np.where(x > after, 0.5, -0.5), most=1).threshold.tolist() for after in places]
    assert found == [[after + 0.5] for after in places]


def test_more_values_are_cut_finely_where_most_rows_are():
    """900 values share 256 bins of about equal mass: nearly every one of the 300 common values has its own."""
    x = np.r_[np.arange(600), np.repeat(np.arange(600, 900), 50)]
    places = range(620, 880, 7)
    found = [cut(x, np.where(x > after, 0.5, -0.5), most=1).threshold[0] for after in places]
    assert np.mean(np.array(found) == np.array(places) + 0.5) > 0.6
    assert np.abs(np.array(found) - np.array(places) - 0.5).max() <= 1


def test_the_largest_gains_are_kept():
    x, residual = steps(6, rows=200)
    cuts = cut(x, np.where(x > 2, 5.0, 0.0) + 0.1 * residual, most=1)
    assert cuts.threshold.tolist() == [2.5]
    assert len(cut(x, residual, most=3)) == 3
    assert len(cut(x, residual, most=0)) == 0
