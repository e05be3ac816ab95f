"""Threads, chosen on purpose: one for each matrix, and one core for each fold."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Result = TypeVar("Result")

# With fewer rows, Python itself is busy most of the time, and lets one thread at a time do its work.
_ENOUGH_ROWS = 20_000

# Looking for the libraries takes up to 2 ms, and those of NumPy and SciPy are always there.
_controller = cache(ThreadpoolController)


def one_thread() -> AbstractContextManager[Any]:
    """Let matrix products and factorisations use one thread.

    The matrices of a fit have at most a few hundred columns, and there are thousands of them: handing each to several
    threads took 2 to 20 times as long as doing it at once, most of it when other programs want the processor too.
    """
    return _controller().limit(limits=1, user_api="blas")


def in_threads(function: Callable[[Task], Result], tasks: Iterable[Task], n_rows: int) -> list[Result]:
    """Apply a function to every task, several at a time where rows are many; results come in the order of the tasks.

    Examples
    --------
    >>> in_threads(abs, [-1, 2, -3], n_rows=50_000)
    [1, 2, 3]
    """
    with ThreadPoolExecutor(cpu_count() if n_rows >= _ENOUGH_ROWS else 1) as pool:
        return list(pool.map(function, tasks))
