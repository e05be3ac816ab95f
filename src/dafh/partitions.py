"""Rules that divide rows into groups, fixed or fitted, for `dafh.DecoupledClassifier`.

A new partition is a subclass of `Partition`, whose docstring has one. To be saved, it needs a line in
`dafh.persistence.CLASSES`.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import StandardScaler

from dafh.exceptions import InputError
from dafh.text import clipped, shown
from dafh.validation import NOTHING, Allowed, RandomState, check_parameters, sequence_of, whole_number

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

    A subclass defines `fit`, which sets `group_names_`, and `assign`.

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
        """Training rows of each group, by position."""
        groups = self.assign(X, sensitive_features)
        return [np.flatnonzero(groups == k) for k in range(self.n_groups_)]

    def _require(self, sensitive_features: Attributes) -> pd.DataFrame:
        if sensitive_features is None:
            raise InputError(f"{type(self).__name__} divides rows by sensitive attributes: pass sensitive_features=...")
        return sensitive_features


def _columns(table: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Columns of a table of attributes, by name."""
    for name in names:
        if name not in table.columns:
            present = clipped(", ".join(table.columns), 300)
            raise InputError(f"sensitive_features has no column {shown(name)}; it has {present}.")
    return table[list(names)]


class IntersectionPartition(Partition):
    """One group for every combination of attribute values seen in training.

    Parameters
    ----------
    attributes : str, sequence of str, or None, default=None
        Columns of `sensitive_features` to combine, or the only one; None takes all of them.

    Examples
    --------
    >>> import pandas as pd
    >>> attributes = pd.DataFrame({"sex": ["f", "f", "m"], "born": ["here", "there", "here"]})
    >>> partition = IntersectionPartition().fit(None, None, attributes)
    >>> partition.group_names_
    ['sex=f, born=here', 'sex=f, born=there', 'sex=m, born=here']
    >>> partition.assign(None, pd.DataFrame({"sex": ["m", "m"], "born": ["here", "there"]}))
    array([ 2, -1])
    >>> IntersectionPartition("sex").fit(None, None, attributes).group_names_
    ['sex=f', 'sex=m']
    """

    needs_sensitive_features: ClassVar[bool] = True

    def __init__(self, attributes: str | Sequence[str] | None = None) -> None:
        self.attributes = attributes

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Collect the combinations that occur."""
        name = Allowed("the name of a column", lambda value: isinstance(value, str))
        check_parameters(self, {"attributes": (name, sequence_of(name, "a list of names of columns"), NOTHING)})
        table = self._require(sensitive_features)
        names = [self.attributes] if isinstance(self.attributes, str) else self.attributes
        self._names = list(table.columns if names is None else dict.fromkeys(names))
        if not self._names:
            raise InputError("attributes is empty: name a column of sensitive_features, or pass None for all.")
        combinations = _columns(table, self._names).drop_duplicates()
        self._values = [combinations[name].to_numpy() for name in self._names]
        self.group_names_ = [
            ", ".join(f"{name}={value}" for name, value in zip(self._names, values, strict=True))
            for values in zip(*self._values, strict=True)
        ]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Look up the combination of each row; one that was not seen in training belongs to no group."""
        table = _columns(self._require(sensitive_features), self._names)
        return pd.MultiIndex.from_arrays(self._values).get_indexer(pd.MultiIndex.from_frame(table))


class ClusterPartition(Partition):
    """K-means clusters of the standardised features; uses neither sensitive attributes nor y.

    Parameters
    ----------
    n_groups : int, default=2
        Number of clusters; there are fewer if there are fewer distinct rows.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    mean_, scale_ : arrays of shape (d,)
        Mean and standard deviation of each column, over the training rows.
    centers_ : array of shape (`n_groups_`, d)
        Centre of each cluster in standardised columns.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [9.0], [9.1]])
    >>> groups = ClusterPartition(2, random_state=0).fit(X, None).assign(X)
    >>> groups[0] == groups[1] != groups[2] == groups[3]
    np.True_
    """

    def __init__(self, n_groups: int = 2, *, random_state: RandomState = None) -> None:
        self.n_groups = n_groups
        self.random_state = random_state

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Find the clusters."""
        check_parameters(self, {"n_groups": (whole_number(1, MOST_GROUPS),)})
        # Equal rows are merged, so that a row with weight 2 gives exactly the same clusters as the row given twice:
        # k-means++ draws its starting points by position.
        distinct, inverse = np.unique(np.asarray(X, np.float64), axis=0, return_inverse=True)
        weight = np.bincount(inverse, sample_weight)
        n_groups = min(self.n_groups, len(distinct))  # K-means refuses more clusters than distinct rows.
        scaler = StandardScaler().fit(distinct, sample_weight=weight)
        clusters = KMeans(n_groups, n_init=10, random_state=self.random_state)
        clusters.fit(scaler.transform(distinct), sample_weight=weight)
        # Kept as arrays: all that new rows need, and all that a model file has to hold.
        self.mean_, self.scale_, self.centers_ = scaler.mean_, scaler.scale_, clusters.cluster_centers_
        self.group_names_ = [f"cluster {k}" for k in range(n_groups)]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Nearest cluster of each row."""
        scaled = (np.asarray(X, np.float64) - self.mean_) / self.scale_
        return pairwise_distances_argmin(scaled, self.centers_).astype(np.intp)


class PooledPartition(Partition):
    """All rows in one group, for the pooled classifier and the capacity controls.

    Examples
    --------
    >>> PooledPartition().fit(None, None).assign(np.zeros((3, 1)))
    array([0, 0, 0])
    """

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Name the only group."""
        self.group_names_ = ["everybody"]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Assign all rows to group 0."""
        return np.zeros(len(X), np.intp)
