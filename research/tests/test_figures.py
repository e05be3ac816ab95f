"""Figures beside a printed rule are those that pandas gives on the rows that its words select."""

import numpy as np
import pandas as pd
import pytest

from dafh import DAFHClassifier
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
        tested = level(rows[member & found.discovered.tested_rows(number)], group["loss"])
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
