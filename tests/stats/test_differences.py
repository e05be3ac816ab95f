"""One test and one limit for every loss: against McNemar, Clopper and Pearson, simulated weights, and by law."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from cases import examples
from dafh.exceptions import InputError
from dafh.stats import Differences, mcnemar_p

LEVELS = (0.2, 0.05, 0.005, 0.001)
levels = st.sampled_from(LEVELS)


@st.composite
def tables(draw, most=200):
    """Rows that count alike: b, c and n."""
    n = draw(st.integers(1, most))
    b = draw(st.integers(0, n))
    return b, draw(st.integers(0, n - b)), n


@st.composite
def differences(draw):
    """Units of any kind: weights, costs, persons with several rows; two questions about the same kinds."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_kinds, worst = draw(st.integers(1, 8)), draw(st.sampled_from([1.0, 5.0, 0.25]))
    size = rng.choice([0.01, 0.3, 1.0, 3.0], n_kinds)
    difference = rng.choice([-1, -0.4, 0, 0.2, 1], n_kinds) * size * worst
    counts = rng.integers(0, 30, (2, n_kinds)).astype(float)
    counts[:, 0] += 1
    return Differences(difference, size, counts, worst, size.max() * draw(st.sampled_from([1.0, 2.0])))


def uneven(own_worse, own_better, n_rows):
    """Rows that count alike but for a hair, one of each kind: the integral is needed, and answers the same."""
    counts = Differences.of_counts(own_worse, own_better, n_rows).counts
    one = np.minimum(counts, 1.0)
    difference, size = np.array([1.0, -1.0, 0.0]), np.ones(3)
    hair = 1 - 1e-13
    return Differences(
        np.append(difference, hair * difference), np.append(size, hair * size), np.hstack([counts - one, one])
    )


both = pytest.mark.parametrize("make", [Differences.of_counts, uneven], ids=["alike", "uneven"])


# ---- known special cases ----


@both
@given(tables())
def test_rows_that_count_alike_are_tested_by_mcnemar(make, table):
    b, c, n = table
    found = make(b, c, n)
    assert found.p_beyond(0.0)[0] == pytest.approx(mcnemar_p(b, c), rel=1e-8, abs=1e-14)
    assert found.p_within(0.0)[0] == pytest.approx(mcnemar_p(c, b), rel=1e-8, abs=1e-14)


@both
@given(st.integers(0, 300), st.integers(0, 300), levels)
def test_against_a_rival_that_is_never_wrong_the_limit_is_that_of_clopper_and_pearson(make, wrong, right, level):
    found = make(wrong, 0, wrong + right)
    expected = beta.ppf(1 - level, wrong + 1, right) if right else 1.0
    assert found.upper(level)[0] == pytest.approx(expected, abs=1e-7)


@both
@pytest.mark.parametrize("n", [3, 30, 1000, 10**6])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 0.9])
def test_probabilities_from_one_third_to_1e_40_have_nine_digits(make, n, share):
    """Against the beta distribution: of two kinds of units, one as bad as possible and one without a difference."""
    b = int(share * n)
    found = make(np.full(6, b), 0, n)
    margins = beta.isf([0.3, 0.05, 1e-3, 1e-6, 1e-12, 1e-40], b + 1, n - b)
    inside = margins < 1 - 1e-9
    np.testing.assert_allclose(found.p_within(margins)[inside], beta.sf(margins, b + 1, n - b)[inside], rtol=1e-9)


@examples(0.75)
@given(differences(), st.sampled_from([-0.3, 0.0, 0.1]), st.integers(0, 99))
def test_p_values_are_probabilities_of_randomly_weighted_means(found, share, seed):
    """The definition, by simulation: flat Dirichlet weights for all units and for one that is as bad as possible."""
    margin = share * found.worst
    drawn = np.random.default_rng(seed).standard_gamma(
        np.append(found.counts[0], 1.0), size=(40_000, len(found.size) + 1)
    )
    value = np.append(found.difference - margin * found.size, found.largest * (found.worst - margin))
    simulated = (drawn @ value >= 0).mean()
    assert found.p_within(margin)[0] == pytest.approx(simulated, abs=4 * 0.5 / np.sqrt(40_000))


def test_limits_by_hand():
    # One row, no difference: the weighted mean is the weight of the worst case, uniform between 0 and 1.
    one = Differences.of_counts(0, 0, 1)
    assert one.upper(0.05)[0] == pytest.approx(0.95)
    assert one.lower(0.05)[0] == pytest.approx(-0.95)
    assert one.p_within(0.25)[0] == pytest.approx(0.75)
    # One row won: −U + (1 − U) with a uniform U, between −1 and 1.
    won = Differences.of_counts(0, 1, 1)
    assert won.upper(0.05)[0] == pytest.approx(0.9)
    assert won.p_within(0.0)[0] == pytest.approx(0.5)
    # n rows without a difference: P(weight of the worst ≥ h) = (1 − h)^n.
    many = Differences.of_counts(0, 0, 1000)
    assert many.upper(0.05)[0] == pytest.approx(1 - 0.05 ** (1 / 1000), rel=1e-8)


def test_a_heavier_unit_than_any_seen_counts_with_its_size():
    # One row of size 1 without a difference, and a worst case of size 3: 3 (1 − U) (1 − h) ≥ U h.
    one = Differences(np.zeros(1), np.ones(1), np.ones((1, 1)), worst=1.0, largest=3.0)
    assert one.p_within(0.5)[0] == pytest.approx(3 / 4)


# ---- laws ----


@given(differences(), levels)
def test_exchanging_the_classifiers_exchanges_harm_and_gain(found, level):
    other = found.exchanged()
    np.testing.assert_allclose(other.harm, found.gain)
    np.testing.assert_allclose(other.upper(level), -found.lower(level))
    np.testing.assert_allclose(other.p_within(0.1), found.p_beyond(-0.1))
    np.testing.assert_array_equal(other.own_worse, found.own_better)
    low, high = found.gain_limits(level)
    np.testing.assert_allclose((low, high), (other.lower(level), other.upper(level)), atol=1e-9)


@given(differences(), levels, st.floats(-0.9, 0.9))
def test_a_limit_is_where_the_test_reaches_the_level(found, level, share):
    margin, upper = share * found.worst, found.upper(level)
    clear = np.abs(upper - margin) > 1e-7 * found.worst
    np.testing.assert_array_equal((upper <= margin)[clear], (found.p_within(margin) <= level)[clear])
    inside = upper < found.worst
    np.testing.assert_allclose(found.p_within(upper)[inside], level, rtol=1e-4)


@given(differences(), st.sampled_from([1e-6, 0.5, 1e6]), levels)
def test_the_scale_of_weights_means_nothing(found, scale, level):
    scaled = Differences(found.difference * scale, found.size * scale, found.counts, found.worst, found.largest * scale)
    np.testing.assert_allclose(scaled.harm, found.harm)
    np.testing.assert_allclose(scaled.spread, found.spread)
    np.testing.assert_allclose(scaled.p_within(0.01), found.p_within(0.01), rtol=1e-8)
    np.testing.assert_allclose(scaled.upper(level), found.upper(level), atol=1e-8)


def test_means_counts_and_spread_by_hand():
    """Two persons of size 2 who lose 1 and 2 rows, three of size 1 who win one, five without a difference."""
    found = Differences(np.array([1.0, 2.0, -1.0, 0.0]), np.array([2.0, 2.0, 1.0, 1.0]), np.array([[1.0, 1, 3, 5]]))
    assert found.total[0] == 12
    assert found.harm[0] == pytest.approx(0 / 12)
    assert (found.own_worse[0], found.own_better[0]) == (2, 3)
    assert found.spread[0] == pytest.approx((1 + 4 + 3) / 10 / 1.2**2)


# ---- hard inputs ----


def test_without_units_nothing_is_excluded():
    nothing = Differences.of_counts(0, 0, 0)
    assert np.isnan(nothing.harm[0])
    assert np.isnan(nothing.spread[0])
    assert (nothing.upper(0.05)[0], nothing.lower(0.05)[0]) == (1, -1)
    assert (nothing.p_within(0.0)[0], nothing.p_beyond(0.0)[0]) == (1, 1)
    none = Differences(np.zeros(0), np.zeros(0), np.zeros((0, 0)))
    assert none.upper(0.05).shape == none.p_within(0.0).shape == (0,)


@pytest.mark.parametrize(
    ("b", "c", "n"),
    [(0, 0, 1), (0, 10**7, 10**7), (10**7, 0, 10**7), (5 * 10**6, 5 * 10**6, 10**7), (1, 0, 10**9), (10**4, 0, 10**9)],
)
def test_extreme_counts_raise_no_warning_and_have_finite_answers(b, c, n):
    found = Differences.of_counts(b, c, n)
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        for level in (0.4, 0.05, 1e-6):
            low, high = found.lower(level)[0], found.upper(level)[0]
            assert -1 <= low <= (b - c) / n + 1e-12
            assert (b - c) / n - 1e-12 <= high <= 1
        p = np.array([found.p_within(margin)[0] for margin in (-0.999, -1e-9, 0.0, 1e-9, 0.999)])
        assert ((p >= 0) & (p <= 1)).all()


def test_probabilities_next_to_1_have_all_digits():
    """Three rows without a difference, however light: P(weight of the worst ≥ h) = (1 − h)³."""
    light = Differences(np.zeros(1), np.full(1, 1e-6), np.full((3, 1), 3.0), largest=1e-6)
    margins = np.array([1e-9, 1e-6, 1e-3])
    np.testing.assert_allclose(light.p_within(margins), (1 - margins) ** 3, rtol=1e-14)


def test_a_difference_that_is_the_margin_but_for_rounding_decides_nothing():
    assert 0 < 0.9 - 0.3 * 3 < 1e-15
    both = np.array([[30.0, 50, 40], [30.0, 50, 0]])
    found = Differences(np.array([-1.0, 0, 0.9]), np.array([1.0, 1, 3]), both, largest=3.0).p_within(0.3)
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert 1e-10 < found[1] < 1e-9


@pytest.mark.parametrize(
    "table", [(-1, 0, 10), (0, -1, 10), (6, 5, 10), ([1, 6], 5, 10), ([-1, 1], 0, 10), (0, [-1, 1], 10)]
)
def test_counts_that_cannot_be_are_refused(table):
    with pytest.raises(InputError, match="own_worse"):
        Differences.of_counts(*table)
