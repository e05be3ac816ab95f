"""The network that a sample has chosen goes on learning, from all rows."""

from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dafh.blocks.lanes import N_LANES, Lanes
from dafh.groups.network import ChosenReplica, Continuation

if TYPE_CHECKING:  # The engine imports JAX, which only training needs.
    from dafh.engine.networks import Parameters
    from dafh.engine.streaming import Course

_PASSES = 2
# Batches are larger than those of the sample: by now noise costs more than steps, and processes that train together
# have to talk after every step.
_FEWEST_ROWS_PER_BATCH = 2048
_FEWEST_STEPS, _MOST_STEPS = 200, 100_000
_FINAL_RATE = 0.1
_STEPS_PER_CHUNK = 16
_STEPS_PER_CHECKPOINT = 512
_ROWS_TO_JUDGE_AT_ONCE = 2048


def go_on(
    chosen: ChosenReplica,
    lanes: Lanes,
    judges: NDArray[Any],
    *,
    n_groups: int,
    seed: int,
    checkpoints: Path | None = None,
    report: Callable[[int, int], None] | None = None,
) -> Continuation:
    """Train the chosen network on rows in lanes; keep it if rows that were left out find it better.

    Parameters
    ----------
    judges : array
        Rows that are not in the lanes, nor in the sample, in the form in which lanes hold them.
    seed : int
        Of the order of the rows.
    checkpoints : Path, optional
        Folder for the state, every 512 steps. A second run of the same training goes on from there.
    """
    from dafh.engine.streaming import Checkpoints, train_stream

    course = plan_course(chosen, int(lanes.n_rows.sum()), seed)
    about = _fingerprint(chosen, lanes, course)
    where = None if checkpoints is None else Checkpoints(checkpoints / "network.npz", _STEPS_PER_CHECKPOINT, about)
    trained = train_stream(
        lanes, chosen.parameters, chosen.settings, chosen.plan, course, checkpoints=where, report=report
    )
    return _judge(chosen, trained, judges, course.n_steps, n_groups)


def plan_course(chosen: ChosenReplica, n_rows: int, seed: int) -> "Course":
    """Two passes over the rows, within limits, from the learning rates of the recipe down to a tenth of them."""
    from dafh.engine.streaming import Course

    rows_per_lane = -(-max(chosen.recipe.batch_size, _FEWEST_ROWS_PER_BATCH) // N_LANES)
    n_steps = int(np.clip(_PASSES * n_rows // (rows_per_lane * N_LANES), _FEWEST_STEPS, _MOST_STEPS))
    return Course(n_steps, rows_per_lane, _STEPS_PER_CHUNK, _FINAL_RATE, chosen.recipe.average_steps, seed)


def _fingerprint(chosen: ChosenReplica, lanes: Lanes, course: "Course") -> str:
    """What is trained on what, short of the parameters, whose last digits differ from machine to machine."""
    settings = [np.round(np.asarray(value, float), 6).tolist() for value in chosen.settings]
    rows = sha256(lanes.counts.sum(axis=0).tobytes()).hexdigest()
    parts = (asdict(chosen.plan), settings, chosen.n_answers, chosen.warm, course, lanes.shape, rows)
    return sha256(repr(parts).encode()).hexdigest()


def _judge(
    chosen: ChosenReplica, trained: "Parameters", judges: NDArray[Any], n_steps: int, n_groups: int
) -> Continuation:
    """Choose between the network of the sample and that of all rows, by the rule that chose among replicas."""
    from dafh.engine.networks import stack
    from dafh.engine.objective import Settings
    from dafh.engine.population import evaluate_population
    from dafh.engine.selection import Selection
    from dafh.engine.streaming import engine_rows

    both = (chosen.parameters, trained)
    settings = Settings(*(np.repeat(value, 2) for value in chosen.settings))
    found = evaluate_population(
        stack(list(both)), engine_rows(judges), settings, chosen.plan, batch_size=_ROWS_TO_JUDGE_AT_ONCE
    )
    # One epoch of two replicas; the first wins a draw.
    curves = {f"selection_{name}": values[None] for name, values in found.items()}
    best = Selection(0, chosen.recipe.weight_of_pr(n_groups)).choose(curves).replica
    before, after = found["log_loss"].tolist()
    return Continuation(both[best], (before, after), n_steps, kept=best == 1)
