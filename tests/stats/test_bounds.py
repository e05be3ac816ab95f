"""The corrected Theorems 1 and 2: laws, hand-worked values, and input that makes no sense."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.evaluation.matrix import PreferenceMatrix
from dafh.exceptions import InputError
from dafh.stats import (
    deviation_epsilon,
    deviation_factor,
    discrepancy_bound,
)

groups = st.integers(1, 50)
rows = st.integers(1, 10**7)
levels = st.floats(1e-6, 0.999)


def weights_of_one_groups_errors(n_groups):
    """Coefficients of R_k(pooled), R_k(h_k) and R_k(h_j) in the degree, times K, written out from the formula."""
    pooled, own, others = 1.0, -1.0, [0.0] * (n_groups - 1)
    for j in range(n_groups - 1):
        others[j] += 1 / n_groups
        own -= 1 / n_groups
    return [pooled, own, *others]


@given(groups)
def test_the_factor_is_the_sum_of_the_weights_in_the_degree(n_groups):
    weights = weights_of_one_groups_errors(n_groups)
    assert deviation_factor(n_groups) == pytest.approx(np.abs(weights).sum())


def test_the_factor_is_the_printed_one_for_two_groups_only_and_stays_below_four():
    factors = [deviation_factor(n_groups) for n_groups in range(1, 200)]
    assert factors[:4] == [2.0, 3.0, pytest.approx(10 / 3), 3.5]
    assert all(one < other < 4 for one, other in pairwise(factors))


@given(groups, rows, levels)
def test_more_rows_and_fewer_groups_are_safer(n_groups, n_rows, level):
    epsilon = deviation_epsilon(n_rows, n_groups, level)
    assert deviation_epsilon(2 * n_rows, n_groups, level) < epsilon < deviation_epsilon(n_rows, n_groups + 1, level)


def test_theorem_1_with_two_groups_by_hand():
    # K = 2: 2 K (K + 1) = 12 and the factor is 3.
    assert deviation_epsilon(200, 2, 0.1) == pytest.approx(3 * np.sqrt(np.log(120) / 400))
    assert deviation_epsilon(0, 4) == np.inf


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.5])
def test_a_level_is_a_probability(level):
    with pytest.raises(InputError, match="level"):
        deviation_epsilon(10, 2, level)


def test_a_negative_number_of_rows_is_refused():
    with pytest.raises(InputError, match="smallest_group"):
        deviation_epsilon([10, -5], 2)


def degree(errors):
    n_groups = len(errors)
    sizes = np.ones(n_groups, np.int64)
    return PreferenceMatrix(errors, sizes, sizes / n_groups, np.arange(n_groups), 1.0, 0.0).degree


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_theorem_1_holds_for_simulated_groups(n_groups):
    rng = np.random.default_rng(n_groups)
    errors = rng.uniform(0.1, 0.5, (n_groups, n_groups + 1))
    for n_rows in (50, 500):
        seen = rng.binomial(n_rows, errors, (2000, *errors.shape)) / n_rows
        distance = np.abs([degree(one) - degree(errors) for one in seen])
        for level in (0.05, 0.5):
            assert (distance > deviation_epsilon(n_rows, n_groups, level)).mean() <= level


@pytest.mark.parametrize("n_groups", [3, 4, 5, 10])
def test_the_printed_constant_is_no_bound_for_more_than_two_groups(n_groups):
    """Every error rate is off by ε, own ones down and all others up: the degree is off by (4 − 2/K) ε, not 3 ε."""
    epsilon, errors = 0.01, np.full((n_groups, n_groups + 1), 0.3)
    measured = errors + epsilon * (1 - 2 * np.eye(n_groups, n_groups + 1))
    distance = abs(degree(measured) - degree(errors))
    assert distance == pytest.approx(deviation_factor(n_groups) * epsilon)
    assert distance > 3 * epsilon


# ---- Theorem 2 ----


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_theorem_2_depends_on_the_worst_group_and_on_the_number_of_groups(discrepancies):
    bound = discrepancy_bound(discrepancies)
    assert bound == deviation_factor(len(discrepancies)) * max(discrepancies)
    assert discrepancy_bound(sorted(discrepancies)) == bound
    assert discrepancy_bound([*discrepancies, 0.0]) >= bound


@pytest.mark.parametrize("bad", [[], [0.1, 1.1], [-0.1], [0.1, np.nan]])
def test_what_is_no_discrepancy_is_refused(bad):
    with pytest.raises(InputError, match="from 0 to 1"):
        discrepancy_bound(bad)
