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

# Rows at a time: temporary arrays of a block stay in the processor's cache.
_BLOCK_ROWS = 2**16


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

    def gradients(self, residual: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of row × residual over each part of the rows, (parts, p, m), for parts (n,)."""
        ...

    def curvature(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of weight × row × row, (p, p), for weights (n,)."""
        ...

    def curvatures(self, weight: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of weight × row × row over each part of the rows, (parts, p, p)."""
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
        return self.curvatures(weight, np.zeros(len(self), np.uint8), 1)[0]

    def gradients(self, residual: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of row × residual over each part of the rows, (parts, p, m)."""
        order, ends = _by_part(part, n_parts)
        whole = DenseDesign(self.X[order])
        return np.stack([whole.take(slice(a, b)).gradient(residual[order[a:b]]) for a, b in pairwise(ends)])

    def curvatures(self, weight: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of weight × row × row over each part of the rows, (parts, p, p)."""
        total = np.zeros((n_parts, self.n_coefficients, self.n_coefficients))
        if n_parts == 1:
            for block in _blocks(len(self)):
                _add_products(total[0], self.X[block], weight[block])
            return total
        order, ends = _by_part(part, n_parts)
        for number, (a, b) in enumerate(pairwise(ends)):
            if a < b:
                total[number] = DenseDesign(self.X[order[a:b]]).curvature(weight[order[a:b]])
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
        columns = [table[self.codes[:, column]] for column, table in enumerate(self.tables)]
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
                by_bin = np.bincount(self._by_part(column, part, n_parts), values, n_parts * len(table))
                gradients[:, place, output] = by_bin.reshape(n_parts, -1) @ table
        return gradients

    def curvature(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of weight × row × row, (p, p)."""
        return self.curvatures(weight, np.zeros(len(self), np.uint8), 1)[0]

    def curvatures(self, weight: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of weight × row × row over each part of the rows, (parts, p, p).

        A row has one bin of each column, so that of two columns the rows with each pair of bins are counted: for tens
        of columns with a hundred bins this takes a tenth of the time of a matrix product.
        """
        total = np.zeros((n_parts, self.n_coefficients, self.n_coefficients))
        total[:, 0, 0] = np.bincount(part, weight, n_parts)
        for column, (table, own) in enumerate(zip(self.tables, self.places, strict=True)):
            code = self._by_part(column, part, n_parts)
            by_bin = np.bincount(code, weight, n_parts * len(table)).reshape(n_parts, -1)
            total[:, 0, own] = total[:, own, 0] = by_bin @ table
            total[:, own, own] = table.T @ (by_bin[:, :, None] * table)
            for before in range(column):
                other, theirs = self.tables[before], self.places[before]
                pair = code * len(other) + self.codes[:, before]
                by_pair = np.bincount(pair, weight, n_parts * len(table) * len(other))
                across = table.T @ by_pair.reshape(n_parts, len(table), len(other)) @ other
                total[:, own, theirs] = across
                total[:, theirs, own] = across.swapaxes(1, 2)
        return total

    def _by_part(self, column: int, part: NDArray[np.integer], n_parts: int) -> NDArray[np.integer]:
        """Bin of each row in a column, numbered on from part to part."""
        return part.astype(np.intp) * len(self.tables[column]) + self.codes[:, column]


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


def _add_products(total: NDArray[np.float64], X: NDArray[Any], weight: NDArray[np.float64]) -> None:
    side = weight @ X
    total[0, 0] += weight.sum()
    total[0, 1:] += side
    total[1:, 0] += side
    total[1:, 1:] += X.T @ (X * weight[:, None])


def _by_part(part: NDArray[np.integer], n_parts: int) -> tuple[NDArray[np.intp], list[int]]:
    """Rows sorted by their part, and where each part begins and ends."""
    order = np.argsort(part, kind="stable")
    return order, [0, *np.cumsum(np.bincount(part, minlength=n_parts)).tolist()]


def _blocks(n_rows: int) -> Iterator[slice]:
    return (slice(first, first + _BLOCK_ROWS) for first in range(0, n_rows, _BLOCK_ROWS))
