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

from dafh.linear.packing import Packed, pack

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

    def __init__(
        self, codes: NDArray[Any], tables: Sequence[NDArray[np.float64]], packed: Packed | None = None
    ) -> None:
        self.codes = codes
        self.tables = list(tables)
        first = np.cumsum([1, *(table.shape[1] for table in tables)])
        self.places = [slice(a, b) for a, b in pairwise(first)]
        self._packed = pack(codes, self.tables, self.places) if packed is None else packed

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients, the intercept included."""
        return self.places[-1].stop if self.places else 1

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[Any] | slice) -> "BinnedDesign":
        """Return some of the rows."""
        codes = _rows_of(self.codes, rows)
        same = self._packed.codes is self.codes
        packed = Packed(codes if same else _rows_of(self._packed.codes, rows), self._packed.columns)
        return BinnedDesign(codes, self.tables, packed)

    def dense(self) -> NDArray[np.float64]:
        """What each row counts for each coefficient, (n, p)."""
        matrix = np.ones((self.n_coefficients, len(self)))  # A row for each coefficient: written without jumps.
        for column, (table, place) in enumerate(zip(self.tables, self.places, strict=True)):
            np.take(table.T, self.codes[:, column], axis=1, out=matrix[place])
        return matrix.T

    def points(self, coefficients: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """What each bin of each column adds to the logits, (bins, m) by column."""
        return [table @ coefficients[place] for table, place in zip(self.tables, self.places, strict=True)]

    def logits(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (p, m)."""
        points = [column.table @ coefficients[column.places] for column in self._packed.columns]
        return sum_points(self._packed.codes, points, coefficients[0])

    def grouped_logits(self, coefficients: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
        """Logits (n, m) for coefficients (K, p, m), by the coefficients of each row's group."""
        logits = coefficients[:, 0].take(group, axis=0)
        for number, column in enumerate(self._packed.columns):
            points = (column.table @ coefficients[:, column.places]).reshape(-1, coefficients.shape[2])
            logits += points.take(group * len(column.table) + self._packed.codes[:, number], axis=0)
        return logits

    def gradient(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of row × residual, (p, m)."""
        return self.gradients(residual, np.zeros(len(self), np.uint8), 1)[0]

    def gradients(self, residual: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of row × residual over each part of the rows, (parts, p, m)."""
        n_outputs = residual.shape[1]
        gradients = np.empty((n_parts, self.n_coefficients, n_outputs))
        gradients[:, 0] = sums_by_code(part, residual, n_parts)
        for number, column in enumerate(self._packed.columns):
            n_codes = len(column.table)
            totals = np.zeros((n_parts * n_codes, n_outputs))
            for block in _blocks(len(self)):
                code = self._packed.codes[block, number]
                if n_parts > 1:
                    code = part[block].astype(np.intp) * n_codes + code
                totals += sums_by_code(code, residual[block], len(totals))
            gradients[:, column.places] = column.sums(totals.reshape(n_parts, n_codes, n_outputs))
        return gradients

    def curvature(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of weight × row × row, (p, p)."""
        return self.curvatures(weight, np.zeros(len(self), np.uint8), 1)[0]

    def curvatures(self, weight: NDArray[np.float64], part: NDArray[np.integer], n_parts: int) -> NDArray[np.float64]:
        """Sums of weight × row × row over each part of the rows, (parts, p, p).

        A row has one code of each column, so that of two columns the rows with each pair of codes are counted: for tens
        of columns with a hundred bins this takes a tenth of the time of a matrix product.
        """
        total = np.zeros((n_parts, self.n_coefficients, self.n_coefficients))
        numbers, places = self._numbers()
        weighted = numbers * weight[:, None]
        total[:, places[:, None], places] = _products(numbers, weighted, part, n_parts)
        counted = [number for number, column in enumerate(self._packed.columns) if not column.is_number]
        for position, number in enumerate(counted):
            column = self._packed.columns[number]
            n_codes, own = len(column.table), column.places
            code = part.astype(np.intp) * n_codes + self._packed.codes[:, number]
            by_code = sums_by_code(code, weighted, n_parts * n_codes).reshape(n_parts, n_codes, -1)
            across = column.sums(by_code)
            total[:, own[:, None], places] = across
            total[:, places[:, None], own] = across.swapaxes(1, 2)
            total[:, own[:, None], own] = column.sums(by_code[:, :, :1] * column.table)
            for other in counted[:position]:
                second = self._packed.columns[other]
                pair = code * len(second.table)
                pair += self._packed.codes[:, other]
                counts = np.bincount(pair, weight, n_parts * n_codes * len(second.table)).astype(np.float64, copy=False)
                half = column.sums(counts.reshape(n_parts, n_codes, -1))
                across = second.sums(half.swapaxes(1, 2))
                total[:, second.places[:, None], own] = across
                total[:, own[:, None], second.places] = across.swapaxes(1, 2)
        return total

    def _numbers(self) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Intercept and columns that are not counted, (n, q), and the places of their coefficients."""
        chosen = [number for number, column in enumerate(self._packed.columns) if column.is_number]
        places = np.concatenate([[0], *(self._packed.columns[number].places for number in chosen)]).astype(np.intp)
        numbers, row = np.ones((len(places), len(self))), 1
        for number in chosen:
            for values in self._packed.columns[number].table.T:
                values.take(self._packed.codes[:, number], out=numbers[row])
                row += 1
        return numbers.T, places


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


def sums_by_code(code: NDArray[np.integer], values: NDArray[np.float64], n_codes: int) -> NDArray[np.float64]:
    """Sum of the values (n, r) of the rows with each code, (codes, r)."""
    sums = np.empty((n_codes, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(code, values[:, column], n_codes)
    return sums


def _products(
    rows: NDArray[Any], weighted: NDArray[np.float64], part: NDArray[np.integer], n_parts: int
) -> NDArray[np.float64]:
    """Sums of row × weighted row over each part of the rows, (parts, q, q)."""
    if n_parts == 1:
        return (rows.T @ weighted)[None]
    order, ends = _by_part(part, n_parts)
    rows, weighted = rows[order], weighted[order]
    return np.stack([rows[a:b].T @ weighted[a:b] for a, b in pairwise(ends)])


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


def _rows_of(codes: NDArray[Any], rows: NDArray[Any] | slice) -> NDArray[Any]:
    """Some rows of codes, stored column by column."""
    if isinstance(rows, slice):
        return np.asfortranarray(codes[rows])
    chosen = np.empty((codes.shape[1], len(rows)), codes.dtype)
    np.take(codes.T, rows, axis=1, out=chosen)
    return chosen.T


def _blocks(n_rows: int) -> Iterator[slice]:
    return (slice(first, first + _BLOCK_ROWS) for first in range(0, n_rows, _BLOCK_ROWS))
