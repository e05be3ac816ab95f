"""The container of checked rows that both estimators work on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dafh.classifiers.fitting import FEWEST_ROWS_TO_SPLIT
from dafh.frames import take_rows
from dafh.rows.held_out import set_rows_aside


@dataclass(frozen=True)
class TrainingRows:
    """Validated rows: `given` is X as the pooled classifier should see it (a frame keeps its column names)."""

    X: NDArray[Any]
    given: Any
    label: NDArray[np.intp]
    weight: NDArray[np.float64]

    def take(self, rows: NDArray[Any], weight: NDArray[Any] | None = None) -> "TrainingRows":
        """Return some of the rows, with other weights if they are given."""
        weight = self.weight[rows] if weight is None else weight
        return TrainingRows(self.X[rows], take_rows(self.given, rows), self.label[rows], weight)

    def merge_repeated(self) -> "TrainingRows":
        """Replace equal rows of a tiny data set by one with their total weight, in sorted order.

        Where all rows fit into one batch, a weight of 2 then means exactly what a row given twice means, and the order
        of the rows means nothing.
        """
        table = np.column_stack([self.X, self.label])
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
        if len(first) >= FEWEST_ROWS_TO_SPLIT:
            return self
        return self.take(first, np.bincount(inverse, weights=self.weight))

    def set_aside(self, share: float, rng: np.random.Generator) -> tuple["TrainingRows", "TrainingRows"]:
        """Divide into rows to train on and rows to keep from everything."""
        kept, apart = set_rows_aside(self.label, share, rng)
        return self.take(kept), self.take(apart)
