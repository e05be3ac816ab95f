"""The recommendation: what to do, for whom, and the figures that carry it; it never contradicts the answers."""

import html
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dafh import audit
from dafh.cli import main
from dafh.cli.model_file import ModelFile
from dafh.report import render, summarize
from research.guarantees.recommendations import ALL_LOSE, NOBODY_GAINS, TENTH_LOSES, THREE_LOSE

N = 1200


def audited(errors, pooled_error=0.3, sizes=(N, N), named=None, **options):
    """Groups of given sizes; each classifier errs on the first of its group's rows, the pooled one on the last ones.

    Labels alternate, so that both kinds of error are equally frequent. On other groups, classifiers err on all rows.
    """
    group = np.repeat(np.arange(len(sizes)), sizes)
    place = np.concatenate([np.arange(size) // 2 * 2 / size for size in sizes])
    y = np.concatenate([np.arange(size) % 2 for size in sizes])
    wrong = (place[:, None] < np.array([*errors])) | (group[:, None] != np.arange(len(errors)))
    predictions = np.where(wrong, 1 - y[:, None], y[:, None])
    pooled = np.where(place >= 1 - pooled_error, 1 - y, y)
    people = None if named is None else pd.DataFrame({"sex": named(group, place)})
    return audit(y, predictions, group, pooled=pooled, sensitive_features=people, **options)


def two_groups(group, place):
    """Half of the rows of every group, spread evenly."""
    return np.where(np.arange(len(group)) // 2 % 2, "f", "m")


def those_who_lose(group, place):
    """A quarter of all rows: those on which the own classifiers err."""
    return np.where(place < 0.1, "f", "m")


def test_a_gain_for_every_group_is_deployed():
    advice = audited((0.1, 0.1), named=two_groups).recommendation
    assert (advice.kind, advice.deploy, advice.keep) == ("deploy", ("0", "1"), ())
    assert advice.total["gain"] == pytest.approx(0.2)
    assert (advice.rates["fpr"], advice.rates["fpr_pooled"]) == pytest.approx((0.1, 0.3))


def test_a_group_that_loses_keeps_the_pooled_classifier():
    result = audited((0.1, 0.5), named=two_groups)
    advice = result.recommendation
    assert advice.harm
    assert (advice.kind, advice.deploy, advice.keep) == ("deploy_some", ("0",), ("1",))
    assert [one.harmed for one in advice.groups] == [False, True]
    assert advice.total["gain"] == pytest.approx(0.1)  # Of group 0 alone: half of the rows gain 20 points.


def test_the_figures_of_some_groups_are_those_of_an_audit_in_which_the_pooled_one_serves_the_others():
    result = audited((0.1, 0.5), named=two_groups)
    again = audited((0.1, 0.5), named=two_groups, own=[0, 2])
    pd.testing.assert_frame_equal(result.trial.totals, again.totals)
    pd.testing.assert_frame_equal(result.trial.rates, again.rates)
    pd.testing.assert_frame_equal(result.trial.named, again.named)
    assert result.recommendation.total == again.recommendation.total
    assert result.recommendation.rates == again.recommendation.rates


def test_nobody_is_told_to_deploy_while_a_named_group_is_shown_to_lose():
    result = audited((0.1, 0.1), named=those_who_lose)
    advice = result.recommendation
    assert advice.harm
    assert set(result.questions["verdict"]) <= {"satisfied", "undecided"}
    assert (advice.kind, advice.deploy, advice.keep) == ("do_not_deploy", (), ("0", "1"))
    assert [one.group for one in advice.losing] == ["sex = f"]


def test_some_groups_are_enough_if_the_named_group_loses_elsewhere():
    def men_of_group_1(group, place):
        return np.where((group == 1) & (place < 0.5), "m", "f")

    result = audited((0.1, 0.5), named=men_of_group_1)
    assert "sex = m" in set(result.named.loc[result.named["verdict"] == "violated", "group"])
    assert result.recommendation.kind == "deploy_some"
    assert result.recommendation.losing == ()


def test_a_named_group_that_loses_with_all_must_not_even_seem_to_lose_with_some():
    """In group 0, which may be deployed, these rows lose by too little to show."""

    def few_of_group_0(group, place):
        return np.where(((group == 1) & (place < 0.5)) | ((group == 0) & (place < 0.005)), "m", "f")

    result = audited((0.1, 0.5), named=few_of_group_0)
    men = result.trial.named.set_index("group").loc["sex = m"]
    assert men["verdict"] != "violated"
    assert men["gap"] < 0
    assert result.recommendation.kind == "do_not_deploy"


def test_a_small_group_is_undecided_and_not_safe():
    """Forty rows, all of them better off: a loss of more than a point is ruled out only with more of them."""
    advice = audited((0.1, 0.2), sizes=(N, 40)).recommendation
    assert (advice.kind, advice.deploy, advice.keep) == ("deploy_some", ("0",), ("1",))
    assert "not ruled out" in advice.groups[1].reason


def test_a_small_loss_is_ruled_out_by_many_rows_even_where_the_gain_is_not_shown():
    result = audited((0.299, 0.1), sizes=(60_000, N))
    assert result.questions["verdict"].iloc[0] == "undecided"
    assert result.recommendation.groups[0].action == "deploy"


def test_without_a_gain_the_pooled_classifier_stays():
    nothing, unsure = audited((0.31, 0.31), sizes=(60, 60)), audited((0.2, 0.2), sizes=(60, 60))
    assert (nothing.recommendation.kind, unsure.recommendation.kind) == ("keep", "keep")
    assert nothing.gain < 0 < unsure.gain


def test_where_the_pooled_classifier_serves_all_there_is_nothing_to_deploy_and_no_harm():
    # Two classifiers that nobody is served by are better for both groups: this is envy, and no harm.
    for unchanged in (audited((0.1, 0.1), own=[2, 2]), audited((), own=[0, 0])):
        advice = unchanged.recommendation
        assert (advice.kind, advice.harm, advice.sentences) == ("keep", False, ())
        assert [group.action for group in advice.groups] == ["pooled", "pooled"]


def test_a_group_that_is_decided_exactly_as_before_is_never_harmed_and_does_not_stand_in_the_way():
    """Group 1 decides as the pooled classifier does, and classifier 0 would be better for it."""
    n = 1500
    group, place = np.repeat([0, 1], n), np.tile(np.arange(n), 2)
    pooled, better = (place < 300).astype(int), (place < 100).astype(int)
    result = audit(np.zeros(2 * n, int), np.column_stack([better, pooled]), group, pooled=pooled)
    assert result.to_frame().query("kind == 'envy' and verdict == 'violated'")["group"].tolist() == [1]
    advice = result.recommendation
    assert (advice.kind, advice.harm, advice.keep) == ("deploy", False, ())
    only = audit(np.zeros(n, int), np.column_stack([pooled[:n]]), group[:n], pooled=pooled[:n]).recommendation
    assert (only.kind, only.harm) == ("keep", False)


def test_a_kind_of_error_that_rises_is_pointed_out_unless_it_was_tested():
    """The pooled one flags 1,500 rows of 2,000 without looking; now nobody of the first 300 is flagged."""
    y, row = np.tile([0, 1], 1000), np.arange(2000)
    rows = {"y": y, "predictions": np.where(row < 300, 0, y), "pooled": np.where(row < 1500, 1, y)}
    risen = audit(**rows, groups=np.zeros(2000, int)).recommendation
    assert (risen.kind, risen.deploy, risen.checks) == ("deploy_with_checks", ("0",), ())
    assert "false negatives" in risen.headline
    assert "false negatives in group 0" in audit(**rows, groups=row // 1000).recommendation.headline
    tested = audit(**rows, groups=np.zeros(2000, int), losses=("error", "fnr"))
    assert tested.recommendation.kind == "do_not_deploy"


def signs_of_loss(lost, won, n=4000, size=400, **options):
    """Everybody gains, but for women: they lose some rows and win others."""
    row = np.arange(n)
    women = row < size
    pooled = np.where(women, (row >= lost) & (row < lost + won), row % 10 == 0)
    return audit(
        np.zeros(n, int), (women & (row < lost)).astype(int), np.zeros(n, int), pooled=pooled.astype(int),
        sensitive_features=pd.DataFrame({"sex": np.where(women, "f", "m"), "town": np.where(row % 2, "a", "b")}),
        **options,
    )  # fmt: skip


def test_a_named_group_that_seems_to_lose_is_to_be_checked_and_named_once():
    advice = signs_of_loss(30, 20).recommendation
    assert (advice.kind, advice.deploy, advice.harm) == ("deploy_with_checks", ("0",), False)
    assert [one.group for one in advice.checks] == ["sex = f"]  # And not also women in each town.
    assert advice.checks[0].gain == pytest.approx(-10 / 400)
    assert advice.checks[0].low < -0.01 < 0 < advice.checks[0].high
    assert "sex = f" in advice.headline


def test_an_intersection_that_is_shown_to_lose_is_named_where_the_whole_group_only_seems_to():
    """Of 400 women, those in town a lose 12 rows of 200, and those in town b win 7."""
    row = np.arange(4000)
    women, in_a = row < 400, row % 2 == 0
    lost, won = women & in_a & (row < 24), (women & ~in_a & (row < 14)) | (~women & (row % 10 == 0))
    people = pd.DataFrame({"sex": np.where(women, "f", "m"), "town": np.where(in_a, "a", "b")})
    result = audit(np.zeros(4000, int), lost * 1, np.zeros(4000, int), pooled=won * 1, sensitive_features=people)
    assert result.named.set_index("group")["verdict"]["sex = f"] == "undecided"
    assert result.recommendation.headline == "Do not deploy: sex = f & town = a is shown to lose"


@pytest.mark.parametrize(
    ("lost", "won", "size", "options"),
    [(20, 20, 400, {}), (20, 30, 400, {}), (4, 0, 40, {}), (30, 20, 400, {"margin": 0.1})],
    ids=["no sign", "gain", "too few rows", "within the margin"],
)
def test_a_named_group_without_signs_of_a_loss_is_not_to_be_checked(lost, won, size, options):
    advice = signs_of_loss(lost, won, size=size, **options).recommendation
    assert "sex = f" not in [one.group for one in advice.checks]


def test_the_largest_loss_is_named_first():
    row = np.arange(8000)
    region = np.where(row < 400, "a", np.where(row < 800, "b", "c"))
    lost = (row < 25) | ((row >= 400) & (row < 430))
    won = ((row >= 25) & (row < 43)) | ((row >= 430) & (row < 446)) | ((row >= 800) & (row % 8 == 0))
    advice = audit(
        np.zeros(8000, int), lost.astype(int), np.zeros(8000, int), pooled=won.astype(int), sensitive_features=region
    ).recommendation
    assert [round(400 * one.gain) for one in advice.checks] == [-14, -7]


def hidden_loss(share, n=6000, **options):
    """Everybody gains, but for those above 50, who lose a share of their rows: audited, and whether each is older."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 70, n), "job": rng.choice(["cook", "clerk"], n)})
    older, chance = (X["age"] > 50).to_numpy(), rng.random(n)
    lost, won = older & (chance < share), (chance > 0.85) & (~older | (share == 0))
    return audit(np.zeros(n, int), lost * 1, np.zeros(n, int), pooled=won * 1, X=X, **options), older


def test_a_discovered_group_that_seems_to_lose_is_to_be_checked():
    advice = hidden_loss(0.05)[0].recommendation
    assert (advice.kind, advice.deploy) == ("deploy_with_checks", ("0",))
    assert [one.group for one in advice.checks] == ["age is above 50"]
    assert advice.headline == "Deploy, but check: age is above 50"
    assert advice.checks[0].gain == pytest.approx(-0.05, abs=0.02)
    assert hidden_loss(0.0)[0].recommendation.kind == "deploy"


def test_a_discovered_group_that_is_a_named_one_is_mentioned_once():
    _, older = hidden_loss(0.05)
    result, _ = hidden_loss(0.05, sensitive_features=pd.DataFrame({"older": np.where(older, "yes", "no")}))
    assert result.losers.set_index("rule")["same_as"]["age is above 50"] == "older = yes"
    assert [one.group for one in (*result.recommendation.losing, *result.recommendation.checks)] == ["older = yes"]


def test_a_margin_larger_than_a_point_is_what_is_tolerated():
    advice = audited((0.1, 0.29), sizes=(N, 500), margin=0.05).recommendation
    assert advice.deploy == ("0",)
    assert audited((0.1, 0.29), sizes=(N, 5000), margin=0.05).recommendation.deploy == ("0", "1")


def test_costs_are_tolerated_up_to_the_margin_only():
    result = audited((0.1, 0.1), losses=("cost",), costs={"fp": 1, "fn": 5})
    assert result.recommendation.kind == "deploy"
    assert result.recommendation.total["own_loss"] == pytest.approx(0.3)


# ---- how often it is wrong ----


@pytest.mark.parametrize(
    "world", [pytest.param(NOBODY_GAINS, marks=pytest.mark.slow), ALL_LOSE], ids=lambda world: world.name
)
def test_it_is_seldom_wrong_to_deploy(world):
    """Fifteen worlds; research/tests has five hundred."""
    kinds, _ = world.recommended(15)
    assert (
        kinds["deploy"] + kinds["deploy_with_checks"] + kinds["deploy_some"] <= 2 / 15
    )  # Level 5%: three or more happen in 4 of 100 runs.


def test_groups_that_lose_more_than_is_tolerated_are_seldom_chosen_beside_one_that_gains():
    kinds, wrong = THREE_LOSE.recommended(15)
    assert kinds["deploy_some"] == 1.0
    assert wrong <= 2 / 15


def test_a_named_tenth_that_loses_is_seldom_overlooked():
    kinds, _ = TENTH_LOSES.recommended(15)
    assert kinds["deploy"] <= 4 / 15  # At 10%, five or more happen in 1 of 100 runs.


# ---- one recommendation everywhere ----


@pytest.mark.usefixtures("blank_charts")
@pytest.mark.parametrize(
    ("make", "kind", "harm"),
    [
        (lambda: audited((0.1, 0.1), named=two_groups), "deploy", False),
        (lambda: signs_of_loss(30, 20), "deploy_with_checks", False),
        (lambda: audited((0.1, 0.5), named=two_groups), "deploy_some", True),
        (lambda: audited((), own=[0, 0]), "keep", False),
        (lambda: audited((0.1, 0.1), own=[2, 2]), "keep", False),
        (lambda: audited((0.1, 0.1), named=those_who_lose), "do_not_deploy", True),
        (lambda: audited((0.5, 0.5)), "do_not_deploy", True),
    ],
)
def test_terminal_json_report_and_exit_code_agree(make, kind, harm, monkeypatch):
    result = make()
    advice = result.recommendation
    assert (advice.kind, advice.harm, result.harm) == (kind, harm, harm)

    class Opened:
        model = None  # What its groups are worth is not asked here.

        def read(self, *_, **__):
            return SimpleNamespace(notes=())

        def audit(self, *_, **__):
            return result

    monkeypatch.setattr(ModelFile, "open", lambda *_: Opened())
    command = ["audit", "model.dafh", "rows.csv", "--fail-on-harm"]
    terminal = CliRunner().invoke(main, command)
    assert terminal.stdout.startswith(f"{advice}\n\n")
    assert terminal.exit_code == int(harm)
    machines = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    summary = summarize(result=result)
    assert machines["recommendation"] == summary["recommendation"] == advice.to_dict()
    assert f"<h1>{html.escape(advice.headline)}</h1>" in render(summary)
