"""Go on training one replica, on more rows than fit in memory, in one process or in several.

The objective and the order of updates are those of `population`. What differs is where batches come from
(`dafh.blocks.lanes`), and that steps are counted instead of epochs. Every process reads lanes of its own, and computes
the gradient of each of them by itself. All processes then add up the gradients of all lanes, in the same order. The
programs for that are the same ones whatever the number of processes, and so are the parameters, to the last bit.
"""

from collections.abc import Callable, Iterator, Sequence
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

    def gather(self, lanes: Array) -> Array:
        """Put the lanes of all processes together, along the first axis; every process gets all of them."""
        if self.n_ranks == 1:
            return lanes
        # JAX does not annotate this, and strict type checking refuses calls of such functions.
        together: Any = jax.make_array_from_single_device_arrays
        by_rank, collect = _collective(self.n_ranks)
        shape = (N_LANES, *lanes.shape[1:])
        gathered: Array = collect(together(shape, by_rank, [lanes])).addressable_data(0)
        return gathered


@cache
def _collective(n_ranks: int) -> tuple[NamedSharding, Callable[[Array], Array]]:
    """How lanes lie on the devices of all processes, and the program that copies all of them to every one."""
    spec: Any = PartitionSpec
    mesh = Mesh(np.array(jax.devices()[:n_ranks]), ("ranks",))
    return NamedSharding(mesh, spec("ranks")), jax.jit(lambda lanes: lanes, out_shardings=NamedSharding(mesh, spec()))


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
    n_done = 0
    if checkpoints is not None:
        state, n_done = load_checkpoint(checkpoints.path, checkpoints.about, state, course.n_steps)
    written = n_done
    for chunk in _chunks(lanes, course, n_done, peers):
        # Linear, as in training on the sample; by the number of the step, so that it goes on where it was left.
        factor = 1.0 - (1.0 - course.final_rate) * n_done / course.n_steps
        n_steps = min(course.chunk_steps, course.n_steps - n_done)
        pace = (n_done, n_steps, course.average_steps)
        state = _advance(state, slowed_to(settings, factor), chunk, pace, plan, peers)
        n_done += n_steps
        if checkpoints is not None and n_done - written >= checkpoints.every and peers.rank == 0:
            save_checkpoint(checkpoints.path, checkpoints.about, _local(state), n_done)
            written = n_done
        if report is not None:
            report(n_done, course.n_steps)
    parameters: Parameters = _local(state[-1])
    return parameters


class _Programs(NamedTuple):
    """The three parts of an update, compiled: what is between them goes through all processes.

    They are programs of their own because XLA rounds differently in a program that waits for other processes. Parts of
    one program differed by 4e-7 after one step between one process and two, and by 0.05 after 2,000.
    """

    totals: Callable[..., Array]
    """Sums that the objective is made of, of each lane here (lanes, sums)."""
    shares: Callable[..., Array]
    """What each lane here adds to the gradient (lanes, parameters)."""
    update: Callable[..., tuple[Parameters, dict[str, Any]]]
    """Parameters and moments after the update."""


@cache
def _programs(plan: Plan, parts: tuple[str, ...]) -> _Programs:
    return _Programs(
        jax.jit(partial(_lane_totals, plan=plan)),
        jax.jit(partial(_lane_shares, plan=plan, parts=parts)),
        jax.jit(partial(_update, plan=plan, parts=parts), donate_argnums=1),
    )


def _advance(state: State, settings: Settings, chunk: Rows, pace: Sequence[int], plan: Plan, peers: Peers) -> State:
    """Train on the batches of a chunk, (steps, lanes, rows, ...); as `population.train_chunk` does."""
    params, moments, average = state
    n_before, n_steps, average_steps = pace
    chunk = jax.device_put(chunk)
    for step in range(n_steps):
        at = np.int32(step)
        for parts in plan.update_order:
            run = _programs(plan, parts)
            sums = peers.gather(run.totals(params, settings, chunk, at))
            shares = peers.gather(run.shares(params, settings, chunk, at, sums))
            params, moments = run.update(params, moments, settings, shares)
        newest = np.float32(1.0 / min(n_before + step + 1, average_steps))
        average = _moved_towards(average, params, newest)
    return params, moments, average


@partial(jax.jit, donate_argnums=0)
def _moved_towards(average: Parameters, params: Parameters, newest: Array) -> Parameters:
    return jax.tree.map(lambda mean, value: mean + newest * (value - mean), average, params)


def _lane_totals(params: Parameters, settings: Settings, chunk: Rows, at: Array, plan: Plan) -> Array:
    """Look at lanes one after the other and not at once: how a matrix product rounds depends on its size."""
    batch = Rows(*(field[at] for field in chunk))
    return jax.lax.map(lambda lane: ravel_pytree(batch_totals(params, settings, lane, plan))[0], batch)


def _lane_shares(
    params: Parameters, settings: Settings, chunk: Rows, at: Array, sums: Array, plan: Plan, parts: tuple[str, ...]
) -> Array:
    batch = Rows(*(field[at] for field in chunk))
    unravel = ravel_pytree(Totals(*(jnp.zeros(leaf.shape) for leaf in _shapes(params, settings, batch, plan))))[1]
    slope = jax.grad(lambda flat: -objective(unravel(flat), settings))(_sum_in_order(sums))

    def share(lane: Rows) -> Array:
        def totals(active: dict[str, Any]) -> Array:
            return ravel_pytree(batch_totals(params._replace(**active), settings, lane, plan))[0]

        # Of one piece, because processes send every array by itself.
        return ravel_pytree(jax.vjp(totals, _active(params, parts))[1](slope)[0])[0]

    return jax.lax.map(share, batch)


def _update(
    params: Parameters, moments: dict[str, Any], settings: Settings, shares: Array, plan: Plan, parts: tuple[str, ...]
) -> tuple[Parameters, dict[str, Any]]:
    rates = {"group": settings.group_rate, "classifiers": settings.classifier_rate}
    gradient = _gradient(params, settings, shares, parts)
    for part in parts:
        direction, moment = _transformation(plan, part).update(gradient[part], moments[part])
        rate = rates[part]
        moved = jax.tree.map(lambda p, g, rate=rate: p - rate * g, getattr(params, part), direction)
        params, moments = params._replace(**{part: moved}), moments | {part: moment}
    return params, moments


def _gradient(params: Parameters, settings: Settings, shares: Array, parts: tuple[str, ...]) -> dict[str, Any]:
    """Gradient of the loss, from what all lanes add to it."""
    found = dict(ravel_pytree(_active(params, parts))[1](_sum_in_order(shares)))
    if "classifiers" in parts:
        found["classifiers"] = tuple(
            g._replace(weight=g.weight + settings.shrinkage * layer.weight)
            for g, layer in zip(found["classifiers"], params.classifiers, strict=True)
        )
    return found


def _active(params: Parameters, parts: tuple[str, ...]) -> dict[str, Any]:
    return {part: getattr(params, part) for part in parts}


def _transformation(plan: Plan, part: str) -> Any:
    """Return that of the plan, but for gradients near zero.

    Adam divides a gradient by its own size, and makes as much of a sum that is zero but for rounding as of any other.
    """
    return optax.scale_by_adam(eps=_NO_GRADIENT) if plan.optimizer == "adam" else plan.transformation(part)


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
