"""What is kept of blocks of rows, and the logits of the pooled classifier from that."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.blocks.base import Arrays
from dafh.classifiers.pipelines import final_classifier
from dafh.estimators.pooled import PooledFit, pooled_logits
from dafh.estimators.training_rows import Weighing
from dafh.exceptions import InputError
from dafh.linear.designs import sum_points
from dafh.rows.seen import SeenRows, TableView
from dafh.text import quoted


@dataclass(frozen=True, eq=False)
class Looks:
    """How a block of rows is looked at.

    It has what workers need, and no more: a cluster sends it to all of them.
    """

    weighing: Weighing
    classes: NDArray[Any]
    as_frame: bool
    kind: str
    view: TableView
    foreign: Any
    """A pooled classifier that is neither a scorecard nor linear."""

    def at(self, block: pd.DataFrame) -> tuple[pd.DataFrame, SeenRows, Arrays]:
        """Rows of a block that count, as they are seen, and what is kept of them: labels, weights, pooled logits.

        Pooled logits are kept as bins where the classifier is a scorecard; numbers, where it is linear, are left to the
        caller.
        """
        roles = self.weighing.roles
        weight = self.weighing.weights(block)
        block, weight = block[weight > 0], weight[weight > 0]
        labels = block[roles.label].to_numpy()
        label = pd.Index(self.classes).get_indexer(labels)
        if (label < 0).any():
            raise InputError(
                f"y holds {quoted(labels[label < 0][0])} in so few rows that the sample has none, by which groups are "
                "chosen: leave those rows out, or put rare classes together."
            )
        features = block[list(roles.features)].reset_index(drop=True)
        seen = self.view.see(features if self.as_frame else features.to_numpy())
        kept: Arrays = {"label": label.astype(np.uint16), "weight": weight}
        if self.kind == "points":
            kept["codes"] = seen.codes
        if self.foreign is not None:
            kept["base"] = pooled_logits(self.foreign, seen, self.classes)
        return block, seen, kept


@dataclass(frozen=True, eq=False)
class PooledLogits:
    """Logits of the pooled classifier: points of bins, a sum over columns, or what is kept of a foreign one."""

    points: tuple[NDArray[np.float64], ...] | None
    weight: NDArray[np.float64] | None
    intercept: NDArray[np.float64]

    @classmethod
    def of(cls, pooled: PooledFit) -> "PooledLogits":
        """Take what is needed of a classifier."""
        last = final_classifier(pooled.model)
        if pooled.kind == "points":
            return cls(tuple(last.points_), None, last.intercept_)
        if pooled.kind == "columns":
            return cls(None, last.coef_.T, last.intercept_)
        return cls(None, None, np.zeros(0))

    def of_block(self, block: Arrays) -> NDArray[np.float64]:
        """Logits of the rows of a block, (n, m)."""
        if self.points is not None:
            return sum_points(block["codes"], self.points, self.intercept)
        if self.weight is not None:
            return np.asarray(block["numbers"] @ self.weight + self.intercept)
        return block["base"]
