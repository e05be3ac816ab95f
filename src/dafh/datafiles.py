"""CSV and Parquet files: read whole or in chunks, from a path or a pipe; results written so that no half file is left.

What a file is, is told by its first bytes and not by its name: Parquet, gzip, or text. The layout of a text file
(delimiter, header) is guessed from its first lines.
"""

import codecs
import contextlib
import csv
import gzip
import io
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from dafh._text import clipped, listed, quoted
from dafh.exceptions import InputError

STDIN = "-"
"""The name of standard input, and of standard output."""
ROWS_PER_CHUNK = 50_000

_DELIMITERS = (",", ";", "\t", "|", " ")
_LINES_TO_GUESS_BY = 50
_BYTES_TO_GUESS_BY = 2**22
MISSING_WORDS = (
    "", "?", "#N/A", "#N/A N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan",
    "null",
)  # fmt: skip
"""What a text file writes for a value that is not known."""
_UNWANTED = "\0"
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
# How spreadsheets recognise a formula; a tab or a line break before it does not stop them.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True)
class Layout:
    """How a text file is laid out."""

    delimiter: str = ","
    has_header: bool = True

    @classmethod
    def guess(cls, lines: Sequence[str]) -> "Layout":
        """Guess from the first lines.

        The delimiter is the one that cuts all lines into the same number of cells, two or more. There is no header if
        some cell of the first line is a number, and none is a word above a number.

        Examples
        --------
        >>> Layout.guess(["age;job", "30;cook"])
        Layout(delimiter=';', has_header=True)
        >>> Layout.guess(["30,cook", "41,clerk"])
        Layout(delimiter=',', has_header=False)
        """
        delimiter = max(_DELIMITERS, key=lambda candidate: _evenness(lines, candidate))
        rows = _cells(lines, delimiter)
        if len(rows) < 2:
            return cls(delimiter)
        pairs = list(zip(rows[0], rows[1], strict=False))
        words_above_numbers = any(not _is_number(above) and _is_number(below) for above, below in pairs)
        return cls(delimiter, words_above_numbers or not any(_is_number(above) for above, _ in pairs))


def _cells(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    return [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row]


def _evenness(lines: Sequence[str], delimiter: str) -> tuple[float, int]:
    """How well a delimiter explains the lines: share of lines as wide as the first, then that width."""
    try:
        widths = [len(row) for row in _cells(lines, delimiter)]
    except csv.Error:
        return (0.0, 0)
    if not widths or widths[0] < 2:
        return (0.0, 0)
    # Blanks cut any sentence: they count only where nothing else does.
    return (widths.count(widths[0]) / len(widths) - (delimiter == " "), widths[0])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class DataFile:
    r"""A CSV or Parquet file, or a pipe that carries one.

    Parameters
    ----------
    path : str or Path
        "-" is standard input.
    delimiter, header
        None: guessed from the first lines.
    encoding : str
        Of a text file; a byte order mark is not part of it.
    leave_out : names of columns
        Not to be read, where more than one column has such a name.

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
    leave_out: Collection[str] = ()
    """Names that may occur more than once, because none of those columns is wanted."""
    notes: list[str] = field(default_factory=list, compare=False)
    """What was guessed about the file, for the user to hear."""
    left_out: list[str] = field(default_factory=list, compare=False)
    """Names out of `leave_out` that were found more than once."""

    @property
    def name(self) -> str:
        """What to call the file in messages."""
        return "standard input" if str(self.path) == STDIN else str(self.path)

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
            Columns of a text file to be read letter by letter: "007" stays "007", and "None" is no gap.
        """
        with contextlib.ExitStack() as stack, _told_in_one_sentence(self.name):
            head, stream = _open(self.path, stack)
            if head.startswith(b"PAR1"):
                yield from self._parquet_chunks(stream, rows, stack)
            else:
                yield from self._text_chunks(head, stream, rows, text)

    def _text_chunks(
        self, head: bytes, stream: Any, rows: int | None, text: Collection[str] | None
    ) -> Iterator[pd.DataFrame]:
        encoding = "utf-16" if head.startswith(_BYTE_ORDER_MARKS) else self.encoding
        sample = _first_lines(head, encoding)
        if not sample:
            raise InputError(f"{self.name} is empty.")
        names, layout = self._columns(sample)
        raw = [name for name in names if text is None or name in text]
        options: dict[str, Any] = {
            "sep": layout.delimiter,
            "header": 0 if layout.has_header else None,
            "names": names,
            "skipinitialspace": True,
            "keep_default_na": False,
            "na_values": {name: list(MISSING_WORDS) for name in names if name not in raw},
            "encoding": encoding,
            "dtype": dict.fromkeys(raw, str),
            "low_memory": False,
            "index_col": False,
        }
        if self.left_out:  # Only then: with it, rows that are too long are no longer refused.
            options["usecols"] = [name for name in names if not name.startswith(_UNWANTED)]
        if rows is None:
            yield _some_rows(pd.read_csv(stream, **options), self.name)
            return
        with pd.read_csv(stream, chunksize=rows, **options) as reader:
            for chunk in reader:
                yield _some_rows(chunk, self.name)

    def _parquet_chunks(self, stream: Any, rows: int | None, stack: contextlib.ExitStack) -> Iterator[pd.DataFrame]:
        import pyarrow.parquet

        file = pyarrow.parquet.ParquetFile(_seekable(stream, stack))
        names = file.schema_arrow.names
        self._check_unique(names)
        nested = [field.name for field in file.schema_arrow if _is_nested(field.type)]
        if nested:
            self._note(f"Left out, no single values: {', '.join(clipped(name, 40) for name in nested[:6])}.")
        if not file.metadata.num_rows or len(nested) == len(names):
            raise InputError(f"{self.name} has no {'columns that can be used' if nested else 'rows'}.")
        kept = [name for name in names if name not in nested]
        for batch in file.iter_batches(rows or ROWS_PER_CHUNK, columns=kept):
            # Whole numbers stay whole where there are gaps among them: account numbers do not fit into fractions.
            yield batch.to_pandas(types_mapper=_nullable_types().get).rename(columns=str)

    def _check_unique(self, names: list[str]) -> None:
        repeated = [quoted(name) for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            what = f"{listed(repeated[:5])}{' and others' if len(repeated) > 5 else ''}"
            raise InputError(f"{self.name} has more than one column called {what}: rename them, or --drop them in fit.")

    def _columns(self, sample: list[str]) -> tuple[list[str], Layout]:
        """Names of the columns, and the layout."""
        guess = Layout.guess(sample)
        layout = Layout(
            self.delimiter or guess.delimiter,
            guess.has_header if self.header is None else self.header,
        )
        first = _cells(sample[:_LINES_TO_GUESS_BY], layout.delimiter)[0]
        if not layout.has_header:
            names = [f"column_{number}" for number in range(1, len(first) + 1)]
            self._note(f"The first line of {self.name} looks like data: columns are called column_1 to {names[-1]}.")
            return names, layout
        names = [name.strip() or f"column_{number}" for number, name in enumerate(first, 1)]
        unwanted = {name for name in names if name in self.leave_out and names.count(name) > 1}
        self.left_out[:] = sorted(unwanted)
        names = [f"{_UNWANTED}{i}" if name in unwanted else name for i, name in enumerate(names)]
        self._check_unique(names)
        return names, layout

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


def _some_rows(table: pd.DataFrame, name: str) -> pd.DataFrame:
    if not len(table):
        raise InputError(f"{name} has a header and no rows.")
    return table


def _open(path: str | Path, stack: contextlib.ExitStack) -> tuple[bytes, Any]:
    """Open for reading, unpacked if it is packed; return the first bytes, and the stream from its beginning."""
    stream: Any = sys.stdin.buffer if str(path) == STDIN else stack.enter_context(open(path, "rb"))  # noqa: SIM115
    head, stream = _look_ahead(stream, 2)
    if head == b"\x1f\x8b":
        stream = stack.enter_context(gzip.open(stream))  # noqa: SIM115
    return _look_ahead(stream, _BYTES_TO_GUESS_BY)


def _look_ahead(stream: Any, n_bytes: int) -> tuple[bytes, Any]:
    head = stream.read(n_bytes)
    if stream.seekable() and not isinstance(stream, gzip.GzipFile):  # It claims to be, over a pipe too.
        stream.seek(0)
        return head, stream
    return head, io.BufferedReader(_Rejoined(head, stream))


class _Rejoined(io.RawIOBase):
    """A pipe from its beginning, after its first bytes were read."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(block) :]
        buffer[: len(block)] = block
        return len(block)


def _seekable(stream: Any, stack: contextlib.ExitStack) -> Any:
    """Return a stream that can jump: Parquet has its index at the end, where a pipe cannot go first."""
    if stream.seekable():
        return stream
    spool = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    while block := stream.read(2**20):
        spool.write(block)
    spool.seek(0)
    return spool


def _nullable_types() -> dict[Any, Any]:
    import pyarrow

    names = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Boolean")
    arrow = {name: pyarrow.bool_() if name == "Boolean" else getattr(pyarrow, name.lower())() for name in names}
    return {arrow[name]: getattr(pd, f"{name}Dtype")() for name in names}


def _is_nested(kind: Any) -> bool:
    """Whether a type of Arrow holds lists, records or bytes instead of single values."""
    import pyarrow

    return bool(pyarrow.types.is_nested(kind) or "binary" in str(kind))


def _first_lines(head: bytes, encoding: str) -> list[str]:
    """First lines of a text; the last one, and its last letter, may be cut and does not count."""
    decoder = codecs.getincrementaldecoder(encoding)()
    decoded = decoder.decode(head)
    complete = decoded[: decoded.rfind("\n") + 1] or decoded
    lines = complete.splitlines(keepends=True)[:_LINES_TO_GUESS_BY]
    return lines if any(line.strip() for line in lines) else []


@contextlib.contextmanager
def _told_in_one_sentence(name: str) -> Iterator[None]:
    """Turn what can go wrong in reading a file into one sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"There is no file {name}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a folder, not a file.") from error
    except PermissionError as error:
        raise InputError(f"{name} cannot be read: no permission.") from error
    except (UnicodeDecodeError, LookupError) as error:
        raise InputError(f"{name} is not text in this encoding; --encoding latin-1 reads most others.") from error
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


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` that takes its place at the end, and vanishes if anything fails."""
    check_writable(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix="".join(path.suffixes), dir=path.parent)
    os.close(handle)
    try:
        yield Path(temporary)
        # mkstemp makes files that only their owner may read; a result is an ordinary file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to, before the work and not after it."""
    folder = path.resolve().parent
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a file to write to.")
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder} to write {path.name} to.")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path} cannot be written: no permission.")
    try:  # Asking for permission is not enough: file systems have their own reasons.
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {(error.strerror or 'no permission').lower()}.") from error


class TableWriter:
    """Write frames with the same columns one after the other, as CSV (packed if the name ends in .gz) or Parquet.

    Text that a spreadsheet would run as a formula gets an apostrophe in front in a CSV file, which spreadsheets show as
    the plain text; `n_defused` counts how often. Parquet holds text as text and is left alone.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.n_defused = 0
        self._write: Callable[[pd.DataFrame], None]
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "TableWriter":
        if str(self.path) == STDIN:
            self._target: Any = sys.stdout
        else:
            self._target = self._stack.enter_context(replacing(Path(self.path)))
        if Path(self.path).suffix == ".parquet":
            self._write = self._write_parquet
            self._parquet: Any = None
        else:
            self._write = self._write_csv
            if isinstance(self._target, Path):
                opened = gzip.open if self._target.suffix == ".gz" else open
                self._target = self._stack.enter_context(opened(self._target, "wt", encoding="utf-8", newline=""))
        self._started = False
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def write(self, table: pd.DataFrame) -> None:
        """Append rows."""
        self._write(table)
        self._started = True

    def _write_csv(self, table: pd.DataFrame) -> None:
        harmless = pd.concat([self._defused(column) for _, column in table.items()], axis=1)
        harmless.columns = pd.Index([_defused(name) if _is_formula(name) else name for name in table.columns])
        harmless.to_csv(self._target, index=False, header=not self._started, lineterminator="\n")

    def _defused(self, column: pd.Series) -> pd.Series:
        if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype):
            return column
        text = column.astype(object)
        formulas = text.map(_is_formula).to_numpy(bool)
        self.n_defused += int(formulas.sum())
        return text.where(~formulas, text.map(_defused)) if formulas.any() else column

    def _write_parquet(self, table: pd.DataFrame) -> None:
        import pyarrow
        import pyarrow.parquet

        if self._parquet is None:
            rows = pyarrow.Table.from_pandas(table, preserve_index=False)
            self._parquet = self._stack.enter_context(pyarrow.parquet.ParquetWriter(self._target, rows.schema))
        self._parquet.write_table(pyarrow.Table.from_pandas(table, schema=self._parquet.schema, preserve_index=False))


def _is_formula(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_FORMULA_STARTS) and not _is_number(value)


def _defused(value: Any) -> str:
    return f"'{value}"
