"""What a kind of case is, what may become of a case, and how a failing one is made smaller."""

import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dafh.exceptions import DAFHError

Case = dict[str, Any]
"""Plain values, as JSON has them."""
SLOW = 10.0
"""Seconds of CPU time: the clock on the wall also counts what other programs do."""
LARGE = 2**30
_HELD_ANYWAY = 2**29  # By a process that runs nothing but cases.
"""Bytes that a process may hold while it runs a case, imported libraries included."""
LONGEST_SENTENCE = 2_000


@dataclass(frozen=True)
class Kind:
    """A kind of case."""

    name: str
    draw: Callable[[np.random.Generator], Case]
    run: Callable[[Case, Path], str]
    """Of a case and the folder that `prepare` has filled: returns "accepted" or "refused"; whatever it raises is a
    failure."""
    smaller: Callable[[Case], Iterator[Case]]
    """Simpler cases that might fail the same way, the simplest first."""
    prepare: Callable[[Path], None] = lambda folder: None
    """Write what all cases need into a folder."""


class NotRefusedWellError(AssertionError):
    """Something was refused, but not in one sentence."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    what: str
    """accepted, refused, failed, slow or large; the process that asked adds crashed and hung."""
    seconds: float
    peak: int
    error: str = ""
    """Of a failure: the exception, and the line of ours that it came from."""

    @property
    def is_failure(self) -> bool:
        return self.what not in ("accepted", "refused")


def outcome_of(kind: Kind, case: Case, folder: Path) -> Outcome:
    """Run a case, and measure it."""
    _forget_peak()
    # Among other tests, a process holds what those before have left.
    before = max(_peak() - _HELD_ANYWAY, 0)
    start, error = time.process_time(), ""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            what = kind.run(case, folder)
    except (Exception, SystemExit) as raised:
        what, error = "failed", _words(raised)
    seconds, peak = time.process_time() - start, _peak() - before
    if what != "failed" and (seconds > SLOW or peak > LARGE):
        what = "slow" if seconds > SLOW else "large"
    return Outcome(what, seconds, peak, error)


def refused(error: DAFHError) -> str:
    """Check that a refusal is one sentence, short enough to be read."""
    text = str(error)
    if "\n" in text or not 0 < len(text) <= LONGEST_SENTENCE:
        raise NotRefusedWellError(f"refused at length ({len(text)} letters): {text[:300]!r}")
    return "refused"


def shrink(kind: Kind, case: Case, fails: Callable[[Case], bool], most: int = 400) -> Case:
    """Return the smallest case that still fails, as far as `most` attempts lead."""
    left, found = most, True
    while found and left > 0:
        found = False
        for simpler in kind.smaller(case):
            left -= 1
            if left < 0:
                break
            if fails(simpler):
                case, found = simpler, True
                break
    return case


def drawn(kind: Kind, seed: int, number: int) -> Case:
    """Draw a case by its number: the same one in every process."""
    case = kind.draw(np.random.default_rng([seed, number, *kind.name.encode()]))
    return json.loads(json.dumps(case))


def without_parts(parts: list[Any]) -> Iterator[list[Any]]:
    """Leave out halves of a list, then quarters, and so on down to single entries."""
    size = len(parts) // 2
    while size:
        for first in range(0, len(parts), size):
            yield parts[:first] + parts[first + size :]
        size //= 2
    if len(parts) == 1:
        yield []


def _words(error: BaseException) -> str:
    """Name an exception and where it came from: the last line of the package, or else the last one."""
    lines, at = [], error.__traceback__
    while at is not None:
        lines.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    ours = [line for line in lines if f"{Path('src') / 'dafh'}" in line[0]] or lines
    place = f"{Path(ours[-1][0]).name}:{ours[-1][1]}" if ours else "?"
    return f"{type(error).__name__} at {place}: {' '.join(str(error).split())[:400]}"


def _forget_peak() -> None:
    """Let the kernel begin anew to note the most memory that this process held."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # Not Linux, or not allowed: the peak is then that of all cases so far.
        return


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
