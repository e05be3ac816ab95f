"""CSV and Parquet files: read whole or in pieces, from a path or a pipe.

The first bytes of a file say what it is (Parquet, gzip or text), not its name. The layout of a text file is guessed
from its first lines.
"""

import codecs
import contextlib
import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pandas as pd

from dafh.exceptions import InputError
from dafh.tables import streams
from dafh.tables.arrow import arrow_to_pandas, is_nested
from dafh.tables.coded import CodedReader, CodedTable
from dafh.tables.footer import Footer, read_footer
from dafh.tables.layout import Layout, cells, declared_delimiter
from dafh.tables.parquet import ParquetTable
from dafh.tables.records import PlainRecords
from dafh.tables.rows_of_text import RowsOfText
from dafh.tables.streams import BYTES_TO_GUESS_BY, Lines, open_stream, seekable
from dafh.tables.unnamed import UNWANTED, names_beyond, unwanted_among, without_unwanted
from dafh.tables.values import MISSING_WORDS
from dafh.tables.writing import STDIN
from dafh.text import clipped, listed, printable, quoted, shown

ROWS_PER_CHUNK = 50_000
MOST_COLUMNS, LONGEST_NAME = 10_000, 2**18
"""Columns of a table, and letters of the name of one: what a column holds is guessed and remembered one by one."""
_LINES_OF_NAMES = 50
_BYTE_ORDER_MARKS = (
    ("utf-32", codecs.BOM_UTF32_LE),
    ("utf-32", codecs.BOM_UTF32_BE),
    ("utf-16", codecs.BOM_UTF16_LE),
    ("utf-16", codecs.BOM_UTF16_BE),
)


@dataclass
class DataFile:
    r"""A CSV or Parquet file, or a pipe that carries one.

    Parameters
    ----------
    path : str or Path
        "-" is standard input.
    delimiter, header, decimal
        How a text file is laid out: what is between cells, whether the first line has the names, and the decimal mark,
        "." or ",". None: guessed from the first lines.
    encoding : str
        Of a text file; a byte order mark is not part of it. The mark of UTF-16 or UTF-32 overrides it.
    leave_out : names of columns
        Names that may occur more than once, because none of those columns is wanted.
    footer : Footer or None
        Set by `parts`: what a Parquet file says about the part of it that is read alone.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age;job\n30;cook\n41;?\n")
    >>> DataFile(path).read()
       age   job
    0   30  cook
    1   41   NaN
    """

    path: str | Path
    delimiter: str | None = None
    header: bool | None = None
    encoding: str = "utf-8-sig"
    decimal: str | None = None
    leave_out: Collection[str] = ()
    footer: Footer | None = None
    notes: list[str] = field(default_factory=list, compare=False)
    """What was guessed about the file, for the user to read."""
    left_out: list[str] = field(default_factory=list, compare=False)
    """Names out of `leave_out` that were found more than once."""
    layout: Layout | None = field(default=None, init=False, compare=False)
    """Layout of a text file, once it was read: a pipe cannot be asked twice."""

    @property
    def name(self) -> str:
        """What to call the file in messages."""
        return "standard input" if str(self.path) == STDIN else printable(self.path)

    @property
    def n_rows(self) -> int | None:
        """Number of rows, of parts that say it."""
        return None if self.footer is None else self.footer.n_rows

    def read(self, *, text: Collection[str] | None = ()) -> pd.DataFrame:
        """Read all rows; `text` as in `chunks`."""
        parts = list(self.chunks(rows=None, text=text))
        return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)

    def chunks(self, *, rows: int | None = ROWS_PER_CHUNK, text: Collection[str] | None = ()) -> Iterator[pd.DataFrame]:
        """Read the rows piece by piece, never holding more than one piece.

        Parameters
        ----------
        rows : int or None
            Rows of a piece; None: all of a text file at once.
        text : names of columns, or None for all
            Columns of a text file to be read as strings: "007" stays "007", and "None" is no gap.
        """
        _check_encoding(self.encoding, self.name)
        with contextlib.ExitStack() as stack, _told_in_one_sentence(self.name, self.encoding):
            head, stream, most_bytes = open_stream(self.path, stack)
            if head.startswith(b"PAR1"):
                yield from self._parquet_chunks(seekable(stream, stack, most_bytes), rows)
                return
            lines = Lines(stream, most_bytes)
            yield from lines.in_pieces(self._text_chunks(self._open_text(head), io.BufferedReader(lines), rows, text))

    def pieces(
        self, numbers: Collection[str], text: Collection[str] | None, rows: int = ROWS_PER_CHUNK
    ) -> Iterator[pd.DataFrame | CodedTable]:
        """Read the rows piece by piece as `chunks` does, with Arrow as long as the pieces of a text file are plain.

        Parameters
        ----------
        numbers : names of columns
            To be read as numbers if they are not in `text`. Of a plain piece, other columns are not read at all.
        text, rows
            As in `chunks`.
        """
        _check_encoding(self.encoding, self.name)
        with contextlib.ExitStack() as stack, _told_in_one_sentence(self.name, self.encoding):
            head, stream, most_bytes = open_stream(self.path, stack)
            if head.startswith(b"PAR1"):
                yield from self._parquet_chunks(seekable(stream, stack, most_bytes), rows)
                return
            lines = Lines(stream, most_bytes)
            opened, stream = self._open_text(head), io.BufferedReader(lines)
            if opened.is_simple:
                layout = opened.layout
                records = PlainRecords(stream, layout.delimiter, layout.has_header)
                reader = CodedReader(opened.names, layout, numbers, opened.names if text is None else text)
                plain = lines.in_pieces(_plain_pieces(records, reader, rows))
                # Not of a pipe: whoever stops early would wait for its next rows, which may never come.
                yield from _one_ahead(plain) if self._is_regular else plain
                if records.is_at_end:
                    return
                records.check_next(len(opened.names))
                stream = records.rest()
            yield from lines.in_pieces(self._text_chunks(opened, stream, rows, text))

    @property
    def _is_regular(self) -> bool:
        return str(self.path) != STDIN and Path(self.path).is_file()

    def _open_text(self, head: bytes) -> "_OpenText":
        """Find out from the first bytes of a text file how to read it."""
        # UTF-32 first: its mark begins like that of UTF-16.
        marked = (name for name, mark in _BYTE_ORDER_MARKS if head.startswith(mark))
        encoding = next(marked, self.encoding)
        sample = _first_lines(head, encoding)
        declared = declared_delimiter(sample[0]) if sample else None
        sample = sample[1:] if declared else sample
        sample = list(dropwhile(lambda line: not line.strip(), sample))  # Blank lines before the header are no rows.
        if not sample:
            raise InputError(f"{self.name} is empty.")
        self.layout = layout = self._guess_layout(sample, declared)
        return _OpenText(encoding, declared is not None, layout, self._names(sample, layout))

    def _text_chunks(
        self, opened: "_OpenText", stream: BinaryIO, rows: int | None, text: Collection[str] | None
    ) -> Iterator[pd.DataFrame]:
        layout, names = opened.layout, opened.names
        # Unwanted columns are read too: if pandas leaves them out, it no longer refuses rows that are too long.
        raw = [name for name in names if text is None or name in text] + unwanted_among(names)
        options: dict[str, Any] = {
            "sep": layout.delimiter,
            "decimal": layout.decimal,
            "header": 0 if layout.has_header else None,
            "skiprows": 1 if opened.is_declared else 0,
            "names": names,
            "skipinitialspace": True,
            "keep_default_na": False,
            "na_values": {name: list(MISSING_WORDS) for name in names if name not in raw},
            "encoding": opened.encoding,
            "dtype": dict.fromkeys(raw, str),
            "low_memory": False,
            "index_col": False,
        }
        decoded = RowsOfText(stream, opened.encoding, layout.delimiter, streams.LONGEST_LINE)
        if rows is None:
            yield without_unwanted(_some_rows(pd.read_csv(decoded, **options), self.name), self.name)
            return
        with pd.read_csv(decoded, chunksize=rows, **options) as reader:
            for chunk in reader:
                yield without_unwanted(_some_rows(chunk, self.name), self.name)

    def _parquet_chunks(self, stream: BinaryIO, rows: int | None) -> Iterator[pd.DataFrame]:
        table = ParquetTable(stream, self.name, self.footer or read_footer(stream, self.name))
        names = table.schema.names
        self._check_names(names)
        self._check_unique(names)
        nested = [field.name for field in table.schema if is_nested(field.type)]
        if nested:
            shown = ", ".join(clipped(name, 40) for name in nested[:6])
            self._note(f"Left out, cells hold lists, records or bytes: {shown}.")
        if not table.footer.n_rows or len(nested) == len(names):
            raise InputError(f"{self.name} has no {'columns that can be used' if nested else 'rows'}.")
        kept = [name for name in names if name not in nested]
        for piece in table.pieces(rows or ROWS_PER_CHUNK, kept, together=rows is None):
            yield arrow_to_pandas(piece)

    def count_rows(self) -> int:
        """Count the rows without reading them: as a Parquet file says, or by the lines of a text."""
        with contextlib.ExitStack() as stack, _told_in_one_sentence(self.name, self.encoding):
            head, stream, most_bytes = open_stream(self.path, stack)
            if head.startswith(b"PAR1"):
                return read_footer(seekable(stream, stack, most_bytes), self.name).n_rows
            n_lines, last = 0, b""
            while block := stream.read(2**20):
                n_lines, last = n_lines + block.count(b"\n"), block[-1:]
            return n_lines + (last not in (b"", b"\n")) - (self.header is not False)

    def parts(self) -> "list[DataFile]":
        """Parts that can be read independently of each other: the row groups of a Parquet file."""
        with contextlib.ExitStack() as stack, _told_in_one_sentence(self.name, self.encoding):
            head, stream, _ = open_stream(self.path, stack)
            if not head.startswith(b"PAR1") or not stream.seekable():
                return [self]
            parts = read_footer(stream, self.name).parts()
            return [replace(self, footer=part) for part in parts] or [self]

    def _check_names(self, names: list[str]) -> None:
        """Refuse more columns, or longer names, than there is room for, and names that no other program could use."""
        if len(names) > MOST_COLUMNS:
            raise InputError(f"{self.name} has {len(names):,} columns; a table may have up to {MOST_COLUMNS:,}.")
        strange = next((name for name in names if UNWANTED in name or len(name) > LONGEST_NAME), None)
        if strange is not None:
            what = "the letter NUL" if UNWANTED in strange else f"more than {LONGEST_NAME:,} letters"
            raise InputError(f"{self.name} has a column whose name has {what}, {quoted(strange)}: rename it.")

    def _check_unique(self, names: list[str]) -> None:
        counted = Counter(names)
        repeated = [quoted(name) for name, times in counted.items() if times > 1]
        if repeated:
            what = f"{listed(repeated[:5])}{' and others' if len(repeated) > 5 else ''}"
            raise InputError(f"{self.name} has more than one column called {what}: rename them, or leave them out.")

    def _guess_layout(self, sample: list[str], declared: str | None) -> Layout:
        delimiter = self.delimiter or declared
        # The parser of pandas that reads in pieces knows delimiters of one byte only.
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0'):
            raise InputError(
                f"The delimiter {shown(delimiter, 40)} cannot be used: it must be one character of ASCII, and neither "
                "a quotation mark nor a line break."
            )
        layout = Layout.guess(sample, delimiter=delimiter, has_header=self.header, decimal=self.decimal)
        if layout.decimal == "," and self.decimal is None:
            self._note(f"The numbers in {self.name} look like ones with a decimal comma: 7,5 is read as 7.5.")
        return layout

    def _names(self, sample: list[str], layout: Layout) -> list[str]:
        """Names of the columns; those that are not wanted get others, by which they can be told apart."""
        # One row is enough, but the names may have line breaks in them.
        rows = cells(sample[:_LINES_OF_NAMES], layout.delimiter)
        first = rows[0]
        self._check_widths(rows)
        empty = names_beyond(len(first), max(map(len, rows)))
        if not layout.has_header:
            names = [f"column_{number}" for number in range(1, len(first) + 1)]
            self._note(f"The first line of {self.name} looks like data: columns are called column_1 to {names[-1]}.")
            return names + empty
        names = [name.strip() or f"column_{number}" for number, name in enumerate(first, 1)]
        unwanted = {name for name in names if name in self.leave_out and names.count(name) > 1}
        self.left_out[:] = sorted(unwanted)
        self._check_names(names)
        names = [f"{UNWANTED}{i}" if name in unwanted else name for i, name in enumerate(names)]
        self._check_unique(names)
        return names + empty

    def _check_widths(self, rows: list[list[str]]) -> None:
        """Refuse rows with more cells than names: pandas would drop the last cells, or take the first for names."""
        if (widest := max(map(len, rows))) > MOST_COLUMNS:
            raise InputError(f"{self.name} has {widest:,} columns; a table may have up to {MOST_COLUMNS:,}.")
        wide = next((row for row in rows if any(cell.strip() for cell in row[len(rows[0]) :])), None)
        if wide is not None:
            raise InputError(
                f"{self.name} cannot be read as a table: its first line has {len(rows[0])} cells, and another one has "
                f"{len(wide)}."
            )

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


class _OpenText(NamedTuple):
    """How to read a text file, as its first bytes have it."""

    encoding: str
    is_declared: bool
    """Whether its first line only declares the delimiter."""
    layout: Layout
    names: list[str]

    @property
    def is_simple(self) -> bool:
        """Whether Arrow may read it; whether it does is asked of every piece."""
        # Without "-sig", a byte order mark would be part of the first cell.
        simple = codecs.lookup(self.encoding).name == "utf-8-sig" and not self.is_declared
        # Of a single column, a blank line is a gap for one reader and no row for the other.
        named = len(self.names) > 1 and not unwanted_among(self.names)
        return simple and named and self.layout.delimiter != " "


def _plain_pieces(records: PlainRecords, reader: CodedReader, rows: int) -> Iterator[CodedTable]:
    """Pieces up to the first one that pandas has to read."""
    while (piece := records.take(rows)) is not None:
        table = reader.read(piece)
        if table is None:
            records.put_back(piece)
            return
        yield table


def _one_ahead(pieces: Iterator[CodedTable]) -> Iterator[CodedTable]:
    """Read the next piece in a thread while somebody works on this one."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = pool.submit(next, pieces, None)
            yield piece


def _some_rows(table: pd.DataFrame, name: str) -> pd.DataFrame:
    if not len(table):
        raise InputError(f"{name} has a header and no rows.")
    return table


def _first_lines(head: bytes, encoding: str) -> list[str]:
    """First lines of a text; where it goes on, the last one, and its last letter, may be cut and does not count."""
    decoder = codecs.getincrementaldecoder(encoding)()
    goes_on = len(head) == BYTES_TO_GUESS_BY
    decoded = decoder.decode(head, final=not goes_on)
    # Many programs write no line break after the last line, which in a file of two lines is all there is to guess by.
    complete = decoded[: decoded.rfind("\n") + 1] or decoded if goes_on else decoded
    # Not `splitlines`, which also ends lines at U+0085, U+2028 or a form feed: CSV knows only \n, \r\n and \r.
    lines = list(io.StringIO(complete, newline=""))
    return lines if any(line.strip() for line in lines) else []


def _check_encoding(encoding: str, name: str) -> None:
    try:
        # Not `codecs.lookup`: it also knows base64 and others that make bytes of bytes.
        "".encode(encoding)
    except (LookupError, ValueError) as error:
        raise InputError(f"{name} cannot be read: there is no encoding {quoted(encoding)}.") from error


@contextlib.contextmanager
def _told_in_one_sentence(name: str, encoding: str) -> Iterator[None]:
    """Turn what can go wrong in reading a file into one sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"There is no file {name}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a folder, not a file.") from error
    except PermissionError as error:
        raise InputError(f"{name} cannot be read: no permission.") from error
    except UnicodeError as error:
        known = encoding.removesuffix("-sig").upper()
        if "BOM" in str(error):  # What Python's UTF-16 and UTF-32 ask for, and what few programs on Windows leave out.
            way = f"name its order: {known.lower()}-le (most common) or {known.lower()}-be"
            raise InputError(f"{name} has no byte order mark, which {known} begins with: {way}.") from error
        raise InputError(f"{name} is not {known} text: name its encoding (latin-1 reads most others).") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error) as error:
        raise InputError(f"{name} cannot be read as a table: {_first_line(error)}.") from error
    except (OSError, EOFError) as error:
        raise InputError(f"{name} cannot be read: {_first_line(error)}.") from error
    except Exception as error:
        # pyarrow and zlib have exceptions of their own, which are not imported for this.
        if type(error).__module__.split(".")[0] in ("pyarrow", "zlib"):
            raise InputError(f"{name} is damaged: {_first_line(error)}.") from error
        raise


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines() or [type(error).__name__]
    return text[0].removeprefix("Error tokenizing data. C error: ").rstrip(".")
