"""Progress of downloads, fits and studies: a bar on a terminal, a few plain lines in a log."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Curves = dict[str, NDArray[np.float64]]
"""Figures after every epoch, by name: arrays of shape (epochs, replicas)."""
EpochReport = Callable[[int, Curves], None]
"""Called with the number of epochs so far and their curves."""
Transfer = Callable[[str, int, int | None], None]
"""Called with the name of the source, the bytes so far, and the total number of bytes where it is known."""


class SelectionRule(Protocol):
    """What is needed of the rule that selects the checkpoint; `dafh.engine.selection` has it."""

    def choose(self, curves: Curves) -> tuple[int, int]:
        """Replica and epoch of the best checkpoint."""
        ...

    def judged(self, curves: Curves) -> Curves:
        """Curves as averages over the folds."""
        ...


class NamedJob(Protocol):
    """What is needed of a job."""

    @property
    def key(self) -> str:
        """Name of the job."""
        ...


JobReport = Callable[[NamedJob, int, int, float | None], None]
"""Called with the job that ended, the jobs done, all jobs, and the seconds left where they can be estimated."""


def _best(curves: Curves, rule: SelectionRule) -> str:
    replica, epoch = rule.choose(curves)
    judged = rule.judged(curves)
    accuracy, pr = judged["selection_accuracy"][epoch, replica], judged["selection_pr"][epoch, replica]
    return f"best so far: epoch {epoch + 1}, accuracy {accuracy:.1%}, Pr without harm {pr:.1%}"


@contextmanager
def transfer_reporter(title: str) -> Iterator[Transfer]:
    """Yield a function to call as bytes arrive; it shows a bar on a terminal, and nothing in a log."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(title, total=None, visible=False)

        def report(source: str, done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total, visible=True, description=f"{title} from {source}")

        yield report


@contextmanager
def epoch_reporter(max_epochs: int, verbose: int, rule: SelectionRule) -> Iterator[EpochReport | None]:
    """Yield a function to call after every epoch, or None if nothing is to be shown; `rule` finds the best epoch."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=max_epochs)
        every = math.ceil(max_epochs / 5)  # Rounded down, a fit of nine epochs would write nine lines.

        def report(epoch: int, curves: Curves) -> None:
            text = _best(curves, rule)
            bar.update(task, completed=epoch, description=text)
            if not console.is_terminal and (epoch == 1 or epoch % every == 0):
                console.print(f"epoch {epoch} of at most {max_epochs}; {text}", highlight=False, soft_wrap=True)

        yield report


@contextmanager
def study_reporter() -> Iterator[JobReport]:
    """Yield a function to call after every job of a study; it shows a bar, or about 20 lines in a log."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("jobs"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def report(job: NamedJob, done: int, total: int, seconds_left: float | None) -> None:
            left = "" if seconds_left is None else f", about {_duration(seconds_left)} left"
            bar.update(task, completed=done, total=total, description=f"last: {job.key}{left}")
            # Rounded down instead, 39 jobs would write 39 lines.
            if not console.is_terminal and (done in (1, total) or done % math.ceil(total / 20) == 0):
                console.print(f"{done} of {total} jobs done{left}", highlight=False, soft_wrap=True)

        yield report


@contextmanager
def status(title: str) -> Iterator[None]:
    """Show on a terminal that something is being done, and for how long; show nothing in a log."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        bar.add_task(title, total=None)
        yield


def _duration(seconds: float) -> str:
    """Write a time in the unit that fits.

    Examples
    --------
    >>> _duration(42), _duration(400), _duration(8000)
    ('42 s', '7 min', '2.2 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
