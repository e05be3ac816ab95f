"""The logistic regression for users who bring none: its optimum, its invariances, and what it refuses."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.preprocessing import StandardScaler

from dafh.linear import StandardizedLogisticRegression


@pytest.fixture(scope="module")
def rows():
    """400 rows, three columns in very different units, two classes that overlap."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) * [1e-3, 1.0, 1e4] + [5.0, 0.0, -1e4]
    score = (X - X.mean(axis=0)) / X.std(axis=0) @ [1.0, -0.5, 0.3]
    return X, (score + rng.logistic(size=400) > 0).astype(int)


def newton(X, y, weight, C):
    """Penalised logistic regression on standardised columns, by Newton's method from the textbook."""
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    Z = np.column_stack([(X - mean) / scale, np.ones(len(X))])
    penalty = np.diag([1 / C] * X.shape[1] + [0])
    beta = np.zeros(Z.shape[1])
    for _ in range(8):
        p = expit(Z @ beta)
        gradient = Z.T @ (weight * (p - y)) + penalty @ beta
        beta -= np.linalg.solve(Z.T @ (Z * (weight * p * (1 - p))[:, None]) + penalty, gradient)
    return beta[:-1] / scale, beta[-1] - (beta[:-1] / scale) @ mean


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_two_classes_are_fitted_to_the_optimum(rows, C):
    X, y = rows
    weight = np.random.default_rng(1).uniform(0.1, 3, len(y))
    coefficients, intercept = newton(X, y, weight, C)
    model = StandardizedLogisticRegression(C).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_[0], coefficients, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-6)


def test_three_classes_are_fitted_to_the_optimum():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2)) * [1, 50]
    y = np.digitize(X[:, 0] + rng.logistic(size=200), [-1, 1])
    Z, C = StandardScaler().fit_transform(X), 0.5

    def objective(flat):
        coefficients, intercepts = flat[:6].reshape(3, 2), flat[6:]
        logits = Z @ coefficients.T + intercepts
        return (logsumexp(logits, axis=1) - logits[np.arange(200), y]).sum() + (coefficients**2).sum() / (2 * C)

    model = StandardizedLogisticRegression(C).fit(X, y)
    mine = np.concatenate([(model.coef_ * X.std(axis=0)).ravel(), model.intercept_ + model.coef_ @ X.mean(axis=0)])
    best = minimize(objective, np.zeros(9), method="BFGS", options={"gtol": 1e-8})
    assert objective(mine) == pytest.approx(best.fun, rel=1e-9)


def test_many_columns_take_another_solver_to_the_same_optimum():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 301)) * 10.0 ** rng.integers(-2, 3, 301)  # One more than Newton's method is used for.
    y = (X[:, 0] / X[:, 0].std() + rng.logistic(size=500) > 0).astype(int)
    coefficients, _ = newton(X, y, np.ones(500), 0.1)
    found = StandardizedLogisticRegression(0.1).fit(X, y).coef_[0]
    np.testing.assert_allclose(found * X.std(axis=0), coefficients * X.std(axis=0), atol=1e-4)


def test_the_units_of_a_column_change_the_coefficients_and_no_prediction(rows):
    X, y = rows
    factor, shift = np.array([1e6, -2.0, 1e-5]), np.array([3.0, 1e3, -7.0])
    first = StandardizedLogisticRegression().fit(X, y)
    second = StandardizedLogisticRegression().fit(X * factor + shift, y)
    np.testing.assert_allclose(second.predict_proba(X * factor + shift), first.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(second.coef_ * factor, first.coef_, rtol=1e-6)
    assert first.C_ == second.C_


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_a_weight_of_three_is_the_row_three_times(rows, C):
    X, y = rows
    times = np.random.default_rng(4).integers(0, 4, len(y))
    weighted = StandardizedLogisticRegression(C).fit(X, y, times)
    repeated = StandardizedLogisticRegression(C).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-6)


@pytest.mark.parametrize(("n_rows", "expected"), [(200, True), (199, False)])
def test_the_strength_is_chosen_below_50_rows_for_each_coefficient(n_rows, expected):
    """With pure noise in four columns, a choice is always for caution."""
    rng = np.random.default_rng(5)
    model = StandardizedLogisticRegression().fit(rng.normal(size=(n_rows, 4)), rng.integers(0, 2, n_rows))
    assert (model.C_ == 1.0) == expected


# ---- the strength ----


def make_rows(n, d, seed=0, n_classes=2):
    """One column in five matters, a little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d) + rng.normal(size=d)
    matters = (X - X.mean(axis=0)) / X.std(axis=0) * (np.arange(d) % 5 == 0)
    score = matters.sum(axis=1) / np.sqrt(d) + rng.logistic(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def test_few_rows_are_regularised_and_the_better_for_it():
    X, y = make_rows(5300, 60)
    chosen, fixed = (StandardizedLogisticRegression(C=C).fit(X[:300], y[:300]) for C in ("auto", 1.0))
    assert chosen.C_ < 1.0
    assert chosen.score(X[300:], y[300:]) > fixed.score(X[300:], y[300:])


def test_a_class_of_one_row_cannot_be_cross_validated():
    X, y = make_rows(100, 10)
    y[:] = 0
    y[3] = 1
    assert StandardizedLogisticRegression().fit(X, y).C_ == 1.0
