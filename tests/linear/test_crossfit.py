"""Out-of-fold logits: each is that of a plain fit without the fold of its row."""

import numpy as np
import pytest

from dafh.linear.crossfit import Folds
from dafh.linear.designs import DenseDesign
from dafh.linear.newton import Regression, fit_penalized

PENALTY = np.full(4, 2.0)
FOLD = np.arange(150) % 3


def problem(n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    label = (X[:, 0] + rng.normal(size=150) > 0).astype(np.intp) + (n_classes > 2) * (X[:, 1] > 0.3)
    outputs = 1 if n_classes == 2 else n_classes
    return Regression(DenseDesign(X), label, rng.uniform(0.5, 2, 150), rng.normal(size=(150, outputs)))


def refit(rows):
    return fit_penalized(rows, PENALTY, tolerance=1e-13)


def plain_logits(rows, kept, asked):
    """Logits of some rows by a plain fit on others; those of several classes may share a constant."""
    found = refit(rows.take(np.flatnonzero(kept)))
    return centered(rows.offset[asked] + rows.design.take(asked).logits(found.coefficients))


def centered(logits):
    return logits if logits.shape[1] == 1 else logits - logits.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_out_of_fold_logits_are_those_of_fits_without_the_fold(n_classes):
    rows = problem(n_classes)
    found = Folds(rows, refit(rows), FOLD).out_of_fold()
    for fold in range(3):
        expected = plain_logits(rows, fold != FOLD, np.flatnonzero(fold == FOLD))
        np.testing.assert_allclose(centered(found[fold == FOLD]), expected, atol=5e-4)


def test_out_of_fold_logits_with_another_penalty_are_fitted_with_it():
    rows, stronger = problem(), np.full(4, 20.0)
    found = Folds(rows, refit(rows), FOLD).out_of_fold(stronger)
    plain = fit_penalized(rows.take(np.flatnonzero(FOLD != 1)), stronger)
    expected = rows.offset[FOLD == 1] + rows.design.take(FOLD == 1).logits(plain.coefficients)
    np.testing.assert_allclose(found[FOLD == 1], expected, atol=5e-4)


def test_labels_of_the_fold_change_none_of_its_logits():
    rows = problem()
    turned = Regression(rows.design, np.where(FOLD == 1, 1 - rows.label, rows.label), rows.weight, rows.offset)
    logits = [Folds(one, refit(one), FOLD).out_of_fold(tolerance=1e-13)[FOLD == 1] for one in (rows, turned)]
    np.testing.assert_allclose(*logits, atol=1e-6)
