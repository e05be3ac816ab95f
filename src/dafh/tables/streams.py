"""Streams of bytes: from a path or a pipe, packed or not, and looked at before they are read."""

import contextlib
import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

from dafh.exceptions import InputError
from dafh.tables.writing import STDIN

BYTES_TO_GUESS_BY = 2**22
"""How many of the first bytes are looked at."""
LONGEST_LINE = 2**26
"""Bytes of a line of text, and letters of a row, which may have many lines: a row is held in memory whole, and a small
packed file may unpack to a line without end."""
LARGEST_PIECE, TIMES_PACKED = 2**26, 200
"""Bytes that a packed file may unpack to in one piece, or times its size if that is more: real tables stay below 50.
Commands hold a piece up to eight times, as text, as values and as output."""
_BYTES_OF_MOST_LINES = 2**12
Piece = TypeVar("Piece")


def largest_piece(n_packed: int) -> int:
    """Bytes that a piece of a packed file of some size may have, unpacked."""
    return max(LARGEST_PIECE, TIMES_PACKED * n_packed)


class Opened(NamedTuple):
    """A file that is open for reading."""

    head: bytes
    """Its first bytes."""
    stream: BinaryIO
    """From its beginning, unpacked."""
    most_bytes: int | None
    """What a piece of it may have; None: it is not packed, and whoever has it on a disk knows its size."""


def open_stream(path: str | Path, stack: contextlib.ExitStack) -> Opened:
    """Open for reading, unpacked if it is packed."""
    if str(path) == STDIN and sys.stdin is None:
        raise InputError("Standard input is closed: name a file to read.")
    stream: BinaryIO = sys.stdin.buffer if str(path) == STDIN else stack.enter_context(open(path, "rb"))  # noqa: SIM115
    head, stream = _look_ahead(stream, 2)
    most_bytes = None
    if head == b"\x1f\x8b":
        most_bytes = largest_piece(stream.seek(0, os.SEEK_END) if stream.seekable() else 0)
        if stream.seekable():
            stream.seek(0)
        stream = cast(BinaryIO, stack.enter_context(gzip.open(stream)))  # noqa: SIM115
    return Opened(*_look_ahead(stream, BYTES_TO_GUESS_BY), most_bytes)


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
    """A stream of text that fails on a line that is too long, or a piece that is too large, before it is read whole."""

    def __init__(self, stream: BinaryIO, most_bytes: int | None) -> None:
        self._stream, self._most_bytes = stream, most_bytes
        self._n_read = 0
        """Bytes since a piece was begun."""
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
        self._n_read += n_read
        _check_unpacked(self._n_read, self._most_bytes)
        return n_read

    def in_pieces(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Yield pieces that are made of this stream; each may have as many bytes as the first."""
        while True:
            self._n_read = 0
            piece = next(pieces, None)
            if piece is None:
                return
            yield piece


def _last_break(block: bytes) -> int:
    last = block.rfind(b"\n")
    return last if last >= 0 else block.rfind(b"\r")  # Old programs end lines with a return alone.


def _check_unpacked(n_bytes: int, most_bytes: int | None) -> None:
    if most_bytes is not None and n_bytes > most_bytes:
        raise OSError(
            f"it unpacks to more than {most_bytes:,} bytes at once, which is more than a file of its size may; unpack "
            "it, if you trust it"
        )


def seekable(stream: BinaryIO, stack: contextlib.ExitStack, most_bytes: int | None) -> BinaryIO:
    """Return a stream that can jump: Parquet has its index at the end, where a pipe cannot go first.

    What has to be unpacked for it goes to the disk, which a small packed file must not fill.
    """
    if stream.seekable():
        return stream
    spool = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    n_bytes = 0
    while block := stream.read(2**20):
        n_bytes += len(block)
        _check_unpacked(n_bytes, most_bytes)
        spool.write(block)
    spool.seek(0)
    return cast(BinaryIO, spool)
