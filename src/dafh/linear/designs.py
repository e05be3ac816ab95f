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

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dafh.columns.bins import Binning
from dafh.columns.column import Column

# Rows in a matrix product: they stay in the processor's cache, and there is no second copy of all rows.
_PRODUCT_ROWS = 2**12
# With fewer coefficients for each column that has some, a matrix product takes less time than counting pairs of bins.
_PRODUCT_PER_COLUMN = 7


class DenseDesign:
    """The columns of an array as they are, after an intercept.

    Examples
    --------
    >>> design = DenseDesign(np.array([[1.0], [3.0]]))
    >>> design.curvatures(np.ones(2))
    array([[[ 2.,  4.],
            [ 4., 10.]]])
    """

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X
        self.n_coefficients = X.shape[1] + 1

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
        every_group = np.tensordot(self.X, coefficients[:, 1:], axes=(1, 1))
        return every_group[np.arange(len(group)), group] + coefficients[group, 0]

    def gradient(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of row × residual, (p, m), for residuals (n, m)."""
        return np.vstack([residual.sum(axis=0), self.X.T @ residual])

    def gradients(
        self, residual: NDArray[np.float64], group: NDArray[np.integer], n_groups: int
    ) -> NDArray[np.float64]:
        """Sums of row × residual over the rows of each group, (K, p, m)."""
        members = [group == k for k in range(n_groups)]
        return np.stack([self.take(rows).gradient(residual[rows]) for rows in members])

    def curvatures(
        self, weight: NDArray[np.float64], group: NDArray[np.integer] | None = None, n_groups: int = 1
    ) -> NDArray[np.float64]:
        """Sums of weight × row × row over the rows of each group, (K, p, p), for weights (n,) from 0 on."""
        return _products(self, weight, group, n_groups)


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
        self.n_coefficients = int(first[-1])
        self.slices = [slice(start, end) for start, end in pairwise(first)]
        """Coefficients of each column."""

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
        return [table @ coefficients[columns] for table, columns in zip(self.tables, self.slices, strict=True)]

    def logits(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (p, m)."""
        return sum_points(self.codes, self.points(coefficients), coefficients[0])

    def grouped_logits(self, coefficients: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (K, p, m), by the coefficients of each row's group."""
        # Points of every group and bin in one table, of which each row takes one entry: no copy of the rows by group.
        logits = coefficients[:, 0].take(group, axis=0)
        for column, (table, columns) in enumerate(zip(self.tables, self.slices, strict=True)):
            points = (table @ coefficients[:, columns]).reshape(-1, coefficients.shape[2])
            logits += points.take(group * len(table) + self.codes[:, column], axis=0)
        return logits

    def gradient(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of row × residual, (p, m), for residuals (n, m)."""
        return self.gradients(residual, np.zeros(len(self), np.uint8), 1)[0]

    def gradients(
        self, residual: NDArray[np.float64], group: NDArray[np.integer], n_groups: int
    ) -> NDArray[np.float64]:
        """Sums of row × residual over the rows of each group, (K, p, m)."""
        # Rows of a bin count alike: residuals are summed by bin first, and only bins are multiplied with a table.
        gradients = np.empty((n_groups, self.n_coefficients, residual.shape[1]))
        for output, values in enumerate(residual.T):
            gradients[:, 0, output] = np.bincount(group, values, n_groups)
            for column, (table, columns) in enumerate(zip(self.tables, self.slices, strict=True)):
                if table.shape[1]:
                    by_bin = np.bincount(self._bin_of_group(column, group), values, n_groups * len(table))
                    gradients[:, columns, output] = by_bin.reshape(n_groups, -1) @ table
        return gradients

    def curvatures(
        self, weight: NDArray[np.float64], group: NDArray[np.integer] | None = None, n_groups: int = 1
    ) -> NDArray[np.float64]:
        """Sums of weight × row × row over the rows of each group, (K, p, p), for weights (n,) from 0 on.

        A row has one bin of each column, so that of two columns the rows with each pair of bins are counted: for tens
        of columns with a hundred bins this takes a tenth of the time of a matrix product. For many columns with few
        coefficients it is the other way round.
        """
        filled = [column for column, table in enumerate(self.tables) if table.shape[1]]
        if self.n_coefficients < _PRODUCT_PER_COLUMN * len(filled):
            return _products(self, weight, group, n_groups)
        group = np.zeros(len(self), np.uint8) if group is None else group
        total = np.zeros((n_groups, self.n_coefficients, self.n_coefficients))
        total[:, 0, 0] = np.bincount(group, weight, n_groups)
        for position, column in enumerate(filled):
            table, columns = self.tables[column], self.slices[column]
            bins = self._bin_of_group(column, group)
            # With W the weights by bin, and T what bins count for coefficients: intercept T'W, own block T' diag(W) T.
            by_bin = np.bincount(bins, weight, n_groups * len(table)).reshape(n_groups, -1)
            total[:, 0, columns] = total[:, columns, 0] = by_bin @ table
            total[:, columns, columns] = table.T @ (by_bin[:, :, None] * table)
            for second in filled[:position]:
                # With W the weights by pair of bins, the block of two columns is T₁' W T₂.
                second_table, second_columns = self.tables[second], self.slices[second]
                pair = bins * len(second_table) + self.codes[:, second]
                by_pair = np.bincount(pair, weight, n_groups * len(table) * len(second_table))
                mixed = table.T @ by_pair.reshape(n_groups, len(table), -1) @ second_table
                total[:, columns, second_columns] = mixed
                total[:, second_columns, columns] = mixed.swapaxes(1, 2)
        return total

    def _bin_of_group(self, column: int, group: NDArray[np.integer]) -> NDArray[np.integer]:
        """Bin of each row in a column, numbered on from group to group."""
        return group.astype(np.intp) * len(self.tables[column]) + self.codes[:, column]


Design = DenseDesign | BinnedDesign
"""Rows that a penalised regression can be fitted on."""


def _products(
    design: Design, weight: NDArray[np.float64], group: NDArray[np.integer] | None, n_groups: int
) -> NDArray[np.float64]:
    """Sums of weight × row × row over the rows of each group, (K, p, p), by matrix products of a few rows at a time."""
    total = np.zeros((n_groups, design.n_coefficients, design.n_coefficients))
    for k in range(n_groups):
        members = np.arange(len(design)) if group is None else np.flatnonzero(group == k)
        for first in range(0, len(members), _PRODUCT_ROWS):
            rows = members[first : first + _PRODUCT_ROWS]
            # With the root of the weight on both sides the product is symmetric, and takes half the time.
            values = design.take(rows).dense() * np.sqrt(weight[rows, None])
            total[k] += values.T @ values
    return total


def sum_points(
    codes: NDArray[Any], points: Sequence[NDArray[np.float64]], intercept: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Add up the points of each row's bins, (n, m)."""
    logits = np.empty((len(codes), len(intercept)))
    for output in range(len(intercept)):
        # Column by column: codes are stored that way, and a column without points costs nothing.
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
    """Make the basis for bins (n, d) of training rows; a `smooth` one has steps beside the lines of numbers.

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
    for position, column in enumerate(binning.columns):
        bin_weight = np.bincount(codes[:, position], weight, column.n_bins).astype(np.float64)
        shapes = _shapes(column, bin_weight, smooth=smooth)
        for shape in shapes:
            block += [block[-1] + 1] * shape.shape[1]
        tables.append(np.hstack([np.zeros((column.n_bins, 0)), *shapes]))
    return Basis(tables, np.array(block, np.intp))


def _shapes(column: Column, bin_weight: NDArray[np.float64], *, smooth: bool) -> list[NDArray[np.float64]]:
    """Tables of one column, one for each block of its coefficients: line, steps, gaps; or categories."""
    n_bins = column.n_bins
    if column.is_category:
        return [np.eye(n_bins)[:, :-1]]  # Categories that training rows did not have count for nothing.
    shapes = []
    if n_bins > 2:
        # Middles of the bins with mean 0 and variance 1 over the rows, as in a standardised column; gaps at the mean.
        middles, share = np.array(column.centers), bin_weight[:-1] / max(bin_weight[:-1].sum(), 1e-300)
        mean = share @ middles
        deviation = np.sqrt(share @ (middles - mean) ** 2)
        shapes.append(np.append((middles - mean) / (deviation or 1.0), 0.0)[:, None])
    if smooth and n_bins > 3:  # Two bins differ by one number, and the line has it.
        # Step j is 1 above cut j. Penalised, it is a random walk from bin to bin: points of neighbours are alike, while
        # a coefficient for each bin would be drawn to 0 by itself.
        steps = np.tri(n_bins, n_bins - 2, -1)
        steps[-1] = 0.0  # Gaps lie on neither side of a cut.
        shapes.append(steps)
    if column.has_gaps:
        shapes.append(np.eye(n_bins)[:, -1:])
    return shapes


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
