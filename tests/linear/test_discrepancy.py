"""The discrepancy of Theorem 2, searched over pairs of linear classifiers."""

import numpy as np
import pytest

from dafh.exceptions import InputError
from dafh.linear import linear_discrepancy


def test_discrepancy_is_small_between_equal_groups_and_one_between_distant_ones():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 3000, 3))
    assert linear_discrepancy(one, one) == pytest.approx(0, abs=1e-9)
    assert linear_discrepancy(one, other) < 0.08
    assert linear_discrepancy(one, other + 10) == pytest.approx(1)


def test_discrepancy_finds_what_one_linear_classifier_cannot():
    """Two clouds on a diagonal against two on the other: no line tells them apart, two lines together do."""
    rng = np.random.default_rng(1)
    sides = rng.choice([-1, 1], 1000)[:, None]
    one = np.column_stack([sides, sides]) * 3 + rng.normal(size=(1000, 2))
    other = one * [1, -1]
    assert linear_discrepancy(one, other) > 0.9


def interval_discrepancy(one, other):
    """The discrepancy in one column by enumeration: two thresholds disagree on an interval of the line."""
    cuts = np.r_[-np.inf, np.unique(np.r_[one, other]), np.inf]
    shares = [
        abs(np.mean((one > low) & (one <= high)) - np.mean((other > low) & (other <= high)))
        for low in cuts
        for high in cuts[cuts >= low]
    ]
    return max(shares)


@pytest.mark.parametrize("seed", range(6))
def test_one_column_is_exact(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 8, rng.integers(1, 15)), rng.integers(0, 8, rng.integers(1, 15))
    assert linear_discrepancy(one[:, None], other[:, None]) == pytest.approx(interval_discrepancy(one, other))


def every_division(rows):
    """All ways in which a line divides some points of the plane, (divisions, n)."""
    differences = (rows[:, None] - rows)[np.triu_indices(len(rows), 1)]
    angles = np.sort(np.arctan2(differences[:, 0], -differences[:, 1]) % np.pi)
    middles = (angles + np.append(angles[1:], angles[0] + np.pi)) / 2
    projected = np.column_stack([np.cos(middles), np.sin(middles)]) @ rows.T
    ranks = projected.argsort(axis=1).argsort(axis=1)
    above = [ranks >= count for count in range(len(rows) + 1)]
    return np.unique(np.concatenate(above), axis=0).astype(float)


@pytest.mark.parametrize("seed", range(3))
def test_two_columns_are_less_than_5_percent_low_and_never_high(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(18, 2)), rng.normal([0.5 * seed, 0], size=(14, 2))
    share = np.r_[np.full(18, 1 / 18), np.full(14, -1 / 14)]
    h = every_division(np.vstack([one, other]))
    alone = h @ share
    exact = np.abs(alone[:, None] + alone - 2 * (h * share) @ h.T).max()
    assert 0.95 * exact <= linear_discrepancy(one, other) <= exact + 1e-9


@pytest.mark.parametrize("shape", [(0, 2), (4,), (3, 3)])
def test_rows_that_cannot_be_compared_are_refused_with_their_shapes(shape):
    with pytest.raises(InputError, match="must have rows") as caught:
        linear_discrepancy(np.zeros(shape), np.zeros((5, 2)))
    assert str(shape) in str(caught.value)
