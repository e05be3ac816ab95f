"""The layout of a text file, guessed from its first lines."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from dafh.tables.values import is_number

_DELIMITERS = (",", ";", "\t", "|", " ")
LINES_TO_GUESS_BY = 50


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
        rows = cells(lines, delimiter)
        if len(rows) < 2:
            return cls(delimiter)
        pairs = list(zip(rows[0], rows[1], strict=False))
        words_above_numbers = any(not is_number(above) and is_number(below) for above, below in pairs)
        return cls(delimiter, words_above_numbers or not any(is_number(above) for above, _ in pairs))


def cells(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Cut lines into cells; empty lines are left out."""
    return [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row]


def _evenness(lines: Sequence[str], delimiter: str) -> tuple[float, int]:
    """How well a delimiter explains the lines: share of lines as wide as the first, then that width."""
    try:
        widths = [len(row) for row in cells(lines, delimiter)]
    except csv.Error:
        return (0.0, 0)
    if not widths or widths[0] < 2:
        return (0.0, 0)
    # Blanks cut any sentence: they count only where nothing else does.
    return (widths.count(widths[0]) / len(widths) - (delimiter == " "), widths[0])
