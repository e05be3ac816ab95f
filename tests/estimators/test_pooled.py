"""The pooled classifier of a DAFHClassifier, taken as it is or fitted here, and its logits out of fold."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

from dafh import DAFHClassifier, Scorecard
from dafh.classifiers import SMALLEST_PROBABILITY
from dafh.estimators.pooled import choose_n_folds, fit_pooled, out_of_fold_pooled_logits, pooled_logits
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rows import LabelledRows

CERTAIN = np.log((1 - SMALLEST_PROBABILITY) / SMALLEST_PROBABILITY)


def rows_of(n=120, n_classes=2, classes=None, frame=False, weight=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [0.0, 1.0][: n_classes - 1])
    X = pd.DataFrame(X, columns=["u", "v"]) if frame else X
    return LabelledRows.check(DAFHClassifier(), X, y, classes=classes, sample_weight=weight)


def logits_of(pooled, rows):
    fitted = fit_pooled(pooled, rows, 0)
    return pooled_logits(fitted.model, fitted.encoding.encode(rows.X), rows.classes)


def out_of_fold(pooled, rows, n_folds=3):
    fitted = fit_pooled(pooled, rows, 0)
    fold = np.arange(len(rows)) % n_folds
    return fold, out_of_fold_pooled_logits(pooled, fitted, rows, fitted.encoding.encode(rows.X), fold)


# ---- an incumbent ----


def test_an_incumbent_is_taken_as_it_is():
    rows = rows_of()
    incumbent = LogisticRegression().fit(rows.X, rows.y)
    fitted = fit_pooled(incumbent, rows, 0)
    assert fitted.model is incumbent
    assert fitted.kind == "logits"
    np.testing.assert_allclose(logits_of(incumbent, rows)[:, 0], incumbent.decision_function(rows.X), atol=1e-6)


def test_an_incumbent_with_more_classes_has_a_logit_for_each():
    rows = rows_of(n_classes=3)
    incumbent = LogisticRegression().fit(rows.X, rows.y)
    few = np.flatnonzero(rows.y < 2)
    part = LabelledRows.check(DAFHClassifier(), rows.X[few], rows.y[few], classes=incumbent.classes_)
    logits = logits_of(incumbent, part)
    assert logits.shape == (len(few), 3)
    np.testing.assert_allclose(np.exp(logits), incumbent.predict_proba(part.X), atol=1e-6)


def test_an_incumbent_that_is_certain_can_still_be_corrected():
    rows = rows_of()
    certain = KNeighborsClassifier(1).fit(rows.X, rows.y)  # Says 0 or 1 for every row it knows.
    np.testing.assert_allclose(logits_of(certain, rows)[:, 0], np.where(rows.y == 1, 1, -1) * CERTAIN, atol=1e-5)


# ---- fitted here ----


# Ours is standardised by all rows, without their labels; a fit of its own by the rows it sees.
@pytest.mark.parametrize(
    ("pooled", "close"), [(StandardizedLogisticRegression(C=1.0), 0.15), (LogisticRegression(), 1e-5)]
)
def test_logits_of_a_row_come_from_a_fit_without_its_fold(pooled, close):
    rows = rows_of()
    fold, found = out_of_fold(pooled, rows)
    for number in range(3):
        inside = fold == number
        alone = clone(pooled).fit(rows.X[~inside], rows.y[~inside]).decision_function(rows.X[inside])
        np.testing.assert_allclose(found[inside, 0], alone, atol=close)


# The strength is chosen once for all rows, and fixed here; tests of strengths are in tests/linear/test_newton.py.
@pytest.mark.parametrize(
    "pooled", [StandardizedLogisticRegression(C=1.0), DecisionTreeClassifier(max_depth=3)], ids=["linear", "tree"]
)
def test_labels_of_a_fold_change_nothing_about_its_own_logits(pooled):
    rows = rows_of(600)
    turned = replace(rows, label=np.where(np.arange(600) % 3 == 1, 1 - rows.label, rows.label))
    (fold, before), (_, after) = (out_of_fold(pooled, some) for some in (rows, turned))
    np.testing.assert_allclose(before[fold == 1], after[fold == 1], atol=1e-5)
    assert np.abs(before[fold != 1] - after[fold != 1]).max() > 0.1


def test_a_fitted_classifier_and_a_single_fold_have_the_logits_of_all_rows():
    rows = rows_of()
    incumbent = LogisticRegression().fit(rows.X, rows.y)
    np.testing.assert_array_equal(out_of_fold(incumbent, rows)[1], logits_of(incumbent, rows))
    ours = StandardizedLogisticRegression(C=1.0)
    np.testing.assert_array_equal(out_of_fold(ours, rows, n_folds=1)[1], logits_of(ours, rows))


def test_folds_are_five_where_fits_are_cheap_and_three_where_they_are_not():
    fitted = GaussianNB().fit([[0.0], [1.0]], [0, 1])
    assert choose_n_folds(fitted, 1000) == choose_n_folds(StandardizedLogisticRegression(), 1000) == 5
    assert (
        choose_n_folds(GaussianNB(), 1000) == choose_n_folds(Scorecard(), 1000) == choose_n_folds(fitted, 20_000) == 3
    )


def test_a_frame_with_text_is_encoded_for_classifiers_of_numbers():
    rows = rows_of(frame=True)
    table = rows.X.assign(city=np.where(np.arange(120) % 2, "Oslo", "Bergen"))
    rows = LabelledRows.check(DAFHClassifier(), table, rows.y)
    fitted = fit_pooled(KNeighborsClassifier(), rows, 0)
    assert isinstance(fitted.model, Pipeline)
    assert fitted.model.steps[0][1] is fitted.encoding.encoder
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
    out_of_fold(Counting(), rows_of(weight=np.full(120, 2.0)))
    assert Counting.seen[0] == 240
    assert sorted(Counting.seen[1:]) == [160.0] * 3
