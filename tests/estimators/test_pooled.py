"""The pooled classifier of a DAFHClassifier, taken as it is or fitted here, and its nested logits."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from dafh import DAFHClassifier
from dafh.classifiers.logits import SMALLEST_PROBABILITY
from dafh.estimators.pooled import fit_pooled, nested_pooled_logits, pooled_logits
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rows.checked import CheckedRows

CERTAIN = np.log((1 - SMALLEST_PROBABILITY) / SMALLEST_PROBABILITY)


def rows_of(n=120, n_classes=2, classes=None, frame=False, weight=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [0.0, 1.0][: n_classes - 1])
    X = pd.DataFrame(X, columns=["u", "v"]) if frame else X
    return CheckedRows.check(DAFHClassifier(), X, y, classes=classes, sample_weight=weight)


def logits_of(pooled, rows):
    fitted = fit_pooled(pooled, rows, 0)
    return pooled_logits(fitted.model, fitted.view.see(rows.given), rows.classes)


def nested(pooled, rows, n_folds=3):
    fitted = fit_pooled(pooled, rows, 0)
    fold = np.arange(len(rows)) % n_folds
    return fold, nested_pooled_logits(pooled, fitted, rows, fitted.view.see(rows.given), fold, n_folds)


# ---- an incumbent ----


def test_an_incumbent_is_taken_as_it_is():
    rows = rows_of()
    incumbent = LogisticRegression().fit(rows.given, rows.y)
    fitted = fit_pooled(incumbent, rows, 0)
    assert fitted.model is incumbent
    assert fitted.kind == "logits"
    np.testing.assert_allclose(logits_of(incumbent, rows)[:, 0], incumbent.decision_function(rows.given), atol=1e-6)


def test_an_incumbent_with_more_classes_has_a_logit_for_each():
    rows = rows_of(n_classes=3)
    incumbent = LogisticRegression().fit(rows.given, rows.y)
    few = np.flatnonzero(rows.y < 2)
    part = CheckedRows.check(DAFHClassifier(), rows.given[few], rows.y[few], classes=incumbent.classes_)
    logits = logits_of(incumbent, part)
    assert logits.shape == (len(few), 3)
    np.testing.assert_allclose(np.exp(logits), incumbent.predict_proba(part.given), atol=1e-6)


def test_an_incumbent_that_is_certain_can_still_be_corrected():
    rows = rows_of()
    certain = KNeighborsClassifier(1).fit(rows.given, rows.y)  # Says 0 or 1 for every row it knows.
    np.testing.assert_allclose(logits_of(certain, rows)[:, 0], np.where(rows.y == 1, 1, -1) * CERTAIN, atol=1e-5)


# ---- fitted here ----


# Ours is standardised by all rows, without their labels; a fit of its own by the rows it sees.
@pytest.mark.parametrize(
    ("pooled", "close"), [(StandardizedLogisticRegression(C=1.0), 0.15), (LogisticRegression(), 1e-5)]
)
def test_logits_of_a_block_come_from_fits_without_its_fold_and_without_the_rows_own(pooled, close):
    rows = rows_of()
    fold, blocks = nested(pooled, rows)
    without = fold != 0
    alone = pooled.fit(rows.given[without], rows.y[without]).decision_function(rows.given[fold == 0])
    np.testing.assert_allclose(blocks[0, fold == 0, 0], alone, atol=close)
    np.testing.assert_array_equal(blocks[0, fold == 0], blocks[3, fold == 0])
    two = fold == 2
    pair = pooled.fit(rows.given[two], rows.y[two]).decision_function(rows.given[fold == 1])
    np.testing.assert_allclose(blocks[0, fold == 1, 0], pair, atol=close)


def test_a_frame_with_text_is_encoded_for_classifiers_of_numbers():
    rows = rows_of(frame=True)
    table = rows.given.assign(city=np.where(np.arange(120) % 2, "Oslo", "Bergen"))
    rows = CheckedRows.check(DAFHClassifier(), table, rows.y)
    fitted = fit_pooled(KNeighborsClassifier(), rows, 0)
    assert isinstance(fitted.model, Pipeline)
    assert fitted.model.steps[0][1] is fitted.view.encoder
    assert fitted.model.predict(table).shape == (120,)


class Counting(ClassifierMixin, BaseEstimator):
    """Remembers the weights that each copy of it was fitted with."""

    seen: ClassVar[list[float]] = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append(float(np.sum(sample_weight)))
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)

    def predict(self, X):
        return np.repeat(self.classes_[0], len(X))


def test_weights_reach_the_pooled_classifier_and_its_copies():
    Counting.seen.clear()
    nested(Counting(), rows_of(weight=np.full(120, 2.0)))
    assert Counting.seen[0] == 240
    assert sorted(Counting.seen[1:]) == [80.0] * 3 + [160.0] * 3
