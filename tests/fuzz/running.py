"""Run cases in another process, which is watched: a crash, a hang or gigabytes end that process and not the run."""

import json
import multiprocessing
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzz.cases import Case, Kind, Outcome, drawn, outcome_of, shrink
from fuzz.kinds import KINDS

HANGS = 120.0
"""Seconds on the clock without an answer."""
_MOST_MEMORY = 4 * 2**30
_ATTEMPTS_AFTER_A_CRASH = 20
_CASES_OF_A_WORKER = 1_000
_COUNTED = ("refused", "accepted", "failed", "crashed", "hung", "slow", "large")


@dataclass
class Progress:
    """What was run so far, kept in a file so that a run can go on."""

    path: Path
    seed: int
    next: dict[str, int] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: float = 0.0
    largest: int = 0

    @classmethod
    def open(cls, path: Path, seed: int) -> "Progress":
        """Go on with a file of the same seed, or begin."""
        if path.exists():
            known = json.loads(path.read_text())
            if known["seed"] == seed:
                counts = {name: Counter(found) for name, found in known["counts"].items()}
                return cls(path, seed, known["next"], counts, known["slowest"], known["largest"])
        return cls(path, seed)

    def add(self, kind: str, number: int, outcome: Outcome) -> None:
        """Count a case, and write the file."""
        self.counts.setdefault(kind, Counter())[outcome.what] += 1
        self.next[kind] = number + 1
        self.slowest, self.largest = max(self.slowest, outcome.seconds), max(self.largest, outcome.peak)
        known = {"seed": self.seed, "next": self.next, "counts": self.counts}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({**known, "slowest": self.slowest, "largest": self.largest}))

    @property
    def n_failures(self) -> int:
        return sum(n for found in self.counts.values() for what, n in found.items() if what not in _COUNTED[:2])

    def table(self) -> str:
        """Counts of each kind."""
        lines = [f"{'':10}" + "".join(f"{what:>10}" for what in ("cases", *_COUNTED))]
        for kind, found in self.counts.items():
            numbers = [found.total(), *(found[what] for what in _COUNTED)]
            lines.append(f"{kind:10}" + "".join(f"{number:>10,}" for number in numbers))
        peak = f"most memory {self.largest / 2**20:,.0f} MiB"
        return "\n".join([*lines, f"slowest case {self.slowest:.1f} s of CPU time, {peak}"])


class Worker:
    """A process that runs cases of one kind."""

    def __init__(self, kind: Kind) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(kind.name, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._answer()  # Models to be changed are fitted, and libraries imported.

    def outcome(self, case: Case) -> Outcome:
        """Run a case there; after a crash or a hang the worker is gone."""
        start = time.monotonic()
        self._ours.send(case)
        found = self._answer()
        return found or Outcome("hung" if self._process.is_alive() else "crashed", time.monotonic() - start, 0)

    def _answer(self) -> Any:
        if not self._ours.poll(HANGS):
            return None
        try:
            return self._ours.recv()
        except EOFError:
            self._process.join(5)
            return None

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def _serve(name: str, connection: Connection) -> None:
    # An allocation that is too large then is a MemoryError here, and not the end of other programs.
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
    kind = KINDS[name]
    with tempfile.TemporaryDirectory() as folder:
        kind.prepare(Path(folder))
        connection.send("ready")
        while True:
            try:
                case = connection.recv()
            except EOFError:
                return
            connection.send(outcome_of(kind, case, Path(folder)))


def run_kind(
    kind: Kind, progress: Progress, until: Callable[[int], bool], failed: Callable[[Case, Outcome], None]
) -> None:
    """Run cases of a kind from where the last run ended; `until` is asked before each, with its number."""
    worker = Worker(kind)
    try:
        number = progress.next.get(kind.name, 0)
        while not until(number):
            if number % _CASES_OF_A_WORKER == _CASES_OF_A_WORKER - 1:  # What libraries keep adds up over thousands.
                worker.stop()
                worker = Worker(kind)
            case = drawn(kind, progress.seed, number)
            outcome = worker.outcome(case)
            if outcome.is_failure:
                worker = _explained(kind, worker, case, outcome, failed)
            progress.add(kind.name, number, outcome)
            number += 1
    finally:
        worker.stop()


def _explained(
    kind: Kind, worker: Worker, case: Case, outcome: Outcome, failed: Callable[[Case, Outcome], None]
) -> Worker:
    """Make a failing case smaller, and hand it over; return a worker to go on with."""
    gone = outcome.what in ("crashed", "hung")

    def fails(simpler: Case) -> bool:
        nonlocal worker
        if gone:  # Each attempt needs a process of its own.
            worker.stop()
            worker = Worker(kind)
        found = worker.outcome(simpler)
        return found.what == outcome.what and found.error.split(":")[0] == outcome.error.split(":")[0]

    failed(shrink(kind, case, fails, _ATTEMPTS_AFTER_A_CRASH if gone else 300), outcome)
    if gone:
        worker.stop()
        worker = Worker(kind)
    return worker
