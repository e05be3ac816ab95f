"""Evidence that may be looked at at any time: fair bets, stopping rules, and many questions at once."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dafh.exceptions import InputError
from dafh.stats import Bettors, WeightedCounts, drift_evidence, share_interval

SIGNS = st.lists(st.sampled_from([-1.0, 1.0]), max_size=400).map(np.array)
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


def test_bets_lose_on_average_where_the_own_classifier_is_better():
    chance = np.prod(np.where(ALL_GAMES > 0, 0.4, 0.6), axis=1)
    assert chance @ [capital_after(game) for game in ALL_GAMES] < 0.9


@given(SIGNS)
def test_settling_bets_in_blocks_and_one_by_one_is_the_same(x):
    one_by_one = Bettors.start(1)
    for value in x:
        one_by_one.bet_once(np.array([value]), target=5.0)
    assert capital_after(x, target=5.0) == pytest.approx(one_by_one.capital[0], rel=1e-9)


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
    poor = Bettors.start(1)
    before = poor.capital
    poor.cap(np.array([200.0]))  # Who has less keeps all.
    np.testing.assert_array_equal(poor.capital, before)
    for bettors in (kept, capped):
        bettors.bet(0, -np.ones(12))
    assert capped.capital[0] < 20 < kept.capital[0]


# ---- confidence sequences ----


def test_without_rows_nothing_is_known():
    found = WeightedCounts.of_counts(0, 0, 0)
    np.testing.assert_allclose([found.lower(0.05)[0], found.upper(0.05)[0]], [-1, 1], atol=1e-5)


def test_limits_cover_at_all_times():
    rng = np.random.default_rng(0)
    missed, looks = 0, np.unique(np.geomspace(1, 3000, 25).astype(int))
    for _ in range(60):
        x = rng.choice([1, -1, 0], 3000, p=[0.07, 0.05, 0.88])
        b, c = (np.cumsum(x == sign)[looks - 1] for sign in (1, -1))
        found = WeightedCounts.of_counts(b, c, looks)
        missed += found.lower(0.1).max() > 0.02 or found.upper(0.1).min() < 0.02
    assert missed <= 12  # 20% at most, and much less where the smallest bets do not fit the number of rows.


def test_limits_refuse_impossible_counts_and_levels():
    with pytest.raises(InputError, match="negative"):
        WeightedCounts.of_counts(5, 6, 10)
    with pytest.raises(InputError, match="level"):
        WeightedCounts.of_counts(1, 1, 10).lower(0.0)


# ---- drift ----


@pytest.mark.parametrize("share", [0.0, 0.03, 0.1, 0.5])
def test_evidence_of_drift_wins_nothing_on_average_where_the_share_is_as_before(share):
    n, reference = 60, 400
    k = np.arange(n + 1)
    evidence = drift_evidence(k, n, round(share * reference), reference, level=0.05)
    assert binom.pmf(k, n, share) @ evidence <= 1 + 1e-9


def test_evidence_of_drift_grows_with_the_change_and_not_within_a_margin():
    evidence = drift_evidence([100, 130, 200], 1000, 1000, 10_000, level=0.025)
    assert (np.diff(evidence) > 0).all()
    assert evidence[0] < 1 < evidence[1] < 1e6 < evidence[2]
    assert drift_evidence(130, 1000, 1000, 10_000, level=0.025, margin=0.05) < 1


def test_few_reference_rows_show_no_drift():
    assert drift_evidence(300, 1000, 1, 10, level=0.025) < 20
    assert drift_evidence(0, 0, 1, 10, level=0.025) <= 1
    np.testing.assert_allclose(np.ravel(share_interval(0, 0, 0.05)), [0, 1])
