"""The pooled classifier of a DAFHClassifier, taken as it is or fitted here, and its logits out of fold."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from dafh import DAFHClassifier
from dafh.estimators.pooled import fit_pooled, out_of_fold_pooled_logits, pooled_logits
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rows import LabelledRows


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


def test_an_incumbent_with_more_classes_has_a_logit_for_each():
    rows = rows_of(n_classes=3)
    incumbent = LogisticRegression().fit(rows.X, rows.y)
    few = np.flatnonzero(rows.y < 2)
    part = LabelledRows.check(DAFHClassifier(), rows.X[few], rows.y[few], classes=incumbent.classes_)
    logits = logits_of(incumbent, part)
    assert logits.shape == (len(few), 3)
    np.testing.assert_allclose(np.exp(logits), incumbent.predict_proba(part.X), atol=1e-6)


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
