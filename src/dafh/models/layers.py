"""A small neural network as plain arrays, served by NumPy."""

from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.neural_network import MLPClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from dafh.classifiers.logits import by_blocks
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.models.container import MalformedError

ACTIVATIONS = {
    "identity": lambda values: values,
    "logistic": expit,
    "tanh": np.tanh,
    "relu": lambda values: np.maximum(values, 0),
}


class LayeredClassifier(ClassifierMixin, BaseEstimator):
    """A neural network as a model file holds it: predicts as the fitted MLPClassifier did.

    scikit-learn's own object keeps its labels in a private attribute, so that its weights alone do not make it predict.

    Parameters
    ----------
    trained_as : MLPClassifier
        Not fitted: what the network was trained with. A clone of `LayeredClassifier` is a clone of this.
    """

    def __init__(self, trained_as: MLPClassifier) -> None:
        self.trained_as = trained_as

    def __sklearn_clone__(self) -> MLPClassifier:
        return clone(self.trained_as)

    def fit(self, X: Table, y: ArrayLike) -> Self:
        """Refuse: the weights are what they are."""
        raise InputError("A network from a model file cannot be fitted: sklearn.base.clone() makes a copy that can be.")

    def set_layers(
        self, classes: NDArray[np.generic], weights: list[NDArray[np.floating]], biases: list[NDArray[np.floating]]
    ) -> Self:
        """Set the weights (inputs, outputs) and biases (outputs,) of each layer, first to last."""
        m = 1 if len(classes) == 2 else len(classes)
        sizes = [self.n_features_in_, *(len(bias) for bias in biases)]
        if len(weights) != len(biases) or not weights or sizes[-1] != m:
            raise MalformedError("its network does not fit its classes")
        if any(w.shape != shape for w, shape in zip(weights, pairwise(sizes), strict=True)):
            raise MalformedError("the layers of its network do not fit together")
        self.classes_, self.coefs_, self.intercepts_ = classes, weights, biases
        self.activation_ = self.trained_as.activation  # Kept, or set_params would change predictions.
        return self

    def predict_proba(self, X: Table) -> NDArray[np.floating]:
        """Probability of each class; columns as in `classes_`."""
        check_is_fitted(self)
        logits = by_blocks(self._logits, validate_data(self, X, reset=False), max(map(len, self.intercepts_)))
        if logits.shape[1] > 1:
            return softmax(logits, axis=1)
        positive = expit(logits[:, 0])
        return np.column_stack([1 - positive, positive])

    def _logits(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        activation = ACTIVATIONS[self.activation_]
        for weight, bias in zip(self.coefs_[:-1], self.intercepts_[:-1], strict=True):
            values = activation(values @ weight + bias)
        return values @ self.coefs_[-1] + self.intercepts_[-1]

    def predict(self, X: Table) -> NDArray[np.generic]:
        """Return the most probable label of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
