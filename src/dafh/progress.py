"""Progress of downloads and fits: a bar on a terminal, a few plain lines in a log."""

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
def step_reporter(verbose: int) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function to call with the steps done and all steps of a network that learns from all rows, or None."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("training on all rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task, told = bar.add_task("", total=None), 0

        def report(done: int, total: int) -> None:
            nonlocal told
            bar.update(task, completed=done, total=total)
            if not console.is_terminal and done * 5 // total > told:
                told = done * 5 // total
                console.print(f"step {done:,} of {total:,} on all rows", highlight=False, soft_wrap=True)

        yield report


@contextmanager
def pass_reporter(n_rows: int) -> Iterator[Callable[[str, float], None]]:
    """Yield a function to call after every pass over rows; it shows passes and speed, in a log only those over files.

    Passes over what is kept of the rows are many and short, and share a line at the end.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    seconds: dict[str, list[float]] = {"rows": [], "kept": []}
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("reading rows", total=None)

        def speed(of: list[float]) -> str:
            return f"{len(of) * n_rows / max(sum(of), 1e-9):,.0f} rows a second"

        def report(what: str, taken: float) -> None:
            seconds[what].append(taken)
            n_passes = sum(map(len, seconds.values()))
            bar.update(task, description=f"{n_passes} passes over {n_rows:,} rows; the last: {speed([taken])}")

        yield report
    for what, title in {"rows": "over the files", "kept": "over what is kept of them"}.items():
        if seconds[what]:
            line = f"{len(seconds[what])} passes {title}: {speed(seconds[what])}."
            console.print(line, highlight=False, soft_wrap=True)
