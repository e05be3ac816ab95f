"""Tables in files: CSV and Parquet, packed or not, from a path or a pipe, read whole or in pieces.

The first bytes of a file say what it is (Parquet, gzip or text), not its name. pyarrow reads Parquet and pandas reads
text, whose layout is detected: encoding, delimiter, header and decimal mark.
"""

import codecs
import contextlib
import csv
import glob
import gzip
import io
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from dafh.columns.kinds import MISSING_WORDS, is_number
from dafh.exceptions import InputError
from dafh.text import clipped, listed, printable, quoted
from dafh.validation import check_path

STDIN = "-"
"""The name of standard input."""
ROWS_PER_PIECE = 50_000
# The first bytes of every Parquet file.
_PARQUET = b"PAR1"
# The layout of a text is detected from so many of its first bytes.
_BYTES_TO_DETECT_BY = 2**20
# Name of the empty column of a text whose lines end with a delimiter.
_TRAILING = "\0trailing"
# What counts as a table in a folder.
_SUFFIXES = (".parquet", ".pq", ".csv", ".tsv", ".txt", ".gz")


# ---- files ----


@dataclass
class DataFile:
    r"""A CSV or Parquet file, or a pipe that carries one.

    Parameters
    ----------
    path : str or Path
        "-" is standard input.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age;job\n30;cook\n41;?\n")
    >>> DataFile(path).read()
       age   job
    0   30  cook
    1   41   NaN
    >>> [len(piece) for piece in DataFile(path).pieces(rows=1)]
    [1, 1]
    """

    path: str | Path
    decimal: str = field(default=".", init=False)
    """Decimal mark of its numbers, once a text has been read."""
    notes: list[str] = field(default_factory=list, init=False, compare=False)
    """What was detected about the file and is unusual, for the user to read."""

    @property
    def name(self) -> str:
        """What to call the file in messages."""
        return "standard input" if str(self.path) == STDIN else printable(self.path)

    def files(self) -> "list[DataFile]":
        """All files behind the path, which may be a pattern or a folder."""
        return [self] if str(self.path) == STDIN else [DataFile(path) for path in find_files(self.path)]

    def count_rows(self) -> int:
        """Count the rows; of a text its lines but one, for the header, though cells may hold lines of their own."""
        with self._opened() as stream:
            if _starts_with(stream, _PARQUET):
                return int(pa.parquet.ParquetFile(stream).metadata.num_rows)
            n_breaks, block = 0, b"\n"
            for block in iter(partial(stream.read, 2**20), b""):
                n_breaks += block.count(b"\n")
            # The header is no row, and the last row may end without a line break.
            return max(n_breaks - block.endswith(b"\n"), 0)

    def read(self, *, text: Collection[str] | None = ()) -> pd.DataFrame:
        """Read all rows; `text` as in `pieces`."""
        (table,) = self.pieces(rows=None, text=text)
        return table

    def pieces(self, rows: int | None = ROWS_PER_PIECE, *, text: Collection[str] | None = ()) -> Iterator[pd.DataFrame]:
        """Read the rows piece by piece, never holding more than one piece.

        Parameters
        ----------
        rows : int or None
            Most rows of a piece; None: all rows at once.
        text : names of columns, or None for all
            Columns of a text file to be read as strings: "007" stays "007", and "None" is no gap.
        """
        with self._opened() as stream:
            if _starts_with(stream, _PARQUET):
                yield from self._parquet_pieces(stream, rows)
            else:
                yield from self._text_pieces(stream, rows, text)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Open for reading, unpacked, and turn what can go wrong into one sentence."""
        try:
            with contextlib.ExitStack() as stack:
                stream: Any
                if str(self.path) != STDIN:
                    stream = stack.enter_context(open(self.path, "rb"))
                elif sys.stdin is None:
                    raise InputError("Standard input is closed: name a file to read.")
                else:  # A pipe cannot be rewound: it goes to the disk first.
                    stream = stack.enter_context(tempfile.TemporaryFile(prefix="dafh-"))
                    shutil.copyfileobj(sys.stdin.buffer, stream, 2**20)
                if _starts_with(stream, b"\x1f\x8b"):
                    stream = stack.enter_context(gzip.open(stream))
                yield stream
        except FileNotFoundError as error:
            raise InputError(f"There is no file {self.name}.") from error
        except UnicodeError as error:
            raise InputError(f"{self.name} is neither UTF-8 nor Windows-1252 text: save it as UTF-8.") from error
        except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error) as error:
            reason = _first_line(error).removeprefix("Error tokenizing data. C error: ")
            raise InputError(f"{self.name} cannot be read as a table: {reason}.") from error
        except (OSError, EOFError, OverflowError, pa.ArrowException, zlib.error) as error:
            raise InputError(f"{self.name} cannot be read: {_first_line(error)}.") from error

    def _parquet_pieces(self, stream: BinaryIO, rows: int | None) -> Iterator[pd.DataFrame]:
        file = pa.parquet.ParquetFile(stream)
        columns = file.schema_arrow
        self._check_unique(columns.names)
        nested = [column.name for column in columns if _is_nested(column.type)]
        if nested:
            self._note(
                f"Left out, cells hold lists, records or bytes: {', '.join(clipped(n, 40) for n in nested[:6])}."
            )
        if not file.metadata.num_rows or len(nested) == len(columns):
            raise InputError(f"{self.name} has no {'columns that can be used' if nested else 'rows'}.")
        names = [name for name in columns.names if name not in nested]
        if rows is None:
            yield arrow_to_pandas(file.read(columns=names))
        else:
            yield from map(arrow_to_pandas, file.iter_batches(rows, columns=names))

    def _text_pieces(self, stream: BinaryIO, rows: int | None, text: Collection[str] | None) -> Iterator[pd.DataFrame]:
        with io.TextIOWrapper(stream, self._encoding(stream), newline="") as lines:
            names, layout = self._detect(lines.readlines(_BYTES_TO_DETECT_BY))
            lines.seek(0)
            as_text = [name for name in names if text is None or name in text or name == _TRAILING]
            reader = pd.read_csv(
                lines,
                sep=layout.delimiter,
                decimal=layout.decimal,
                header=0 if layout.has_header else None,
                names=names,
                skipinitialspace=True,
                keep_default_na=False,
                na_values={name: list(MISSING_WORDS) for name in names if name not in as_text},
                # Not as strings of Arrow, which every look at the values of a column would copy into objects.
                dtype=dict.fromkeys(as_text, object),
                low_memory=False,
                index_col=False,
                iterator=True,
                chunksize=rows,
            )
            for piece in reader:
                if not len(piece):
                    raise InputError(f"{self.name} has a header and no rows.")
                if _TRAILING in piece and piece.pop(_TRAILING).fillna("").str.strip().any():
                    raise InputError(
                        f"{self.name} cannot be read as a table: a row has more cells than the first line."
                    )
                yield piece

    def _encoding(self, stream: BinaryIO) -> str:
        """Encoding of a text: UTF-16 by its byte order mark, else UTF-8, or Windows-1252 if it is not valid UTF-8."""
        if _starts_with(stream, codecs.BOM_UTF16_LE) or _starts_with(stream, codecs.BOM_UTF16_BE):
            return "utf-16"
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        try:
            # To the end: the first name with an accent may be a million rows down. A gigabyte takes about a second.
            for block in iter(partial(stream.read, 2**20), b""):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            self._note(f"{self.name} is not UTF-8 text: it is read as Windows-1252.")
            return "cp1252"
        finally:
            stream.seek(0)
        return "utf-8-sig"

    def _detect(self, lines: list[str]) -> "tuple[list[str], Layout]":
        """Names of the columns, and the layout, from the first lines of a text."""
        lines = [line for line in lines if line.strip()]
        if not lines:
            raise InputError(f"{self.name} is empty.")
        if "\0" in lines[0]:  # UTF-16 without its byte order mark, or no text at all.
            raise UnicodeError
        layout = Layout.detect(lines)
        if layout.decimal == ",":
            self._note(f"The numbers in {self.name} look like ones with a decimal comma: 7,5 is read as 7.5.")
        self.decimal = layout.decimal
        rows = list(cells_of(lines[:_LINES_FOR_DELIMITER], layout.delimiter))
        names = [name.strip() for name in rows[0]]
        width = max(map(len, rows))
        if width > len(names) + 1:  # pandas would drop the last cells of such a row.
            raise InputError(
                f"{self.name} cannot be read as a table: its first line has {len(names)} cells, another one {width}."
            )
        if layout.has_header:
            names = [name or f"column_{number}" for number, name in enumerate(names, 1)]
            self._check_unique(names)
        else:
            names = [f"column_{number}" for number in range(1, len(names) + 1)]
            self._note(f"The first line of {self.name} looks like data: columns are called column_1 to {names[-1]}.")
        return names + [_TRAILING] * (width - len(names)), layout

    def _check_unique(self, names: list[str]) -> None:
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise InputError(f"{self.name} has more than one column called {quoted(repeated[0])}: rename them.")

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


def find_files(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """Files behind a path, a pattern such as ``rows/*.parquet``, a folder, or several of them; sorted, each once.

    Raises
    ------
    InputError
        If a path leads to no file.
    """
    files: set[Path] = set()
    for pattern in [paths] if isinstance(paths, str | Path) else paths:
        path = check_path(pattern)
        if path.is_dir():
            tables = [file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file()]
            # As other engines do: names that begin with a dot or an underscore are no data.
            matches = [file for file in tables if not any(name[0] in "._" for name in file.relative_to(path).parts)]
        elif path.exists():
            matches = [path]
        else:
            matches = [file for file in map(Path, glob.glob(str(pattern), recursive=True)) if file.is_file()]
        if not matches:
            raise InputError(f"There is {'no table in the folder' if path.is_dir() else 'no file'} {pattern}.")
        files.update(matches)
    return sorted(files)


def with_columns(table: pd.DataFrame, columns: Sequence[str], name: str) -> pd.DataFrame:
    """Return the rows of a file with columns in order; refuse other columns than the first of several files has."""
    missing = [quoted(column) for column in columns if column not in table]
    if missing:
        raise InputError(f"{name} has no column {listed(missing[:3])}, which the first file has.")
    new = [quoted(column) for column in table if column not in columns]
    if new:
        raise InputError(f"{name} has a column {listed(new[:3])}, which the first file has not.")
    return table[list(columns)]


def _starts_with(stream: BinaryIO, mark: bytes) -> bool:
    stream.seek(0)
    start = stream.read(len(mark))
    stream.seek(0)
    return start == mark


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines() or [type(error).__name__]
    return text[0].rstrip(".")


# ---- tables of Arrow ----

_NULLABLE_TYPES = {
    pa.bool_(): pd.BooleanDtype(),
    **{getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")()
       for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")},
}  # fmt: skip


def arrow_to_pandas(batch: Any) -> pd.DataFrame:
    """Turn a table or a batch of Arrow into a pandas frame, without row names that pandas has put into it."""
    # What pandas has noted in a file is taken off: it can give columns other names, or hide them. Whole numbers stay
    # whole where there are gaps among them: account numbers do not fit into fractions. Days become dates like all
    # others, and not objects, which a piece without any could not tell from text.
    bare = batch.replace_schema_metadata(None)
    frame: pd.DataFrame = bare.to_pandas(types_mapper=_NULLABLE_TYPES.get, date_as_object=False)
    row_names = [name for name in frame.columns if re.fullmatch(r"__index_level_\d+__", name)]
    return frame.drop(columns=row_names) if row_names else frame


def _is_nested(kind: pa.DataType) -> bool:
    """Whether a type holds lists, records or bytes instead of single values."""
    return bool(pa.types.is_nested(kind) or "binary" in str(kind) or isinstance(kind, pa.BaseExtensionType))


# ---- the layout of a text ----

_DELIMITERS = (",", ";", "\t", "|", " ")
# Delimiter and header show in the first lines. A decimal mark may not: all lines at hand are searched for it.
_LINES_FOR_DELIMITER = 50
# Numbers that make sense only with a decimal comma, or only with a point. 7,181 is not among them: it may be thousands.
_NEEDS = {
    mark: re.compile(
        rf"[+-]?(0{point}\d+|\d*{point}(\d{{1,2}}|\d{{4,}})|\d{{4,}}{point}\d+"
        rf"|\d{{1,3}}({other}\d{{3}})+{point}\d+|\d{{1,3}}({other}\d{{3}}){{2,}})"
    )
    for mark, point, other in ((",", ",", r"\."), (".", r"\.", ","))
}
_MAY_BE_EITHER = re.compile(r"[+-]?\d{1,3},\d{3}")


@dataclass(frozen=True)
class Layout:
    """How a text file is laid out."""

    delimiter: str = ","
    has_header: bool = True
    decimal: str = "."

    @classmethod
    def detect(cls, lines: Sequence[str]) -> "Layout":
        """Detect the layout from the first lines.

        The delimiter is the one that cuts all lines into the same number of cells, two or more. If several do, it is
        the one that leaves the fewest of the others within cells, those of numbers not counted. (`csv.Sniffer` takes
        the decimal commas of 30,5;cook for delimiters.) There is no header if some cell of the first line is a number,
        and none is a word above a number. Numbers have a decimal comma if cells are parted by something else, some
        number needs one (34,66), and none needs a point (34.66). In a file parted by semicolons 7,181 is enough:
        programs write semicolons where the comma is the decimal mark.

        Examples
        --------
        >>> Layout.detect(["age;job", "30;cook"])
        Layout(delimiter=';', has_header=True, decimal='.')
        >>> Layout.detect(["30,5;cook", "41;clerk"])
        Layout(delimiter=';', has_header=False, decimal=',')
        """
        first = lines[:_LINES_FOR_DELIMITER]
        delimiter = max(_DELIMITERS, key=partial(_evenness, first))
        decimal = _decimal_mark(lines, delimiter)
        return cls(delimiter, _has_header(list(cells_of(first, delimiter)), decimal), decimal)


def cells_of(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Cut lines into rows of cells."""
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True)


def _evenness(lines: Sequence[str], delimiter: str) -> tuple[float, float, int]:
    """How well a delimiter explains the lines: lines as wide as the first, cells without other delimiters, width."""
    rows = list(cells_of(lines, delimiter))
    if len(rows[0]) < 2:
        return (0.0, 0.0, 0)
    even = [row for row in rows if len(row) == len(rows[0])]
    # In lines such as 30,5;cook and 41,5;clerk the comma cuts as evenly as the semicolon, and wrongly.
    is_whole = [
        not any(mark in cell for mark in _DELIMITERS[:-1])
        or is_number(cell, decimal=",")
        or _NEEDS[","].fullmatch(cell.strip()) is not None
        for row in even
        for cell in row
    ]
    # Blanks cut any sentence: they count only where nothing else does.
    return (len(even) / len(rows) - (delimiter == " "), sum(is_whole) / len(is_whole), len(rows[0]))


def _decimal_mark(lines: Sequence[str], delimiter: str) -> str:
    if delimiter == ",":
        return "."  # A comma within a cell would be quoted, and is more likely one of a list.
    numbers = [cell for row in cells_of(lines, delimiter) for cell in map(str.strip, row) if "," in cell or "." in cell]
    needed = {mark for mark, pattern in _NEEDS.items() if any(map(pattern.fullmatch, numbers))}
    if needed:
        return min(needed, key=".,".index)
    return "," if delimiter == ";" and any(map(_MAY_BE_EITHER.fullmatch, numbers)) else "."


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    if len(rows) < 2:
        return True
    pairs = [(is_number(above, decimal), is_number(below, decimal)) for above, below in zip(*rows[:2], strict=False)]
    words_above_numbers = any(below and not above for above, below in pairs)
    return words_above_numbers or not any(above for above, _ in pairs)
