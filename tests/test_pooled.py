"""The pooled classifier of those who bring none: converged, in the units of X, and as strong as its rows allow."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dafh.classifiers.logits import residual
from dafh.linear.logistic import StandardizedLogisticRegression


def make_rows(n, d, seed=0, n_classes=2):
    """One column in five matters, a little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d) + rng.normal(size=d)
    matters = (X - X.mean(axis=0)) / X.std(axis=0) * (np.arange(d) % 5 == 0)
    score = matters.sum(axis=1) / np.sqrt(d) + rng.logistic(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_logistic_regression_of_standardised_columns(n_classes):
    X, y = make_rows(2000, 4, n_classes=n_classes)
    model = StandardizedLogisticRegression(C=0.3).fit(X, y)
    scaler = StandardScaler().fit(X)
    expected = LogisticRegression(C=0.3, tol=1e-10, max_iter=10_000).fit(scaler.transform(X), y)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(scaler.transform(X)), atol=1e-5)
    assert model.C_ == 0.3


def test_many_rows_need_no_choice():
    assert StandardizedLogisticRegression().fit(*make_rows(1000, 20)).C_ == 1.0


def test_few_rows_are_regularised_and_the_better_for_it():
    X, y = make_rows(5300, 60)
    chosen, fixed = (StandardizedLogisticRegression(C=C).fit(X[:300], y[:300]) for C in ("auto", 1.0))
    assert chosen.C_ < 1.0
    assert chosen.score(X[300:], y[300:]) > fixed.score(X[300:], y[300:])


def test_the_choice_follows_the_weights():
    # A sharp rule in the first half, labels at random in the second: together they ask for caution, the first does not.
    X, y = make_rows(600, 30)
    standard = StandardScaler().fit_transform(X)
    y[:300] = (standard[:, 0] + standard[:, 5] > 0)[:300]
    y[300:] = np.random.default_rng(1).integers(0, 2, 300)
    equal, first_half = (
        StandardizedLogisticRegression().fit(X, y, weight) for weight in (None, 1.0 * (np.arange(600) < 300))
    )
    assert equal.C_ < first_half.C_


@pytest.mark.parametrize("n", [20, 59])
def test_too_few_rows_to_spare_any_leave_the_choice_alone(n):
    assert StandardizedLogisticRegression().fit(*make_rows(n, 10)).C_ == 1.0


def test_a_class_of_one_row_cannot_be_cross_validated():
    X, y = make_rows(100, 10)
    y[:] = 0
    y[3] = 1
    assert StandardizedLogisticRegression().fit(X, y).C_ == 1.0


def test_the_same_rows_give_the_same_choice():
    X, y = make_rows(200, 30)
    first, second = (StandardizedLogisticRegression().fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_residuals_are_what_happened_minus_what_was_expected():
    np.testing.assert_allclose(residual(np.array([[0.0], [0.0]]), np.array([0, 1])), [[-0.5], [0.5]])
    several = residual(np.log([[0.2, 0.3, 0.5]]), np.array([1]))
    np.testing.assert_allclose(several, [[-0.2, 0.7, -0.5]])
