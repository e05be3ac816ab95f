"""A summary holds what the audit, the guard and the model say, as values that any program can read."""

import json

import numpy as np
import pandas as pd
import pytest

from dafh import AuditResult, Scaling, Scorecard, audit, explain
from dafh.report import summarize
from dafh.text import percent, points
from models import additive_case, network_case, rules_case, workers


def random_audit(n=300, n_groups=2, attributes=None, **options):
    rng = np.random.default_rng(0)
    y, groups = rng.integers(2, size=n), np.arange(n) % n_groups
    labels = np.where(rng.random((n, n_groups + 1)) < 0.8, y[:, None], 1 - y[:, None])
    people = None if attributes is None else pd.DataFrame(attributes)
    return audit(y, labels[:, :-1], groups, pooled=labels[:, -1], sensitive_features=people, **options)


def test_an_empty_summary_claims_nothing():
    summary = summarize()
    assert not summary["tables"]
    assert not summary["charts"]
    assert not summary["groups"]
    for key in ("worth", "tiles", "figures", "failures", "named", "positive", "guard", "scorecard", "card"):
        assert summary[key] is None


def test_a_summary_is_plain_values_and_its_figures_are_those_of_the_audit():
    result = random_audit(attributes={"sex": np.resize(["f", "m"], 300)}, level=0.1)
    summary = summarize(result=result)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["figures"]["accuracy"] == pytest.approx(result.accuracy)
    assert summary["figures"]["level"] == 0.1
    assert len(summary["tables"]["questions"]["rows"]) == len(result.questions)
    assert len(summary["tables"]["named_questions"]["rows"]) == len(result.named)


def test_tables_are_those_of_the_terminal():
    result = random_audit(attributes={"sex": np.resize(["f", "m"], 300)})
    for section in result.sections(short=False)[1:]:
        shown = summarize(result=result)["tables"][section.name]
        assert (shown["title"], shown["columns"]) == (section.title, list(section.table))
        assert [[cell.replace("\u00a0", " ") for cell in row] for row in shown["rows"]] == section.table.astype(
            str
        ).to_numpy().tolist()


def test_groups_come_by_gain_and_say_who_serves_them_and_what_to_do():
    result = random_audit(own=[1, 2])
    first, second = summarize(result=result)["groups"]
    assert (first["group"], first["served_by"], first["action"]) == ("0", "classifier 1", "keep")
    assert first["gain"].endswith(" points")
    assert (second["group"], second["served_by"], second["action"]) == ("1", "the pooled classifier", "pooled")
    for group, advice in zip((first, second), result.recommendation.groups, strict=True):
        assert group["advice"].endswith(advice.reason)


def test_groups_can_have_names():
    y = np.arange(200) % 2
    result = audit(y, y, np.where(np.arange(200) < 100, "north", "south"), pooled=1 - y)
    assert {group["title"] for group in summarize(result=result)["groups"]} == {"Group north", "Group south"}


def test_costs_are_given_for_100_rows_and_totals_for_every_loss():
    summary = summarize(result=random_audit(losses=("cost", "fnr"), costs={"fp": 1, "fn": 5}))
    assert [loss["title"] for loss in summary["losses"]] == ["cost", "false negative rate"]
    assert all(group["gain"].endswith("per 100 rows") for group in summary["groups"])
    assert [row[-1] for row in summary["tables"]["totals"]["rows"]] == ["per 100 rows", "percentage points"]
    assert {"gains_cost", "gains_fnr"} <= set(summary["charts"])


def test_attributes_among_the_columns_of_the_model_are_listed():
    result = random_audit(attributes={"sex": np.resize(["f", "m"], 300), "age": np.resize([20, 70, 40], 300)})
    card = {"columns": [{"name": "sex", "type": "category"}, {"name": 3, "type": "number"}]}
    named = summarize(result=result, card=card)["named"]
    assert (named["in_training"], named["known_features"]) == (["sex"], True)
    named = summarize(result=result)["named"]
    assert (named["in_training"], named["known_features"]) == ([], False)


def test_the_tiles_are_about_the_model_as_it_is_recommended():
    result = random_audit(attributes={"sex": np.resize(["f", "m"], 300)})
    tiles = {tile["name"]: tile["value"] for tile in summarize(result=result)["tiles"]}
    names = ["Gain", "People tested", "Shown to lose", "Flagged", "False positive rate", "False negative rate"]
    assert list(tiles) == names
    assert tiles["People tested"] == "300"
    assert tiles["Gain"].startswith(points(result.recommendation.total["gain"]))


def test_a_model_that_changes_nothing_has_its_level_in_the_first_tile():
    result = random_audit(own=[2, 2], attributes={"sex": np.resize(["f", "m"], 300)})
    tiles = {tile["name"]: tile["value"] for tile in summarize(result=result)["tiles"]}
    assert tiles["Error rate"] == percent(1 - result.pooled_accuracy)
    assert "→" not in "".join(tiles.values())


def test_with_three_labels_nothing_is_said_about_kinds_of_error():
    y = np.arange(90) % 3
    assert "rates" not in summarize(result=audit(y, y[:, None], np.zeros(90, int), pooled=y))["tables"]


def test_exceptions_without_an_audit_have_the_figures_of_training():
    case = rules_case()
    table = case.model[-1].exceptions_.to_frame()
    summary = summarize(case.model)
    groups = summary["groups"]
    assert summary["groups_by"] == "rules"
    assert summary["positive"] == "yes"
    assert [group["rule"] for group in groups] == table["rule"].tolist()
    assert [group["size"] for group in groups] == [percent(share) for share in table["rows"]]
    assert [group["gain"] for group in groups] == [f"{points(gain)} points" for gain in table["gain"]]
    assert {group["served_by"] for group in groups} == {"its own classifier"}


def test_a_model_brings_its_guard_and_its_groups_in_words():
    case = network_case()
    words = explain(case.model, case.X)
    summary = summarize(case.model, AuditResult.of(case.model, case.X, case.y), words)
    assert summary["groups_by"] == "network"
    assert summary["scorecard"] is None
    assert summary["guard"]["sentence"] == case.model[-1].guard_report_.sentence()
    assert {group["group"]: group["lines"] for group in summary["groups"]} == {
        str(group.group): group.lines() for group in words.groups
    }


def test_a_scorecard_is_there_value_by_value_the_most_important_column_first():
    pooled = rules_case().model[-1].pooled_
    summary = summarize(rules_case().model)
    rows = summary["tables"]["scorecard"]["rows"]
    used = pooled.table().query("rows > 0")
    assert list(dict.fromkeys(row[0] for row in rows)) == pooled.importance().index.tolist()
    assert sorted(row[1].replace("\u00a0", " ") for row in rows) == sorted(used["bin"])
    assert (summary["scorecard"]["labels"], summary["scorecard"]["n_columns"]) == (["no", "yes"], 5)
    assert summary["scorecard"]["start"] == pooled.intercept_[0]
    assert "reasons" not in summary["tables"]


def test_a_scale_brings_scaled_points_and_the_values_that_cost_most():
    data = workers(400)
    card = Scorecard(scaling=Scaling(600, odds=50, doubling=20)).fit(data.X, data.y)
    model = type("Model", (), {"pooled_": card, "n_groups_": 1, "serves_": np.array([1])})()
    summary = summarize(model)
    scale, reasons = summary["scorecard"]["scale"], summary["tables"]["reasons"]
    mean_row = card.scaled_points(data.X).mean()
    points_of_values = card.table().query("rows > 0")
    expected = scale["start"] + (points_of_values["rows"] * points_of_values["scaled points"]).sum()
    assert mean_row == pytest.approx(expected)
    costs = [float(row[-1]) for row in reasons["rows"]]
    assert reasons["columns"][-1] == "scaled points"
    assert costs == sorted(costs)
    assert max(costs) < 0


def test_groups_that_add_nothing_say_so():
    summary = summarize(additive_case().model)
    assert summary["worth"] == "No exceptions: groups add nothing to the pooled classifier, which serves everybody."
    assert summary["scorecard"] is not None


def test_of_very_many_named_groups_the_page_has_the_first():
    row = np.arange(2000)
    result = random_audit(n=2000, attributes={"town": (row % 25).astype(str), "job": (row // 25 % 20).astype(str)})
    summary = summarize(result=result)
    assert summary["named"]["n_groups"] == 25 + 20 + 25 * 20
    questions = summary["tables"]["named_questions"]
    assert (len(questions["rows"]), questions["n_rows"]) == (250, 545)
    assert [line[0] for line in questions["rows"]] == result.worst_named()["group"].tolist()[:250]
