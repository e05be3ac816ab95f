"""Train one model of two classes for all rows, with a weight for each row that may depend on its loss.

A rival that trains one model is a `Weighting`: it says how much each row counts, given the losses of all rows. A linear
model is then solved to convergence, and a network with one hidden layer is trained by Adam in mini-batches. All rivals
share this code, so that they differ in their weights only, and never in capacity or in how long they are trained.

This is NumPy and not JAX: there is one small model and no population of them, linear models need double precision to
converge, and every new number of columns would cost a compilation that takes as long as the fit itself.
"""

import itertools
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
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from dafh.exceptions import InputError

Floats = NDArray[Any]
"""Numbers in double precision for linear models, and in single precision for networks."""
Layers = list[tuple[Floats, Floats]]
"""Weights and biases, layer by layer."""

# Penalty on squared weights, as 1 / C in scikit-learn. The first is that of logistic regression as the pooled
# classifier. The second was chosen by log-loss on the paper's five data sets (splits 100 to 103): of 1, 10, 20, 30 and
# 50, values from 10 to 50 are close to each other, and 1 is worse than 20 on all of them.
_L2_OF_LINES, _L2_OF_NETWORKS = 1.0, 20.0
_HIDDEN_UNITS = 100
# Of Adam. After 20 epochs, rates of 1e-3, 3e-3 and 1e-2 differ by at most 0.015 in log-loss (German, Arrest, Adult).
_RATE, _FIRST_DECAY, _SECOND_DECAY = 3e-3, 0.9, 0.999
# Rows in a mini-batch; fewer where that gives less than so many batches: a network needs steps as well as epochs.
_BATCH_SIZE, _SMALLEST_BATCH, _BATCHES = 256, 16, 40
# Share of the epochs in which all rows count alike.
_PLAIN_EPOCHS = 0.25
_GRADIENT_TOLERANCE, _VALUE_TOLERANCE = 1e-9, 1e-14
_MEMORY = 20
_MOST_STEPS = 1000


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to train on: standardised columns (n, d), and labels 0 and 1."""

    x: Floats
    label: NDArray[np.intp]

    @property
    def share(self) -> NDArray[np.float64]:
        """What each row counts in plain training."""
        return np.full(len(self.label), 1 / len(self.label))


@dataclass(frozen=True)
class Plan:
    """How a model is built and trained."""

    hidden: int
    """Width of the hidden layer; 0 is a linear model."""
    l2: float
    """Half of this times the sum of squared weights is added to the sum of the row losses."""
    epochs: int = 20
    """Passes over the rows, for a network."""


class Weighting:
    """What each row counts: its share, whatever its loss.

    Subclasses are the rivals. `worst` is what a linear model minimises, in up to `rounds` rounds of `round_iter` steps
    with a `move` after each of them, and then to convergence. A network has a `move` before every epoch, and takes the
    weights of each mini-batch from `of_batch`.
    """

    rounds = 0
    round_iter = 0

    def __init__(self, share: NDArray[np.float64]) -> None:
        self.share = share
        self.current: NDArray[np.float64] = share

    def worst(self, losses: Floats) -> tuple[float, NDArray[np.float64]]:
        """Risk of the row losses, and its derivative by each of them, which is what the row counts."""
        return float(self.current @ losses), self.current

    def move(self, losses: Floats) -> bool:
        """Adapt to the losses of all rows, and say whether there is nothing left to adapt."""
        return True

    def of_batch(self, rows: NDArray[np.intp], losses: Floats) -> NDArray[np.float64]:
        """What the rows of a mini-batch count, given their losses."""
        return self.current[rows]


class Network:
    """A linear model or a network with one rectified hidden layer; its parameters are one flat vector."""

    def __init__(self, n_columns: int, hidden: int) -> None:
        self.sizes = (n_columns, hidden, 1) if hidden else (n_columns, 1)
        self.dtype = np.float32 if hidden else np.float64

    def start(self, rng: np.random.Generator) -> Floats:
        """Draw the hidden layer by He's scale; the output starts at zero, which predicts both classes alike."""
        layers = []
        for position, (n_in, n_out) in enumerate(itertools.pairwise(self.sizes)):
            scale = 0.0 if position == len(self.sizes) - 2 else np.sqrt(2 / n_in)
            layers += [rng.standard_normal((n_in, n_out)).ravel() * scale, np.zeros(n_out)]
        return np.concatenate(layers).astype(self.dtype)

    def layers(self, parameters: Floats) -> Layers:
        """Weights and biases as views of the flat vector."""
        views, position = [], 0
        for n_in, n_out in itertools.pairwise(self.sizes):
            weight = parameters[position : position + n_in * n_out].reshape(n_in, n_out)
            position += n_in * n_out
            views.append((weight, parameters[position : position + n_out]))
            position += n_out
        return views

    def forward(self, parameters: Floats, x: Floats) -> list[Floats]:
        """Return the inputs of each layer, and the logits last."""
        return forward(self.layers(parameters), x)

    def backward(self, parameters: Floats, inputs: list[Floats], slope: Floats) -> Floats:
        """Gradient of a function of the logits, from its derivative by each logit, (n, 1)."""
        gradient = np.empty_like(parameters)
        pairs = zip(self.layers(parameters), self.layers(gradient), inputs[:-1], strict=True)
        for (weight, _), (by_weight, by_bias), value in reversed(list(pairs)):
            by_weight[:] = value.T @ slope
            by_bias[:] = slope.sum(axis=0)
            if value is not inputs[0]:
                slope = (slope @ weight.T) * (value > 0)
        return gradient

    def penalised(self, parameters: Floats) -> Floats:
        """Return the parameters with zeros for the biases, which no penalty holds back."""
        weights = parameters.copy()
        for _, bias in self.layers(weights):
            bias[:] = 0
        return weights


def forward(layers: Layers, x: Floats) -> list[Floats]:
    """Inputs of each layer, and the logits last."""
    inputs = [x]
    for position, (weight, bias) in enumerate(layers):
        output = inputs[-1] @ weight + bias
        inputs.append(np.maximum(output, 0, out=output) if position < len(layers) - 1 else output)
    return inputs


def row_losses(logits: Floats, label: NDArray[np.intp]) -> Floats:
    """Log-loss of each row."""
    # The logit with the sign that speaks against the label. Four times as fast as logaddexp, and as exact.
    against = np.where(label == 1, -logits[:, 0], logits[:, 0])
    return np.log1p(np.exp(-np.abs(against))) + np.maximum(against, 0.0)


def _slopes(logits: Floats, label: NDArray[np.intp]) -> Floats:
    """Derivative of each row's loss by its logit, (n, 1): predicted probability minus label."""
    return expit(logits) - label[:, None].astype(logits.dtype)


def train(rows: TrainingRows, weighting: Weighting, plan: Plan, rng: np.random.Generator) -> Floats:
    """Train a model against a weighting; return its parameters."""
    network = Network(rows.x.shape[1], plan.hidden)
    start = network.start(rng)
    if plan.hidden:
        return _train_by_batches(network, rows, weighting, plan, rng, start)
    if type(weighting) is Weighting:
        return _solve(network, rows, weighting, plan, start)
    # From where all rows count alike. At the zero model all losses are equal, and no row is worse off than another.
    plain = _solve(network, rows, Weighting(rows.share), plan, start)
    return _solve(network, rows, weighting, plan, plain)


def _solve(network: Network, rows: TrainingRows, weighting: Weighting, plan: Plan, start: Floats) -> Floats:
    """Solve a linear model: in rounds with moves of the weighting between them, then to convergence."""
    parameters = start
    for _ in range(weighting.rounds):
        parameters = _minimise(network, rows, weighting, plan, parameters, weighting.round_iter)
        if weighting.move(row_losses(network.forward(parameters, rows.x)[-1], rows.label)):
            break
    return _minimise(network, rows, weighting, plan, parameters, _MOST_STEPS)


def _minimise(
    network: Network, rows: TrainingRows, weighting: Weighting, plan: Plan, start: Floats, max_iter: int
) -> Floats:
    """Minimise the penalised risk by L-BFGS, in standardised columns.

    Coordinates in which the columns are uncorrelated as well save 15 to 40 % of the steps, and less of the time.
    """
    optimum = minimize(
        lambda at: penalised_risk(network, at, rows, weighting, plan.l2),
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "gtol": _GRADIENT_TOLERANCE, "ftol": _VALUE_TOLERANCE, "maxcor": _MEMORY},
    )
    return np.asarray(optimum.x)


def penalised_risk(
    network: Network, parameters: Floats, rows: TrainingRows, weighting: Weighting, l2: float
) -> tuple[float, Floats]:
    """Risk of a model with its penalty, per row, and the gradient."""
    inputs = network.forward(parameters, rows.x)
    value, counts = weighting.worst(row_losses(inputs[-1], rows.label))
    gradient = network.backward(parameters, inputs, counts[:, None] * _slopes(inputs[-1], rows.label))
    strength, weights = l2 / len(rows.label), network.penalised(parameters)
    return value + strength / 2 * float(weights @ weights), gradient + strength * weights


def _train_by_batches(
    network: Network,
    rows: TrainingRows,
    weighting: Weighting,
    plan: Plan,
    rng: np.random.Generator,
    start: Floats,
) -> Floats:
    """Train a network by Adam in mini-batches; a batch stands for all rows.

    The rate falls to zero in a straight line: training then ends at a place, and not on its way.
    """
    parameters, n_rows = start.copy(), len(rows.label)
    n_batches = max(n_rows // int(np.clip(n_rows // _BATCHES, _SMALLEST_BATCH, _BATCH_SIZE)), 1)
    strength, plain, n_steps = plan.l2 / n_rows, Weighting(rows.share), 0
    mean, mean_square = np.zeros_like(parameters), np.zeros_like(parameters)
    for epoch in range(plan.epochs):
        # The network learns alone at first: at its start all losses are equal, and no row is worse off than another.
        acting = weighting if epoch >= plan.epochs * _PLAIN_EPOCHS else plain
        acting.move(row_losses(network.forward(parameters, rows.x)[-1], rows.label))
        for batch in np.array_split(rng.permutation(n_rows), n_batches):
            inputs = network.forward(parameters, rows.x[batch])
            losses, slopes = row_losses(inputs[-1], rows.label[batch]), _slopes(inputs[-1], rows.label[batch])
            counts = (acting.of_batch(batch, losses) * (n_rows / len(batch))).astype(network.dtype)
            gradient = network.backward(parameters, inputs, counts[:, None] * slopes)
            gradient += network.dtype(strength) * network.penalised(parameters)
            rate = _RATE * (1 - n_steps / (plan.epochs * n_batches))
            n_steps += 1
            mean += (1 - _FIRST_DECAY) * (gradient - mean)
            mean_square += (1 - _SECOND_DECAY) * (gradient * gradient - mean_square)
            # Both means start at zero, and are too small at first.
            rate *= np.sqrt(1 - _SECOND_DECAY**n_steps) / (1 - _FIRST_DECAY**n_steps)
            parameters -= network.dtype(rate) * mean / (np.sqrt(mean_square) + network.dtype(1e-8))
    return parameters


@dataclass(eq=False, repr=False, kw_only=True)
class RivalClassifier(ClassifierMixin, BaseEstimator):
    """One model of two classes, linear or a network with one hidden layer; subclasses say how rows are weighted.

    Columns are numbers and are standardised inside; `dafh.tabular_pipeline` encodes tables of any other kind. A linear
    model is solved to convergence; a network is trained for `epochs` passes over the rows, and `random_state` draws its
    start and mini-batches. `l2` is the penalty on squared weights: by default 1 for a linear model, 20 for a network.
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
        is_network = self.model == "network"
        values, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, label = two_classes(labels)
        scaler = StandardScaler().fit(values)
        rows = TrainingRows(scaler.transform(values).astype(np.float32 if is_network else np.float64), label)
        l2 = (_L2_OF_NETWORKS if is_network else _L2_OF_LINES) if self.l2 is None else float(self.l2)
        plan = Plan(_HIDDEN_UNITS if is_network else 0, l2, self.epochs)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        with threadpool_limits(1):
            trained = self._train(rows, plan, rng)
        # For columns in their own units, so that predicting needs no scaled copy of X.
        (weight, bias), *deeper = Network(values.shape[1], plan.hidden).layers(trained.astype(np.float64))
        weight = weight / scaler.scale_[:, None]
        self.layers_: Layers = [(weight, bias - scaler.mean_ @ weight), *deeper]
        return self

    @abstractmethod
    def _train(self, rows: TrainingRows, plan: Plan, rng: np.random.Generator) -> Floats:
        """Train the model on checked rows."""

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
    """Probabilities of both classes from the logit of the second, (n, 1)."""
    positive = expit(logits[:, 0])
    return np.column_stack([1 - positive, positive])


def decide(logits: NDArray[Any], cutoff_logit: float = 0.0) -> NDArray[np.intp]:
    """Position of the predicted class: the second where its logit is above that of the cut-off."""
    return (logits[:, 0] > cutoff_logit).astype(np.intp)
