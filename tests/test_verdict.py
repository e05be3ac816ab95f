"""One verdict: terminal, JSON, report and exit code say the same, whatever an audit finds."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dafh import audit
from dafh.cli import main
from dafh.evaluation import Verdict
from dafh.report import render, summarize
from dafh.workflows.serving import FileModel

N = 400


def constructed(errors, pooled_error=0.3, n=N, named_harm=False, towns=0, **options):
    """Audit of two groups whose classifiers err on given shares of rows, the same shares in every named group.

    With `named_harm`, the own classifiers err on all women and on no man; the pooled one does the reverse.
    """
    row = np.arange(n)
    y, groups = np.zeros(n, int), row // 2 % 2
    women = row % 2 == 0
    step = row // 4 / (n / 4)  # Runs from 0 to 1 in each of the four cells of group and sex.
    predictions = (step[:, None] < np.array(errors, float)).astype(int)
    pooled = (step >= 1 - pooled_error).astype(int)
    if named_harm:
        predictions, pooled = np.repeat(women[:, None], 2, axis=1).astype(int), (~women).astype(int)
    people = pd.DataFrame({"town": row // 4 % towns}) if towns else pd.DataFrame({"sex": np.where(women, "f", "m")})
    return audit(y, predictions, groups, pooled=pooled, sensitive_features=people, **options)


def harm_to_women_only():
    """Nobody can tell the learned groups' classifiers from the pooled one, but women and men can."""
    return constructed((0.0, 0.0), named_harm=True)


# name: (audit, status, how the sentence begins)
AUDITS = {
    "no harm": (lambda: constructed((0,), own=[0, 0]), "no_harm", "every group is shown to be served no worse"),
    "harm to one group": (lambda: constructed((0.0, 0.8)), "harm", "group 1 is served worse than it could be."),
    "harm to all groups": (lambda: constructed((0.8, 0.8)), "harm", "groups 0 and 1 are served worse than they could"),
    "harm to a named group only": (harm_to_women_only, "harm", "sex = f is served worse than by the pooled classifier"),
    "undecided": (lambda: constructed((0.3, 0.3), n=40), "undecided", "no group is shown to be served worse than it"),
    "undecided named groups only": (
        lambda: constructed((0,), pooled_error=0.1, own=[0, 0], towns=10),
        "undecided",
        "no group is shown to be served worse than it could be, but 10 of 12 questions are undecided",
    ),
    "unchanged": (lambda: constructed((), own=[0, 0]), "unchanged", "the pooled classifier serves every group"),
    "unchanged, unused classifiers undecided": (
        lambda: constructed((0.3, 0.3), own=[2, 2]),
        "unchanged",
        "the pooled classifier serves every group",
    ),
    "an unused classifier is better": (lambda: constructed((0.0, 0.3), own=[2, 2]), "harm", "groups 0 and 1 are"),
    "within the margin": (
        lambda: constructed((0.31, 0.31), n=4000, margin=0.9),
        "no_harm",
        "every group is shown to be served no worse than it could be, within a margin of 90 percentage points.",
    ),
    "undecided with a margin": (
        lambda: constructed((0.3, 0.3), n=40, margin=0.01),
        "undecided",
        "no group is shown to be served worse than it could be by more than 1 percentage point, but",
    ),
    "harm beyond a margin": (
        lambda: constructed((0.8, 0.8), margin=0.02),
        "harm",
        "groups 0 and 1 are served worse than they could be",
    ),
}


def run_audit(monkeypatch, result, *options):
    """Run `dafh audit` on a model file that gives this result."""

    class Opened:
        def read(self, *_):
            return type("Rows", (), {"notes": ()})

        def audit(self, *_, **__):
            return result

    monkeypatch.setattr(FileModel, "open", lambda path: Opened())
    return CliRunner().invoke(main, ["audit", "model.dafh", "rows.csv", *options])


@pytest.mark.parametrize("name", AUDITS)
def test_terminal_json_report_and_exit_code_agree(name, monkeypatch):
    build, status, beginning = AUDITS[name]
    result = build()
    verdict = result.verdict
    assert verdict.status == status
    assert verdict.sentence.startswith(beginning)
    one_line = f"{verdict.headline}: {verdict.sentence}"

    terminal = run_audit(monkeypatch, result, "--fail-on-harm")
    assert terminal.stdout.startswith(f"{verdict.headline.upper()}: {verdict.sentence}\n")
    assert terminal.exit_code == (1 if status == "harm" else 0)
    assert run_audit(monkeypatch, result).exit_code == 0

    machines = json.loads(run_audit(monkeypatch, result, "--json", "--fail-on-harm").stdout)
    summary = summarize(result=result)
    assert machines["verdict"] == summary["verdict"] == verdict.to_dict()
    page = render(summary)
    assert f'<div class="verdict {status}">' in page
    assert f"<h1>{one_line}</h1>" in page.replace("&#39;", "'")


@pytest.mark.parametrize("name", AUDITS)
def test_the_verdict_agrees_with_the_table_of_questions(name):
    result = AUDITS[name][0]()
    answers = set(result.to_frame()["verdict"])
    assert (result.verdict.status == "harm") == ("violated" in answers)
    assert result.verdict.status != "no_harm" or answers == {"satisfied"}


def test_harm_to_a_named_group_is_no_harm_to_learned_groups_in_this_case():
    """The case that once read "NO HARM FOUND" in the terminal and "harm" in JSON."""
    result = harm_to_women_only()
    assert "violated" not in set(result.questions["verdict"])
    assert result.named.set_index("group").loc["sex = f", "p_corrected"] < 0.001
    assert str(result).startswith("HARM: sex = f is served worse than by the pooled classifier.\n")


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


def test_with_a_margin_harm_is_said_to_be_shown_and_not_to_exceed_the_margin():
    verdict = Verdict.of(table("violated"), margin=0.015)
    assert verdict.sentence == (
        "group 0 is served worse than it could be, and this harm is not shown to be within the margin of "
        "1.5 percentage points."
    )


def test_without_rows_nothing_is_claimed():
    summary = summarize()
    assert summary["verdict"] == Verdict.without_rows().to_dict()
    assert summary["verdict"]["status"] == "unaudited"
    assert "<h1>Not audited: there were no rows outside of training" in render(summary)
