"""Pages of a Parquet file: how large each becomes when it is unpacked, as its own header says.

A page of 200 kB may unpack to 2 GB, and one long text in a dictionary may stand in a billion rows. What the end of the
file says about sizes is never checked by Arrow, and may be forged; the headers are what Arrow itself goes by.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from dafh.exceptions import InputError
from dafh.tables import thrift
from dafh.tables.footer import Chunk
from dafh.tables.thrift import WHOLE

# Numbers by which the format knows kinds of pages and of encodings.
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 0, 2, 3
_PREFIXED = 7  # DELTA_BYTE_ARRAY: a text is the beginning of the one before it and something more.
# Fields of a header. Each kind of page has a structure of its own in it, with the numbers of values and encoding.
_KIND, _UNPACKED, _PACKED = 1, 2, 3
_ABOUT = {_DATA_PAGE: 5, _DICTIONARY_PAGE: 7, _DATA_PAGE_2: 8}
_ENCODING = {_DATA_PAGE: 2, _DICTIONARY_PAGE: 2, _DATA_PAGE_2: 4}
_HEADER = {
    **dict.fromkeys((_KIND, _UNPACKED, _PACKED), WHOLE),
    **{_ABOUT[kind]: {1: WHOLE, _ENCODING[kind]: WHOLE} for kind in _ABOUT},
}
# Headers are short, but for the smallest and the largest value in them.
_BYTES_OF_A_HEADER = (2**10, 2**16, 2**24)
_MOST_VALUES = 100


class _Page(NamedTuple):
    """What the header of a page says."""

    kind: int
    unpacked: int
    encoding: int


@dataclass(frozen=True)
class ColumnPages:
    """The pages of one column in one row group."""

    largest: int
    """Bytes of the largest page, unpacked: Arrow holds one at a time."""
    longest: int
    """Bytes that no single cell exceeds."""
    total: int | None
    """Bytes that all cells together do not exceed; None where cells may repeat what is stored once."""

    def most_bytes(self, n_rows: int) -> int:
        """Return what so many rows take in memory at most."""
        repeated = n_rows * self.longest
        return repeated if self.total is None else min(repeated, self.total)


def column_pages(stream: BinaryIO, chunk: Chunk, name: str) -> ColumnPages:
    """Read the headers of the pages of a column in a row group.

    Parameters
    ----------
    stream : binary stream
        The file; it must be able to jump.
    chunk : Chunk
    name : str
        What to call the file in messages.
    """
    pages = list(_pages(stream, chunk, name))
    data = [page for page in pages if page.kind != _DICTIONARY_PAGE]
    largest = max((page.unpacked for page in pages), default=0)
    total = sum(page.unpacked for page in data)
    if not chunk.has_texts:
        return ColumnPages(largest, 16, None)
    if any(page.encoding == _PREFIXED for page in data):
        return ColumnPages(largest, sum(page.unpacked for page in pages), None)
    dictionary = max((page.unpacked for page in pages if page.kind == _DICTIONARY_PAGE), default=0)
    if dictionary:
        return ColumnPages(largest, largest, None)
    return ColumnPages(largest, largest, total)


def _pages(stream: BinaryIO, chunk: Chunk, name: str) -> Iterator[_Page]:
    start, left = chunk.start, chunk.n_values
    try:
        while start < chunk.end and left > 0:
            header, length = _header(stream, start, chunk.end)
            kind, packed = header[_KIND], header[_PACKED]
            if kind not in _ABOUT or [number for number in _ABOUT.values() if number in header] != [_ABOUT[kind]]:
                raise thrift.DamagedError("a kind of page that holds no cells, or says that it is another")
            about = header[_ABOUT[kind]]
            # What is not packed has the size that it says to have when packed, whatever else it says.
            page = _Page(kind, max(header[_UNPACKED], packed), about[_ENCODING[kind]])
            if min(packed, header[_UNPACKED], about[1]) < 0:
                raise thrift.DamagedError("a number below zero")
            yield page
            left -= about[1] if kind != _DICTIONARY_PAGE else 0
            start += length + packed
        if left > 0:
            raise thrift.DamagedError("a column that ends before all of its cells")
    except (thrift.DamagedError, KeyError) as error:
        raise InputError(f"{name} is damaged: the header of one of its pages cannot be read.") from error


def _header(stream: BinaryIO, start: int, end: int) -> tuple[dict[int, Any], int]:
    """Return the fields of the header at a place, and its length."""
    for n_bytes in _BYTES_OF_A_HEADER:
        stream.seek(start)
        content = stream.read(min(n_bytes, end - start))
        try:
            return thrift.read(content, _HEADER, _MOST_VALUES)
        except thrift.UnfinishedError:  # The header is longer than what was read of it, or the column ends within it.
            if len(content) < n_bytes:
                raise
    raise thrift.DamagedError("a header without end")
