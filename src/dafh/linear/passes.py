"""Penalised regressions on rows in blocks: coefficients of all rows from a few passes over them.

A sample of the rows has been fitted before, and gives all that no pass is needed for: where to start, how strong the
penalty is, and the curvature of the loss. A pass then sums the loss and its gradient, and every step of Newton's method
with the curvature of the sample leaves a few per cent of the way. What is minimised is the loss of all rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dafh.blocks.base import Arrays, Blocks
from dafh.classifiers.logits import residual
from dafh.linear.designs import BinnedDesign, Design
from dafh.linear.likelihood import row_losses
from dafh.linear.packing import Packed, PackedColumn, unpacked

_MOST_STEPS = 60
_SMALLEST_DAMPING = 2.0**-20
# Steps with one curvature; the way is longer only where the sample misled it.
_STEPS_FOR_A_CURVATURE = 4


class Problem(Protocol):
    """What is fitted to the rows of a block."""

    def see(self, block: Arrays) -> "SeenBlock":
        """Look at the rows of a block."""
        ...


@dataclass(frozen=True, eq=False)
class SeenBlock:
    """Rows of a block as a problem sees them."""

    design: Design
    label: NDArray[np.integer]
    weight: NDArray[np.float64]
    offset: NDArray[np.float64]
    """(n, m): logits that are there already."""
    part: NDArray[np.integer]
    """The part of the rows whose coefficients count for each row."""


@dataclass(frozen=True, eq=False)
class PointTables:
    """Tables of a `BinnedDesign`, for codes that come block by block."""

    tables: tuple[NDArray[np.float64], ...]

    @cached_property
    def _columns(self) -> tuple[PackedColumn, ...]:
        first = np.cumsum([1, *(table.shape[1] for table in self.tables)]).tolist()
        return unpacked(self.tables, [slice(a, b) for a, b in pairwise(first)])

    def design(self, codes: NDArray[Any]) -> BinnedDesign:
        """Design of some rows."""
        return BinnedDesign(codes, self.tables, Packed(codes, self._columns))


@dataclass(frozen=True, eq=False)
class Penalty:
    """Half of the sum of strength × coefficient², and of coefficients · pull · coefficients for each part."""

    strength: NDArray[np.float64]
    """(p,)."""
    pull: NDArray[np.float64] | None = None
    """(parts, m, p, p)."""

    def matrix(self, part: int, n_outputs: int) -> NDArray[np.float64]:
        """Curvature of the penalty, for all outputs together, (pm, pm)."""
        p = len(self.strength)
        matrix = np.diag(np.tile(self.strength, n_outputs))
        for output in range(n_outputs if self.pull is not None else 0):
            inside = slice(output * p, (output + 1) * p)
            matrix[inside, inside] += np.asarray(self.pull)[part, output]
        return matrix


@dataclass(frozen=True, eq=False)
class _LossAndGradient:
    """The sum that a pass takes; a class, because a cluster has to send it to its workers."""

    problem: Problem
    coefficients: NDArray[np.float64]

    def __call__(self, block: Arrays) -> tuple[NDArray[Any], ...]:
        rows, n_parts = self.problem.see(block), len(self.coefficients)
        if n_parts == 1:
            logits = rows.offset + rows.design.logits(self.coefficients[0])
        else:
            logits = rows.offset + rows.design.grouped_logits(self.coefficients, rows.part.astype(np.intp))
        label = rows.label.astype(np.intp)
        pull = rows.weight[:, None] * residual(logits, label)
        return (
            np.array(rows.weight @ row_losses(logits, label)),
            -rows.design.gradients(pull, rows.part, n_parts),
            np.array(rows.weight.sum()),
        )


def fit_in_passes(
    blocks: Blocks[Arrays],
    problem: Problem,
    penalty: Penalty,
    curvature: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    start: NDArray[np.float64],
    tolerance: float = 1e-10,
) -> NDArray[np.float64]:
    """Minimise the penalised loss of all rows.

    Parameters
    ----------
    blocks : Blocks
    problem : Problem
    penalty : Penalty
    curvature : function
        Curvature of the loss at coefficients, (parts, pm, pm), per unit of weight: as a sample tells it.
    start : array of shape (parts, p, m)
    tolerance : float
        Stop when a step promises less than this, per unit of weight.
    """
    matrices = np.stack([penalty.matrix(part, start.shape[2]) for part in range(len(start))])

    def sums(coefficients: NDArray[np.float64]) -> tuple[float, NDArray[np.float64], float]:
        loss, slope, weight = blocks.total(_LossAndGradient(problem, coefficients))
        flat = _flat(coefficients)
        pulls = np.einsum("kpq,kq->kp", matrices, flat)
        return float(loss) + float((flat * pulls).sum()) / 2, _flat(slope) + pulls, float(weight)

    def factors(coefficients: NDArray[np.float64]) -> list[Any]:
        return [cho_factor(one, lower=True) for one in weight * curvature(coefficients) + matrices]

    coefficients = start
    value, gradient, weight = sums(coefficients)
    factored = factors(coefficients)
    for step in range(1, _MOST_STEPS):
        direction = np.stack([cho_solve(factor, one) for factor, one in zip(factored, gradient, strict=True)])
        promised, damping = float((gradient * direction).sum()), 1.0
        if promised <= tolerance * weight:
            return coefficients - _folded(direction, start)  # So short a step needs no damping, and is paid for.
        while True:
            moved = coefficients - damping * _folded(direction, start)
            moved_value, moved_gradient, _ = sums(moved)
            if moved_value <= value - 1e-4 * damping * promised:
                break
            if damping <= _SMALLEST_DAMPING:  # Nothing is left to gain but rounding.
                return coefficients
            damping /= 2
        coefficients, value, gradient = moved, moved_value, moved_gradient
        if damping < 1 or step % _STEPS_FOR_A_CURVATURE == 0:
            factored = factors(coefficients)
    return coefficients


def _flat(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients (parts, p, m) as (parts, pm): those of one output after those of the other."""
    return coefficients.swapaxes(1, 2).reshape(len(coefficients), -1)


def _folded(flat: NDArray[np.float64], like: NDArray[np.float64]) -> NDArray[np.float64]:
    n_parts, p, m = like.shape
    return flat.reshape(n_parts, m, p).swapaxes(1, 2)
