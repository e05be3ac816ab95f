"""Probabilities, logits, labels, and the cut-off between them."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.special import expit, log_expit, log_softmax
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from dafh.classifiers.logits import (
    SMALLEST_PROBABILITY,
    check_threshold,
    class_probabilities,
    decide,
    find_cutoff,
    logits,
    residual,
)
from dafh.exceptions import InputError


@functools.cache
def two_patterns(n=1500, seed=0):
    """Rare positives; the sign of the second column says which pattern the first follows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = np.where(X[:, 1] > 0, 1.5, -1.5) * X[:, 0] + 0.5 * X[:, 2] - 1.2
    return X, (score + rng.logistic(size=n) > 0) * 1


# ---- probabilities, logits, labels ----


def answers(classes, rows):
    """A fitted classifier that gives fixed probabilities."""
    return SimpleNamespace(classes_=np.array(classes), predict_proba=lambda X: np.array(rows, float))


def test_probabilities_are_put_into_the_order_of_the_classes():
    model = answers(["c", "a", "b"], [[0.5, 0.2, 0.3]])
    np.testing.assert_array_equal(class_probabilities(model, None, np.array(["a", "b", "c"])), [[0.2, 0.3, 0.5]])


def test_a_class_the_model_has_not_seen_gets_no_probability_and_one_not_asked_for_is_left_out():
    model = answers([2, 5], [[0.25, 0.75]])
    np.testing.assert_array_equal(class_probabilities(model, None, np.array([1, 2, 3])), [[0, 0.25, 0]])


@given(st.lists(st.floats(1e-5, 1 - 1e-5), min_size=1, max_size=5))
def test_two_classes_have_one_logit_that_gives_the_probability_back(second):
    probabilities = np.column_stack([1 - np.array(second), second])
    found = logits(probabilities)
    assert found.shape == (len(second), 1)
    np.testing.assert_allclose(expit(found[:, 0]), second, rtol=1e-6)


def test_a_classifier_that_is_certain_has_finite_logits():
    np.testing.assert_allclose(logits(np.array([[1.0, 0.0], [0.0, 1.0]])), [[np.log(1e-6)], [-np.log(1e-6)]])
    np.testing.assert_allclose(logits(np.array([[1.0, 0.0, 0.0]])), [[0, np.log(1e-6), np.log(1e-6)]])
    assert SMALLEST_PROBABILITY == 1e-6


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3), st.integers(0, 2))
def test_residuals_are_the_gradient_of_the_log_likelihood(base, label):
    def likelihood(z):
        return log_softmax(z)[label]

    def gradient(z):
        return residual(z[None], np.array([label]))[0]

    assert check_grad(likelihood, gradient, np.array(base)) < 1e-6
    one = np.array([base[0]])
    sign = 1 if label else -1
    assert (
        check_grad(lambda z: log_expit(sign * z[0]), lambda z: residual(z[None], np.array([min(label, 1)]))[0], one)
        < 1e-6
    )


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(sum), min_size=1, max_size=6))
def test_the_decision_is_the_most_probable_class_and_a_tie_goes_to_the_first(rows):
    three = np.array(rows)
    np.testing.assert_array_equal(decide(np.log(three + 1e-300)), [row.index(max(row)) for row in rows])
    two = three[:, :2]
    expected = [int(second > first) for first, second in np.clip(two, SMALLEST_PROBABILITY, None)]
    np.testing.assert_array_equal(decide(logits(two)), expected)


# ---- deciding, and finding a cut-off ----


@given(st.lists(st.floats(-8, 8), min_size=1, max_size=20), st.floats(0.01, 0.99))
def test_a_decision_is_a_probability_above_the_cut_off(logits, cutoff):
    logits = np.array(logits)
    probability = 1 / (1 + np.exp(-logits))
    clear = np.abs(probability - cutoff) > 1e-9
    np.testing.assert_array_equal(decide(logits[:, None], cutoff)[clear], (probability > cutoff)[clear])


def test_with_more_than_two_classes_the_largest_wins_whatever_the_cut_off():
    assert decide(np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]]), 0.9).tolist() == [2, 0]
    check_threshold(0.5, 3)
    with pytest.raises(InputError, match="two classes"):
        check_threshold(0.3, 3)


@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_a_cut_off_that_is_found_explains_all_decisions(probability, cutoff):
    probability = np.array(probability)
    flagged = probability > cutoff
    found = find_cutoff(flagged, probability)
    assert 0 < found < 1
    np.testing.assert_array_equal(probability > found, flagged)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.2, 0.6, 0.7, 0.9])), min_size=1, max_size=25))
def test_where_no_cut_off_explains_all_decisions_the_one_found_explains_most(rows):
    flagged, probability = (np.array(part) for part in zip(*rows, strict=True))
    found = find_cutoff(flagged, probability)
    wrong = [((probability > cutoff) != flagged).sum() for cutoff in (0.05, 0.15, 0.4, 0.65, 0.8, 0.95)]
    assert ((probability > found) != flagged).sum() == min(wrong)


@pytest.mark.parametrize(
    ("flagged", "probability", "cutoff"),
    [
        ([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], 0.5),  # One half explains all.
        ([0, 1, 1], [0.1, 0.3, 0.9], 0.2),
        ([0, 0, 1], [0.1, 0.7, 0.9], 0.8),
        ([1, 1], [0.2, 0.4], 0.1),  # Flags everybody.
        ([0, 0], [0.6, 0.8], 0.9),  # Flags nobody.
        ([0, 0], [0.1, 0.2], 0.5),
    ],
)
def test_cut_offs_by_hand(flagged, probability, cutoff):
    assert find_cutoff(np.array(flagged, bool), np.array(probability)) == pytest.approx(cutoff)


@pytest.mark.parametrize(
    "model",
    [
        FixedThresholdClassifier(LogisticRegression(), threshold=0.25, response_method="predict_proba"),
        HistGradientBoostingClassifier(max_iter=8),
        DummyClassifier(strategy="constant", constant=1),
        DummyClassifier(strategy="prior"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_cut_off_of_any_classifier_reproduces_what_it_predicts(model):
    X, y = two_patterns()
    model = clone(model).fit(X, y)
    probability, flagged = model.predict_proba(X)[:, 1], model.predict(X) == 1
    found = find_cutoff(flagged, probability)
    np.testing.assert_array_equal(probability > found, flagged)
    if isinstance(model, FixedThresholdClassifier):
        assert found == pytest.approx(0.25, abs=0.02)
