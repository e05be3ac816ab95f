"""Columns of bins packed into fewer columns, so that sums over rows take fewer passes.

Three columns with 3, 4 and 5 bins are one column with 60 codes: whoever sums by code has summed by each of the three,
and by each pair of them. Codes that no row has are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Codes of a packed column, at most. With twice as many there are fewer passes over the rows but longer ones over codes:
# a little faster on 30,000 rows, slower on 700.
_MOST_CODES = 64
# A column of more bins than this with one or two coefficients is multiplied as numbers, and not counted.
_FEW_BINS, _FEW_COEFFICIENTS = 16, 2


@dataclass(frozen=True, eq=False)
class PackedColumn:
    """What each code of a column counts for some of the coefficients."""

    table: NDArray[np.float64]
    """(codes, k)."""
    places: NDArray[np.intp]
    """Numbers of the k coefficients."""
    first_step: int | None
    """Where the coefficients for steps from code to code begin, if there are some: sums by code then give theirs by
    adding up, in a tenth of the time of a matrix product."""

    @classmethod
    def of(cls, table: NDArray[np.float64], places: NDArray[np.intp]) -> "PackedColumn":
        """Look whether a table has steps."""
        n_codes, n_coefficients = table.shape
        steps = np.tri(n_codes, max(n_codes - 2, 0), -1)
        steps[-1:] = 0.0
        for first in range(n_coefficients - steps.shape[1] + 1 if n_codes > 3 else 0):
            if np.array_equal(table[:, first : first + steps.shape[1]], steps):
                return cls(table, places, first)
        return cls(table, places, None)

    @property
    def is_number(self) -> bool:
        """Whether rows are better multiplied as numbers than counted by code."""
        return self.table.shape[0] > _FEW_BINS and self.table.shape[1] <= _FEW_COEFFICIENTS

    def sums(self, by_code: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums by coefficient, (..., k, r), from sums by code, (..., codes, r)."""
        if self.first_step is None:
            return self.table.T @ by_code
        sums = np.empty((*by_code.shape[:-2], self.table.shape[1], by_code.shape[-1]))
        steps = slice(self.first_step, self.first_step + len(self.table) - 2)
        # A step counts for all codes beyond it but the last one, which is for gaps.
        sums[..., steps, :] = by_code[..., -2:0:-1, :].cumsum(axis=-2)[..., ::-1, :]
        for rest in (slice(0, steps.start), slice(steps.stop, self.table.shape[1])):
            sums[..., rest, :] = self.table[:, rest].T @ by_code
        return sums


@dataclass(frozen=True, eq=False)
class Packed:
    """Codes by row and packed column, (n, columns), and what they count."""

    codes: NDArray[Any]
    columns: tuple[PackedColumn, ...]


def pack(codes: NDArray[Any], tables: Sequence[NDArray[np.float64]], places: Sequence[slice]) -> Packed:
    """Pack columns of few bins together, the longest first; those of many bins stay alone."""
    packs: list[list[int]] = []
    sizes: list[int] = []
    present = [np.flatnonzero(np.bincount(codes[:, column], minlength=1)) for column in range(len(tables))]
    for column in sorted(range(len(tables)), key=lambda column: -len(present[column])):
        if not tables[column].shape[1]:
            continue
        size = max(len(present[column]), 1)
        fits = [number for number, filled in enumerate(sizes) if filled * size <= _MOST_CODES]
        if fits:
            packs[fits[0]].append(column)
            sizes[fits[0]] *= size
        else:
            packs.append([column])
            sizes.append(size)
    if all(len(members) == 1 for members in packs) and len(packs) == len(tables):
        # Nothing is packed: no second copy of the codes.
        return Packed(codes, unpacked(tables, places))
    packed = np.empty((len(codes), len(packs)), np.uint8, order="F")
    columns = []
    for number, members in enumerate(packs):
        if len(members) == 1:
            packed[:, number] = codes[:, members[0]]
            columns.append(PackedColumn.of(tables[members[0]], np.r_[places[members[0]]]))
        else:
            bins = [present[column] for column in members]
            packed[:, number] = _joint_codes(codes[:, members], bins)
            table = _joint_table([tables[column][b] for column, b in zip(members, bins, strict=True)])
            columns.append(PackedColumn(table, np.concatenate([np.r_[places[column]] for column in members]), None))
    return Packed(packed, tuple(columns))


def unpacked(tables: Sequence[NDArray[np.float64]], places: Sequence[slice]) -> tuple[PackedColumn, ...]:
    """Every column alone: for rows of which not all are seen at once, so that any code may come."""
    return tuple(PackedColumn.of(table, np.r_[place]) for table, place in zip(tables, places, strict=True))


def _joint_codes(codes: NDArray[Any], bins: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    """Number of each row's combination of bins; only those that there are count."""
    joint = np.zeros(len(codes), np.intp)
    for column, some in enumerate(bins):
        number = np.zeros(int(some[-1]) + 1, np.intp)
        number[some] = np.arange(len(some))
        joint = joint * len(some) + number[codes[:, column]]
    return joint


def _joint_table(tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """What each combination counts: the last column changes fastest."""
    joint = np.zeros((1, 0))
    for table in tables:
        joint = np.hstack([np.repeat(joint, len(table), axis=0), np.tile(table, (len(joint), 1))])
    return joint
