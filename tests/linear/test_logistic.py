"""The logistic regression for users who bring none: its optimum, its invariances, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dafh.exceptions import InputError
from dafh.linear import StandardizedLogisticRegression, linear_discrepancy


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


def test_a_constant_column_has_no_influence(rows):
    X, y = rows
    model = StandardizedLogisticRegression().fit(np.column_stack([X, np.full(len(y), 7.0)]), y)
    assert model.coef_[0, -1] == 0
    np.testing.assert_allclose(model.coef_[0, :-1], StandardizedLogisticRegression().fit(X, y).coef_[0], rtol=1e-9)


def test_labels_and_names_of_columns_are_kept(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=["größe", "b", "c"])
    model = StandardizedLogisticRegression().fit(frame, np.where(y, "yes", "no"))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == ["größe", "b", "c"]
    assert set(model.predict(frame)) == {"no", "yes"}
    assert not hasattr(StandardizedLogisticRegression().fit(X, y), "feature_names_in_")


def test_separable_rows_have_finite_coefficients():
    X = np.arange(10.0)[:, None]
    model = StandardizedLogisticRegression().fit(X, X[:, 0] > 4)
    assert np.isfinite(model.coef_).all()
    assert model.score(X, X[:, 0] > 4) == 1


@pytest.mark.parametrize(("n_rows", "expected"), [(200, True), (199, False)])
def test_the_strength_is_chosen_below_50_rows_for_each_coefficient(n_rows, expected):
    """With pure noise in four columns, a choice is always for caution."""
    rng = np.random.default_rng(5)
    model = StandardizedLogisticRegression().fit(rng.normal(size=(n_rows, 4)), rng.integers(0, 2, n_rows))
    assert (model.C_ == 1.0) == expected


def test_with_more_classes_there_are_more_coefficients_to_choose_for():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 4))  # 100 rows for each column, 33 for each column and class
    assert StandardizedLogisticRegression().fit(X, rng.integers(0, 2, 400)).C_ == 1.0
    assert StandardizedLogisticRegression().fit(X, rng.integers(0, 3, 400)).C_ < 1.0


def test_a_clone_has_the_same_setting_and_is_not_fitted(rows):
    model = clone(StandardizedLogisticRegression(C=0.2).fit(*rows))
    assert model.C == 0.2
    assert not hasattr(model, "coef_")
    assert model.set_params(C="auto").fit(*rows).C_ == 1.0
    assert isinstance(model, LogisticRegression)


@pytest.mark.parametrize("C", [0, -1.0, "best"])
def test_a_strength_that_makes_no_sense_is_refused(rows, C):
    with pytest.raises(ValueError, match="'C' parameter"):
        StandardizedLogisticRegression(C).fit(*rows)


# ---- discrepancy ----


def interval_discrepancy(one, other):
    """The discrepancy in one column by enumeration: two thresholds disagree on an interval of the line."""
    cuts = np.r_[-np.inf, np.unique(np.r_[one, other]), np.inf]
    shares = [
        abs(np.mean((one > low) & (one <= high)) - np.mean((other > low) & (other <= high)))
        for low in cuts
        for high in cuts[cuts >= low]
    ]
    return max(shares)


@pytest.mark.parametrize("seed", range(6))
def test_the_search_never_finds_more_than_there_is(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 8, rng.integers(1, 15)), rng.integers(0, 8, rng.integers(1, 15))
    found = linear_discrepancy(one[:, None], other[:, None], random_state=seed)
    assert 0 <= found <= interval_discrepancy(one, other) + 1e-9


def test_the_search_finds_an_interval_that_one_threshold_misses():
    one, other = np.r_[np.full(10, -3.0), np.full(10, 3.0)], np.zeros(20)
    assert interval_discrepancy(one, other) == 1
    assert linear_discrepancy(one[:, None], other[:, None]) == pytest.approx(1)


def test_discrepancy_is_the_same_in_both_directions():
    rng = np.random.default_rng(7)
    one, other = rng.normal(size=(150, 2)), rng.normal([0.7, 0], size=(80, 2))
    assert linear_discrepancy(one, other) == pytest.approx(linear_discrepancy(other, one), abs=0.01)


def test_more_starts_never_find_less():
    rng = np.random.default_rng(8)
    one, other = rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) * [1, 2, 1]
    assert linear_discrepancy(one, other, n_starts=1) <= linear_discrepancy(one, other, n_starts=8) + 1e-12


def test_the_same_seed_gives_the_same_discrepancy():
    rng = np.random.default_rng(9)
    one, other = rng.normal(size=(2, 50, 2))
    generator = [linear_discrepancy(one, other, random_state=np.random.default_rng(3)) for _ in range(2)]
    assert generator[0] == generator[1] == linear_discrepancy(one, other, random_state=3)


@pytest.mark.parametrize("shape", [(0, 2), (4,), (3, 3)])
def test_rows_that_cannot_be_compared_are_refused_with_their_shapes(shape):
    with pytest.raises(InputError, match=r"X and X_reference must have rows") as caught:
        linear_discrepancy(np.zeros(shape), np.zeros((5, 2)))
    assert str(shape) in str(caught.value)


def test_at_least_one_start_is_needed():
    with pytest.raises(InputError, match="n_starts must be at least 1, got 0"):
        linear_discrepancy(np.zeros((3, 1)), np.ones((3, 1)), n_starts=0)
