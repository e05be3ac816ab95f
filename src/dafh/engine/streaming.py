"""Go on training one replica, on more rows than fit in memory, in one process or in several.

The objective and the order of updates are those of `population`. What differs is where batches come from
(`dafh.blocks.lanes`), and that steps are counted instead of epochs. Every process reads lanes of its own, and computes
the gradient of each of them by itself. All processes then add up the gradients of all lanes, in the same order. So
they have the same parameters after every step, and those of a single process but for roundings inside of a lane: XLA
compiles a program for each number of processes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from dafh.blocks.lanes import N_LANES, LaneReader, Lanes
from dafh.engine.checkpoints import load_checkpoint, save_checkpoint
from dafh.engine.compilation_cache import enable_compilation_cache
from dafh.engine.networks import Array, Parameters, stack
from dafh.engine.objective import Rows, Settings, Totals, objective
from dafh.engine.population import Plan, batch_totals, slowed_to, zero_moments

State = tuple[Parameters, dict[str, Any], Parameters]
"""Parameters, moments of the optimiser, and the running average of the parameters."""
Report = Callable[[int, int], None]
"""Called with the steps done, and all steps."""
Gather = Callable[[Array], Array]
"""Puts the lanes of all processes together, along the first axis."""


# Far below the gradients that matter, and above their roundings.
_NO_GRADIENT = 1e-5


class Course(NamedTuple):
    """How long to train, and how fast."""

    n_steps: int
    rows_per_lane: int
    """Rows of every batch from each lane."""
    chunk_steps: int
    """Steps between two chances to write a checkpoint, and to lower the learning rates."""
    final_rate: float
    """Share of the learning rates that is left at the end."""
    average_steps: int
    seed: int
    """Of the order of the rows."""


class Checkpoints(NamedTuple):
    """Where the state is written, and how often."""

    path: Path
    every: int
    """Steps."""
    about: str
    """What is trained on what: the state of anything else is not gone on with."""


@dataclass(frozen=True, eq=False)
class Peers:
    """The processes that train together; each has a device of its own, and all are known to JAX."""

    rank: int = 0
    n_ranks: int = 1

    @property
    def lanes(self) -> range:
        """Lanes that this process reads."""
        share = N_LANES // self.n_ranks
        return range(self.rank * share, (self.rank + 1) * share)

    def mesh(self) -> Mesh:
        """Return the devices of all processes."""
        return Mesh(np.array(jax.devices()), ("ranks",))

    def share(self, tree: Any, *, lanes: bool) -> Any:
        """Arrays that all processes know, from the lanes of each, or from what is the same in all of them."""
        if self.n_ranks == 1:
            return tree
        # JAX does not annotate these, and strict type checking refuses calls of such functions.
        spec: Any = PartitionSpec
        together: Any = jax.make_array_from_process_local_data
        sharding = NamedSharding(self.mesh(), spec(None, "ranks") if lanes else spec())
        return jax.tree.map(lambda leaf: together(sharding, np.asarray(leaf)), tree)


ALONE = Peers()


def train_stream(
    lanes: Lanes,
    start: Parameters,
    settings: Settings,
    plan: Plan,
    course: Course,
    *,
    checkpoints: Checkpoints | None = None,
    peers: Peers = ALONE,
    report: Report | None = None,
) -> Parameters:
    """Train one replica on rows in lanes; return the average of its last steps.

    Parameters
    ----------
    lanes : Lanes
        None of them empty.
    start : Parameters
        Of one replica, without an axis of replicas.
    settings : Settings
        Of shape (1,).
    checkpoints : Checkpoints, optional
        If there is a state of the same training, it is gone on with.
    peers : Peers
    report : function, optional
        Called with the steps done, and all steps.
    """
    enable_compilation_cache()
    settings = Settings(*(np.asarray(value, np.float32).reshape(()) for value in settings))
    # Moments come with an axis of replicas, and leave without.
    moments = jax.tree.map(lambda leaf: leaf[0], zero_moments(stack([start]), plan))
    state: State = (start, moments, start)
    advance, n_done = _program(plan, peers.n_ranks), 0
    if checkpoints is not None:
        state, n_done = load_checkpoint(checkpoints.path, checkpoints.about, state)
    state = peers.share(state, lanes=False)
    written = n_done
    for chunk in _chunks(lanes, course, n_done, peers):
        # Linear, as in training on the sample; by the number of the step, so that it goes on where it was left.
        factor = 1.0 - (1.0 - course.final_rate) * n_done / course.n_steps
        pace = np.array([n_done, course.average_steps], np.float32)
        n_steps = min(course.chunk_steps, course.n_steps - n_done)
        state = advance(state, slowed_to(settings, factor), peers.share(chunk, lanes=True), np.int32(n_steps), pace)
        n_done += n_steps
        if checkpoints is not None and n_done - written >= checkpoints.every and peers.rank == 0:
            save_checkpoint(checkpoints.path, checkpoints.about, _local(state), n_done)
            written = n_done
        if report is not None:
            report(n_done, course.n_steps)
    parameters: Parameters = _local(state[-1])
    return parameters


@cache
def _program(plan: Plan, n_ranks: int) -> Callable[[State, Settings, Rows, Any, Array], State]:
    """Compile the training on a chunk, for one process or for one of several."""
    if n_ranks == 1:
        return jax.jit(partial(_advance, plan=plan, gather=lambda lanes: lanes), donate_argnums=0)
    everywhere: Any = PartitionSpec()  # type: ignore[no-untyped-call]
    by_lane: Any = PartitionSpec(None, "ranks")  # type: ignore[no-untyped-call]
    gather = partial(jax.lax.all_gather, axis_name="ranks", tiled=True)
    return jax.jit(
        jax.shard_map(
            partial(_advance, plan=plan, gather=gather),
            mesh=Peers(0, n_ranks).mesh(),
            in_specs=(everywhere, everywhere, by_lane, everywhere, everywhere),
            out_specs=everywhere,
            check_vma=False,  # JAX cannot see that what was gathered is the same everywhere.
        ),
        donate_argnums=0,
    )


def _advance(
    state: State, settings: Settings, chunk: Rows, n_steps: Array, pace: Array, plan: Plan, gather: Gather
) -> State:
    """Train on the first `n_steps` batches of a chunk, (steps, lanes, rows, ...); as `population.train_chunk` does."""

    def advance(i: Array, state: State) -> State:
        params, moments, average = state
        params, moments = _step(params, moments, settings, Rows(*(field[i] for field in chunk)), plan, gather)
        newest = 1.0 / jnp.minimum(pace[0] + i + 1.0, pace[1])
        return params, moments, jax.tree.map(lambda mean, value: mean + newest * (value - mean), average, params)

    return jax.lax.fori_loop(0, n_steps, advance, state)


def _step(
    params: Parameters, moments: dict[str, Any], settings: Settings, batch: Rows, plan: Plan, gather: Gather
) -> tuple[Parameters, dict[str, Any]]:
    """Update the replica on one batch, (lanes, rows, ...)."""
    rates = {"group": settings.group_rate, "classifiers": settings.classifier_rate}
    for parts in plan.update_order:
        gradient = _gradient(params, parts, settings, batch, plan, gather)
        for part in parts:
            direction, moment = _transformation(plan, part).update(gradient[part], moments[part])
            rate = rates[part]
            moved = jax.tree.map(lambda p, g, rate=rate: p - rate * g, getattr(params, part), direction)
            params, moments = params._replace(**{part: moved}), moments | {part: moment}
    return params, moments


def _transformation(plan: Plan, part: str) -> Any:
    """Return that of the plan, but for gradients near zero.

    Adam divides a gradient by its own size, and makes as much of a sum that is zero but for rounding as of any other.
    With its usual 1e-8, one process and two differed by 0.01 after 2,000 steps, and with 1e-5 by 8e-7.
    """
    return optax.scale_by_adam(eps=_NO_GRADIENT) if plan.optimizer == "adam" else plan.transformation(part)


def _gradient(
    params: Parameters, parts: tuple[str, ...], settings: Settings, batch: Rows, plan: Plan, gather: Gather
) -> dict[str, Any]:
    """Gradient of the loss, lane by lane: first the sums that the objective is made of, then what each lane adds.

    Lanes are looked at one after the other (`jax.lax.map`) and not at once: how a matrix product rounds depends on its
    size, and then on the number of processes.
    """

    def totals(active: dict[str, Any], lane: Rows) -> Array:
        return ravel_pytree(batch_totals(params._replace(**active), settings, lane, plan))[0]

    active = {part: getattr(params, part) for part in parts}
    unravel = ravel_pytree(Totals(*(jnp.zeros(leaf.shape) for leaf in _shapes(params, settings, batch, plan))))[1]
    sums = _sum_in_order(gather(jax.lax.map(lambda lane: totals(active, lane), batch)))
    slope = jax.grad(lambda flat: -objective(unravel(flat), settings))(sums)

    def share(lane: Rows) -> Array:
        return ravel_pytree(jax.vjp(lambda active: totals(active, lane), active)[1](slope)[0])[0]

    # Of one piece, because processes send every array by itself.
    found = ravel_pytree(active)[1](_sum_in_order(gather(jax.lax.map(share, batch))))
    if "classifiers" in parts:
        shrunk = (
            g._replace(weight=g.weight + settings.shrinkage * layer.weight)
            for g, layer in zip(found["classifiers"], params.classifiers, strict=True)
        )
        found["classifiers"] = tuple(shrunk)
    return dict(found)


def _sum_in_order(lanes: Array) -> Array:
    """Add up lanes one after the other: compilers choose the order of any other sum, and not always the same."""
    return reduce(jnp.add, [lanes[lane] for lane in range(N_LANES)])


def _shapes(params: Parameters, settings: Settings, batch: Rows, plan: Plan) -> Totals:
    lane = Rows(*(field[0] for field in batch))
    shapes: Totals = jax.eval_shape(partial(batch_totals, plan=plan), params, settings, lane)
    return shapes


def _local(tree: Any) -> Any:
    """Copy arrays that are the same in all processes; the next step overwrites their memory."""
    return jax.tree.map(lambda leaf: np.array(leaf), tree)


def _chunks(lanes: Lanes, course: Course, n_done: int, peers: Peers) -> Iterator[Rows]:
    """Yield the batches of the steps that are left, (steps, lanes of this process, rows, ...)."""
    readers = [LaneReader(lanes, lane, n_done * course.rows_per_lane, course.seed) for lane in peers.lanes]
    shape = (course.chunk_steps, course.rows_per_lane)
    for _ in range(n_done, course.n_steps, course.chunk_steps):
        taken = [reader.take(shape[0] * shape[1]).reshape(shape) for reader in readers]
        yield engine_rows(np.stack(taken, axis=1))


def engine_rows(rows: NDArray[Any]) -> Rows:
    """Rows out of lanes, of any leading axes, as training sees them: no fold is held out, and there is one block."""
    return Rows(
        x=np.ascontiguousarray(rows["x"]),
        answers=np.ascontiguousarray(rows["answers"])[..., None, :],
        label=np.ascontiguousarray(rows["label"]),
        base=np.ascontiguousarray(rows["base"])[..., None, :],
        pooled_right=np.ascontiguousarray(rows["pooled_right"])[..., None],
        weight=np.ascontiguousarray(rows["weight"]),
        fold=np.full(rows.shape, -1, np.int32),
    )
