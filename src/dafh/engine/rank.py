"""One of several processes that go on training a network: ``python -m dafh.engine.rank FOLDER RANK N ADDRESS``.

With the folder alone, JAX finds its peers itself: under SLURM, Open MPI or Kubernetes.
"""

import json
import os
import sys
import threading
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dafh.blocks.lanes import N_LANES, Lanes
from dafh.engine.checkpoints import load_checkpoint, save_checkpoint
from dafh.engine.networks import Parameters, init_replica
from dafh.engine.objective import Settings
from dafh.engine.population import Plan
from dafh.engine.streaming import Checkpoints, Course, Peers, train_stream
from dafh.exceptions import InputError, RankLostError

_START, _RESULT = "start.npz", "result.npz"
# Processes import and compile before they meet, and machines may be busy.
_SECONDS_TO_MEET = 120
_SECONDS_WITHOUT_HEARTBEAT = 20


def write_job(
    folder: Path,
    start: Parameters,
    settings: Settings,
    plan: Plan,
    course: Course,
    checkpoints: Checkpoints | None,
) -> None:
    """Write what `train_stream` is to be called with, beside the rows, which are in the folder."""
    values = Settings(*(np.asarray(value, np.float32) for value in settings))
    save_checkpoint(folder / _START, "start", (start, values), 0)
    where = None if checkpoints is None else (str(checkpoints.path), checkpoints.every, checkpoints.about)
    (folder / "job.json").write_text(json.dumps({"plan": asdict(plan), "course": course, "checkpoints": where}))


def read_result(folder: Path, plan: Plan) -> Parameters:
    """Read the parameters that came of it."""
    found, n_steps = load_checkpoint(folder / _RESULT, "result", _like(plan))
    if not n_steps:
        raise RankLostError("The processes that train the network have ended without a result: fit again.")
    return found


def run_job(folder: Path, peers: Peers) -> None:
    """Do the part of one process; the first writes the result."""
    job = json.loads((folder / "job.json").read_text())
    sizes = {name: tuple(job["plan"][name]) for name in ("group_sizes", "classifier_sizes")}
    plan, course = Plan(**{**job["plan"], **sizes}), Course(*job["course"])
    like = (_like(plan), Settings(*(np.zeros(1, np.float32) for _ in Settings._fields)))
    (start, settings), _ = load_checkpoint(folder / _START, "start", like)
    where = job["checkpoints"]
    checkpoints = None if where is None else Checkpoints(Path(where[0]), *where[1:])
    found = train_stream(Lanes.open(folder), start, settings, plan, course, checkpoints=checkpoints, peers=peers)
    if peers.rank == 0:
        save_checkpoint(folder / _RESULT, "result", found, course.n_steps)


def _like(plan: Plan) -> Parameters:
    return init_replica(np.random.default_rng(0), plan.group_sizes, plan.classifier_sizes, 0.0)


def _end_with_parent() -> None:
    """End this process when the pipe to whoever has started it is closed, by intent or because that is gone."""

    def wait() -> None:
        # Not through sys.stdin, whose lock Python needs to end.
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: list[str]) -> None:
    """Meet the others, train, and write the result."""
    # JAX does not annotate these, and strict type checking refuses calls of such functions.
    update: Any = jax.config.update
    leave: Any = jax.distributed.shutdown
    update("jax_cpu_collectives_implementation", "gloo")
    options: dict[str, Any] = {"initialization_timeout": _SECONDS_TO_MEET}
    # Older versions of JAX have no such setting; who watches the processes is faster in any case.
    if "heartbeat_timeout_seconds" in signature(jax.distributed.initialize).parameters:
        options["heartbeat_timeout_seconds"] = _SECONDS_WITHOUT_HEARTBEAT
    if len(arguments) > 1:
        _end_with_parent()
        rank, n_ranks, address = int(arguments[1]), int(arguments[2]), arguments[3]
        options |= {"coordinator_address": address, "num_processes": n_ranks, "process_id": rank}
    jax.distributed.initialize(**options)
    if N_LANES % jax.process_count():
        raise InputError(f"1, 2, 4 or 8 processes can train a network together, not {jax.process_count()}.")
    run_job(Path(arguments[0]), Peers(jax.process_index(), jax.process_count()))
    leave()


if __name__ == "__main__":
    main(sys.argv[1:])
