"""Designs: what a penalised regression is linear in, and the sums over rows that it needs.

A design turns coefficients into logits, and sums gradients and curvatures over its rows. Both kinds have an intercept
as their first coefficient:

- `BinnedDesign`: every column is a bin, and a table by column says what a bin counts for each coefficient;
- `DenseDesign`: the columns of an array, as they are; `Standardization` puts them on one scale.

The tables come from `make_basis`: the shapes that points may take. A smooth basis has, for a column of numbers, one
coefficient for the line through the middles of its bins and one for each step from bin to bin. Steps are small where
neighbours are alike, so that a strong penalty leads to a straight line and not to a constant, and finer bins cost
nothing. A plain basis has the line only. Categories have one coefficient each, and so have gaps.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dafh.columns.bins import Binning
from dafh.columns.column import Column

# Rows that are multiplied at a time: there is no second copy of all rows then.
_BLOCK_ROWS = 2**16
_PRODUCT_ROWS = 2**12
# With fewer coefficients for each column that has some, a matrix product takes less time than counting pairs of bins.
_PRODUCT_PER_COLUMN = 7


class DenseDesign:
    """The columns of an array as they are, after an intercept.

    Examples
    --------
    >>> design = DenseDesign(np.array([[1.0], [3.0]]))
    >>> design.curvature(np.ones(2))
    array([[ 2.,  4.],
           [ 4., 10.]])
    """

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients, the intercept included."""
        return self.X.shape[1] + 1

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: NDArray[Any] | slice) -> "DenseDesign":
        """Return some of the rows."""
        return DenseDesign(self.X[rows])

    def dense(self) -> NDArray[np.float64]:
        """What each row counts for each coefficient, (n, p)."""
        return np.column_stack([np.ones(len(self)), self.X])

    def logits(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (p, m)."""
        return self.X @ coefficients[1:] + coefficients[0]

    def grouped_logits(self, coefficients: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (K, p, m), by the coefficients of each row's group."""
        # All groups in one matrix product: for the few groups there are, this beats gathering the rows of each.
        every = np.tensordot(self.X, coefficients[:, 1:], axes=(1, 1))[np.arange(len(group)), group]
        return every + coefficients[group, 0]

    def gradient(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of row × residual, (p, m), for residuals (n, m)."""
        return np.vstack([residual.sum(axis=0), self.X.T @ residual])

    def gradients(self, residual: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of row × residual over each part of the rows, (parts, p, m), for parts (n,)."""
        return np.stack([self.take(rows).gradient(residual[rows]) for rows in _members(part, n_parts)])

    def curvature(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of weight × row × row, (p, p), for weights (n,)."""
        total = np.zeros((self.n_coefficients, self.n_coefficients))
        for first in range(0, len(self), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            rows = self.take(block).dense()
            total += rows.T @ (weight[block, None] * rows)
        return total

    def curvatures(self, weight: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of weight × row × row over each part of the rows, (parts, p, p)."""
        return np.stack([self.take(rows).curvature(weight[rows]) for rows in _members(part, n_parts)])


def _members(part: NDArray[np.integer], n_parts: int) -> Iterator[NDArray[np.bool_] | slice]:
    """Rows of each part."""
    return iter([slice(None)]) if n_parts == 1 else (part == number for number in range(n_parts))


class BinnedDesign:
    """Bins by column, and for each column a table of what its bins count for each of its coefficients.

    Parameters
    ----------
    codes : array of shape (n, d)
        Bin of each row in each column; best stored column by column.
    tables : sequence of arrays of shape (bins, coefficients)

    Examples
    --------
    >>> design = BinnedDesign(np.array([[0], [1], [2]], np.uint8), [np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])])
    >>> design.logits(np.array([[1.0], [10.0], [20.0]])).ravel()
    array([11., 21.,  1.])
    >>> design.gradient(np.ones((3, 1))).ravel()
    array([3., 1., 1.])
    """

    def __init__(self, codes: NDArray[Any], tables: Sequence[NDArray[np.float64]]) -> None:
        self.codes = codes
        self.tables = list(tables)
        first = np.cumsum([1, *(table.shape[1] for table in tables)])
        self.places = [slice(a, b) for a, b in pairwise(first)]

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients, the intercept included."""
        return self.places[-1].stop if self.places else 1

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[Any] | slice) -> "BinnedDesign":
        """Return some of the rows."""
        return BinnedDesign(np.asfortranarray(self.codes[rows]), self.tables)

    def dense(self) -> NDArray[np.float64]:
        """What each row counts for each coefficient, (n, p)."""
        columns = [table[self.codes[:, column]] for column, table in enumerate(self.tables) if table.shape[1]]
        return np.hstack([np.ones((len(self), 1)), *columns])

    def points(self, coefficients: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """What each bin of each column adds to the logits, (bins, m) by column."""
        return [table @ coefficients[place] for table, place in zip(self.tables, self.places, strict=True)]

    def logits(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (p, m)."""
        return sum_points(self.codes, self.points(coefficients), coefficients[0])

    def grouped_logits(self, coefficients: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (K, p, m), by the coefficients of each row's group."""
        logits = coefficients[:, 0].take(group, axis=0)
        for column, (table, place) in enumerate(zip(self.tables, self.places, strict=True)):
            points = (table @ coefficients[:, place]).reshape(-1, coefficients.shape[2])
            logits += points.take(group * len(table) + self.codes[:, column], axis=0)
        return logits

    def gradient(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of row × residual, (p, m)."""
        return self.gradients(residual, np.zeros(len(self), np.uint8), 1)[0]

    def gradients(self, residual: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of row × residual over each part of the rows, (parts, p, m)."""
        gradients = np.empty((n_parts, self.n_coefficients, residual.shape[1]))
        for output, values in enumerate(residual.T):
            gradients[:, 0, output] = np.bincount(part, values, n_parts)
            for column, (table, place) in enumerate(zip(self.tables, self.places, strict=True)):
                if not table.shape[1]:
                    continue
                by_bin = np.bincount(self._by_part(column, part), values, n_parts * len(table))
                gradients[:, place, output] = by_bin.reshape(n_parts, -1) @ table
        return gradients

    def curvature(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of weight × row × row, (p, p)."""
        return self.curvatures(weight, np.zeros(len(self), np.uint8), 1)[0]

    def curvatures(self, weight: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of weight × row × row over each part of the rows, (parts, p, p).

        A row has one bin of each column, so that of two columns the rows with each pair of bins are counted: for tens
        of columns with a hundred bins this takes a tenth of the time of a matrix product. For many columns with few
        coefficients it is the other way round.
        """
        n_columns = sum(table.shape[1] > 0 for table in self.tables)
        if self.n_coefficients < _PRODUCT_PER_COLUMN * n_columns:
            return np.stack([self._product(weight, rows) for rows in _members(part, n_parts)])
        total = np.zeros((n_parts, self.n_coefficients, self.n_coefficients))
        total[:, 0, 0] = np.bincount(part, weight, n_parts)
        for column, (table, own) in enumerate(zip(self.tables, self.places, strict=True)):
            if not table.shape[1]:
                continue
            code = self._by_part(column, part)
            by_bin = np.bincount(code, weight, n_parts * len(table)).reshape(n_parts, -1)
            total[:, 0, own] = total[:, own, 0] = by_bin @ table
            total[:, own, own] = table.T @ (by_bin[:, :, None] * table)
            for before in range(column):
                other, theirs = self.tables[before], self.places[before]
                if not other.shape[1]:
                    continue
                pair = code * len(other) + self.codes[:, before]
                by_pair = np.bincount(pair, weight, n_parts * len(table) * len(other))
                across = table.T @ by_pair.reshape(n_parts, len(table), len(other)) @ other
                total[:, own, theirs] = across
                total[:, theirs, own] = across.swapaxes(1, 2)
        return total

    def _product(self, weight: NDArray[np.float64], rows: NDArray[np.bool_] | slice) -> NDArray[np.float64]:
        """Sum of weight × row × row by a matrix product, of a few rows at a time."""
        total = np.zeros((self.n_coefficients, self.n_coefficients))
        numbers = np.arange(len(self))[rows]
        for first in range(0, len(numbers), _PRODUCT_ROWS):
            block = numbers[first : first + _PRODUCT_ROWS]
            values = self.take(block).dense()
            values *= np.sqrt(weight[block, None])
            total += values.T @ values
        return total

    def _by_part(self, column: int, part: NDArray[np.integer]) -> NDArray[np.integer]:
        """Bin of each row in a column, numbered on from part to part."""
        return part.astype(np.intp) * len(self.tables[column]) + self.codes[:, column]


Design = DenseDesign | BinnedDesign
"""Rows that a penalised regression can be fitted on."""


def sum_points(
    codes: NDArray[Any], points: Sequence[NDArray[np.float64]], intercept: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Add up the points of each row's bins, (n, m)."""
    logits = np.empty((len(codes), len(intercept)))
    for output in range(len(intercept)):
        total = np.full(len(codes), intercept[output])
        for column, table in enumerate(points):
            if table[:, output].any():
                total += table[:, output].take(codes[:, column])
        logits[:, output] = total
    return logits


class Basis(NamedTuple):
    """Tables of a `BinnedDesign`, and the block of each coefficient, by which strengths are chosen."""

    tables: list[NDArray[np.float64]]
    block: NDArray[np.intp]
    """−1 for the intercept."""


def make_basis(binning: Binning, codes: NDArray[Any], weight: NDArray[np.float64], *, smooth: bool) -> Basis:
    """Make the basis for bins that training rows fall into.

    Parameters
    ----------
    binning : Binning
    codes : array of shape (n, d)
        Bins of the training rows.
    weight : array of shape (n,)
    smooth : bool
        Whether a column of numbers has steps beside its line.

    Examples
    --------
    >>> import pandas as pd
    >>> binning = Binning.learn(pd.DataFrame({"age": [20.0, 30.0, 40.0]}))
    >>> basis = make_basis(binning, np.array([[0], [1], [2]]), np.ones(3), smooth=True)
    >>> basis.tables[0].round(2)
    array([[-1.22,  0.  ,  0.  ],
           [ 0.  ,  1.  ,  0.  ],
           [ 1.22,  1.  ,  1.  ],
           [ 0.  ,  0.  ,  0.  ]])
    >>> basis.block
    array([-1,  0,  1,  1])
    """
    tables, block = [], [-1]
    n_blocks = 0
    for position, column in enumerate(binning.columns):
        mass = np.bincount(codes[:, position], weight, column.n_bins).astype(np.float64)
        parts = _parts(column, mass, smooth=smooth)
        for part in parts:
            block += [n_blocks] * part.shape[1]
            n_blocks += 1
        tables.append(np.hstack(parts) if parts else np.zeros((column.n_bins, 0)))
    return Basis(tables, np.array(block, np.intp))


def _parts(column: Column, mass: NDArray[np.float64], *, smooth: bool) -> Sequence[NDArray[np.float64]]:
    """Tables of one column, one for each block of its coefficients."""
    n_bins = column.n_bins
    if column.is_category:
        return [np.eye(n_bins)[:, :-1]]
    parts = []
    if n_bins > 2:
        parts.append(_line(column.centers, mass))
    if smooth and n_bins > 3:  # Two bins differ by one number, and the line has it.
        steps = np.tri(n_bins, n_bins - 2, -1)
        steps[-1] = 0.0  # Gaps lie on neither side of a cut.
        parts.append(steps)
    if column.has_gaps:
        parts.append(np.eye(n_bins)[:, -1:])
    return parts


def _line(centers: Sequence[float], mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Middles of the bins, standardised; gaps are at the mean."""
    values, share = np.array(centers), mass[:-1] / max(mass[:-1].sum(), 1e-300)
    middle = share @ values
    spread = np.sqrt(share @ (values - middle) ** 2)
    return np.append((values - middle) / (spread or 1.0), 0.0)[:, None]


class Standardization(NamedTuple):
    """Center and scale by which columns were standardised."""

    center: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, X: NDArray[Any], weight: NDArray[np.float64]) -> "Standardization":
        """Mean and standard deviation of every column; a constant column keeps its scale."""
        center, deviation = mean_and_deviation(X, weight)
        return cls(center, np.where(deviation > 0, deviation, 1.0))

    def of_rows(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return rows as standardised columns."""
        return (X - self.center) / self.scale

    def stacked(self, intercept: NDArray[np.float64], coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients (p + 1, m) for standardised columns, intercepts first, of a model for columns as they are."""
        return np.vstack([intercept + coef @ self.center, (coef * self.scale).T])

    def unstacked(self, coefficients: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Undo `stacked`: intercepts (m,) and coefficients (m, p) for columns as they are."""
        coef = (coefficients[1:] / self.scale[:, None]).T
        return coefficients[0] - coef @ self.center, coef


def mean_and_deviation(X: NDArray[Any], weight: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean and standard deviation of every column."""
    mean = np.average(X, axis=0, weights=weight)
    return mean, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
