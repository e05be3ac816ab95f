"""Threads, chosen on purpose: one for each matrix, and one core for each fold."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Result = TypeVar("Result")

# With fewer rows, Python itself is busy most of the time, and lets one thread at a time do its work.
_ENOUGH_ROWS = 20_000


@contextmanager
def one_thread() -> Iterator[None]:
    """Let matrix products and factorisations use one thread.

    The matrices of a fit have at most a few hundred columns, and there are thousands of them: handing each to several
    threads took 2 to 20 times as long as doing it at once, most of it when other programs want the processor too.
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


class _Limit:
    """The limit, which belongs to the process: the first to enter sets it, and the last to leave takes it back.

    If each took back what it had found, two threads at a time could leave the process with one thread for ever.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside = Lock(), 0

    def enter(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._before = [(library, library.get_num_threads()) for library in _libraries()]
                for library, _ in self._before:
                    _set_threads(library, 1)
            self._n_inside += 1

    def leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                for library, number in self._before:
                    _set_threads(library, number)


_limit = _Limit()


@cache
def _libraries() -> list[Any]:
    """Find the libraries that are loaded, once: it takes 2 ms, and those of NumPy and SciPy are always there."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(library: Any, number: int) -> None:
    """Set the threads of a library, from any thread.

    Since its version 3.8, threadpoolctl lets only the thread that came first set a limit, until it gives that right
    back, and ignores all others without a word: predictions in eight threads then took four times as long.
    """
    give_back = getattr(library, "clear_controlling_thread", None)
    if give_back is not None:
        give_back(force=True)
    library.set_num_threads(number)
    if give_back is not None:
        give_back(force=True)


def in_threads(function: Callable[[Task], Result], tasks: Iterable[Task], n_rows: int) -> list[Result]:
    """Apply a function to every task, several at a time where rows are many; results come in the order of the tasks.

    Examples
    --------
    >>> in_threads(abs, [-1, 2, -3], n_rows=50_000)
    [1, 2, 3]
    """
    n_threads = cpu_count() if n_rows >= _ENOUGH_ROWS else 1
    if n_threads == 1:
        return [function(task) for task in tasks]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, tasks))
