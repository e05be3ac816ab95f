"""The report: a summary of plain values first, then a page in which nothing from the data is markup."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from dafh import AuditResult, audit, explain, plots
from dafh.evaluation.guard import choose_servers
from dafh.evaluation.paired import ComparedRows
from dafh.report import render, summarize, write_report
from models import network_case, rules_case


def audited(n=400, harm=False, attributes=True, seed=0):
    """Two groups, whose classifiers are right on 9 of 10 rows; the pooled one on 7, or on 10 where there is harm."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    groups = rng.integers(0, 2, n)

    def predictions(share):
        return np.where(rng.random(n) < share, y, 1 - y)

    own = np.column_stack([np.where(groups == k, predictions(0.9), predictions(0.5)) for k in (0, 1)])
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "age": rng.integers(18, 80, n)})
    return audit(
        y, own, groups, pooled=predictions(1.0 if harm else 0.7), sensitive_features=people if attributes else None
    )


class Tags(HTMLParser):
    """All tags with their attributes, and all text outside of scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self.inside = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside):
            self.texts.append(data)


def test_a_summary_is_plain_values():
    summary = summarize(result=audited())
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_a_model_that_changes_nothing_says_so_and_draws_no_dots():
    y = np.tile([0, 1], 100)
    result = audit(y, y[:, None][:, :0], np.zeros(200, int), pooled=1 - y, own=[0])
    summary = summarize(result=result)
    page = render(summary)
    assert "the pooled classifier serves every group" in page
    assert "Best served" not in page
    assert 'class="chart"' not in page


def test_attributes_that_the_model_was_trained_with_are_not_called_kept_out():
    card = nasty_card() | {"columns": [{"name": "sex", "type": "category"}]}
    assert "used in training: sex." in render(summarize(result=audited(), card=card))
    page = render(summarize(result=audited(), card=nasty_card()))
    assert "None of the sensitive attributes was used in training" in page
    assert "used in training" not in render(summarize(result=audited()))


def test_values_with_signs_in_them_do_not_hide_an_attribute():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    people = pd.DataFrame({"team": rng.choice(["R & D", "a = b"], 200)})
    result = audit(y, y[:, None], np.zeros(200, int), pooled=1 - y, sensitive_features=people)
    card = nasty_card() | {"columns": [{"name": "team", "type": "category"}]}
    page = render(summarize(result=result, card=card))
    assert "used in training: team." in page
    assert "assigns every person" not in page


def guarded(won, lost, n, kind="veto", **options):
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
        ((40, 5, 500), "veto", "the error rate is lower than with the pooled classifier"),
        ((5, 40, 500), "veto", "the error rate is not lower than with the pooled classifier"),
        ((0, 0, 500), "veto", "the error rate is not lower than with the pooled classifier"),
        ((0, 0, 0), "veto", "it has no calibration rows, so the pooled classifier serves it"),
        ((40, 5, 500), "proof", "it is shown not to be worse than the pooled classifier"),
        ((6, 5, 500), "proof", "the error rate is not shown to be as low as with the pooled classifier"),
        ((0, 0, 0), "proof", "it has no calibration rows, so the pooled classifier serves it"),
    ],
)
def test_the_report_says_why_the_guard_decided_so(counts, kind, why):
    summary = summarize(guarded(*counts, kind=kind))
    (row,) = summary["guard"]["table"]
    assert row["reason"] == why
    assert f'data-label="why">{why}</td>' in render(summary)


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


def test_figures_and_tables_are_those_of_the_audit():
    result = audited()
    summary = summarize(result=result)
    assert summary["figures"]["accuracy"] == pytest.approx(result.matrix.accuracy)
    assert summary["figures"]["gain"] == pytest.approx(result.matrix.accuracy - result.matrix.pooled_accuracy)
    assert len(summary["questions"]) == len(result.questions)
    assert len(summary["cells"]) == 6
    assert sum(cell["own"] for cell in summary["cells"]) == 2
    for cell in summary["cells"]:
        assert cell["low"] <= cell["error"] <= cell["high"]
    assert summary["named"]["n_groups"] == len(result.named)
    assert sum(summary["named"]["verdicts"].values()) == len(result.named)
    assert [row["served_by"] for row in summary["serving"]] == ["classifier 0", "classifier 1"]


def test_a_model_brings_guard_training_and_words():
    case = network_case()
    model, final = case.model, case.model[-1]
    result = AuditResult.of(model, case.X, case.y)
    summary = summarize(model, result, explain(model, case.X))
    assert summary["guard"]["sentence"] == final.guard_report_.sentence()
    assert len(summary["training"]["history"]) == len(final.history_)
    assert summary["training"]["best_epoch"] == final.best_epoch_
    assert len(summary["groups"]["groups"]) == 2
    assert "certificate" in summary["serving"][0]
    assert json.dumps(summary, allow_nan=False)


def test_a_report_without_rows_says_that_nobody_was_asked():
    page = render(summarize(rules_case().model))
    assert "Not audited" in page
    assert "What the guard decided" in page
    assert "other people than in the tables above" not in page
    assert "Is any group worse off" not in page


def test_long_names_are_cut():
    result = audited()
    result.named.loc[0, "group"] = "x" * 10_000
    assert len(json.dumps(summarize(result=result, title="t" * 10_000))) < 100_000


NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}<!--"


def test_nothing_from_the_data_becomes_markup():
    result = audited()
    result.named.loc[:, "group"] = NASTY
    result.composition.loc[:, "named_group"] = NASTY
    summary = summarize(result=result, title=NASTY, notes=(NASTY,), card=nasty_card())
    tags = Tags(render(summary))
    assert not [tag for tag, _ in tags.tags if tag in ("img", "iframe", "object", "link", "base", "form")]
    assert all(not name.startswith("on") for _, attributes in tags.tags for name in attributes)
    scripts = [attributes for tag, attributes in tags.tags if tag == "script"]
    assert len([a for a in scripts if "type" not in a]) == 2  # The library and the page's own.
    assert all(a.get("type", "application/json") == "application/json" for a in scripts)
    assert NASTY in "".join(tags.texts)
    assert "49" not in [text.strip() for text in tags.texts]


def nasty_card():
    return {
        "model": NASTY, "groups": 2, "pooled": NASTY, "labels": [NASTY], "settings": {NASTY: NASTY}, "rows": 5,
        "data": NASTY, "written": NASTY, "dafh": NASTY, "versions": {NASTY: NASTY},
        "columns": [{"name": NASTY, "type": NASTY}], "guesses": [NASTY],
    }  # fmt: skip


def test_chart_data_come_back_as_they_went_in():
    result = audited()
    result.named.loc[:, "group"] = NASTY
    result.composition.loc[:, "named_group"] = NASTY
    page = render(summarize(result=result))
    specs = re.findall(r'<script type="application/json" id="spec-named_error">(.*?)</script>', page, flags=re.S)
    (values, *_) = json.loads(specs[0])["datasets"].values()
    assert any(row.get("group") == NASTY for rows in json.loads(specs[0])["datasets"].values() for row in rows)
    assert values


def test_the_page_is_one_small_file_that_asks_nothing_of_the_network(tmp_path):
    write_report(summarize(result=audited(), card=nasty_card()), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert (tmp_path / "report.html").stat().st_size < 2_000_000
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy.replace("&#39;", "'")
    assert "unsafe-eval" not in policy
    for _, attributes in Tags(page).tags:
        assert not {"src", "action", "data"} & set(attributes)
        assert attributes.get("href", "#").startswith("#")


def test_every_chart_has_a_table_behind_it():
    page = render(summarize(result=audited()))
    # Three charts of rates share one table.
    assert page.count('class="chart"') == 8
    assert page.count(", as a table</summary>") == 6


def test_a_report_of_very_many_named_groups_keeps_the_first_of_them(monkeypatch):
    monkeypatch.setattr("dafh.report.summary._MOST_NAMED_GROUPS", 3)
    result = audited()
    shown = summarize(result=result)["named"]["questions"]
    assert [row["group"] for row in shown] == result.worst_named()["group"].tolist()[:3]


# ---- charts for notebooks ----


def data_of(chart):
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_the_heat_map_has_every_cell_and_frames_the_own_ones():
    cells = data_of(plots.preference_matrix(audited()))
    assert len(cells) == 6
    assert {cell["serves"] for cell in cells if cell["own"]} == {"yes"}
    assert all(re.fullmatch(r"\d+\.\d%", cell["label"]) for cell in cells)


def test_gap_charts_show_their_questions_in_points():
    result = audited()
    rows = [row for row in data_of(plots.gains(result)) if "points" in row]
    asked = result.questions[result.questions["kind"] == "rationality"]
    assert [row["points"] for row in rows] == pytest.approx((100 * asked["gap"]).tolist())
    assert len([row for row in data_of(plots.envy(result)) if "points" in row]) == 2
    assert len([row for row in data_of(plots.named_groups(result, n_groups=4)) if "points" in row]) == 4


def test_composition_adds_up_to_everybody():
    rows = pd.DataFrame(data_of(plots.composition(audited())))
    assert rows.groupby("named_group")["share"].sum().to_numpy() == pytest.approx(1)


def test_convergence_draws_both_curves_and_the_choice():
    model = network_case().model[-1]
    rows = data_of(plots.convergence(model))
    assert sum("value" in row for row in rows) == 4 * len(model.history_)
    assert {row["epoch"] for row in rows if "name" in row} == {model.best_epoch_}


@pytest.mark.parametrize("name", ["preference_matrix", "gains", "envy", "named_groups", "composition"])
def test_every_chart_can_be_drawn(name, tmp_path):
    getattr(plots, name)(audited()).save(tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


def test_an_empty_group_is_drawn_as_a_dash():
    y = np.array([0, 1] * 20)
    result = audit(y, np.column_stack([y, y]), np.zeros(40, int), pooled=1 - y)
    assert {cell["label"] for cell in data_of(plots.preference_matrix(result)) if cell["group"] == "group 1"} == {"–"}
    assert render(summarize(result=result))


def test_a_guard_with_proof_is_described_as_such():
    assert "is at most 5%" in render(summarize(guarded(40, 5, 500, kind="proof")))
    assert "is at most 5%" not in render(summarize(guarded(40, 5, 500)))
