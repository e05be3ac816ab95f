"""The end of a Parquet file, where it says what it holds: read, checked, and written anew for Arrow.

Arrow believes most of what stands there, and ends the whole process where some of it is wrong (a histogram of gaps in a
column that has none). So it never sees the end of a file that may come from anybody: what is needed to read the rows is
taken out of it and must agree with itself, and Arrow gets that, as we write it.
"""

import base64
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from dafh.exceptions import InputError
from dafh.tables import thrift
from dafh.tables.arrow import extends
from dafh.tables.thrift import BOOL, BYTE, LONG, TEXT, WHOLE

MOST_ROWS_ANYWAY, MOST_ROWS_A_BYTE = 1_000_000, 100
MOST_CELLS_ANYWAY, MOST_CELLS_A_BYTE = 100_000_000, 500
"""Rows and cells of a file, and for each of its bytes: a billion equal rows fit into 1 kB, and take hours to read."""
MOST_BYTES, MOST_VALUES = 2**26, 2**22
"""Bytes of what a file says about itself, and values in it: about 35 a column and row group."""
MOST_BYTES_OF_TYPES = 2**24
_MAGIC = b"PAR1"
_TYPES, _EXTENSION = b"ARROW:schema", b"ARROW:extension:name"
_DEEPEST = 64
_BYTES_AFTER = 8  # The length of the end, and the magic word.

# Names of fields, as the format has them, and of which kind each is. Others are not passed on.
_UNIT: thrift.Shape = {1: {}, 2: {}, 3: {}}
_TIME = {1: BOOL, 2: _UNIT}
_LOGICAL_TYPE = {
    **{number: {} for number in (1, 2, 3, 4, 6, 11, 12, 13, 14, 15)},
    5: {1: WHOLE, 2: WHOLE},
    7: _TIME,
    8: _TIME,
    10: {1: BYTE, 2: BOOL},
}
_TYPE, _TYPE_LENGTH, _REPETITION, _NAME, _N_CHILDREN, _LOGICAL = 1, 2, 3, 4, 5, 10
_ELEMENT = {
    _TYPE: WHOLE,
    _TYPE_LENGTH: WHOLE,
    _REPETITION: WHOLE,
    _NAME: TEXT,
    _N_CHILDREN: WHOLE,
    **dict.fromkeys((6, 7, 8, 9), WHOLE),  # Converted type, scale, precision and number.
    _LOGICAL: _LOGICAL_TYPE,
}
_PATH, _CODEC, _N_VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY = 3, 4, 5, 6, 7, 9, 11
_COLUMN = {
    _TYPE: WHOLE,
    2: [WHOLE],  # Encodings.
    _PATH: [TEXT],
    _CODEC: WHOLE,
    **dict.fromkeys((_N_VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY), LONG),
}
_FILE_PATH, _OFFSET, _ABOUT, _CRYPTO, _ENCRYPTED = 1, 2, 3, 8, 9
_CHUNK = {_FILE_PATH: TEXT, _OFFSET: LONG, _ABOUT: _COLUMN, _CRYPTO: {}, _ENCRYPTED: TEXT}
_COLUMNS, _N_BYTES, _N_ROWS = 1, 2, 3
_GROUP = {_COLUMNS: [_CHUNK], _N_BYTES: LONG, _N_ROWS: LONG}
_VERSION, _SCHEMA, _ROWS, _GROUPS, _PAIRS, _WRITER, _ENCRYPTION = 1, 2, 3, 4, 5, 6, 8
_FOOTER = {
    _VERSION: WHOLE,
    _SCHEMA: [_ELEMENT],
    _ROWS: LONG,
    _GROUPS: [_GROUP],
    _PAIRS: [{1: TEXT, 2: TEXT}],
    _WRITER: TEXT,
    _ENCRYPTION: {},
}
_REQUIRED, _REPEATED = 0, 2
_TEXTS = 6  # BYTE_ARRAY, the type of texts and bytes of any length.


@dataclass(frozen=True)
class Chunk:
    """Where the cells of one column are in one row group."""

    column: str
    """Name of the column; a path with dots where it is part of a nested one."""
    has_texts: bool
    """Whether its cells may be of any length."""
    has_gaps: bool
    codec: int
    n_values: int
    start: int
    end: int


@dataclass(frozen=True)
class RowGroup:
    """Rows of a file that are stored together."""

    n_rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class Footer:
    """What a Parquet file says about itself, checked."""

    groups: tuple[RowGroup, ...]
    _fields: dict[int, Any] = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(group.n_rows for group in self.groups)

    def content(self) -> bytes:
        """Return a Parquet file without rows that says the same, for Arrow."""
        end = thrift.written(self._fields, _FOOTER)
        return b"".join([_MAGIC, end, len(end).to_bytes(4, "little"), _MAGIC])

    def parts(self) -> "list[Footer]":
        """Say the same of each row group that has rows, as if there were no other."""
        return [
            Footer((group,), {**self._fields, _ROWS: group.n_rows, _GROUPS: [fields]})
            for group, fields in zip(self.groups, self._fields[_GROUPS], strict=True)
            if group.n_rows
        ]


def read_footer(stream: BinaryIO, name: str) -> Footer:
    """Read and check the end of a Parquet file.

    Parameters
    ----------
    stream : binary stream
        The file; it must be able to jump.
    name : str
        What to call the file in messages.
    """
    try:
        fields, start = _fields(stream)
        columns = _columns(fields[_SCHEMA])
        _check_rows(fields, start, len(columns), name)
        _keep_types_alone(fields)
        groups = tuple(_row_group(group, columns) for group in fields[_GROUPS])
        _check_places(groups, start)
    except (thrift.DamagedError, KeyError) as error:
        reason = "something is missing at its end" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{name} is damaged: {reason}.") from error
    return Footer(groups, fields)


def _fields(stream: BinaryIO) -> tuple[dict[int, Any], int]:
    """Return the fields of the end of a file, and where it begins."""
    n_bytes = stream.seek(0, os.SEEK_END)
    stream.seek(max(n_bytes - _BYTES_AFTER, 0))
    after = stream.read(_BYTES_AFTER)
    length = int.from_bytes(after[:4], "little")
    start = n_bytes - _BYTES_AFTER - length
    if after[4:] != _MAGIC or start < len(_MAGIC):
        raise thrift.DamagedError("it does not end as a Parquet file does; part of it may be missing")
    if length > MOST_BYTES:
        raise thrift.DamagedError(f"its description takes {length:,} bytes, and may take up to {MOST_BYTES:,}")
    stream.seek(start)
    try:
        fields, _ = thrift.read(stream.read(length), _FOOTER, MOST_VALUES)
    except thrift.DamagedError as error:
        raise thrift.DamagedError(f"its description cannot be read ({error})") from error
    if _ENCRYPTION in fields:
        raise thrift.DamagedError("it is encrypted; write it without encryption")
    return fields, start


@dataclass(frozen=True)
class _Column:
    """A column that has cells of its own, as the schema has it."""

    path: list[bytes]
    type: int
    is_flat: bool
    """Whether each row has one cell."""
    has_gaps: bool

    @property
    def name(self) -> str:
        return ".".join(part.decode(errors="replace") for part in self.path)


def _columns(elements: list[dict[int, Any]]) -> list[_Column]:
    """Columns of a schema, which lists the nodes of a tree with the children of each after it."""
    rest = iter(elements)
    root = next(rest, {})
    columns = list(_below(root, rest, []))
    if not columns or next(rest, None) is not None:
        raise thrift.DamagedError("its columns are not a tree")
    # Arrow takes the name of a column also for the beginning of the path of nested ones, and would read those too.
    nested = sorted(f"{column.name}." for column in columns if not column.is_flat)
    for name in (f"{column.name}." for column in columns if column.is_flat and "." in column.name):
        place = bisect_left(nested, name)
        if place < len(nested) and nested[place].startswith(name):
            raise thrift.DamagedError("names of its columns cannot be told apart")
    return columns


def _below(node: dict[int, Any], rest: Iterator[dict[int, Any]], path: list[bytes]) -> Iterator[_Column]:
    if len(path) > _DEEPEST:
        raise thrift.DamagedError(f"its columns are nested more than {_DEEPEST} deep")
    for _ in range(node[_N_CHILDREN]):
        child = next(rest, {})
        here = [*path, child[_NAME]]
        if not child.get(_LOGICAL, True):  # A type that did not exist when this was written: its cells remain bytes.
            del child[_LOGICAL]
        if not _REQUIRED <= child[_REPETITION] <= _REPEATED:
            raise thrift.DamagedError("one of its columns is neither required, optional nor repeated")
        if child.get(_N_CHILDREN, 0) > 0:
            yield from _below(child, rest, here)
        else:
            is_flat = len(here) == 1 and child[_REPETITION] != _REPEATED
            yield _Column(here, child[_TYPE], is_flat, child[_REPETITION] != _REQUIRED)


def _keep_types_alone(fields: dict[int, Any]) -> None:
    """Keep of all that programs have noted in a file the types that Arrow had for its columns, if those are plain.

    With a type that extends another, Arrow 26 ended the process for some files. Without the note, its cells are read as
    the file stores them.
    """
    import pyarrow

    noted = [pair for pair in fields.pop(_PAIRS, []) if pair.get(1) == _TYPES and 2 in pair]
    if len(noted) != 1 or len(noted[0][2]) > MOST_BYTES_OF_TYPES:
        return
    try:
        schema = pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(noted[0][2])))
    except (ValueError, OSError, pyarrow.ArrowException) as error:
        raise thrift.DamagedError("the types that it notes cannot be read") from error
    if not any(extends(field.type) or _EXTENSION in (field.metadata or {}) for field in schema):
        fields[_PAIRS] = noted


def _row_group(group: dict[int, Any], columns: Sequence[_Column]) -> RowGroup:
    chunks, n_rows = group[_COLUMNS], group[_N_ROWS]
    if len(chunks) != len(columns):
        raise thrift.DamagedError("one of its parts has other columns than its schema")
    return RowGroup(n_rows, tuple(_chunk(*pair, n_rows) for pair in zip(chunks, columns, strict=True)))


def _chunk(chunk: dict[int, Any], column: _Column, n_rows: int) -> Chunk:
    if _CRYPTO in chunk or _ENCRYPTED in chunk:
        raise thrift.DamagedError("one of its columns is encrypted; write it without encryption")
    if chunk.get(_FILE_PATH):
        raise thrift.DamagedError("one of its columns is in another file")
    about = chunk[_ABOUT]
    n_values, data, dictionary = about[_N_VALUES], about[_DATA], about.get(_DICTIONARY, 0)
    if (about[_PATH], about[_TYPE]) != (column.path, column.type):
        raise thrift.DamagedError("one of its columns is not what its schema says")
    if n_values < 0 or (column.is_flat and n_values != n_rows):
        raise thrift.DamagedError("one of its columns does not have as many cells as there are rows")
    start = dictionary if 0 < dictionary < data else data
    end = start + about[_PACKED]
    return Chunk(column.name, column.type == _TEXTS, column.has_gaps, about[_CODEC], n_values, start, end)


def _check_rows(fields: dict[int, Any], n_bytes: int, n_columns: int, name: str) -> None:
    n_rows, parts = fields[_ROWS], [group[_N_ROWS] for group in fields[_GROUPS]]
    if min(parts, default=0) < 0 or sum(parts) != n_rows:
        raise thrift.DamagedError("its parts do not have as many rows as the whole")
    for what, number, anyway, a_byte in (
        ("rows", n_rows, MOST_ROWS_ANYWAY, MOST_ROWS_A_BYTE),
        ("cells", n_rows * n_columns, MOST_CELLS_ANYWAY, MOST_CELLS_A_BYTE),
    ):
        if number > max(anyway, a_byte * n_bytes):
            raise InputError(
                f"{name} has {number:,} {what} in {n_bytes:,} bytes; beyond {anyway:,} {what}, a Parquet file may have "
                f"up to {a_byte:,} for each byte."
            )


def _check_places(groups: Sequence[RowGroup], end: int) -> None:
    """Refuse columns that share bytes: a few of them could otherwise be read again and again."""
    places = sorted((chunk.start, chunk.end) for group in groups for chunk in group.chunks if chunk.n_values)
    last = len(_MAGIC)
    for start, stop in places:
        if not last <= start < stop <= end:
            raise thrift.DamagedError("the places of its columns overlap, are empty, or are outside of it")
        last = stop
