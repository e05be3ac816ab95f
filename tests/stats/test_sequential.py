"""Evidence that may be looked at at any time: fair bets, stopping rules, and many questions at once."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest

from dafh.exceptions import InputError
from dafh.stats import Bettors, WeightedCounts, drift_evidence, share_interval
from dafh.stats.sequential import BETS, PRIOR, in_play

SIGNS = st.lists(st.sampled_from([-1.0, 1.0]), max_size=400).map(np.array)
VALUES = st.lists(st.sampled_from([-1.0, -0.3, 0.1, 0.5, 1.0]), min_size=1, max_size=200).map(np.array)
ALL_GAMES = np.array(list(itertools.product([-1.0, 1.0], repeat=10)))


def capital_after(x, target=np.inf, **start):
    bettors = Bettors.start(1, **start)
    path = bettors.bet(0, np.asarray(x, float), target)
    assert len(path) == len(x)
    return bettors.capital[0]


# ---- bets ----


@pytest.mark.parametrize("target", [np.inf, 1.4])
def test_bets_on_a_fair_coin_win_nothing_on_average(target):
    assert np.mean([capital_after(game, target) for game in ALL_GAMES]) == pytest.approx(1.0)


@given(VALUES, st.sampled_from([1.02, 1.4, 5.0]))
def test_settling_bets_in_blocks_and_one_by_one_is_the_same(x, target):
    one_by_one, capital = Bettors.start(2), []
    for value in x:
        one_by_one.bet_once(np.array([value, 0.0]), target)
        capital.append(one_by_one.capital[0])
    np.testing.assert_allclose(Bettors.start(1).bet(0, x, target), capital, rtol=1e-9)
    assert one_by_one.capital[1] == pytest.approx(1.0)  # No bet was placed on the second question.
    assert one_by_one.n_bets.tolist() == [len(x), 0]


def test_the_capital_of_a_first_bet_by_hand():
    # 97% are in play from the start; of 3% in reserve, `in_play(1)` joins.
    staked = (0.97 + 0.03 * in_play(1)) * (PRIOR @ BETS)
    assert capital_after([0.5]) == pytest.approx(1 + 0.5 * staked)
    assert in_play(100) == pytest.approx(1 - 1 / (1 + np.log(2)))


@given(SIGNS, st.integers(0, 400))
def test_batches_do_not_matter(x, cut):
    whole, parts = Bettors.start(1), Bettors.start(1)
    path = whole.bet(0, x)
    in_parts = [parts.bet(0, part) for part in (x[:cut], x[cut:])]
    np.testing.assert_allclose(np.concatenate(in_parts), path, rtol=1e-9)


def test_no_bet_is_larger_than_what_is_missing_to_the_alarm():
    path = Bettors.start(1).bet(0, np.ones(30), target=20.0)
    assert path.max() == pytest.approx(20.0)
    assert Bettors.start(1).bet(0, np.ones(30)).max() > 100


def test_capital_neither_overflows_nor_vanishes():
    bettors = Bettors.start(2)
    assert np.isfinite(bettors.bet(0, np.ones(20_000))).all()
    path = bettors.bet(1, np.concatenate([-np.ones(20_000), np.ones(60)]))
    assert path[19_999] < 0.01  # Only what is kept back.
    assert path[-1] > 20


def test_a_later_start_has_the_capital_that_is_left_for_it():
    bettors = Bettors.start(2)
    bettors.bet(0, np.ones(10))
    bettors.restart(np.array([0]), mass=0.25)
    np.testing.assert_allclose(bettors.capital, [0.25, 1.0])


def test_capital_that_is_given_away_is_soon_missed():
    kept, capped = Bettors.start(1), Bettors.start(1)
    for bettors in (kept, capped):
        bettors.bet(0, np.ones(60))
    capped.cap(np.array([200.0]))
    assert capped.accounts.sum() == pytest.approx(200.0)
    poor = Bettors.start(2)
    poor.cap(np.array([200.0, 0.5]))  # Who has less keeps all.
    np.testing.assert_allclose(poor.accounts.sum(axis=1), [0.97, 0.5])
    for bettors in (kept, capped):
        bettors.bet(0, -np.ones(12))
    assert capped.capital[0] < 20 < kept.capital[0]


# ---- confidence sequences ----


def test_without_rows_nothing_is_known():
    found = WeightedCounts.of_counts(0, 0, 0)
    np.testing.assert_allclose([found.lower(0.05)[0], found.upper(0.05)[0]], [-1, 1], atol=1e-5)


def log_capital(rows, mean):
    """The definition: bets θ on x > m, of which each row wins θ w (x − m) / (1 + m), with the weight that is worse."""
    shares = np.geomspace(2e-4, 0.9, 28)
    prior = shares**0.25 / (shares**0.25).sum()
    logs = np.zeros(28)
    for x, low, high, count in zip(rows.x, rows.low, rows.high, rows.counts[0], strict=True):
        logs += count * np.log1p(shares * min(low * (x - mean), high * (x - mean)) / (1 + mean))
    return np.log(prior @ np.exp(logs))


@pytest.mark.parametrize("low", [0.2, 1.0])
@pytest.mark.parametrize("counts", [(60, 40, 900), (60, 0, 940), (1, 0, 0), (3, 200, 0)])
def test_limits_are_where_the_capital_reaches_one_over_the_level(counts, low):
    rows = WeightedCounts(np.array([1.0, -1.0, 0.0]), np.array([low, 0.5, 1.0]), np.ones(3), np.array([counts], float))
    limit, opposite = rows.lower(0.02)[0], rows.exchanged().lower(0.02)[0]
    assert rows.upper(0.02)[0] == -opposite
    for found, side in ((limit, rows), (opposite, rows.exchanged())):
        assert log_capital(side, found + 1e-6) < np.log(50)
        assert found == -1 or log_capital(side, found) >= np.log(50) - 1e-9


def test_many_questions_are_answered_as_each_alone():
    rng = np.random.default_rng(0)
    worse, better = rng.integers(0, 300, (2, 4000))
    limits = WeightedCounts.of_counts(worse, better, np.full(4000, 1000)).lower(0.05)
    for q in (0, 3332, 3333, 3999):  # Blocks have 3,333 questions.
        assert WeightedCounts.of_counts(worse[q], better[q], 1000).lower(0.05)[0] == limits[q]


@pytest.mark.parametrize("counts", [(5, 6, 10), (-1, 2, 10), (2, -1, 10)])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(InputError, match="negative"):
        WeightedCounts.of_counts(*counts)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_a_level_is_a_probability(level):
    with pytest.raises(InputError, match="level"):
        WeightedCounts.of_counts(1, 1, 10).lower(level)


# ---- drift ----


@pytest.mark.parametrize("share", [0.0, 0.03, 0.1, 0.5])
def test_evidence_of_drift_wins_nothing_on_average_where_the_share_is_as_before(share):
    n, reference = 60, 400
    k = np.arange(n + 1)
    evidence = drift_evidence(k, n, round(share * reference), reference, level=0.05)
    assert binom.pmf(k, n, share) @ evidence <= 1 + 1e-9


@pytest.mark.parametrize("n", [1, 7, 300])
def test_the_interval_of_a_share_is_that_of_clopper_and_pearson(n):
    for hits in {0, 1, n // 2, n - 1, n}:
        expected = binomtest(hits, n).proportion_ci(0.9, method="exact")
        np.testing.assert_allclose(np.ravel(share_interval(hits, n, 0.1)), expected, rtol=1e-9)


@pytest.mark.parametrize(("hits", "nearest"), [(0, "low"), (6, "share"), (40, "high")])
def test_evidence_of_drift_is_a_mixture_of_likelihood_ratios(hits, nearest):
    """Against the share in the interval that is nearest: ∫ p^k (1 − p)^(n − k) over four beta distributions."""
    n, center, margin = 40, 20.5 / 101, 0.05
    low, high = share_interval(20, 100, 0.05)
    p = {"low": low - margin, "share": hits / n, "high": high + margin}[nearest]
    grid = (np.arange(200_000) + 0.5) / 200_000
    ratio = (grid / p) ** hits * ((1 - grid) / (1 - p)) ** (n - hits)
    mixture = np.mean(
        [(beta.pdf(grid, trust * center, trust * (1 - center)) * ratio).mean() for trust in 10.0 ** np.arange(1, 5)]
    )
    assert drift_evidence(hits, n, 20, 100, 0.05, margin) == pytest.approx(mixture, rel=1e-5)
