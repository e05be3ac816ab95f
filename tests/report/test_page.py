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

from dafh import AuditResult, DAFHClassifier, audit, explain
from dafh.explanation import Explanation, GroupInWords, Rule
from dafh.report import render, summarize, write_report
from dafh.text import percent, points
from models import additive_case, network_case, rules_case, workers
from pages import CARD, chart, section, table


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


def test_the_page_reads_from_the_recommendation_over_who_is_failed_to_who_changes():
    page = page_of("rules")
    places = [
        page.index(part) for part in ("<h1>", 'id="h-failed"', 'id="h-serving"', 'id="h-decisions"', 'id="h-guard"')
    ]
    assert places == sorted(places)


def test_the_share_without_harm_is_explained_and_not_at_the_top():
    page = audited_page()
    assert "Best served" not in page
    words = section(page, "matrix")
    # Classifier 0 would be right about 30% more of group 1, which is half of the rows.
    assert "For 15.0% of people, the classifier that serves them is wrong and another one here happens to be" in words
    assert "“Pr without harm” is the rest, 85.0%" in words


def test_the_table_of_groups_has_errors_and_gains_and_says_what_to_do():
    first, second = table(audited_page(), "Groups of the model, by gain, on the people tested")
    assert (first["group"], second["group"]) == ("0", "1")
    assert (first["what to do"], second["what to do"]) == ("deploy", "keep the pooled one")
    assert (first["people"], first["share"]) == ("200", "50.0%")
    assert (first["own"], first["error, pooled"]) == ("10.0%", "30.0%")
    assert first["gain, points"].startswith("+20.00 (+14.")  # With its interval.
    assert second["gain, points"].startswith("-10.00 (-1")


def test_who_is_failed_now_is_a_chart_and_a_table_with_the_same_figures():
    page = audited_page()
    (drawn,) = (rows for rows in chart(page, "failed")["datasets"].values() if len(rows) > 1)
    shown = table(page, "Who is failed now")
    assert [row["who"] for row in shown] == ["all rows", *(row["who"] for row in drawn)]
    assert {row["error rate"] for row in shown} == {"30.0%"}


def test_tables_name_the_rival_of_every_question():
    page = audited_page()
    assert {row["against"] for row in table(page, "Gains over the pooled classifier")} == {"pooled"}
    envy = table(page, "Own classifiers against those of other groups: error rate")
    assert [(row["group"], row["against"]) for row in envy] == [("0", "classifier 1"), ("1", "classifier 0")]


def test_the_table_of_errors_marks_who_serves():
    cells = table(audited_page(), "Error rates")
    assert [(row["group"], row["classifier"]) for row in cells if "serves it" in row["classifier"]] == [
        ("0", "0 (serves it)"),
        ("1", "1 (serves it)"),
    ]
    assert {row["error"] for row in cells if row["classifier"] == "pooled"} == {"30.0%"}


def test_a_table_and_the_chart_above_it_have_the_same_figures():
    page = audited_page()
    (drawn,) = (rows for rows in chart(page, "gains_error")["datasets"].values() if "points" in rows[0])
    shown = table(page, "Gains over the pooled classifier")
    assert [f"{row['points']:+.2f}" for row in drawn] == [row["gap, points"].split()[0] for row in shown]
    (drawn,) = (rows for rows in chart(page, "matrix")["datasets"].values() if "label" in rows[0])
    assert [row["label"] for row in drawn] == [row["error"] for row in table(page, "Error rates")]


@pytest.mark.usefixtures("blank_charts")
def test_an_undecided_question_says_how_many_rows_it_needs_where_that_is_known():
    rows = table(render(summarize(result=result((0.29, 0.3), n=400))), "Gains over the pooled classifier")
    assert re.fullmatch(r"◆ undecided \(needs about [\d,]+ people of this group\)", rows[0]["answer"])
    assert rows[1]["answer"] == "◆ undecided"  # With a gain of zero, no number of rows decides.


@pytest.mark.usefixtures("blank_charts")
def test_what_is_unknown_is_a_dash():
    y = np.array([0, 1] * 20)
    empty = audit(y, np.column_stack([y, y]), np.zeros(40, int), pooled=1 - y)
    row = table(render(summarize(result=empty)), "Groups of the model, by gain, on the people tested")[1]
    assert row["people"] == "0"
    assert row["own"] == row["error, pooled"] == "–"
    assert row["gain, points"].startswith("–")
    assert "nan" not in json.dumps(row).lower()


def test_without_attributes_there_is_no_section_on_named_groups():
    assert section(render(summarize(result=result(sex=False))), "named") is None
    assert "define 2 named groups" in section(audited_page(), "named")


def test_named_groups_are_a_table_with_an_answer_and_every_question_is_behind_its_chart():
    page = audited_page()
    shown = table(page, "Named groups: those that lose or might lose first")
    assert {row["named group"] for row in shown} == {"sex = f", "sex = m"}
    assert len(table(page, "All questions about named groups")) == 2


@pytest.mark.usefixtures("blank_charts")
def test_one_group_has_no_section_on_other_groups_classifiers():
    y = np.arange(100) % 2
    page = render(summarize(result=audit(y, y[:, None], np.zeros(100, int), pooled=1 - y)))
    assert section(page, "envy") is None
    assert section(page, "serving") is not None


@pytest.mark.usefixtures("blank_charts")
def test_groups_in_words_have_a_heading_and_a_line_for_each_fact():
    rule = Rule("age is <30 & more>", 0.9, 0.8)
    words = Explanation((GroupInWords(0, "Group 0", 1_234, 0.4, "its own classifier", rule, difference=0.01),), 0.9)
    text = section(render(summarize(explanation=words)), "serving")
    assert "Group 0: 1,234 people (40.0%), served by its own classifier" in text
    assert "<li>Approximate rule: age is <30 & more>." in text
    assert "The groups change little with the seed" in text
    assert "do not read much into the groups" in text


def test_a_card_lists_data_settings_and_columns():
    text = section(render(summarize(card=CARD)), "card")
    assert "12,345 rows of adult.csv" in text
    assert "<dd>no, yes</dd>" in text
    assert "<dd>none</dd>" in text  # No setting differs from its default.
    assert "<li>age <span>number</span></li>" in text
    assert "Notes on the columns" not in text
    changed = section(render(summarize(card=CARD | {"settings": {"a": 1, "b": None}})), "card")
    assert "a = 1, b = None" in changed


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


def test_long_tables_are_left_out_on_paper_and_say_so():
    people = {"town": np.resize([f"town {k:02}" for k in range(41)], 2050)}
    y = np.arange(2050) % 2
    found = audit(
        y,
        y,
        np.zeros(2050, int),
        pooled=np.where(np.arange(2050) < 300, 1 - y, y),
        sensitive_features=pd.DataFrame(people),
    )
    page = render(summarize(result=found))
    assert '<details class="long"><summary>All questions about named groups, as a table' in page
    assert "The table behind this chart has 41 rows." in page
    assert "on paper it is left out" not in audited_page()


def test_named_groups_of_few_people_and_intersections_are_in_the_table_but_not_in_the_chart():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "town": np.repeat(["a", "b"], [370, 30])})
    y = rng.integers(0, 2, 400)
    found = audit(y, y, np.zeros(400, int), pooled=np.where(rng.random(400) < 0.1, 1 - y, y), sensitive_features=people)
    page = render(summarize(result=found))
    (drawn,) = (rows for rows in chart(page, "named_error")["datasets"].values() if "points" in rows[0])
    assert {row["name"] for row in drawn} == {"sex = f", "sex = m", "town = a"}
    assert {row["group"] for row in table(page, "All questions about named groups")} == set(found.named["group"])


@functools.cache
def page_of(name):
    case = {"rules": rules_case, "additive": additive_case, "network": network_case}[name]()
    audited = AuditResult.of(case.model, case.X, case.y, sensitive_features=case.sensitive)
    return render(summarize(case.model, audited, explain(case.model, case.X)))


def test_groups_of_exceptions_have_rule_size_and_server():
    final = rules_case().model[-1]
    rows = table(page_of("rules"), "Groups of the model, by gain, on the people tested")
    groups = final.predict_group(rules_case().model[:-1].transform(rules_case().X))
    sizes = [f"{n:,}" for n in np.bincount(groups)]
    assert {row["rule"]: row["people"] for row in rows} == dict(zip(final.exceptions_.rules, sizes, strict=True))
    assert {row["in the model"] for row in rows} == {final.exceptions_.server(group) for group in (0, 1)}
    assert "approximate" not in section(page_of("rules"), "serving").lower()


@pytest.mark.usefixtures("blank_charts")
def test_exceptions_of_a_model_alone_have_the_figures_of_training():
    rows = table(render(summarize(rules_case().model)), "Groups of the model")
    for row, told in zip(rows, rules_case().model[-1].exceptions_.to_frame().itertuples(), strict=True):
        assert (row["rule"], row["share"]) == (told.rule, percent(told.rows))
        assert row["gain, points"].startswith(points(told.gain))


@pytest.mark.usefixtures("blank_charts")
def test_rules_are_never_markup_and_figures_may_be_unknown():
    summary = summarize(rules_case().model)
    summary["serving"][0] |= {"rule": "a is <b>", "gain": None, "low": None, "high": None, "share": None}
    page = render(summary)
    assert ">a is &lt;b&gt;</td>" in page
    assert table(page, "Groups of the model")[0]["share"] == "–"


def test_the_scorecard_has_a_chart_for_each_important_column_and_all_points_in_a_table():
    page = page_of("rules")
    pooled = rules_case().model[-1].pooled_
    text = section(page, "scorecard")
    important = pooled.importance()[lambda size: size >= 0.01].index.tolist()
    assert re.findall(r"<h3>(.*?)</h3>", text) == important[:6]
    assert f"Start at {pooled.intercept_[0]:+.2f}" in text
    assert "log-odds of the label yes" in text
    rows = table(page, "Points of the scorecard")
    assert len(rows) == sum(share > 0 for shares in pooled.shares_ for share in shares)
    assert rows[0]["column"] == important[0]
    assert {row["value"] for row in rows if row["column"] == "remote"} == {"True", "False"}
    for position, name in enumerate(important[:6]):
        (values, *_) = chart(page, f"scorecard_{position}")["datasets"].values()
        assert {row["column"] for row in values if "column" in row} <= {name}


@pytest.mark.usefixtures("blank_charts")
def test_more_than_two_classes_have_points_each():
    data = workers(400)
    label = np.where(data.X["experience"] > 30, "old", data.y)
    model = DAFHClassifier(1, random_state=0).fit(data.X, label)
    page = render(summarize(model))
    assert {row["class"] for row in table(page, "Points of the scorecard")} == {"no", "old", "yes"}
    assert "points for each class" in section(page, "scorecard")


def test_a_page_says_first_that_groups_add_nothing():
    page = page_of("additive")
    header = page.split("</header>")[0]
    assert "No exceptions: groups add nothing to the pooled classifier, which serves everybody." in header
    assert '<div class="advice keep">' in header
    for about_groups in ("guard", "composition"):
        assert section(page, about_groups) is None
    assert section(page, "failed")
    assert section(page, "scorecard")


def test_groups_of_a_network_are_said_to_be_approximate():
    assert "approximate" in section(page_of("network"), "serving")
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


def test_every_loss_has_its_own_chart_and_table_with_its_unit():
    page = page_of_losses()
    cost = table(page, "Gains over the pooled classifier: cost")
    rate = table(page, "Gains over the pooled classifier: false negative rate")
    assert cost[0]["own cost"] == "35.00"  # 5 × 10% of the positive rows and 1 × 20% of the negative ones.
    assert cost[0]["rival cost"] == "105.00"
    assert cost[0]["gap, per 100 rows"].startswith("+70.00 (")
    assert (rate[0]["own false negative"], rate[0]["rival false negative"]) == ("10.0%", "40.0%")
    assert rate[0]["gap, points"].startswith("+30.00 (")
    assert "gain in cost" in chart(page, "gains_cost")["layer"][1]["encoding"]["x"]["title"]


def test_decisions_before_and_after_are_shown_for_every_group():
    page = page_of_losses()
    rows = table(page, "Decisions with the pooled classifier and with this model")
    assert [row["who"] for row in rows] == ["all rows", "group 0", "group 1"]
    assert rows[1]["false positive rate, pooled → own"] == "10.0% → 20.0%"
    assert rows[1]["false negative rate, pooled → own"] == "40.0% → 10.0%"
    assert rows[1]["flagged, pooled → own"] == "35.0% → 55.0%"


def test_totals_have_every_loss_with_its_unit():
    cost, rate = table(page_of_losses(), "All people together")
    assert (cost["loss"], cost["pooled"], cost["unit"]) == ("cost", "105.00", "per 100 rows")
    assert (rate["loss"], rate["pooled"], rate["unit"]) == ("false negative rate", "40.0%", "percentage points")


def test_a_model_says_which_label_is_flagged():
    case = rules_case()
    page = render(summarize(case.model, AuditResult.of(case.model, case.X, case.y)))
    assert "A person is flagged if the label yes is predicted." in section(page, "decisions")
    assert "flagged if the positive label is predicted" in section(page_of_losses(), "decisions")


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


def test_a_card_has_the_cut_off():
    text = section(render(summarize(card=CARD | {"threshold": 1 / 6})), "card")
    assert "<dt>Cut-off</dt><dd>yes is predicted above a probability of 0.167</dd>" in text
    assert "Cut-off" not in section(render(summarize(card=CARD)), "card")


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
    assert page.count('class="chart"') == 4
    assert page.count(", as a table</summary>") == 6  # Those of envy are tables only.
