"""Standardised columns, against hand-worked values and scikit-learn."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from dafh.linear.standard import Standardization


def test_a_row_of_weight_three_counts_as_three_rows():
    X = np.array([[0.0, 5.0], [4.0, 5.0]])
    columns = Standardization.of(X, np.array([3.0, 1.0]))
    assert columns.center.tolist() == [1, 5]
    assert columns.scale.tolist() == [np.sqrt(3), 1]  # (3 · 1² + 3²) / 4; a constant column keeps its scale.
    np.testing.assert_allclose(columns.of_rows(X), [[-1 / np.sqrt(3), 0], [np.sqrt(3), 0]])


def test_it_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(3, 2, (50, 4)), rng.random(50)
    scaler = StandardScaler().fit(X, sample_weight=weight)
    np.testing.assert_allclose(Standardization.of(X, weight).of_rows(X), scaler.transform(X))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_coefficients_give_the_same_logits_on_both_sides(n_outputs):
    rng = np.random.default_rng(1)
    X, coef, intercept = rng.normal(size=(20, 5)), rng.normal(size=(n_outputs, 5)), rng.normal(size=n_outputs)
    columns = Standardization(rng.normal(size=5), rng.uniform(0.5, 2, 5))
    stacked = columns.stacked(intercept, coef)
    np.testing.assert_allclose(stacked[0] + columns.of_rows(X) @ stacked[1:], intercept + X @ coef.T)
    for found, expected in zip(columns.unstacked(stacked), (intercept, coef), strict=True):
        np.testing.assert_allclose(found, expected)
