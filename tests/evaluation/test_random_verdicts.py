"""200 random results: terminal, JSON, report and exit code say the same about each, and no word contradicts another."""

import functools
import html
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cases import first_by_default
from dafh import audit
from dafh.evaluation.deployment import Trial, supported
from dafh.report import render, summarize
from test_verdict_everywhere import run_audit

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


@pytest.mark.parametrize("first", first_by_default(range(0, 200, 20), 1))
def test_twenty_random_results_get_one_word_each_everywhere(first, monkeypatch):
    blank = summarize()
    for seed in range(first, first + 20):
        result = random_result(seed)
        verdict, advice = result.verdict, result.recommendation
        terminal = run_audit(monkeypatch, result, "--fail-on-harm")
        machines = run_audit(monkeypatch, result, "--json", "--fail-on-harm")
        assert terminal.stdout.startswith(f"{advice}\n\n{verdict.headline.upper()}: {verdict.sentence}\n")
        told = json.loads(machines.stdout)
        assert (told["verdict"], told["recommendation"]) == (verdict.to_dict(), advice.to_dict())
        assert terminal.exit_code == machines.exit_code == (1 if verdict.status == "harm" else 0)
        # The page without its charts, which say nothing about the verdict and take seconds.
        summary = summarize(result=result)
        page = render({**blank, **{key: summary[key] for key in ("verdict", "recommendation")}})
        beginning = html.unescape(page[page.index('<div class="advice') :][:5000])
        assert beginning.startswith(f'<div class="advice {advice.kind}">')
        assert f"<h1>{advice.headline}</h1>" in beginning
        assert f'<p class="verdict {verdict.status}">' in beginning
        assert f"{verdict.headline}:</b> {verdict.sentence}" in beginning


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
    for seed in range(100):
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
