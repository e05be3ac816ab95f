"""What all rivals that train one model have in common: checks, columns, labels, prediction."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dafh.checks.parameters import (
    NOTHING,
    RANDOM_STATE,
    Constraints,
    RandomState,
    check_parameters,
    number,
    one_of,
    whole_number,
)
from dafh.checks.rows import TakesSparse, check_features, check_weights, unchanged_on_error
from dafh.classifiers.logits import by_blocks, decide, to_probabilities
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.linear.threads import one_thread
from research.rivals.training import Layers, Network, Plan, Trained, TrainingRows, forward

# The first is that of logistic regression as the pooled classifier. The second was chosen by log-loss on the paper's
# five data sets (splits 100 to 103): of 1, 10, 20, 30 and 50, values from 10 to 50 are close to each other, and 1 is
# worse than 20 on all of them.
_L2_OF_LINES, _L2_OF_NETWORKS = 1.0, 20.0


class RivalClassifier(TakesSparse, ClassifierMixin, BaseEstimator):
    """One model for all rows, linear or a network with one hidden layer; subclasses say how rows are weighted.

    Columns are numbers and are standardised inside; `dafh.tabular_pipeline` encodes tables of any other kind.
    """

    RANGES: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    """Values of the method's own parameters to tune over, by name."""
    _constraints: ClassVar[Constraints] = {
        "model": (one_of("linear", "network"),),
        "hidden": (whole_number(1),),
        "l2": (number(0, closed="left"), NOTHING),
        "max_iter": (whole_number(1),),
        "epochs": (whole_number(1),),
        "random_state": (RANDOM_STATE,),
    }
    model: str
    hidden: int
    l2: float | None
    max_iter: int
    epochs: int
    random_state: RandomState

    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array or data frame of numbers, of shape (n, d)
        y : array of shape (n,)
            Labels of any type, two or more different ones.
        sample_weight : array of shape (n,), optional
            A weight of 2 is the row given twice.
        """
        with unchanged_on_error(self), one_thread():
            check_parameters(self, {**RivalClassifier._constraints, **self._constraints})
            rows, scaler = self._check_rows(X, y, sample_weight)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            trained = self._train(rows, self._plan(), rng)
            self._keep(trained, rows, scaler)
        return self

    @abstractmethod
    def _train(self, rows: TrainingRows, plan: Plan, rng: np.random.Generator) -> Trained:
        """Train the model on checked rows."""

    def _check_rows(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[TrainingRows, StandardScaler]:
        """Check what was given, and standardise the columns of the rows that count."""
        values, labels = check_features(self, X, y, reset=True)
        check_classification_targets(labels)
        weight = check_weights(sample_weight, len(labels))
        counted = np.flatnonzero(weight > 0)
        self.classes_, label = np.unique(labels[counted], return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise InputError(f"y holds one class only ({only!r}): at least two classes are needed to learn anything.")
        values, weight = values[counted].astype(np.float64), weight[counted]
        scaler = StandardScaler().fit(values, sample_weight=weight)
        dtype = np.float32 if self.model == "network" else np.float64
        x = scaler.transform(values).astype(dtype)
        return TrainingRows(x, label.astype(np.intp), weight, len(self.classes_)), scaler

    def _plan(self) -> Plan:
        is_network = self.model == "network"
        l2 = (_L2_OF_NETWORKS if is_network else _L2_OF_LINES) if self.l2 is None else float(self.l2)
        return Plan(self.hidden if is_network else 0, l2, self.max_iter, self.epochs)

    def _keep(self, trained: Trained, rows: TrainingRows, scaler: StandardScaler) -> None:
        """Keep the layers for columns in their own units, so that predicting needs no scaled copy of X."""
        network = Network(rows.x.shape[1], self._plan().hidden, rows.n_outputs)
        (weight, bias), *others = network.layers(trained.parameters.astype(np.float64))
        weight = weight / scaler.scale_[:, None]
        self.layers_: Layers = [(weight, bias - scaler.mean_ @ weight), *others]
        self.n_iter_ = trained.n_iter

    def _logits(self, X: Table) -> NDArray[np.float64]:
        check_is_fitted(self)
        rows = check_features(self, X, reset=False).astype(np.float64)
        return by_blocks(lambda some: forward(self.layers_, some)[-1], rows, max(len(bias) for _, bias in self.layers_))

    def decision_function(self, X: Table) -> NDArray[np.float64]:
        """Logit of ``classes_[1]`` (two classes) or of every class."""
        logits = self._logits(X)
        return logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class; columns as in `classes_`."""
        return to_probabilities(self._logits(X))

    def predict(self, X: Table) -> NDArray[Any]:
        """Label of each row."""
        decided = decide(self._logits(X))
        return self.classes_[decided]
