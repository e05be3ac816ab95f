"""What every partition does: learn groups from training rows, and assign new rows to them."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dafh.checks.parameters import is_whole
from dafh.exceptions import InputError
from dafh.text import clipped, shown

Features = NDArray[np.float64]
Labels = NDArray[np.generic]
Attributes = pd.DataFrame | None
Weights = NDArray[np.float64] | None

MOST_GROUPS = 10_000
"""Each has a name and, in a classifier, a model of its own."""
NOBODY = -1
"""Group of a row that fits none of the groups; the pooled classifier serves it."""


class Partition(BaseEstimator):
    """Base of all partitions: a way to divide rows into groups, with or without sensitive attributes.

    A subclass defines `fit`, which sets `group_names_`, and `assign`. The user guide has a complete example.

    Attributes
    ----------
    group_names_ : list of str
        Name of each group in tables and reports.

    Examples
    --------
    >>> import numpy as np
    >>> class ByFirstColumn(Partition):
    ...     def fit(self, X, y, sensitive_features=None, sample_weight=None):
    ...         self.group_names_ = ["low", "high"]
    ...         return self
    ...     def assign(self, X, sensitive_features=None):
    ...         return (X[:, 0] > 0).astype(int)
    >>> X = np.array([[-1.0], [2.0]])
    >>> ByFirstColumn().fit(X, None).assign(X)
    array([0, 1])
    """

    needs_sensitive_features: ClassVar[bool] = False
    group_names_: list[str]

    @property
    def n_groups_(self) -> int:
        """Number of groups found in `fit`."""
        return len(self.group_names_)

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Learn the groups from training rows."""
        raise NotImplementedError

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Group of each row, 0 to `n_groups_` − 1, or `NOBODY`."""
        raise NotImplementedError

    def members(self, X: Features, sensitive_features: Attributes = None) -> list[NDArray[np.intp]]:
        """Training rows of each group, by position.

        A partition whose `assign` returns codes of `n_groups_` or more has an entry for each of them too.
        """
        groups = self.assign(X, sensitive_features)
        return [np.flatnonzero(groups == k) for k in range(self.n_groups_)]

    def _check_n_groups(self, n_groups: int) -> None:
        if not is_whole(n_groups) or not 1 <= n_groups <= MOST_GROUPS:
            raise InputError(
                f"{type(self).__name__} needs n_groups of at least 1, and at most {MOST_GROUPS:,}; got "
                f"{shown(n_groups)}."
            )

    def _require(self, sensitive_features: Attributes) -> pd.DataFrame:
        if sensitive_features is None:
            raise InputError(f"{type(self).__name__} divides rows by sensitive attributes: pass sensitive_features=...")
        return sensitive_features


def choose_columns(table: pd.DataFrame, attributes: Sequence[str] | None) -> list[str]:
    """Columns of a table of attributes to divide by, each once; None takes all of them."""
    if attributes is None:
        return list(table.columns)
    if isinstance(attributes, str):
        # A string is a sequence of its letters, and the message would be about a column 's'.
        raise InputError(f"attributes must be a list of columns: write [{shown(attributes)}].")
    if not np.iterable(attributes) or not all(isinstance(name, str) for name in attributes):
        raise InputError(f"attributes must be a list of names of columns, got {shown(attributes)}.")
    names = list(dict.fromkeys(attributes))
    if not names:
        raise InputError("attributes is empty: name at least one column of sensitive_features, or pass None for all.")
    require_columns(table, names)
    return names


def require_columns(table: pd.DataFrame, names: Iterable[str]) -> None:
    """Refuse a table of attributes that lacks one of these columns."""
    for name in names:
        if name not in table.columns:
            there = clipped(", ".join(table.columns), 300)
            raise InputError(f"sensitive_features has no column {shown(name)}; it has {there}.")
