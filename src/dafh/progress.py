"""Progress of downloads and fits: a bar on a terminal, a few plain lines in a log."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

Curves = dict[str, NDArray[np.float64]]
"""Figures after every epoch, by name: arrays of shape (epochs, blocks, replicas), or (epochs, replicas)."""
EpochReport = Callable[[int, Curves], None]
"""Called with the number of epochs so far and their curves."""


def _best(curves: Curves, rule: Any) -> str:
    replica, epoch = rule.choose(curves)
    judged = rule.judged(curves)
    accuracy, pr = judged["selection_accuracy"][epoch, replica], judged["selection_pr"][epoch, replica]
    return f"best so far: epoch {epoch + 1}, accuracy {accuracy:.1%}, Pr without harm {pr:.1%}"


@contextmanager
def epoch_reporter(max_epochs: int, verbose: int, rule: Any) -> Iterator[EpochReport | None]:
    """Yield a function to call after every epoch, or None if nothing is to be shown; `rule` selects the best epoch."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = ("training", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), "{task.description}")
    every = math.ceil(max_epochs / 5)  # Rounded down, a fit of nine epochs would write nine lines.
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=max_epochs)

        def report(epoch: int, curves: Curves) -> None:
            text = _best(curves, rule)
            progress.update(task, completed=epoch, description=text)
            if not console.is_terminal and (epoch == 1 or epoch % every == 0):
                console.print(f"epoch {epoch} of at most {max_epochs}; {text}", highlight=False, soft_wrap=True)

        yield report


@contextmanager
def status(title: str) -> Iterator[None]:
    """Show on a terminal that something is being done, and for how long; show nothing in a log."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), title, TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        progress.add_task("", total=None)
        yield
