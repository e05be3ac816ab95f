"""The layout of a text file, guessed from its first lines."""

import contextlib
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dafh.tables.values import is_number

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
        the one that leaves the fewest of the others within cells, those of numbers not counted. There is no header if
        some cell of the first line is a number, and none is a word above a number. Numbers have a decimal comma if
        cells are parted by something else, some number needs one (34,66), and none needs a point (34.66). In a file
        parted by semicolons 7,181 is enough: programs write semicolons where the comma is the decimal mark.

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
            has_header = _has_header(cells(first, delimiter), decimal)
        return cls(delimiter, has_header, decimal)


def declared_delimiter(line: str) -> str | None:
    """Delimiter that a first line such as ``sep=;`` declares for Excel; None if it declares none.

    Examples
    --------
    >>> declared_delimiter("sep=;"), declared_delimiter("age;job")
    (';', None)
    """
    found = _DECLARATION.fullmatch(line)
    return found[1] if found else None


def cells(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Cut lines into cells; lines that are empty or blank are left out, as pandas does."""
    with _long_cells():
        rows = list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    return [row for row in rows if len(row) > 1 or any(cell.strip() for cell in row)]


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    """Allow cells longer than the 131,072 letters of the csv module: contracts and images are put into tables too."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _evenness(lines: Sequence[str], delimiter: str) -> tuple[float, float, int]:
    """How well a delimiter explains the lines: lines as wide as the first, cells without other delimiters, width."""
    try:
        rows = cells(lines, delimiter)
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
    either = False
    found: set[str] = set()
    for row in cells(lines, delimiter):
        for cell in map(str.strip, row):
            if "," in cell or "." in cell:
                found.update(mark for mark, pattern in _NEEDS.items() if pattern.fullmatch(cell))
                either = either or _MAY_BE_EITHER.fullmatch(cell) is not None
    if "." in found:
        return "."
    return "," if "," in found or (either and delimiter == ";") else "."


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    if len(rows) < 2:
        return True
    pairs = [(is_number(above, decimal), is_number(below, decimal)) for above, below in zip(*rows[:2], strict=False)]
    words_above_numbers = any(below and not above for above, below in pairs)
    return words_above_numbers or not any(above for above, _ in pairs)
