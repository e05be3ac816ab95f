"""Columns as numbers that can be put into words."""

import functools
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.tables.values import DATE, to_floats, typed_kind
from dafh.text import clipped

# Of more categories than this in a column, only the frequent ones are described.
_MOST_CATEGORIES = 20
# A date is written to the day with up to this many digits, and to the second with more.
_DAY_DIGITS = 4


@dataclass(frozen=True)
class View:
    """One number per row, made from a column, and how to speak about it."""

    column: str
    category: str | None = None
    is_date: bool = False
    is_gap: bool = False

    @property
    def is_flag(self) -> bool:
        """Whether the number is 0 or 1: one category, or a gap."""
        return self.category is not None or self.is_gap

    def holds(self, yes: bool) -> str:
        """Say that a flag holds, or that it does not."""
        if self.is_gap:
            return f"{self.column} is {'missing' if yes else 'known'}"
        return f"{self.column} {'is' if yes else 'is not'} {clipped(self.category)}"

    def amount(self, value: float, digits: int = 3) -> str:
        """Write a number or a date with a few digits."""
        if self.is_date:
            when = np.datetime64(round(float(value) * 86_400), "s")
            return str(when.astype("datetime64[D]")) if digits <= _DAY_DIGITS else str(when).replace("T", " ")
        if abs(value) >= 1e15:
            return f"{value:.{digits}g}"
        whole = len(f"{abs(value):.0f}")  # At least as many digits as stand before the point: 1,234, not 1.23e+03.
        return f"{value:,.{max(digits - whole, 0)}f}" if whole >= digits else f"{value:.{digits}g}"

    def bound(self, value: float, beyond: float) -> str:
        """Write a value with so many digits that it does not reach the next one beyond it."""
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
    values: NDArray[np.float64]

    @classmethod
    def of(cls, table: pd.DataFrame) -> "Described":
        """Take every column apart into numbers, categories and gaps."""
        views: list[View] = []
        values: list[NDArray[np.float64]] = []
        for position, name in enumerate(table.columns):
            for view, numbers in _views(clipped(name), table.iloc[:, position]):
                views.append(view)
                values.append(numbers)
        return cls(views, np.column_stack(values))

    @functools.cached_property
    def ranks(self) -> NDArray[np.float64]:
        """Position of each value among the different ones of its column, which single precision tells apart."""
        return np.column_stack([np.unique(column, return_inverse=True)[1] for column in self.values.T]).astype(float)

    @functools.cached_property
    def standardized(self) -> NDArray[np.float64]:
        """All views with mean 0 and standard deviation 1."""
        spread = self.values.std(axis=0)
        return (self.values - self.values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _views(name: str, column: pd.Series) -> list[tuple[View, NDArray[np.float64]]]:
    gaps = column.isna().to_numpy()
    found = [(View(name, is_gap=True), gaps.astype(float))] if gaps.any() and not gaps.all() else []
    kind = typed_kind(column) or "category"
    if kind != "category":
        numbers = to_floats(column)
        known = numbers[~np.isnan(numbers)]
        filled = np.where(np.isnan(numbers), np.median(known) if len(known) else 0.0, numbers)
        return [(View(name, is_date=kind.startswith(DATE)), filled), *found]
    texts = column[~gaps].astype(str)
    frequent = texts.value_counts().index[:_MOST_CATEGORIES]
    return [*((View(name, str(v)), ((column.astype(str) == v) & ~gaps).to_numpy(float)) for v in frequent), *found]


def _read_back(text: str, is_date: bool) -> float:
    if is_date:
        return float(np.datetime64(text.replace(" ", "T"), "s").astype(np.int64)) / 86_400
    return float(text.replace(",", ""))
