"""The verdict: which status applies, and how its sentence reads."""

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from dafh.evaluation.verdict import Verdict


def table(*answers, names=None):
    return pd.DataFrame({"group": names or list(range(len(answers))), "verdict": list(answers)})


words = st.sampled_from(["violated", "satisfied", "undecided"])
tables = st.lists(words, min_size=1, max_size=6)


@given(tables, st.none() | tables, st.booleans(), st.sampled_from([0.0, 0.01, 0.2]))
def test_the_status_is_the_first_rule_that_applies(groups, named, unchanged, margin):
    verdict = Verdict.of(table(*groups), named and table(*named), unchanged=unchanged, margin=margin)
    answers = [*groups, *(named or [])]
    if "violated" in answers:
        assert verdict.status == "harm"
    elif unchanged:
        assert verdict.status == "unchanged"
    else:
        assert verdict.status == ("undecided" if "undecided" in answers else "no_harm")
    assert verdict.sentence.endswith(".")
    assert ("percentage point" in verdict.sentence) == (margin > 0 and verdict.status != "unchanged")


def test_details_count_the_answers_to_both_kinds_of_question():
    verdict = Verdict.of(table("satisfied", "undecided", "undecided"), table("violated"))
    assert verdict.details == (
        "Questions about groups: 0 violated, 1 satisfied, 2 undecided.",
        "Questions about named groups: 1 violated, 0 satisfied, 0 undecided.",
    )
    assert len(Verdict.of(table("satisfied")).details) == 1
    assert Verdict.of(table("satisfied"), unchanged=True).details == ()


def test_undecided_questions_are_counted_in_the_sentence():
    assert "but 1 of 2 questions is undecided" in Verdict.of(table("satisfied", "undecided")).sentence
    assert "but 3 of 3 questions are undecided" in Verdict.of(table("undecided"), table(*["undecided"] * 2)).sentence


def test_a_sentence_names_three_groups_and_counts_the_rest():
    def sentence(*names):
        return Verdict.of(table(*["violated"] * len(names), names=list(names))).sentence

    assert sentence(0, 0, 1) == "groups 0 and 1 are served worse than they could be."
    assert sentence(0, 1, 2) == "groups 0, 1 and 2 are served worse than they could be."
    assert sentence(0, 1, 2, 3) == "groups 0, 1, 2 and 1 more are served worse than they could be."
    named = Verdict.of(table("satisfied"), table("violated", "violated", names=["sex = f", "sex = m"]))
    assert named.sentence == "sex = f and sex = m are served worse than by the pooled classifier."
    one = Verdict.of(table("satisfied", "violated"), table("violated", names=["sex = f"]))
    assert one.sentence == (
        "group 1 is served worse than it could be; sex = f is served worse than by the pooled classifier."
    )


def test_with_a_margin_harm_is_said_to_be_shown_and_not_to_exceed_the_margin():
    verdict = Verdict.of(table("violated"), margin=0.015)
    assert verdict.sentence == (
        "group 0 is served worse than it could be, and this harm is not shown to be within the margin of "
        "1.5 percentage points."
    )


def test_sentences_without_harm():
    assert Verdict.of(table("satisfied")).sentence == "every group is shown to be served no worse than it could be."
    assert Verdict.of(table("undecided")).sentence == (
        "no group is shown to be served worse than it could be, but 1 of 1 questions is undecided (not enough data)."
    )
    assert Verdict.of(table("undecided"), unchanged=True).sentence == (
        "the pooled classifier serves every group, so no group is worse or better off than with it."
    )


def test_a_verdict_as_plain_values():
    assert Verdict.without_rows("Nobody was asked.").to_dict() == {
        "status": "unaudited",
        "headline": "Not audited",
        "sentence": "there were no rows outside of training to test the model on.",
        "details": ["Nobody was asked."],
    }
