"""The guard's choice of servers: who serves whom, the promise of "proof", certificates, and how the report reads."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.evaluation.guard import GuardReport, choose_servers
from dafh.evaluation.paired import PairedCounts
from dafh.exceptions import InputError
from dafh.stats import excluded_harm, mcnemar_p, paired_interval
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


def test_whatever_proof_keeps_veto_keeps():
    kept = 0
    for worse, better in np.ndindex(12, 31):
        counts = counts_of((100, {(0, 1): better, (1, 0): worse}))
        if choose_servers(counts, kind="proof").serves[0] == 0:
            kept += 1
            assert choose_servers(counts, kind="veto").serves[0] == 0
    assert kept > 100  # Otherwise nothing was compared.


def test_the_report_is_a_sentence_and_a_table_in_a_terminal_and_in_a_notebook():
    counts = counts_of((100, {(0, 2): 6, (2, 0): 4}), (100, {(1, 2): 4, (2, 1): 12}))
    report = choose_servers(counts)
    text = str(report)
    assert text.startswith('Guard "veto" on 200 calibration rows: group 1 is served by the pooled classifier.')
    heading, *lines = text.splitlines()[2:]
    assert "gain, points" in heading
    assert "95% interval" in heading
    assert [line.split()[:2] for line in lines] == [["0", "100"], ["1", "100"]]
    assert max(len(line) for line in text.splitlines()) <= 120
    page = report._repr_html_()
    assert page.count("<tr") == 3
    assert page.index("group 1 is served by the pooled classifier.") < page.index("<table")
    assert not GuardReport(report.kind, report.level, report.margin, report.serves, report.table).cross_fitted


def test_the_sentence_names_everyone():
    def sentence(*served):
        pairs = {"own": {(0, 3): 1, (1, 3): 1, (2, 3): 1}, "pooled": {(3, 0): 5, (3, 1): 5, (3, 2): 5}}
        return choose_servers(counts_of(*[(50, pairs[s]) for s in served])).sentence()

    assert sentence("own", "own", "own").endswith("every group keeps its own classifier.")
    assert sentence("pooled", "pooled", "own").endswith("group 0 and group 1 are served by the pooled classifier.")
    assert sentence("pooled", "pooled", "pooled").endswith("every group is served by the pooled classifier.")


# ---- envy ----


def envious(n_groups, **rivals):
    """Counts in which only group 0 speaks: its own classifier wins 100 rows against the pooled one and loses none.

    `rivals` says for "r1", "r2" how many rows classifier 1, 2 wins and loses against the own and the pooled one.
    """
    pairs = {(0, n_groups): 100}
    wrong = {0: 200, n_groups: 300}
    for name, (won, lost, errors) in rivals.items():
        r = int(name[1:])
        pairs |= {(r, 0): won, (0, r): lost, (r, n_groups): 100 + won, (n_groups, r): lost}
        wrong[r] = errors
    counts = counts_of((1000, pairs), *[(1000, {(k, n_groups): 50}) for k in range(1, n_groups)])
    counts.n_wrong[0] = [wrong.get(j, 500) for j in range(n_groups + 1)]
    return counts


@pytest.mark.parametrize("kind", ["veto", "proof"])
def test_a_rival_is_tested_at_the_groups_share_divided_among_its_rivals(kind):
    # 0.05 / 3 groups / 2 rivals = 0.0083: six wins without a loss have p = 0.0156, seven have 0.0078.
    assert choose_servers(envious(3, r1=(6, 0, 190)), kind=kind).serves[0] == 0
    assert choose_servers(envious(3, r1=(7, 0, 190)), kind=kind).serves[0] == 1
    assert choose_servers(envious(3, r1=(6, 0, 190)), kind=kind, level=0.1).serves[0] == 1
    # With two groups there is one rival: 0.05 / 2 = 0.025.
    assert choose_servers(envious(2, r1=(6, 0, 190)), kind=kind).serves[0] == 1
    assert choose_servers(envious(2, r1=(5, 0, 190)), kind=kind).serves[0] == 0


def test_a_p_value_of_exactly_the_level_is_enough_for_a_rival():
    assert choose_servers(envious(2, r1=(6, 0, 190)), level=2**-5).serves[0] == 1  # p = 2**-6 = level / 2
    assert choose_servers(envious(2, r1=(6, 0, 190)), level=2**-5 - 1e-9).serves[0] == 0


def test_a_rival_is_proved_against_the_pooled_classifier_at_the_same_share():
    # Five wins without a loss against the pooled one: p = 0.031, enough at 0.05 but not at 0.05 / 2.
    pairs = {(0, 2): 10, (2, 0): 10, (1, 0): 20, (1, 2): 5}
    counts = counts_of((1000, pairs), (1000, {(1, 2): 30}))
    counts.n_wrong[0] = [100, 80, 100]
    assert choose_servers(counts).serves[0] == 0
    assert choose_servers(counts, level=0.1).serves[0] == 1


def test_of_two_better_rivals_the_one_with_fewer_errors_serves():
    assert choose_servers(envious(3, r1=(30, 0, 170), r2=(50, 0, 150))).serves[0] == 2
    assert choose_servers(envious(3, r1=(50, 0, 150), r2=(30, 0, 170))).serves[0] == 1
    assert choose_servers(envious(3, r1=(50, 0, 150), r2=(50, 0, 150))).serves[0] == 1  # Equal: the first one.


def test_a_rival_with_more_errors_never_serves():
    """Weighted counts can favour a rival in pairs that has more errors: it must have fewer."""
    assert choose_servers(envious(2, r1=(50, 0, 200))).serves[0] == 0
    assert choose_servers(envious(2, r1=(50, 0, 199))).serves[0] == 1


def test_a_margin_is_tolerated_in_rivals_too():
    pairs = {(0, 2): 10, (2, 0): 10, (1, 0): 20, (0, 1): 0, (1, 2): 5, (2, 1): 5}
    counts = counts_of((1000, pairs), (1000, {(1, 2): 30}))
    counts.n_wrong[0] = [100, 80, 100]
    assert choose_servers(counts).serves[0] == 0
    assert choose_servers(counts, margin=0.05).serves[0] == 1
    exact = excluded_harm(5, 5, 1000, level=0.05 / 2)
    assert choose_servers(counts, margin=exact).serves[0] == 1
    assert choose_servers(counts, margin=np.nextafter(exact, 0)).serves[0] == 0


def test_a_group_served_by_the_pooled_classifier_under_veto_may_get_a_rival_that_beats_it():
    pairs = {(0, 2): 1, (2, 0): 30, (1, 2): 60, (2, 1): 5, (1, 0): 60}
    counts = counts_of((1000, pairs), (1000, {(1, 2): 30}))
    counts.n_wrong[0] = [200, 100, 150]
    assert choose_servers(counts).serves.tolist() == [1, 1]
    assert "group 0 gets another group's classifier" in choose_servers(counts).sentence()


# ---- the table and its words ----


def test_the_table_holds_the_statistics_of_each_group():
    counts = counts_of((500, {(0, 2): 40, (2, 0): 5}), (400, {(1, 2): 10, (2, 1): 20}))
    table = choose_servers(counts, level=0.1).to_frame()
    assert table.index.name == "group"
    first = table.loc[0]
    assert (first["rows"], first["own_worse"], first["own_better"]) == (500, 5, 40)
    assert (first["own_error"], first["pooled_error"]) == (5 / 500, 40 / 500)
    assert table["gain"].tolist() == pytest.approx([35 / 500, -10 / 400])
    for group, (b, c, n) in enumerate([(5, 40, 500), (20, 10, 400)]):
        low, high = paired_interval(b, c, n, confidence=0.9)
        row = table.loc[group]
        assert (row["low"], row["high"]) == (low, high)
        assert (row["p_worse"], row["p_better"]) == (mcnemar_p(b, c), mcnemar_p(c, b))


def test_certificates_divide_the_level_among_all_that_could_have_been_chosen():
    def certificate(counts, **options):
        return choose_servers(counts, **options).table["excluded_harm"].iloc[0]

    alone = counts_of((500, {(0, 1): 40, (1, 0): 5}))
    assert certificate(alone) == excluded_harm(5, 40, 500, level=0.05)
    two = counts_of((500, {(0, 2): 40, (2, 0): 5}), (500, {}))
    assert certificate(two) == excluded_harm(5, 40, 500, level=0.05 / 2 / 2)
    rival = envious(2, r1=(50, 3, 150))
    assert certificate(rival) == excluded_harm(3, 150, 1000, level=0.05 / 2 / 2)
    rival_of_two = envious(3, r1=(50, 3, 150))
    assert certificate(rival_of_two) == excluded_harm(3, 150, 1000, level=0.05 / 3 / 2 / 2)


def test_what_was_proved_is_certified():
    counts = counts_of((5000, {(0, 1): 50, (1, 0): 50}))
    tight = excluded_harm(50, 50, 5000, level=0.05)
    two = counts_of((5000, {(0, 2): 50, (2, 0): 50}), (5000, {}))
    margin = (excluded_harm(50, 50, 5000, level=0.025) + excluded_harm(50, 50, 5000, level=0.0125)) / 2
    assert choose_servers(counts, kind="proof", margin=0.01).table["excluded_harm"].tolist() == [tight]
    report = choose_servers(two, kind="proof", margin=margin)  # Proved at 0.05 / 2, certified alone only at half of it.
    assert report.serves[0] == 0
    assert report.table["excluded_harm"].iloc[0] == margin
    assert choose_servers(two, kind="veto", margin=margin).table["excluded_harm"].iloc[0] > margin


@pytest.mark.parametrize(
    ("won", "lost", "n", "words"),
    [
        (40, 5, 500, "none, gain ≥ 4.78"),
        (30, 0, 10_000_000, "none"),
        (9, 10, 500, "at most 1.83"),
        (12, 0, 100_000, "none, gain ≥ 0.01"),
        (600, 600, 1_000_000, "at most 0.01"),
        (6, 5, 10_000_000, "at most 5e-05"),
        (5, 40, 500, "none, is pooled"),
    ],
)
def test_certificates_in_words(won, lost, n, words):
    table = choose_servers(counts_of((n, {(0, 1): won, (1, 0): lost}))).table
    assert table["certificate"].tolist() == [words]


def test_a_proof_that_leaves_nothing_over_is_a_certificate_of_no_harm():
    """Six wins without a loss: p = 0.016 proves no harm at 0.05 / 2, but excludes some only at half of that."""
    report = choose_servers(counts_of((100, {(0, 2): 6}), (100, {})), kind="proof")
    assert report.table["excluded_harm"].tolist() == [0, 0]
    assert report.table["certificate"].tolist() == ["none", "none, is pooled"]


def test_a_margin_that_two_decimals_round_up_is_certified_in_two_decimals():
    """Equal counts of 20 exclude 0.0045 points of harm at 0.05 / 2, and 0.0051 at half of that: the margin is left."""
    counts = counts_of((300_000, {(0, 2): 20, (2, 0): 20}), (300_000, {}))
    table = choose_servers(counts, kind="proof", margin=5e-5).table
    assert table["excluded_harm"].iloc[0] == 5e-5
    assert table["certificate"].tolist() == ["at most 0.01", "at most 0.001"]


def test_a_group_served_by_the_pooled_classifier_has_a_certificate_of_zero():
    assert choose_servers(counts_of((100, {(1, 0): 9}))).table["excluded_harm"].tolist() == [0]


def test_a_margin_that_is_met_exactly_is_met():
    counts = counts_of((5000, {(0, 1): 50, (1, 0): 50}))
    margin = excluded_harm(50, 50, 5000, level=0.05)
    assert choose_servers(counts, kind="proof", margin=margin).serves.tolist() == [0]
    assert choose_servers(counts, kind="proof", margin=np.nextafter(margin, 0)).serves.tolist() == [1]


def test_a_report_says_which_rows_it_had():
    counts = counts_of((1500, {(0, 2): 1}), (500, {(1, 2): 1}))
    assert choose_servers(counts).n_rows == 2000
    assert (
        choose_servers(counts).sentence()
        == 'Guard "veto" on 2,000 calibration rows: every group keeps its own classifier.'
    )
    fitted = choose_servers(counts, kind="proof", cross_fitted=True)
    assert fitted.sentence().startswith(
        'Guard "proof" on 2,000 calibration rows, scored by models trained without them: every'
    )
    assert (fitted.cross_fitted, fitted.level, fitted.margin, fitted.kind) == (True, 0.05, 0.0, "proof")


def test_several_groups_can_get_another_classifier():
    better = {(2, 0): 60, (2, 1): 60, (2, 3): 60, (0, 3): 5, (1, 3): 5}
    report = choose_servers(counts_of((500, better), (500, better), (500, better)))
    assert report.serves.tolist() == [2, 2, 2]
    assert report.sentence().endswith("group 0 and group 1 get another group's classifier.")
    assert report.table["served_by"].tolist() == ["classifier 2", "classifier 2", "its own"]
    mixed = choose_servers(counts_of((500, {(3, 0): 50}), (500, better), (500, better)))
    assert mixed.sentence().endswith(
        ": group 0 is served by the pooled classifier; group 1 gets another group's classifier."
    )


def test_a_frame_that_is_changed_leaves_the_report_alone():
    report = choose_servers(counts_of((100, {(0, 1): 1})))
    frame = report.to_frame()
    frame.loc[0, "rows"] = -1
    assert report.n_rows == 100


# ---- calibration parts without rows ----


def test_no_rows_at_all_prove_nothing_and_veto_nothing():
    empty = PairedCounts.zero(2, 2)
    for kind, serves in (("veto", [0, 1]), ("proof", [2, 2])):
        report = choose_servers(empty, kind=kind)
        assert report.serves.tolist() == serves
        assert report.sentence().startswith(f'Guard "{kind}" had no rows to decide by: every group')
    assert choose_servers(empty).table["excluded_harm"].tolist() == [1, 1]
    assert choose_servers(empty).table["certificate"].tolist() == ["at most 100.00"] * 2


def test_one_empty_group_does_not_change_the_others():
    full = (500, {(0, 2): 40, (2, 0): 5})
    for kind, serves in (("veto", [0, 1]), ("proof", [0, 2])):
        report = choose_servers(counts_of(full, (0, {})), kind=kind)
        assert report.serves.tolist() == serves
        assert report.table.loc[0].equals(choose_servers(counts_of(full, (500, {(1, 2): 50})), kind=kind).table.loc[0])
    assert np.isnan(report.table.loc[1, "own_error"])


# ---- the promise ----


@pytest.mark.parametrize("n_groups", [2, 8])
@pytest.mark.parametrize("kind", ["varied", "imbalanced", "ties", "open gate"])
def test_few_worlds_are_harmed_under_proof(n_groups, kind):
    """5% of 200 worlds, and three standard deviations of what chance adds."""
    assert harmed_share(n_groups, 200, kind, seed=1) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_the_simulation_would_notice_a_guard_that_does_nothing():
    rng = np.random.default_rng(0)
    world = World(np.array([500, 500]), np.full((2, 2), 0.03), 0.1)
    report = world.guard(rng, kind="proof")
    assert not world.is_harmed(report)
    assert world.is_harmed(replace(report, serves=np.arange(2)))
    assert not world.is_harmed(replace(report, serves=np.arange(2), margin=0.03))  # Within the margin asked for.
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
