"""The verdict: which status applies, and how its sentence reads."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.evaluation.verdict import Verdict


def question(verdict="undecided", group=0, loss="error", kind="rationality", rival="pooled", **figures):
    """One row of a table of questions."""
    known = {"n": 100, "gap": -0.05, "low": -0.08, "high": 0.02, "p_corrected": 0.012}
    return {"group": group, "loss": loss, "kind": kind, "rival": rival, "verdict": verdict} | known | figures


def table(*questions):
    return pd.DataFrame([question(one) if isinstance(one, str) else one for one in questions])


words = st.sampled_from(["violated", "satisfied", "undecided"])
tables = st.lists(words, min_size=1, max_size=6)
gains = st.sampled_from([-0.01, 0.0, 0.01])


@given(tables, st.none() | tables, st.booleans(), gains, st.sampled_from([0.0, 0.01, 0.2]))
def test_the_status_is_the_first_rule_that_applies(groups, named, unchanged, gain, margin):
    named_table = None if named is None else table(*named)
    verdict = Verdict.of(table(*groups), named_table, unchanged=unchanged, gain=gain, margin=margin)
    answers = [*groups, *(named or [])]
    if "violated" in answers:
        assert verdict.status == "harm"
    elif unchanged:
        assert verdict.status == "unchanged"
    elif "undecided" not in answers:
        assert verdict.status == "no_harm"
    else:
        assert verdict.status == ("nothing_gained" if gain <= 0 and margin == 0 else "undecided")
    assert verdict.sentence.endswith(".")
    if margin and verdict.status != "unchanged":
        assert f"by more than {100 * margin:g} percentage point" in verdict.sentence
    else:
        assert "by more than" not in verdict.sentence


def test_details_count_the_answers_to_both_kinds_of_question():
    verdict = Verdict.of(table("satisfied", "undecided", "undecided"), table("violated"))
    assert verdict.details == (
        "Questions about groups: 0 violated, 1 satisfied, 2 undecided.",
        "Questions about named groups: 1 violated, 0 satisfied, 0 undecided.",
    )
    assert len(Verdict.of(table("satisfied")).details) == 1
    assert Verdict.of(table("satisfied"), unchanged=True).details == ()


def test_harm_says_who_which_loss_how_much_against_what_and_how_sure():
    harmed = question("violated", group=1, loss="fnr", gap=-0.0512, low=-0.08, high=-0.021)
    assert Verdict.of(table("satisfied", harmed)).sentence == (
        "for group 1 the false negative rate is higher than with the pooled classifier: by 5.12 percentage points "
        "(95% interval 2.10 to 8.00; p = 0.012 after correction for 2 questions)."
    )
    envious = question("violated", kind="envy", rival=2, p_corrected=1e-9, high=-0.021)
    assert Verdict.of(table(envious), level=0.1).sentence == (
        "for group 0 the error rate is higher than with classifier 2: by 5.00 percentage points "
        "(90% interval 2.10 to 8.00; p < 0.001 after correction for 1 question)."
    )


@pytest.mark.parametrize(("p", "words"), [(0.00099, "p < 0.001"), (0.001, "p = 0.001"), (0.0014, "p = 0.001")])
def test_a_p_value_is_told_to_three_digits_or_as_a_limit(p, words):
    assert f"; {words} after correction" in Verdict.of(table(question("violated", p_corrected=p))).sentence


def test_costs_are_told_per_hundred_rows():
    harmed = question("violated", loss="cost", gap=-0.25, low=-0.4, high=-0.1)
    assert "by 25.00 per 100 rows (95% interval 10.00 to 40.00" in Verdict.of(table(harmed)).sentence


def test_with_a_margin_harm_is_said_to_exceed_it():
    sentence = Verdict.of(table("violated"), margin=0.015).sentence
    assert "is higher than with the pooled classifier by more than 1.5 percentage points: by 5.00" in sentence


def test_harm_against_the_pooled_classifier_comes_first_and_then_the_clearest():
    envy = question("violated", group=2, kind="envy", rival=0, p_corrected=0.0001)
    unclear, clear = (question("violated", group=g, p_corrected=p) for g, p in ((0, 0.04), (1, 0.01)))
    sentence = Verdict.of(table(envy, unclear, clear)).sentence
    assert sentence.startswith("for group 1 the error rate")
    assert sentence.endswith("Also harmed: group 0 and group 2.")


def test_a_sentence_names_three_others_and_counts_the_rest():
    def also(*names):
        rows = [question("violated", group=name, p_corrected=k / 1000) for k, name in enumerate(names)]
        return Verdict.of(table("satisfied"), table(*rows)).sentence.partition("Also harmed: ")[2]

    assert also("sex = f") == ""
    assert also("sex = f", "sex = f") == ""
    assert also("sex = f", "age = 3 to 5", "town = a") == "age = 3 to 5 and town = a."
    assert also(*[f"town = {k}" for k in range(4)]) == "town = 1, town = 2 and town = 3."
    assert also(*[f"town = {k}" for k in range(5)]) == "town = 1, town = 2, town = 3 and 1 more."
    assert also(*[f"town = {k}" for k in range(6)]) == "town = 1, town = 2, town = 3 and 2 more."


def test_undecided_says_how_much_harm_is_not_ruled_out():
    worst = question("undecided", group="sex = f", loss="fpr", low=-0.123)
    assert Verdict.of(table("satisfied", "undecided"), table(worst), gain=0.02).sentence == (
        "no group is shown to be harmed, but for 2 of 3 questions there is not enough data to rule it out. In the "
        "worst case that is not ruled out, the false positive rate of sex = f is 12.30 percentage points higher than "
        "with the pooled classifier (limit of the 95% interval)."
    )


def test_the_worst_case_is_that_of_a_group_of_fifty_rows_or_more_if_there_is_one():
    tiny = question("undecided", group="sex = f & town = b", low=-0.97, n=49)
    sentence = Verdict.of(table(question("undecided", n=50)), table(tiny)).sentence
    assert "for 2 of 2 questions" in sentence
    assert "not ruled out, of groups with at least 50 rows, the error rate of group 0 is 8.00 percentage" in sentence
    assert "the error rate of sex = f & town = b is 97.00" in Verdict.of(table(tiny)).sentence
    assert "of groups with at least" not in Verdict.of(table(tiny)).sentence


@pytest.mark.parametrize(
    ("low", "margin", "beyond"), [(0.0, 0.0, ""), (-0.02, 0.05, " by more than 5 percentage points")]
)
def test_doubts_about_small_groups_only_are_said_to_be_that(low, margin, beyond):
    tiny = question("undecided", group="sex = f", low=-0.97, n=49)
    near, worse = (question("undecided", n=50, low=limit) for limit in (low, low - 0.1))
    said = f"The 95% interval of no group with at least 50 rows reaches as far as harm{beyond}."
    assert Verdict.of(table(near, tiny), margin=margin).sentence.endswith(f"rule it out. {said}")
    assert said not in Verdict.of(table(near, worse, tiny), margin=margin).sentence


def test_of_equally_bad_cases_the_first_is_told():
    equal = [question("undecided", group=k) for k in range(100)]
    assert "the error rate of group 0 is" in Verdict.of(table(*equal)).sentence


@pytest.mark.parametrize(
    ("gain", "total"), [(0.0, "no change"), (-0.0123, "-1.23 percentage points")], ids=["none", "loss"]
)
def test_nothing_gained_is_a_verdict_and_says_what_to_do(gain, total):
    verdict = Verdict.of(table("undecided"), gain=gain)
    assert (verdict.status, verdict.headline) == ("nothing_gained", "Nothing gained")
    assert verdict.sentence.startswith(
        "keep the pooled classifier. In total, the own classifiers do not lower the error rate of these rows "
        f"({total}), and no group is shown to be harmed, but for 1 of 1 questions there is not enough data"
    )


def test_no_harm_says_for_which_losses_against_whom_and_how_sure():
    assert Verdict.of(table("satisfied")).sentence == (
        "no group has a higher error rate than with the pooled classifier. This is shown with 95% confidence for the "
        "1 question."
    )
    envy = question("satisfied", kind="envy", rival=1, loss="fnr")
    sentence = Verdict.of(table("satisfied", envy), level=0.01, margin=0.01).sentence
    assert sentence == (
        "no group has a higher error rate or false negative rate than with the pooled classifier or another group's "
        "by more than 1 percentage point. This is shown with 99% confidence for the 2 questions together."
    )


def test_unchanged_is_said_in_one_sentence():
    assert Verdict.of(table("undecided"), unchanged=True).sentence == (
        "the pooled classifier serves every group, so no group is worse or better off than with it."
    )


def test_a_verdict_as_plain_values():
    assert Verdict.without_rows("Nobody was asked.").to_dict() == {
        "status": "unaudited",
        "headline": "Not audited",
        "sentence": "no rows were given to test the model on.",
        "details": ["Nobody was asked."],
    }


def test_in_a_terminal_the_headline_comes_first_and_every_detail_has_a_line():
    verdict = Verdict.without_rows("Nobody was asked.", "Nothing was found.")
    assert str(verdict).splitlines() == [
        "NOT AUDITED: no rows were given to test the model on.",
        "Nobody was asked.",
        "Nothing was found.",
    ]
