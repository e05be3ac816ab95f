"""The pooled classifier of a DAFHClassifier: the user's own or one fitted here, and the logits to train on."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dafh.classifiers.fitting import FEWEST_ROWS_TO_SPLIT, fit_clone, is_fitted, out_of_fold_probabilities, seeded
from dafh.classifiers.logits import class_probabilities, logits
from dafh.classifiers.protocols import Classifier
from dafh.exceptions import InputError
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.rows.checked import CheckedRows


class PooledFit(NamedTuple):
    """The pooled classifier in use, and its logits for the training rows."""

    model: Classifier
    logits: NDArray[np.float64]
    """Out-of-fold where the classifier was fitted here: in-sample logits of a flexible model are overconfident, and
    corrections trained on them would learn to trust it where it has only memorised."""


def fit_pooled(pooled: Classifier | None, rows: CheckedRows, n_folds: int, seed: np.random.SeedSequence) -> PooledFit:
    """Take a fitted classifier as it is, or fit a copy of an unfitted one on all rows.

    Parameters
    ----------
    pooled : classifier or None
        None: logistic regression, fitted to convergence.
    n_folds : int
        For the out-of-fold logits.
    """
    if pooled is not None and is_fitted(pooled):
        _check_incumbent(pooled, rows)
        return PooledFit(pooled, logits(class_probabilities(pooled, rows.given, rows.classes)))
    fold_seed, model_seed = (int(value) for value in seed.generate_state(2))
    unfitted = StandardizedLogisticRegression() if pooled is None else seeded(pooled, model_seed)
    model = fit_clone(unfitted, rows.given, rows.y, rows.fit_weight)
    probabilities = None
    # Fewer rows of the default classifier than this may be merged ones, which are no sample to leave rows out of.
    if pooled is not None or len(rows) >= FEWEST_ROWS_TO_SPLIT:
        probabilities = out_of_fold_probabilities(
            unfitted, rows.given, rows.y, rows.classes, rows.fit_weight, n_folds, fold_seed
        )
    if probabilities is None:  # A class is too rare to be left out of a fold.
        probabilities = class_probabilities(model, rows.given, rows.classes)
    return PooledFit(model, logits(probabilities))


def _check_incumbent(pooled: Classifier, rows: CheckedRows) -> None:
    n_columns = rows.X.shape[1]
    expected = getattr(pooled, "n_features_in_", n_columns)
    if expected != n_columns:
        raise InputError(
            f"The fitted pooled classifier takes {expected} features, X has {n_columns}: both must see the same "
            "columns."
        )
