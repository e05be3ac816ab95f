"""The guard's choice of servers: evidence, who serves whom, envy, the promise of "proof", and rows that say nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compared import rows_of
from dafh.evaluation.compared import ComparedRows
from dafh.evaluation.guard import choose_servers
from dafh.exceptions import InputError
from dafh.stats import Differences, mcnemar_p

# Group 0 or 1 of two: its own classifier is right where the pooled one is not, or the other way round.
WON = ("100", "010")
LOST = ("011", "101")


def one_group(won, lost, n=100):
    return rows_of((n, {"10": won, "01": lost}))


def serves(rows, **options):
    return choose_servers(rows, **options).serves.tolist()


# ---- evidence ----


@given(st.integers(0, 12), st.integers(0, 12))
def test_evidence_keeps_what_a_fair_coin_would_win_in_one_of_five_cases(won, lost):
    assert (serves(one_group(won, lost)) == [0]) == (mcnemar_p(won, lost) <= 0.2)


def test_a_classifier_that_no_row_tells_from_the_pooled_one_gives_way_to_it():
    assert serves(rows_of((100, {}), (100, {WON[1]: 3}))) == [2, 1]


@given(st.integers(0, 6), st.integers(0, 6), st.lists(st.sampled_from([1.0, 5.0]), min_size=15, max_size=15))
def test_evidence_compares_what_rows_weigh(won, lost, weight):
    kept = serves(rows_of((15, {"10": won, "01": lost}), sample_weight=weight)) == [0]
    gain = sum(weight[:won]) - sum(weight[won : won + lost])
    assert gain > 0 or not kept
    # Three rows alone suffice, and weigh alike: five fair coins against none would be kept at any weight.
    assert kept or lost or won < 3 or len(set(weight[:won])) > 1


def with_log_gain(rows, gain, spread=0.1, **others):
    """Rows on which the log-loss falls by `gain` on average, more or less."""
    wave = spread * np.resize([1.0, -1.0], len(rows.group))
    return replace(rows, log_gain=np.full(len(rows.group), gain) + wave, **others)


def test_where_errors_are_equal_the_log_loss_may_speak_for_a_classifier():
    equal = one_group(9, 9)
    assert serves(with_log_gain(equal, 0.02)) == [0]  # Two standard errors.
    assert serves(with_log_gain(equal, 0.01)) == [1]
    assert serves(with_log_gain(equal, -0.02)) == [1]
    assert serves(with_log_gain(one_group(9, 10), 0.02)) == [1]  # The error is higher.
    assert serves(with_log_gain(equal, 0.02), kind="proof") == [1]  # Proofs are about the loss that was asked for.


def test_persons_are_counted_by_the_log_loss_too():
    rows = with_log_gain(one_group(9, 9), 0.03)
    assert serves(rows) == [0]
    assert serves(replace(rows, person=np.arange(100))) == [0]
    assert serves(replace(rows, person=np.arange(100) % 2)) == [1]  # Two persons, with gains of 0.13 and −0.07.
    assert serves(replace(rows, person=np.zeros(100, int), log_gain=np.full(100, 0.03))) == [1]


# ---- groups that have seen the rows ----


def test_figures_are_about_the_share_that_fresh_rows_will_show():
    rows = one_group(20, 10)
    plain, honest = (choose_servers(one).table.loc[0] for one in (rows, replace(rows, honest_share=0.6)))
    assert plain["gain"] == pytest.approx(0.1)
    for name in ("gain", "low", "high"):
        assert honest[name] == pytest.approx(plain[name] - 0.04)
    assert honest["own_loss"] - honest["pooled_loss"] == pytest.approx(-0.06)
    assert honest["p_better"] > plain["p_better"]
    assert honest["excluded_harm"] >= plain["excluded_harm"]


def test_a_classifier_that_lives_on_the_search_alone_is_not_kept():
    rows = one_group(16, 10)
    assert serves(rows) == [0]
    assert serves(replace(rows, honest_share=0.5)) == [1]
    assert serves(replace(one_group(60, 10), honest_share=0.0)) == [1]  # However clear it looks.
    # The same of another group's classifier, and of the log-loss.
    assert serves(replace(envious(60, 5), honest_share=1.0)) == [1, 1]
    assert serves(replace(envious(60, 5), honest_share=0.01))[0] != 1
    equal = with_log_gain(one_group(9, 9), 0.03)
    assert serves(equal) == [0]
    assert serves(replace(equal, honest_share=0.5)) == [1]


# ---- proof ----


@given(st.integers(0, 30), st.integers(0, 30), st.integers(60, 500))
def test_proof_keeps_what_the_exact_test_shows(worse, better, n):
    assert (serves(one_group(better, worse, n), kind="proof") == [0]) == (mcnemar_p(better, worse) <= 0.05)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(60, 500))
def test_a_margin_accepts_as_much_harm_as_its_limit_allows(worse, better, n):
    limit = Differences.of_counts(worse, better, n).upper(0.05)[0]
    if abs(limit - 0.02) > 1e-7:
        assert (serves(one_group(better, worse, n), kind="proof", margin=0.02) == [0]) == (limit <= 0.02)


def test_what_holm_keeps_bonferroni_does_not():
    """p = 2⁻⁶ is enough for 0.05 / 2; p = 2⁻⁵ is not, but it is once the first group is proved: 0.05 / 1."""
    rows = rows_of((100, {WON[0]: 6}), (100, {WON[1]: 5}))
    assert serves(rows, kind="proof") == [0, 1]
    p = choose_servers(rows).table["p_better"]
    assert p.tolist() == pytest.approx([2**-6, 2**-5])
    assert (2 * p <= 0.05).tolist() == [True, False]
    # Alone with a group that proves nothing, the same five rows are not enough.
    assert serves(rows_of((100, {}), (100, {WON[1]: 5})), kind="proof") == [2, 2]


# ---- envy ----


def envious(won, lost=0, n_groups=2, against_pooled=100, rival=1):
    """Group 0's own classifier wins 100 rows against the pooled one; a rival wins and loses some against it.

    The other groups' own classifiers win 50 rows each. Where the rival beats the own classifier, the pooled one is
    wrong too, so that it beats that one as well.
    """
    only = ["0"] * (n_groups + 1)
    both, alone, own_only = only.copy(), only.copy(), only.copy()
    both[0] = both[rival] = alone[rival] = own_only[0] = "1"
    keys = ["".join(some) for some in (both, alone, own_only)]
    first = {keys[0]: against_pooled - lost, keys[1]: won, keys[2]: lost}
    others = [{"".join("1" if j == k else "0" for j in range(n_groups + 1)): 50} for k in range(1, n_groups)]
    return rows_of((1000, first), *[(1000, some) for some in others])


@pytest.mark.parametrize("kind", ["evidence", "proof"])
def test_a_group_that_does_better_with_another_classifier_gets_it(kind):
    report = choose_servers(envious(60, 5), kind=kind)
    assert report.serves.tolist() == [1, 1]
    assert report.table["served_by"].tolist() == ["classifier 1", "its own"]
    assert report.table["excluded_harm"].max() <= 0


@pytest.mark.parametrize("kind", ["evidence", "proof"])
def test_a_rival_is_tested_at_the_groups_share_divided_among_its_rivals(kind):
    # 0.05 / 3 groups / 2 rivals = 0.0083: six wins without a loss have p = 0.0156, seven have 0.0078.
    assert serves(envious(6, n_groups=3), kind=kind)[0] == 0
    assert serves(envious(7, n_groups=3), kind=kind)[0] == 1
    assert serves(envious(6, n_groups=3), kind=kind, level=0.1)[0] == 1
    # With two groups there is one rival: 0.05 / 2 = 0.025.
    assert serves(envious(6), kind=kind)[0] == 1
    assert serves(envious(5), kind=kind)[0] == 0


def test_a_rival_must_be_shown_no_worse_than_the_pooled_classifier_too():
    """The rival beats the own classifier on 60 rows; on 20 the pooled one is right as well, on 40 it is not."""
    second = (1000, {WON[1]: 50})
    shown = {"110": 30, "011": 20, "010": 40}
    assert serves(rows_of((1000, shown), second))[0] == 1
    unshown = {"100": 30, "011": 60, "101": 5}  # Better than the own one, but not shown to be better than pooled.
    assert serves(rows_of((1000, unshown), second))[0] == 2


def test_of_two_better_rivals_the_one_with_fewer_errors_serves():
    groups = [(1000, {"0100": 50}), (1000, {"0010": 50})]
    assert serves(rows_of((1000, {"1110": 90, "0110": 30, "0010": 20}), *groups))[0] == 2
    assert serves(rows_of((1000, {"1110": 90, "0110": 30, "0100": 20}), *groups))[0] == 1
    assert serves(rows_of((1000, {"1110": 90, "0110": 50}), *groups))[0] == 1  # Equal: the first one.


def test_under_proof_envy_is_repaired_only_when_all_own_classifiers_are_proved():
    first = {"110": 95, "100": 5, "010": 60}  # Its own is proved, and classifier 1 is better.
    proved, unproved = (1000, {WON[1]: 50}), (1000, {WON[1]: 4})
    assert serves(rows_of((1000, first), proved), kind="proof") == [1, 1]
    assert serves(rows_of((1000, first), unproved), kind="proof") == [0, 2]
    assert serves(rows_of((1000, first), unproved)) == [1, 1]  # Evidence proves nothing, and waits for nothing.


def test_a_group_that_loses_its_own_classifier_is_offered_another_under_evidence_only():
    best = {"010": 80, "011": 10, "001": 20, "101": 5}
    rows = rows_of((1000, best), (1000, {WON[1]: 30}))
    assert serves(rows, kind="proof") == [2, 1]
    assert serves(rows, kind="evidence") == [1, 1]


# ---- rows that say nothing ----


@pytest.mark.parametrize("kind", ["evidence", "proof"])
def test_without_rows_there_is_no_own_classifier(kind):
    report = choose_servers(ComparedRows.none(2), kind=kind)
    assert report.serves.tolist() == [2, 2]
    assert report.table["excluded_harm"].tolist() == [0, 0]
    assert "no rows" in report.sentence()


@pytest.mark.parametrize("kind", ["evidence", "proof"])
def test_a_group_without_rows_is_served_by_the_pooled_classifier_and_the_others_as_before(kind):
    full = (500, {WON[0]: 40, LOST[0]: 5})
    report = choose_servers(rows_of(full, (0, {})), kind=kind)
    assert report.serves.tolist() == [0, 2]
    assert np.isnan(report.table.loc[1, "own_loss"])


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="no guard 'prof'"):
        choose_servers(one_group(1, 1), kind="prof")


# ---- the promise, in a few worlds; docs/guarantee.md has many ----


def harmful_world(rng, n_groups=3, n=300, harm=0.01, discordance=0.2):
    """Every own classifier is truly worse; returns rows drawn from that world."""
    y = np.zeros(n, int)
    drawn = rng.choice(3, n, p=[(discordance + harm) / 2, (discordance - harm) / 2, 1 - discordance])
    own, pooled = (drawn == 0) * 1, (drawn == 1) * 1
    groups = rng.integers(n_groups, size=n)
    return ComparedRows.check(y, np.repeat(own[:, None], n_groups, axis=1), groups, pooled)


@pytest.mark.slow
def test_few_worlds_are_harmed_under_proof_and_more_under_evidence():
    """5% of 100 worlds, and three standard deviations of what chance adds."""
    rng = np.random.default_rng(1)
    worlds = [harmful_world(rng) for _ in range(100)]
    proved = np.mean([min(serves(rows, kind="proof")) < 3 for rows in worlds])
    assert proved <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)
    # The worlds are ones in which harm can be done: in each of three groups, a fifth of equal classifiers may pass.
    assert 0.2 < np.mean([min(serves(rows)) < 3 for rows in worlds]) < 1 - 0.8**3
