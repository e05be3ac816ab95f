"""Train a population of replicas on the same batches, as one compiled program.

The objective is not convex and the models are small, so many replicas (restarts × settings) are trained at once:
`jax.vmap` over the replicas turns their first layers into one large matrix product. Batches arrive in chunks. The shape
of a chunk depends only on the number of columns, and the number of steps in it is an argument of the program: a second
fit with the same columns compiles nothing, however many rows it has.

Each replica may hold out a fold of the rows, which makes cross-fitting part of the same run: a row that a replica may
not see has weight 0 for it. Parameters that are evaluated and kept are the running average over the last steps: at a
constant learning rate the parameters themselves wander around the optimum.

The way of one step, in the order of the functions below: `train_population` hands chunks to `train_chunk`, which takes
`_step` after `_step`; each descends the gradient of `loss_and_totals`, which is minus `objective.objective`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from scipy.special import entr

from dafh.engine.compilation_cache import enable_compilation_cache
from dafh.engine.networks import Array, Parameters, Start, apply_classifiers, apply_group_network, init_replica, stack
from dafh.engine.objective import Rows, Settings, Surrogate, Totals, objective, row_totals

Curves = dict[str, NDArray[np.float64]]
"""Figures by name, each of shape (epochs, replicas)."""

# Numbers in a chunk: enough to make the cost of a call negligible, few enough to stay in the processor's cache.
_CHUNK_NUMBERS = 2**19


@dataclass(frozen=True)
class Plan:
    """Choices that are compiled into the program, and are therefore the same for all replicas."""

    group_sizes: tuple[int, ...]
    """Width of each layer of the group network: first the number of columns and answers, last that of groups."""
    classifier_sizes: tuple[int, ...]
    """The same for the classifier of each group, which sees no answers. The last width is 1 for two classes, and the
    number of classes otherwise."""
    surrogate: Surrogate = "margin"
    optimizer: Literal["adam", "sgd"] = "adam"
    momentum: float = 0.0
    """Used for the classifiers only, and only with ``optimizer="sgd"``."""
    alternate: bool = False
    """Update the group network first, then the classifiers, as in Algorithm 1; otherwise both at once."""
    anchor_moves_groups: bool = True

    @property
    def update_order(self) -> tuple[tuple[str, ...], ...]:
        """Parts of the parameters in the order of their updates; those in one tuple are updated together."""
        return (("group",), ("classifiers",)) if self.alternate else (("group", "classifiers"),)

    def transformation(self, part: str) -> Any:
        """Return the optax transformation for the gradient of one part.

        It has no learning rate: the rate differs between replicas, and is applied in the training step.
        """
        if self.optimizer == "adam":
            return optax.scale_by_adam()
        return optax.trace(self.momentum) if part == "classifiers" and self.momentum else optax.identity()


@dataclass(frozen=True)
class TrainingRecord:
    """The result of a training run."""

    curves: Curves
    """objective, log_loss, brier, accuracy, pr and label_information, each with the prefix train_ or selection_.

    Figures on the training rows are averages over the epoch, collected as its batches were visited; those on the
    selection rows are computed at its end.
    """
    checkpoints: tuple[Parameters | None, ...]
    """The whole population after each epoch, as NumPy arrays; None for an epoch that was not kept."""

    def parameters(self, replica: int, epoch: int) -> Parameters:
        """Return the parameters of one replica after one epoch."""
        return jax.tree.map(lambda leaf: leaf[replica], self.checkpoints[epoch])


def init_population(
    plan: Plan,
    noise: NDArray[np.float64],
    seed: np.random.SeedSequence,
    starts: Sequence[Start | None] = (None,),
) -> Parameters:
    """Draw the replicas, block by block.

    Parameters
    ----------
    noise : array of shape (replicas,) or (blocks, replicas)
        Scale of the first corrections.
    starts : sequence
        What the replicas of each block start from; None for a random start. Replica r draws the same numbers in every
        block.
    """
    scales = np.broadcast_to(noise, (len(starts), np.shape(noise)[-1]))
    # A stream for each replica: replica r is then the same however many replicas there are.
    streams = seed.spawn(scales.shape[1])
    return stack(
        [
            init_replica(np.random.default_rng(stream), plan.group_sizes, plan.classifier_sizes, float(scale), start)
            for start, block in zip(starts, scales, strict=True)
            for stream, scale in zip(streams, block, strict=True)
        ]
    )


def train_population(
    train: Rows,
    selection: Rows,
    start: Parameters,
    settings: Settings,
    plan: Plan,
    *,
    batch_size: int,
    max_epochs: int,
    rng: np.random.Generator,
    final_rate: float = 1.0,
    average_steps: int = 1,
    should_stop: Callable[[Curves], bool] | None = None,
    on_epoch: Callable[[int, Curves], None] | None = None,
    keep: Callable[[Curves], set[int]] | None = None,
) -> TrainingRecord:
    """Train all replicas for up to `max_epochs` passes over the training rows.

    Parameters
    ----------
    train, selection : Rows
        NumPy arrays with a single leading axis.
    start : Parameters
        With a leading replica axis.
    settings : Settings
        Of shape (replicas,).
    batch_size, max_epochs : int
    rng : numpy.random.Generator
        Shuffles the rows in every epoch.
    final_rate : float
        The learning rates fall linearly to this share of their first value, in epoch `max_epochs`.
    average_steps : int
        Number of steps that the running average of the parameters covers; 1: no averaging.
    should_stop, on_epoch : functions, optional
        Called after each epoch with the curves so far, `on_epoch` with the number of epochs done before them. Training
        ends when `should_stop` returns True.
    keep : function, optional
        Called after each epoch with the curves so far; returns the epochs whose checkpoints are still needed, counted
        from 0. By default every epoch leaves a checkpoint.
    """
    enable_compilation_cache()
    settings = Settings(*(np.asarray(value, np.float32) for value in settings))
    state = (start, zero_moments(start, plan), start)
    n_steps_done = 0
    history: list[dict[str, NDArray[np.float64]]] = []
    checkpoints: list[Parameters | None] = []
    for epoch in range(max_epochs):
        slowed = slowed_to(settings, 1.0 - (1.0 - final_rate) * epoch / max(max_epochs - 1, 1))
        train_sums = []
        for chunk, n_steps in _chunks(train, rng.permutation(len(train.label)), batch_size):
            pace = np.array([n_steps_done, average_steps], np.float32)
            state, sums = train_chunk(state, slowed, chunk, n_steps, pace, plan)
            n_steps_done += n_steps
            train_sums.append(sums)
        average = state[-1]
        measured = _curve_points("train_", train_sums, settings)
        measured |= _curve_points("selection_", _evaluate(average, selection, settings, plan, batch_size), settings)
        history.append(measured)
        curves = {name: np.array([point[name] for point in history]) for name in measured}
        needed = range(epoch + 1) if keep is None else keep(curves)
        checkpoints = [checkpoint if i in needed else None for i, checkpoint in enumerate(checkpoints)]
        # A copy, because the next epoch overwrites the memory of this one (donate_argnums below).
        checkpoints.append(jax.tree.map(lambda leaf: np.array(leaf), average) if epoch in needed else None)
        if on_epoch is not None:
            on_epoch(len(history), curves)
        if should_stop is not None and should_stop(curves):
            break
    return TrainingRecord(curves, tuple(checkpoints))


@partial(jax.jit, static_argnames="plan", donate_argnums=0)
def train_chunk(
    state: tuple[Parameters, dict[str, Any], Parameters],
    settings: Settings,
    chunk: Rows,
    n_steps: int,
    pace: Array,
    plan: Plan,
) -> tuple[tuple[Parameters, dict[str, Any], Parameters], Totals]:
    """Train every replica on the first `n_steps` batches of a chunk; return the new state and the sums over the rows.

    The state consists of the parameters, the moments of the optimiser, and the running average of the parameters.
    `pace` holds the number of steps taken before this chunk, and the number of steps that the average covers.
    """
    step = jax.vmap(partial(_step, plan=plan), in_axes=(0, 0, 0, None))

    def advance(i: Array, carry: Any) -> Any:
        (params, moments, average), sums = carry
        params, moments, totals = step(params, moments, settings, _batch(chunk, i))
        # A plain mean until there are pace[1] steps, then an exponential one: a window would have to store them all.
        newest = 1.0 / jnp.minimum(pace[0] + i + 1.0, pace[1])
        average = jax.tree.map(lambda mean, value: mean + newest * (value - mean), average, params)
        return (params, moments, average), jax.tree.map(jnp.add, sums, totals)

    return jax.lax.fori_loop(0, n_steps, advance, (state, _zero_totals(settings, plan)))


def _step(
    params: Parameters, moments: dict[str, Any], settings: Settings, batch: Rows, plan: Plan
) -> tuple[Parameters, dict[str, Any], Totals]:
    """Update one replica on one batch."""
    rates = {"group": settings.group_rate, "classifiers": settings.classifier_rate}
    for parts in plan.update_order:
        whole = params

        # Bound as a default: a closure would see the parameters of a later turn of the loop.
        def loss(active: dict[str, Any], whole: Parameters = whole) -> tuple[Array, Totals]:
            return loss_and_totals(whole._replace(**active), settings, batch, plan)

        gradient, totals = jax.grad(loss, has_aux=True)({part: getattr(params, part) for part in parts})
        for part in parts:
            direction, moment = plan.transformation(part).update(gradient[part], moments[part])
            rate = rates[part]
            moved = jax.tree.map(lambda p, g, rate=rate: p - rate * g, getattr(params, part), direction)
            params, moments = params._replace(**{part: moved}), moments | {part: moment}
    return params, moments, totals


def loss_and_totals(params: Parameters, settings: Settings, batch: Rows, plan: Plan) -> tuple[Array, Totals]:
    """Return the loss of one replica on one batch: minus the objective, plus an L2 penalty on the corrections."""
    trains = (batch.fold != settings.held_out) | (settings.held_out < 0)
    batch = batch._replace(weight=batch.weight * trains)
    totals = batch_totals(params, settings, batch, plan)
    size = sum((layer.weight**2).sum() for layer in params.classifiers)
    return settings.shrinkage / 2 * size - objective(totals, settings), totals


def batch_totals(params: Parameters, settings: Settings, batch: Rows, plan: Plan) -> Totals:
    """Sum over the rows of one batch, for one replica."""
    seen = batch.seen_by(settings.held_out)
    group_logits = apply_group_network(params.group, seen.x, seen.answers)
    logits = apply_classifiers(params.classifiers, seen.x, seen.base)
    return row_totals(group_logits, logits, seen, settings, plan.surrogate, moves_groups=plan.anchor_moves_groups)


def evaluate_population(
    params: Parameters, rows: Rows, settings: Settings, plan: Plan, *, batch_size: int
) -> dict[str, NDArray[np.float64]]:
    """Compute objective, log-loss, Brier score, accuracy and Pr without harm of every replica on the given rows."""
    enable_compilation_cache()
    settings = Settings(*(np.asarray(value, np.float32) for value in settings))
    return _curve_points("", _evaluate(params, rows, settings, plan, batch_size), settings)


def slowed_to(settings: Settings, factor: float) -> Settings:
    """Return the settings with a share of their learning rates."""
    share = np.float32(factor)
    return settings._replace(group_rate=settings.group_rate * share, classifier_rate=settings.classifier_rate * share)


def zero_moments(params: Parameters, plan: Plan) -> dict[str, Any]:
    """Return the first state of the optimiser: all zeros.

    Only the shapes come from optax: running its `init` would compile a program for every array.
    """

    def zeros(part: str) -> Any:
        shapes = jax.eval_shape(jax.vmap(plan.transformation(part).init), getattr(params, part))
        return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)

    return {part: zeros(part) for part in Parameters._fields}


def _chunks(rows: Rows, order: NDArray[np.intp], batch_size: int) -> Iterator[tuple[Rows, int]]:
    """Cut the rows, in the given order, into chunks of equal shape (steps, batch, ...).

    The last chunk is padded with rows of weight 0, and comes with the number of steps that hold rows at all.
    """
    # Answers take a byte each, a quarter of a number.
    numbers_per_row = rows.x.shape[1] + int(np.prod(rows.answers.shape[1:])) // 4
    chunk_steps = int(np.clip(_CHUNK_NUMBERS // (batch_size * numbers_per_row), 4, 32))
    chunk_rows = chunk_steps * batch_size
    for first in range(0, len(order), chunk_rows):
        taken = order[first : first + chunk_rows]
        padded = np.zeros(chunk_rows, np.intp)
        padded[: len(taken)] = taken
        chunk = Rows(*(field[padded] for field in rows))
        chunk.weight[len(taken) :] = 0
        shaped = Rows(*(field.reshape(chunk_steps, batch_size, *field.shape[1:]) for field in chunk))
        yield shaped, -(-len(taken) // batch_size)


@partial(jax.jit, static_argnames="plan")
def _evaluate_chunk(params: Parameters, settings: Settings, chunk: Rows, n_steps: int, plan: Plan) -> Totals:
    """Sum over the rows of a chunk on which each replica is evaluated."""

    def judge(params: Parameters, settings: Settings, batch: Rows) -> Totals:
        judged = (batch.fold == settings.held_out) | (settings.held_out < 0)
        return batch_totals(params, settings, batch._replace(weight=batch.weight * judged), plan)

    measure = jax.vmap(judge, in_axes=(0, 0, None))

    def advance(i: Array, sums: Totals) -> Totals:
        return jax.tree.map(jnp.add, sums, measure(params, settings, _batch(chunk, i)))

    return jax.lax.fori_loop(0, n_steps, advance, _zero_totals(settings, plan))


_objective_of_each = jax.jit(jax.vmap(objective))


def _batch(chunk: Rows, step: Array) -> Rows:
    return Rows(*(field[step] for field in chunk))


def _zero_totals(settings: Settings, plan: Plan) -> Totals:
    per_replica = jnp.zeros_like(settings.penalty)
    mass = jnp.zeros((*per_replica.shape, plan.group_sizes[-1]))
    decided = jnp.zeros((*mass.shape, max(plan.classifier_sizes[-1], 2)))
    return Totals(*(per_replica for _ in Totals._fields))._replace(mass=mass, decided=decided)


def _evaluate(params: Parameters, rows: Rows, settings: Settings, plan: Plan, batch_size: int) -> list[Totals]:
    chunks = _chunks(rows, np.arange(len(rows.label)), batch_size)
    return [_evaluate_chunk(params, settings, chunk, n_steps, plan) for chunk, n_steps in chunks]


def normalized_mutual_information(counts: NDArray[np.float64]) -> float:
    """Mutual information of the rows and columns of a table of counts, divided by their mean entropy.

    It is 0 if either is constant. scikit-learn's ``normalized_mutual_info_score`` gives the same number, but needs one
    label per data row, and the engine has only (weighted) counts.
    """
    joint = counts / counts.sum()
    shared = entr(joint.sum(axis=1)).sum() + entr(joint.sum(axis=0)).sum() - entr(joint).sum()
    mean_entropy = (entr(joint.sum(axis=1)).sum() + entr(joint.sum(axis=0)).sum()) / 2
    return float(np.clip(shared / mean_entropy, 0, 1)) if mean_entropy > 0 else 0.0


def _curve_points(prefix: str, sums: list[Totals], settings: Settings) -> dict[str, NDArray[np.float64]]:
    """Compute one point of each curve from the sums of all chunks."""
    # In double precision: in single precision, counts of more than 16 million rows would be rounded.
    totals = jax.tree.map(lambda *parts: np.sum([np.asarray(part, np.float64) for part in parts], axis=0), *sums)
    value = _objective_of_each(jax.tree.map(np.float32, totals), settings)
    with np.errstate(invalid="ignore"):  # 0 / 0: a replica without rows to be evaluated on has no figures.
        return _figures(prefix, np.asarray(value, np.float64), totals)


def _figures(prefix: str, value: NDArray[np.float64], totals: Totals) -> dict[str, NDArray[np.float64]]:
    return {
        f"{prefix}objective": value,
        f"{prefix}log_loss": totals.log_loss / totals.weight,
        f"{prefix}brier": totals.brier / totals.weight,
        f"{prefix}accuracy": totals.right / totals.weight,
        f"{prefix}pr": 1.0 - totals.regret / totals.weight,
        f"{prefix}label_information": np.array([normalized_mutual_information(c) for c in totals.decided]),
    }
