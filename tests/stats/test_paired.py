"""Tests, intervals and corrections, against enumeration, scipy and the laws they have to obey."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, multinomial, norm

from dafh.stats import Differences, holm, mcnemar_p, robust_radius, rows_needed

counts = st.integers(0, 300)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


# ---- McNemar ----


@given(counts, counts)
def test_mcnemar_is_the_exact_binomial_test_of_scipy(b, c):
    expected = binomtest(c, b + c, alternative="less").pvalue if b + c else 1.0
    assert mcnemar_p(b, c) == pytest.approx(expected, rel=1e-9)


# ---- corrections ----


def rejected_by_step_down(p, level):
    """Holm's procedure as he wrote it: compare the smallest with α/m, the next with α/(m−1), stop at the first miss."""
    rejected = set()
    for step, position in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[position] > level / (len(p) - step):
            break
        rejected.add(position)
    return rejected


@given(p_values, st.sampled_from([0.01, 0.05, 0.2]))
def test_holm_rejects_what_the_step_down_procedure_rejects(p, level):
    corrected = holm(p)
    clear = np.abs(corrected - level) > 1e-9
    assert {i for i in np.flatnonzero(corrected <= level) if clear[i]} == {
        i for i in rejected_by_step_down(p, level) if clear[i]
    }


def test_corrections_keep_shape_and_order_and_take_nothing():
    assert holm([[0.01, 0.5], [0.02, 0.04]]).shape == (2, 2)
    np.testing.assert_allclose(holm([0.04, 0.01, 0.02]), [0.04, 0.03, 0.04])
    assert holm([]).size == 0


# ---- intervals ----


def limits(b, c, n, confidence=0.95):
    """Interval of the gap."""
    return Differences.of_counts(b, c, n).gain_limits((1 - confidence) / 2)


@st.composite
def paired_counts(draw):
    n = draw(st.integers(1, 2000))
    b = draw(st.integers(0, n))
    return b, draw(st.integers(0, n - b)), n


@given(paired_counts(), st.sampled_from([0.8, 0.95, 0.99]))
def test_an_interval_excludes_zero_exactly_if_the_exact_test_shows_a_gain_or_harm(table, confidence):
    b, c, n = table
    low, high = limits(b, c, n, confidence)
    tail = (1 - confidence) / 2
    for shown, p in ((low > 0, mcnemar_p(c, b)), (high < 0, mcnemar_p(b, c))):
        if abs(p - tail) > 1e-9:
            assert shown == (p < tail)


@pytest.mark.parametrize(("n", "discordance", "gap"), [(8, 0.95, 0.0), (12, 0.5, 0.2), (25, 0.9, -0.3), (25, 0.1, 0.1)])
def test_each_limit_misses_the_gap_no_more_often_than_it_may(n, discordance, gap):
    """Summed over all outcomes, also where classifiers disagree on nearly all rows and groups are tiny."""
    b, c = (grid.ravel() for grid in np.meshgrid(np.arange(n + 1), np.arange(n + 1)))
    possible = b + c <= n
    b, c = b[possible], c[possible]
    chance = multinomial.pmf(
        np.column_stack([b, c, n - b - c]), n, [(discordance - gap) / 2, (discordance + gap) / 2, 1 - discordance]
    )
    low, high = limits(b, c, n, 0.9)
    assert chance.sum() == pytest.approx(1)
    assert chance @ (low > gap + 1e-9) <= 0.05
    assert chance @ (high < gap - 1e-9) <= 0.05


def test_extreme_groups_have_intervals():
    assert np.ravel(limits(0, 0, 0)).tolist() == [-1, 1]
    assert np.ravel(limits(0, 0, 1)) == pytest.approx((-0.975, 0.975), abs=1e-9)
    (low,), (high,) = limits(0, 20, 20)
    assert high == 1
    # The weight of the one row that was lost instead exceeds x with probability (1 − x)^20.
    assert low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 20)))
    np.testing.assert_array_equal(np.shape(limits([1, 2], [3, 4], 50)), (2, 2))


# ---- power ----


def exact_power(n_rows, gap, discordance, level):
    """Probability that the exact test finds the own classifier worse, over all outcomes."""
    discordant = np.arange(n_rows + 1)
    c = binom.ppf(level, discordant, 0.5)
    critical = np.where(binom.cdf(c, discordant, 0.5) <= level, c, c - 1)
    found = np.where(critical >= 0, binom.cdf(critical, discordant, (discordance - gap) / 2 / discordance), 0)
    return binom.pmf(discordant, n_rows, discordance) @ found


@pytest.mark.parametrize("level", [0.05, 0.05 / 16])
@pytest.mark.parametrize("discordance", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("relative_gap", [0.2, 0.5, 0.8])
def test_the_rows_needed_are_enough_and_not_far_too_many(level, discordance, relative_gap):
    gap = relative_gap * discordance
    n_rows = int(rows_needed(gap, discordance, level, power=0.8))
    assert 0.8 <= exact_power(n_rows, gap, discordance, level) <= 0.91


def test_rows_needed_by_hand():
    """Normal approximation for paired shares, then the continuity correction of Fleiss."""
    gap, discordance, level, power = 0.03, 0.2, 0.01, 0.9
    spread = norm.ppf(1 - level) * np.sqrt(discordance) + norm.ppf(power) * np.sqrt(discordance - gap**2)
    plain = (spread / gap) ** 2
    expected = np.ceil(plain / 4 * (1 + np.sqrt(1 + 4 / (plain * gap))) ** 2)
    assert rows_needed(gap, discordance, level, power) == expected
    assert rows_needed(gap, discordance) == rows_needed(gap, discordance, 0.05, 0.8)
    several = rows_needed([gap, 0.5, 0.5], [discordance, 0.2, 3])  # At least the gap, and at most 1.
    np.testing.assert_array_equal(several, [rows_needed(gap, 0.2), rows_needed(0.5, 0.5), rows_needed(0.5, 1)])


def test_no_gap_can_never_be_decided():
    np.testing.assert_array_equal(rows_needed([0, 0.1, -0.1], 0.2)[:1], [np.inf])
    assert rows_needed(0.1, 0.2) == rows_needed(-0.1, 0.2)
    assert rows_needed(0.1, 0.0) > 0  # A discordance below the gap is impossible, and taken as the gap.


# ---- how robust "not worse" is ----


def test_the_radius_is_that_of_hand_worked_limits():
    # Without a lost row, the lower limit of the share won is 0.05 ** (1 / n).
    assert robust_radius(0, 10) == pytest.approx(0.05**0.1 / (1 - 0.05**0.1))
    assert robust_radius(10, 30) == pytest.approx(1.58, abs=0.005)
    np.testing.assert_array_equal(robust_radius([0, 7], [0, 0]), 0)
    # One row won, none lost: the limit of the share is the level itself.
    assert robust_radius(0, 1, 0.2) == pytest.approx(0.2 / 0.8)


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_radius_is_above_one_exactly_where_not_worse_is_shown(worse, better):
    assert (robust_radius(worse, better) > 1) == (mcnemar_p(better, worse) < 0.05)
