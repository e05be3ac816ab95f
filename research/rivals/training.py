"""Train one linear model of two classes for all rows, with a weight for each row that may depend on its loss.

A rival that trains one model is a `Weighting`: it says how much each row counts, given the losses of all rows. All are
linear, as the paper's classifiers are, and solved to convergence by the same code: they differ in their weights only.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from dafh.exceptions import InputError

Floats = NDArray[np.float64]
_PRECISE = {"gtol": 1e-9, "ftol": 1e-14, "maxcor": 20}
_MOST_STEPS = 1000


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to train on: standardised columns (n, d), and labels 0 and 1."""

    x: Floats
    label: NDArray[np.intp]

    @property
    def share(self) -> Floats:
        """What each row counts in plain training."""
        return np.full(len(self.label), 1 / len(self.label))


class Weighting:
    """What each row counts: its share, whatever its loss.

    Subclasses are the rivals. `worst` is what the model minimises, in up to `rounds` rounds of `round_iter` steps with
    a `move` after each of them, and then to convergence.
    """

    rounds = 0
    round_iter = 0

    def __init__(self, share: Floats) -> None:
        self.share = share
        self.current = share

    def worst(self, losses: Floats) -> tuple[float, Floats]:
        """Risk of the row losses, and its derivative by each of them, which is what the row counts."""
        return float(self.current @ losses), self.current

    def move(self, losses: Floats) -> bool:
        """Adapt to the losses of all rows, and say whether there is nothing left to adapt."""
        return True


def scores(theta: Floats, x: Floats) -> Floats:
    """Logit of each row; the last coefficient is the intercept."""
    return x @ theta[:-1] + theta[-1]


def row_losses(theta: Floats, rows: TrainingRows) -> Floats:
    """Log-loss of each row."""
    # The logit with the sign that speaks against the label. Four times as fast as logaddexp, and as exact.
    against = np.where(rows.label == 1, -1, 1) * scores(theta, rows.x)
    return np.log1p(np.exp(-np.abs(against))) + np.maximum(against, 0.0)


def penalised_risk(theta: Floats, rows: TrainingRows, weighting: Weighting, l2: float) -> tuple[float, Floats]:
    """Risk of a model with its penalty, per row, and the gradient."""
    value, counts = weighting.worst(row_losses(theta, rows))
    # The derivative of a log-loss by its logit is probability minus label.
    slopes = counts * (expit(scores(theta, rows.x)) - rows.label)
    strength, weights = l2 / len(rows.label), np.append(theta[:-1], 0.0)  # No penalty holds the intercept back.
    gradient = np.append(slopes @ rows.x, slopes.sum()) + strength * weights
    return value + strength / 2 * float(weights @ weights), gradient


def train(rows: TrainingRows, weighting: Weighting, l2: float) -> Floats:
    """Solve a model against a weighting by L-BFGS: in rounds with moves between them, then to convergence."""

    def minimise(theta: Floats, max_iter: int) -> Floats:
        options = {"maxiter": max_iter, **_PRECISE}
        risk: Any = penalised_risk
        return np.asarray(
            minimize(risk, theta, (rows, weighting, l2), jac=True, method="L-BFGS-B", options=options).x, np.float64
        )

    theta = np.zeros(rows.x.shape[1] + 1)
    if type(weighting) is not Weighting:
        # From where all rows count alike: at the zero model all losses are equal, and no row is worse off than another.
        theta = train(rows, Weighting(rows.share), l2)
    for _ in range(weighting.rounds):
        theta = minimise(theta, weighting.round_iter)
        if weighting.move(row_losses(theta, rows)):
            break
    return minimise(theta, _MOST_STEPS)


class TwoClassClassifier(ClassifierMixin, BaseEstimator):
    """Classifier of two classes by a logit; subclasses fit it and set `classes_`."""

    classes_: NDArray[Any]

    @abstractmethod
    def _logits(self, values: Floats) -> Floats:
        """Logit of the second class for checked columns, (n,)."""

    def decision_function(self, X: ArrayLike) -> Floats:
        """Logit of the second class."""
        check_is_fitted(self)
        return self._logits(validate_data(self, X, reset=False, dtype=np.float64))

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probability of both classes; columns as in `classes_`."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label of each row."""
        return self.classes_[(self.decision_function(X) > 0).astype(np.intp)]


@dataclass(eq=False, repr=False, kw_only=True)
class RivalClassifier(TwoClassClassifier):
    """One linear model of two classes; subclasses say how rows are weighted.

    Columns are numbers and are standardised inside; `dafh.tabular_pipeline` encodes tables of any other kind. `l2` is
    the penalty on squared weights, 1 / C in scikit-learn, and by default that of the pooled classifier.
    """

    RANGES: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    """Values of the method's own parameters to tune over, by name."""
    l2: float = 1.0

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train the model."""
        values, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, label = two_classes(labels)
        scaler = StandardScaler().fit(values)
        with threadpool_limits(1):
            theta = self._train(TrainingRows(scaler.transform(values), label))
        # For columns in their own units, so that predicting needs no scaled copy of X.
        self.coef_ = theta[:-1] / scaler.scale_
        self.intercept_ = float(theta[-1] - scaler.mean_ @ self.coef_)
        return self

    @abstractmethod
    def _train(self, rows: TrainingRows) -> Floats:
        """Train the model on checked rows."""

    def _logits(self, values: Floats) -> Floats:
        return values @ self.coef_ + self.intercept_


def two_classes(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the two labels in sorted order, and 0 or 1 for each row."""
    classes, label = np.unique(labels, return_inverse=True)
    if len(classes) != 2:
        raise InputError(f"A rival needs two classes, and y holds {len(classes)}.")
    return classes, label.astype(np.intp)
