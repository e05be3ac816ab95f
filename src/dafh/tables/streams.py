"""Streams of bytes: from a path or a pipe, packed or not, and looked at before they are read."""

import contextlib
import gzip
import io
import sys
from pathlib import Path
from typing import Any, BinaryIO, cast

from dafh.exceptions import InputError
from dafh.storage.nameless import nameless_file
from dafh.tables.writing import STDIN

BYTES_TO_GUESS_BY = 2**22
"""How many of the first bytes are looked at."""
LONGEST_LINE = 2**26
"""Bytes of a line of text: a row is held in memory whole, and a small packed file may unpack to a line without end."""
_BYTES_OF_MOST_LINES = 2**12


def open_stream(path: str | Path, stack: contextlib.ExitStack) -> tuple[bytes, BinaryIO]:
    """Open for reading, unpacked if it is packed; return the first bytes, and the stream from its beginning."""
    if str(path) == STDIN and sys.stdin is None:
        raise InputError("Standard input is closed: name a file to read.")
    stream: BinaryIO = sys.stdin.buffer if str(path) == STDIN else stack.enter_context(open(path, "rb"))  # noqa: SIM115
    head, stream = _look_ahead(stream, 2)
    if head == b"\x1f\x8b":
        stream = cast(BinaryIO, stack.enter_context(gzip.open(stream)))  # noqa: SIM115
    return _look_ahead(stream, BYTES_TO_GUESS_BY)


def _look_ahead(stream: BinaryIO, n_bytes: int) -> tuple[bytes, BinaryIO]:
    head = stream.read(n_bytes)
    if stream.seekable() and not isinstance(stream, gzip.GzipFile):  # It claims to be, over a pipe too.
        stream.seek(0)
        return head, stream
    return head, io.BufferedReader(Rejoined(head, stream))


class Rejoined(io.RawIOBase):
    """A stream from its beginning, after its first bytes were read."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as much as there is at hand, up to the length of the buffer."""
        block = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(block) :]
        buffer[: len(block)] = block
        return len(block)


class Lines(io.RawIOBase):
    """A stream of text that fails on a line that is too long, before all of it is read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._length = 0
        """Bytes since the last line break."""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read up to the length of the buffer."""
        n_read: int = cast(Any, self._stream).readinto(buffer)
        # Most lines are short: a look at the last bytes spares a copy of all, which made reading slower by a sixth.
        start = max(0, n_read - _BYTES_OF_MOST_LINES)
        found = _last_break(bytes(buffer[start:n_read]))
        last = found + start if found >= 0 else _last_break(bytes(buffer[:start]))
        self._length = n_read - 1 - last + (self._length if last < 0 else 0)
        if self._length > LONGEST_LINE:
            raise OSError(f"one of its lines is longer than {LONGEST_LINE:,} bytes")
        return n_read


def _last_break(block: bytes) -> int:
    last = block.rfind(b"\n")
    return last if last >= 0 else block.rfind(b"\r")  # Old programs end lines with a return alone.


def limited(stream: BinaryIO) -> BinaryIO:
    """Return the same text, without lines that are too long."""
    return io.BufferedReader(Lines(stream))


def seekable(stream: BinaryIO, stack: contextlib.ExitStack) -> BinaryIO:
    """Return a stream that can jump: Parquet has its index at the end, where a pipe cannot go first."""
    if stream.seekable():
        return stream
    spool = stack.enter_context(nameless_file())
    while block := stream.read(2**20):
        spool.write(block)
    spool.seek(0)
    return cast(BinaryIO, spool)
