"""200 random results: terminal, JSON, report and exit code say the same word about each."""

import functools
import html
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dafh import audit
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

    totals = result.totals.assign(gain=rng.normal(0, 0.05, len(result.totals)).round(3))
    named = None if result.named is None else answered(result.named)
    return replace(result, questions=answered(result.questions), named=named, totals=totals)


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_twenty_random_results_get_one_word_each_everywhere(first, monkeypatch):
    blank = summarize()
    for seed in range(first, first + 20):
        result = random_result(seed)
        verdict = result.verdict
        terminal = run_audit(monkeypatch, result, "--fail-on-harm")
        machines = run_audit(monkeypatch, result, "--json", "--fail-on-harm")
        assert terminal.stdout.startswith(f"{verdict.headline.upper()}: {verdict.sentence}\n")
        assert json.loads(machines.stdout)["verdict"] == verdict.to_dict()
        assert terminal.exit_code == machines.exit_code == (1 if verdict.status == "harm" else 0)
        # The page without its charts, which say nothing about the verdict and take seconds.
        page = render({**blank, "verdict": summarize(result=result)["verdict"]})
        beginning = html.unescape(page[page.index('<div class="verdict') :][:3000])
        assert beginning.startswith(f'<div class="verdict {verdict.status}">')
        assert f"<h1>{verdict.headline}: {verdict.sentence}</h1>" in beginning


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
