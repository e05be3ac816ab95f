"""Any classifier of scikit-learn's kind: copies, weights, seeds and folds."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.special import expit, log_expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dafh.classifiers import (
    SMALLEST_PROBABILITY,
    check_threshold,
    class_probabilities,
    decide,
    final_classifier,
    find_cutoff,
    fit_clone,
    is_fitted,
    logits,
    out_of_fold_probabilities,
    parameter_path,
    residual,
    seeded,
    split_pipeline,
    stratified_folds,
)
from dafh.exceptions import InputError


def blobs(n=60, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 2)) + y[:, None], y


def nested(classifier):
    """A pipeline whose last step is a pipeline."""
    return Pipeline(
        [("outer", StandardScaler()), ("inside", Pipeline([("scale", StandardScaler()), ("end", classifier)]))]
    )


# ---- copies, weights, seeds ----


def test_a_classifier_is_fitted_after_fit_also_in_a_pipeline():
    X, y = blobs()
    for model in (GaussianNB(), make_pipeline(StandardScaler(), GaussianNB()), nested(GaussianNB())):
        assert not is_fitted(model)
        assert is_fitted(model.fit(X, y))


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model), nested])
def test_whole_weights_are_the_same_as_repeated_rows(wrap):
    X, y = blobs()
    weight = np.where(y == 1, 3.0, 1.0)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    model = LogisticRegression(C=np.inf)
    weighted = fit_clone(model, X, y, weight)
    np.testing.assert_allclose(
        weighted.predict_proba(X), fit_clone(model, X[repeated], y[repeated], None).predict_proba(X), atol=1e-3
    )
    # Scaling changes nothing without a penalty, so the weights must have reached the end of every pipeline.
    np.testing.assert_allclose(
        fit_clone(wrap(model), X, y, weight).predict_proba(X), weighted.predict_proba(X), atol=1e-3
    )


@pytest.mark.parametrize("wrap", [lambda model: model, nested])
def test_weights_for_a_classifier_that_takes_none_are_refused_by_its_name(wrap):
    X, y = blobs()
    with pytest.raises(InputError, match="KNeighborsClassifier takes no sample_weight"):
        fit_clone(wrap(KNeighborsClassifier()), X, y, np.ones(len(y)))
    assert is_fitted(fit_clone(wrap(KNeighborsClassifier()), X, y, None))


def test_a_seed_takes_the_place_of_every_random_state_that_is_none():
    inner = BaggingClassifier(DecisionTreeClassifier(), random_state=7)
    model = seeded(nested(inner), 3)
    assert model.get_params()["inside__end__random_state"] == 7
    assert model.get_params()["inside__end__estimator__random_state"] == 3
    assert inner.estimator.random_state is None


# ---- folds ----


class NeverSeen(ClassifierMixin, BaseEstimator):
    """Refuses to predict a row it was fitted on; weights must come with their rows."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.seen_ = np.unique(y), set(np.asarray(X)[:, 0])
        if sample_weight is not None:
            np.testing.assert_array_equal(np.asarray(X)[:, 0], sample_weight)
        return self

    def predict_proba(self, X):
        assert not self.seen_ & set(np.asarray(X)[:, 0])
        return np.tile(np.eye(len(self.classes_))[0], (len(X), 1))


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame])
def test_every_row_is_predicted_once_by_a_copy_that_has_not_seen_it(frame):
    X, y = np.arange(30.0)[:, None], np.arange(30) % 3
    found = out_of_fold_probabilities(NeverSeen(), frame(X), y, np.arange(3), X[:, 0], n_folds=4, seed=0)
    np.testing.assert_array_equal(found, np.tile([1.0, 0, 0], (30, 1)))


@given(st.lists(st.integers(2, 12), min_size=1, max_size=4), st.integers(2, 6), st.integers(0, 3))
def test_folds_hold_out_every_row_once_and_keep_the_shares(sizes, n_folds, seed):
    y = np.repeat(np.arange(len(sizes)), sizes)
    folds = list(stratified_folds(y, n_folds, seed))
    assert len(folds) == min(n_folds, *sizes)
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(len(y)))
    for train, test in folds:
        assert not set(train) & set(test)
        assert set(y[train]) == set(y)
        held = np.bincount(y[test], minlength=len(sizes))
        assert (np.abs(held - np.array(sizes) / len(folds)) < 1).all()


def test_a_class_with_a_single_row_cannot_be_held_out():
    y = np.array([0, 0, 0, 1])
    assert stratified_folds(y, 3, 0) is None
    assert out_of_fold_probabilities(GaussianNB(), np.eye(4), y, np.arange(2), None, 3, 0) is None


# ---- probabilities, logits, labels ----


def answers(classes, rows):
    """A fitted classifier that gives fixed probabilities."""
    return SimpleNamespace(classes_=np.array(classes), predict_proba=lambda X: np.array(rows, float))


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


# ---- pipelines ----


def test_the_end_of_a_pipeline_is_found_at_any_depth():
    classifier = DummyClassifier()
    for model, path in (
        (classifier, ""),
        (Pipeline([("only", classifier)]), "only__"),
        (nested(classifier), "inside__end__"),
    ):
        assert final_classifier(model) is classifier
        assert parameter_path(model) == path
        assert not path or model.get_params()[f"{path}strategy"] == "prior"


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: Pipeline([("only", model)]), nested])
def test_a_pipeline_taken_apart_predicts_as_before(wrap):
    X, y = blobs()
    model = wrap(LogisticRegression()).fit(X * 50, y)
    final, rows = split_pipeline(model, X * 50)
    assert isinstance(final, LogisticRegression)
    np.testing.assert_array_equal(final.predict_proba(rows), model.predict_proba(X * 50))
