"""Designs: what a penalised regression is linear in, and the sums over rows that it needs.

A design turns coefficients into logits, and sums gradients and curvatures over its rows. Both kinds have an intercept
as their first coefficient:

- `BinnedDesign`: every column is a bin, and a table by column says what a bin counts for each coefficient;
- `DenseDesign`: the columns of an array, as they are.

All that is asked of the rows are sums, taken block by block: another home for rows needs no other solver.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

# Rows at a time: temporary arrays of a block stay in the processor's cache.
_BLOCK_ROWS = 2**16
# Columns with up to this many coefficients are multiplied as matrices; of wider ones, pairs of bins are counted.
_NARROW = 12


class Design(Protocol):
    """Rows that a penalised regression can be fitted on."""

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients, the intercept included."""
        ...

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """Return some of the rows."""
        ...

    def dense(self) -> NDArray[np.float64]:
        """What each row counts for each coefficient, (n, p)."""
        ...

    def logits(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (p, m)."""
        ...

    def grouped_logits(self, coefficients: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (K, p, m), by the coefficients of each row's group."""
        ...

    def gradient(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of row × residual, (p, m), for residuals (n, m)."""
        ...

    def curvature(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of weight × row × row, (p, p), for weights (n,)."""
        ...


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
        """Sum of row × residual, (p, m)."""
        return np.vstack([residual.sum(axis=0), self.X.T @ residual])

    def curvature(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of weight × row × row, (p, p)."""
        total = np.zeros((self.n_coefficients, self.n_coefficients))
        for block in _blocks(len(self)):
            _add_dense(total, self.X[block], weight[block])
        return total


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
        parts = [table[self.codes[:, column]] for column, table in enumerate(self.tables)]
        return np.hstack([np.ones((len(self), 1)), *parts])

    def points(self, coefficients: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """What each bin of each column adds to the logits, (bins, m) by column."""
        return [table @ coefficients[place] for table, place in zip(self.tables, self.places, strict=True)]

    def logits(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (p, m)."""
        return sum_points(self.codes, self.points(coefficients), coefficients[0])

    def grouped_logits(self, coefficients: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (K, p, m), by the coefficients of each row's group."""
        logits = coefficients[group, 0]
        for column, (table, place) in enumerate(zip(self.tables, self.places, strict=True)):
            points = (table @ coefficients[:, place]).reshape(-1, coefficients.shape[2])
            logits += points[group * len(table) + self.codes[:, column]]
        return logits

    def gradient(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of row × residual, (p, m)."""
        gradient = np.empty((self.n_coefficients, residual.shape[1]))
        gradient[0] = residual.sum(axis=0)
        for column, (table, place) in enumerate(zip(self.tables, self.places, strict=True)):
            totals = np.zeros((len(table), residual.shape[1]))
            for block in _blocks(len(self)):
                code = self.codes[block, column]
                for output in range(residual.shape[1]):
                    totals[:, output] += np.bincount(code, residual[block, output], len(table))
            gradient[place] = table.T @ totals
        return gradient

    def curvature(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of weight × row × row, (p, p).

        A row is in one bin of each column, so that of two wide columns the rows in each pair of bins are counted: for
        tens of columns with a hundred bins this takes a tenth of the time of a matrix product.
        """
        total = np.zeros((self.n_coefficients, self.n_coefficients))
        wide = [column for column, table in enumerate(self.tables) if table.shape[1] > _NARROW]
        narrow = [column for column, table in enumerate(self.tables) if table.shape[1] <= _NARROW]
        dense_places = np.concatenate([np.arange(1), *(np.r_[self.places[column]] for column in narrow)])
        for block in _blocks(len(self)):
            codes, w = self.codes[block], weight[block]
            dense = np.hstack([np.ones((len(w), 1)), *(self.tables[column][codes[:, column]] for column in narrow)])
            weighted = dense * w[:, None]
            total[np.ix_(dense_places, dense_places)] += dense.T @ weighted
            for position, column in enumerate(wide):
                table, place = self.tables[column], self.places[column]
                # One-hot rows times a matrix: adds each row to the place of its bin.
                shape = (len(w), len(table))
                one_hot = csr_array((np.ones(len(w)), codes[:, column], np.arange(len(w) + 1)), shape)
                across = table.T @ (one_hot.T @ weighted)
                total[place, dense_places] += across
                total[dense_places, place] += across.T
                total[place, place] += table.T @ (np.bincount(codes[:, column], w, len(table))[:, None] * table)
                for other in wide[:position]:
                    across = table.T @ _count_pairs(
                        codes[:, column], codes[:, other], w, len(table), self.tables[other]
                    )
                    total[place, self.places[other]] += across
                    total[self.places[other], place] += across.T
        return total


def sum_points(
    codes: NDArray[Any], points: Sequence[NDArray[np.float64]], intercept: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Add up the points of each row's bins, (n, m)."""
    logits = np.empty((len(codes), len(intercept)))
    for block in _blocks(len(codes)):
        for output in range(len(intercept)):
            total = np.full(len(codes[block]), intercept[output])
            for column, table in enumerate(points):
                total += table[:, output].take(codes[block, column])
            logits[block, output] = total
    return logits


def _count_pairs(
    code: NDArray[Any], other: NDArray[Any], weight: NDArray[np.float64], n_bins: int, table: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum the weights by pairs of bins, and turn the second bin into coefficients."""
    pair = code.astype(np.intp) * len(table) + other
    return np.bincount(pair, weight, n_bins * len(table)).reshape(n_bins, len(table)) @ table


def _add_dense(total: NDArray[np.float64], X: NDArray[Any], weight: NDArray[np.float64]) -> None:
    weighted = X * weight[:, None]
    side = weighted.sum(axis=0)
    total[0, 0] += weight.sum()
    total[0, 1:] += side
    total[1:, 0] += side
    total[1:, 1:] += X.T @ weighted


def _blocks(n_rows: int) -> Iterator[slice]:
    return (slice(first, first + _BLOCK_ROWS) for first in range(0, n_rows, _BLOCK_ROWS))
