"""The pooled classifier of a DAFHClassifier, taken as it is or fitted here, and the logits to start from."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dafh import DecoupledClassifier
from dafh.classifiers.logits import SMALLEST_PROBABILITY
from dafh.estimators.pooled import fit_pooled
from dafh.exceptions import InputError
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rows.checked import CheckedRows

SEED = np.random.SeedSequence(0)
CERTAIN = np.log((1 - SMALLEST_PROBABILITY) / SMALLEST_PROBABILITY)


def rows_of(n=120, n_classes=2, classes=None, frame=False, weight=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [0.0, 1.0][: n_classes - 1])
    X = pd.DataFrame(X, columns=["u", "v"]) if frame else X
    return CheckedRows.check(DecoupledClassifier(), X, y, classes=classes, sample_weight=weight)


# ---- an incumbent ----


def test_an_incumbent_is_taken_as_it_is():
    rows = rows_of()
    incumbent = LogisticRegression().fit(rows.X, rows.y)
    model, logits = fit_pooled(incumbent, rows, 5, SEED)
    assert model is incumbent
    np.testing.assert_allclose(logits[:, 0], incumbent.decision_function(rows.X), atol=1e-6)


def test_an_incumbent_with_more_classes_has_a_logit_for_each():
    rows = rows_of(n_classes=3)
    incumbent = LogisticRegression().fit(rows.X, rows.y)
    few = np.flatnonzero(rows.y < 2)
    part = CheckedRows.check(DecoupledClassifier(), rows.X[few], rows.y[few], classes=incumbent.classes_)
    logits = fit_pooled(incumbent, part, 5, SEED).logits
    assert logits.shape == (len(few), 3)
    np.testing.assert_allclose(np.exp(logits), incumbent.predict_proba(part.X), atol=1e-6)


def test_an_incumbent_that_is_certain_can_still_be_corrected():
    rows = rows_of()
    certain = KNeighborsClassifier(1).fit(rows.X, rows.y)  # Says 0 or 1 for every row it knows.
    logits = fit_pooled(certain, rows, 5, SEED).logits[:, 0]
    np.testing.assert_allclose(logits, np.where(rows.y == 1, 1, -1) * CERTAIN, atol=1e-5)


def test_an_incumbent_with_a_threshold_of_its_own_keeps_its_probabilities():
    rows = rows_of()
    plain = LogisticRegression().fit(rows.X, rows.y)
    cut = FixedThresholdClassifier(LogisticRegression(), threshold=0.9).fit(rows.X, rows.y)
    np.testing.assert_allclose(fit_pooled(cut, rows, 5, SEED).logits, fit_pooled(plain, rows, 5, SEED).logits)


def test_an_incumbent_pipeline_sees_the_frame():
    rows = rows_of(frame=True)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows.given, rows.y)
    logits = fit_pooled(pipeline, rows, 5, SEED).logits
    np.testing.assert_allclose(logits[:, 0], pipeline.decision_function(rows.given), atol=1e-6)


def test_an_incumbent_of_other_columns_is_refused():
    rows = rows_of()
    incumbent = LogisticRegression().fit(rows.X[:, :1], rows.y)
    with pytest.raises(InputError, match="takes 1 features, X has 2: both must see the same columns"):
        fit_pooled(incumbent, rows, 5, SEED)


# ---- fitted here ----


class Memory(ClassifierMixin, BaseEstimator):
    """Is certain of the rows it was fitted on, and knows nothing of others; remembers how often it was fitted."""

    fitted_on: ClassVar[list[int]] = []

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        self.fitted_on.append(len(X))
        self.classes_ = np.unique(y)
        self.known_ = {tuple(row): label for row, label in zip(np.asarray(X), y, strict=True)}
        return self

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X):
        even = np.full(len(self.classes_), 1 / len(self.classes_))
        return np.array([(self.classes_ == self.known_[tuple(row)]) * 1.0 if tuple(row) in self.known_ else even
                         for row in np.asarray(X)])  # fmt: skip


def test_logits_to_train_on_come_from_copies_that_did_not_see_the_row():
    Memory.fitted_on.clear()
    rows = rows_of()
    model, logits = fit_pooled(Memory(), rows, 4, SEED)
    np.testing.assert_array_equal(logits, np.zeros((120, 1)))  # Nothing is known about rows left out.
    assert (model.predict(rows.X) == rows.y).all()  # And everything about rows it was fitted on.
    assert Memory.fitted_on[0] == 120
    assert len(Memory.fitted_on) == 1 + 4
    assert sum(Memory.fitted_on[1:]) == 3 * 120


def test_the_users_classifier_stays_unfitted_and_the_copy_gets_a_seed():
    given = Memory()
    model = fit_pooled(given, rows_of(), 4, SEED).model
    assert vars(given) == {"random_state": None}
    assert isinstance(model.random_state, int)
    assert fit_pooled(Memory(random_state=7), rows_of(), 4, SEED).model.random_state == 7


def test_the_same_seed_makes_the_same_logits():
    rows = rows_of()
    first, again, other = (fit_pooled(None, rows, 3, np.random.SeedSequence(seed)).logits for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-6  # Other folds.


def test_without_a_classifier_logistic_regression_is_fitted():
    rows = rows_of(frame=True)
    model, logits = fit_pooled(None, rows, 5, SEED)
    assert isinstance(model, StandardizedLogisticRegression)
    assert model.feature_names_in_.tolist() == ["u", "v"]
    inside = model.decision_function(rows.given)
    assert 0 < np.abs(logits[:, 0] - inside).max() < 1  # Out of fold: near, but not the same.


def test_a_class_with_a_single_row_leaves_the_logits_in_sample():
    rows = rows_of()
    rare = CheckedRows.check(DecoupledClassifier(), rows.X, np.r_[9, rows.y[1:]])
    model, logits = fit_pooled(LogisticRegression(), rare, 5, SEED)
    np.testing.assert_allclose(np.exp(logits), model.predict_proba(rare.X), atol=1e-5)


def test_a_handful_of_rows_is_not_divided():
    few = rows_of(59)
    model, logits = fit_pooled(None, few, 5, SEED)
    np.testing.assert_allclose(logits[:, 0], model.decision_function(few.X), atol=1e-6)
    Memory.fitted_on.clear()
    fit_pooled(Memory(), few, 5, SEED)  # A classifier of the user's own is: it may memorise.
    assert len(Memory.fitted_on) == 1 + 5


def test_weights_reach_the_pooled_classifier_and_its_copies():
    rows = rows_of(weight=np.where(rows_of().y == 1, 5.0, 1.0))
    model, logits = fit_pooled(DummyClassifier(strategy="prior"), rows, 2, SEED)
    weighted = np.average(rows.y, weights=rows.weight)
    assert model.predict_proba(rows.X[:1])[0, 1] == pytest.approx(weighted)
    assert expit(logits).mean() == pytest.approx(weighted, abs=0.05)
    assert weighted > rows.y.mean() + 0.2
