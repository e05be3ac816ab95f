"""Conditions on one column, and their conjunctions: evaluate them on a table, simplify them, say them in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.column import Column
from dafh.columns.kinds import category_codes
from dafh.frames import MISSING, OTHER
from dafh.text import name_in_condition

# A condition shows a column's whole name, unless it would fill lines: two columns may differ in their last word only.
_NAME_WIDTH, _VALUE_WIDTH = 200, 40


@dataclass(frozen=True)
class Condition:
    """A condition on one column: an interval of numbers or dates, or a list of categories.

    Examples
    --------
    >>> Condition("age", "number", low=24.0, high=40.0)
    age is above 24, up to 40
    >>> Condition("country", "category", values=("PRT",), is_negated=True).holds(pd.Series(["PRT", "ESP", None]))
    array([False,  True,  True])
    """

    column: str
    kind: str
    """As in `Column`: ``number``, ``flag``, ``category``, or ``date`` with its format."""
    low: float | None = None
    """Values must be above this."""
    high: float | None = None
    """Values must not be above this."""
    with_missing: bool = False
    """Whether rows without a number or date satisfy the condition."""
    values: tuple[str, ...] = ()
    """Categories, sorted; a gap is the category ``(missing)``."""
    is_negated: bool = False
    """Whether rows must have none of the categories; categories that training rows did not have satisfy this."""

    @classmethod
    def of_bins(cls, column: Column, allowed: NDArray[np.bool_]) -> "Condition":
        """Describe the rows that fall into some bins of a column, which must be neighbours where there is an order."""
        if column.is_category:
            # The bin after those of the categories holds all that have none. Where it is allowed, the others are named.
            is_negated = bool(allowed[len(column.categories)])
            named = zip(column.categories, allowed[: len(column.categories)], strict=True)
            categories = tuple(value for value, is_allowed in named if is_allowed != is_negated)
            return cls(column.name, column.kind, values=categories, is_negated=is_negated)
        bins = np.flatnonzero(allowed[:-1])  # The last bin is for gaps.
        if not len(bins):
            return cls(column.name, column.kind, low=np.inf, with_missing=bool(allowed[-1]))
        low = column.cuts[bins[0] - 1] if bins[0] > 0 else None
        high = column.cuts[bins[-1]] if bins[-1] < len(column.cuts) else None
        return cls(column.name, column.kind, low, high, bool(allowed[-1]))

    @property
    def is_category(self) -> bool:
        """Whether the condition is about categories."""
        return self.kind == "category"

    @property
    def is_only_missing(self) -> bool:
        """Whether no number or date satisfies the condition."""
        return self.low is not None and (np.isinf(self.low) or (self.high is not None and self.low >= self.high))

    def holds(self, column: "pd.Series[Any]") -> NDArray[np.bool_]:
        """Whether each row satisfies the condition."""
        if self.is_category:
            codes, names = category_codes(column)
            # Code −1, the last entry, is a gap.
            is_listed = np.isin(np.array([*names, MISSING], object), np.array(self.values, object))
            return is_listed[codes] != self.is_negated
        numbers = Column(self.column, self.kind).floats(column)
        is_in = ~np.isnan(numbers)
        if self.low is not None:
            is_in &= numbers > self.low
        if self.high is not None:
            is_in &= numbers <= self.high
        return is_in | np.isnan(numbers) if self.with_missing else is_in

    def and_also(self, second: "Condition") -> "Condition":
        """Both conditions on the same column as one.

        Examples
        --------
        >>> Condition("age", "number", high=40.0).and_also(Condition("age", "number", low=24.0))
        age is above 24, up to 40
        >>> Condition("job", "category", values=("clerk", "cook")).and_also(
        ...     Condition("job", "category", values=("cook",), is_negated=True)
        ... )
        job is clerk
        """
        if self.is_category:
            return self._both_lists(second)
        lows = [limit for limit in (self.low, second.low) if limit is not None]
        highs = [limit for limit in (self.high, second.high) if limit is not None]
        return replace(
            self,
            low=max(lows, default=None),
            high=min(highs, default=None),
            with_missing=self.with_missing and second.with_missing,
        )

    def _both_lists(self, second: "Condition") -> "Condition":
        first, listed = self, set(second.values)
        if first.is_negated and second.is_negated:  # Neither in the one list nor in the other.
            return replace(first, values=tuple(sorted({*first.values, *listed})))
        if first.is_negated:
            first, listed = second, set(first.values)
        is_excluded = self.is_negated != second.is_negated
        values = tuple(sorted(value for value in set(first.values) if (value in listed) != is_excluded))
        return replace(first, values=values, is_negated=False)

    def __str__(self) -> str:
        """Say the condition in words."""
        return f"{name_in_condition(self.column, _NAME_WIDTH)} is {self._range()}"

    __repr__ = __str__

    def _range(self) -> str:
        if self.is_category:
            names = [_category_in_words(value, self.values) for value in self.values]
            if not names:
                return "anything" if self.is_negated else "none of the known values"
            return f"not {_any_of(names)}" if self.is_negated else _any_of(names)
        if self.is_only_missing:
            return "missing" if self.with_missing else "no number"
        write = Column(self.column, self.kind).write
        low, high = (None if limit is None else write(limit) for limit in (self.low, self.high))
        if low is None and high is None:
            return "anything" if self.with_missing else "not missing"
        words = f"{high} or less" if low is None else f"above {low}" if high is None else f"above {low}, up to {high}"
        return f"{words} or missing" if self.with_missing else words


def _category_in_words(value: str, values: Sequence[str]) -> str:
    if value == MISSING:
        return "missing"
    if value == OTHER:
        return repr(value)
    clipped = name_in_condition(value, _VALUE_WIDTH)
    # Two categories that look the same once they are clipped are written out.
    same_words = [each for each in values if name_in_condition(each, _VALUE_WIDTH) == clipped]
    return clipped if len(same_words) == 1 else repr(value)


def _any_of(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]


@dataclass(frozen=True)
class Region:
    """Rows that satisfy all of some conditions, with one condition for each column; everybody, if there is none.

    Examples
    --------
    >>> region = Region.of([Condition("age", "number", high=40.0), Condition("age", "number", low=24.0)])
    >>> region, region.n_conditions
    (age is above 24, up to 40, 1)
    >>> region.holds(pd.DataFrame({"age": [20, 30, 50]}))
    array([False,  True, False])
    """

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def of(cls, conditions: Sequence[Condition]) -> "Region":
        """Put conditions together; those on the same column become one."""
        by_column: dict[str, Condition] = {}
        for condition in conditions:
            previous = by_column.get(condition.column)
            by_column[condition.column] = condition if previous is None else previous.and_also(condition)
        return cls(tuple(by_column.values()))

    @property
    def n_conditions(self) -> int:
        """Number of conditions, one for each column."""
        return len(self.conditions)

    @property
    def columns(self) -> list[str]:
        """Names of the columns that decide."""
        return [condition.column for condition in self.conditions]

    def holds(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """Whether each row of a table with these columns lies in the region."""
        is_in = np.ones(len(table), bool)
        for condition in self.conditions:
            is_in &= condition.holds(table[condition.column])
        return is_in

    def __str__(self) -> str:
        """Say the region in words."""
        return " and ".join(map(str, self.conditions)) or "everybody"

    __repr__ = __str__


def first_match(is_in: Sequence[NDArray[np.bool_]], n_rows: int) -> NDArray[np.intp]:
    """Number of the first region that each row lies in; their number for everybody else.

    Examples
    --------
    >>> first_match([np.array([True, False, False]), np.array([True, True, False])], 3)
    array([0, 1, 2])
    """
    # From the last region to the first, so that earlier ones overwrite later ones.
    group = np.full(n_rows, len(is_in))
    for number in range(len(is_in) - 1, -1, -1):
        group[is_in[number]] = number
    return group
