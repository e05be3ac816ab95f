"""Subgroups that are watched within each group: which there are is settled once, before their labels are looked at."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dafh.exceptions import InputError
from dafh.frames import Table, check_attributes
from dafh.tables.column import Column

NOT_DECLARED = -1
"""Part of a row whose value was not there when subgroups were declared."""


@dataclass(frozen=True)
class DeclaredParts:
    """All parts of a group that are watched: all of it, then the subgroups of each attribute."""

    attributes: tuple[Column, ...] = ()

    @classmethod
    def of(cls, sensitive_features: Table | None, n_rows: int) -> Self:
        """Declare every attribute of a table."""
        if sensitive_features is None:
            return cls()
        table = check_attributes(sensitive_features, n_rows)
        return cls(tuple(Column.of_subgroups(table.iloc[:, i]) for i in range(table.shape[1])))

    @property
    def names(self) -> list[str]:
        """Name of each part; the first is empty and means all rows of a group."""
        return ["", *(name for column in self.attributes for name in column.subgroups)]

    def of_rows(self, sensitive_features: Table | None, n_rows: int) -> NDArray[np.int16]:
        """Part of each row by each attribute, (n, A), numbered as in `names`; `NOT_DECLARED` for none."""
        if not self.attributes:
            return np.zeros((n_rows, 0), np.int16)
        if sensitive_features is None:
            raise InputError(f"sensitive_features is missing: {self.attributes[0].name!r} declares subgroups.")
        table = check_attributes(sensitive_features, n_rows)
        # Column by column, as they are counted later.
        parts, first = np.empty((n_rows, len(self.attributes)), np.int16, order="F"), 1
        for i, column in enumerate(self.attributes):
            if column.name not in table.columns:
                raise InputError(f"sensitive_features has no column {column.name!r}, which declares subgroups.")
            codes = column.subgroup_codes(table[column.name])
            parts[:, i] = np.where(codes < 0, NOT_DECLARED, first + codes)
            first += len(column.subgroups)
        return parts

    def without_cuts(self, parts: NDArray[np.int16]) -> NDArray[np.int16]:
        """Parts for the rows that have declared them: quarters of a number do not count there.

        Where a quarter ends depends on these very rows, so that they are no fresh rows of it.
        """
        cut = [not column.is_category for column in self.attributes]
        return np.where(cut, np.int16(NOT_DECLARED), parts) if any(cut) else parts

    def to_list(self) -> list[dict[str, Any]]:
        """Plain values."""
        return [asdict(column) for column in self.attributes]

    @classmethod
    def from_list(cls, values: Sequence[dict[str, Any]]) -> Self:
        """Take what `to_list` gave."""
        return cls(tuple(Column.from_dict(value) for value in values))
