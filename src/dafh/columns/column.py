"""One column of a table: what it holds, how a later table is read, its bins, and their words.

Schema, reader and encoder ask for the kind of a column; scorecards and rules for its bins; audits, the guard and the
monitor for the subgroups that an attribute names. All of them ask the same `Column`, so that a table means the same
to each.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.kinds import (
    DATE,
    MOST_VALUES,
    as_categories,
    as_kind,
    category_codes,
    is_date,
    is_ordered,
    kind_of,
    to_floats,
)
from dafh.frames import MISSING, OTHER
from dafh.text import clipped, name_in_condition, write_date, write_exactly

MOST_BINS = 128
"""256 were no better on Adult and Bank: neighbouring bins share what they know through the penalty."""
MOST_CATEGORIES = 60
"""Of a longer list, the rare categories share the last of so many places."""
# Letters of a category that are shown.
_WIDTH = 40


@dataclass(frozen=True)
class Column:
    """What is known of a column, in plain values: its kind, and the bins that training rows gave it.

    A column of numbers, flags or dates has bins between cuts, from the lowest values to the highest, then one for
    gaps. A column of categories has a bin for each, one for rare ones where the list is long, and one for those never
    seen; a gap is a category too. Bins are made without the labels: where a cut lies tells nothing about the rows that
    later judge a model.

    Examples
    --------
    >>> age = Column.learn(pd.Series([20, 30, 30, None], name="age"))
    >>> age.codes(pd.Series([25, 99, None]))
    array([1, 1, 2], dtype=uint8)
    >>> [age.words(code) for code in range(age.n_bins)]
    ['up to 20', 'above 20', 'missing']
    """

    name: str
    kind: str
    """``number``, ``flag``, ``category``, or ``date`` with the format of its dates."""
    cuts: tuple[float, ...] = ()
    """Ascending; a value that is not above a cut lies below it."""
    centers: tuple[float, ...] = ()
    """Mean value in each bin between cuts, one more than there are cuts."""
    has_gaps: bool = False
    """Whether numbers, flags or dates had gaps in training."""
    categories: tuple[str, ...] = ()
    """Those with a bin of their own, sorted."""
    has_other: bool = False
    """Whether rare categories share one more bin, where unseen ones then go too."""

    @classmethod
    def learn(
        cls,
        column: "pd.Series[Any]",
        kind: str | None = None,
        weight: NDArray[np.float64] | None = None,
        most: int = MOST_BINS,
        *,
        readable: bool = False,
    ) -> "Column":
        """Divide a column into bins of about the same number of rows; a value that many rows share has its own.

        Cuts lie at the roundest number between two neighbouring values. With `readable`, they may move further, by a
        little more than half a bin, to a number that people can remember.
        """
        unbinned = cls(str(column.name), kind or kind_of(column))
        if unbinned.is_category:
            categories, has_other = _frequent_categories(column)
            return replace(unbinned, categories=categories, has_other=has_other)
        values = unbinned.floats(column)
        is_gap = np.isnan(values)
        distinct, position = np.unique(values[~is_gap], return_inverse=True)
        if not len(distinct):
            return replace(unbinned, centers=(0.0,), has_gaps=True)
        mass = np.bincount(position, None if weight is None else weight[~is_gap]).astype(np.float64)
        first = _first_of_bins(mass, most)
        # Positions of the values on both sides of each cut.
        lower, upper = first[1:] - 1, first[1:]
        if readable:
            lower, upper = _around_cuts(mass, lower, upper, most)
        between = zip(distinct[lower].tolist(), distinct[upper].tolist(), strict=True)
        rounded = _midnight_between if unbinned.is_date else round_between
        cuts = tuple(dict.fromkeys(rounded(below, beyond) for below, beyond in between))
        if readable:
            first = np.append(0, np.searchsorted(distinct, cuts, side="right"))
        # Mean value of the rows in each bin. Rows of a bin may all have the weight 0.
        centers = np.add.reduceat(distinct * mass, first) / np.maximum(np.add.reduceat(mass, first), 1e-300)
        return replace(unbinned, cuts=cuts, centers=tuple(centers.tolist()), has_gaps=bool(is_gap.any()))

    @classmethod
    def of_subgroups(cls, column: "pd.Series[Any]") -> "Column":
        """Divide an attribute into the subgroups it names: numbers and dates of many values by quarters.

        Examples
        --------
        >>> Column.of_subgroups(pd.Series(range(20, 60), name="age")).subgroups
        ['age = up to 29', 'age = 29 to 39', 'age = 39 to 49', 'age = above 49']
        """
        kind = kind_of(column)
        if is_ordered(kind) and column.nunique() > MOST_VALUES:
            return cls.learn(column, kind, most=4)
        subgroups = cls.learn(column, "category")
        if kind != "number":
            return subgroups
        # As numbers, not as text: 4 comes before 10, and a gap last.
        ascending = sorted(subgroups.categories, key=lambda name: np.inf if name == MISSING else float(name))
        return replace(subgroups, categories=tuple(ascending))

    # ---- what it holds ----

    @property
    def is_category(self) -> bool:
        """Whether it holds categories, so that its bins have no order."""
        return self.kind == "category"

    @property
    def is_date(self) -> bool:
        """Whether it holds dates, which count in days since 1970."""
        return self.kind.startswith(DATE)

    def read(self, column: "pd.Series[Any]") -> "pd.Series[Any]":
        """Read a column of a data frame as this kind; a value of another kind is refused.

        Numbers are floats, dates are dates, flags nullable booleans, and categories text.
        """
        # Words such as "NA" are gaps in a text file, whose schema has replaced them; in a data frame they are text.
        if self.is_category:
            return as_categories(column)
        values = as_kind(column, self.kind)
        return values.astype("boolean") if self.kind == "flag" else values

    def floats(self, column: "pd.Series[Any]") -> NDArray[np.float64]:
        """Numbers, flags or dates as floats; gaps, and numbers too large to square, as NaN."""
        # Dates that are typed keep the calendar of their zone.
        typed = self.is_date and is_date(column)
        return to_floats(column if typed else as_kind(column, self.kind))

    # ---- bins ----

    @property
    def n_bins(self) -> int:
        """Number of bins, that for gaps, or for unseen categories, included."""
        return (len(self.categories) + self.has_other if self.is_category else len(self.centers)) + 1

    @property
    def gap(self) -> int | None:
        """Bin of gaps; None if there were none among categories."""
        if not self.is_category:
            return len(self.centers)
        return self.categories.index(MISSING) if MISSING in self.categories else None

    def codes(self, column: "pd.Series[Any]") -> NDArray[np.uint8]:
        """Bin of each row."""
        if self.is_category:
            codes, names = category_codes(column)
            bin_of = {category: code for code, category in enumerate(self.categories)}
            # Unseen categories share the bin of rare ones, or else have the one behind all others. Code −1 is a gap.
            bin_codes = [bin_of.get(name, len(bin_of)) for name in (*names, MISSING)]
            return np.array(bin_codes, np.uint8)[codes]
        values = self.floats(column)
        bins = np.searchsorted(np.array(self.cuts), values, side="left").astype(np.uint8)
        bins[np.isnan(values)] = len(self.centers)
        return bins

    # ---- words ----

    def words(self, code: int) -> str:
        """Name a bin; no two bins have the same name.

        Of numbers and dates: ``up to 24``, ``24 to 30`` (above the first, up to the second), ``above 30``,
        ``missing``. Of categories: the category, ``missing``, ``(other)`` or ``never seen``.
        """
        if code == self.gap:
            return "missing"
        if self.is_category:
            return self._category(code)
        if not self.cuts:
            return "any value"
        if code == 0:
            return f"up to {self.write(self.cuts[0])}"
        if code == len(self.cuts):
            return f"above {self.write(self.cuts[-1])}"
        return f"{self.write(self.cuts[code - 1])} to {self.write(self.cuts[code])}"

    def _category(self, code: int) -> str:
        if code >= len(self.categories):
            return OTHER if self.has_other and code == len(self.categories) else "never seen"
        category = self.categories[code]
        # Two long names that are clipped to the same text are written in full.
        same_text = [name for name in self.categories if clipped(name, _WIDTH) == clipped(category, _WIDTH)]
        return name_in_condition(category, _WIDTH) if len(same_text) == 1 else repr(category)

    def write(self, value: float) -> str:
        """Write a cut in the units of the column, with all its digits: who reads it gets the same bins."""
        if self.is_date:
            return write_date(value, 3 if value.is_integer() else 17)
        return write_exactly(value)

    # ---- subgroups ----

    @property
    def subgroups(self) -> list[str]:
        """Names of the bins that had rows in training, in audits, by the guard and by the monitor; gaps come last."""
        name = clipped(self.name)
        return [f"{name} = {MISSING if code == self.gap else self.words(code)}" for code in self._occurring()]

    def subgroup_codes(self, column: "pd.Series[Any]") -> NDArray[np.int16]:
        """Position of each row among `subgroups`; −1 for a value that training rows did not have."""
        occurring = self._occurring()
        position = np.full(self.n_bins, -1, np.int16)
        position[occurring] = np.arange(len(occurring))
        return position[self.codes(column)]

    def _occurring(self) -> list[int]:
        last = self.n_bins - (self.is_category or not self.has_gaps)
        return sorted(range(last), key=lambda code: code == self.gap)

    # ---- plain values ----

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Column":
        """Take what `dataclasses.asdict` gave, through JSON too; a ValueError for what no column is."""
        return msgspec.convert(values, cls)


def _frequent_categories(column: "pd.Series[Any]") -> tuple[tuple[str, ...], bool]:
    """Names of the categories, sorted; of a long list the most frequent ones, and whether there are others."""
    codes, names = category_codes(column)
    counts: Counter[str] = Counter()
    # A gap, code −1, is a category as well; a text "(missing)" would be the same one.
    for category, count in zip([MISSING, *names], np.bincount(codes + 1, minlength=len(names) + 1), strict=True):
        counts[category] += int(count)
    occurring = sorted(category for category, count in counts.items() if count)
    if len(occurring) < MOST_CATEGORIES:
        return tuple(occurring), False
    # As in scikit-learn: of categories that are equally frequent, those last in the alphabet are kept.
    return tuple(sorted(sorted(occurring, key=counts.__getitem__)[-(MOST_CATEGORIES - 1) :])), True


def _first_of_bins(mass: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """First value of each bin: every value is one where they are few, else bins have about the same mass.

    A value that many rows share fills one bin, and takes no room from the others.
    """
    if len(mass) <= most:
        return np.arange(len(mass))
    capped = np.minimum(mass, mass.sum() / most)
    middle = (np.cumsum(capped) - capped / 2) / capped.sum()
    return np.unique((middle * most).astype(int), return_index=True)[1]


def _around_cuts(
    mass: NDArray[np.float64], below: NDArray[np.intp], above: NDArray[np.intp], most: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of values around each cut, as far away as a little more than half of a bin's mass on either side.

    Values with more mass than that, such as the 0 of a column that is mostly 0, stay alone in their bin. Neighbouring
    cuts reach a little into each other's range, so that no round number is missed between them; cuts that choose the
    same number become one.
    """
    reach = 0.6 * np.minimum(mass, mass.sum() / most).sum() / most
    up_to = np.cumsum(mass)
    lower = np.searchsorted(up_to, up_to[below] - reach, side="left")
    upper = np.searchsorted(up_to, up_to[below] + reach, side="right")
    return np.minimum(lower, below), np.maximum(upper, above).clip(max=len(mass) - 1)


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


def _midnight_between(below: float, beyond: float) -> float:
    """Cut dates at midnight where one lies between them, else at the earlier one, which is a whole second."""
    midnight = float(np.ceil(below))
    return midnight if midnight < beyond else below
