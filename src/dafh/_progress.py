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
