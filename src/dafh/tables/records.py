"""Text files cut into pieces of whole rows, as long as their bytes leave no doubt about where a row ends.

Arrow reads such a piece in threads and by columns. pandas, which reads everything else, has rules of its own for blank
lines, blanks after a delimiter, returns and quotation marks in strange places. A piece is *plain* if the two cannot
differ; from the first one that is not, pandas reads the rest of the file.
"""

import io
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.tables.streams import Rejoined

_BLOCK_BYTES = 2**20
# Files with more line breaks in their cells than this are left to pandas.
_MOST_LINES_A_ROW = 4
_LINE_FEED, _RETURN, _QUOTE, _BLANK = b'\n\r" '
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Piece:
    """Whole rows of a plain text file."""

    content: bytes
    n_rows: int
    has_breaks: bool
    """Whether cells hold line breaks."""
    has_blanks: bool
    """Whether blanks that do not count stand after some delimiter."""


@dataclass
class PlainRecords:
    r"""The rows of a text file in plain pieces, and what is left of it after the last plain one.

    Parameters
    ----------
    stream : binary stream
        From the beginning of the file.
    delimiter : str
        One character of ASCII.
    has_header : bool
        Whether the first row has the names: it is part of no piece.

    Examples
    --------
    >>> records = PlainRecords(io.BytesIO(b'a,b\n1,"x\ny"\n2,z\n\n3,z\n'), ",", has_header=True)
    >>> records.take(1)
    Piece(content=b'1,"x\ny"\n', n_rows=1, has_breaks=True, has_blanks=False)
    >>> records.take(2) is None  # There is a blank line in it.
    True
    >>> records.rest().read()
    b'a,b\n\n2,z\n\n3,z\n'
    """

    stream: BinaryIO
    delimiter: str
    has_header: bool
    _waiting: bytes = field(default=b"", init=False)
    _breaks: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp), init=False)
    """Where the line breaks of what is waiting are."""
    _header: bytes = field(default=b"", init=False)
    _n_taken: int = field(default=0, init=False)
    _started: bool = field(default=False, init=False)

    def take(self, rows: int) -> Piece | None:
        """Return the next rows, fewer at the end of the file; None if they are not plain, or there are none."""
        names = int(self.has_header and not self._started)
        ends = self._read_until(rows + names)
        if len(ends) <= names or not self._is_plain(self._waiting[: ends[-1]], ends):
            return None
        first, n_rows = ends[0] if names else 0, len(ends) - names
        content = self._waiting[first : ends[-1]]
        n_breaks = int(np.searchsorted(self._breaks, ends[-1]))
        has_breaks = n_breaks > len(ends)
        self._header += self._waiting[:first]
        self._waiting, self._breaks = self._waiting[ends[-1] :], self._breaks[n_breaks:] - ends[-1]
        self._n_taken += n_rows
        return Piece(content, n_rows, has_breaks, b'"' not in content and len(self._blanks(content)) > 0)

    def put_back(self, piece: Piece) -> None:
        """Leave the piece that was taken last to whoever reads the rest."""
        self._waiting = piece.content + self._waiting  # Nothing more is taken: `_breaks` is not needed.
        self._n_taken -= piece.n_rows

    @property
    def is_at_end(self) -> bool:
        """Whether rows were taken, and nothing is left."""
        return self._n_taken > 0 and not self._waiting

    def check_next(self, n_names: int) -> None:
        """Refuse a next row with more cells than names, as pandas does with all rows but the first that it reads."""
        width = _first_width(self._waiting, self.delimiter)
        if width > n_names:
            blank = self._waiting[: len(self._waiting) - len(self._waiting.lstrip(b" \r\n"))]
            line = self._header.count(b"\n") + self._n_taken + blank.count(b"\n") + 1
            raise pd.errors.ParserError(f"Expected {n_names} fields in line {line}, saw {width}")

    def rest(self) -> BinaryIO:
        """Return the file from its first row that was not taken, after its header.

        A blank line, which is no row, stands for every row that was taken: messages then name the right line.
        """
        return io.BufferedReader(Rejoined(self._header + b"\n" * self._n_taken + self._waiting, self.stream))

    def _blanks(self, content: bytes) -> NDArray[np.intp]:
        """Positions of delimiters with a blank after them; most tables have few blanks, or none."""
        if b" " not in content:
            return np.empty(0, np.intp)
        letters = np.frombuffer(content, np.uint8)
        return np.flatnonzero((letters[:-1] == ord(self.delimiter)) & (letters[1:] == _BLANK))

    def _read_until(self, rows: int) -> NDArray[np.intp]:
        """Read until there are enough rows, or no more; return where each ends, and none if that cannot be told."""
        self._read_lines(rows)
        ends = self._row_ends()
        if len(ends) < rows:
            # Cells hold line breaks, or a quotation mark that is not one: read on, but never the whole of a long file.
            at_end = self._read_lines(_MOST_LINES_A_ROW * rows)
            ends = self._row_ends()
            if len(ends) < rows and not at_end:
                return ends[:0]
            if len(self._waiting) > (ends[-1] if len(ends) else 0):
                ends = np.append(ends, len(self._waiting))  # The last row has no line break after it.
        return ends[:rows]

    def _read_lines(self, n_lines: int) -> bool:
        """Read until this many lines wait, and say whether the file has ended before."""
        blocks, breaks = [self._waiting], [self._breaks]
        length, found = len(self._waiting), len(self._breaks)
        while found < n_lines and (block := self.stream.read(_BLOCK_BYTES)):
            if not self._started and block.startswith(_BYTE_ORDER_MARK):
                self._header, block = _BYTE_ORDER_MARK, block.removeprefix(_BYTE_ORDER_MARK)
            self._started = True
            blocks.append(block)
            breaks.append(_places(block, _LINE_FEED) + length)
            length, found = length + len(block), found + len(breaks[-1])
        self._waiting, self._breaks = b"".join(blocks), np.concatenate(breaks)
        return found < n_lines

    def _row_ends(self) -> NDArray[np.intp]:
        """Positions after the line breaks that end a row: those with an even number of quotation marks before them."""
        if b'"' not in self._waiting:
            return self._breaks + 1
        return self._breaks[np.searchsorted(_places(self._waiting, _QUOTE), self._breaks) % 2 == 0] + 1

    def _is_plain(self, content: bytes, ends: NDArray[np.intp]) -> bool:
        """Whether Arrow and pandas read the same cells."""
        # Blank lines; blanks at the beginning of a line, which pandas takes off together with tabs; returns that are
        # not part of a line's end; zeros, which end a cell for some parsers.
        letters = np.frombuffer(content, np.uint8)
        starts = letters[np.append(0, ends[:-1])]
        strange = b"\n\r " if self.delimiter == "\t" else b"\n\r \t"
        if np.isin(starts, list(strange)).any() or b"\0" in content:
            return False
        has_returns = b"\r" in content
        if has_returns and content.count(b"\r") != content.count(b"\r\n"):
            return False
        if b'"' in content and not self._quotes_are_plain(content, has_returns=has_returns):
            return False
        try:
            return content.isascii() or bool(content.decode())
        except UnicodeDecodeError:
            return False

    def _quotes_are_plain(self, content: bytes, *, has_returns: bool) -> bool:
        """Whether quotation marks stand around whole cells, and doubled within them.

        Blanks between a delimiter and a cell must be taken off, but not those that begin a cell within quotation marks:
        there must not be both in a piece.
        """
        letters, places = np.frombuffer(content, np.uint8), _places(content, _QUOTE)

        def inside(positions: NDArray[np.intp]) -> NDArray[np.bool_]:
            return np.searchsorted(places, positions) % 2 == 1

        if len(places) % 2 or not inside(self._blanks(content)).all():
            return False
        between = ord(self.delimiter)
        opening, closing = places[::2], places[1::2]
        before = letters[np.maximum(opening - 1, 0)]
        after = letters[np.minimum(closing + 1, len(letters) - 1)]
        doubled = np.append(opening[1:] == closing[:-1] + 1, False)
        starts = (opening == 0) | (before == between) | (before == _LINE_FEED) | np.append(False, doubled[:-1])
        last = closing == len(letters) - 1
        stops = last | (after == between) | (after == _LINE_FEED) | (after == _RETURN) | doubled
        if not (starts.all() and stops.all()):
            return False
        # Returns within cells are kept by one reader and not by the other.
        return not has_returns or not inside(_places(content, _RETURN)).any()


def _first_width(content: bytes, delimiter: str) -> int:
    """Cells of the first row, as pandas counts them; 0 if it cannot, which it then says itself."""
    first: dict[str, Any] = {"sep": delimiter, "header": None, "nrows": 1, "dtype": str, "skipinitialspace": True}
    try:
        return pd.read_csv(io.BytesIO(content), **first, index_col=False, encoding_errors="replace").shape[1]
    except (pd.errors.ParserError, pd.errors.EmptyDataError):
        return 0


def _places(content: bytes, letter: int) -> NDArray[np.intp]:
    """Positions of a letter."""
    return np.flatnonzero(np.frombuffer(content, np.uint8) == letter)
