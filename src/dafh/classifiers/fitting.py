"""Copies of any classifier, fitted with weights and seeds, and predictions for rows it was not fitted on."""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from dafh.classifiers.logits import class_probabilities
from dafh.classifiers.pipelines import final_classifier, parameter_path
from dafh.classifiers.protocols import Classifier
from dafh.exceptions import InputError
from dafh.frames import Table, take_rows

# With fewer distinct rows than this none can be held out: all of them train, and select.
FEWEST_ROWS_TO_SPLIT = 60

Estimator = TypeVar("Estimator", bound=BaseEstimator)
Folds = Iterable[tuple[NDArray[np.intp], NDArray[np.intp]]]
"""Rows to fit on and rows to hold out, fold by fold."""


def is_fitted(estimator: Classifier) -> bool:
    """Whether the estimator can predict as it is."""
    if not hasattr(estimator, "fit"):  # Made by something else than `fit`, and ready to be asked.
        return True
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    except (AttributeError, TypeError):  # Of no library that follows scikit-learn; the habit of names may be there.
        return any(name.endswith("_") and not name.startswith("__") for name in vars(estimator))
    return True


def fit_clone(
    estimator: Classifier, X: Table, y: NDArray[np.generic], sample_weight: NDArray[np.float64] | None
) -> Classifier:
    """Fit a fresh copy; in a pipeline, the weights go to the classifier at its end."""
    model = clone(estimator)
    if sample_weight is None:
        return model.fit(X, y)
    classifier = final_classifier(model)
    # Without this check a pipeline would fail with a message about its own internals.
    if not has_fit_parameter(classifier, "sample_weight"):
        raise InputError(
            f"{type(classifier).__name__} takes no sample_weight: leave the weights out, or choose another model."
        )
    return model.fit(X, y, **{f"{parameter_path(model)}sample_weight": sample_weight})


def fit_group(
    estimator: Classifier, X: Table, y: NDArray[np.generic], sample_weight: NDArray[np.float64] | None
) -> Classifier:
    """Fit a fresh copy on the rows of one group; a group with a single label always gets that label."""
    if len(np.unique(y)) == 1:  # Most classifiers refuse a single class.
        return DummyClassifier(strategy="most_frequent").fit(X, y)
    return fit_clone(estimator, X, y, sample_weight)


def seeded(estimator: Estimator, seed: int) -> Estimator:
    """Return a copy in which the seed takes the place of every random state that is None, also of inner estimators."""
    model = clone(estimator)
    states = {name: value for name, value in model.get_params().items() if name.split("__")[-1] == "random_state"}
    return model.set_params(**{name: seed for name, value in states.items() if value is None})


def out_of_fold_probabilities(
    estimator: Classifier,
    X: Table,
    y: NDArray[np.generic],
    classes: NDArray[np.generic],
    sample_weight: NDArray[np.float64] | None,
    n_folds: int,
    seed: int,
    person: NDArray[np.intp] | None = None,
) -> NDArray[np.float64] | None:
    """Predict every row by a copy that was not fitted on it; None where a class is too rare to be left out.

    By hand and not by scikit-learn's `cross_val_predict`, which passes no weights without metadata routing, and warns
    or fails where a fold misses a class.
    """
    folds = stratified_folds(y, n_folds, seed, person)
    if folds is None:
        return None
    probabilities = np.empty((len(y), len(classes)))
    for train, test in folds:
        weight = None if sample_weight is None else sample_weight[train]
        model = fit_clone(estimator, take_rows(X, train), y[train], weight)
        probabilities[test] = class_probabilities(model, take_rows(X, test), classes)
    return probabilities


def stratified_folds(
    y: NDArray[np.generic], n_folds: int, seed: int, person: NDArray[np.intp] | None = None
) -> Folds | None:
    """Divide rows into folds with the same share of every class, and all rows of a person in one fold.

    A class with fewer rows than folds lowers the number of folds; None if it has a single row, which cannot be both
    fitted on and held out.
    """
    if person is not None:
        # Persons are divided by the label of their first row. scikit-learn's StratifiedGroupKFold looks at all of
        # them, and takes a second for each ten thousand persons.
        first, unit = np.unique(person, return_index=True, return_inverse=True)[1:]
        folds = stratified_folds(y[first], n_folds, seed)
        return None if folds is None else [(_rows_of(unit, kept), _rows_of(unit, held)) for kept, held in folds]
    rarest = int(np.unique(y, return_counts=True)[1].min())
    n_folds = min(n_folds, rarest)
    if n_folds < 2:
        return None
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)


def _rows_of(unit: NDArray[np.intp], chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows whose unit is one of those chosen."""
    return np.flatnonzero(np.isin(unit, chosen))
