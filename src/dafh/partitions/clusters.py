"""Groups of similar rows."""

from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import StandardScaler

from dafh.checks.parameters import RandomState
from dafh.partitions.base import Attributes, Features, Labels, Partition, Weights


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
        self._check_n_groups(self.n_groups)
        # Equal rows are merged, so that a row with weight 2 gives exactly the same clusters as the row given twice:
        # k-means++ draws its starting points by position.
        distinct, inverse = np.unique(np.asarray(X, np.float64), axis=0, return_inverse=True)
        weight = np.bincount(inverse, sample_weight)
        n_groups = min(self.n_groups, len(distinct))
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
