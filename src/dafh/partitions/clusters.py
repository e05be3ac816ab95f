"""Groups of rows that look alike."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from dafh.partitions.base import Partition


class ClusterPartition(Partition):
    """K-means clusters of the standardised features; needs no sensitive attribute, and does not look at y.

    Parameters
    ----------
    n_groups : int, default=2
        Number of clusters, at most the number of different rows.
    random_state : int, RandomState or None, default=None
    """

    def __init__(self, n_groups: int = 2, *, random_state: Any = None) -> None:
        self.n_groups = n_groups
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters."""
        # Equal rows are merged, so that a weight of 2 means exactly what a row given twice means.
        distinct, inverse = np.unique(np.asarray(X, np.float64), axis=0, return_inverse=True)
        weight = np.bincount(inverse, sample_weight)
        n_groups = min(self.n_groups, len(distinct))
        self._scaler = StandardScaler().fit(distinct, sample_weight=weight)
        self._clusters = KMeans(n_groups, n_init=10, random_state=self.random_state)
        self._clusters.fit(self._scaler.transform(distinct), sample_weight=weight)
        self.group_names_ = [f"cluster {k}" for k in range(n_groups)]
        return self

    def assign(self, X: Any, sensitive_features: Any = None) -> NDArray[np.intp]:
        """Nearest cluster of each row."""
        return self._clusters.predict(self._scaler.transform(np.asarray(X, np.float64))).astype(np.intp)
