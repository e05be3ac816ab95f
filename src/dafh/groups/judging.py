"""What calibration rows say about models that were trained without them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from dafh.classifiers.logits import decide
from dafh.evaluation.paired import ComparedRows, PairedCounts

# Rows on which the groups of two models are compared: enough to tell which group is which.
ROWS_TO_MATCH = 20_000


class FoldVerdict(NamedTuple):
    """Calibration rows of one fold, as the models trained without the fold see them."""

    label: NDArray[np.intp]
    weight: NDArray[np.float64]
    group: NDArray[np.intp]
    """Group of each row, numbered as the model of the fold does."""
    logits: NDArray[np.float64]
    """Of every own classifier, (n, K, m)."""
    pooled: NDArray[np.float64]
    """Of the pooled classifier, (n, m)."""
    place: NDArray[np.intp]
    """For each group of the fold, its number in the final model."""


def matched_groups(one: NDArray[np.intp], other: NDArray[np.intp], n_groups: int) -> NDArray[np.intp]:
    """For each group of one model, the group of the other that it shares most rows with, one to one.

    The models of two folds number their groups in any order; without this, counts of different groups would be added
    up.

    Examples
    --------
    >>> matched_groups(np.array([0, 0, 1, 1, 1]), np.array([1, 1, 0, 0, 1]), 2)
    array([1, 0])
    """
    shared = np.zeros((n_groups, n_groups))
    np.add.at(shared, (one, other), 1)
    return linear_sum_assignment(shared, maximize=True)[1]


def cross_fitted_counts(folds: Iterable[FoldVerdict], n_groups: int) -> PairedCounts:
    """Count, over all folds, which classifier is right on which calibration row."""
    total = PairedCounts.zero(n_groups, n_groups)
    for fold in folds:
        if not len(fold.label):
            continue
        labels = decide(fold.logits[:, np.argsort(fold.place)])
        pooled = decide(fold.pooled)
        compared = ComparedRows(
            right=np.column_stack([labels == fold.label[:, None], pooled == fold.label]),
            differ=labels != pooled[:, None],
            group=fold.place[fold.group],
            own=np.arange(n_groups),
            weight=fold.weight,
        )
        total = total.plus(compared.paired_counts())
    return total
