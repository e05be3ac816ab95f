"""Any classifier of scikit-learn's kind: fitted copies, pipelines, probabilities, logits and cut-offs.

It knows nothing about groups. A classifier of our own belongs in `dafh.linear`.
"""

from collections.abc import Iterable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from dafh.exceptions import InputError
from dafh.frames import Table, take_rows

# ---- what is asked of a classifier ----


class Classifier(Protocol):
    """A classifier of scikit-learn's kind; `classes_` is there once it is fitted."""

    classes_: NDArray[Any]

    def fit(self, X: Table, y: ArrayLike) -> Self:
        """Learn from labelled rows."""
        ...

    def predict(self, X: Table) -> NDArray[Any]:
        """Label of each row."""
        ...

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class; some classifiers have none."""
        ...


class GroupModel(Classifier, Protocol):
    """A fitted model that serves groups: what metrics, audit, report and study rely on."""

    n_groups_: int
    pooled_: Classifier
    serves_: NDArray[np.intp]
    """Classifier that serves each group: a number from 0, or `n_groups_` for the pooled one."""

    def predict_group(self, X: Table) -> NDArray[np.intp]:
        """Group of each row."""
        ...

    def predict_all(self, X: Table) -> NDArray[Any]:
        """Label of each row by the classifier of each group, and by the pooled one in the last column."""
        ...


# ---- pipelines ----


def final_classifier(model: BaseEstimator) -> Any:
    """Return the classifier itself, also out of a pipeline, or of one inside another."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def split_pipeline(model: BaseEstimator, X: Table) -> tuple[Any, Any]:
    """Return the classifier at the end of a fitted pipeline, and the rows as it takes them."""
    while isinstance(model, Pipeline):
        # scikit-learn has no transform for the empty rest of a pipeline with one step.
        X = model[:-1].transform(X) if len(model.steps) > 1 else X
        model = model.steps[-1][1]
    return model, X


def parameter_path(model: BaseEstimator) -> str:
    """Return the prefix by which `fit` and `set_params` of a pipeline reach the classifier at its end."""
    prefix = ""
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        prefix += f"{name}__"
    return prefix


# ---- probabilities, logits and labels ----

# Probabilities are kept this far from 0: a classifier that claims to be certain can then still be corrected.
SMALLEST_PROBABILITY = 1e-6
MOST_LOGITS = 5_000_000
"""Held at once: until they are written as probabilities, each takes about 50 bytes."""


def rows_at_once(model: Any, most: int) -> int:
    """Return how many rows there is room for, with a logit for every label by every classifier of a fitted model."""
    return max(1, min(most, MOST_LOGITS // (len(model.classes_) * (int(model.n_groups_) + 1))))


def class_probabilities(model: Classifier, X: Table, classes: NDArray[np.generic]) -> NDArray[np.float64]:
    """Probability of each of `classes`, in their order; 0 for one that the model has never seen.

    A classifier fitted on one group or fold may lack a class, and one that the user brings may have more of them, or
    list them in another order.
    """
    predicted = model.predict_proba(X)
    probabilities = np.zeros((len(predicted), len(classes)))
    shared = np.isin(model.classes_, classes)
    probabilities[:, np.searchsorted(classes, np.asarray(model.classes_)[shared])] = predicted[:, shared]
    return probabilities


def logits(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn probabilities into what is corrected: the logit of class 1, (n, 1), or one log-probability per class.

    One logit is enough for two classes and halves the work. With more classes the softmax of log-probabilities gives
    the probabilities back, so that no class needs to be singled out as the reference.
    """
    logarithm = np.log(np.clip(probabilities, SMALLEST_PROBABILITY, None))
    return logarithm[:, 1:] - logarithm[:, :1] if probabilities.shape[1] == 2 else logarithm


def to_probabilities(logits: NDArray[Any]) -> NDArray[Any]:
    """Probability of each class, (n, classes), from the logit of class 1, (n, 1), or from one logit per class.

    Examples
    --------
    >>> to_probabilities(np.array([[0.0]]))
    array([[0.5, 0.5]])
    """
    if logits.shape[1] == 1:
        positive = expit(logits[:, 0])
        return np.column_stack([1 - positive, positive])
    return softmax(logits, axis=1)


def residual(base: NDArray[np.float64], label: NDArray[np.intp]) -> NDArray[np.float64]:
    """For the class of each logit, 1 or 0 (whether it is the label) minus its predicted probability; (n, m)."""
    if base.shape[1] == 1:
        return label[:, None] - expit(base)
    return (label[:, None] == np.arange(base.shape[1])) - softmax(base, axis=1)


def decide(logits: NDArray[Any], cutoff: float = 0.5) -> NDArray[np.intp]:
    """Index of the predicted class from logits (..., m), which may also be a JAX array; a tie goes to the first class.

    Parameters
    ----------
    logits : array of shape (..., m)
    cutoff : float, default=0.5
        With two classes, the probability above which the second one is predicted.

    Examples
    --------
    >>> decide(np.array([[-0.5], [0.0], [0.5]]))
    array([0, 0, 1])
    >>> decide(np.array([[-0.5], [0.0], [0.5]]), cutoff=0.3)
    array([1, 1, 1])
    >>> decide(np.array([[0.1, 0.2, 0.7], [0.4, 0.4, 0.2]]))
    array([2, 0])
    """
    # Written with what NumPy and JAX arrays have in common: training and serving must never decide by different rules,
    # and serving should not have to import JAX. Times 1 turns booleans into the default integers of either library.
    return (logits[..., 0] > float(logit(cutoff))) * 1 if logits.shape[-1] == 1 else logits.argmax(axis=-1)


def check_threshold(threshold: float, n_classes: int) -> None:
    """Refuse a cut-off that cannot be used."""
    if n_classes != 2 and threshold != 0.5:
        raise InputError(f"A threshold of {threshold:g} needs two classes, and y holds {n_classes}: leave it at 0.5.")


def find_cutoff(flagged: NDArray[np.bool_], probability: NDArray[np.float64]) -> float:
    """Probability above which a classifier predicts the second of two classes, from what it predicts.

    One half where that explains all predictions. Otherwise the middle between the largest probability that is not
    flagged and the smallest that is; and where no cut-off explains all predictions (rules on top of a score, say), the
    one that explains most.

    Examples
    --------
    >>> find_cutoff(np.array([False, True, True]), np.array([0.1, 0.3, 0.9]))
    0.2
    """
    if ((probability > 0.5) == flagged).all():
        return 0.5
    order = np.argsort(probability, kind="stable")
    values, above = probability[order], flagged[order]
    # Rows from position i on are flagged. Wrong are then the flagged ones before it and the others from it on.
    wrong = np.append(0, np.cumsum(above)) + np.append(np.cumsum(~above[::-1])[::-1], 0)
    # A cut-off lies between two different probabilities.
    possible = np.flatnonzero(np.append(True, np.append(values[1:] > values[:-1], True)))
    first = int(possible[np.argmin(wrong[possible])])
    low, high = (values[first - 1] if first else 0.0), (values[first] if first < len(values) else 1.0)
    return float(np.clip((low + high) / 2, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY))


# ---- fitted copies ----

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
        if folds is None:
            return None
        return [(np.flatnonzero(np.isin(unit, fit)), np.flatnonzero(np.isin(unit, held))) for fit, held in folds]
    rarest = int(np.unique(y, return_counts=True)[1].min())
    n_folds = min(n_folds, rarest)
    if n_folds < 2:
        return None
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y)
