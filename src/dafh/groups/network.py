"""The group network and its classifiers: a population of replicas, trained as one compiled program.

The objective is not convex and the models are small, so many replicas (restarts × settings) are trained at once:
`jax.vmap` over the replicas turns their first layers into one large matrix product. Replicas come in blocks of the same
starts and settings: those of block f hold out fold f, whose rows have weight 0 for them, and those of the last block
train on all rows. So no row judges what it has taught, and one of the last block becomes the model.
`fit_population` draws the starts and calls `train`, which ascends the gradient of `objective.objective`. After every
epoch `population_figures` measures the replicas, and `Selection` says which replica and epoch become the model.
Where a start from exceptions leaves much to gain, random starts take its place.
"""

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neural_network import MLPClassifier

from dafh.classifiers import decide, to_probabilities
from dafh.exceptions import InputError
from dafh.groups.exceptions import paired_mean
from dafh.groups.judging import ROWS_TO_MATCH, matched_groups
from dafh.groups.objective import IMBALANCES, SURROGATES, Array, Batch, Form, Settings, objective
from dafh.groups.recipe import RANDOM_STARTS, Recipe
from dafh.groups.trained import Network, NetworkModel, apply_network
from dafh.linear.designs import Standardization
from dafh.progress import Curves, epoch_reporter
from dafh.rows import HeldOut, LabelledRows

# Numbers in a chunk: enough to make the cost of a call negligible, few enough to stay in the processor's cache.
_CHUNK_NUMBERS = 2**19
# Groups are called label-like if their normalised mutual information with the predicted label exceeds this.
LABEL_LIKE = 0.5
# Penalty for label-like groups, in units of the Brier score: worth about two percentage points of accuracy.
_PENALTY_FOR_LABEL_LIKE = 0.02
# Rows, counted in every pass, from which a network learns the groups of a start.
_ROWS_TO_COPY = 100_000
# Replicas and steps by which random starts are compared with one from exceptions: these have found groups of more than
# two conditions, if there are any, long before they have converged.
_TRIAL_REPLICAS, _TRIAL_STEPS = 2, 600
# Standard errors by which held-out rows must prefer them. They cost several times as much, and where they are about as
# good, groups that start from exceptions have readable names.
_ERRORS_TO_LEAVE_EXCEPTIONS = 3.0


class Parameters(NamedTuple):
    """Everything that one replica learns; in a population every array has a leading replica axis."""

    group: Network
    classifiers: Network
    """All K classifiers: every array has an axis of length K before its own two."""


@dataclass(frozen=True)
class Plan(Form):
    """The objective and how it is maximised, compiled into the program."""

    optimizer: str
    momentum: float
    """Of the classifiers, with ``optimizer="sgd"``."""
    alternate: bool
    """Update the group network first, then the classifiers, as in Algorithm 1; otherwise both at once."""
    averages: bool
    """Whether the model is a running average of the parameters."""

    @classmethod
    def of(cls, recipe: Recipe) -> "Plan":
        """Return the choices of a recipe, with its words replaced by functions."""
        surrogate: Any = recipe.surrogate
        imbalance: Any = recipe.imbalance
        return cls(
            surrogate=SURROGATES.get(surrogate, surrogate),
            imbalance=IMBALANCES.get(imbalance, imbalance),
            sums=recipe.reduction == "sum",
            anchor_moves_groups=recipe.anchor_moves_groups,
            optimizer=recipe.optimizer,
            momentum=recipe.momentum,
            alternate=recipe.alternate,
            averages=recipe.average_steps > 1,
        )

    def transformation(self, network: str) -> Any:
        """Return the optax transformation of a gradient, without the learning rate, which differs between replicas."""
        if self.optimizer == "adam":
            return optax.scale_by_adam()
        return optax.trace(self.momentum) if network == "classifiers" and self.momentum else optax.identity()


# ---- starts ----


@dataclass(frozen=True, eq=False)
class Start:
    """Groups of the training rows, and their classifiers, that the replicas of all blocks start from."""

    group: NDArray[np.intp]
    """(n,). The group network of each block first learns them from the block's rows."""
    weight: NDArray[np.float64]
    """Corrections of the pooled logits in the units of the columns, (blocks, K, d, m)."""
    bias: NDArray[np.float64]
    """(blocks, K, m)."""


def draw_network(rng: np.random.Generator, sizes: tuple[int, ...], output_scale: float) -> Network:
    """Draw a network with layers of the given sizes, and outputs of a standard deviation of about `output_scale`."""
    layers = []
    for number, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
        # Hidden layers have He's scale, which keeps the variance of rectified units from layer to layer.
        scale = output_scale if number == len(sizes) - 2 else np.sqrt(2.0)
        weight = rng.standard_normal((n_in, n_out)) * (scale / np.sqrt(n_in))
        layers.append((weight.astype(np.float32), np.zeros((1, n_out), np.float32)))
    return tuple(layers)


def stacked(trees: list[Any]) -> Any:
    """Stack trees of arrays of equal shapes along a new leading axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def draw_replica(
    rng: np.random.Generator, group_sizes: tuple[int, ...], classifier_sizes: tuple[int, ...], noise: float
) -> Parameters:
    """Draw one replica; `noise` is the standard deviation of the first outputs of its classifiers.

    Without any, all K classifiers would be the same, and get the same gradients for ever where groups are uniform.
    """
    group = draw_network(rng, group_sizes, output_scale=1.0)
    return Parameters(group, stacked([draw_network(rng, classifier_sizes, noise) for _ in range(group_sizes[-1])]))


def copied_groups(x: NDArray[Any], group: NDArray[np.intp], n_groups: int, hidden: tuple[int, ...]) -> Network | None:
    """Train a group network to tell groups that are given; None where some group has no rows."""
    if len(np.unique(group)) < max(n_groups, 2):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # A start need not be exact.
        passes = int(np.clip(_ROWS_TO_COPY / len(x), 5, 100))
        copy = MLPClassifier(hidden, learning_rate_init=0.01, max_iter=passes, random_state=0).fit(x, group)
    *hidden_layers, last = ((weight, bias[None]) for weight, bias in zip(copy.coefs_, copy.intercepts_, strict=True))
    if n_groups == 2:  # scikit-learn has one output then, the logit of the second group.
        last = tuple(array * [-0.5, 0.5] for array in last)
    return jax.tree.map(np.float32, (*hidden_layers, last))


def _first_parameters(
    recipe: Recipe, batch: Batch, n_groups: int, start: Start | None, columns: Standardization, seed: Any, n_folds: int
) -> Parameters:
    """Draw the replicas, block by block; replica r draws the same numbers in every block."""
    (_, d), m = batch.x.shape, batch.base.shape[1]
    sizes = (d, *recipe.group_hidden, n_groups), (d, m)
    # Relative to the spread of the pooled logits. Those that tell nothing have none, and noise relative to that would
    # break no symmetry: a spread of 1 then.
    spread = max(float(batch.base.std(axis=0).mean()), 1.0)
    # A stream for each replica: replica r is then the same however many there are.
    streams = seed.spawn(recipe.n_replicas)
    noises = spread * recipe.grid()["noise"]
    drawn = []
    for block in range(n_folds + 1):
        copied, corrections = None, (0.0, 0.0)
        if start is not None:
            rows = np.flatnonzero((batch.fold != block) | (block == n_folds))
            copied = copied_groups(batch.x[rows], start.group[rows], n_groups, tuple(recipe.group_hidden))
            shift = start.bias[block] + np.einsum("d,kdm->km", columns.center, start.weight[block])
            corrections = start.weight[block] * columns.scale[:, None], shift[:, None]
        for number, (stream, noise) in enumerate(zip(streams, noises, strict=True)):
            # Groups that differ break the symmetry as they are: the first replica starts at the exact solution.
            exact = number == 0 and copied is not None
            group, ((weight, bias),) = draw_replica(np.random.default_rng(stream), *sizes, 0.0 if exact else noise)
            layer = (np.float32(weight + corrections[0]), np.float32(bias + corrections[1]))
            drawn.append(Parameters(group if copied is None else copied, (layer,)))
    return stacked(drawn)


# ---- training ----


def train(
    batch: Batch, start: Parameters, settings: Settings, recipe: Recipe, *, max_epochs: int, rng: np.random.Generator
) -> Iterator[Parameters]:
    """Train all replicas, and yield the whole population as NumPy arrays after every pass over all rows.

    `start` and `settings` have a leading replica axis; `rng` shuffles the rows in every epoch.
    """
    settings = Settings(*(np.asarray(value, np.float32) for value in settings))
    plan = Plan.of(recipe)
    moments = {name: jax.vmap(plan.transformation(name).init)(getattr(start, name)) for name in Parameters._fields}
    state: Any = (start, moments, start if plan.averages else ())
    n_steps_done = 0
    for epoch in range(max_epochs):
        share = np.float32(1.0 - (1.0 - recipe.final_rate) * epoch / max(max_epochs - 1, 1))
        rates = {name: getattr(settings, name) * share for name in ("group_learning_rate", "classifier_learning_rate")}
        slowed = settings._replace(**rates)
        for chunk, n_steps in _chunks(batch, rng.permutation(len(batch.label)), recipe.batch_size):
            pace = np.array([n_steps_done, recipe.average_steps], np.float32)
            state = _train_chunk(state, slowed, chunk, n_steps, pace, plan)
            n_steps_done += n_steps
        # A copy, because the next epoch overwrites the memory of this one (donate_argnums below).
        yield jax.tree.map(np.array, state[2] if plan.averages else state[0])


@partial(jax.jit, static_argnames="plan", donate_argnums=0)
def _train_chunk(state: Any, settings: Settings, chunk: Batch, n_steps: int, pace: Array, plan: Plan) -> Any:
    """Train every replica on the first `n_steps` batches of a chunk.

    The state is parameters, moments of the optimiser, and the running average of the parameters; `pace` is the number
    of steps taken before this chunk, and that of the steps which the average covers.
    """
    step = jax.vmap(partial(_step, plan=plan), in_axes=(0, 0, 0, None))

    def advance(i: Array, state: Any) -> Any:
        params, moments, average = state
        params, moments = step(params, moments, settings, Batch(*(field[i] for field in chunk)))
        if plan.averages:
            # A plain mean until there are pace[1] steps, then an exponential one: a window would have to store them.
            newest = 1.0 / jnp.minimum(pace[0] + i + 1.0, pace[1])
            average = jax.tree.map(lambda mean, value: mean + newest * (value - mean), average, params)
        return params, moments, average

    return jax.lax.fori_loop(0, n_steps, advance, state)


def _step(params: Parameters, moments: Any, settings: Settings, batch: Batch, plan: Plan) -> tuple[Parameters, Any]:
    """Update one replica on one batch."""
    trains = (batch.fold != settings.held_out) | (settings.held_out < 0)
    batch = batch._replace(weight=batch.weight * trains)
    rates = {"group": settings.group_learning_rate, "classifiers": settings.classifier_learning_rate}
    previous = params, moments
    for updated in (("group",), ("classifiers",)) if plan.alternate else (("group", "classifiers"),):
        fixed = params

        # Bound as a default: a closure would see the parameters of a later turn of the loop.
        def loss(active: dict[str, Any], fixed: Parameters = fixed) -> Array:
            return training_loss(fixed._replace(**active), batch, settings, plan)

        gradient = jax.grad(loss)({name: getattr(params, name) for name in updated})
        for name in updated:
            direction, moment = plan.transformation(name).update(gradient[name], moments[name])
            rate = rates[name]
            moved = jax.tree.map(lambda p, g, rate=rate: p - rate * g, getattr(params, name), direction)
            params, moments = params._replace(**{name: moved}), moments | {name: moment}
    if batch.weight.shape[0] > 1:
        return params, moments
    # A row that the replica holds out is no update, for the momentum neither.
    return jax.tree.map(lambda old, new: jnp.where(trains.all(), new, old), previous, (params, moments))


def training_loss(params: Parameters, batch: Batch, settings: Settings, form: Form) -> Array:
    """Minus the objective of one replica, plus the L2 penalty on its classifiers."""
    size = sum((weight**2).sum() for weight, _ in params.classifiers)
    return settings.shrinkage / 2 * size - objective(*outputs(params, batch.x, batch.base), batch, settings, form)


def outputs(params: Parameters, x: Array, base: Array) -> tuple[Array, Array]:
    """Logits of the groups, (rows, K), and of all classifiers, (rows, K, m), for NumPy and JAX arrays alike."""
    return apply_network(params.group, x), apply_network(params.classifiers, x).swapaxes(0, 1) + base[:, None]


def _chunks(batch: Batch, order: NDArray[np.intp], batch_size: int) -> Iterator[tuple[Batch, int]]:
    """Cut the rows, in the given order, into chunks (steps, batch, ...), with the number of steps that hold rows.

    The shape of a chunk does not depend on the number of rows: a second fit with the same columns compiles nothing.
    """
    chunk_steps = max(_CHUNK_NUMBERS // (batch_size * batch.x.shape[1]), 4)
    chunk_rows = chunk_steps * batch_size
    for first in range(0, len(order), chunk_rows):
        rows = order[first : first + chunk_rows]
        padded = np.zeros(chunk_rows, np.intp)
        padded[: len(rows)] = rows
        chunk = Batch(*(field[padded] for field in batch))
        chunk.weight[len(rows) :] = 0
        shaped = Batch(*(field.reshape(chunk_steps, batch_size, *field.shape[1:]) for field in chunk))
        yield shaped, -(-len(rows) // batch_size)


# ---- which replica, and which epoch ----


def population_figures(
    params: Parameters, batch: Batch, pooled_right: NDArray[np.bool_], selection: NDArray[np.intp], n_folds: int
) -> dict[str, NDArray[np.float64]]:
    """Figures of every replica, (blocks, replicas), on the selection rows it holds out; on all, if it holds none."""
    figures, replicas = [], np.arange(len(params.group[0][0])).reshape(n_folds + 1, -1)
    for block, members in enumerate(replicas):
        rows = selection[batch.fold[selection] == block] if block < n_folds else selection
        held_out = Batch(*(field[rows] for field in batch))
        for member in members:
            replica = jax.tree.map(lambda leaf, member=member: leaf[member], params)
            with np.errstate(all="ignore"):  # A replica that diverges has no figures.
                figures.append(_figures(replica, held_out, pooled_right[rows]))
    return {
        f"selection_{name}": np.array([each[name] for each in figures]).reshape(replicas.shape) for name in figures[0]
    }


def _figures(replica: Parameters, batch: Batch, pooled_right: NDArray[np.bool_]) -> dict[str, float]:
    """Figures of one replica on some rows, each served by the classifier of its group."""
    group_logits, logits = outputs(replica, batch.x, batch.base)
    group, rows = group_logits.argmax(axis=1), np.arange(len(batch.label))
    served, decided = logits[rows, group], decide(logits)
    right = decided == batch.label[:, None]
    distance = to_probabilities(served) - np.eye(max(served.shape[1], 2))[batch.label]
    means = {
        "brier": (distance**2).sum(axis=1) / 2,
        "accuracy": right[rows, group],
        "pr": right[rows, group] | ~(right.any(axis=1) | pooled_right),
    }
    figures = {name: float(batch.weight @ values / batch.weight.sum()) for name, values in means.items()}
    # By definition, one group and one label would tell all about each other.
    several = (group != group[:1]).any()
    information = float(normalized_mutual_info_score(group, decided[rows, group])) if several else 0.0
    return figures | {"label_information": information}


class Choice(NamedTuple):
    """One checkpoint of one replica; both numbers start at 0."""

    replica: int
    epoch: int


@dataclass(frozen=True)
class Selection:
    """The rule that selects replica and epoch, and that ends training."""

    n_folds: int
    patience: int = 0
    """Training ends after this many epochs without improvement."""
    last: bool = False
    """Train to the end and take the last epoch, as the paper does; only the replica is then selected."""
    all_choose: bool = False
    """The rows that choose also judge afterwards: for each fold, the other folds choose."""

    def judged(self, curves: Curves) -> Curves:
        """Average each curve over the folds, (epochs, replicas)."""
        return {name: curve[:, : self.n_folds or 1].mean(axis=1) for name, curve in curves.items()}

    def criterion(self, curves: Curves) -> NDArray[np.float64]:
        """Return the value to minimise, (epochs, replicas): the Brier score on held-out rows."""
        values = self._values(curves)
        # The replica that trained on all rows must not do worse on them than its folds do on rows they never saw: it
        # has then ended in a worse optimum than its folds. So the larger of the two values counts.
        return np.maximum(values[:, : self.n_folds or 1].mean(axis=1), values[:, -1])

    def _values(self, curves: Curves) -> NDArray[np.float64]:
        # Neither accuracy nor Pr: they are counts over few rows, and the largest of many noisy counts is mostly noise.
        # Nor log-loss: a row near the border of two groups gets a confident prediction from one or the other, and the
        # unbounded loss of those few rows would exclude the sharpest, and best, classifiers.
        # If the groups are little more than the predicted label, the group network has become the predictor. Such a
        # checkpoint must be clearly better than one whose groups mean something else.
        is_label_like = curves["selection_label_information"] > LABEL_LIKE
        values = curves["selection_brier"] + _PENALTY_FOR_LABEL_LIKE * is_label_like
        return np.where(np.isfinite(values), values, np.inf)

    def choose(self, curves: Curves) -> Choice:
        """Return the checkpoint with the smallest criterion; ties go to the earliest epoch, then the first replica."""
        return self._smallest(self.criterion(curves))

    def choose_by_block(self, curves: Curves) -> list[Choice]:
        """Return the checkpoint of each block; the last is that of the model."""
        final = self.choose(curves)
        if not self.all_choose:
            return [final] * (self.n_folds + 1)
        # Where the rows of a fold judge as well as choose, the model that holds the fold out is the one that the other
        # folds choose: no row then judges what it has chosen. The block that was trained on all rows has no say,
        # because it has seen the labels of the fold.
        folds = self._values(curves)[:, : self.n_folds]
        without_fold = [np.delete(folds, fold, axis=1).mean(axis=1) for fold in range(self.n_folds)]
        return [*map(self._smallest, without_fold), final]

    def _smallest(self, values: NDArray[np.float64]) -> Choice:
        if self.last:
            return Choice(int(values[-1].argmin()), len(values) - 1)
        epoch, replica = np.unravel_index(values.argmin(), values.shape)
        return Choice(int(replica), int(epoch))

    def should_stop(self, curves: Curves) -> bool:
        """Whether the best criterion in the population has not improved for `patience` epochs."""
        best_of_epoch = self.criterion(curves).min(axis=1)
        return not self.last and len(best_of_epoch) - 1 - int(best_of_epoch.argmin()) >= self.patience


# ---- the way in ----


@dataclass(frozen=True, eq=False)
class FittedPopulation:
    """The model chosen, the models of its folds, and how they came about."""

    model: NetworkModel
    folds: tuple[NetworkModel, ...]
    """The same start trained without each fold; none where nothing was held out."""
    history: pd.DataFrame
    """Of the chosen replica."""
    best_epoch: int
    """Counted from 1."""

    def cross_fitted(
        self, rows: LabelledRows, base: NDArray[np.float64], held_out: HeldOut
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """Calibration rows, and of all rows the group (n,) and the logits of every own classifier (n, K, m).

        They are those of models that were trained without the row, with groups numbered as in the final model.
        """
        # Every so many rows, not the first ones: files are often sorted.
        sample = rows.numbers[:: max(len(rows) // ROWS_TO_MATCH, 1)]
        final_group = self.model.group_logits(sample).argmax(axis=1)
        group, own_logits = np.zeros(len(rows), np.intp), np.repeat(base[:, None], self.model.n_groups, axis=1)
        for fold, model in enumerate(self.folds):
            members = held_out.calibration(fold)
            if len(members):
                number = matched_groups(model.group_logits(sample).argmax(axis=1), final_group, self.model.n_groups)
                group[members] = number[model.group_logits(rows.numbers[members]).argmax(axis=1)]
                logits = model.logits(rows.numbers[members])[:, np.argsort(number)]
                own_logits[members] = logits + (base[members, None] if model.contains_pooled else 0.0)
        judging = [held_out.calibration(fold) for fold in range(len(self.folds))]
        return np.concatenate([np.zeros(0, np.intp), *judging]), group, own_logits


def fit_population(
    recipe: Recipe,
    n_groups: int,
    rows: LabelledRows,
    base: NDArray[np.float64],
    held_out: HeldOut,
    *,
    start: Start | None,
    seeds: tuple[np.random.SeedSequence, np.random.SeedSequence],
    verbose: int = 0,
) -> FittedPopulation:
    """Train every replica on all rows and, beside that, without each fold; choose by the rows of the folds.

    `base` are out-of-fold logits of the pooled classifier, (n, m), which own classifiers correct; without a `start`,
    groups start at random. The first of the `seeds` is for that, the second for the order of the rows.

    The objective has local optima, and training hardly leaves the one that a list of exceptions leads to. A few random
    starts are therefore trained for a while without one fold; a population of them takes over if its rows prefer them.
    """
    warm, n_folds = recipe.start != "cold", held_out.n_folds
    columns = Standardization.of(rows.numbers, rows.weight)
    batch = Batch(
        x=columns.of_rows(rows.numbers).astype(np.float32),
        label=rows.label.astype(np.int32),
        base=(base if warm else np.zeros_like(base)).astype(np.float32),
        # A mean weight of 1: the learning rates then mean the same whatever the unit of the weights.
        weight=(rows.weight / rows.weight.mean()).astype(np.float32),
        fold=held_out.fold,
    )
    max_epochs, patience = recipe.schedule(len(rows), from_start=start is not None)
    rule = Selection(n_folds, patience, recipe.select == "last", held_out.all_choose)
    grid, pooled_right = recipe.grid(), decide(base) == rows.label
    epochs = train(
        batch,
        _first_parameters(recipe, batch, n_groups, start, columns, seeds[0], n_folds),
        # Once for every fold, and once more for the models trained on all rows.
        Settings(
            **{name: np.tile(values, n_folds + 1) for name, values in grid.items() if name != "noise"},
            held_out=np.repeat([*range(n_folds), -1], recipe.n_replicas),
        ),
        recipe,
        max_epochs=max_epochs,
        rng=np.random.default_rng(seeds[1]),
    )
    figures: list[dict[str, NDArray[np.float64]]] = []
    checkpoints: dict[int, Parameters] = {}
    with epoch_reporter(max_epochs, verbose, rule) as report:
        for epoch, params in enumerate(epochs):
            figures.append(population_figures(params, batch, pooled_right, held_out.selection, n_folds))
            curves = {name: np.array([each[name] for each in figures]) for name in figures[0]}
            checkpoints[epoch] = params
            # Only epochs that may still be chosen: with many replicas, all of them would fill the memory.
            checkpoints = {choice.epoch: checkpoints[choice.epoch] for choice in rule.choose_by_block(curves)}
            if report is not None:
                report(epoch + 1, curves)
            if rule.should_stop(curves):
                break
    # One replica that survives is enough; the others count as infinitely bad.
    if not np.isfinite(rule.criterion(curves)).any():
        advice = "bring the columns of X to ordinary scales, or lower the learning rates."
        raise InputError(f"Training diverged in every replica: {advice}")
    choices = rule.choose_by_block(curves)

    def served(block: int) -> NetworkModel:
        number = block * recipe.n_replicas + choices[block].replica
        group, classifiers = jax.tree.map(lambda leaf: leaf[number], checkpoints[choices[block].epoch])
        return NetworkModel.from_parameters(group, classifiers, columns, contains_pooled=warm)

    final = choices[-1]
    judged = {name: curve[:, final.replica] for name, curve in rule.judged(curves).items()}
    history = pd.DataFrame(judged, index=pd.RangeIndex(1, len(figures) + 1, name="epoch"))
    folds = tuple(served(block) for block in range(n_folds))
    population = FittedPopulation(served(n_folds), folds, history, final.epoch + 1)
    is_fixed = recipe.start != "exceptions" or recipe.max_epochs != "auto" or recipe.select == "last"
    if start is None or is_fixed or n_folds < 2:
        return population
    fit_random = partial(fit_population, n_groups=n_groups, rows=rows, base=base, start=None, seeds=seeds)
    random = clone(recipe).set_params(**RANDOM_STARTS)
    trial_epochs = -(-_TRIAL_STEPS * recipe.batch_size // len(rows))
    in_fold = held_out.fold == 0
    trial_recipe = clone(random).set_params(n_replicas=_TRIAL_REPLICAS, max_epochs=trial_epochs)
    one_fold = HeldOut(np.where(in_fold, 0, -1).astype(np.int32), np.zeros(len(rows), bool), 1)
    try:
        trial = fit_random(trial_recipe, held_out=one_fold)
    except InputError:  # Random starts diverged.
        return population
    judging = np.flatnonzero(in_fold)
    scores = [_served_scores(each.folds[0], rows, base, judging) for each in (population, trial)]
    person = None if rows.person is None else rows.person[judging]
    gain, error = paired_mean(scores[0] - scores[1], rows.weight[judging], person)
    if gain <= _ERRORS_TO_LEAVE_EXCEPTIONS * error:
        return population
    return fit_random(random, held_out=held_out, verbose=verbose)


def _served_scores(
    model: NetworkModel, rows: LabelledRows, base: NDArray[np.float64], members: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Brier scores of some rows, each served by the classifier of its group, which corrects the pooled logits."""
    numbers = rows.numbers[members]
    group = model.group_logits(numbers).argmax(axis=1)
    probabilities = to_probabilities(base[members] + model.logits(numbers)[np.arange(len(members)), group])
    return ((probabilities - np.eye(probabilities.shape[1])[rows.label[members]]) ** 2).sum(axis=1) / 2
