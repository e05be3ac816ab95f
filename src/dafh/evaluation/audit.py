"""audit: is any group served worse than it could be? For any models, any groups, and what the rows can tell.

Two kinds of question are asked of every group: *rationality*, is it served worse than by the pooled classifier, and
*envy*, is it served worse than another group would serve it. Each has an exact test, an interval, and one of three
verdicts. Named groups (sex, race, and their intersections) are asked the first question.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.evaluation.paired import ComparedRows
from dafh.evaluation.result import AuditResult
from dafh.exceptions import InputError
from dafh.frames import MISSING, is_frame
from dafh.text import listed


def audit(
    y: ArrayLike,
    predictions: Any,
    groups: ArrayLike,
    *,
    pooled: ArrayLike,
    sensitive_features: Any = None,
    sample_weight: ArrayLike | None = None,
    level: float = 0.05,
    margin: float = 0.0,
    depth: int = 2,
    own: ArrayLike | None = None,
) -> AuditResult:
    """Ask whether any group is served worse than by the pooled classifier or by another group's.

    The rows must be independent draws from the population in question, and must not have trained or selected any of the
    classifiers. Verdicts of all groups hold together: the probability of any wrong "violated" is at most `level`, and
    so is that of any wrong "satisfied"; named groups are corrected among themselves. The intervals are for one question
    each.

    Parameters
    ----------
    y : array of shape (n,)
        True labels.
    predictions : array of shape (n, M), data frame or mapping with M columns, or array of shape (n,)
        Label predicted for every row by each group's classifier. With one column only, the same classifier serves all
        groups, which then may have any names.
    groups : array of shape (n,)
        Group of each row: the number of its classifier from 0, or its name where `predictions` has named columns. M is
        for rows that the pooled classifier serves.
    pooled : array of shape (n,)
        Labels predicted by the pooled classifier.
    sensitive_features : data frame, series or array with n rows, optional
        Attributes that name groups. A missing value makes a group of its own; numbers with more than 12 values are cut
        into quarters; of more than 50 categories the rare ones are put together.
    sample_weight : array of shape (n,), optional
        Row weights. Tests and intervals then rest on effective numbers of rows, and are approximate.
    level : float, default=0.05
        Probability of a wrong verdict that is accepted.
    margin : float, default=0
        Harm up to this size is tolerated in "satisfied": 0.01 is one point of error.
    depth : int, default=2
        Largest number of attributes that are intersected.
    own : array of int, optional
        Column that serves each group, where that is not column k for group k; M is the pooled classifier.

    Returns
    -------
    AuditResult
        With `summary()`, `to_frame()`, `to_dict()`, and the parts `matrix`, `questions`, `named`, `composition`.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import audit
    >>> y = np.tile([0, 1], 200)
    >>> groups = np.repeat([0, 1], 200)
    >>> right, coin = y, np.tile([0, 0, 1, 1], 100)
    >>> result = audit(y, np.column_stack([right, coin]), groups, pooled=coin)
    >>> result.to_frame()[["group", "kind", "rival", "gap", "verdict"]]
       group         kind   rival  gap    verdict
    0      0  rationality  pooled  0.5  satisfied
    1      0         envy       1  0.5  satisfied
    2      1  rationality  pooled  0.0  undecided
    3      1         envy       0 -0.5   violated
    """
    columns, names = _check_columns(predictions)
    codes, labels, own = _number_groups(groups, columns.shape[1], names, own)
    rows = ComparedRows.check(y, columns, codes, pooled, own, sample_weight)
    rivals = [*(range(columns.shape[1]) if names is None else names), "pooled"]
    return AuditResult.from_rows(rows, labels, rivals, sensitive_features, level=level, margin=margin, depth=depth)


def _check_columns(predictions: Any) -> tuple[NDArray[Any], list[Any] | None]:
    """Predictions as an array with one column per classifier, and the names of the columns where they have some."""
    named = isinstance(predictions, Mapping) or is_frame(predictions)
    if not named:
        columns = np.asarray(predictions)
        return (columns[:, None] if columns.ndim == 1 else columns), None
    names = list(predictions) if isinstance(predictions, Mapping) else list(predictions.columns)
    if len(set(names)) < len(names):
        raise InputError("predictions has two columns of the same name: every group needs one of its own.")
    parts = [np.asarray(predictions[name]) for name in names]
    if len({part.dtype.kind in "OUS" for part in parts}) > 1:
        raise InputError(
            "The columns of predictions hold labels of different kinds: give all as text or all as numbers."
        )
    return np.column_stack(parts), names


def _number_groups(
    groups: Any, n_models: int, names: list[Any] | None, own: Any
) -> tuple[NDArray[Any], list[Any], NDArray[np.intp]]:
    """Group of each row as a number, the names of the groups, and the column that serves each."""
    groups = np.asarray(groups)
    if groups.dtype.kind == "b" or (groups.dtype.kind == "f" and np.array_equal(groups, np.floor(groups))):
        groups = groups.astype(np.intp)
    if own is not None:
        own = np.asarray(own)
        return groups, list(range(len(own))), own
    if n_models == 1:
        codes, values = pd.factorize(groups, sort=not pd.isna(groups).any())
        labels = [*pd.Index(values).tolist(), *([MISSING] if (codes < 0).any() else [])]
        return np.where(codes < 0, len(labels) - 1, codes), labels, np.zeros(len(labels), np.intp)
    if names is not None:
        return _match_names(groups, names), names, np.arange(n_models)
    served_by_pooled = groups.size and np.issubdtype(groups.dtype, np.integer) and groups.max() == n_models
    labels = [*range(n_models), *(["pooled"] if served_by_pooled else [])]
    return groups, labels, np.arange(len(labels))


def _match_names(groups: NDArray[Any], names: list[Any]) -> NDArray[np.intp]:
    """Find the column of each row's group; 0 and "0" name the same one."""
    codes = pd.Index([str(name) for name in names]).get_indexer(pd.Index([str(group) for group in groups.tolist()]))
    unknown = sorted({str(group) for group in groups[codes < 0].tolist()})
    if unknown:
        raise InputError(
            f"groups holds {listed(unknown[:5])}, but predictions has the columns "
            f"{listed([str(name) for name in names[:10]])}: every group needs a column of its name."
        )
    return codes
