"""The search finds the region with the best score, as trying all regions would."""

import numpy as np
import pandas as pd
import pytest

from dafh.columns.bins import Binning
from dafh.regions.search import RegionSearch


def mean_over_root(inside, outside):
    return inside[:, 1] / np.sqrt(inside[:, 0])


def search(table, value, smallest=20, score=mean_over_root, **options):
    binning = Binning.learn(table, most=options.pop("most", 32), readable=True)
    values = np.column_stack([np.ones(len(table)), value])
    return RegionSearch(binning, binning.codes(table), values, score, smallest, **options), binning


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": rng.uniform(0, 10, 3000),
            "z": rng.normal(size=3000),
            "job": rng.choice(["clerk", "cook", "driver", "nurse", "teacher"], 3000),
            "gap": np.where(rng.random(3000) < 0.2, np.nan, rng.normal(size=3000)),
        }
    )


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (lambda t: t["x"] > 7, "x is above 7"),
        (lambda t: t["x"] <= 3, "x is 3 or less"),
        (lambda t: t["job"] == "cook", "job is cook"),
        (lambda t: t["job"] != "cook", "job is not cook"),
        (lambda t: t["job"].isin(["clerk", "nurse", "cook"]), "job is clerk, cook or nurse"),
        (lambda t: (t["x"] > 4) & (t["x"] <= 6), "x is above 4, up to 6"),
        (lambda t: (t["x"] > 5) & (t["job"] == "cook"), "x is above 5 and job is cook"),
        (lambda t: t["gap"].isna(), "gap is missing"),
    ],
)
def test_a_planted_region_is_found_in_words(table, inside, words):
    rng = np.random.default_rng(1)
    value = np.where(inside(table), 1.0, -1.0) + rng.normal(0, 0.5, len(table))
    found, binning = search(table, value)
    best = found.refined(found.best()[0]).region(binning)
    assert set(str(best).split(" and ")) == set(words.split(" and "))


def test_no_single_condition_is_better_than_the_best_one(table):
    value = np.random.default_rng(2).normal(size=len(table))
    found, binning = search(table, value, smallest=100)
    best = max(one.score for one in found.best(depth=1))
    for column, about in enumerate(binning.columns):
        codes = binning.codes(table)[:, column]
        for code in range(about.n_bins - 1):
            for inside in (
                (codes == code,) if about.is_category else (codes <= code, (codes > code) & (codes < about.n_bins - 1))
            ):
                if inside.sum() >= 100:
                    assert value[inside].sum() / np.sqrt(inside.sum()) <= best + 1e-9


def test_scores_and_sizes_are_those_of_the_rows(table):
    value = np.random.default_rng(3).normal(size=len(table))
    found, _ = search(table, value)
    for candidate in found.best():
        inside = found.inside(candidate)
        assert candidate.n_rows == inside.sum() >= 20
        assert candidate.score == pytest.approx(value[inside].sum() / np.sqrt(inside.sum()), rel=1e-9)


def test_removed_rows_are_searched_no_more(table):
    rng = np.random.default_rng(4)
    value = np.where(table["x"] > 7, 2.0, np.where(table["job"] == "cook", 1.0, -1.0)) + rng.normal(0, 0.1, len(table))
    found, binning = search(table, value)
    first = found.best(depth=1)[0]
    assert str(first.region(binning)) == "x is above 7"
    found.leave_out(found.inside(first))
    assert (table["x"].to_numpy()[found.rows] <= 7).all()
    again = found.best(depth=1)[0]
    assert str(again.region(binning)) == "job is cook"
    assert again.n_rows == ((table["x"] <= 7) & (table["job"] == "cook")).sum()


def test_regions_are_neither_too_small_nor_too_large(table):
    value = np.random.default_rng(5).normal(size=len(table))
    found, _ = search(table, value, smallest=300, largest_share=0.5)
    sizes = [one.n_rows for one in found.best()]
    assert min(sizes) >= 300
    assert max(sizes) <= 1500


def test_lists_stay_short_and_conditions_few(table):
    table = table.assign(country=np.random.default_rng(6).choice([f"c{i}" for i in range(40)], len(table)))
    value = np.random.default_rng(7).normal(size=len(table))
    found, binning = search(table, value)
    for candidate in found.best(depth=2):
        region = candidate.region(binning)
        assert region.n_conditions <= 2
        assert all(len(condition.values) <= 5 for condition in region.conditions)


def test_columns_of_one_kind_only():
    table = pd.DataFrame({"job": ["a"] * 50 + ["b"] * 50})
    found, binning = search(table, np.repeat([1.0, -1.0], 50))
    assert str(found.best()[0].region(binning)) == "job is a"
    table = pd.DataFrame({"x": np.arange(100.0)})
    found, binning = search(table, np.repeat([1.0, -1.0], 50))
    assert str(found.best()[0].region(binning)).startswith("x is ")


def test_nothing_to_divide():
    found, _ = search(pd.DataFrame({"x": np.zeros(100), "job": ["a"] * 100}), np.ones(100))
    assert found.best() == []
