"""Probabilities, logits and labels of any classifier, with the classes in one order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

# Probabilities are kept this far from 0 and 1, so that a sure classifier can still be corrected.
SMALLEST_PROBABILITY = 1e-6


def class_probabilities(model: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Probability of each of `classes`, in their order; 0 for one that the model has never seen."""
    probabilities = np.zeros((X.shape[0], len(classes)))
    known = np.isin(model.classes_, classes)
    columns = np.searchsorted(classes, np.asarray(model.classes_)[known])
    probabilities[:, columns] = model.predict_proba(X)[:, known]
    return probabilities


def logits(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    """Logits to be corrected: of class 1 for two classes, (n, 1); log-probabilities for more, (n, classes)."""
    logarithm = np.log(np.clip(probabilities, SMALLEST_PROBABILITY, None))
    return logarithm[:, 1:] - logarithm[:, :1] if probabilities.shape[1] == 2 else logarithm


def residual(base: NDArray[np.float64], label: NDArray[np.intp]) -> NDArray[np.float64]:
    """Of each logit's class, what happened (0 or 1) minus the probability that was given to it; (n, m)."""
    if base.shape[1] == 1:
        return label[:, None] - expit(base)
    return (label[:, None] == np.arange(base.shape[1])) - softmax(base, axis=1)


def decide(logits: NDArray[Any]) -> NDArray[np.intp]:
    """Index of the predicted class from logits (..., m), which may also be a JAX array; a tie goes to the first class.

    Examples
    --------
    >>> decide(np.array([[-0.5], [0.0], [0.5]]))
    array([0, 0, 1])
    >>> decide(np.array([[0.1, 0.2, 0.7], [0.4, 0.4, 0.2]]))
    array([2, 0])
    """
    # Written with what NumPy and JAX arrays have in common: training and serving must never decide by different rules,
    # and serving should not have to import JAX. Times 1 turns booleans into the default integers of either library.
    return (logits[..., 0] > 0) * 1 if logits.shape[-1] == 1 else logits.argmax(axis=-1)
