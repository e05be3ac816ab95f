"""Blocks on a Dask cluster: the partitions of a collection, or files that its workers read.

Everything goes through Dask's own `compute` and `persist`, which use the cluster that a `Client` was opened for, or
threads here where there is none. What a lost worker held is made again by the others.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dafh.blocks.base import Arrays, Block, Blocks, Result, add
from dafh.blocks.files import FileBlocks, Piece
from dafh.exceptions import InputError

# Sums of this many blocks are added up where they are, before they are sent.
_SUMS_AT_ONCE = 8
_RESULTS_AT_ONCE = 16
_SECONDS_TO_CONNECT = 10
_INSTALL = "Clusters need Dask: pip install 'dafh[dask]'."


def import_dask() -> Any:
    """Import Dask, or say what to install."""
    try:
        import dask
    except ImportError as error:
        raise InputError(_INSTALL) from error
    return dask


@contextmanager
def connected(address: str | None) -> Iterator[int]:
    """Let everything inside run on the cluster whose scheduler is at an address; yield its threads, 0 without one."""
    if address is None:
        yield 0
        return
    import_dask()
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(_INSTALL) from error
    try:
        client = Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"No Dask scheduler answers at {address}: is it running, and is this its address?") from error
    with client:
        n_threads = sum(client.nthreads().values())
        if not n_threads:
            raise InputError(f"The Dask scheduler at {address} has no workers: start some.")
        yield n_threads


class DaskBlocks(Blocks[Block]):
    """Blocks that are tasks of Dask."""

    def __init__(self, tasks: Sequence[Any], columns: tuple[str, ...] = ()) -> None:
        self.tasks, self.columns = tasks, columns

    @classmethod
    def of_collection(cls, frame: Any) -> "DaskBlocks[pd.DataFrame]":
        """Take the partitions of a Dask data frame."""
        return DaskBlocks(frame.to_delayed(), tuple(str(name) for name in frame.columns))

    @classmethod
    def of_files(cls, files: FileBlocks) -> "DaskBlocks[pd.DataFrame]":
        """Let workers read files, which must lie where they can see them."""
        dask = import_dask()
        tasks = [dask.delayed(_read_piece)(dask.delayed(_anywhere(piece))) for piece in files.pieces]
        return DaskBlocks(tasks, files.columns)

    def each(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """Yield what a function makes of every block, in the order of the blocks."""
        dask = import_dask()
        made = self._applied(function)
        # Not all at once: results may be as large as the blocks.
        for i in range(0, len(made), _RESULTS_AT_ONCE):
            yield from dask.compute(*made[i : i + _RESULTS_AT_ONCE])

    def total(self, function: Callable[[Block], Any]) -> Any:
        """Add up what a function makes of every block: some of it where the blocks are."""
        dask = import_dask()
        made = self._applied(function)
        sums = [dask.delayed(_sum)(made[i : i + _SUMS_AT_ONCE]) for i in range(0, len(made), _SUMS_AT_ONCE)]
        return _sum(dask.compute(*sums))

    def keep(self, function: Callable[[Block], Arrays]) -> Blocks[Arrays]:
        """Blocks of what a function makes of every block, in the memory of the workers."""
        dask = import_dask()
        return DaskBlocks(dask.persist(*self._applied(function)))

    def _applied(self, function: Callable[[Block], Any]) -> list[Any]:
        dask = import_dask()
        import cloudpickle  # Comes with Dask, and can send what was defined in a notebook.

        # Sent once, and not with every task.
        shared = dask.delayed(cloudpickle.dumps(function), pure=False)
        return [dask.delayed(_apply, pure=False)(shared, task) for task in self.tasks]

    def close(self) -> None:
        """Let the workers forget what they keep."""
        self.tasks = []


def _apply(pickled: bytes, block: Any) -> Any:
    """Apply a function to a block, both with arrays that lie in memory as they do anywhere else.

    Dask reads arrays from wherever they are in a message, which depends on what else was sent at that moment. NumPy
    multiplies those that begin at odd addresses in another way, and one fit in thirty had other last digits.
    """
    if isinstance(block, dict):
        block = {name: np.require(array, requirements="A") for name, array in block.items()}
    return pickle.loads(pickled)(block)


def _sum(results: Sequence[Any]) -> Any:
    return reduce(add, results)


def _anywhere(piece: Any) -> Any:
    """Return a piece whose path does not depend on the folder that a process works in."""
    if not isinstance(piece, Piece):
        return piece
    return replace(piece, file=replace(piece.file, path=Path(piece.file.path).absolute()))


def _read_piece(piece: Any) -> pd.DataFrame:
    return pd.concat(list(piece.blocks()), ignore_index=True)
