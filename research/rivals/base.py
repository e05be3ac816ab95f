"""What all rivals that train one model have in common: columns, labels, prediction."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from dafh.exceptions import InputError
from research.rivals.training import Floats, Layers, Network, Plan, TrainingRows, forward

# The first is that of logistic regression as the pooled classifier. The second was chosen by log-loss on the paper's
# five data sets (splits 100 to 103): of 1, 10, 20, 30 and 50, values from 10 to 50 are close to each other, and 1 is
# worse than 20 on all of them.
_L2_OF_LINES, _L2_OF_NETWORKS = 1.0, 20.0


@dataclass(eq=False, repr=False, kw_only=True)
class RivalClassifier(ClassifierMixin, BaseEstimator):
    """One model of two classes, linear or a network with one hidden layer; subclasses say how rows are weighted.

    Columns are numbers and are standardised inside; `dafh.tabular_pipeline` encodes tables of any other kind.

    Parameters
    ----------
    model : {"linear", "network"}, default="linear"
        A linear model, solved to convergence, or a network with 100 hidden units.
    l2 : float or None, default=None
        Penalty on squared weights of standardised columns, as 1 / C in scikit-learn. None: 1 for a linear model, 20 for
        a network.
    epochs : int, default=20
        Passes over the rows, for a network.
    random_state : int, RandomState or None, default=None
        Draws the start and the mini-batches of a network; a linear model has no chance in it.

    Attributes
    ----------
    classes_ : array
        Labels, as they were given.
    layers_ : list of (weights, biases)
        The model, for columns in their own units.
    """

    RANGES: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    """Values of the method's own parameters to tune over, by name."""
    model: str = "linear"
    l2: float | None = None
    epochs: int = 20
    random_state: Any = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train the model."""
        if self.model not in ("linear", "network"):
            raise InputError(f"model must be 'linear' or 'network', got {self.model!r}.")
        values, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, label = two_classes(labels)
        scaler = StandardScaler().fit(values)
        x = scaler.transform(values).astype(np.float32 if self.model == "network" else np.float64)
        rows, plan = TrainingRows(x, label), self._plan()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        with threadpool_limits(1):
            trained = self._train(rows, plan, rng)
        # For columns in their own units, so that predicting needs no scaled copy of X.
        network = Network(x.shape[1], plan.hidden)
        (weight, bias), *others = network.layers(trained.astype(np.float64))
        weight = weight / scaler.scale_[:, None]
        self.layers_: Layers = [(weight, bias - scaler.mean_ @ weight), *others]
        return self

    @abstractmethod
    def _train(self, rows: TrainingRows, plan: Plan, rng: np.random.Generator) -> Floats:
        """Train the model on checked rows."""

    def _plan(self) -> Plan:
        is_network = self.model == "network"
        l2 = (_L2_OF_NETWORKS if is_network else _L2_OF_LINES) if self.l2 is None else float(self.l2)
        return Plan(100 if is_network else 0, l2, epochs=self.epochs)

    def _logits(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        return forward(self.layers_, validate_data(self, X, reset=False, dtype=np.float64))[-1]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of both classes; columns as in `classes_`."""
        return to_probabilities(self._logits(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label of each row."""
        return self.classes_[decide(self._logits(X))]


def two_classes(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the two labels in sorted order, and 0 or 1 for each row."""
    classes, label = np.unique(labels, return_inverse=True)
    if len(classes) != 2:
        raise InputError(f"A rival needs two classes, and y holds {len(classes)}.")
    return classes, label.astype(np.intp)


def to_probabilities(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of both classes from the logit of the second."""
    positive = expit(logits[:, 0])
    return np.column_stack([1 - positive, positive])


def decide(logits: NDArray[Any]) -> NDArray[np.intp]:
    """Position of the more probable class; of two that are as probable, the first."""
    return (logits[:, 0] > 0).astype(np.intp)
