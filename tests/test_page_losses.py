"""The page of a report that was asked about losses and declared groups: decisions before and after, and the guard."""

import copy
import functools

import numpy as np
import pytest

from dafh import AuditResult, DAFHClassifier, audit
from dafh.report import render, summarize
from models import rules_case, workers
from pages import CARD, chart, section, table


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
    assert "The audit tested the cost and false negative rate." in section(page, "gains")


def test_decisions_before_and_after_are_shown_for_every_group():
    page = page_of_losses()
    rows = table(page, "Decisions with the pooled classifier and with this model")
    assert [row["who"] for row in rows] == ["all rows", "group 0", "group 1"]
    assert rows[1]["false positive rate, pooled → own"] == "10.0% → 20.0%"
    assert rows[1]["false negative rate, pooled → own"] == "40.0% → 10.0%"
    assert rows[1]["flagged, pooled → own"] == "35.0% → 55.0%"
    (drawn,) = (data for data in chart(page, "rate_fpr")["datasets"].values() if "before" in data[0])
    assert [(row["before"], row["now"]) for row in drawn[1:]] == [(0.1, 0.2), (0.1, 0.3)]


def test_totals_have_every_loss_with_its_unit():
    cost, rate = table(page_of_losses(), "All people together")
    assert (cost["loss"], cost["pooled"], cost["unit"]) == ("cost", "105.00", "per 100 rows")
    assert (rate["loss"], rate["pooled"], rate["unit"]) == ("false negative rate", "40.0%", "percentage points")


def test_with_three_labels_there_is_nothing_to_flag():
    y = np.arange(300) % 3
    page = render(summarize(result=audit(y, y[:, None], np.zeros(300, int), pooled=(y + 1) % 3)))
    assert section(page, "decisions") is None


def test_a_model_says_which_label_is_flagged():
    case = rules_case()
    page = render(summarize(case.model, AuditResult.of(case.model, case.X, case.y)))
    assert "A person is flagged if the label yes is predicted." in section(page, "decisions")
    assert "flagged if the positive label is predicted" in section(page_of_losses(), "decisions")


def test_nothing_gained_is_a_verdict_with_a_style_of_its_own():
    y, coin = np.tile([0, 1], 30), np.tile([0, 0, 1, 1], 15)
    found = audit(y, coin[:, None], np.zeros(60, int), pooled=coin)
    assert found.verdict.status == "nothing_gained"
    page = render(summarize(result=found))
    assert '<p class="verdict nothing_gained">' in page
    assert ".verdict.nothing_gained {" in page
    assert "<h1>Keep the pooled classifier: nothing is gained</h1>" in page
    assert '<div class="advice keep">' in page
    assert ".advice.keep {" in page


@functools.cache
def protected_model():
    data = workers()
    model = DAFHClassifier(2, groups="rules", guard_losses=("error", "fnr"), random_state=0)
    return model.fit(data.X, data.y, guard_features=data.sensitive)


@pytest.mark.parametrize("kind", ["veto", "proof"])
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
    checks = table(page, "Every check of the guard: one loss, for a group or for a declared subgroup of it")
    assert {row["subgroup"] for row in checks} == {"the whole group", "sex = f", "sex = m"}
    assert len(checks) == len(model.guard_report_.checks) == 12
    assert {row["loss"] for row in checks} == {"error rate", "false negative rate"}
    for row, passed in zip(checks, model.guard_report_.checks["passed"], strict=True):
        assert row["passed"] == ("✔ yes" if passed else "✖ no")


def test_a_guard_that_was_asked_one_question_a_group_lists_none_twice():
    assert "Everything that the guard asked" not in render(summarize(rules_case().model))


def test_a_card_has_the_cut_off():
    text = section(render(summarize(card=CARD | {"threshold": 1 / 6})), "card")
    assert "<dt>Cut-off</dt><dd>yes is predicted above a probability of 0.167</dd>" in text
    assert "Cut-off" not in section(render(summarize(card=CARD)), "card")
