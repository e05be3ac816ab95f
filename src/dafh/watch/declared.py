"""Subgroups that are watched within each group: which there are is settled once, before their labels are looked at."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.checks.parameters import fits_float
from dafh.exceptions import InputError
from dafh.frames import Table, check_attributes
from dafh.tables.bins import BinnedColumn, Binning, CategoryBins, NumberBins
from dafh.tables.values import DATE, DATE_FORMATS, as_categories, is_ordered
from dafh.text import clipped

# As in an audit: numbers and dates with more values than this are cut into quarters.
_MOST_VALUES = 12
# Codes of bins are bytes.
_MOST_BINS = 256
NOT_DECLARED = -1
"""Part of a row whose value was not there when subgroups were declared."""


@dataclass(frozen=True)
class DeclaredAttribute:
    """An attribute, and its values that are subgroups of every group."""

    bins: BinnedColumn
    present: tuple[int, ...]
    """Bins that had rows when the attribute was declared; only they are subgroups."""

    @classmethod
    def of(cls, column: "pd.Series[Any]") -> Self:
        """Declare the values of a column: numbers with many values by quarters, all else one by one."""
        cut = is_ordered(column) and column.nunique() > _MOST_VALUES
        values = column if cut else as_categories(column)
        bins = Binning.learn(values.to_frame(str(column.name)), most=4).columns[0]
        return cls(bins, tuple(np.unique(bins.codes(values)).tolist()))

    @property
    def is_cut(self) -> bool:
        """Whether values of the rows that declared it decide where one subgroup ends."""
        return isinstance(self.bins, NumberBins)

    def names(self) -> list[str]:
        """Name each subgroup."""
        return [f"{clipped(self.bins.name)} = {self.bins.words(code)}" for code in self.present]

    def parts(self, column: "pd.Series[Any]", first: int) -> NDArray[np.int16]:
        """Subgroup of each row, counted from `first` on, or `NOT_DECLARED`."""
        place = np.full(self.bins.n_bins, NOT_DECLARED, np.int16)
        place[list(self.present)] = np.arange(first, first + len(self.present))
        return place[self.bins.codes(column)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"cut": self.is_cut, "present": list(self.present), **asdict(self.bins)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Take what `to_dict` gave."""
        rest = {name: value for name, value in values.items() if name not in ("cut", "present")}
        fixed: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in rest.items()
        }
        bins: BinnedColumn = NumberBins(**fixed) if values["cut"] else CategoryBins(**fixed)
        present = tuple(values["present"])
        if not _is_sound(bins) or not all(type(code) is int and 0 <= code < bins.n_bins for code in present):
            raise ValueError("an attribute that declares subgroups is malformed")
        return cls(bins, present)


def _is_sound(bins: BinnedColumn) -> bool:
    """Whether bins that were read from a file are made as `Binning.learn` makes them."""
    if not isinstance(bins.name, str) or bins.n_bins > _MOST_BINS:
        return False
    if isinstance(bins, CategoryBins):
        named = all(isinstance(category, str) for category in bins.categories)
        return named and len(set(bins.categories)) == len(bins.categories) and isinstance(bins.has_other, bool)
    numbers = (*bins.cuts, *bins.centers)
    ordered = all(one < other for one, other in pairwise(bins.cuts))
    known = bins.kind in ("number", "flag") or bins.kind == DATE + DATE_FORMATS[0]
    return known and ordered and all(fits_float(n) for n in numbers) and len(bins.centers) == len(bins.cuts) + 1


@dataclass(frozen=True)
class DeclaredParts:
    """All parts of a group that are watched: all of it, then the subgroups of each attribute."""

    attributes: tuple[DeclaredAttribute, ...] = ()

    @classmethod
    def of(cls, sensitive_features: Table | None, n_rows: int) -> Self:
        """Declare every attribute of a table."""
        if sensitive_features is None:
            return cls()
        table = check_attributes(sensitive_features, n_rows)
        return cls(tuple(DeclaredAttribute.of(table.iloc[:, i]) for i in range(table.shape[1])))

    @property
    def names(self) -> list[str]:
        """Name of each part; the first is empty and means all rows of a group."""
        return ["", *(name for attribute in self.attributes for name in attribute.names())]

    def of_rows(self, sensitive_features: Table | None, n_rows: int) -> NDArray[np.int16]:
        """Part of each row by each attribute, (n, A), numbered as in `names`; `NOT_DECLARED` for none."""
        if not self.attributes:
            return np.zeros((n_rows, 0), np.int16)
        if sensitive_features is None:
            raise InputError(
                f"sensitive_features is missing: the column {self.attributes[0].bins.name!r} declares subgroups."
            )
        table = check_attributes(sensitive_features, n_rows)
        # Column by column, as they are counted later.
        parts, first = np.empty((n_rows, len(self.attributes)), np.int16, order="F"), 1
        for i, attribute in enumerate(self.attributes):
            if attribute.bins.name not in table.columns:
                raise InputError(f"sensitive_features has no column {attribute.bins.name!r}, which declares subgroups.")
            parts[:, i] = attribute.parts(table[attribute.bins.name], first)
            first += len(attribute.present)
        return parts

    def without_cuts(self, parts: NDArray[np.int16]) -> NDArray[np.int16]:
        """Parts for the rows that have declared them: quarters of a number do not count there.

        Where a quarter ends depends on these very rows, so that they are no fresh rows of it.
        """
        cut = [attribute.is_cut for attribute in self.attributes]
        return np.where(cut, np.int16(NOT_DECLARED), parts) if any(cut) else parts

    def to_list(self) -> list[dict[str, Any]]:
        """Plain values."""
        return [attribute.to_dict() for attribute in self.attributes]

    @classmethod
    def from_list(cls, values: Sequence[dict[str, Any]]) -> Self:
        """Take what `to_list` gave."""
        return cls(tuple(DeclaredAttribute.from_dict(value) for value in values))
