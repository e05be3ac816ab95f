"""What calibration rows say about models that were trained without them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from dafh.classifiers import decide
from dafh.evaluation.compared import ComparedRows
from dafh.linear.newton import row_losses
from dafh.rows import LabelledRows

# Rows on which the groups of two models are compared: enough to tell which group is which.
ROWS_TO_MATCH = 20_000


class FoldVerdict(NamedTuple):
    """Calibration rows of one fold, as the models trained without the fold see them."""

    rows: NDArray[np.intp]
    """Positions of the calibration rows among all rows."""
    group: NDArray[np.intp]
    """Group of each row, numbered as the model of the fold does."""
    logits: NDArray[np.float64]
    """Of every own classifier, (n, K, m)."""
    pooled: NDArray[np.float64]
    """Of the pooled classifier, (n, m)."""
    place: NDArray[np.intp]
    """For each group of the fold, its number in the final model."""


@dataclass(frozen=True)
class Decisions:
    """How logits become labels, in production and wherever production is judged."""

    cutoff: float = 0.5
    """Probability above which own classifiers predict the second of two classes."""
    pooled_cutoff: float = 0.5
    """The same of the pooled classifier, for models that are fitted without a fold."""
    pooled_label: NDArray[np.intp] | None = None
    """What the pooled classifier predicts for each row, where the same model serves in all folds."""

    def of_pooled(self, rows: NDArray[np.intp], logits: NDArray[np.float64]) -> NDArray[np.intp]:
        """Labels of the pooled classifier: what it really predicts, or at least its cut-off."""
        return decide(logits, self.pooled_cutoff) if self.pooled_label is None else self.pooled_label[rows]


def matched_groups(one: NDArray[np.intp], other: NDArray[np.intp], n_groups: int) -> NDArray[np.intp]:
    """For each group of one model, the group of the other that it shares most rows with, one to one.

    The models of two folds number their groups in any order; without this, counts of different groups would be added
    up.
    """
    shared = np.zeros((n_groups, n_groups))
    np.add.at(shared, (one, other), 1)
    return linear_sum_assignment(shared, maximize=True)[1]


def cross_fitted_rows(
    folds: Iterable[FoldVerdict], n_groups: int, rows: LabelledRows, decisions: Decisions
) -> ComparedRows:
    """All calibration rows, each with the classifiers of the fold that was trained without it."""
    parts = [_compared(fold, n_groups, rows, decisions) for fold in folds if len(fold.rows)]
    return ComparedRows.concatenate(parts) if parts else ComparedRows.none(n_groups)


def _compared(fold: FoldVerdict, n_groups: int, rows: LabelledRows, decisions: Decisions) -> ComparedRows:
    labels = decide(fold.logits[:, np.argsort(fold.place)], decisions.cutoff)
    pooled = decisions.of_pooled(fold.rows, fold.pooled)
    label = rows.label[fold.rows]
    return ComparedRows(
        right=np.column_stack([labels == label[:, None], pooled == label]),
        differ=labels != pooled[:, None],
        group=fold.place[fold.group],
        own=np.arange(n_groups),
        weight=rows.weight[fold.rows] / rows.weight.max(),
        weight_unit=float(rows.weight.max()),
        positive=label == 1 if len(rows.classes) == 2 else None,
        person=None if rows.person is None else rows.person[fold.rows],
        attributes=None if rows.declared is None else rows.declared.iloc[fold.rows],
        log_gain=row_losses(fold.pooled, label) - row_losses(fold.logits[np.arange(len(label)), fold.group], label),
    )
