"""Columns as numbers that can be described in words."""

import functools
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.tables.column import Column
from dafh.tables.values import is_ordered, kind_of
from dafh.text import clipped, write_date, write_number

# Only the most frequent categories of a column are described. A rule about a rare one would match few rows.
_MOST_CATEGORIES = 20


@dataclass(frozen=True)
class View:
    """How one number per row, made from a column, is put into words.

    A column of numbers or dates has one view, a column of categories one for each frequent category; gaps have another.
    """

    column: str
    category: str | None = None
    is_date: bool = False
    is_gap: bool = False

    @property
    def is_flag(self) -> bool:
        """Whether the number is 0 or 1: for one category, or for gaps."""
        return self.category is not None or self.is_gap

    def holds(self, yes: bool) -> str:
        """Say that a flag is set, or that it is not."""
        if self.is_gap:
            return f"{self.column} is {'missing' if yes else 'not missing'}"
        return f"{self.column} {'is' if yes else 'is not'} {clipped(self.category)}"

    def amount(self, value: float, digits: int = 3) -> str:
        """Write a number or a date with a few digits."""
        return write_date(value, digits) if self.is_date else write_number(value, digits)

    def bound(self, value: float, beyond: float) -> str:
        """Write a bound with enough digits that the next value, `beyond` it, still lies on the other side."""
        for digits in range(3, 18):
            text = self.amount(value, digits)
            written = _read_back(text, self.is_date)
            if min(value, beyond) < written <= max(value, beyond) if beyond < value else value <= written < beyond:
                return text
        return text


@dataclass(frozen=True)
class Described:
    """A table as numbers, one column per view."""

    views: list[View]
    observed: NDArray[np.float64]
    """NaN where a number is missing."""

    @classmethod
    def of(cls, table: pd.DataFrame) -> "Described":
        """Split every column into numbers, categories and gaps."""
        found: list[tuple[View, NDArray[np.float64]]] = []
        for position, name in enumerate(table.columns):  # By position: names may occur twice.
            # An array has numbers for names, and "0 is 3 or less" would be a puzzle.
            found += _views(f"column {name}" if isinstance(name, int) else clipped(name), table.iloc[:, position])
        columns = [numbers for _, numbers in found]
        # A table may have no views at all: a single column without any value has none.
        return cls([view for view, _ in found], np.column_stack(columns) if columns else np.empty((len(table), 0)))

    @functools.cached_property
    def values(self) -> NDArray[np.float64]:
        """All views without gaps: a missing number is replaced by the median of its column."""
        missing = np.isnan(self.observed)
        middle = np.zeros(len(self.views))
        known = ~missing.all(axis=0)
        middle[known] = np.nanmedian(self.observed[:, known], axis=0)
        return np.where(missing, middle, self.observed)

    @functools.cached_property
    def ranks(self) -> NDArray[np.float64]:
        """Rank of each value among the distinct values of its column."""
        return np.column_stack([np.unique(column, return_inverse=True)[1] for column in self.values.T]).astype(float)

    @functools.cached_property
    def standardized(self) -> NDArray[np.float64]:
        """All views with mean 0 and standard deviation 1."""
        spread = self.values.std(axis=0)
        return (self.values - self.values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _views(name: str, column: pd.Series) -> list[tuple[View, NDArray[np.float64]]]:
    gaps = column.isna().to_numpy()
    # A flag that is the same for all rows says nothing.
    flags = [(View(name, is_gap=True), gaps.astype(float))] if gaps.any() and not gaps.all() else []
    # Booleans are described as categories: "married is True in 70%", not "married averages 0.7".
    described = Column(name, kind_of(column))
    if is_ordered(described.kind):
        return [(View(name, is_date=described.is_date), described.floats(column)), *flags]
    texts = column.astype(str)
    frequent = texts[~gaps].value_counts().index[:_MOST_CATEGORIES]
    return [*((View(name, str(value)), ((texts == value) & ~gaps).to_numpy(float)) for value in frequent), *flags]


def _read_back(text: str, is_date: bool) -> float:
    if is_date:
        return float(np.datetime64(text.replace(" ", "T"), "s").astype(np.int64)) / 86_400
    return float(text.replace(",", ""))
