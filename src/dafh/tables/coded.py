"""Pieces of a text file as numbers and as codes of the different texts in a column.

A piece of 50,000 rows holds a handful of different categories. Arrow numbers them while it reads the file, in threads,
and what `dafh.tables.values` has to say about a text is asked once for each. The results are those of the slow way,
`DataFile.chunks` and then `TableSchema.features_of`; a piece for which that is not certain is not read here at all.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.tables.layout import Layout
from dafh.tables.records import Piece
from dafh.tables.values import MISSING_WORDS, is_number, read_as

if TYPE_CHECKING:
    import pyarrow

# Arrow counts the bytes of a block in 32 bits.
_MOST_BYTES = 2**31 - 1
_BOOLEANS = frozenset(("true", "false"))


class CodedColumn(NamedTuple):
    """The different texts of a column in the order in which they occur, and the position of each row's among them."""

    codes: NDArray[np.intp]
    texts: "pd.Series[Any]"

    def count(self, chosen: NDArray[np.bool_]) -> int:
        """Number of rows whose text is one of the chosen ones."""
        return int(np.bincount(self.codes, minlength=len(self.texts))[chosen].sum())


class CodedReading(NamedTuple):
    """A column read as one kind: see `dafh.tables.values.Reading`."""

    values: "pd.Series[Any]"
    n_known: int
    """Rows with a value that could be read."""
    unread: "pd.Series[Any]"
    """The different texts that could not be read, in the order in which they occur."""
    n_unread: int
    """Rows with one of these."""


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Some columns of a piece of a text file."""

    columns: list[str]
    """Names of all columns of the file."""
    parts: Mapping[str, NDArray[np.float64] | CodedColumn]
    """Columns that were asked for: numbers, with NaN for gaps, or codes of texts."""

    def __len__(self) -> int:
        """Return the number of rows."""
        part = next(iter(self.parts.values()))
        return len(part.codes) if isinstance(part, CodedColumn) else len(part)

    def texts(self, names: Sequence[str]) -> pd.DataFrame:
        """Return columns as strings, just as they stand in the file."""
        found = {}
        for name in names:
            part = self.parts[name]
            assert isinstance(part, CodedColumn)
            found[name] = pd.Index(part.texts.to_numpy()).take(part.codes)
        return pd.DataFrame(found, columns=list(names), index=pd.RangeIndex(len(self)))

    def read(self, name: str, kind: str, decimal: str, gap_words: Collection[str] = ()) -> CodedReading:
        """Read a column as one kind; words that stand for a gap in it do not count as unread."""
        part = self.parts[name]
        if not isinstance(part, CodedColumn):
            nothing = pd.Series([], dtype=object)
            return CodedReading(pd.Series(part, name=name), int(np.count_nonzero(~np.isnan(part))), nothing, 0)
        values, unread = read_as(part.texts.rename(name), kind, decimal)
        unread = unread[~unread.isin(gap_words)] if len(unread) else unread
        strange = np.zeros(len(part.texts), bool)
        strange[unread.index] = True
        n_known, n_unread = part.count(values.notna().to_numpy()), part.count(strange)
        return CodedReading(_by_code(values, part.codes, kind), n_known, unread, n_unread)


def _by_code(values: "pd.Series[Any]", codes: NDArray[np.intp], kind: str) -> "pd.Series[Any]":
    """Values of rows, from those of their codes; categories as a categorical column, in which they stay codes."""
    if kind != "category":
        return pd.Series(values.to_numpy()[codes], name=values.name)
    # Two texts, 1 and 1.0, may be one category.
    place, names = pd.factorize(values)
    return pd.Series(pd.Categorical.from_codes(place[codes], pd.Index(names, dtype=object)), name=values.name)


@dataclass
class CodedReader:
    """Reads plain pieces of one file.

    Parameters
    ----------
    names : list of str
        Of all columns.
    layout : Layout
    numbers : names of columns
        To be read as numbers, with words for gaps such as NA.
    texts : names of columns
        To be read as strings. No other columns are read.
    """

    names: list[str]
    layout: Layout
    numbers: Collection[str]
    texts: Collection[str]
    _worded: set[str] = field(default_factory=set, init=False)
    """Columns of numbers in which there are words, so far."""

    def read(self, piece: Piece) -> CodedTable | None:
        """Read a piece; None if pandas might read it otherwise."""
        import pyarrow

        if len(piece.content) >= _MOST_BYTES or not self._wanted:
            return None
        try:
            table = self._parsed(piece)
        except pyarrow.ArrowInvalid:
            # Words among the numbers; or rows of different lengths, which then are refused once more.
            self._worded.update(self.numbers)
            try:
                table = self._parsed(piece)
            except pyarrow.ArrowInvalid:
                return None
        parts: dict[str, NDArray[np.float64] | CodedColumn] = {}
        for name in table.column_names:
            column = table.column(name).combine_chunks()
            if name in self.texts:
                found: Any = _coded(column, strip=piece.has_blanks)
            elif name in self._worded:
                found = self._numbers_and_words(name, _coded(column, strip=piece.has_blanks), piece)
            else:
                found = _finite(column)
            if found is None:
                return None
            parts[name] = found
        return CodedTable(self.names, parts)

    @property
    def _wanted(self) -> list[str]:
        return [name for name in self.names if name in self.texts or name in self.numbers]

    def _parsed(self, piece: Piece) -> "pyarrow.Table":
        import pyarrow
        from pyarrow import csv

        coded = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        plain = {name for name in self.numbers if name not in self._worded and name not in self.texts}
        return csv.read_csv(
            pyarrow.BufferReader(piece.content),
            # One block: the texts of a column are then numbered once. Columns are converted in threads all the same.
            csv.ReadOptions(column_names=self.names, block_size=len(piece.content) + 1),
            csv.ParseOptions(delimiter=self.layout.delimiter, newlines_in_values=piece.has_breaks),
            csv.ConvertOptions(
                column_types={name: pyarrow.float64() if name in plain else coded for name in self._wanted},
                include_columns=self._wanted,
                null_values=list(MISSING_WORDS),
                strings_can_be_null=False,
                decimal_point=self.layout.decimal,
            ),
        )

    def _numbers_and_words(
        self, name: str, column: CodedColumn, piece: Piece
    ) -> NDArray[np.float64] | CodedColumn | None:
        """Numbers where words stand for gaps only; texts where pandas takes the whole column for text."""
        known = ~column.texts.isin(MISSING_WORDS)
        texts = column.texts[known].tolist()
        others = [text for text in texts if not is_number(text, self.layout.decimal)]
        if not others:
            plain = [text.replace(self.layout.decimal, ".") for text in texts]
            values = np.full(len(known), np.nan)
            values[known.to_numpy()] = np.array(plain, dtype=object).astype(np.float64)
            if np.isinf(values).any():
                return None
            if known.all() or not piece.has_blanks:  # Arrow does not know a gap with a blank before it.
                self._worded.discard(name)
            return values[column.codes]
        # A column of nothing but true and false, and gaps, is one of flags for pandas, and no text.
        if any(text.lower() in _BOOLEANS for text in others):
            return None
        return CodedColumn(column.codes, column.texts.where(known))


def _coded(column: "pyarrow.DictionaryArray", *, strip: bool) -> CodedColumn:
    texts = pd.Series(column.dictionary.to_pylist(), dtype=object)
    # pandas takes off the blanks after a delimiter, and only those.
    return CodedColumn(column.indices.to_numpy().astype(np.intp), texts.str.lstrip(" ") if strip else texts)


def _finite(column: "pyarrow.DoubleArray") -> NDArray[np.float64] | None:
    """Numbers, with NaN for gaps; None if one is infinite, or written as a number that is none, such as NAN."""
    values = column.to_numpy(zero_copy_only=False)
    n_finite = int(np.count_nonzero(np.isfinite(values)))
    return values if n_finite + column.null_count == len(values) else None
