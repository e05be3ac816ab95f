"""Progress of a fit: a bar on a terminal, a few plain lines in a log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[int, dict[str, Any]], None]
Transfer = Callable[[str, int, int | None], None]


def _best(curves: dict[str, Any], rule: Any) -> str:
    replica, epoch = rule.choose(curves)
    judged = rule.judged(curves)
    accuracy, pr = judged["selection_accuracy"][epoch, replica], judged["selection_pr"][epoch, replica]
    return f"best so far: epoch {epoch + 1}, accuracy {accuracy:.1%}, without harm {pr:.1%}"


@contextmanager
def transfer_reporter(title: str) -> Iterator[Transfer]:
    """Yield a function to be called as bytes arrive; shows a bar on a terminal, and nothing in a log."""
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
def epoch_reporter(max_epochs: int, verbose: int, rule: Any) -> Iterator[Report | None]:
    """Yield a function to be called after every epoch, or None where nothing is to be said; `rule` knows the best."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=max_epochs)

        def report(epoch: int, curves: dict[str, Any]) -> None:
            text = _best(curves, rule)
            bar.update(task, completed=epoch, description=text)
            if not console.is_terminal and (epoch == 1 or epoch % max(max_epochs // 5, 1) == 0):
                console.print(f"epoch {epoch} of at most {max_epochs}; {text}", highlight=False, soft_wrap=True)

        yield report


@contextmanager
def study_reporter() -> Iterator[Callable[[Any, int, int, float | None], None]]:
    """Yield a function to be called after every job of a study: a bar on a terminal, a line now and then in a log."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("jobs"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def report(job: Any, done: int, total: int, seconds_left: float | None) -> None:
            left = "" if seconds_left is None else f"about {_duration(seconds_left)} left"
            bar.update(task, completed=done, total=total, description=f"{left}; last: {job.key}")
            if not console.is_terminal and (done in (1, total) or done % max(total // 20, 1) == 0):
                console.print(f"{done} of {total} jobs done, {left}", highlight=False, soft_wrap=True)

        yield report


def _duration(seconds: float) -> str:
    """Write a time as people say it.

    Examples
    --------
    >>> _duration(42), _duration(400), _duration(8000)
    ('42 s', '7 min', '2.2 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
