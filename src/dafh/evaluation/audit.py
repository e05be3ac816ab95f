"""audit: would any group do better with another classifier? For predictions of any models and for any groups.

The questions and their answers are in `dafh.evaluation.questions`; this module turns what callers have (arrays, frames,
named or numbered groups) into checked rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.columns.bins import named_table
from dafh.evaluation.losses import check_losses
from dafh.evaluation.paired import ComparedRows
from dafh.evaluation.result import AuditResult
from dafh.exceptions import InputError
from dafh.frames import MISSING, Table
from dafh.text import shown
from dafh.validation import as_array


def audit(
    y: ArrayLike,
    predictions: ArrayLike,
    groups: ArrayLike,
    *,
    pooled: ArrayLike,
    X: Table | None = None,
    sensitive_features: Table | None = None,
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
    persons: ArrayLike | None = None,
    losses: str | Sequence[str] = ("error",),
    costs: Mapping[str, float] | None = None,
    level: float = 0.05,
    margin: float = 0.0,
    depth: int = 2,
    own: ArrayLike | None = None,
) -> AuditResult:
    """Test whether any group is served worse than by the pooled classifier, or than by another group's classifier.

    The rows must be independent draws from the population in question, and must not have been used to train or select
    any of the classifiers. All answers hold together: the probability of any wrong "violated" is at most `level`, and
    so is that of any wrong "satisfied". With sensitive features, one half of the level is for the groups that the
    classifiers serve and one half for named groups. Each interval is for one question.

    Parameters
    ----------
    y : array of shape (n,)
        True labels.
    predictions : array or data frame of shape (n, M), or array of shape (n,)
        Label predicted for every row by each group's classifier. With one column, the same classifier serves all
        groups, and these may have any names.
    groups : array of shape (n,)
        Group of each row: the number of its column, counted from 0; M for rows that the pooled classifier serves.
    pooled : array of shape (n,)
        Labels predicted by the pooled classifier.
    X : data frame or array with n rows, optional
        Features: the result then has `failures`, the groups that are served worse than all rows, as in `find_failures`.
    sensitive_features : data frame, series or array with n rows, optional
        Attributes that define named groups. Missing values form a group of their own, numbers with more than 12
        different values are cut at their quartiles, and beyond 50 categories the rarest are merged.
    sample_weight : array of shape (n,), optional
        Row weights.
    largest_weight : float, optional
        Largest weight of a row in the population, or of all rows of a person. All answers rest on it. By default it is
        the largest in `sample_weight`: a heavier row that the sample has missed could hide any harm.
    persons : array of shape (n,), optional
        Identifier of the person that each row belongs to, if persons have several rows. Tests then count persons.
    losses : name or sequence of names, default=("error",)
        Losses to test: "error", "fpr" (false positive rate), "fnr" (false negative rate) or "cost". All but "error"
        need two classes; the larger label is the positive one.
    costs : mapping, optional
        What a false positive and a false negative cost, such as ``{"fp": 1, "fn": 5}``; for the loss "cost".
    level : float, default=0.05
        Accepted probability of a wrong answer, between 0 and 0.5.
    margin : float, default=0
        Harm up to this size is tolerated: 0.01 is one percentage point of error. "violated" then means harm by more
        than the margin, "satisfied" harm by at most the margin.
    depth : int, default=2
        Largest number of attributes to intersect.
    own : array of int, optional
        Column that serves each group, if that is not column k for group k; M is the pooled classifier.

    Returns
    -------
    AuditResult
        With `verdict`, `summary()`, `to_frame()`, `to_dict()`, and the parts `matrix`, `questions`, `named` and
        `composition`.

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
    >>> print(result.recommendation.headline)
    Deploy for group 0 only, and keep the pooled classifier for group 1
    """
    columns = as_array(predictions, "predictions")
    if not columns.ndim:
        raise InputError(f"predictions must have one row per sample, got {shown(predictions)}.")
    columns = columns[:, None] if columns.ndim == 1 else columns
    codes, labels, served_by = _number_groups(groups, columns.shape[1], own)
    asked = check_losses(losses, costs)
    rows = ComparedRows.check(
        y, columns, codes, pooled, served_by, sample_weight, persons=persons, largest_weight=largest_weight
    )
    rivals = [*range(columns.shape[1]), "pooled"]
    features = None if X is None else named_table(X)
    if features is not None and len(features) != len(rows.group):
        raise InputError(f"X has {len(features):,} rows, y has {len(rows.group):,}: give one row for each.")
    return AuditResult.from_rows(
        rows, labels, rivals, sensitive_features, losses=asked, level=level, margin=margin, depth=depth, X=features
    )


def _number_groups(
    groups: ArrayLike, n_models: int, own: ArrayLike | None
) -> tuple[NDArray[Any], Sequence[object], NDArray[np.intp]]:
    """Return the group of each row as a number, the names of the groups, and the column that serves each."""
    given = as_array(groups, "groups")
    if given.ndim != 1:
        raise InputError(f"groups must have one entry per sample, got shape {given.shape}.")
    # A column of group numbers read from a file with gaps elsewhere is often a float column.
    if given.dtype.kind == "b" or (given.dtype.kind == "f" and np.array_equal(given, np.floor(given))):
        given = given.astype(np.intp)
    if own is not None:
        served_by = as_array(own, "own")
        if served_by.ndim != 1:
            raise InputError(f"own must have one entry per group, got shape {served_by.shape}.")
        return given, range(len(served_by)), served_by
    if n_models == 1:
        try:
            codes, values = pd.factorize(given, sort=True)
        except TypeError as error:
            raise InputError("groups holds lists or records: a group is text or a number.") from error
        # Dates are written in more than one way, and a group has one name.
        known = [name if isinstance(name, str | int | float) else str(name) for name in pd.Index(values).tolist()]
        labels = [*known, *([MISSING] if (codes < 0).any() else [])]
        return np.where(codes < 0, len(labels) - 1, codes), labels, np.zeros(len(labels), np.intp)
    served_by_pooled = given.size and np.issubdtype(given.dtype, np.integer) and given.max() == n_models
    labels = [*range(n_models), *(["pooled"] if served_by_pooled else [])]
    return given, labels, np.arange(len(labels))
