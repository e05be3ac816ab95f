"""Probabilities, logits and labels of any classifier, with the classes in one order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from dafh.classifiers.protocols import Classifier
from dafh.frames import Table

# Probabilities are kept this far from 0: a classifier that claims to be certain can then still be corrected.
SMALLEST_PROBABILITY = 1e-6


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


def residual(base: NDArray[np.float64], label: NDArray[np.intp]) -> NDArray[np.float64]:
    """For the class of each logit, 1 or 0 (whether it is the label) minus its predicted probability; (n, m)."""
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
