"""Go on training one replica, on more rows than fit in memory, in one process or in several.

The objective and the step are those of `population`. What differs is where batches come from (`dafh.blocks.lanes`), and
that steps are counted instead of epochs. Every process reads lanes of its own, and holds its share of every batch; XLA
adds up the gradients. So all processes have the same parameters after every step, and those of a single process.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from dafh.blocks.lanes import N_LANES, LaneReader, Lanes
from dafh.engine.checkpoints import load_checkpoint, save_checkpoint
from dafh.engine.compilation_cache import enable_compilation_cache
from dafh.engine.networks import Array, Parameters, stack
from dafh.engine.objective import Rows, Settings
from dafh.engine.population import Plan, slowed_to, train_chunk, zero_moments

State = tuple[Parameters, dict[str, Any], Parameters]
"""Parameters, moments of the optimiser, and the running average of the parameters."""
Report = Callable[[int, int], None]
"""Called with the steps done, and all steps."""


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

    def share(self, tree: Any, *, rows: bool) -> Any:
        """Arrays that all processes know, from the rows of each, or from what is the same in all of them."""
        if self.n_ranks == 1:
            return tree
        # JAX does not annotate these, and strict type checking refuses calls of such functions.
        spec: Any = PartitionSpec
        together: Any = jax.make_array_from_process_local_data
        sharding = NamedSharding(Mesh(np.array(jax.devices()), ("rows",)), spec(None, "rows") if rows else spec())
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
    settings = Settings(*(np.asarray(value, np.float32) for value in settings))
    population = stack([start])
    state: State = (population, zero_moments(population, plan), population)
    n_done = 0
    if checkpoints is not None:
        state, n_done = load_checkpoint(checkpoints.path, checkpoints.about, state)
    state = peers.share(state, rows=False)
    written = n_done
    for chunk in _chunks(lanes, course, n_done, peers):
        # Linear, as in training on the sample; by the number of the step, so that it goes on where it was left.
        factor = 1.0 - (1.0 - course.final_rate) * n_done / course.n_steps
        pace = np.array([n_done, course.average_steps], np.float32)
        n_steps = min(course.chunk_steps, course.n_steps - n_done)
        state = _advance(state, slowed_to(settings, factor), peers.share(chunk, rows=True), n_steps, pace, plan)
        n_done += n_steps
        if checkpoints is not None and n_done - written >= checkpoints.every and peers.rank == 0:
            save_checkpoint(checkpoints.path, checkpoints.about, _local(state), n_done)
            written = n_done
        if report is not None:
            report(n_done, course.n_steps)
    parameters: Parameters = jax.tree.map(lambda leaf: np.array(leaf)[0], state[-1])
    return parameters


@partial(jax.jit, static_argnames="plan", donate_argnums=0)
def _advance(state: State, settings: Settings, chunk: Rows, n_steps: int, pace: Array, plan: Plan) -> State:
    """Train on a chunk, without the sums for training curves: processes would have to add them up in every step."""
    return train_chunk(state, settings, chunk, n_steps, pace, plan)[0]


def _local(tree: Any) -> Any:
    """Copy arrays that are the same in all processes; the next step overwrites their memory."""
    return jax.tree.map(lambda leaf: np.array(leaf), tree)


def _chunks(lanes: Lanes, course: Course, n_done: int, peers: Peers) -> Iterator[Rows]:
    """Yield the batches of the steps that are left, (steps, rows of this process, ...)."""
    readers = [LaneReader(lanes, lane, n_done * course.rows_per_lane, course.seed) for lane in peers.lanes]
    shape = (course.chunk_steps, course.rows_per_lane)
    for _ in range(n_done, course.n_steps, course.chunk_steps):
        taken = [reader.take(shape[0] * shape[1]).reshape(shape) for reader in readers]
        yield engine_rows(np.concatenate(taken, axis=1))


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
