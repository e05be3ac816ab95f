"""The paper's theorems for a fitted model: the same numbers as their parts."""

import numpy as np
import pytest

from dafh import DAFHClassifier
from dafh.datasets import make_grouped_classification
from dafh.evaluation.matrix import PreferenceMatrix, theorems
from dafh.exceptions import InputError
from dafh.linear import linear_discrepancy
from dafh.stats import deviation_epsilon, discrepancy_bound


@pytest.fixture(scope="module")
def fitted():
    data = make_grouped_classification(1200, random_state=0)
    return DAFHClassifier(2, pooled="linear", guard=None, random_state=0).fit(data.X[:800], data.y[:800]), data


def test_theorem_1_is_the_degree_with_its_epsilon(fitted):
    model, data = fitted
    result, matrix = theorems(model, data.X[800:], data.y[800:]), PreferenceMatrix.of(model, data.X[800:], data.y[800:])
    assert result.degree == matrix.degree
    assert result.smallest_group == matrix.sizes.min()
    assert result.epsilon == deviation_epsilon(result.smallest_group, 2)
    assert result.shortfall is None
    assert theorems(model, data.X[800:], data.y[800:], level=0.5).epsilon < result.epsilon


def test_theorem_2_compares_each_group_with_the_value_it_shares_most_rows_with(fitted):
    model, data = fitted
    X, y = data.X[800:], data.y[800:]
    groups = model.predict_group(X)
    attribute = np.where(groups == 0, "z", "a")
    attribute[:20] = "a"
    result = theorems(model, X, y, attribute=attribute)
    assert result.named == ("z", "a")
    assert result.discrepancies.max() < 0.15
    assert result.shortfall == discrepancy_bound(result.discrepancies)
    numbers = np.asarray(X, float)
    expected = [linear_discrepancy(numbers[groups == k], numbers[attribute == v]) for k, v in enumerate("za")]
    np.testing.assert_allclose(result.discrepancies, expected, atol=0.02)
    # An attribute that has nothing to do with the groups is farther from them.
    other = theorems(model, X, y, attribute=np.arange(len(X)) % 2)
    assert other.shortfall > 2 * result.shortfall
    assert "Theorem 2" in str(other)


def test_an_attribute_with_other_values_than_groups_is_refused(fitted):
    model, data = fitted
    for attribute in (np.arange(400) % 3, np.zeros(400), np.zeros(3)):
        with pytest.raises(InputError, match="as many different ones as there are groups"):
            theorems(model, data.X[800:], data.y[800:], attribute=attribute)
