"""Blocks in memory."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from joblib import cpu_count

from dafh.blocks.base import Arrays, Block, Blocks, Result

ROWS_PER_BLOCK = 2**16
"""Enough for NumPy to be busy, and few enough for temporary arrays to stay small."""


class MemoryBlocks(Blocks[Block]):
    """Pieces of what is in memory already, looked at by one thread for each core.

    Examples
    --------
    >>> import numpy as np
    >>> blocks = MemoryBlocks([np.arange(3), np.arange(4)])
    >>> blocks.total(lambda block: (block.sum(), len(block)))
    (np.int64(9), np.int64(7))
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks

    def each(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """Yield what a function makes of every block, in the order of the blocks."""
        return in_order(function, self.blocks)

    def keep(self, function: Callable[[Block], Arrays]) -> Blocks[Arrays]:
        """Blocks of what a function makes of every block."""
        return MemoryBlocks(list(self.each(function)))


def in_order(function: Callable[[Block], Result], tasks: Sequence[Block]) -> Iterator[Result]:
    """Apply a function to tasks, one thread for each core, never far ahead of whoever takes the results."""
    n_threads = min(cpu_count(), len(tasks))
    if n_threads < 2:
        yield from map(function, tasks)
        return
    pool = ThreadPoolExecutor(n_threads)
    try:
        running: deque[Future[Result]] = deque()
        for task in tasks:
            running.append(pool.submit(function, task))
            if len(running) > 2 * n_threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:  # After an error, what has not begun is not done.
        pool.shutdown(cancel_futures=True)


def row_slices(n_rows: int, n_per_block: int = ROWS_PER_BLOCK) -> list[slice]:
    """Divide rows into blocks.

    Examples
    --------
    >>> row_slices(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(first, min(first + n_per_block, n_rows)) for first in range(0, n_rows, n_per_block)]
