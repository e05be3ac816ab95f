"""The network that a sample has chosen goes on learning, from all rows."""

from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dafh.blocks.lanes import N_LANES, Lanes, Shape
from dafh.engine.ranks import Ranks
from dafh.groups.network import ChosenReplica, Continuation
from dafh.progress import step_reporter

if TYPE_CHECKING:  # The engine imports JAX, which only training needs.
    from dafh.engine.networks import Parameters
    from dafh.engine.streaming import Course

# 1,000,000 rows of a synthetic table, sample of 200,000: log-loss 0.5169 before, 0.5122 after 2 passes, 0.5112 after 4.
# Batches of 1,024 rows needed 8 passes for the same.
_MOST_PASSES, _FEWEST_PASSES = 4, 2
# From 6,400,000 rows on batches grow instead of the number of steps.
_FEWEST_STEPS, _MOST_STEPS = 2_000, 50_000
_FINAL_RATE = 0.1
# Numbers of the batches that are handed over at once, as in training on the sample.
_NUMBERS_PER_CHUNK = 2**19
_STEPS_PER_CHECKPOINT = 512
_ROWS_TO_JUDGE_AT_ONCE = 2048


def go_on(
    chosen: ChosenReplica,
    lanes: Lanes,
    judges: NDArray[Any],
    *,
    n_groups: int,
    seed: int,
    ranks: Ranks,
    folder: Path | None,
    verbose: int = 0,
) -> Continuation:
    """Train the chosen network on rows in lanes; keep it if rows that were left out find it better.

    Parameters
    ----------
    judges : array
        Rows that are not in the lanes, nor in the sample, in the form in which lanes hold them.
    seed : int
        Of the order of the rows.
    ranks : Ranks
        Who trains, and where the state is kept. A second run of the same training goes on from there.
    folder : Path or None
        Where the lanes are, if other processes read them.
    """
    from dafh.engine.rank import read_result, write_job
    from dafh.engine.streaming import Checkpoints, train_stream

    course = plan_course(chosen, lanes.shape, int(lanes.n_rows.sum()), seed)
    checkpoints = None
    if ranks.checkpoint_folder is not None:
        about = _fingerprint(chosen, lanes, course, judges)
        checkpoints = Checkpoints(ranks.checkpoint_folder / "network.npz", _STEPS_PER_CHECKPOINT, about)
    if folder is None:
        with step_reporter(verbose) as report:
            trained = train_stream(
                lanes,
                chosen.parameters,
                chosen.settings,
                chosen.plan,
                course,
                checkpoints=checkpoints,
                report=report,
            )
    else:
        write_job(folder, chosen.parameters, chosen.settings, chosen.plan, course, checkpoints)
        ranks.launch(folder, ranks.n_ranks)
        trained = read_result(folder, chosen.plan)
    return _judge(chosen, trained, judges, course.n_steps, n_groups)


def plan_course(chosen: ChosenReplica, shape: Shape, n_rows: int, seed: int) -> "Course":
    """Some passes over the rows, from the learning rates of the recipe down to a tenth of them."""
    from dafh.engine.streaming import Course

    n_wanted = max(chosen.recipe.batch_size, _FEWEST_PASSES * n_rows // _MOST_STEPS)
    rows_per_lane = -(-n_wanted // N_LANES)
    batch = rows_per_lane * N_LANES
    n_steps = int(np.clip(_MOST_PASSES * n_rows // batch, _FEWEST_STEPS, _MOST_STEPS))
    chunk_steps = int(np.clip(_NUMBERS_PER_CHUNK // (batch * shape.dtype.itemsize // 4), 4, 32))
    return Course(n_steps, rows_per_lane, chunk_steps, _FINAL_RATE, chosen.recipe.average_steps, seed)


def _fingerprint(chosen: ChosenReplica, lanes: Lanes, course: "Course", judges: NDArray[Any]) -> str:
    """What is trained on what, short of the parameters, whose last digits differ from machine to machine."""
    settings = [np.round(np.asarray(value, float), 6).tolist() for value in chosen.settings]
    recipe = sorted(chosen.recipe.get_params().items())
    rows = lanes.counts.sum(axis=0).tolist(), judges["answers"].sum(axis=0, dtype=int).tolist()
    base = np.round(judges["base"].mean(axis=0, dtype=float), 3).tolist()
    parts = (asdict(chosen.plan), settings, recipe, chosen.n_answers, course, lanes.shape, rows, base)
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
