"""Scorecard: points that add up by hand, what must change nothing, awkward columns and bad input."""

import ast

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.metrics import roc_auc_score

from cases import slow_but
from dafh import Scaling, Scorecard
from dafh.classifiers import stratified_folds
from dafh.columns.kinds import category_name
from dafh.datasets import DATASETS, FETCHERS
from dafh.datasets.sources import is_available
from dafh.exceptions import EffectsLeftOutWarning, InputError
from dafh.linear.newton import fit_penalized
from dafh.linear.scorecard import monotonic_constraints


def people(n=400, seed=0):
    """Numbers with gaps, a date, a flag and categories; the label depends on most of them."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "income": rng.lognormal(8, 1, n).round(2),
            "since": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), "D"),
            "member": rng.random(n) < 0.4,
            "job": rng.choice(["cook", "clerk", "pilot"], n, p=[0.5, 0.4, 0.1]),
        }
    )
    score = (table.age - 40) / 10 + 2 * table.member - (table.job == "cook")
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    return table, (score + rng.logistic(size=n) > 0).map({False: "no", True: "yes"}).to_numpy()


TABLE, LABELS = people()


def fitted(table=TABLE, labels=LABELS, **settings):
    return Scorecard(**{"strength": 1.0, **settings}).fit(table, labels)


# ---- points by hand ----


def by_hand(model, table):
    """Scores from the texts and points of `table()`, with bins found by reading their names."""
    printed, scores = model.table(), np.tile(model.intercept_, (len(table), 1))
    points = printed.columns[3:]
    for column in model.binning_.columns:
        part = printed[printed["column"] == column.name]
        find = _category_places if column.is_category else _number_places
        scores += part[points].to_numpy()[find(part["bin"].tolist(), table[column.name])]
    return scores[:, 0] if len(points) == 1 else scores


def _number_places(names, values):
    if values.dtype == bool:
        values = values.astype(float)
    is_date = pd.api.types.is_datetime64_any_dtype(values)
    ends = [name.split(" to ")[-1].removeprefix("up to ") for name in names[:-2]]
    read = pd.DatetimeIndex(ends) if is_date else np.array([float(end.replace(",", "")) for end in ends])
    return np.where(values.isna(), len(names) - 1, np.searchsorted(read, values, side="left"))


def _category_places(names, values):
    place = {ast.literal_eval(name) if name[0] in "'\"" else name: number for number, name in enumerate(names)}
    words = ["missing" if pd.isna(value) else category_name(value) for value in values]
    return np.array([place.get(word, place.get("(other)", len(names) - 1)) for word in words])


def with_gaps_and_news(table, seed=1):
    """Rows with gaps in every column, and categories never seen."""
    rng, table = np.random.default_rng(seed), table.copy()
    for name in table.columns:
        table[name] = table[name].astype(float) if table[name].dtype.kind in "bi" else table[name]
        table.loc[rng.random(len(table)) < 0.1, name] = None
        if table[name].dtype == object or pd.api.types.is_string_dtype(table[name]):
            table.loc[rng.random(len(table)) < 0.1, name] = "never heard of"
    return table


@pytest.mark.parametrize("dataset", slow_but(DATASETS, "german", "arrest"))
def test_printed_points_add_up_to_the_scores_on_the_papers_data(dataset):
    if not all(is_available(file) for file in DATASETS[dataset].files):
        pytest.skip(f"needs the data set {dataset} at hand: DAFH_DATA names no folder")
    data = FETCHERS[dataset]()
    X, y = data.X, data.y
    some = np.random.default_rng(0).permutation(len(X))[:1500]
    model = fitted(X.iloc[some], y.iloc[some])
    for rows in (X.iloc[:3000], with_gaps_and_news(X.iloc[:3000])):
        np.testing.assert_allclose(by_hand(model, rows), model.decision_function(rows), atol=1e-9)


def test_printed_points_add_up_with_dates_flags_gaps_and_unseen_categories():
    model = fitted()
    for rows in (TABLE, with_gaps_and_news(TABLE)):
        np.testing.assert_allclose(by_hand(model, rows), model.decision_function(rows), atol=1e-9)


def test_points_are_0_on_average_in_every_column():
    table = fitted().table()
    means = (table.points * table["rows"]).groupby(table["column"]).sum()
    np.testing.assert_allclose(means, 0, atol=1e-12)
    np.testing.assert_allclose(table.groupby("column")["rows"].sum(), 1)


# ---- what changes nothing ----


@pytest.mark.parametrize("change", [lambda x: x * 10, lambda x: x / 1000, lambda x: x - 5000])
def test_units_of_a_column_change_nothing(change):
    other = TABLE.assign(income=change(TABLE.income), age=change(TABLE.age))
    np.testing.assert_allclose(fitted(other).decision_function(other), fitted().decision_function(TABLE), atol=1e-7)


def test_a_weight_of_2_is_the_row_twice():
    times = 1 + np.arange(len(TABLE)) % 2
    repeated = np.repeat(np.arange(len(TABLE)), times)
    other = fitted(TABLE.iloc[repeated], LABELS[repeated])
    weighted = Scorecard(strength=1.0).fit(TABLE, LABELS, times)
    np.testing.assert_allclose(weighted.decision_function(TABLE), other.decision_function(TABLE), atol=1e-6)


# ---- strengths ----


def noisy(n_noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, n_noise + 1)).round(1)
    return X, (X[:, 0] + rng.logistic(size=150) > 0).astype(np.intp)


def plain_losses(found, seed):
    """Log-loss in cross-validation with both factors, by plain fits."""
    rows, losses = found.rows, []
    for factor in (1.0, 3.0):
        total, penalty = 0.0, factor * found.solution.penalty / found.factor
        for train, test in stratified_folds(rows.label, 5, seed):
            plain = fit_penalized(rows.take(train), penalty)
            total += rows.take(test).loss(rows.design.take(test).logits(plain.coefficients))
        losses.append(total)
    return losses


def test_the_factor_is_that_with_the_lower_loss_in_cross_validation():
    chosen = []
    for n_noise, seed in ((3, 0), (3, 1), (3, 2)):
        X, y = noisy(n_noise, seed)
        found = Scorecard(random_state=seed).fit_keeping_sums(X, y)
        assert found.factor == (1.0, 3.0)[int(np.argmin(plain_losses(found, seed)))]
        chosen.append(found.factor)
    assert set(chosen) == {1.0, 3.0}


def thresholds(n_rows, n_columns, n_effects, seed):
    """Columns of which a few count where they are low, or where they are high, and nowhere else."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    score = sum((2 - 4 * (j % 2)) * ((X[:, j] > 1.6) if j % 3 else (X[:, j] < -1.6)) for j in range(n_effects))
    return X, (score + rng.logistic(size=n_rows) > 0).astype(np.intp), score


def test_a_wide_table_keeps_thresholds_in_the_tails():
    X, y, score = thresholds(6000, 80, 12, seed=0)
    model = Scorecard().fit(X[:3000], y[:3000])
    best = roc_auc_score(y[3000:], score[3000:])
    assert roc_auc_score(y[3000:], model.decision_function(X[3000:])) > best - 0.03


def test_columns_of_noise_have_no_points():
    X, y, _ = thresholds(3000, 80, 12, seed=0)
    importance = Scorecard().fit(X, y).importance()
    noise = [f"x{j}" for j in range(12, 80)]
    assert (importance[noise] == 0).mean() > 0.8
    assert importance[noise].sum() < 0.2 * importance.sum()


def test_a_wide_table_of_categories_keeps_those_that_matter():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 40, (1500, 30))).rename(columns="c{}".format).map("kind {}".format)
    y = rng.random(1500) < np.where(table.c3 == "kind 7", 0.95, 0.3)
    printed = fitted(table, y).table()
    assert printed.loc[printed.points.idxmax(), ["column", "bin"]].tolist() == ["c3", "kind 7"]
    assert (printed.points.abs() > 0.1).groupby(printed["column"]).any().sum() < 10


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_wide_table_of_noise_predicts_the_shares(n_classes):
    X = np.random.default_rng(0).normal(size=(400, 150))
    model = Scorecard().fit(X, np.arange(400) % n_classes)
    assert np.abs(model.predict_proba(X) - 1 / n_classes).mean() < 0.1


def test_effects_that_rows_do_not_pay_for_are_not_left_out_silently():
    labels = np.arange(400) % 10
    levels = 2 * (labels[:, None] == np.arange(60) % 10) + np.random.default_rng(0).normal(size=(400, 60))
    with pytest.warns(EffectsLeftOutWarning, match="left out of the scorecard"):
        fitted(levels, labels)


# ---- awkward columns ----


@pytest.mark.parametrize(
    "column",
    [
        pytest.param([np.nan] * 100, id="all missing"),
        pytest.param([3.0] * 100, id="constant"),
        pytest.param([None] * 100, id="nothing"),
        pytest.param([f"text {number}" for number in range(100)], id="texts of many values"),
        pytest.param([True, None] * 50, id="flags with gaps"),
        pytest.param(pd.Categorical(["a", "b"] * 50), id="categorical"),
        pytest.param([1e99, -1e99] * 50, id="huge"),
    ],
)
def test_a_single_awkward_column_is_no_obstacle(column):
    table = pd.DataFrame({"x": column})
    model = fitted(table, np.arange(100) % 4 == 0)
    scores = model.decision_function(table)
    assert np.isfinite(scores).all()
    assert 0.2 < model.predict_proba(table)[:, 1].mean() < 0.3


def test_an_array_with_gaps_is_taken_as_it_is():
    X = TABLE[["age", "income"]].to_numpy()
    model = fitted(X, LABELS)
    named = fitted(TABLE[["age", "income"]])
    np.testing.assert_array_equal(model.decision_function(X), named.decision_function(TABLE[["age", "income"]]))
    assert model.table()["column"].unique().tolist() == ["x0", "x1"]


# ---- bad input ----


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_bins": 1}, "n_bins"),
        ({"strength": 0}, "strength"),
        ({"strength": "weak"}, "strength"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_a_parameter_that_cannot_be_is_named(settings, words):
    with pytest.raises(InputError, match=f"'{words}' parameter of Scorecard"):
        Scorecard(**settings).fit(TABLE, LABELS)


@pytest.mark.parametrize(
    ("table", "labels", "words"),
    [
        (TABLE, np.full(400, "yes"), "one class only"),
        (TABLE, [*LABELS[:-1], None], "missing values"),
        (TABLE, None, "requires y"),
        (TABLE.iloc[:0], [], "0 sample"),
        (TABLE.set_axis(["age"] * 5, axis=1), LABELS, "must be unique"),
        (np.array([["a"], ["b"]]), [0, 1], "pass a data frame"),
    ],
)
def test_rows_that_cannot_be_fitted_are_refused_in_one_sentence(table, labels, words):
    model = fitted()
    before = model.decision_function(TABLE)
    with pytest.raises(InputError, match=words):
        model.fit(table, labels)
    np.testing.assert_array_equal(model.decision_function(TABLE), before)


def test_other_columns_than_in_fit_are_refused():
    model = fitted()
    with pytest.raises(InputError, match="'age' held numbers"):
        model.predict(TABLE.assign(age="old"))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(TABLE.rename(columns={"job": "work"}))
    with pytest.raises(ValueError, match="expecting 5"):
        fitted(np.tile(np.arange(400.0), (5, 1)).T).predict(np.zeros((3, 4)))


# ---- monotonic points ----


def bumpy(n=1500, seed=0):
    """Labels that rise with `up`, fall with `down`, and bend with `bent`."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 3)).round(2), columns=["up", "down", "bent"])
    score = np.tanh(2 * table.up) - 1.5 * (table.down > 0.5) + np.cos(2 * table.bent)
    table.loc[rng.random(n) < 0.1, "up"] = np.nan
    return table, (score + rng.logistic(size=n) > 0).to_numpy()


@pytest.mark.parametrize("column", ["up", "down", "bent"])
@pytest.mark.parametrize("direction", [1, -1])
def test_points_never_go_against_a_monotonic_constraint(column, direction):
    table, y = bumpy()
    model = fitted(table, y, monotonic={column: direction})
    grid = pd.DataFrame({name: np.zeros(2001) for name in table}).assign(**{column: np.linspace(-5, 5, 2001)})
    assert (direction * np.diff(model.decision_function(grid)) >= 0).all()


def test_monotonic_points_are_the_constrained_optimum_of_scipy():
    table, y = bumpy(400)
    model = Scorecard(n_bins=6, strength=1.0, monotonic={"up": 1, "bent": -1})
    found = model.fit_keeping_sums(table, y)
    constraints = monotonic_constraints(model.binning_, found.design.tables, {"up": 1, "bent": -1})
    rows, penalty = found.rows, found.solution.penalty

    def loss(flat):
        return rows.loss(rows.design.logits(flat[:, None])) + penalty @ flat**2 / 2

    def gradient(flat):
        return rows.gradient(rows.design.logits(flat[:, None]))[:, 0] + penalty * flat

    best = minimize(
        loss,
        np.zeros(len(penalty)),
        jac=gradient,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda b: constraints @ b, "jac": lambda _: constraints},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    ours = found.solution.coefficients[:, 0]
    assert loss(ours) <= best.fun + 1e-9
    for mine, theirs in zip(rows.design.points(ours[:, None]), rows.design.points(best.x[:, None]), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
    np.testing.assert_allclose(
        rows.design.logits(ours[:, None])[:, 0], rows.design.logits(best.x[:, None])[:, 0], atol=1e-6
    )


def test_a_constraint_on_a_column_without_points_changes_nothing():
    table = TABLE.assign(same=3.0)
    plain, constrained = fitted(table), fitted(table, monotonic={"same": 1})
    np.testing.assert_allclose(constrained.decision_function(table), plain.decision_function(table), atol=1e-3)


@pytest.mark.parametrize(
    ("monotonic", "words"),
    [
        ({"weight": 1}, "'weight' of 'monotonic' is not in X"),
        ({"job": 1}, "'job' of 'monotonic' holds categories"),
        ({"age": 2}, "'monotonic' parameter of Scorecard"),
    ],
)
def test_a_constraint_that_cannot_be_is_refused(monotonic, words):
    with pytest.raises(InputError, match=words):
        fitted(monotonic=monotonic)


# ---- scaled points, reasons, stability ----

SCALING = Scaling(600, odds=50, doubling=20, favourable="no")


def test_scaled_points_double_the_odds():
    model = fitted(scaling=SCALING)
    odds = model.predict_proba(TABLE)[:, 0] / model.predict_proba(TABLE)[:, 1]
    np.testing.assert_allclose(model.scaled_points(TABLE), 600 + 20 * np.log2(odds / 50))


@pytest.mark.parametrize("bad", [{"odds": 0}, {"doubling": -20}, {"points": "many"}])
def test_a_scale_that_cannot_be_is_refused(bad):
    with pytest.raises(InputError, match="odds and doubling above 0"):
        Scaling(**({"points": 600, "odds": 50, "doubling": 20} | bad))


@pytest.mark.parametrize("scaling", [None, SCALING])
def test_reasons_add_up_to_the_score(scaling):
    model = fitted(scaling=scaling)
    rows = with_gaps_and_news(TABLE[:50])
    costs = model.reasons(rows, None).groupby("row")["cost"].sum()
    points = model.decision_function(rows) if scaling is None else model.scaled_points(rows)
    np.testing.assert_allclose(points + costs, (points + costs)[0])
    start = model.intercept_[0]
    assert (points + costs)[0] == pytest.approx(
        start if scaling is None else scaling.start + scaling.factor(["no", "yes"]) * start
    )


def test_reasons_name_the_columns_that_cost_most_first():
    reasons = fitted().reasons(TABLE[:30], 2)
    assert (reasons.groupby("row").size() <= 2).all()
    assert (reasons["cost"] > 0).all()
    assert all(costs.is_monotonic_decreasing for _, costs in reasons.groupby("row")["cost"])
    whole = fitted().reasons(TABLE[:30], None)
    largest = whole.groupby("row")["cost"].max()
    pd.testing.assert_series_equal(reasons.groupby("row")["cost"].max(), largest[largest > 0])


def test_stability_by_hand():
    table = pd.DataFrame({"job": ["cook"] * 80 + ["clerk"] * 20})
    model = fitted(table, np.arange(100) % 3 == 0)
    found = model.stability(pd.DataFrame({"job": ["cook"] * 5 + ["clerk"] * 5}), ["May"] * 10)
    assert found.loc["May", "job"] == pytest.approx((0.5 - 0.8) * np.log(0.5 / 0.8) + (0.5 - 0.2) * np.log(0.5 / 0.2))


def test_stability_names_the_column_and_the_month_that_changed():
    later = pd.concat([TABLE, TABLE.assign(age=TABLE.age + 15)])
    found = fitted().stability(later, np.repeat(["2024-01", "2024-02"], len(TABLE)))
    assert found.loc["2024-02", "age"] > 0.25
    assert (found.drop(columns="rows").drop(index="2024-02") < 0.05).all(axis=None)
    assert found.loc["2024-02", "income"] < 0.05


def test_three_classes_have_neither_constraints_nor_scales():
    labels = np.where(TABLE.job == "pilot", "maybe", LABELS)
    for settings in ({"monotonic": {"age": 1}}, {"scaling": Scaling(600, 50, 20)}):
        with pytest.raises(InputError, match="for two classes only"):
            fitted(labels=labels, **settings)
