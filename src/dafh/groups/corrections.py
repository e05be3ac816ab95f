"""Corrections of the pooled logits: what they are linear in while they are fitted, and as they are served.

There are three kinds, by the pooled classifier:

- a scorecard is corrected by points for its bins, so that every group has a scorecard of its own;
- a linear classifier is corrected by coefficients for the columns, so that every group has a linear classifier;
- any other classifier is corrected by points for bins of the columns and of its own logits: one that is too sure of
  itself for some group can be made less so.

Tables with very many columns leave each group too few rows for a coefficient each; the pooled logits are then shifted
and stretched, and nothing else.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.bins import Binning
from dafh.columns.column import Column
from dafh.linear.designs import BinnedDesign, DenseDesign, Design, make_basis, mean_and_deviation, sum_points
from dafh.rows import EncodedRows

# With more coefficients than this, groups are only shifted and stretched.
_MOST_COEFFICIENTS = 250
# Bins of the logits of a pooled classifier that is neither a scorecard nor linear.
_LOGIT_BINS = 32

Kind = Literal["points", "columns", "logits"]


@dataclass(frozen=True, eq=False)
class PointCorrections:
    """Points that a group adds to a scorecard."""

    points: tuple[NDArray[np.float64], ...]
    """By column, (K, bins, m); those for bins of the pooled logits come last."""
    intercept: NDArray[np.float64]
    """(K, m)."""
    logits: tuple[Column, ...] = ()
    """Bins of the pooled logits, where those have points."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.intercept)

    def of_group(self, rows: EncodedRows, pooled: NDArray[np.float64], group: int) -> NDArray[np.float64]:
        """What the classifier of a group adds to pooled logits (n, m)."""
        codes = with_logit_codes(rows.codes, self.logits, pooled)
        return sum_points(codes, [table[group] for table in self.points], self.intercept[group])

    def chosen(self, serves: NDArray[np.intp]) -> "PointCorrections":
        """Corrections by which classifier ``serves[k]`` serves group k; K is none at all."""
        points = tuple(_with_zeros(table)[serves] for table in self.points)
        return replace(self, points=points, intercept=_with_zeros(self.intercept)[serves])


@dataclass(frozen=True, eq=False)
class LinearCorrections:
    """Coefficients that a group adds for the columns as numbers, and for the pooled logits."""

    weight: NDArray[np.float64]
    """(K, columns, m); no columns where only the logits are corrected."""
    of_logits: NDArray[np.float64]
    """(K, m, m), or (K, 0, m) for a linear pooled classifier, whose logits are a sum over the columns already."""
    intercept: NDArray[np.float64]
    """(K, m)."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.intercept)

    def of_group(self, rows: EncodedRows, pooled: NDArray[np.float64], group: int) -> NDArray[np.float64]:
        """What the classifier of a group adds to pooled logits (n, m)."""
        added = np.zeros_like(pooled) + self.intercept[group]
        if self.weight[group].any():  # Not for groups that the pooled classifier serves.
            added += rows.numbers @ self.weight[group]
        if self.of_logits.shape[1]:
            added += pooled @ self.of_logits[group]
        return added

    def chosen(self, serves: NDArray[np.intp]) -> "LinearCorrections":
        """Corrections by which classifier ``serves[k]`` serves group k; K is none at all."""
        arrays = {name: _with_zeros(getattr(self, name))[serves] for name in ("weight", "of_logits", "intercept")}
        return replace(self, **arrays)


Corrections = PointCorrections | LinearCorrections


def with_logit_codes(
    codes: NDArray[np.uint8], columns: tuple[Column, ...], pooled: NDArray[np.float64]
) -> NDArray[np.uint8]:
    """Bins of the columns, (n, d), followed by those of the pooled logits (n, m), where these have some."""
    if not columns:
        return codes
    binned = [column.codes(pd.Series(values)) for column, values in zip(columns, pooled.T, strict=True)]
    return np.asfortranarray(np.column_stack([codes, *binned]))


def _with_zeros(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corrections of each group, followed by those of the pooled classifier, which are zeros."""
    return np.concatenate([array, np.zeros_like(array[:1])])


class CorrectionDesign:
    """What corrections are linear in, for training rows; made once, without labels.

    Parameters
    ----------
    kind : {"points", "columns", "logits"}
        Of the pooled classifier: a scorecard, linear, or any other.
    rows : EncodedRows
    weight : array of shape (n,)
    base : array of shape (n, m)
        Pooled logits.
    """

    def __init__(self, kind: Kind, rows: EncodedRows, weight: NDArray[np.float64], base: NDArray[np.float64]) -> None:
        self.kind = kind
        self.center, self.scale = np.zeros(0), np.ones(0)
        self.logits: tuple[Column, ...] = ()
        self.design: Design = DenseDesign(base)
        if kind == "columns":
            if rows.numbers.shape[1] <= _MOST_COEFFICIENTS:
                self.center, self.scale = _standardization(rows.numbers, weight)
                self.design = DenseDesign((rows.numbers - self.center) / self.scale)
            return
        assert rows.encoding.binning is not None
        binning: Binning = rows.encoding.binning
        logits: tuple[Column, ...] = ()
        if kind == "logits":
            logits = tuple(Column.learn(pd.Series(values, name="logit"), most=_LOGIT_BINS) for values in base.T)
            binning = Binning((*binning.columns, *logits))
        codes = with_logit_codes(rows.codes, logits, base)
        # The richest design that is small enough: steps only where bins of the logits may bend them, then lines alone,
        # and at last the logits themselves, shifted and stretched.
        for smooth in (True, False) if kind == "logits" else (False,):
            tables = make_basis(binning, codes, weight, smooth=smooth).tables
            if sum(table.shape[1] for table in tables) <= _MOST_COEFFICIENTS:
                self.design, self.logits = BinnedDesign(codes, tables), logits
                return

    @property
    def tables(self) -> list[NDArray[np.float64]] | None:
        """What the bins count for each coefficient, where corrections are points."""
        return self.design.tables if isinstance(self.design, BinnedDesign) else None

    @property
    def has_columns(self) -> bool:
        """Whether columns have coefficients, and not only the pooled logits."""
        return self.tables is not None or len(self.center) > 0

    def served(self, coefficients: NDArray[np.float64]) -> Corrections:
        """Corrections as they are served, from coefficients (K, p, m)."""
        intercept = coefficients[:, 0]
        if isinstance(self.design, BinnedDesign):
            arrays = [self.design.points(correction) for correction in coefficients]
            points = tuple(np.stack(tables) for tables in zip(*arrays, strict=True))
            return PointCorrections(points, intercept, self.logits)
        n_columns = len(self.center)
        # Back to the units of the columns; columns that are constant have scale ∞, and weight 0.
        weight = coefficients[:, 1 : 1 + n_columns] / self.scale[:, None]
        shift = np.einsum("p,kpm->km", self.center, weight)
        return LinearCorrections(weight, coefficients[:, 1 + n_columns :], intercept - shift)


def _standardization(X: NDArray[Any], weight: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Center and scale of columns: numbers by mean and deviation, columns of two values become 0 and 1.

    A rare category that is standardised would count as much as a frequent one, and be followed on a handful of rows.
    """
    mean, deviation = mean_and_deviation(X, weight)
    low, high = X.min(axis=0), X.max(axis=0)
    two = np.array([bool(((column == a) | (column == b)).all()) for column, a, b in zip(X.T, low, high, strict=True)])
    center, scale = np.where(two, low, mean), np.where(two, high - low, deviation)
    # What is constant but for rounding carries nothing.
    return center, np.where(scale > 1e-9 * np.maximum(np.abs(mean), 1e-300), scale, np.inf)
