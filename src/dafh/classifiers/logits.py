"""Probabilities, logits and labels of any classifier, with the classes in one order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from dafh.classifiers.protocols import Classifier
from dafh.exceptions import InputError
from dafh.frames import Table

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
    known = np.isin(model.classes_, classes)
    probabilities[:, np.searchsorted(classes, np.asarray(model.classes_)[known])] = predicted[:, known]
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
    place = int(possible[np.argmin(wrong[possible])])
    low, high = (values[place - 1] if place else 0.0), (values[place] if place < len(values) else 1.0)
    return float(np.clip((low + high) / 2, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY))
