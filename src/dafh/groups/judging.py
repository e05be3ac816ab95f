"""What held-out rows say about models that were trained without them."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from dafh.classifiers import decide
from dafh.evaluation.compared import ComparedRows
from dafh.linear.newton import row_losses
from dafh.rows import LabelledRows

# Rows on which the groups of two models are compared: enough to tell which group is which.
ROWS_TO_MATCH = 20_000


def matched_groups(group: NDArray[np.intp], final: NDArray[np.intp], n_groups: int) -> NDArray[np.intp]:
    """For each group of a model of one fold, the group of the final model that it shares most rows with, one to one.

    The models of two folds number their groups in any order; without this, counts of different groups would be added
    up.
    """
    shared = np.zeros((n_groups, n_groups))
    np.add.at(shared, (group, final), 1)
    return linear_sum_assignment(shared, maximize=True)[1]


def compare_rows(
    rows: LabelledRows,
    judging: NDArray[np.intp],
    group: NDArray[np.intp],
    own_logits: NDArray[np.float64],
    base: NDArray[np.float64],
    pooled_label: NDArray[np.intp],
    cutoff: float,
) -> ComparedRows:
    """Compare own classifiers with the pooled one on rows that none of them has seen.

    Parameters
    ----------
    rows : LabelledRows
        All rows of a fit, n.
    judging : array of positions
        Those that judge; the others may hold anything in what follows.
    group : array of shape (n,)
    own_logits : array of shape (n, K, m)
        Of every own classifier, by a model that was trained without the row.
    base : array of shape (n, m)
        Out-of-fold pooled logits.
    pooled_label : array of shape (n,)
    cutoff : float
        Probability above which own classifiers predict the second of two classes.
    """
    n_groups = own_logits.shape[1]
    if not len(judging):
        return ComparedRows.none(n_groups)
    group, own_logits, base = group[judging], own_logits[judging], base[judging]
    label, pooled_label, own_label = rows.label[judging], pooled_label[judging], decide(own_logits, cutoff)
    served_logits = own_logits[np.arange(len(judging)), group]
    return ComparedRows(
        right=np.column_stack([own_label == label[:, None], pooled_label == label]),
        differ=own_label != pooled_label[:, None],
        group=group,
        own=np.arange(n_groups),
        weight=rows.weight[judging] / rows.weight.max(),
        weight_unit=float(rows.weight.max()),
        positive=label == 1 if len(rows.classes) == 2 else None,
        person=None if rows.person is None else rows.person[judging],
        attributes=None if rows.declared is None else rows.declared.iloc[judging],
        log_gain=row_losses(base, label) - row_losses(served_logits, label),
    )
