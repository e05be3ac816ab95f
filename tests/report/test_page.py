"""The page of a report: each section says what the summary says, and nothing from the data is markup."""

import base64
import copy
import functools
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from dafh import AuditResult, DAFHClassifier, Scaling, Scorecard, audit, explain
from dafh.explanation import Explanation, GroupInWords, Rule
from dafh.report import render, summarize, write_report
from dafh.text import percent, points
from models import additive_case, network_case, rules_case, workers
from pages import CARD, cards, chart, section, table


def result(errors=(0.1, 0.4), pooled=0.3, n=400, sex=True, **options):
    """Audit of two groups of equal size in which a known share of rows is predicted wrongly."""
    row = np.arange(n)
    place = row // 2 / (n / 2)  # Runs from 0 to 1 in both groups.
    wrong = place[:, None] < np.array([*errors, pooled])
    people = pd.DataFrame({"sex": np.where(row // 2 % 2, "f", "m")}) if sex else None
    labels = wrong.astype(int)
    return audit(np.zeros(n, int), labels[:, :-1], row % 2, pooled=labels[:, -1], sensitive_features=people, **options)


@functools.cache
def audited_page():
    """The page of the audit above, made once: most of the time goes into the library that draws the charts."""
    return render(summarize(result=result()))


def tiles(page):
    found = re.findall(r"<dt>([^<]*)</dt><dd><strong>([^<]*)</strong> <span>([^<]*)</span>", page)
    return {name: (value, note) for name, value, note in found}


def test_the_top_of_the_page_has_the_recommendation_and_the_figures_that_carry_it():
    page = audited_page()
    assert "<h1>Deploy for group 0 only, and keep the pooled classifier for group 1</h1>" in page
    assert '<div class="advice deploy_some">' in page
    # Group 0, half of the rows, gains 20 points; with group 1, which loses 10, the model would gain 5.
    value, note = tiles(page)["Gain, with 1 of 2 groups"]
    assert value == "+10.00 points"
    assert note.startswith("error rate 30.0% → 20.0%; 95% interval ")
    assert tiles(page)["Shown to lose"][0] == "nobody"
    assert tiles(page)["People tested"][0] == "400"


def test_the_page_reads_from_the_recommendation_over_who_is_failed_to_who_changes_and_an_appendix():
    page = page_of("rules")
    headings = ["<h1>", 'id="h-failed"', 'id="h-groups"', 'id="h-appendix"', 'id="guard"', 'id="scorecard"']
    positions = [page.index(heading) for heading in headings]
    assert positions == sorted(positions)


def test_the_share_without_harm_is_explained_and_not_at_the_top():
    page = audited_page()
    assert "without harm" not in page.split("</header>")[0]
    words = section(page, "matrix")
    assert "For 15.0% of people, the classifier that serves them is wrong and another one here happens to be" in words
    assert "“Pr without harm” is the rest, 85.0%" in words


def test_each_group_is_a_card_with_its_gain_and_what_to_do():
    first, second = cards(audited_page())
    assert first[:3] == ["200 people · 50.0%", "Group 0", "+20.00 points"]
    assert first[3].startswith("error rate 30.0% → 10.0%; 95% interval +14.")
    assert first[4].startswith("Deploy: ")
    assert second[2] == "-10.00 points"
    assert second[4].startswith("Keep the pooled classifier: ")


@pytest.mark.parametrize(
    ("name", "caption", "figure"),
    [("failed", "Who is failed now", "level"), ("gains_error", "Groups of the model, by gain", "points")],
)
def test_a_chart_and_the_table_behind_it_have_the_same_figures(name, caption, figure):
    page = audited_page()
    (drawn,) = (rows for rows in chart(page, name)["datasets"].values() if len(rows) > 1 and figure in rows[0])
    shown = [row for row in table(page, caption) if row.get("who") != "all rows"]
    key, write = ("error rate", percent) if figure == "level" else ("gain, points (95% interval)", points)
    assert [write(row[figure] / 100) for row in drawn] == [row[key].split()[0] for row in shown]


def test_the_matrix_has_the_errors_of_its_table_and_says_who_serves():
    page = audited_page()
    cells = table(page, "Error rates")
    assert [row["classifier"] for row in cells if "serves it" in row["classifier"]] == [
        "0 (serves it)",
        "1 (serves it)",
    ]
    (drawn,) = (rows for rows in chart(page, "matrix")["datasets"].values() if "label" in rows[0])
    assert [row["label"] for row in drawn] == [row["error"] for row in cells]


def test_all_questions_are_in_the_appendix_with_their_rival():
    rows = table(section(audited_page(), "questions"), "Is a group served worse")
    assert [(row["group"], row["against"]) for row in rows] == [
        ("0", "pooled"), ("0", "1"), ("1", "pooled"), ("1", "0"),
    ]  # fmt: skip
    assert len(table(audited_page(), "Is a named group served worse")) == 2


@pytest.mark.usefixtures("blank_charts")
def test_what_is_unknown_is_a_dash():
    y = np.array([0, 1] * 20)
    page = render(summarize(result=audit(y, np.column_stack([y, y]), np.zeros(40, int), pooled=1 - y)))
    row = table(page, "Groups of the model, by gain")[1]
    assert row["own"] == row["error, pooled"] == "–"
    assert "nan" not in json.dumps(row).lower()
    assert "nan" not in str(cards(page)).lower()


def test_named_groups_have_a_section_where_attributes_were_given():
    assert section(render(summarize(result=result(sex=False))), "named") is None
    assert "define 2 named groups" in section(audited_page(), "named")
    shown = table(audited_page(), "Named groups: those that lose or might lose first")
    assert {row["group"] for row in shown} == {"sex = f", "sex = m"}


@pytest.mark.usefixtures("blank_charts")
def test_groups_in_words_have_a_line_for_each_fact():
    rule = Rule("age is <30 & more>", 0.9, 0.8)
    groups = [GroupInWords(k, f"Group {k}", 1_234, 0.4, "its own classifier", rule, difference=0.01) for k in (0, 1)]
    text = section(render(summarize(explanation=Explanation(tuple(groups)))), "groups")
    assert "40.0%" in text
    assert "<li>Approximate rule: age is <30 & more>." in text


def test_a_card_lists_data_settings_and_columns():
    text = section(render(summarize(card=CARD)), "card")
    assert "12,345 rows of adult.csv" in text
    assert "<dd>no, yes</dd>" in text
    assert "<dd>none</dd>" in text  # No setting differs from its default.
    assert "<dd>age (number)</dd>" in text
    assert "Notes on the columns" not in text
    assert "Cut-off" not in text
    changed = section(render(summarize(card=CARD | {"settings": {"a": 1, "b": None}, "threshold": 1 / 6})), "card")
    assert "a = 1, b = None" in changed
    assert "<dt>Cut-off</dt><dd>yes is predicted above a probability of 0.167</dd>" in changed


def test_the_policy_allows_exactly_the_scripts_of_the_page():
    page = audited_page()
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.S)
    sums = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert [f"'sha256-{checksum}'" for checksum in sums] == re.search(r"script-src ([^;]*)", policy)[1].split()


def test_the_same_summary_makes_the_same_page():
    summary = summarize(result=result())
    assert render(summary) == render(json.loads(json.dumps(summary)))


@pytest.mark.usefixtures("blank_charts")
def test_every_heading_that_is_referred_to_exists_once():
    words = Explanation(tuple(GroupInWords(k, f"Group {k}", 5, 0.5, "its own classifier") for k in (0, 1)))
    page = render(summarize(result=result(), explanation=words, card=CARD))
    names = re.findall(r'\sid="([^"]*)"', page.split("<script>")[0])
    assert len(names) == len(set(names))
    assert set(re.findall(r'aria-labelledby="([^"]*)"', page)) <= set(names)


def test_a_report_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "report.html"
    write_report(summarize(title="old"), path)
    with pytest.raises(KeyError):
        write_report({"title": "broken"}, path)
    assert "<title>old</title>" in path.read_text(encoding="utf-8")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_a_page_for_whoever_decides_says_what_was_done_and_what_to_ask():
    page = html.unescape(audited_page())
    brief = re.search(r'<details class="brief">(.*?)</details>', page, flags=re.S)[1]
    assert re.findall(r"<h2>(.*?)</h2>", brief) == ["What was done", "What it means", "What to ask"]
    assert "about the same 400 people" in brief
    assert "about 500 wrong decisions fewer among 10,000 people, with the whole model" in brief  # A gain of 5 points.


@functools.cache
def page_of(name):
    case = {"rules": rules_case, "additive": additive_case, "network": network_case}[name]()
    audited = AuditResult.of(case.model, case.X, case.y, sensitive_features=case.sensitive)
    return render(summarize(case.model, audited, explain(case.model, case.X)))


def test_a_page_says_first_that_groups_add_nothing():
    page = page_of("additive")
    header = page.split("</header>")[0]
    assert "No exceptions: groups add nothing to the pooled classifier, which serves everybody." in header
    assert '<div class="advice keep">' in header
    for about_groups in ("groups", "guard", "composition"):
        assert section(page, about_groups) is None
    assert section(page, "failed")
    assert section(page, "scorecard")


def test_the_scorecard_has_a_chart_for_each_important_column_and_all_points_in_a_table():
    text, pooled = section(page_of("rules"), "scorecard"), rules_case().model[-1].pooled_
    important = pooled.importance()[lambda size: size >= 0.01].index.tolist()
    assert re.findall(r"<h3>(.*?)</h3>", text) == important[:6]
    assert f"Start at {pooled.intercept_[0]:+.2f}" in text
    assert "log-odds of the label yes" in text
    assert len(table(page_of("rules"), "Points of the scorecard")) == (pooled.table()["rows"] > 0).sum()


@pytest.mark.usefixtures("blank_charts")
def test_a_scale_is_explained_beside_the_values_that_cost_most():
    data = workers(400)
    card = Scorecard(scaling=Scaling(600, odds=50, doubling=20)).fit(data.X, data.y)
    page = render(summarize(type("Model", (), {"pooled_": card, "n_groups_": 1, "serves_": np.array([1])})()))
    words = section(page, "scorecard")
    assert "odds of 50 to 1 for the label yes are 600 points, and 20 points more double the odds" in words
    assert all(row["scaled points"].startswith("-") for row in table(page, "Values that cost most points"))


@pytest.mark.usefixtures("blank_charts")
def test_more_than_two_classes_have_points_each():
    data = workers(400)
    label = np.where(data.X["experience"] > 30, "old", data.y)
    page = render(summarize(DAFHClassifier(1, random_state=0).fit(data.X, label)))
    columns = set(table(page, "Points of the scorecard")[0])
    assert {"points for no", "points for old", "points for yes"} <= columns
    assert "points for each class" in section(page, "scorecard")


def test_groups_of_a_network_are_said_to_be_approximate():
    assert "approximate" in section(page_of("network"), "groups")
    assert section(page_of("network"), "scorecard") is None
    assert "A network assigns every person" in page_of("network")


# ---- losses, decisions and the guard ----


def asked(losses=("cost", "fnr"), **options):
    """An audit of both kinds of error: y alternates, and classifiers differ in which label they get wrong."""
    n = 800
    row = np.arange(n)
    y, group, place = row % 2, row // 2 % 2, row // 4 / (n / 4)
    wrong = [place < np.where(y == 1, *rates) for rates in ((0.1, 0.2), (0.1, 0.3), (0.4, 0.1))]
    labels = np.column_stack([np.where(one, 1 - y, y) for one in wrong])
    costs = {"fp": 1, "fn": 5}
    return audit(y, labels[:, :2], group, pooled=labels[:, 2], losses=losses, costs=costs, **options)


@functools.cache
def page_of_losses():
    return render(summarize(result=asked()))


def test_every_loss_has_a_chart_and_its_unit():
    page = page_of_losses()
    assert "error rate" not in section(page, "groups")
    assert "+70.00 per 100 rows" in cards(page)[0]  # 5 × 10% of the positive rows and 1 × 20% of the negative ones: 35.
    assert "gain in cost" in chart(page, "gains_cost")["layer"][1]["encoding"]["x"]["title"]
    assert "gain in false negative rate" in chart(page, "gains_fnr")["layer"][1]["encoding"]["x"]["title"]
    cost, rate = table(page, "All people together")
    assert (cost["loss"], cost["pooled"], cost["unit"]) == ("cost", "105.00", "per 100 rows")
    assert (rate["loss"], rate["pooled"], rate["unit"]) == ("false negative rate", "40.0%", "percentage points")


def test_decisions_before_and_after_are_shown_for_every_group():
    rows = table(page_of_losses(), "Decisions with the pooled classifier and with this model")
    assert [row["group"] for row in rows] == ["all rows", "0", "1"]
    assert rows[1]["false positive rate, pooled → own"] == "10.0% → 20.0%"
    assert rows[1]["false negative rate, pooled → own"] == "40.0% → 10.0%"


def test_a_model_says_which_label_is_flagged():
    case = rules_case()
    page = render(summarize(case.model, AuditResult.of(case.model, case.X, case.y)))
    assert "A person is flagged if the label yes is predicted." in section(page, "rates")
    assert "flagged if the positive label is predicted" in section(page_of_losses(), "rates")


@functools.cache
def protected_model():
    data = workers()
    model = DAFHClassifier(2, guard_losses=("error", "fnr"), random_state=0)
    return model.fit(data.X, data.y, guard_features=data.sensitive)


@pytest.mark.usefixtures("blank_charts")
@pytest.mark.parametrize("kind", ["evidence", "proof"])
def test_the_guards_section_says_what_was_asked_about_whom(kind):
    data = workers(seed=1)
    model = copy.deepcopy(protected_model()).set_params(guard=kind)
    model.recalibrate(data.X, data.y, guard_features=data.sensitive)
    page = render(summarize(model))
    words = " ".join(section(page, "guard").split())
    if kind == "proof":
        assert "any declared subgroup with people here, has a higher error rate and false negative rate" in words
    else:
        assert "only if its error rate was lower" in words
        assert "and its false negative rate not higher, and if no subgroup that was checked, such" in words


# ---- markup, and no network ----


def audited(n=400):
    """Two groups, whose classifiers are right on 9 of 10 rows; the pooled one on 7."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    groups = rng.integers(0, 2, n)

    def predictions(share):
        return np.where(rng.random(n) < share, y, 1 - y)

    own = np.column_stack([np.where(groups == k, predictions(0.9), predictions(0.5)) for k in (0, 1)])
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "age": rng.integers(18, 80, n)})
    return audit(y, own, groups, pooled=predictions(0.7), sensitive_features=people)


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


NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}<!--"


def nasty_card():
    return {
        "model": NASTY, "groups": 2, "pooled": NASTY, "labels": [NASTY], "settings": {NASTY: NASTY}, "rows": 5,
        "data": NASTY, "written": NASTY, "dafh": NASTY, "versions": {NASTY: NASTY},
        "columns": [{"name": NASTY, "type": NASTY}], "guesses": [NASTY],
    }  # fmt: skip


def test_a_model_that_changes_nothing_says_so_and_draws_no_dots():
    y = np.tile([0, 1], 100)
    result = audit(y, y[:, None][:, :0], np.zeros(200, int), pooled=1 - y, own=[0])
    summary = summarize(result=result)
    page = render(summary)
    assert '<div class="advice keep">' in page
    assert 'class="chart"' not in page


@pytest.mark.usefixtures("blank_charts")
def test_attributes_that_the_model_was_trained_with_are_not_called_kept_out():
    card = nasty_card() | {"columns": [{"name": "sex", "type": "category"}]}
    assert "used in training: sex." in render(summarize(result=audited(), card=card))
    page = render(summarize(result=audited(), card=nasty_card()))
    assert "None of the sensitive attributes was used in training" in page
    assert "used in training" not in render(summarize(result=audited()))


@pytest.mark.usefixtures("blank_charts")
def test_a_report_without_rows_says_that_nobody_was_asked():
    page = render(summarize(rules_case().model))
    assert '<div class="advice unaudited">' in page
    assert "What the guard decided" in page
    assert "other people than in the tables above" not in page
    assert "Is any group worse off" not in page


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


def test_chart_data_come_back_as_they_went_in():
    result = audited()
    result.named.loc[:, "group"] = NASTY
    result.composition.loc[:, "named_group"] = NASTY
    page = render(summarize(result=result))
    specs = re.findall(r'<script type="application/json" id="spec-named_error">(.*?)</script>', page, flags=re.S)
    (values, *_) = json.loads(specs[0])["datasets"].values()
    assert any(row.get("who") == NASTY for rows in json.loads(specs[0])["datasets"].values() for row in rows)
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
