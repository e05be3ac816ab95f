"""Copies of any classifier, fitted with weights and seeds, and predictions for rows it was not fitted on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from dafh.classifiers.logits import class_probabilities
from dafh.classifiers.pipelines import final_classifier, parameter_path
from dafh.exceptions import InputError
from dafh.frames import take_rows

# Fewer distinct rows than this cannot spare any: all rows then train and select.
FEWEST_ROWS_TO_SPLIT = 60


def is_fitted(estimator: Any) -> bool:
    """Whether the estimator can predict as it is."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def fit_clone(estimator: Any, X: Any, y: NDArray[Any], sample_weight: NDArray[Any] | None) -> Any:
    """Fit a fresh copy, handing the weights to whichever step of a pipeline takes them."""
    model = clone(estimator)
    if sample_weight is None:
        return model.fit(X, y)
    classifier = final_classifier(model)
    if not has_fit_parameter(classifier, "sample_weight"):
        raise InputError(
            f"{type(classifier).__name__} takes no sample_weight: leave the weights out, or choose another model."
        )
    return model.fit(X, y, **{f"{parameter_path(model)}sample_weight": sample_weight})


def fit_group(estimator: Any, X: Any, y: NDArray[Any], sample_weight: NDArray[Any] | None) -> Any:
    """Fit a fresh copy on the rows of one group; rows that all have one label get that label."""
    if len(np.unique(y)) == 1:
        return DummyClassifier(strategy="most_frequent").fit(X, y)
    return fit_clone(estimator, X, y, sample_weight)


def seeded(estimator: Any, seed: int) -> Any:
    """Return a copy in which every random state that was left open is given by the seed."""
    model = clone(estimator)
    open_states = {k: seed for k, v in model.get_params().items() if k.split("__")[-1] == "random_state" and v is None}
    return model.set_params(**open_states)


def out_of_fold_probabilities(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    classes: NDArray[Any],
    sample_weight: Any,
    n_folds: int,
    seed: int,
) -> NDArray[np.float64] | None:
    """Predict every row by a copy that was not fitted on it; None where a class is too rare to be left out.

    In-sample probabilities of a flexible model are overconfident, and corrections trained on them would learn to
    trust it where it has only memorised.
    """
    probabilities = np.empty((X.shape[0], len(classes)))
    folds = stratified_folds(y, n_folds, seed)
    if folds is None:
        return None
    for train, test in folds:
        weight = None if sample_weight is None else sample_weight[train]
        model = fit_clone(estimator, take_rows(X, train), y[train], weight)
        probabilities[test] = class_probabilities(model, take_rows(X, test), classes)
    return probabilities


def stratified_folds(y: NDArray[Any], n_folds: int, seed: int) -> Iterator[Any] | None:
    """Rows to fit on and rows to hold out, fold by fold; fewer folds for a rare class, None if it has one row only."""
    rarest = int(np.unique(y, return_counts=True)[1].min())
    n_folds = min(n_folds, rarest)
    if n_folds < 2:
        return None
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)
