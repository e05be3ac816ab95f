"""Groups that have a name: values of sensitive attributes, and their intersections."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.column import Column
from dafh.exceptions import InputError
from dafh.frames import Table, check_attributes
from dafh.text import clipped

SMALLEST_SHOWN = 50
"""Named groups of fewer rows are tested, but charts and short lists leave them out unless they are shown to lose: the
interval of one with three rows is as wide as the axis."""


@dataclass(frozen=True)
class Attribute:
    """One attribute: the position of each row's subgroup among the names of all."""

    name: str
    codes: NDArray[np.int16]
    names: list[str]

    @classmethod
    def of(cls, column: "pd.Series[Any]") -> "Attribute":
        """Divide rows by the values of a column, numbers with many values by quarters; a gap is a value too."""
        divided = Column.of_subgroups(column)
        return cls(clipped(divided.name), divided.subgroup_codes(column), divided.subgroups)


@dataclass(frozen=True)
class NamedGroups:
    """All groups that attributes name, alone and intersected."""

    attributes: list[Attribute]

    @classmethod
    def of(cls, sensitive_features: Table, n_rows: int) -> "NamedGroups":
        """Take any table of attributes with one row for each row of the data."""
        table = check_attributes(sensitive_features, n_rows)
        return cls([Attribute.of(table.iloc[:, i]) for i in range(table.shape[1])])

    def take(self, chosen: NDArray[Any]) -> "NamedGroups":
        """The same of some of the rows."""
        return NamedGroups([replace(attribute, codes=attribute.codes[chosen]) for attribute in self.attributes])

    def divisions(self, depth: int) -> Iterator[tuple[list[str], NDArray[np.int64]]]:
        """Names of the groups that up to `depth` attributes define together, and the number of each row's group.

        One pair for each combination of attributes. Only groups that have rows are named.
        """
        depth = min(depth, len(self.attributes))
        widest = sorted((len(attribute.names) for attribute in self.attributes), reverse=True)[:depth]
        if math.prod(widest) > 2**60:
            raise InputError(f"{depth} attributes have too many combinations to be intersected: lower depth.")
        for size in range(1, depth + 1):
            yield from map(_intersected, itertools.combinations(self.attributes, size))


def _intersected(chosen: tuple[Attribute, ...]) -> tuple[list[str], NDArray[np.int64]]:
    shape = [len(attribute.names) for attribute in chosen]
    cell = chosen[0].codes.astype(np.int64)
    for attribute in chosen[1:]:
        cell *= len(attribute.names)
        cell += attribute.codes
    if np.prod(shape) > len(cell):  # More combinations than rows: a table of all would be larger than the data.
        present, cell = np.unique(cell, return_inverse=True)
    else:
        occurs = np.bincount(cell, minlength=int(np.prod(shape))) > 0
        present, cell = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[cell]
    positions = np.unravel_index(present, shape)
    names = [[attribute.names[i] for i in values] for attribute, values in zip(chosen, positions, strict=True)]
    return [" & ".join(combination) for combination in zip(*names, strict=True)], cell
