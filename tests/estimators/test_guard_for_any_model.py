"""The guard for any model: one candidate for all rows beside the pooled classifier, chosen group by group."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from dafh import AuditResult, DecoupledClassifier
from dafh.exceptions import InputError
from dafh.partitions import NOBODY, Partition
from model_files import there_and_back


class TwoSides(Partition):
    """Group 0 left of zero, group 1 right of it; rows beyond 10 belong to nobody."""

    def fit(self, X, y, sensitive_features=None, sample_weight=None):
        self.group_names_ = ["left", "right"]
        return self

    def assign(self, X, sensitive_features=None):
        return np.where(np.abs(X[:, 0]) > 10, NOBODY, X[:, 0] > 0).astype(np.intp)


class Turned(ClassifierMixin, BaseEstimator):
    """Better than a linear classifier on the left, and worse on the right."""

    fits: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.fits.append(len(y))
        return self

    def predict_proba(self, X):
        second = np.where(X[:, 0] > 0, 0.5 + 0.4 * (X[:, 2] > 0), 0.5 + 0.4 * np.sign(X[:, 1]))
        return np.column_stack([1 - second, second])

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


@pytest.fixture(scope="module")
def rows():
    """On the left the second column decides, on the right its opposite; a pooled classifier is right where x > 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    X[:, 0] += 0.7  # Most rows are on the right, and the pooled classifier serves them.
    return X, np.where(X[:, 0] > 0, X[:, 1] < 0, X[:, 1] > 0).astype(int)


@pytest.fixture(scope="module")
def guarded(rows):
    model = DecoupledClassifier(
        TwoSides(), Turned(), pooled=LogisticRegression(), fit_on="all", guard="veto", random_state=0
    )
    Turned.fits.clear()
    return model.fit(*rows)


def test_one_candidate_is_fitted_on_all_rows_and_once_for_each_fold(guarded):
    assert Turned.fits == [800, *[640] * 5]
    assert len({id(own) for own in guarded._own_estimators}) == 1


def test_the_guard_keeps_the_candidate_where_it_is_better_and_the_pooled_classifier_elsewhere(guarded, rows):
    X, y = rows
    assert guarded.serves_.tolist() == [0, 2]
    candidate = Turned().fit(X, y)
    assert guarded.score(X, y) > max(candidate.score(X, y), guarded.pooled_.score(X, y)) + 0.1
    left = X[:, 0] <= 0
    np.testing.assert_array_equal(guarded.predict(X)[left], candidate.predict(X)[left])
    np.testing.assert_array_equal(guarded.predict(X)[~left], guarded.pooled_.predict(X)[~left])


def test_without_a_guard_the_candidate_serves_everybody_but_rows_of_no_group(rows):
    X, y = rows
    model = DecoupledClassifier(TwoSides(), Turned(), pooled=LogisticRegression(), fit_on="all").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), Turned().fit(X, y).predict(X))
    far = np.array([[20.0, 1.0, -1.0]])
    assert model.predict(far) == model.pooled_.predict(far)


def test_an_audit_compares_one_classifier_with_the_pooled_one(rows):
    X, y = rows
    model = DecoupledClassifier(TwoSides(), Turned(), pooled=LogisticRegression(), fit_on="all").fit(X[:400], y[:400])
    result = AuditResult.of(model, X[400:], y[400:])
    assert set(result.questions["kind"]) == {"rationality", "envy"}
    right = result.questions[(result.questions["group"] == 1) & (result.questions["rival"] == "pooled")]
    assert right["verdict"].tolist() == ["violated"]


def test_what_own_classifiers_are_fitted_on_is_one_of_two_words(rows):
    with pytest.raises(InputError, match="'fit_on' parameter"):
        DecoupledClassifier(fit_on="rows").fit(*rows)


def test_a_file_holds_a_candidate_that_serves_several_groups_once(rows, tmp_path):
    X, y = rows
    model = DecoupledClassifier(
        estimator=LogisticRegression(C=0.1), pooled=LogisticRegression(), fit_on="all", random_state=0
    ).fit(X, y)
    loaded = there_and_back(model, tmp_path)
    assert loaded._own_estimators[0] is loaded._own_estimators[1] is not loaded.pooled_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.fit_on == "all"
