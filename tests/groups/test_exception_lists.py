"""Lists of exceptions: planted groups are found, as they are printed, and nothing is found where there is nothing."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier

from dafh import DAFHClassifier
from dafh.groups.exceptions import paired_mean
from dafh.incumbents import IncumbentColumns


def turned(n_rows, size, seed, kind="number"):
    """Rows in which the effect of x1 turns round at u = 5, for cooks, in three ranges of u, or nowhere; and logits."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["x1", "x2", "x3"])
    table = table.assign(
        u=rng.uniform(0, 10, n_rows).round(3), job=rng.choice(["clerk", "cook", "driver", "nurse"], n_rows)
    )
    effects = {
        "number": size * table["x1"] * np.where(table["u"] <= 5, 1, -1),
        "category": size * table["x1"] * np.where(table["job"] == "cook", 1, -1),
        "crossing": size * (table["x1"] - table["x2"]) * np.where(table["u"] <= 5, 1, -1),
        "three": size * np.where(table["u"] <= 3, table["x1"], np.where(table["u"] <= 7, -table["x1"], table["x2"])),
        "none": size * table["x1"],
    }
    logit = 0.5 * table["x3"] + effects[kind]
    return table, (rng.random(n_rows) < expit(logit)).astype(int), logit.to_numpy()


def fit(n_rows, size, seed, kind, pooled="linear", **options):
    X, y, _ = turned(n_rows, size, seed, kind)
    return DAFHClassifier(pooled=pooled, random_state=seed, **options).fit(X, y)


IN_FAST_SUITE = {("number", "linear", 2, 2000), ("category", "scorecard", 4, 2000), ("number", "linear", 8, 2000)}
SWEEP = [
    pytest.param(*case, marks=() if case in IN_FAST_SUITE else pytest.mark.slow)
    for case in product(
        ("number", "category", "crossing", "three"), ("linear", "scorecard"), (2, 3, 4, 6, 8), (2000, 10_000)
    )
]


@pytest.mark.parametrize(("kind", "pooled", "size", "n_rows"), SWEEP)
def test_planted_groups_are_found_whatever_the_size_of_the_effect(kind, pooled, size, n_rows):
    for seed in range(1 if (kind, pooled, size, n_rows) in IN_FAST_SUITE else 3):
        model = fit(n_rows, size, seed, kind, pooled)
        assert model.n_groups_ == (3 if kind == "three" else 2)
        rules = " ".join(model.exceptions_.rules)
        if kind == "category":
            assert "job is cook" in rules or "job is not cook" in rules
        else:
            cuts = {
                limit for region in model.exceptions_.regions for c in region.conditions for limit in (c.low, c.high)
            }
            wanted = (3, 7) if kind == "three" else (5,)
            assert all(min(abs(cut - near) for near in wanted) <= 0.25 for cut in cuts - {None})
        fresh, y, logit = turned(20_000, size, 1000 + seed, kind)
        best = float(((logit > 0) == y).mean())
        assert model.score(fresh, y) > best - (0.02 if n_rows == 2000 else 0.01)


@pytest.mark.parametrize("pooled", ["linear", "scorecard"])
def test_nothing_is_found_where_there_is_nothing(pooled):
    for seed in range(2):
        model = fit(1500, 1, seed, "none", pooled)
        assert model.n_groups_ == 1
        assert model.exceptions_.regions == ()
        assert model.exceptions_.rules == ["everybody"]


@pytest.fixture(scope="module")
def model():
    return fit(2000, 3, 0, "number")


def test_the_printed_list_gives_every_row_its_group(model):
    table = turned(500, 3, 7)[0]
    table.loc[:50, "u"] = np.nan
    table.loc[30:80, "job"] = None
    table.loc[60:90, "job"] = "astronaut"
    group = np.full(len(table), len(model.exceptions_.regions))
    for number, region in reversed(list(enumerate(model.exceptions_.regions))):
        group[region.holds(table)] = number
    assert (model.predict_group(table) == group).all()


def test_the_figures_are_about_the_rows_that_the_rule_selects(model):
    X, y, _ = turned(2000, 3, 0)
    share = model.exceptions_.to_frame()["rows"]
    group = model.predict_group(X)
    assert share.tolist() == pytest.approx([(group == k).mean() for k in range(model.n_groups_)])
    assert model.guard_report_.table["rows"].tolist() == [(group == k).sum() for k in range(model.n_groups_)]
    wrong = model.pooled_.predict(X) != y
    pooled_error = [wrong[group == k].mean() for k in range(model.n_groups_)]
    # Out of fold, and so not to the digit.
    assert model.guard_report_.table["pooled_loss"].tolist() == pytest.approx(pooled_error, abs=0.03)


def test_figures_of_a_fixed_incumbent_are_exact():
    X, y, _ = turned(2000, 3, 0)
    incumbent = DAFHClassifier(1, pooled="linear", guard=None, random_state=0).fit(X, y).pooled_
    model = DAFHClassifier(pooled=incumbent, random_state=0).fit(X, y)
    group, wrong = model.predict_group(X), incumbent.predict(X) != y
    for k in range(model.n_groups_):
        assert model.guard_report_.table["pooled_loss"].iloc[k] == pytest.approx(wrong[group == k].mean(), abs=1e-12)


def test_a_fixed_number_of_groups_is_not_questioned():
    assert fit(1500, 1, 0, "none", n_groups=3).n_groups_ == 3


def test_rules_stay_short():
    model = fit(3000, 3, 1, "three", n_groups=9)
    assert model.n_groups_ <= 9
    for region in model.exceptions_.regions:
        assert region.n_conditions <= 2
        assert all(len(condition.values) <= 5 for condition in region.conditions)


def test_a_stale_incumbent_may_be_corrected_for_everybody():
    X, y, _ = turned(3000, 1, 0, "none")
    columns = ["x1", "x2", "x3"]
    old = RandomForestClassifier(50, min_samples_leaf=20, random_state=0).fit(-X[columns], y)
    model = DAFHClassifier(1, pooled=old, random_state=0).fit(X[columns], y)
    fresh, y_fresh, _ = turned(5000, 1, 9, "none")
    assert model.n_groups_ == 1
    assert model.score(fresh[columns], y_fresh) > old.score(fresh[columns], y_fresh) + 0.1
    assert model.pooled_.predict(fresh[columns]).tolist() == old.predict(fresh[columns]).tolist()


def test_a_region_that_only_needs_another_cut_off_is_told_so():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=6000), "town": rng.choice(["a", "b", "c"], 6000)})
    score = X["x"] + 2.0 * (X["town"] == "b")
    y = (rng.random(6000) < expit(score)).astype(int)
    X = X.assign(score=expit(X["x"]))
    model = DAFHClassifier(2, pooled=IncumbentColumns("score"), random_state=0).fit(X, y)
    assert "town is b" in model.exceptions_.rules
    assert "another cut-off" in model.exceptions_.server(model.exceptions_.rules.index("town is b"))


def test_paired_mean_weighs_rows():
    mean, error = paired_mean(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    assert (mean, error) == (2.0, pytest.approx(np.sqrt(2) / 2))
    assert paired_mean(np.zeros(0), np.zeros(0)) == (0.0, 0.0)


def test_rows_of_a_person_count_once_in_the_standard_error():
    difference, weight = np.random.default_rng(0).normal(size=50), np.ones(50)
    _, error = paired_mean(difference, weight)
    repeated = paired_mean(np.repeat(difference, 4), np.ones(200), np.repeat(np.arange(50), 4))
    assert repeated[1] == pytest.approx(error)


def test_a_model_that_was_brought_is_compared_with_a_new_scorecard():
    X, y, _ = turned(1500, 2, 0)
    old = RandomForestClassifier(20, max_depth=2, random_state=0).fit(X[["x1", "x2", "x3"]].iloc[:300], y[:300])
    model = DAFHClassifier(pooled=old, random_state=0).fit(X[["x1", "x2", "x3"]].iloc[300:], y[300:])
    sentence = model.exceptions_.replacement
    assert sentence.startswith("A new scorecard instead of the model in use: error rate ")
    assert sentence in str(model.exceptions_)
    assert fit(600, 1, 0, "none").exceptions_.replacement is None
