"""The verdict: which status applies, and the same one in terminal, JSON, report and exit code."""

import functools
import html
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dafh import audit
from dafh.cli import main
from dafh.evaluation.recommendation import Trial, supported
from dafh.evaluation.verdict import Verdict
from dafh.report import render, summarize
from dafh.scoring import FileModel


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
    assert ("by more than" in verdict.sentence) == (margin > 0 and verdict.status != "unchanged")


def test_harm_says_who_which_loss_how_much_against_what_and_how_sure():
    harmed = question("violated", group=1, loss="fnr", gap=-0.0512, low=-0.08, high=-0.021)
    sentence = Verdict.of(table("satisfied", harmed)).sentence
    assert all(part in sentence for part in ("group 1", "false negative rate", "5.12", "2.10 to 8.00", "p = 0.012"))
    envious = question("violated", loss="cost", kind="envy", rival=2, p_corrected=1e-9)
    sentence = Verdict.of(table(envious), level=0.1).sentence
    assert all(part in sentence for part in ("classifier 2", "90%", "p < 0.001", "5.00 per 100 rows"))


def test_harm_against_the_pooled_classifier_comes_first_and_then_the_clearest():
    envy = question("violated", group=2, kind="envy", rival=0, p_corrected=0.0001)
    unclear, clear = (question("violated", group=g, p_corrected=p) for g, p in ((0, 0.04), (1, 0.01)))
    sentence = Verdict.of(table(envy, unclear, clear)).sentence
    assert sentence.startswith("for group 1 ")
    assert sentence.endswith("group 0 and group 2.")


def test_a_sentence_names_three_others_and_counts_the_rest():
    rows = [question("violated", group=f"town = {k}", p_corrected=k / 1000) for k in range(6)]
    sentence = Verdict.of(table("satisfied"), table(*rows)).sentence
    assert sentence.endswith("town = 1, town = 2, town = 3 and 2 more.")


def test_undecided_says_how_much_harm_is_not_ruled_out():
    worst = question("undecided", group="sex = f", loss="fpr", low=-0.123)
    sentence = Verdict.of(table("satisfied", "undecided"), table(worst), gain=0.02).sentence
    assert all(part in sentence for part in ("2 of 3 questions", "false positive rate of sex = f", "12.30"))


def test_the_worst_case_is_that_of_a_group_of_fifty_rows_or_more_if_there_is_one():
    tiny = question("undecided", group="sex = f & town = b", low=-0.97, n=49)
    sentence = Verdict.of(table(question("undecided", n=50)), table(tiny)).sentence
    assert "group 0 is 8.00" in sentence
    assert "97.00" not in sentence
    assert "sex = f & town = b is 97.00" in Verdict.of(table(tiny)).sentence


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


# name: (audit, status)
AUDITS = {
    "no harm": (lambda: constructed((0,), own=[0, 0]), "no_harm"),
    "harm to one group": (lambda: constructed((0.0, 0.8)), "harm"),
    "harm to a named group only": (harm_to_women_only, "harm"),
    "nothing gained": (lambda: constructed((0.3, 0.3), n=40), "nothing_gained"),
    "undecided named groups only": (lambda: constructed((0,), 0.1, own=[0, 0], towns=10), "undecided"),
    "unchanged": (lambda: constructed((), own=[0, 0]), "unchanged"),
    "unchanged, unused classifiers undecided": (lambda: constructed((0.3, 0.3), own=[2, 2]), "unchanged"),
    "an unused classifier is better": (lambda: constructed((0.0, 0.3), own=[2, 2]), "harm"),
    "within the margin": (lambda: constructed((0.31, 0.31), n=4000, margin=0.9), "no_harm"),
    "harm beyond a margin": (lambda: constructed((0.8, 0.8), margin=0.02), "harm"),
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


@pytest.mark.usefixtures("blank_charts")
@pytest.mark.parametrize("name", AUDITS)
def test_terminal_json_report_and_exit_code_agree(name, monkeypatch):
    build, status = AUDITS[name]
    result = build()
    verdict = result.verdict
    assert verdict.status == status

    terminal = run_audit(monkeypatch, result, "--fail-on-harm")
    assert terminal.stdout.startswith(f"{result.recommendation}\n\n{verdict.headline.upper()}: {verdict.sentence}\n")
    assert terminal.exit_code == (1 if status == "harm" else 0)
    assert run_audit(monkeypatch, result).exit_code == 0

    machines = json.loads(run_audit(monkeypatch, result, "--json", "--fail-on-harm").stdout)
    summary = summarize(result=result)
    assert machines["verdict"] == summary["verdict"] == verdict.to_dict()
    assert machines["recommendation"] == summary["recommendation"] == result.recommendation.to_dict()
    page = html.unescape(render(summary))
    assert verdict.sentence in page
    assert f"<h1>{result.recommendation.headline}</h1>" in page


def test_harm_to_a_named_group_is_no_harm_to_learned_groups_in_this_case():
    """The case that once read "NO HARM FOUND" in the terminal and "harm" in JSON."""
    result = harm_to_women_only()
    assert "violated" not in set(result.questions["verdict"])
    assert result.named.set_index("group").loc["sex = f", "p_corrected"] < 0.001
    assert str(result.verdict).startswith("HARM: for sex = f ")


ANSWERS = np.array(["violated", "satisfied", "undecided"])
STATUSES = {"harm", "no_harm", "undecided", "nothing_gained", "unchanged"}


@functools.cache
def audited(kind):
    """A real audit: of one or several losses, with or without margin and named groups, or of the pooled one alone."""
    losses, margin, named, own = [
        (("error",), 0.0, True, None),
        (("error", "fpr", "fnr"), 0.0, True, None),
        (("cost", "error"), 0.02, True, None),
        (("fnr",), 0.01, False, None),
        (("error",), 0.0, True, [2, 2]),
    ][kind]
    rng = np.random.default_rng(kind)
    y, groups = rng.integers(0, 2, 120), np.repeat([0, 1], 60)
    predictions = np.where(rng.random((120, 2)) < 0.7, y[:, None], 1 - y[:, None])
    people = pd.DataFrame({"sex": np.tile(["f", "m"], 60), "town": rng.integers(0, 3, 120)}) if named else None
    costs = {"fp": 1, "fn": 5}
    pooled = np.where(rng.random(120) < 0.7, y, 1 - y)
    return audit(
        y, predictions, groups, pooled=pooled, sensitive_features=people, losses=losses, costs=costs, margin=margin,
        own=own,
    )  # fmt: skip


def random_result(seed):
    """One of these audits with other answers, from all alike to all kinds, and another total gain."""
    rng = np.random.default_rng(seed)
    result = audited(seed % 5)
    chances = rng.dirichlet([0.3, 0.5, 0.5])

    def answered(table):
        answers = rng.choice(ANSWERS, len(table), p=chances)
        return table.assign(verdict=answers, p_corrected=rng.random(len(table)))

    gain = rng.normal(0, 0.05, len(result.totals)).round(3)
    totals = result.totals.assign(gain=gain, low=gain - 0.01, high=gain + 0.01)
    named = None if result.named is None else answered(result.named)
    questions = answered(result.questions)
    evidence = result.evidence.assign(**{name: rng.random(2) ** 8 for name in ("p_loss", "p_no_gain")})
    # What some groups would do alone, with answers of its own; without it nothing is recommended for some groups.
    chosen = supported(questions, evidence, result.level)
    deployed = tuple(evidence["group"][chosen])
    trial = Trial(deployed, totals, result.rates, None if named is None else answered(result.named))
    return replace(result, questions=questions, named=named, totals=totals, evidence=evidence, trial=trial)


def test_the_word_follows_from_the_answers():
    seen = set()
    for seed in range(200):
        result = random_result(seed)
        status, answers = result.verdict.status, set(result.to_frame()["verdict"])
        seen.add(status)
        assert (status == "harm") == ("violated" in answers)
        assert status != "no_harm" or answers == {"satisfied"}
        assert "undecided" not in answers or status in ("harm", "undecided", "nothing_gained", "unchanged")
    assert seen == STATUSES  # Otherwise 200 results would show little.


def test_the_recommendation_never_contradicts_the_verdict():
    seen = set()
    for seed in range(60):
        result = random_result(seed)
        status, advice = result.verdict.status, result.recommendation
        seen.add((status, advice.kind))
        harmed = set(result.questions.loc[result.questions["verdict"] == "violated", "group"].astype(str))
        assert not harmed & set(advice.deploy)
        assert not set(advice.deploy) & set(advice.keep)
        assert (advice.kind == "do_not_deploy") <= (status == "harm")
        assert (status == "harm") == (advice.kind in ("do_not_deploy", "deploy_some")) or advice.kind == "deploy_some"
        assert status not in ("unchanged", "nothing_gained") or advice.kind == "keep"
        if advice.kind in ("keep", "do_not_deploy"):
            assert advice.deploy == ()
        else:
            assert advice.deploy
            assert bool(advice.keep) == (advice.kind == "deploy_some")
            told = result.named if advice.kind == "deploy" else result.trial.named
            assert told is None or "violated" not in set(told["verdict"])
    assert {kind for _, kind in seen} == {"deploy", "deploy_some", "keep", "do_not_deploy"}
    assert {"harm", "undecided"} <= {status for status, kind in seen if kind == "deploy_some"}
