"""A summary holds what the audit, the guard and the model say, as values that any program can read."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dafh import AuditResult, audit, explain
from dafh.evaluation.compared import ComparedRows
from dafh.evaluation.guard import choose_servers
from dafh.evaluation.losses import check_losses
from dafh.report import summarize
from dafh.text import percent, points
from models import additive_case, network_case, rules_case

KEYS = [
    "title", "dafh", "recommendation", "notes", "worth", "tiles", "figures", "losses", "failed", "serving", "changes",
    "totals", "rates", "positive", "guard", "cells", "questions", "named", "failures", "composition", "groups",
    "scorecard", "network", "card",
]  # fmt: skip


def random_audit(n=300, n_groups=2, attributes=None, **options):
    rng = np.random.default_rng(0)
    y, groups = rng.integers(2, size=n), np.arange(n) % n_groups
    labels = np.where(rng.random((n, n_groups + 1)) < 0.8, y[:, None], 1 - y[:, None])
    people = None if attributes is None else pd.DataFrame(attributes)
    return audit(y, labels[:, :-1], groups, pooled=labels[:, -1], sensitive_features=people, **options)


def with_report(counts, n_groups, **options):
    """A model that has nothing but a guard's report."""
    report = choose_servers(counts, **options)
    return type("Model", (), {"guard_report_": report, "serves_": report.serves, "n_groups_": n_groups})()


def counts_of(*groups, n=500):
    """Rows of which each group's own classifier won and lost some against the pooled one, for one classifier each."""
    k = len(groups)
    y, group = np.ones(k * n, int), np.repeat(np.arange(k), n)
    own, pooled = np.zeros((k * n, k), int), np.ones(k * n, int)  # On other groups always wrong: nobody asks for it.
    for g, (won, lost) in enumerate(groups):
        place = np.flatnonzero(group == g)
        own[place, g] = 1
        own[place[:lost], g] = 0
        pooled[place[lost : lost + won]] = 0
    return ComparedRows.check(y, own, group, pooled, classes=[0, 1])


def test_an_empty_summary_has_all_keys_and_claims_nothing():
    summary = summarize()
    assert list(summary) == KEYS
    for key in set(KEYS) - {"title", "dafh", "recommendation", "notes"}:
        assert summary[key] is None


def test_level_and_margin_of_the_audit_are_kept():
    figures = summarize(result=random_audit(level=0.1, margin=0.02))["figures"]
    assert (figures["level"], figures["margin"]) == (0.1, 0.02)


def test_gains_of_groups_weighted_by_their_shares_add_up_to_the_gain():
    summary = summarize(result=random_audit(n=301, n_groups=3))
    changes = summary["changes"]
    assert sum(row["share"] for row in changes) == pytest.approx(1)
    assert sum(row["share"] * row["gain"] for row in changes) == pytest.approx(summary["figures"]["gain"])
    assert [row["gain"] for row in changes] == sorted((row["gain"] for row in changes), reverse=True)
    for row in changes:
        assert row["gain"] == pytest.approx(row["pooled_loss"] - row["own_loss"])
        assert row["low"] <= row["gain"] <= row["high"]


def test_a_group_served_by_the_pooled_classifier_or_another_is_said_to_be():
    result = random_audit(own=[1, 2])
    servers = {row["group"]: row["in_model"] for row in summarize(result=result)["changes"]}
    assert servers == {"0": "classifier 1", "1": "pooled"}


def test_who_is_failed_now_begins_with_all_rows_and_is_ranked():
    first, *others = summarize(result=random_audit(attributes={"sex": np.resize(["f", "m"], 300)}))["failed"]
    assert (first["who"], first["rows"]) == ("all rows", 300)
    assert {row["who"] for row in others} == {"group 0", "group 1", "sex = f", "sex = m"}
    levels = [row["pooled_loss"] for row in others]
    assert levels == sorted(levels, reverse=True)
    assert all(row["low"] <= row["pooled_loss"] <= row["high"] for row in others)


def test_the_guard_serves_and_certifies_each_group():
    summary = summarize(with_report(counts_of((40, 5), (5, 40)), 2))
    assert [row["served_by"] for row in summary["serving"]] == ["its own classifier", "the pooled classifier"]
    assert summary["changes"] is None


def test_single_attributes_with_the_most_evidence_of_harm_come_first_and_small_groups_last():
    rng = np.random.default_rng(1)
    result = random_audit(attributes={"town": rng.integers(0, 4, 300), "sex": rng.choice(["f", "m"], 300)})
    named = summarize(result=result)["named"]
    order = [(row["n"] < 50, not row["single"], row["p"]) for row in named["questions"]]
    assert order == sorted(order)
    assert named["n_groups"] == len(result.named) == len(order) == 14
    assert named["n_small"] == sum(small for small, _, _ in order) > 0


def test_attributes_among_the_columns_of_the_model_are_listed():
    result = random_audit(attributes={"sex": np.resize(["f", "m"], 300), "age": np.resize([20, 70, 40], 300)})
    card = {"columns": [{"name": "sex", "type": "category"}, {"name": 3, "type": "number"}]}
    named = summarize(result=result, card=card)["named"]
    assert (named["in_training"], named["known_features"]) == (["sex"], True)
    named = summarize(result=result)["named"]
    assert (named["in_training"], named["known_features"]) == ([], False)


def test_groups_can_have_names():
    y = np.arange(200) % 2
    result = audit(y, y, np.where(np.arange(200) < 100, "north", "south"), pooled=1 - y)
    summary = summarize(result=result)
    assert {row["group"]: row["in_model"] for row in summary["changes"]} == dict.fromkeys(
        ["north", "south"], "classifier 0"
    )
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_the_tiles_are_about_the_model_as_it_is_recommended():
    result = random_audit(attributes={"sex": np.resize(["f", "m"], 300)})
    tiles = {tile["name"]: tile["value"] for tile in summarize(result=result)["tiles"]}
    assert list(tiles) == [
        "Gain", "People tested", "Shown to lose", "Flagged", "False positive rate", "False negative rate",
    ]  # fmt: skip
    assert tiles["People tested"] == "300"
    assert tiles["Gain"].startswith(points(result.recommendation.total["gain"]))


def test_a_model_that_changes_nothing_has_as_many_tiles():
    result = random_audit(own=[2, 2], attributes={"sex": np.resize(["f", "m"], 300)})
    tiles = {tile["name"]: tile["value"] for tile in summarize(result=result)["tiles"]}
    assert tiles["Error rate"] == percent(1 - result.pooled_accuracy)
    assert "→" not in "".join(tiles.values())
    assert len(tiles) == 5


def test_every_group_has_advice_with_its_reason():
    result = random_audit(own=[1, 2])
    changes = {row["group"]: row for row in summarize(result=result)["changes"]}
    for one in result.recommendation.groups:
        assert (changes[one.group]["action"], changes[one.group]["reason"]) == (one.action, one.reason)
    assert [one.action for one in result.recommendation.groups] == ["keep", "pooled"]


def test_groups_are_served_by_the_main_loss_and_questions_are_there_for_all():
    result = random_audit(losses=("cost", "fnr"), costs={"fp": 1, "fn": 5})
    summary = summarize(result=result)
    assert [loss["name"] for loss in summary["losses"]] == ["cost", "fnr"]
    assert [loss["unit"] for loss in summary["losses"]] == ["per 100 rows", "percentage points"]
    assert {row["loss"] for row in summary["changes"]} == {"cost"}
    asked = result.questions.query("kind == 'rationality' and loss == 'cost'")
    assert sorted(row["gain"] for row in summary["changes"]) == pytest.approx(sorted(asked["gap"]))
    assert {row["loss"] for row in summary["questions"]} == {"cost", "fnr"}


def test_rates_name_learned_groups_and_named_ones():
    result = random_audit(attributes={"sex": np.resize(["f", "m"], 300)})
    rates = summarize(result=result)["rates"]
    assert [row["name"] for row in rates] == ["all rows", "group 0", "group 1", "sex = f", "sex = m"]
    assert [row["fnr_pooled"] for row in rates] == result.rates["fnr_pooled"].tolist()


def test_rates_are_unknown_with_three_labels():
    y = np.arange(90) % 3
    assert summarize(result=audit(y, y[:, None], np.zeros(90, int), pooled=y))["rates"] is None


def test_the_label_that_is_flagged_is_that_of_the_model():
    assert summarize(rules_case().model)["positive"] == "yes"
    assert summarize(result=random_audit())["positive"] is None


def test_the_guards_checks_of_subgroups_and_losses_are_there():
    rows = counts_of((40, 5), (5, 40))
    rows = replace(rows, attributes=pd.DataFrame({"sex": np.resize(["f", "m"], len(rows.group))}))
    guard = summarize(with_report(rows, 2, losses=check_losses(("error", "fnr"))))["guard"]
    assert guard["losses"] == ["error rate", "false negative rate"]
    assert (len(guard["checks"]), guard["subgroups"]) == (12, 8)
    assert {(row["group"], row["part"], row["loss"]) for row in guard["checks"]} == {
        (g, part, loss) for g in (0, 1) for part in ("", "sex = f", "sex = m") for loss in ("error", "fnr")
    }


def test_exceptions_come_with_size_gain_and_server():
    case = rules_case()
    exceptions, table = summarize(case.model)["serving"], case.model[-1].exceptions_.to_frame()
    assert [entry["rule"] for entry in exceptions] == table["rule"].tolist()
    assert [entry["share"] for entry in exceptions] == table["rows"].tolist()
    for name in ("gain", "low", "high"):
        assert [entry[name] for entry in exceptions] == table[name].tolist()
    assert [entry["served_by"] for entry in exceptions] == ["its own classifier"] * 2
    assert not summarize(case.model)["network"]


def test_groups_of_exceptions_come_with_their_rules_and_the_figures_of_the_rows_that_were_tested():
    case = rules_case()
    changes = summarize(case.model, AuditResult.of(case.model, case.X, case.y))["changes"]
    rows = np.bincount(case.model[-1].predict_group(case.model[:-1].transform(case.X)))
    assert {row["rule"]: row["rows"] for row in changes} == dict(
        zip(case.model[-1].exceptions_.rules, rows, strict=True)
    )


def test_a_scorecard_is_there_column_by_column_the_most_important_first():
    pooled = rules_case().model[-1].pooled_
    card = summarize(rules_case().model)["scorecard"]
    assert [column["name"] for column in card["columns"]] == pooled.importance().index.tolist()
    assert [column["importance"] for column in card["columns"]] == pooled.importance().tolist()
    assert (card["labels"], card["n_columns"]) == (["no", "yes"], 5)
    assert card["start"] == pooled.intercept_.tolist()
    for column in card["columns"]:
        assert {row["column"] for row in column["bins"]} == {column["name"]}
        assert sum(row["rows"] for row in column["bins"]) == pytest.approx(1)


def test_groups_that_add_nothing_have_no_rules_and_say_so():
    summary = summarize(additive_case().model)
    assert summary["worth"] == "No exceptions: groups add nothing to the pooled classifier, which serves everybody."
    assert "rule" not in summary["serving"][0]
    assert summary["scorecard"] is not None


def test_a_network_has_neither_rules_nor_a_scorecard():
    model = network_case().model
    summary = summarize(model)
    assert summary["network"]
    assert "rule" not in summary["serving"][0]
    assert summary["scorecard"] is None
    assert summary["worth"].startswith("2 groups")


def test_a_summary_is_plain_values_and_its_figures_are_those_of_the_audit():
    result = random_audit(attributes={"sex": np.resize(["f", "m"], 300)})
    summary = summarize(result=result)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["figures"]["accuracy"] == pytest.approx(result.matrix.accuracy)
    assert len(summary["questions"]) == len(result.questions)
    assert sum(cell["own"] for cell in summary["cells"]) == 2
    assert len(summary["named"]["questions"]) == len(result.named)


def test_a_report_of_very_many_named_groups_keeps_the_first_of_them():
    row = np.arange(2000)
    result = random_audit(n=2000, attributes={"town": (row % 20).astype(str), "job": (row // 20 % 20).astype(str)})
    named = summarize(result=result)["named"]
    assert named["n_groups"] == 20 + 20 + 20 * 20
    assert [row["group"] for row in named["questions"]] == result.worst_named()["group"].tolist()[:200]


def guarded(won, lost, n, kind="evidence", **options):
    """Something with a guard's report on one group, whose own classifier won and lost some of n rows."""
    if n:
        y, place = np.ones(n, int), np.arange(n)
        own, pooled = (place >= lost).astype(int), (place < n - won).astype(int)
        rows = ComparedRows.check(y, own[:, None], np.zeros(n, int), pooled, classes=[0, 1])
    else:
        rows = ComparedRows.none(1)
    report = choose_servers(rows, kind=kind, **options)
    return type("Model", (), {"guard_report_": report, "serves_": report.serves, "n_groups_": 1})()


@pytest.mark.parametrize(
    ("counts", "kind", "why"),
    [
        ((40, 5, 500), "evidence", "the error rate is lower than with the pooled classifier"),
        ((5, 40, 500), "evidence", "the error rate is not shown to be below that of the pooled classifier"),
        ((0, 0, 500), "evidence", "the error rate is not shown to be below that of the pooled classifier"),
        ((0, 0, 0), "evidence", "it has no calibration rows, so the pooled classifier serves it"),
        ((40, 5, 500), "proof", "it is shown not to be worse than the pooled classifier"),
        ((6, 5, 500), "proof", "the error rate is not shown to be as low as with the pooled classifier"),
        ((0, 0, 0), "proof", "it has no calibration rows, so the pooled classifier serves it"),
    ],
)
def test_the_report_says_why_the_guard_decided_so(counts, kind, why):
    (row,) = summarize(guarded(*counts, kind=kind))["guard"]["table"]
    assert row["reason"] == why


def test_a_group_that_does_better_with_another_classifier_is_said_to():
    y, group = np.ones(2000, int), np.repeat([0, 1], 1000)
    place = np.arange(2000) % 1000
    own = np.column_stack([place >= 300, place >= 50]).astype(int)
    report = choose_servers(ComparedRows.check(y, own, group, (place >= 400).astype(int), classes=[0, 1]))
    fake = type("Model", (), {"guard_report_": report, "serves_": report.serves, "n_groups_": 2})()
    reasons = [row["reason"] for row in summarize(fake)["guard"]["table"]]
    assert reasons == [
        "classifier 1 is shown to serve it better",
        "the error rate is lower than with the pooled classifier",
    ]


def test_a_model_brings_guard_and_words():
    case = network_case()
    model, final = case.model, case.model[-1]
    result = AuditResult.of(model, case.X, case.y)
    summary = summarize(model, result, explain(model, case.X))
    assert summary["guard"]["sentence"] == final.guard_report_.sentence()
    assert len(summary["groups"]["groups"]) == 2
    assert json.dumps(summary, allow_nan=False)
