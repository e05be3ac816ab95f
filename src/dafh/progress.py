"""Progress of downloads and fits: a bar on a terminal, a few plain lines in a log."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Curves = dict[str, NDArray[np.float64]]
"""Figures after every epoch, by name: arrays of shape (epochs, replicas)."""
EpochReport = Callable[[int, Curves], None]
"""Called with the number of epochs so far and their curves."""


Show = Callable[..., Any]
"""Called with what has changed of a bar: completed, advance, total, description."""


def _best(curves: Curves, rule: Any) -> str:
    replica, epoch = rule.choose(curves)
    judged = rule.judged(curves)
    accuracy, pr = judged["selection_accuracy"][epoch, replica], judged["selection_pr"][epoch, replica]
    return f"best so far: epoch {epoch + 1}, accuracy {accuracy:.1%}, Pr without harm {pr:.1%}"


@contextmanager
def _bar(*columns: "str | ProgressColumn", transient: bool = False) -> Iterator[tuple[Show, Callable[[str], None]]]:
    """Yield a function that updates a bar on a terminal, and one that writes a line where there is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)

    def write(line: str) -> None:
        if not console.is_terminal:
            console.print(line, highlight=False, soft_wrap=True)

    with Progress(*columns, console=console, disable=not console.is_terminal, transient=transient) as progress:
        task = progress.add_task("", total=None, visible=False)
        yield lambda **state: progress.update(task, visible=True, **state), write


@contextmanager
def epoch_reporter(max_epochs: int, verbose: int, rule: Any) -> Iterator[EpochReport | None]:
    """Yield a function to call after every epoch, or None if nothing is to be shown; `rule` selects the best epoch."""
    if not verbose:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    columns = ("training", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), "{task.description}")
    with _bar(*columns) as (show, write):
        every = math.ceil(max_epochs / 5)  # Rounded down, a fit of nine epochs would write nine lines.

        def report(epoch: int, curves: Curves) -> None:
            text = _best(curves, rule)
            show(completed=epoch, total=max_epochs, description=text)
            if epoch == 1 or epoch % every == 0:
                write(f"epoch {epoch} of at most {max_epochs}; {text}")

        yield report


@contextmanager
def status(title: str) -> Iterator[None]:
    """Show on a terminal that something is being done, and for how long; show nothing in a log."""
    from rich.progress import SpinnerColumn, TimeElapsedColumn

    with _bar(SpinnerColumn(), title, TimeElapsedColumn(), transient=True):
        yield
