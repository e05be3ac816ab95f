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

    `judging` are the positions of the rows that judge, of all n rows of a fit. They have a group (n,), logits of every
    own classifier (n, K, m) and of the pooled one (n, m) by models that were trained without the row, and the label
    (n,) that the pooled classifier predicts. Own classifiers predict the second of two classes above the cut-off.
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
