"""Logistic regression where the user brings no classifier, and the discrepancy of Theorem 2."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from dafh.classifiers.logits import residual
from dafh.exceptions import InputError
from dafh.linear import StandardizedLogisticRegression, linear_discrepancy


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


def test_folds_of_rows_without_weight_do_not_break_the_choice():
    X, y = make_rows(100, 10)
    for _, left_out in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        weight = np.ones(100)
        weight[left_out] = 0
        assert np.isfinite(StandardizedLogisticRegression().fit(X, y, weight).coef_).all()


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


def test_discrepancy_is_small_between_equal_groups_and_one_between_distant_ones():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 3000, 3))
    assert linear_discrepancy(one, one) == pytest.approx(0, abs=1e-9)
    assert linear_discrepancy(one, other) < 0.08
    assert linear_discrepancy(one, other + 10) == pytest.approx(1)


def test_discrepancy_finds_what_one_linear_classifier_cannot():
    """Two clouds on a diagonal against two on the other: no line tells them apart, two lines together do."""
    rng = np.random.default_rng(1)
    sides = rng.choice([-1, 1], 1000)[:, None]
    one = np.column_stack([sides, sides]) * 3 + rng.normal(size=(1000, 2))
    other = one * [1, -1]
    assert linear_discrepancy(one, other) > 0.9


def test_discrepancy_grows_with_the_distance():
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=(2, 1000, 2))
    values = [linear_discrepancy(one, other + shift) for shift in (0, 1, 2, 4)]
    assert all(near < far for near, far in pairwise(values))


def test_discrepancy_needs_the_same_columns():
    with pytest.raises(InputError, match="same columns"):
        linear_discrepancy(np.zeros((3, 2)), np.zeros((3, 1)))


def test_discrepancy_is_at_least_what_one_threshold_tells():
    one, other = np.arange(10.0)[:, None], np.arange(5.0, 15.0)[:, None]
    assert linear_discrepancy(one, other) >= 0.5


def test_discrepancy_does_not_depend_on_the_scale_of_a_column():
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=(2, 300, 2))
    scaled = [table * [1, 1e6] + [0, 5] for table in (one, other + 1)]
    assert linear_discrepancy(*scaled) == pytest.approx(linear_discrepancy(one, other + 1), abs=0.01)


def test_discrepancy_of_constant_columns_is_zero():
    assert linear_discrepancy(np.ones((20, 2)), np.ones((30, 2))) == 0
