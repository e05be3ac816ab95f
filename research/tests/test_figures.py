"""Figures beside printed rules are those that pandas gives on the rows that their words select."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dafh import DAFHClassifier
from dafh.cli import main
from dafh.datasets import DATASETS
from dafh.datasets.sources import is_available
from research.benchmarks.losers import failures
from research.guarantees.harm import World, stale_incumbent
from tests.rule_words import Reader, groups_by_words

# Rows that count for each loss; in these data sets the positive class is 1.
COUNTED = {"error": "_y >= 0", "fpr": "_y == 0", "fnr": "_y == 1"}


def level(rows, loss):
    counted = rows.query(COUNTED[loss])
    return len(counted), (counted["_y"] != counted["_predicted"]).mean()


@pytest.mark.parametrize("dataset", ["violent", *(pytest.param(n, marks=pytest.mark.slow) for n in DATASETS)])
def test_failing_groups_have_the_numbers_that_pandas_gives_on_the_same_rows(dataset):
    if not all(is_available(file) for file in DATASETS[dataset].files):
        pytest.skip(f"needs the data set {dataset} at hand")
    found, rows = failures(dataset)
    for loss, value in found.overall.items():
        assert value == pytest.approx(level(rows, loss)[1], abs=1e-12)
    for number, group in found.discovered.table.iterrows():
        member = Reader(group["rule"], rows).rule()
        assert (member.sum(), member.mean()) == (group["rows"], pytest.approx(group["share"]))
        judged = found.discovered.judged[number]
        assert member[judged].all()
        tested = level(rows[judged], group["loss"])
        assert tested == (group["tested"], pytest.approx(group["harm"], abs=1e-12))


def fit_beside_incumbent(seed, n_rows=1000):
    world, rng = World(seed), np.random.default_rng([seed, 1])
    X = world.columns(n_rows, rng)
    y = (rng.random(n_rows) < world.probability(X)).astype(int)
    incumbent = stale_incumbent(world, n_rows, seed, rng)
    return DAFHClassifier(4, pooled=incumbent, random_state=seed).fit(X, y), X, y


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(50), marks=pytest.mark.slow)], ids=["two", "fifty"])
def test_the_guards_table_is_about_the_rows_that_its_printed_rules_select(seeds):
    for seed in seeds:
        model, X, y = fit_beside_incumbent(seed)
        table, exceptions = model.guard_report_.table, model.exceptions_.to_frame()
        group = groups_by_words(exceptions["rule"].tolist(), X) if len(table) > 1 else np.zeros(len(X), int)
        by_words = pd.Series(model.pooled_.predict(X) != y).groupby(group).agg(["size", "mean"])
        assert table["rows"].tolist() == by_words["size"].tolist()
        assert table["pooled_loss"].tolist() == pytest.approx(by_words["mean"].tolist(), abs=1e-12)
        assert exceptions["rows"].tolist() == pytest.approx((by_words["size"] / len(X)).tolist())


def test_the_example_of_the_page_prints_what_stands_below_it(tmp_path, monkeypatch):
    if not all(is_available(file) for file in DATASETS["bank"].files):
        pytest.skip("needs the data set bank at hand")
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    section = page.split("## An example")[1].split("\n## ")[0]
    for block in re.findall(r"^```python\n(.*?)^```", section, flags=re.S | re.M):
        exec(compile(block, "docs/compare.md", "exec"), {})
    (command,) = re.findall(r"^    dafh (compare rows.csv .*)$", page, flags=re.M)
    result = CliRunner().invoke(main, [*command.split(), "--fail-on-harm"])
    assert result.exit_code == 1
    shown = [
        line[4:].rstrip() for line in section[section.index("    DO NOT") :].split("\n\nCustomers")[0].splitlines()
    ]
    printed = {line.rstrip() for line in result.output.splitlines()}
    assert len(shown) >= 8
    assert [line for line in shown if line not in printed] == []
