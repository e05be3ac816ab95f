"""How much groups tell of the predicted label: a group network may become the predictor itself."""

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import normalized_mutual_info_score

from dafh.exceptions import GroupsEncodeLabelWarning

# Above this, the groups are little more than the predicted label.
_LABEL_LIKE = 0.5
_MOST_ROWS = 50_000


def sample_to_measure(n_rows: int) -> NDArray[np.intp]:
    """Rows to measure on: every so many, not the first ones, because files are often sorted."""
    return np.arange(0, n_rows, max(n_rows // _MOST_ROWS, 1))


def label_information(group: NDArray[np.intp], label: NDArray[np.intp]) -> float:
    """Normalised mutual information of group and predicted label, 0 to 1.

    Examples
    --------
    >>> label_information(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    # By definition, one group and one label would tell all about each other.
    return float(normalized_mutual_info_score(group, label)) if len(np.unique(group)) > 1 else 0.0


def warn_if_groups_are_labels(information: float) -> None:
    """Warn the caller of `fit`."""
    if information > _LABEL_LIKE:
        warnings.warn(
            "The learned groups nearly encode the predicted label (normalised mutual information "
            f"{information:.2f}): the division into groups makes the predictions, so figures by group say little about "
            "fairness. Fewer groups usually help.",
            GroupsEncodeLabelWarning,
            stacklevel=3,
        )
