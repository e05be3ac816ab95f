"""GEORGE: hidden subclasses by clustering, then group DRO over them (Sohoni et al., NeurIPS 2020)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from research.rivals.training import Floats, Network, Plan, RivalClassifier, TrainingRows, Weighting, train


@dataclass(eq=False, repr=False)
class GeorgeClassifier(RivalClassifier):
    """Classifier for the worst of hidden subclasses, which are clusters of rows inside each class.

    A first model gives each row a representation: the inputs of its last layer, each times the size of its weights.
    Inside each class these are clustered by k-means; the number of clusters is the one with the largest silhouette. A
    second model then minimises the largest mean loss of a cluster, by weights of the clusters that grow exponentially
    with their losses (group DRO).

    Three things are simpler than in the paper: principal components take the place of UMAP, silhouettes are computed
    from distances to centres, and clusters are not divided further.

    Parameters
    ----------
    max_clusters : int, default=10
        Most clusters of a class; at least two are searched for. 1 makes the classes themselves the groups.
    n_components : int, default=2
        Principal components of the representation in which rows are clustered.

    Attributes
    ----------
    clusters_ : array
        Cluster of each row of `fit`, numbered through both classes.
    cluster_weights_ : array
        What each cluster counts at the end.
    gap_ : float
        Largest mean loss of a cluster minus the weighted mean of them; 0 is a saddle point.
    """

    # The authors search 2 to 10 clusters and two or more dimensions.
    RANGES: ClassVar[Mapping[str, tuple[float, ...]]] = {"max_clusters": (2, 5, 10), "n_components": (2, 5)}

    max_clusters: int = 10
    n_components: int = field(default=2, kw_only=True)

    def _train(self, rows: TrainingRows, plan: Plan, rng: np.random.Generator) -> Floats:
        first = train(rows, Weighting(rows.share), plan, rng)
        network = Network(rows.x.shape[1], plan.hidden)
        cluster = self._cluster(network, first, rows)
        # The authors take 0.01 for each mini-batch, about 1 in an epoch of Adult. A linear model answers every step.
        weighting = ClusterWeights(rows.share, cluster, step=1.0 if plan.hidden else 10.0)
        second = train(rows, weighting, plan, rng)
        self.clusters_ = cluster
        self.cluster_weights_, self.gap_ = weighting.cluster_weights, weighting.gap
        return second

    def _cluster(self, network: Network, first: Floats, rows: TrainingRows) -> NDArray[np.intp]:
        """Cluster the rows of each class; clusters of the second class have higher numbers."""
        inputs = network.forward(first, rows.x)[-2].astype(np.float64)
        represented = inputs * np.linalg.norm(network.layers(first)[-1][0], axis=1)
        cluster, n_clusters = np.empty(len(rows.label), np.intp), 0
        for label in (0, 1):
            members = np.flatnonzero(rows.label == label)
            components = principal_components(represented[members], self.n_components)
            cluster[members] = find_clusters(components, self.max_clusters) + n_clusters
            n_clusters = int(cluster[members].max()) + 1
        return cluster


def principal_components(x: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Coordinates of the rows along the directions in which they differ most."""
    centred = x - x.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, ::-1][:, :n]


def find_clusters(x: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Cluster rows by k-means, with the number of clusters that has the largest silhouette.

    Each number of clusters starts from the one before, with its widest cluster divided: no chance is involved.
    Silhouettes are computed from distances to centres, which takes time in proportion to the rows, and not to their
    square.

    Examples
    --------
    >>> x = np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]])
    >>> find_clusters(x, most=4)
    array([0, 0, 1, 1, 2, 2])
    """
    # Equal rows may have components that differ in the last digit, which would count them as different points.
    x = np.round(x / max(float(np.abs(x).max()), 1e-300), 9)
    highest, best = -np.inf, np.zeros(len(x), np.intp)
    centres, cluster = x.mean(axis=0)[None], best
    for _ in range(2, min(most, len(np.unique(x, axis=0)) - 1) + 1):
        centres = _divide_widest(x, centres, cluster)
        model = KMeans(len(centres), init=centres, n_init=1).fit(x)
        centres, cluster = model.cluster_centers_, model.labels_.astype(np.intp)
        score = _silhouette(x, centres, cluster)
        if score > highest + 1e-9:
            highest, best = score, cluster
    return np.unique(best, return_inverse=True)[1]


def _divide_widest(
    x: NDArray[np.float64], centres: NDArray[np.float64], cluster: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Replace the centre of the cluster with the largest sum of squared distances by two, along its longest axis."""
    squares = ((x - centres[cluster]) ** 2).sum(axis=1)
    widest = int(np.argmax(np.bincount(cluster, squares, len(centres))))
    members = cluster == widest
    along = principal_components(x[members], 1)[:, 0]
    halves = [x[members][side].mean(axis=0) for side in (along <= 0, along > 0)]
    return np.vstack([np.delete(centres, widest, axis=0), halves])


def _silhouette(x: NDArray[np.float64], centres: NDArray[np.float64], cluster: NDArray[np.intp]) -> float:
    """Mean of 1 − distance to the own centre / distance to the next one; 0 for a cluster that is a single point."""
    nearest, second = np.partition(np.linalg.norm(x[:, None] - centres, axis=2), 1, axis=1)[:, :2].T
    is_point = np.bincount(cluster, nearest, len(centres)) < 1e-9
    scores = np.where(is_point[cluster], 0.0, 1 - nearest / np.maximum(second, 1e-300))
    return float(scores.mean())


class ClusterWeights(Weighting):
    """Weights of clusters that grow exponentially with their losses: group DRO.

    A linear model minimises the logarithm of the mean of exponentiated losses, under the weights of the last round: its
    gradient is that of the weights after one exponentiated step, and it has no kinks. When the weights come to rest,
    it is the largest loss of a cluster.
    """

    rounds, round_iter = 40, 30
    _ENOUGH = 1e-4

    def __init__(self, share: NDArray[np.float64], cluster: NDArray[np.intp], step: float) -> None:
        super().__init__(share)
        self._cluster, self._step = cluster, step
        self._inside = share / np.bincount(cluster, share)[cluster]
        self.cluster_weights = np.full(int(cluster.max()) + 1, 1 / (cluster.max() + 1))
        self.gap = np.inf

    def worst(self, losses: Floats) -> tuple[float, NDArray[np.float64]]:
        """Logarithm of the mean exponentiated loss of a cluster, and the weights after one step."""
        value, stepped = self._stepped(self._cluster_losses(losses))
        return value, self._spread(stepped)

    def move(self, losses: Floats) -> bool:
        """Take an exponentiated step, and say whether the weighted loss is the largest one."""
        by_cluster = self._cluster_losses(losses)
        _, self.cluster_weights = self._stepped(by_cluster)
        self.current = self._spread(self.cluster_weights)
        self.gap = float(by_cluster.max() - self.cluster_weights @ by_cluster)
        return self.gap < self._ENOUGH

    def _stepped(self, by_cluster: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Logarithm of the mean exponentiated loss, and the weights after one step."""
        # Relative to the largest loss, so that no exponential overflows.
        highest = by_cluster.max()
        grown = self.cluster_weights * np.exp(self._step * (by_cluster - highest))
        total = grown.sum()
        return float(highest + np.log(total) / self._step), grown / total

    def _cluster_losses(self, losses: Floats) -> NDArray[np.float64]:
        return np.bincount(self._cluster, self._inside * losses, len(self.cluster_weights)).astype(np.float64)

    def _spread(self, cluster_weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return cluster_weights[self._cluster] * self._inside
