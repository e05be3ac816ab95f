"""Tables in files: CSV and Parquet, packed or not, from a path or a pipe, read whole or in pieces.

The first bytes of a file say what it is (Parquet, gzip or text), not its name. pandas reads text and pyarrow reads
Parquet; what is found out here is the layout of a text: its delimiter, its header and its decimal mark.
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
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from dafh.columns.kinds import MISSING_WORDS, is_number
from dafh.exceptions import InputError
from dafh.text import clipped, listed, printable, quoted, shown
from dafh.validation import check_path

STDIN = "-"
"""The name of standard input."""
ROWS_PER_PIECE = 50_000
_BYTES_TO_GUESS_BY = 2**20
# What counts as a table in a folder.
_SUFFIXES = (".parquet", ".pq", ".csv", ".tsv", ".txt", ".gz")
# UTF-32 first: its mark begins like that of UTF-16.
_BYTE_ORDER_MARKS = (
    ("utf-32", codecs.BOM_UTF32_LE),
    ("utf-32", codecs.BOM_UTF32_BE),
    ("utf-16", codecs.BOM_UTF16_LE),
    ("utf-16", codecs.BOM_UTF16_BE),
)
# Before the names of columns of a text file that have none.
_BEYOND = "\0beyond "


# ---- files ----


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
    row_group : int, optional
        The only row group of a Parquet file that is read; `parts` sets it.

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
    delimiter: str | None = None
    header: bool | None = None
    encoding: str = "utf-8-sig"
    decimal: str | None = None
    row_group: int | None = None
    notes: list[str] = field(default_factory=list, compare=False)
    """What was guessed about the file, for the user to read."""
    layout: "Layout | None" = field(default=None, init=False, compare=False)
    """Layout of a text file, once it was read: a pipe cannot be asked twice."""

    @property
    def name(self) -> str:
        """What to call the file in messages."""
        return "standard input" if str(self.path) == STDIN else printable(self.path)

    @property
    def decimal_mark(self) -> str:
        """Decimal mark of its numbers, once it was read."""
        return self.layout.decimal if self.layout else "."

    def files(self) -> "list[DataFile]":
        """All files behind the path, which may be a pattern or a folder."""
        return [self] if str(self.path) == STDIN else [replace(self, path=path) for path in find_files(self.path)]

    def parts(self) -> "list[DataFile]":
        """Parts that can be read independently of each other: the row groups of a Parquet file."""
        with self._opened() as (head, stream):
            if not _is_parquet(head) or str(self.path) == STDIN:
                return [self]
            n_groups = pa.parquet.ParquetFile(stream).num_row_groups
        return [replace(self, row_group=number) for number in range(n_groups)] or [self]

    def count_rows(self) -> int:
        """Count the rows without keeping them: as a Parquet file says, or by cutting a text into rows."""
        with self._opened() as (head, stream):
            if _is_parquet(head):
                about = pa.parquet.ParquetFile(stream).metadata
                return int((about if self.row_group is None else about.row_group(self.row_group)).num_rows)
            dialect = self._dialect(head)
            with _decoded(stream, dialect.encoding) as lines:
                n_rows = sum(1 for _ in cells_of(lines, dialect.layout.delimiter))
            return n_rows - dialect.is_declared - dialect.layout.has_header

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
        with self._opened() as (head, stream):
            if _is_parquet(head):
                yield from self._parquet_pieces(stream, rows)
            else:
                yield from self._text_pieces(self._dialect(head), stream, rows, text)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[bytes, BinaryIO]]:
        """Open for reading, unpacked: the first bytes, and a stream from its beginning that can jump."""
        with _told_in_one_sentence(self.name, self.encoding), contextlib.ExitStack() as stack:
            if str(self.path) != STDIN:
                stream: BinaryIO = stack.enter_context(open(self.path, "rb"))
            elif sys.stdin is None:
                raise InputError("Standard input is closed: name a file to read.")
            else:
                stream = sys.stdin.buffer
            # A pipe cannot jump: it goes to the disk first.
            stream = stream if stream.seekable() else _spooled(stream, stack)
            head = stream.read(_BYTES_TO_GUESS_BY)
            stream.seek(0)
            if head.startswith(b"\x1f\x8b"):
                stream = cast(BinaryIO, stack.enter_context(gzip.open(stream)))
                head = stream.read(_BYTES_TO_GUESS_BY)
                stream.seek(0)
            yield head, stream

    # ---- Parquet ----

    def _parquet_pieces(self, stream: BinaryIO, rows: int | None) -> Iterator[pd.DataFrame]:
        file = pa.parquet.ParquetFile(stream)
        names = file.schema_arrow.names
        self._check_unique(names)
        nested = [one.name for one in file.schema_arrow if _is_nested(one.type)]
        if nested:
            shown = ", ".join(clipped(name, 40) for name in nested[:6])
            self._note(f"Left out, cells hold lists, records or bytes: {shown}.")
        if not file.metadata.num_rows or len(nested) == len(names):
            raise InputError(f"{self.name} has no {'columns that can be used' if nested else 'rows'}.")
        kept = [name for name in names if name not in nested]
        groups = range(file.num_row_groups) if self.row_group is None else [self.row_group]
        if rows is None:
            yield arrow_to_pandas(file.read_row_groups(groups, columns=kept))
            return
        for batch in file.iter_batches(rows, row_groups=groups, columns=kept):
            yield arrow_to_pandas(batch)

    # ---- text ----

    def _dialect(self, head: bytes) -> "_Dialect":
        """Find out from the first bytes of a text file how to read it."""
        encoding = next((name for name, mark in _BYTE_ORDER_MARKS if head.startswith(mark)), self.encoding)
        lines = _first_lines(head, encoding)
        if lines and "\0" in lines[0]:
            raise UnicodeError("letters of two bytes")
        declared = _DECLARATION.fullmatch(lines[0]) if lines else None
        table = list(dropwhile(lambda line: not line.strip(), lines[1:] if declared else lines))
        if not table:
            raise InputError(f"{self.name} is empty.")
        delimiter = self.delimiter or (declared[1] if declared else None)
        # The parser of pandas that reads in pieces knows delimiters of one byte only.
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0'):
            raise InputError(
                f"The delimiter {shown(delimiter, 40)} cannot be used: it must be one character of ASCII, and neither "
                "a quotation mark nor a line break."
            )
        layout = Layout.guess(table, delimiter=delimiter, has_header=self.header, decimal=self.decimal)
        if layout.decimal == "," and self.decimal is None:
            self._note(f"The numbers in {self.name} look like ones with a decimal comma: 7,5 is read as 7.5.")
        self.layout = layout
        names = self._names(list(cells_of(table[:_LINES_FOR_DELIMITER], layout.delimiter)), layout.has_header)
        return _Dialect(encoding, declared is not None, layout, names)

    def _names(self, rows: list[list[str]], has_header: bool) -> list[str]:
        """Names of the columns, and of cells beyond them."""
        first = rows[0]
        # pandas would drop the last cells of such a row, or take the first for names.
        wide = next((row for row in rows if any(cell.strip() for cell in row[len(first) :])), None)
        if wide is not None:
            raise InputError(
                f"{self.name} cannot be read as a table: its first line has {len(first)} cells, and another one has "
                f"{len(wide)}."
            )
        if has_header:
            names = [name.strip() or f"column_{number}" for number, name in enumerate(first, 1)]
            self._check_unique(names)
        else:
            names = [f"column_{number}" for number in range(1, len(first) + 1)]
            self._note(f"The first line of {self.name} looks like data: columns are called column_1 to {names[-1]}.")
        # Lines that end with a delimiter have one cell more than there are names, and nothing in it.
        return names + [f"{_BEYOND}{i}" for i in range(len(first), max(map(len, rows)))]

    def _text_pieces(
        self, dialect: "_Dialect", stream: BinaryIO, rows: int | None, text: Collection[str] | None
    ) -> Iterator[pd.DataFrame]:
        layout, names = dialect.layout, dialect.names
        # Columns without a name are read too: otherwise pandas would no longer refuse rows that are too long.
        as_text = [name for name in names if text is None or name in text or name.startswith(_BEYOND)]
        with _decoded(stream, dialect.encoding) as lines:
            for piece in pd.read_csv(
                lines,
                sep=layout.delimiter,
                decimal=layout.decimal,
                header=0 if layout.has_header else None,
                skiprows=int(dialect.is_declared),
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
            ):
                if not len(piece):
                    raise InputError(f"{self.name} has a header and no rows.")
                yield self._without_empty(piece)

    def _without_empty(self, piece: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that have names; refuse rows with something beyond them."""
        names = [str(name) for name in piece]
        for name in names:
            if name.startswith(_BEYOND):
                filled = piece.index[piece[name].fillna("").str.strip() != ""]
                if len(filled):
                    n_names = sum(not one.startswith(_BEYOND) for one in names)
                    raise InputError(
                        f"{self.name} cannot be read as a table: its first line has {n_names} cells, and its row "
                        f"{filled[0] + 1:,} has more."
                    )
        return piece.drop(columns=[name for name in names if name.startswith(_BEYOND)])

    def _check_unique(self, names: list[str]) -> None:
        repeated = [quoted(name) for name, times in Counter(names).items() if times > 1]
        if repeated:
            what = f"{listed(repeated[:5])}{' and others' if len(repeated) > 5 else ''}"
            raise InputError(f"{self.name} has more than one column called {what}: rename them.")

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
    found: list[Path] = []
    for path in [paths] if isinstance(paths, str | Path) else paths:
        whole = check_path(path)
        if whole.is_dir():
            inside = [one for one in whole.rglob("*") if one.suffix in _SUFFIXES and one.is_file()]
            # As other engines do: names that begin with a dot or an underscore are no data.
            matches = [one for one in inside if not any(part[0] in "._" for part in one.relative_to(whole).parts)]
        elif whole.exists():
            matches = [whole]
        else:
            matches = [Path(match) for match in glob.glob(str(path), recursive=True) if Path(match).is_file()]
        if not matches:
            kind = "no table in the folder" if whole.is_dir() else "no file"
            raise InputError(f"There is {kind} {path}.")
        found += matches
    return sorted(dict.fromkeys(found))


def with_columns(table: pd.DataFrame, columns: Sequence[str], name: str) -> pd.DataFrame:
    """Return the rows of a file with columns in order; refuse others than the first of several files has."""
    missing = [quoted(column) for column in columns if column not in table]
    if missing:
        raise InputError(f"{name} has no column {listed(missing[:3])}, which the first file has.")
    strange = [quoted(column) for column in table if column not in columns]
    if strange:
        raise InputError(f"{name} has a column {listed(strange[:3])}, which the first file has not.")
    return table[list(columns)]


def _is_parquet(head: bytes) -> bool:
    return head.startswith(b"PAR1")


def _spooled(stream: BinaryIO, stack: contextlib.ExitStack) -> BinaryIO:
    """Copy a stream that cannot jump into a temporary file."""
    spool = stack.enter_context(tempfile.TemporaryFile(prefix="dafh-"))  # noqa: SIM115
    shutil.copyfileobj(stream, spool, 2**20)
    spool.seek(0)
    return cast(BinaryIO, spool)


@contextlib.contextmanager
def _decoded(stream: BinaryIO, encoding: str) -> Iterator[io.TextIOWrapper]:
    """Give the text of a stream, and leave the stream open: it may be standard input."""
    text = io.TextIOWrapper(stream, encoding, newline="")
    try:
        yield text
    finally:
        text.detach()


@contextlib.contextmanager
def _told_in_one_sentence(name: str, encoding: str) -> Iterator[None]:
    """Turn what can go wrong in reading a file into one sentence."""
    try:
        # Not `codecs.lookup`: it also knows base64 and others that make bytes of bytes.
        "".encode(encoding)
    except (LookupError, ValueError) as error:
        raise InputError(f"{name} cannot be read: there is no encoding {quoted(encoding)}.") from error
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"There is no file {name}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a folder, not a file.") from error
    except UnicodeError as error:
        known = encoding.removesuffix("-sig").upper()
        if "BOM" in str(error):  # What Python's UTF-16 and UTF-32 ask for, and what few programs on Windows leave out.
            way = f"name its order: {known.lower()}-le (most common) or {known.lower()}-be"
            raise InputError(f"{name} has no byte order mark, which {known} begins with: {way}.") from error
        raise InputError(f"{name} is not {known} text: name its encoding (latin-1 reads most others).") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error) as error:
        raise InputError(f"{name} cannot be read as a table: {_first_line(error)}.") from error
    except (pa.ArrowException, zlib.error, OverflowError) as error:
        raise InputError(f"{name} is damaged: {_first_line(error)}.") from error
    except (OSError, EOFError) as error:
        raise InputError(f"{name} cannot be read: {_first_line(error)}.") from error


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines() or [type(error).__name__]
    return text[0].removeprefix("Error tokenizing data. C error: ").rstrip(".")


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
_LONGEST_CELL = 2**24
# Numbers that make sense only with a decimal comma, or only with a point. 7,181 is not among them: it may be thousands.
_NEEDS = {
    mark: re.compile(
        rf"[+-]?(0{point}\d+|\d*{point}(\d{{1,2}}|\d{{4,}})|\d{{4,}}{point}\d+"
        rf"|\d{{1,3}}({other}\d{{3}})+{point}\d+|\d{{1,3}}({other}\d{{3}}){{2,}})"
    )
    for mark, point, other in ((",", ",", r"\."), (".", r"\.", ","))
}
_MAY_BE_EITHER = re.compile(r"[+-]?\d{1,3},\d{3}")
# Excel reads a first line such as "sep=;" as an instruction and does not show it; many programs write one for its sake.
_DECLARATION = re.compile(r'"?sep=([^"\r\n])"?[\r\n]*', flags=re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """How a text file is laid out."""

    delimiter: str = ","
    has_header: bool = True
    decimal: str = "."

    @classmethod
    def guess(
        cls,
        lines: Sequence[str],
        *,
        delimiter: str | None = None,
        has_header: bool | None = None,
        decimal: str | None = None,
    ) -> "Layout":
        """Guess from the first lines what is not given.

        The delimiter is the one that cuts all lines into the same number of cells, two or more. If several do, it is
        the one that leaves the fewest of the others within cells, those of numbers not counted. (`csv.Sniffer` takes
        the decimal commas of 30,5;cook for delimiters.) There is no header if some cell of the first line is a number,
        and none is a word above a number. Numbers have a decimal comma if cells are parted by something else, some
        number needs one (34,66), and none needs a point (34.66). In a file parted by semicolons 7,181 is enough:
        programs write semicolons where the comma is the decimal mark.

        Examples
        --------
        >>> Layout.guess(["age;job", "30;cook"])
        Layout(delimiter=';', has_header=True, decimal='.')
        >>> Layout.guess(["30,5;cook", "41;clerk"])
        Layout(delimiter=';', has_header=False, decimal=',')
        """
        first = lines[:_LINES_FOR_DELIMITER]
        delimiter = delimiter or max(_DELIMITERS, key=lambda candidate: _evenness(first, candidate))
        decimal = decimal or _decimal_mark(lines, delimiter)
        if has_header is None:
            has_header = _has_header(list(cells_of(first, delimiter)), decimal)
        return cls(delimiter, has_header, decimal)


class _Dialect(NamedTuple):
    """How to read a text file, as its first bytes have it."""

    encoding: str
    is_declared: bool
    """Whether its first line only declares the delimiter."""
    layout: Layout
    names: list[str]


def cells_of(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Cut lines into rows of cells; lines that are empty or blank are left out, as pandas does."""
    # Cells may be longer than the 131,072 letters of the csv module: contracts and images are put into tables too.
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True):
            if len(row) > 1 or any(cell.strip() for cell in row):
                yield row
    finally:
        csv.field_size_limit(before)


def _first_lines(head: bytes, encoding: str) -> list[str]:
    """First lines of a text; where it goes on, the last one, and its last letter, may be cut and does not count."""
    goes_on = len(head) == _BYTES_TO_GUESS_BY
    decoded = codecs.getincrementaldecoder(encoding)().decode(head, final=not goes_on)
    complete = decoded[: decoded.rfind("\n") + 1] or decoded if goes_on else decoded
    # Not `splitlines`, which also ends lines at U+0085, U+2028 or a form feed: CSV knows only \n, \r\n and \r.
    lines = list(io.StringIO(complete, newline=""))
    return lines if any(line.strip() for line in lines) else []


def _evenness(lines: Sequence[str], delimiter: str) -> tuple[float, float, int]:
    """How well a delimiter explains the lines: lines as wide as the first, cells without other delimiters, width."""
    try:
        rows = list(cells_of(lines, delimiter))
    except csv.Error:
        return (0.0, 0.0, 0)
    if not rows or len(rows[0]) < 2:
        return (0.0, 0.0, 0)
    even = [row for row in rows if len(row) == len(rows[0])]
    # In lines such as 30,5;cook and 41,5;clerk the comma cuts as evenly as the semicolon, and wrongly.
    whole = [_is_whole(cell) for row in even for cell in row]
    # Blanks cut any sentence: they count only where nothing else does.
    return (len(even) / len(rows) - (delimiter == " "), sum(whole) / len(whole), len(rows[0]))


def _is_whole(cell: str) -> bool:
    """Whether a cell is a number, or holds none of the delimiters but blanks."""
    if not any(mark in cell for mark in _DELIMITERS[:-1]):
        return True
    return is_number(cell, decimal=",") or _NEEDS[","].fullmatch(cell.strip()) is not None


def _decimal_mark(lines: Sequence[str], delimiter: str) -> str:
    if delimiter == ",":
        return "."  # A comma within a cell would be quoted, and is more likely one of a list.
    numbers = [cell for row in cells_of(lines, delimiter) for cell in map(str.strip, row) if "," in cell or "." in cell]
    needed = {mark for mark, pattern in _NEEDS.items() if any(map(pattern.fullmatch, numbers))}
    if "." in needed:
        return "."
    either = delimiter == ";" and any(map(_MAY_BE_EITHER.fullmatch, numbers))
    return "," if "," in needed or either else "."


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    if len(rows) < 2:
        return True
    pairs = [(is_number(above, decimal), is_number(below, decimal)) for above, below in zip(*rows[:2], strict=False)]
    words_above_numbers = any(below and not above for above, below in pairs)
    return words_above_numbers or not any(above for above, _ in pairs)
