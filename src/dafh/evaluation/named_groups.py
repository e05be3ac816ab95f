"""Groups that have a name: values of sensitive attributes, and their intersections."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.exceptions import InputError
from dafh.frames import MISSING, OTHER, Table, check_attributes
from dafh.tables.values import DATE, category_codes, is_ordered, to_floats, typed_kind
from dafh.text import clipped, write_apart

# Numbers and dates with more values than this are cut into quarters: a group for each age would have few rows each.
_MOST_VALUES = 12
# Of more categories than this, the rare ones are put together.
_MOST_CATEGORIES = 50
SMALLEST_SHOWN = 50
"""Named groups of fewer rows are tested, but charts and short lists leave them out unless they are shown to lose: the
interval of one with three rows is as wide as the axis."""


@dataclass(frozen=True)
class Attribute:
    """One attribute: the position of each row's value among the names of all values."""

    name: str
    codes: NDArray[np.int32]
    values: list[str]

    @classmethod
    def of(cls, column: pd.Series) -> "Attribute":
        """Number the values of a column; a missing one is a value too."""
        if is_ordered(column) and column.nunique() > _MOST_VALUES:
            codes, values = _quarters(column)
        else:
            codes, values = _categories(column)
        return cls(clipped(column.name), codes.astype(np.int32), values)


@dataclass(frozen=True)
class NamedGroups:
    """All groups that attributes name, alone and intersected."""

    attributes: list[Attribute]

    @classmethod
    def of(cls, sensitive_features: Table, n_rows: int) -> "NamedGroups":
        """Take any table of attributes with one row for each row of the data."""
        table = check_attributes(sensitive_features, n_rows)
        return cls([Attribute.of(table.iloc[:, i]) for i in range(table.shape[1])])

    def cells(self, depth: int) -> Iterator[tuple[list[str], NDArray[np.int64]]]:
        """Names of the groups that up to `depth` attributes define together, and the number of each row's group.

        One pair for each combination of attributes. Only groups that have rows are named.
        """
        depth = min(depth, len(self.attributes))
        widest = sorted((len(attribute.values) for attribute in self.attributes), reverse=True)[:depth]
        if math.prod(widest) > 2**60:
            raise InputError(f"{depth} attributes have too many combinations to be intersected: lower depth.")
        for chosen in _combinations(self.attributes, depth):
            yield _cells(chosen)

    def tabulate(self, outcome: NDArray[np.intp], n_outcomes: int, weight: NDArray[Any], depth: int) -> "Tabulation":
        """Sum weights of every named group and outcome; groups without weight are left out."""
        names, totals = [], []
        for some, cell in self.cells(depth):
            total = np.bincount(cell * n_outcomes + outcome, weight, minlength=len(some) * n_outcomes)
            total = total.reshape(-1, n_outcomes)
            kept = np.flatnonzero(total.sum(axis=1) > 0)
            names += [some[i] for i in kept]
            totals.append(total[kept])
        return Tabulation(names, np.concatenate(totals))


@dataclass(frozen=True)
class Tabulation:
    """Named groups with what falls to each outcome."""

    names: list[str]
    total: NDArray[Any]
    """Weight of each group and outcome, (groups, outcomes)."""


def _combinations(attributes: list[Attribute], depth: int) -> Iterator[tuple[Attribute, ...]]:
    for size in range(1, depth + 1):
        yield from itertools.combinations(attributes, size)


def _cells(chosen: tuple[Attribute, ...]) -> tuple[list[str], NDArray[np.int64]]:
    shape = [len(attribute.values) for attribute in chosen]
    cell = chosen[0].codes.astype(np.int64)
    for attribute in chosen[1:]:
        cell *= len(attribute.values)
        cell += attribute.codes
    if np.prod(shape) > len(cell):  # More combinations than rows: a table of all would be larger than the data.
        present, cell = np.unique(cell, return_inverse=True)
    else:
        occurs = np.bincount(cell, minlength=int(np.prod(shape))) > 0
        present, cell = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[cell]
    positions = np.unravel_index(present, shape)
    parts = [[f"{a.name} = {a.values[i]}" for i in position] for a, position in zip(chosen, positions, strict=True)]
    return [" & ".join(name) for name in zip(*parts, strict=True)], cell


def _quarters(column: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    """Cut a number or a date at its quartiles; every quarter is named by the smallest and largest value in it."""
    numbers = to_floats(column)
    known = np.isfinite(numbers)
    # Where one value is frequent, quartiles coincide or lie between two values: then there are fewer than four parts.
    cuts = np.unique(np.quantile(numbers[known], [0.25, 0.5, 0.75])) if known.any() else np.array([])
    parts, place = np.unique(np.searchsorted(cuts, numbers[known], side="left"), return_inverse=True)
    codes = np.full(len(numbers), len(parts), np.intp)
    codes[known] = place
    members = [numbers[codes == part] for part in range(len(parts))]
    # All bounds at once: with digits for one quarter alone, two neighbours may read the same.
    bounds = write_apart([end(values) for values in members for end in (np.min, np.max)], is_date=_holds_dates(column))
    names = [f"{low} to {high}" for low, high in zip(bounds[::2], bounds[1::2], strict=True)]
    return codes, [*names, MISSING]


def _holds_dates(column: pd.Series) -> bool:
    return (typed_kind(column) or "").startswith(DATE)


def _categories(column: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    if _holds_dates(column):
        codes, days = pd.factorize(to_floats(column), sort=True)
        names = write_apart(days.tolist(), is_date=True)
    else:
        codes, full = category_codes(column)
        names = [clipped(name) for name in full]
    # A text "(missing)" is a gap that somebody has written out.
    gaps = [i for i, name in enumerate(names) if name == MISSING]
    order = np.setdiff1d(np.arange(len(names)), gaps)
    listed = [names[i] for i in order]
    if len(order) > _MOST_CATEGORIES:
        rows = np.bincount(codes[codes >= 0], minlength=len(names))[order]
        order = np.sort(order[np.argsort(-rows, kind="stable")[: _MOST_CATEGORIES - 1]])
        listed = [*(names[i] for i in order), OTHER]
    place = np.full(len(names) + 1, len(order), np.intp)  # What is not in `order` is put together.
    place[order] = np.arange(len(order))
    place[[*gaps, -1]] = len(listed)  # Code −1 is a missing value.
    return place[codes], [*listed, MISSING]
