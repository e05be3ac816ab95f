"""Pages of a Parquet file: how large each becomes when it is unpacked, as its own header says.

A page of 200 kB may unpack to 2 GB, and one long text in a dictionary may stand in a billion rows. What the end of the
file says about sizes is never checked by Arrow, and may be forged; the headers are what Arrow itself goes by.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from dafh.exceptions import InputError

# Numbers by which the format knows kinds of pages and of encodings.
_DICTIONARY_PAGE = 2
_PREFIXED = 7  # DELTA_BYTE_ARRAY: a text is the beginning of the one before it and something more.
# Headers are short, but for the smallest and the largest value in them.
_BYTES_OF_A_HEADER = (2**10, 2**16, 2**24)
_DEEPEST = 8


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


def column_pages(stream: BinaryIO, chunk: Any, name: str) -> ColumnPages:
    """Read the headers of the pages of a column in a row group.

    Parameters
    ----------
    stream : binary stream
        The file; it must be able to jump.
    chunk : pyarrow.parquet.ColumnChunkMetaData
    name : str
        What to call the file in messages.
    """
    pages = list(_pages(stream, chunk, name))
    data = [page for page in pages if page.kind != _DICTIONARY_PAGE]
    largest = max((page.unpacked for page in pages), default=0)
    total = sum(page.unpacked for page in data)
    if chunk.physical_type != "BYTE_ARRAY":
        return ColumnPages(largest, 16, None)
    if any(page.encoding == _PREFIXED for page in data):
        return ColumnPages(largest, sum(page.unpacked for page in pages), None)
    dictionary = max((page.unpacked for page in pages if page.kind == _DICTIONARY_PAGE), default=0)
    if dictionary:
        return ColumnPages(largest, largest, None)
    return ColumnPages(largest, largest, total)


def _pages(stream: BinaryIO, chunk: Any, name: str) -> Iterator[_Page]:
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    end, left = start + chunk.total_compressed_size, chunk.num_values
    while start < end and left > 0:
        fields, length = _header(stream, start, name)
        packed, about = fields.get(3, -1), fields.get(5) or fields.get(8) or {}
        if not isinstance(about, dict):
            raise _damaged(name)
        page = _Page(fields.get(1, -1), fields.get(2, -1), about.get(2 if 5 in fields else 4, 0))
        n_values = about.get(1, 0)
        # Bytes that are no header may have a structure in the place of a number.
        if not all(isinstance(value, int) and value >= 0 for value in (packed, n_values, *page)):
            raise _damaged(name)
        yield page
        left -= n_values
        start += length + packed


def _header(stream: BinaryIO, start: int, name: str) -> tuple[dict[int, Any], int]:
    """Return the fields of the header at a place, and its length."""
    for n_bytes in _BYTES_OF_A_HEADER:
        stream.seek(start)
        content = stream.read(n_bytes)
        try:
            return _Fields(content).structure()
        except IndexError:  # The header is longer than what was read of it, or the file ends within it.
            if len(content) < n_bytes:
                break
        except ValueError:
            break
    raise _damaged(name)


def _damaged(name: str) -> InputError:
    return InputError(f"{name} is damaged: the header of one of its pages cannot be read.")


class _Fields:
    """Reads Thrift's compact protocol, in which the headers are written."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def structure(self, depth: int = 0) -> tuple[dict[int, Any], int]:
        """Return fields by their numbers, whole numbers and structures alone, and the bytes read so far."""
        if depth > _DEEPEST:
            raise ValueError("too deep")
        fields: dict[int, Any] = {}
        number = 0
        while first := self._byte():
            step, kind = first >> 4, first & 15
            number = number + step if step else self._number()
            value = self._value(kind, depth)
            if value is not None:
                fields[number] = value
        return fields, self._at

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):  # True and false have no bytes of their own.
            return None
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._number()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._unsigned())
        if kind == 12:
            return self.structure(depth + 1)[0]
        raise ValueError("no such kind in a header")  # Lists, sets and maps: no page has any.

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise ValueError("a number without end")

    def _number(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, n_bytes: int) -> None:
        self._at += n_bytes
        if self._at > len(self._content):
            raise IndexError
