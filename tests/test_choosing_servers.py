"""The guard's choice of servers: who serves whom, the promise of "proof", certificates, and how the report reads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.evaluation.guard import choose_servers
from dafh.evaluation.paired import PairedCounts
from dafh.exceptions import InputError
from dafh.stats import excluded_harm
from dafh.study.guarantee import World, guard_table, harmed_share, kept_share


def counts_of(*groups):
    """Counts of K groups, each given as rows (n) and, for every pair (i, j), rows that i gets right and j wrong."""
    n_groups = len(groups)
    beats = np.zeros((n_groups, n_groups + 1, n_groups + 1))
    wrong = np.zeros((n_groups, n_groups + 1))
    for g, (_, pairs) in enumerate(groups):
        for (i, j), number in pairs.items():
            beats[g, i, j] = number
            wrong[g, j] += number
    return PairedCounts(beats, np.array([n for n, _ in groups], float), wrong)


# ---- decisions by hand ----


def test_veto_acts_on_what_the_rows_say():
    # Mid-p of 9 won and 10 lost is 0.412, not enough to speak against a classifier; of 9 and 11 it is 0.332.
    counts = counts_of((100, {(0, 2): 9, (2, 0): 10}), (100, {(1, 2): 9, (2, 1): 11}))
    report = choose_servers(counts, kind="veto")
    assert report.serves.tolist() == [0, 2]
    assert report.table["served_by"].tolist() == ["its own", "pooled"]


def test_a_classifier_that_no_row_tells_from_the_pooled_one_gives_way_to_it():
    assert choose_servers(counts_of((100, {}), (100, {(1, 2): 1})), kind="veto").serves.tolist() == [2, 1]


def test_proof_asks_for_more():
    unclear = counts_of((100, {(0, 1): 6, (1, 0): 4}))
    clear = counts_of((100, {(0, 1): 20, (1, 0): 4}))
    assert choose_servers(unclear, kind="proof").serves.tolist() == [1]
    assert choose_servers(clear, kind="proof").serves.tolist() == [0]


def test_a_margin_accepts_a_little_harm():
    counts = counts_of((5000, {(0, 1): 50, (1, 0): 50}))
    assert choose_servers(counts, kind="proof").serves.tolist() == [1]
    assert choose_servers(counts, kind="proof", margin=0.01).serves.tolist() == [0]


def test_the_level_is_shared_by_the_groups():
    group = (200, {(0, 1): 8, (1, 0): 1})  # p = 10/512, just below 0.02
    assert choose_servers(counts_of(group), kind="proof").serves.tolist() == [0]
    many = counts_of(*[(200, {(k, 4): 8, (4, k): 1}) for k in range(4)])
    assert choose_servers(many, kind="proof").serves.tolist() == [4] * 4


def test_a_group_that_prefers_another_classifier_gets_it():
    better = {(0, 2): 20, (2, 0): 5, (1, 0): 60, (0, 1): 5, (1, 2): 75, (2, 1): 5}
    counts = counts_of((1000, better), (1000, {(1, 2): 30, (2, 1): 1}))
    for kind in ("veto", "proof"):
        report = choose_servers(counts, kind=kind)
        assert report.serves.tolist() == [1, 1]
        assert report.table["served_by"].tolist() == ["classifier 1", "its own"]
        assert report.table["excluded_harm"].max() <= 0


def test_another_classifier_must_be_proved_too():
    """Group 0 prefers classifier 1 to its own, but against the pooled one that is not shown."""
    own = {(0, 2): 30, (2, 0): 5}
    unproved = own | {(1, 0): 60, (0, 1): 5, (1, 2): 20, (2, 1): 15}
    proved = own | {(1, 0): 60, (0, 1): 5, (1, 2): 80, (2, 1): 15}
    second = (1000, {(1, 2): 30, (2, 1): 1})
    assert choose_servers(counts_of((1000, unproved), second), kind="proof").serves.tolist() == [0, 1]
    assert choose_servers(counts_of((1000, proved), second), kind="proof").serves.tolist() == [1, 1]


def test_a_group_that_loses_its_own_classifier_under_proof_is_not_offered_another():
    best = {(2, 0): 30, (0, 2): 5, (1, 0): 90, (0, 1): 5, (1, 2): 80, (2, 1): 5}
    counts = counts_of((1000, best), (1000, {(1, 2): 30, (2, 1): 1}))
    assert choose_servers(counts, kind="proof").serves.tolist() == [2, 1]
    assert choose_servers(counts, kind="veto").serves.tolist() == [1, 1]


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="no guard 'prof'"):
        choose_servers(counts_of((10, {})), kind="prof")


def test_groups_without_rows_keep_their_own_under_veto_and_lose_it_under_proof():
    empty = counts_of((0, {}), (0, {}))
    assert choose_servers(empty, kind="veto").serves.tolist() == [0, 1]
    assert choose_servers(empty, kind="proof").serves.tolist() == [2, 2]
    assert "–" in str(choose_servers(empty))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(60, 500))
def test_proof_keeps_exactly_what_its_certificate_allows(worse, better, n):
    counts = counts_of((n, {(0, 1): better, (1, 0): worse}))
    for margin in (0.0, 0.02):
        kept = choose_servers(counts, kind="proof", margin=margin).serves[0] == 0
        assert kept == (excluded_harm(worse, better, n) <= margin)


@given(st.integers(0, 30), st.integers(0, 30))
def test_whatever_proof_keeps_veto_keeps(worse, better):
    counts = counts_of((100, {(0, 1): better, (1, 0): worse}))
    if choose_servers(counts, kind="proof").serves[0] == 0:
        assert choose_servers(counts, kind="veto").serves[0] == 0


def test_the_report_reads_well_and_holds_no_markup():
    counts = counts_of((100, {(0, 2): 6, (2, 0): 4}), (100, {(1, 2): 4, (2, 1): 12}))
    report = choose_servers(counts)
    text = str(report)
    assert text.startswith('Guard "veto" on 200 rows: group 1 is served by the pooled classifier.')
    assert max(len(line) for line in text.splitlines()) <= 110
    assert "<table" in report._repr_html_()
    assert report.to_frame().shape[0] == 2


def test_the_sentence_names_everyone():
    def sentence(*served):
        pairs = {"own": {(0, 3): 1, (1, 3): 1, (2, 3): 1}, "pooled": {(3, 0): 5, (3, 1): 5, (3, 2): 5}}
        return choose_servers(counts_of(*[(50, pairs[s]) for s in served])).sentence()

    assert sentence("own", "own", "own").endswith("every group keeps its own classifier.")
    assert sentence("pooled", "pooled", "own").endswith("group 0 and group 1 are served by the pooled classifier.")
    assert sentence("pooled", "pooled", "pooled").endswith("every group is served by the pooled classifier.")


# ---- the promise ----


@pytest.mark.parametrize("n_groups", [2, 8])
@pytest.mark.parametrize("kind", ["varied", "imbalanced", "ties", "open gate"])
def test_few_worlds_are_harmed_under_proof(n_groups, kind):
    """5 % of 200 worlds, and three standard deviations of what chance adds."""
    assert harmed_share(n_groups, 200, kind, seed=1) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_the_simulation_would_notice_a_guard_that_does_nothing():
    rng = np.random.default_rng(0)
    world = World(np.array([500, 500]), np.full((2, 2), 0.03), 0.1)
    report = choose_servers(world.draw(rng).paired_counts(), kind="proof", margin=0.5)
    assert report.serves.tolist() == [0, 1]
    assert (world.harm > 0).all()
    assert not world.is_harmed(report)  # Within the margin that was asked for.
    assert harmed_share(4, 50, "ties", seed=0, guard="veto") > 0.9  # A veto proves nothing.


def test_classifiers_that_are_truly_better_are_kept():
    assert kept_share(4, 40, seed=0) >= 0.9


def test_certificates_hold_together():
    """Also where rows choose another group's classifier, and then speak for it."""
    rng = np.random.default_rng(0)
    harm = np.array([[-0.010, -0.029], [-0.02, -0.01]])
    world = World(np.array([2000, 2000]), harm, 0.1)
    false = []
    for _ in range(400):
        report = world.guard(rng, kind="proof")
        true = np.column_stack([harm, np.zeros(2)])[np.arange(2), report.serves]
        false.append((true > report.table["excluded_harm"] + 1e-12).any())
    assert np.mean(false) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.slow
def test_the_promise_holds_in_a_thousand_worlds_each():
    table = guard_table(1000)
    harmed = table[[name for name in table if name.startswith("harmed")]].to_numpy()
    assert harmed.max() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 1000)
    assert table["kept, 3 percentage points better"].min() >= 0.9
