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
from dafh.tables.page_contents import Packed, check_lengths, longest_text
from dafh.tables.thrift import BOOL, WHOLE

# Numbers by which the format knows kinds of pages and of encodings.
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 0, 2, 3
_BY_DICTIONARY = (2, 8)
_RUNS = 3
_LENGTHS_FIRST = 6  # DELTA_LENGTH_BYTE_ARRAY: all lengths, and then all texts.
_PREFIXED = 7  # DELTA_BYTE_ARRAY: a text is the beginning of the one before it and something more.
# Fields of a header. Each kind of page has a structure of its own in it, with the numbers of values and encoding.
_KIND, _UNPACKED, _PACKED = 1, 2, 3
_ABOUT = {_DATA_PAGE: 5, _DICTIONARY_PAGE: 7, _DATA_PAGE_2: 8}
_ENCODING = {_DATA_PAGE: 2, _DICTIONARY_PAGE: 2, _DATA_PAGE_2: 4}
_GAPS_ENCODING = 3
_GAPS_APART, _IS_PACKED = (5, 6), 7
_HEADER = {
    **dict.fromkeys((_KIND, _UNPACKED, _PACKED), WHOLE),
    5: dict.fromkeys((1, 2, _GAPS_ENCODING), WHOLE),
    7: dict.fromkeys((1, 2), WHOLE),
    8: {**dict.fromkeys((1, 4, *_GAPS_APART), WHOLE), _IS_PACKED: BOOL},
}
# Headers are short, but for the smallest and the largest value in them.
_BYTES_OF_A_HEADER = (2**10, 2**16, 2**24)
_MOST_VALUES = 100


class _Page(NamedTuple):
    """What the header of a page says."""

    kind: int
    packed: int
    declared: int
    """Bytes, unpacked, as the header says."""
    encoding: int
    n_values: int
    start: int
    """Place of its body in the file."""
    about: dict[int, Any]

    @property
    def unpacked(self) -> int:
        """Bytes that it has at most: what is not packed is as large as it is, whatever its header says."""
        return max(self.declared, self.packed)


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


def column_pages(stream: BinaryIO, chunk: Chunk, name: str, most_bytes: int) -> ColumnPages:
    """Read the headers of the pages of a column in a row group, and what else its memory depends on.

    Parameters
    ----------
    stream : binary stream
        The file; it must be able to jump.
    chunk : Chunk
    name : str
        What to call the file in messages.
    most_bytes : int
        Pages that are larger are not looked into; whoever asks refuses them.
    """
    try:
        pages = list(_pages(stream, chunk))
        largest = max((page.unpacked for page in pages), default=0)
        if not chunk.has_texts:
            return ColumnPages(largest, 16, None)
        if largest > most_bytes:
            return ColumnPages(largest, largest, None)
        return _pages_of_texts(stream, chunk, pages, largest)
    except (thrift.DamagedError, KeyError) as error:
        raise InputError(f"{name} is damaged: the header of one of its pages cannot be read.") from error


def _pages_of_texts(stream: BinaryIO, chunk: Chunk, pages: list[_Page], largest: int) -> ColumnPages:
    data = [page for page in pages if page.kind != _DICTIONARY_PAGE]
    for page in data:
        if page.encoding in (_LENGTHS_FIRST, _PREFIXED):
            content = _values_of(_content(stream, chunk, page), chunk, page)
            check_lengths(content, page.n_values, has_prefixes=page.encoding == _PREFIXED)
    if any(page.encoding == _PREFIXED for page in data):
        return ColumnPages(largest, sum(page.unpacked for page in pages), None)
    stored = [page for page in pages if page.kind == _DICTIONARY_PAGE]
    if stored:
        # A text of the dictionary may stand in every row.
        found = [longest_text(_content(stream, chunk, page), min(page.n_values, chunk.n_values)) for page in stored]
        plain = [page.unpacked for page in data if page.encoding not in _BY_DICTIONARY]
        return ColumnPages(largest, max(found + plain), None)
    return ColumnPages(largest, largest, sum(page.unpacked for page in data))


def _content(stream: BinaryIO, chunk: Chunk, page: _Page) -> bytes:
    """Unpack a page; of the newer sort, without the bytes that say where gaps are, which are never packed."""
    apart = sum(page.about.get(number, 0) for number in _GAPS_APART) if page.kind == _DATA_PAGE_2 else 0
    if not 0 <= apart <= page.packed or min((page.about.get(number, 0) for number in _GAPS_APART), default=0) < 0:
        raise thrift.DamagedError("gaps beyond the end of their page")
    stream.seek(page.start + apart)
    is_packed = page.kind != _DATA_PAGE_2 or page.about.get(_IS_PACKED, True)
    packed = Packed(stream.read(page.packed - apart), chunk.codec if is_packed else 0, page.declared - apart)
    return packed.read()


def _values_of(content: bytes, chunk: Chunk, page: _Page) -> bytes:
    """Leave out the bytes that say where gaps are, which of the older sort of page are part of its content."""
    if page.kind != _DATA_PAGE or not chunk.has_gaps:
        return content
    if page.about[_GAPS_ENCODING] != _RUNS:
        raise thrift.DamagedError("gaps in an old encoding")
    return content[4 + int.from_bytes(content[:4], "little") :]


def _pages(stream: BinaryIO, chunk: Chunk) -> Iterator[_Page]:
    start, left = chunk.start, chunk.n_values
    while start < chunk.end and left > 0:
        header, length = _header(stream, start, chunk.end)
        kind, packed = header[_KIND], header[_PACKED]
        if kind not in _ABOUT or [number for number in _ABOUT.values() if number in header] != [_ABOUT[kind]]:
            raise thrift.DamagedError("a kind of page that holds no cells, or says that it is another")
        about = header[_ABOUT[kind]]
        declared, encoding, n_values = header[_UNPACKED], about[_ENCODING[kind]], about[1]
        if min(packed, declared) < 0:
            raise thrift.DamagedError("a number below zero")
        start += length
        if kind != _DICTIONARY_PAGE:
            # Arrow stops at a page without cells.
            if not 0 < n_values <= left:
                raise thrift.DamagedError("more or fewer cells than the column has")
            left -= n_values
        yield _Page(kind, packed, declared, encoding, n_values, start, about)
        start += packed
    if left > 0 or start > chunk.end:
        raise thrift.DamagedError("a column that ends before all of its cells")


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
