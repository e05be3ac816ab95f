"""Columns divided into bins: what scorecards give points to, and what rules are made of.

A number falls into one of at most 128 bins between cuts, a category is a bin of its own, and every column has one more
bin for what is missing or was never seen. Bins are made without the labels: where a cut may lie then tells nothing
about the rows that later judge a model.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.frames import MISSING, OTHER, Table, to_pandas
from dafh.tables.encoder import CategoryColumn, category_places, learn_categories
from dafh.tables.values import DATE, as_kind, to_floats, typed_kind
from dafh.text import clipped, name_in_condition, write_date, write_exactly

MOST_BINS = 128
"""256 were no better on Adult and Bank: neighbouring bins share what they know through the penalty."""
# Cuts of a larger table are learned from this many of its rows, evenly spread: they would not move by much.
_MOST_ROWS = 200_000
# Letters of a category that are shown.
_WIDTH = 40


@dataclass(frozen=True)
class NumberBins:
    """Bins of a column of numbers, flags or dates, from the lowest values to the highest, then one for gaps."""

    name: str
    kind: str
    cuts: tuple[float, ...]
    """Ascending; a value that is not above a cut lies below it."""
    centers: tuple[float, ...]
    """Mean value in each bin, one more than there are cuts."""
    has_gaps: bool
    """Whether there were gaps in training."""

    @property
    def n_bins(self) -> int:
        """Number of bins, the one for gaps included."""
        return len(self.centers) + 1

    @property
    def is_category(self) -> bool:
        """Whether the bins have no order."""
        return False

    def codes(self, column: pd.Series) -> NDArray[np.uint8]:
        """Bin of each row."""
        values = to_floats(as_kind(column, self.kind))
        codes = np.searchsorted(np.array(self.cuts), values, side="left").astype(np.uint8)
        codes[np.isnan(values)] = len(self.centers)
        return codes

    def words(self, code: int) -> str:
        """Name a bin: ``up to 24``, ``24 to 30`` (above the first, up to the second), ``above 30``, ``missing``."""
        if code == len(self.centers):
            return "missing"
        if not self.cuts:
            return "any value"
        if code == 0:
            return f"up to {self.write(self.cuts[0])}"
        if code == len(self.cuts):
            return f"above {self.write(self.cuts[-1])}"
        return f"{self.write(self.cuts[code - 1])} to {self.write(self.cuts[code])}"

    def write(self, value: float) -> str:
        """Write a cut in the units of the column, with all its digits: who reads it gets the same bins."""
        if self.kind.startswith(DATE):
            return write_date(value, 3 if value.is_integer() else 17)
        return write_exactly(value)


@dataclass(frozen=True)
class CategoryBins:
    """Bins of a column of categories: one for each, and one for those never seen in training."""

    name: str
    categories: tuple[str, ...]
    """Those with a bin of their own, sorted; a gap is a category too."""
    has_other: bool
    """Whether rare categories share one more bin, where unseen ones then go too."""

    kind = "category"

    @property
    def n_bins(self) -> int:
        """Number of bins, the one for unseen categories included."""
        return len(self.categories) + self.has_other + 1

    @property
    def is_category(self) -> bool:
        """Whether the bins have no order."""
        return True

    def codes(self, column: pd.Series) -> NDArray[np.uint8]:
        """Bin of each row."""
        places = category_places(CategoryColumn(self.name, "category", self.categories, self.has_other), column)
        return np.where(places < 0, self.n_bins - 1, places).astype(np.uint8)

    def words(self, code: int) -> str:
        """Name a bin: the category, ``missing``, ``(other)``, or ``never seen``; no two bins have the same name."""
        if code >= len(self.categories):
            return OTHER if self.has_other and code == len(self.categories) else "never seen"
        category = self.categories[code]
        if category == MISSING:
            return "missing"
        alike = [other for other in self.categories if clipped(other, _WIDTH) == clipped(category, _WIDTH)]
        return name_in_condition(category, _WIDTH) if len(alike) == 1 else repr(category)


BinnedColumn = NumberBins | CategoryBins


@dataclass(frozen=True)
class Binning:
    """The bins of all columns of a table, learned from training rows.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 30, 30, None], "job": ["cook", "clerk", "cook", "cook"]})
    >>> binning = Binning.learn(table)
    >>> binning.codes(pd.DataFrame({"age": [25, 99, None], "job": ["clerk", "cook", "pilot"]}))
    array([[1, 0],
           [1, 1],
           [2, 2]], dtype=uint8)
    >>> [binning.columns[0].words(code) for code in range(3)]
    ['up to 20', 'above 20', 'missing']
    """

    columns: tuple[BinnedColumn, ...]

    @classmethod
    def learn(cls, X: Table, weight: NDArray[np.float64] | None = None, most: int = MOST_BINS) -> "Binning":
        """Divide every column into bins of about the same number of rows; a value that many rows share has its own."""
        table = named_table(X)
        sample = slice(None, None, max(len(table) // _MOST_ROWS, 1))
        table, weight = table.iloc[sample], np.ones(len(table))[sample] if weight is None else weight[sample]
        columns: list[BinnedColumn] = []
        for name in table.columns:
            kind = typed_kind(table[name]) or "category"
            if kind == "category":
                learned = learn_categories(name, table[name])
                columns.append(CategoryBins(name, learned.categories, learned.has_other))
            else:
                columns.append(_number_bins(name, kind, to_floats(table[name]), weight, most))
        return cls(tuple(columns))

    @property
    def n_bins(self) -> list[int]:
        """Number of bins of each column."""
        return [column.n_bins for column in self.columns]

    def codes(self, X: Table) -> NDArray[np.uint8]:
        """Bin of each row in each column, (n, d), stored column by column."""
        table = named_table(X)
        codes = np.empty((len(table), len(self.columns)), np.uint8, order="F")
        for position, column in enumerate(self.columns):
            codes[:, position] = column.codes(table.iloc[:, position])
        return codes


def unseen_categories(binning: Binning, codes: NDArray[np.uint8]) -> dict[int, NDArray[np.intp]]:
    """Rows with a category that training rows did not have, by position of the column; codes are bins of rows.

    Where rare categories share a bin, unseen ones go there too and cannot be told apart: such columns are left out.

    Examples
    --------
    >>> binning = Binning.learn(pd.DataFrame({"job": ["cook", "clerk"]}))
    >>> unseen_categories(binning, binning.codes(pd.DataFrame({"job": ["cook", "pilot", None]})))
    {0: array([1, 2])}
    """
    found = {}
    for position, column in enumerate(binning.columns):
        if isinstance(column, CategoryBins) and not column.has_other:
            rows = np.flatnonzero(codes[:, position] == column.n_bins - 1)
            if len(rows):
                found[position] = rows
    return found


def named_table(X: Table) -> pd.DataFrame:
    """Turn any table into a pandas frame with text column names; those of an array are x0, x1, ..."""
    table = to_pandas(X)
    return table.set_axis([f"x{name}" if isinstance(name, int) else str(name) for name in table.columns], axis=1)


def _number_bins(
    name: str, kind: str, values: NDArray[np.float64], weight: NDArray[np.float64], most: int
) -> NumberBins:
    known = ~np.isnan(values)
    distinct, place = np.unique(values[known], return_inverse=True)
    if not len(distinct):
        return NumberBins(name, kind, (), (0.0,), has_gaps=True)
    mass = np.bincount(place, weight[known]).astype(np.float64)
    first = _first_of_bins(mass, most)
    between = zip(distinct[first[1:] - 1].tolist(), distinct[first[1:]].tolist(), strict=True)
    rounded = _whole_day if kind.startswith(DATE) else round_between
    cuts = [rounded(below, beyond) for below, beyond in between]
    centers = np.add.reduceat(distinct * mass, first) / np.maximum(np.add.reduceat(mass, first), 1e-300)
    return NumberBins(name, kind, tuple(cuts), tuple(centers.tolist()), has_gaps=not known.all())


def _first_of_bins(mass: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """First value of each bin: every value is one where they are few, else bins have about the same mass.

    A value that many rows share fills one bin, and takes no room from the others.
    """
    if len(mass) <= most:
        return np.arange(len(mass))
    capped = np.minimum(mass, mass.sum() / most)
    middle = (np.cumsum(capped) - capped / 2) / capped.sum()
    return np.unique((middle * most).astype(int), return_index=True)[1]


def round_between(below: float, beyond: float) -> float:
    """Return the roundest number from `below` up to, but without, `beyond`: a cut that people can read.

    Examples
    --------
    >>> round_between(24, 25), round_between(0.3712, 0.3845), round_between(1234, 1310), round_between(-0.4, 0.3)
    (24.0, 0.38, 1300.0, 0.0)
    """
    if below <= 0 < beyond:
        return 0.0
    # A step of a power of ten that is no longer than the gap always has a multiple in it; the next longer one may.
    # One shorter step is for a gap that is rounded up to a power of ten.
    exponent = int(np.floor(np.log10(beyond - below))) + 1
    for digits in (-exponent, 1 - exponent, 2 - exponent):
        step = 10.0**-digits
        first = np.floor(below / step) if step > 0 else 0.0  # Nothing is shorter than the smallest numbers.
        for multiple in (first, first + 1):
            rounded = round(float(multiple * step), max(digits, 0))
            if below <= rounded < beyond:
                return rounded
    return below


def _whole_day(below: float, beyond: float) -> float:
    """Cut dates at midnight where one lies between them, else at the earlier one, which is a whole second."""
    midnight = float(np.ceil(below))
    return midnight if midnight < beyond else below


def needs_encoding(X: Table) -> bool:
    """Whether a table holds anything but numbers without gaps, so that most classifiers could not take it."""
    table = to_pandas(X)
    columns = [table.iloc[:, position] for position in range(table.shape[1])]
    if not {typed_kind(column) for column in columns} <= {"number", "flag"}:
        return True
    return any(bool(np.isnan(to_floats(column)).any()) for column in columns)  # Infinite numbers are gaps too.
