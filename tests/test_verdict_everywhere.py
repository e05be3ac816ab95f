"""One verdict and one recommendation: terminal, JSON, report and exit code say the same, whatever an audit finds."""

import html
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

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
    "no harm": (lambda: constructed((0,), own=[0, 0]), "no_harm", "no group has a higher error rate than with"),
    "harm to one group": (lambda: constructed((0.0, 0.8)), "harm", "for group 1 the error rate is higher than with"),
    "harm to all groups": (lambda: constructed((0.8, 0.8)), "harm", "for sex = f the error rate is higher than with"),
    "harm to a named group only": (harm_to_women_only, "harm", "for sex = f the error rate is higher than with the"),
    "nothing gained": (
        lambda: constructed((0.3, 0.3), n=40),
        "nothing_gained",
        "keep the pooled classifier. In total,",
    ),
    "undecided named groups only": (
        lambda: constructed((0,), pooled_error=0.1, own=[0, 0], towns=10),
        "undecided",
        "no group is shown to be harmed, but for 10 of 12 questions there is not enough data",
    ),
    "unchanged": (lambda: constructed((), own=[0, 0]), "unchanged", "the pooled classifier serves every group"),
    "unchanged, unused classifiers undecided": (
        lambda: constructed((0.3, 0.3), own=[2, 2]),
        "unchanged",
        "the pooled classifier serves every group",
    ),
    "an unused classifier is better": (lambda: constructed((0.0, 0.3), own=[2, 2]), "harm", "for group 0 the"),
    "within the margin": (
        lambda: constructed((0.31, 0.31), n=4000, margin=0.9),
        "no_harm",
        "no group has a higher error rate than with the pooled classifier or another group's by more than 90",
    ),
    "undecided with a margin": (
        lambda: constructed((0.3, 0.3), n=40, margin=0.01),
        "undecided",
        "no group is shown to be harmed by more than 1 percentage point, but",
    ),
    "harm beyond a margin": (
        lambda: constructed((0.8, 0.8), margin=0.02),
        "harm",
        "for sex = f the error rate is higher than with the pooled classifier by more than 2 percentage points: by",
    ),
}


def run_audit(monkeypatch, result, *options):
    """Run `dafh audit` on a model file that gives this result."""

    class Opened:
        model = None  # What its groups are worth is not asked here.

        def read(self, *_, **__):
            return SimpleNamespace(notes=())

        def audit(self, *_, **__):
            return result

    monkeypatch.setattr(FileModel, "open", lambda *_: Opened())
    return CliRunner().invoke(main, ["audit", "model.dafh", "rows.csv", *options])


@pytest.mark.parametrize("name", AUDITS)
def test_terminal_json_report_and_exit_code_agree(name, monkeypatch):
    build, status, beginning = AUDITS[name]
    result = build()
    verdict = result.verdict
    assert verdict.status == status
    assert verdict.sentence.startswith(beginning)

    terminal = run_audit(monkeypatch, result, "--fail-on-harm")
    assert terminal.stdout.startswith(f"{result.recommendation}\n\n{verdict.headline.upper()}: {verdict.sentence}\n")
    assert terminal.exit_code == (1 if status == "harm" else 0)
    assert run_audit(monkeypatch, result).exit_code == 0

    machines = json.loads(run_audit(monkeypatch, result, "--json", "--fail-on-harm").stdout)
    summary = summarize(result=result)
    assert machines["verdict"] == summary["verdict"] == verdict.to_dict()
    assert machines["recommendation"] == summary["recommendation"] == result.recommendation.to_dict()
    page = html.unescape(render(summary))
    assert f'<p class="verdict {status}"><b>' in page
    assert f" {verdict.headline}:</b> {verdict.sentence}" in page
    assert f'<div class="advice {result.recommendation.kind}">' in page
    assert f"<h1>{result.recommendation.headline}</h1>" in page


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
    assert str(result).startswith("RECOMMENDATION: Do not deploy: sex = f is shown to lose.\n")
    assert str(result.verdict).startswith(
        "HARM: for sex = f the error rate is higher than with the pooled classifier: by 100.00 perc"
    )


def test_without_rows_nothing_is_claimed():
    summary = summarize()
    assert summary["verdict"] == Verdict.without_rows().to_dict()
    assert summary["verdict"]["status"] == "unaudited"
    assert summary["recommendation"]["kind"] == "unaudited"
    assert "<h1>None, because no rows were given to test the model on</h1>" in render(summary)
