"""Arrays that are kept in a temporary file, so that memory does not grow with the number of rows."""

import os
import tempfile
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dafh.blocks.base import Arrays, Blocks, Result
from dafh.blocks.memory import in_order
from dafh.exceptions import InputError


class _Place(NamedTuple):
    """Where an array lies in the file."""

    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    by_column: bool


def no_room(error: OSError) -> InputError:
    """What to say if a temporary file cannot be written."""
    return InputError(
        f"Rows are kept in a temporary file while they are fitted, and it cannot be written "
        f"({error.strerror or error}): set TMPDIR to a folder on a disk with more room."
    )


class Spool:
    """A temporary file of arrays, written by several threads.

    The file has no name: whatever ends the process, nothing is left behind.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._end = 0
        self._lock = Lock()

    def write(self, arrays: Arrays) -> dict[str, _Place]:
        """Append arrays, and say where they are."""
        return {name: self._write(array) for name, array in arrays.items()}

    def _write(self, array: NDArray[Any]) -> _Place:
        by_column = array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous
        data = np.ascontiguousarray(array.T if by_column else array)
        with self._lock:
            offset, self._end = self._end, self._end + data.nbytes
        left = data.reshape(-1).view(np.uint8).data
        where = offset
        while len(left):
            written = self._write_some(left, where)
            left, where = left[written:], where + written
        return _Place(offset, array.dtype, array.shape, by_column)

    def _write_some(self, data: memoryview, offset: int) -> int:
        try:
            return os.pwrite(self._file.fileno(), data, offset)
        except OSError as error:
            raise no_room(error) from error

    def read(self, places: dict[str, _Place]) -> Arrays:
        """Read arrays back."""
        return {name: self._read(place) for name, place in places.items()}

    def _read(self, place: _Place) -> NDArray[Any]:
        array: NDArray[Any] = np.empty(place.shape[::-1] if place.by_column else place.shape, place.dtype)
        left = array.reshape(-1).view(np.uint8).data
        where = place.offset
        while len(left):
            got = os.preadv(self._file.fileno(), [left], where)
            if not got:
                raise OSError("the temporary file ends too early")
            left, where = left[got:], where + got
        return array.T if place.by_column else array

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()


class SpooledBlocks(Blocks[Arrays]):
    """Blocks of arrays in a temporary file."""

    def __init__(self, spool: Spool, places: list[dict[str, _Place]]) -> None:
        self.spool, self.places = spool, places

    def each(self, function: Callable[[Arrays], Result]) -> Iterator[Result]:
        """Yield what a function makes of every block, in the order of the blocks."""
        return in_order(lambda places: function(self.spool.read(places)), self.places)

    def keep(self, function: Callable[[Arrays], Arrays]) -> Blocks[Arrays]:
        """Blocks of what a function makes of every block, in the same kind of file."""
        return keep_in_file(self, function)

    def close(self) -> None:
        """Give the disk back."""
        self.spool.close()


def keep_in_file(blocks: Blocks[Any], function: Callable[[Any], Arrays]) -> SpooledBlocks:
    """Keep what a function makes of every block in a temporary file."""
    spool = Spool()
    try:
        return SpooledBlocks(spool, list(blocks.each(lambda block: spool.write(function(block)))))
    except BaseException:
        spool.close()
        raise
