"""Any classifier of scikit-learn's kind: copies, weights, seeds and folds."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dafh.classifiers.fitting import (
    fit_clone,
    is_fitted,
    out_of_fold_probabilities,
    seeded,
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
