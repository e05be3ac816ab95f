"""Simulated worlds and enumerated outcomes, checked by law: the study of the guarantee must itself be right."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import multinomial

from cases import examples
from dafh.evaluation.guard import choose_servers
from dafh.evaluation.losses import ERROR
from dafh.evaluation.named_groups import NamedGroups
from dafh.evaluation.questions import answer, ask_named_groups
from dafh.exceptions import InputError
from dafh.stats import Differences, mcnemar_p, paired_interval
from dafh.study.guarantee import audits, coverage, fits, proof, tables, veto
from dafh.study.guarantee.coverage import COST_OUTCOMES, coverage_table, interval_coverage, missed
from dafh.study.guarantee.proof import guard_table, harmed_share, kept_by_proof, kept_share
from dafh.study.guarantee.worlds import KINDS, World, compare_own, draw_outcomes, harmful_world, helpful_world


def rng(seed=0):
    return np.random.default_rng(seed)


# ---- coverage ----


@examples(0.5)
@example(5, 0.5, -3e-109)  # Once the p-values of such a harm were 0.
@given(st.integers(5, 40), st.floats(0.02, 1.0), st.floats(-0.95, 0.95))
def test_no_limit_is_missed_more_often_than_its_level(n_rows, discordance, relative_harm):
    found = missed(n_rows, discordance, relative_harm * discordance)
    assert (found <= np.array(coverage.LEVELS) * 1.0001).all()
    assert (np.diff(found) <= 0).all()  # A stricter level is missed less often.


@pytest.mark.parametrize("gap", [0.0, 0.05, 0.15])
def test_exchanging_the_classifiers_exchanges_the_sides(gap):
    one, other = interval_coverage(60, 0.2, gap), interval_coverage(60, 0.2, -gap)
    assert one.missed_above == pytest.approx(other.missed_below, abs=1e-9)
    assert one.inside == pytest.approx(other.inside, abs=1e-9)
    assert one.inside + one.missed_above + one.missed_below == pytest.approx(1)


def test_more_confidence_covers_more():
    assert interval_coverage(50, 0.2, 0.1, 0.99).inside > interval_coverage(50, 0.2, 0.1).inside


def test_coverage_agrees_with_a_simulation():
    n, discordance, gap = 40, 0.3, 0.1
    worse, better = (discordance - gap) / 2, (discordance + gap) / 2
    counts = rng().multinomial(n, [worse, better, 1 - discordance], size=20_000)
    kinds, number = np.unique(counts, axis=0, return_counts=True)
    low, high = paired_interval(kinds[:, 0], kinds[:, 1], n)
    simulated = number @ ((low <= gap + 1e-12) & (gap - 1e-12 <= high)) / number.sum()
    assert interval_coverage(n, discordance, gap).inside == pytest.approx(simulated, abs=0.006)


def test_the_table_takes_the_worst_case_of_each_size():
    table = coverage_table((20, 40), discordances=(0.1, 0.3), relative_gaps=(0.0, 0.5))
    cases = [interval_coverage(40, psi, psi * share) for psi in (0.1, 0.3) for share in (0.0, 0.5)]
    last = table.iloc[1]
    assert table["rows"].tolist() == [20, 40]
    assert last["worst coverage"] == min(case.inside for case in cases)
    assert last["mean coverage"] == pytest.approx(np.mean([case.inside for case in cases]))
    assert last["worst lower tail"] == max(case.missed_above for case in cases)
    assert last["worst upper tail"] == max(case.missed_below for case in cases)


def test_limits_hold_in_small_groups_however_often_the_classifiers_disagree():
    """In groups of 5 rows that always disagree, the limits of before were missed in 9.5 instead of 2.5 % of cases."""
    table = coverage.limit_table((5, 12, 30), (0.3, 0.95, 1.0), (-0.9, -0.25, 0.0, 0.25, 0.9))
    assert table["worst ratio to the level"].max() <= 1.0001
    assert table["missed at 5%"].max() >= 0.03  # They do not hold by being useless.


def test_all_ways_to_divide_rows_are_enumerated_once():
    counts = coverage.all_counts(4, 3)
    assert len(np.unique(counts, axis=0)) == len(counts) == 15
    assert (counts.sum(axis=1) == 4).all()


def test_missed_limits_for_costs_equal_the_sum_over_all_outcomes():
    chances = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    harm, expected = chances @ COST_OUTCOMES, 0.0
    for counts in coverage.all_counts(3, 5):
        shown = Differences(COST_OUTCOMES, np.ones(5), counts[None], worst=5.0).p_within(harm)[0] <= 0.05
        expected += multinomial.pmf(counts, 3, chances) * shown
    assert coverage.cost_missed(3, chances)[0] == pytest.approx(expected)


def test_limits_for_costs_hold_by_enumeration():
    assert coverage.cost_table((5, 8), n_distributions=25)["worst ratio to the level"].max() <= 1.0001


def test_limits_hold_for_weights_that_are_related_to_the_direction():
    table = coverage.weighted_table((10, 40), n_distributions=6, n_samples=400)
    assert table["worst missed at 5%"].max() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


# ---- worlds ----


def test_rows_of_a_world_have_its_errors():
    harm = np.array([[0.05, -0.03], [0.0, 0.02]])
    world = World(np.array([60_000, 40_000]), harm, 0.2, pooled_error=0.3)
    rows = world.draw(rng())
    assert np.bincount(rows.group).tolist() == [60_000, 40_000]
    for group in range(2):
        members = rows.right[rows.group == group]
        np.testing.assert_allclose(1 - members[:, 2].mean(), 0.3, atol=0.01)
        np.testing.assert_allclose(members[:, [2]].mean() - members[:, :2].mean(axis=0), harm[group], atol=0.01)
        np.testing.assert_allclose((members[:, :2] != members[:, [2]]).mean(axis=0), 0.2, atol=0.01)


def test_rows_of_own_classifiers_alone_have_the_same_errors():
    world = World(np.array([50_000, 50_000]), np.array([[0.05, 0.1], [0.1, -0.03]]), 0.2)
    rows = world.draw_own(rng())
    harm = rows.compare(ERROR, [(0, 0, 2), (1, 1, 2), (0, 1, 2)]).harm
    np.testing.assert_allclose(harm, [0.05, -0.03, 0.0], atol=0.01)
    assert rows.differ.any(axis=1).mean() == pytest.approx(0.2, abs=0.01)


def test_no_world_is_harmed_where_own_classifiers_are_copies_of_the_pooled_one():
    world = World(np.array([200, 50]), np.zeros((2, 2)), discordance=0.0)
    drawn = world.draw(rng())
    np.testing.assert_array_equal(drawn.right, drawn.right[:, [-1]].repeat(3, axis=1))
    assert not drawn.differ.any()
    for kind in ("veto", "proof"):
        assert not world.is_harmed(world.guard(rng(), kind=kind))


def report_of(serves, margin=0.0):
    """What a guard would report, as far as a world looks at it."""
    report = helpful_world(len(serves), rows=50).guard(rng(), kind="proof", margin=margin)
    return replace(report, serves=np.array(serves))


@pytest.mark.parametrize(
    ("serves", "margin", "harmed"),
    [([0, 1], 0.0, True), ([2, 1], 0.0, False), ([1, 2], 0.0, False), ([0, 2], 0.05, False), ([0, 2], 0.04, True)],
)
def test_a_world_is_harmed_by_who_serves_whom_beyond_the_margin(serves, margin, harmed):
    world = World(np.array([10, 10]), np.array([[0.05, -0.01], [0.03, 0.0]]), 0.1)
    assert world.is_harmed(report_of(serves, margin)) == harmed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("margin", [0.0, 0.02])
def test_worlds_can_be_drawn_and_are_harmful(kind, margin):
    for seed in range(10):
        world = harmful_world(rng(seed), 3, kind, margin)
        assert (np.abs(world.harm) <= world.discordance).all()
        assert world.discordance <= 0.5
        harmful = world.harm[~np.eye(3, dtype=bool)] if kind == "open gate" else world.harm
        assert (harmful > margin).all()
        assert ((world.sizes >= 49) & (world.sizes <= 5000)).all()


def test_an_imbalanced_world_has_one_large_group():
    assert harmful_world(rng(), 4, "imbalanced").sizes.tolist() == [5000, 50, 50, 50]


def test_behind_an_open_gate_own_classifiers_are_better():
    assert (np.diag(harmful_world(rng(), 3, "open gate").harm) < 0).all()


def test_a_kind_of_world_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="no harmful worlds of the kind 'tie': choose from varied, imbalanced"):
        harmed_share(2, 1, "tie", seed=0)


# ---- proof ----


@pytest.mark.parametrize("margin", [0.0, 0.03])
def test_the_study_decides_as_the_guard_does(margin):
    for seed in range(6):
        rows = World(np.array([60, 300, 800]), np.diag([-0.15, -0.04, 0.01]), 0.3).draw_own(rng(seed))
        report = choose_servers(rows, kind="proof", margin=margin)
        np.testing.assert_array_equal(kept_by_proof(rows, margin=margin), report.serves == np.arange(3))


def shown_harm(scenario, loss, n_worlds=30):
    """Standard errors by which harm differs from the margin in many worlds, all groups together."""
    found = []
    for seed in range(n_worlds):
        rows = scenario.draw(rng(seed))
        if rows.attributes is not None:  # Of every group, the one declared subgroup that does not gain.
            kept = (rows.attributes["part"] == (2 * rows.group).astype(str)).to_numpy()
            rows = compare_own(rows.group[kept], ~rows.own_right[kept], ~rows.right[kept, -1], len(rows.own))
        found += rows.compare(loss, [(g, g, len(rows.own)) for g in range(len(rows.own))]).harm.tolist()
    return (np.mean(found) - scenario.margin) / (np.std(found) / np.sqrt(len(found)))


@pytest.mark.parametrize("scenario", proof.scenarios(), ids=lambda one: one.name)
def test_every_own_classifier_of_a_scenario_is_a_tie_or_worse_in_something(scenario):
    assert max(shown_harm(scenario, loss) for loss in scenario.losses) > -3.5


@pytest.mark.parametrize(
    ("scenario", "least"),
    [
        (proof.losses_scenario(1e-6, 0.05), 0.005),
        (proof.weight_scenario(proof.few_heavy(0.02, 20.0), "discordant if heavy", 500), 0.0),
        (proof.person_scenario((5, 5), 1.0), 0.005),
        (proof.small_scenario(0.95, 0.05), 0.0),
        pytest.param(proof.declared_scenario(200, 0.2), 0.005, marks=pytest.mark.slow),
        pytest.param(
            proof.weight_scenario(proof.few_heavy(0.02, 20.0), "discordant anywhere", 500),
            0.0,
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_promise_holds_in_a_hundred_and_fifty_worlds(scenario, least):
    """With five equal rows a person, weights or high discordance, it was broken in 13 to 49 % of worlds before."""
    assert least <= scenario.harmed_share(150) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)


def test_equal_errors_do_not_hide_more_false_negatives():
    assert proof.losses_scenario(0.03, 0.0).harmed_share(40) == 0
    rows = proof.losses_scenario(0.03, 0.05).draw(rng())
    assert kept_by_proof(rows).all()  # If nobody asks about false negatives.
    assert not kept_by_proof(rows, proof.losses_scenario(0.03, 0.0).losses).any()


def test_own_classifiers_that_are_clearly_better_are_always_kept_and_others_never():
    assert kept_share(3, 5, seed=0, gain=0.09) == 1
    assert kept_share(3, 5, seed=0, gain=-0.09) == 0
    assert kept_share(3, 2, seed=0, gain=-0.09, guard="veto") == 0


def test_clear_harm_never_passes_the_guard():
    assert harmed_share(2, 10, "imbalanced", seed=3, margin=0.0) <= 0.1
    world = World(np.full(2, 5000), np.full((2, 2), 0.05), 0.1)
    assert not any(world.is_harmed(world.guard(rng(seed), kind="proof")) for seed in range(5))


def test_the_same_seed_gives_the_same_share():
    assert harmed_share(2, 8, "ties", seed=5) == harmed_share(2, 8, "ties", seed=5)


def test_the_table_has_a_column_for_every_kind_and_shares_in_all_of_them():
    table = guard_table(n_worlds=5)
    assert table["groups"].tolist() == [2, 4, 8]
    assert [f"harmed, {kind}" for kind in KINDS] == list(table.columns[1:5])
    assert table.drop(columns="groups").to_numpy().min() >= 0
    assert table.drop(columns="groups").to_numpy().max() <= 1


def test_holm_keeps_more_than_bonferroni_on_the_same_rows():
    table = proof.power_table(n_worlds=60)
    for how in ("alike", "spread"):
        assert (table[f"{how}, holm"] >= table[f"{how}, bonferroni"]).all()
    gained = (table["alike, holm"] - table["alike, bonferroni"])[table["gain"] == 0.02]
    assert gained.min() > 0.02


# ---- real fits ----


def test_the_best_classifier_there_is_is_never_beaten():
    X = rng().normal(size=(20_000, 3))
    for cutoff in fits.CUTOFFS:
        best = fits.TrueClassifier(cutoff)
        chance, decided = best.predict_proba(X)[:, 1], best.predict(X)
        assert 0.2 < decided.mean() < 0.8
        cost = np.where(decided == 1, cutoff * (1 - chance), (1 - cutoff) * chance)
        other = np.where(decided == 0, cutoff * (1 - chance), (1 - cutoff) * chance)
        assert (cost <= other + 1e-12).all()


def test_proof_on_noise_harms_few_fits_at_any_cutoff():
    found = np.array([fits.fit_harms(cutoff, seed) for cutoff in fits.CUTOFFS for seed in range(4)])
    assert found[:, 1].mean() > 0.5  # Own classifiers did decide differently.
    assert found[:, 0].sum() <= 3  # Four or more of 20 would happen once in 60 times at 5 %.


# ---- veto ----


def test_the_judged_gain_is_that_of_the_fold_models():
    found = [veto.judged_and_true_gain(veto.LinearWorld(5), 400, seed) for seed in range(3)]
    assert all(abs(judged - true) < 0.08 for judged, true in found)
    assert any(true != 0 for _, true in found)


def test_veto_keeps_what_got_more_rows_right():
    for lost, won in ((3, 4), (4, 4), (4, 3), (0, 0), (0, 1)):
        outcome = np.repeat([1, -1, 0], [lost, won, 40 - lost - won])
        rows = compare_own(np.zeros(40, int), outcome == 1, outcome == -1, 1)
        assert (choose_servers(rows, kind="veto").serves[0] == 0) == (won > lost)


def test_chances_to_be_kept_agree_with_a_simulation():
    counts = rng().multinomial(50, [0.06, 0.04, 0.9], 20_000)
    now, before = veto.kept_chances(50, -0.02, 0.1)
    assert now == pytest.approx((counts[:, 1] > counts[:, 0]).mean(), abs=0.01)
    p = mcnemar_p(counts[:, 0], counts[:, 1], mid=True)
    assert before == pytest.approx(((p > 0.4) & (counts[:, :2].sum(axis=1) > 0)).mean(), abs=0.01)


def test_veto_keeps_fewer_classifiers_that_are_worse_than_before():
    table = veto.veto_table((50, 200))
    for worse in ("5 worse", "2 worse", "1 worse"):
        assert (table[f"{worse}, now"] < 0.75 * table[f"{worse}, before"]).all()


# ---- audits ----


def test_the_study_answers_as_the_audit_does():
    for scenario in audits.audit_scenarios()[:2]:
        audited = scenario.draw(rng(3))
        known = NamedGroups.of(pd.DataFrame({"town": audited.towns.astype(str)}), len(audited.towns))
        for margin in (0.0, 0.2):
            asked = ask_named_groups(audited.rows, ERROR, known, 1)
            expected = answer([asked], audits.LEVEL, margin, 2)["verdict"]
            np.testing.assert_array_equal(audits.verdicts(asked, margin), expected)


def test_audits_of_a_hundred_worlds_are_rarely_wrong():
    """Without evidence named groups were "satisfied" in all of such worlds, and "more than 2 points" false in most."""
    chosen = audits.audit_scenarios()
    for scenario in (chosen[0], chosen[5], chosen[6]):
        assert max(scenario.wrong_shares(100)) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 100)


def test_audits_see_what_is_clear():
    clear = audits.around_margin(0.15, 1.0)(rng())
    assert clear.wrong(margin=0.0) == (False, False)
    turned = audits.AuditedRows(clear.rows, -clear.harm, clear.towns, -clear.town_harm)
    assert turned.wrong(margin=0.0) == (False, True)


# ---- tables ----


def test_tables_are_written_in_percent_with_whole_numbers_ratios_and_words_left_alone():
    text = tables.as_markdown(pd.DataFrame({"rows": [5000], "coverage": [0.95123], "ratio": [0.9], "worlds": ["ties"]}))
    assert text.splitlines()[-1].split("|")[1:5] == [" 5,000 ", " 95.12 ", " 0.900 ", " ties "]


def test_a_line_of_outcomes_never_is_lost_and_won():
    lost, won = draw_outcomes(np.linspace(-0.3, 0.3, 1000), 0.4, rng())
    assert not (lost & won).any()


def test_kinds_that_no_unit_has_change_no_p_value():
    """The value of such a kind was once a pole on the way of the integral: p-values were NaN now and then."""
    kinds, counts = np.array([0.3, -0.3, 0.0, 0.7, -0.7]), np.array([[0.0, 2, 128, 0, 0], [4.0, 0, 65, 0, 1]])
    many = Differences(kinds, np.ones(5), counts, worst=0.7)
    for question in range(2):
        present = counts[question] > 0
        one = Differences(kinds[present], np.ones(present.sum()), counts[[question]][:, present], worst=0.7)
        assert many.p_within(0.0)[question] == pytest.approx(one.p_within(0.0)[0])
