"""GEORGE: hidden subclasses by clustering, then group DRO over them (Sohoni et al., NeurIPS 2020)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score

from research.rivals.training import Floats, RivalClassifier, TrainingRows, Weighting, train

# Rows that a silhouette is estimated from: it takes time in proportion to their square.
_SILHOUETTE_ROWS = 2000


@dataclass(eq=False, repr=False)
class GeorgeClassifier(RivalClassifier):
    """Classifier for the worst of hidden subclasses, which are clusters of rows inside each class.

    A first model gives each row a representation: its columns, each times the size of its weight. Inside each class
    these are clustered by k-means; the number of clusters is the one with the largest silhouette. A second model then
    minimises the largest mean loss of a cluster, by weights of the clusters that grow exponentially with their losses
    (group DRO).

    Three things are simpler than in the paper: the model is linear, principal components take the place of UMAP, and
    clusters are not divided further.

    Parameters
    ----------
    max_clusters : int, default=10
        Most clusters of a class; at least two are searched for. 1 makes the classes themselves the groups.
    n_components : int, default=2
        Principal components of the representation in which rows are clustered.
    random_state : int or None, default=None
        Starts of k-means, and the rows of the silhouette.

    Attributes
    ----------
    clusters_ : array
        Cluster of each row of `fit`, numbered through both classes.
    gap_ : float
        Largest mean loss of a cluster minus the weighted mean of them; 0 is a saddle point.
    """

    # The authors search 2 to 10 clusters and two or more dimensions.
    RANGES: ClassVar[Mapping[str, tuple[float, ...]]] = {"max_clusters": (2, 5, 10), "n_components": (2, 5)}

    max_clusters: int = 10
    n_components: int = field(default=2, kw_only=True)
    random_state: Any = field(default=None, kw_only=True)

    def _train(self, rows: TrainingRows) -> Floats:
        first = train(rows, Weighting(rows.share), self.l2)
        represented, self.clusters_ = rows.x * np.abs(first[:-1]), np.zeros(len(rows.label), np.intp)
        for label in (0, 1):
            members = rows.label == label
            n_clusters = 0 if label == 0 else int(self.clusters_.max()) + 1
            self.clusters_[members] = n_clusters + self._cluster(represented[members])
        weighting = ClusterWeights(rows.share, self.clusters_)
        second = train(rows, weighting, self.l2)
        self.gap_ = weighting.gap
        return second

    def _cluster(self, represented: Floats) -> NDArray[np.intp]:
        """Cluster the rows of a class, with the number of clusters that has the largest silhouette."""
        x = PCA(min(self.n_components, represented.shape[1]), random_state=0).fit_transform(represented)
        # Equal rows may have components that differ in the last digit, which would count them as different points.
        n_points = len(np.unique(np.round(x / max(np.abs(x).max(), 1e-300), 9), axis=0))
        highest, best = -np.inf, np.zeros(len(x), np.intp)
        for n_clusters in range(2, min(self.max_clusters, n_points - 1) + 1):
            cluster = KMeans(n_clusters, n_init=3, random_state=self.random_state).fit_predict(x)
            score = silhouette_score(
                x, cluster, sample_size=min(_SILHOUETTE_ROWS, len(x)), random_state=self.random_state
            )
            if score > highest:
                highest, best = score, cluster
        return np.unique(best, return_inverse=True)[1]


class ClusterWeights(Weighting):
    """Weights of clusters that grow exponentially with their losses: group DRO.

    The model minimises the logarithm of the mean of exponentiated losses, under the weights of the last round: its
    gradient is that of the weights after one exponentiated step, and it has no kinks. When the weights come to rest,
    it is the largest loss of a cluster.
    """

    rounds, round_iter = 40, 30
    # The authors take 0.01 for each mini-batch, about 1 in an epoch of Adult. A linear model answers every step.
    _STEP, _ENOUGH = 10.0, 1e-4

    def __init__(self, share: Floats, cluster: NDArray[np.intp]) -> None:
        super().__init__(share)
        members = cluster == np.arange(cluster.max() + 1)[:, None]
        self._mean = members / members.sum(axis=1, keepdims=True)
        self._log_weights = np.full(len(members), -np.log(len(members)))
        self.gap = np.inf

    def worst(self, losses: Floats) -> tuple[float, Floats]:
        """Logarithm of the mean exponentiated loss of a cluster, and the weights after one step."""
        stepped = self._log_weights + self._STEP * (self._mean @ losses)
        return float(logsumexp(stepped)) / self._STEP, softmax(stepped) @ self._mean

    def move(self, losses: Floats) -> bool:
        """Take an exponentiated step, and say whether the weighted loss is the largest one."""
        by_cluster = self._mean @ losses
        self._log_weights = log_softmax(self._log_weights + self._STEP * by_cluster)
        self.gap = float(by_cluster.max() - np.exp(self._log_weights) @ by_cluster)
        return self.gap < self._ENOUGH
