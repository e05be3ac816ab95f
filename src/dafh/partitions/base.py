"""What every partition does: learn who belongs together, and say it of new rows."""

from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dafh.exceptions import InputError

NOBODY = -1
"""Group of a row that fits none of the groups seen in `fit`; the pooled classifier serves it."""


class Partition(BaseEstimator):
    """Base of all partitions: a way to divide rows into groups, with or without sensitive attributes.

    A subclass writes `fit`, which sets `group_names_`, and `assign`. See the user guide for one from start to end.

    Attributes
    ----------
    group_names_ : list of str
        What each group is, for tables and reports.
    """

    needs_sensitive_features: ClassVar[bool] = False
    group_names_: list[str]

    @property
    def n_groups_(self) -> int:
        """Number of groups found in `fit`."""
        return len(self.group_names_)

    def fit(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        sensitive_features: pd.DataFrame | None = None,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Self:
        """Learn the groups from training rows."""
        raise NotImplementedError

    def assign(self, X: NDArray[Any], sensitive_features: pd.DataFrame | None = None) -> NDArray[np.intp]:
        """Group of each row, 0 to `n_groups_` − 1, or `NOBODY`."""
        raise NotImplementedError

    def members(self, X: NDArray[Any], sensitive_features: pd.DataFrame | None = None) -> list[NDArray[np.intp]]:
        """Training rows of each group; more entries than groups are for codes that `assign` gives beyond them."""
        groups = self.assign(X, sensitive_features)
        return [np.flatnonzero(groups == k) for k in range(self.n_groups_)]

    def _require(self, sensitive_features: pd.DataFrame | None) -> pd.DataFrame:
        if sensitive_features is None:
            raise InputError(f"{type(self).__name__} divides rows by sensitive attributes: pass sensitive_features=...")
        return sensitive_features
