"""The baselines of the paper, capacity controls and rivals, by name and ready to fit."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dafh import DecoupledClassifier
from dafh.exceptions import InputError
from dafh.linear import StandardizedLogisticRegression
from dafh.partitions import ClusterPartition, IntersectionPartition, Partition, PooledPartition
from research.rivals.arl import ARLClassifier
from research.rivals.bpf import BlindParetoClassifier
from research.rivals.dro import DROClassifier
from research.rivals.george import GeorgeClassifier
from research.rivals.jtt import JTTClassifier
from research.rivals.partitions import ManualPartition, TreePartition
from research.rivals.zafar import ZafarClassifier

_PARTITIONS: dict[str, Callable[..., Partition]] = {
    "pooled": PooledPartition,
    "trivial": IntersectionPartition,
    "clustering": ClusterPartition,
    "manual": ManualPartition,
    "lr-all": IntersectionPartition,
    "treelr": TreePartition,
}
RIVALS: dict[str, Any] = {
    "dro": DROClassifier(),
    "arl": ARLClassifier(),
    "bpf": BlindParetoClassifier(),
    "jtt": JTTClassifier(),
    "george": GeorgeClassifier(),
}
"""Fairness without demographics: one linear model for all rows."""
_MODELS: dict[str, Any] = {
    "majority": DummyClassifier(strategy="most_frequent"),
    # The network stops early on held-out rows, because a control that overfits would make every method look good.
    "mlp": make_pipeline(StandardScaler(), MLPClassifier((100,), early_stopping=True, max_iter=200)),
    "boosting": HistGradientBoostingClassifier(),
    **RIVALS,
    "zafar": ZafarClassifier(),
}
BASELINES = (*_PARTITIONS, *_MODELS)
"""Names that `make_baseline` takes."""
# Groups that a guard chooses by, where a rival has none of its own.
_GUARD_GROUPS = 8


def make_baseline(
    name: str,
    *,
    n_groups: int | None = None,
    guard: Literal["evidence", "proof"] | None = None,
    random_state: Any = None,
    **settings: Any,
) -> DecoupledClassifier:
    """Return an unfitted baseline; own classifiers of partitions are logistic regressions fitted to convergence.

    Parameters
    ----------
    name : str
        One of `BASELINES`: a partition of the paper; a capacity control, which is one stronger or weaker model for all
        rows; a rival without attributes; or ``"zafar"``, by one attribute, which is also the last column of X.
    n_groups : int, optional
        Number of groups: by default 2, and 8 for the clusters by which a guard chooses.
    guard : {"evidence", "proof"} or None, default=None
        For controls and rivals, it chooses between them and the pooled classifier in each cluster of rows (K-means),
        and for ``"zafar"`` in each group of the attribute. Clusters do not depend on labels: groups that were made
        where a rival looks good would be judged by the rows that made them.
    **settings
        Parameters of a rival or partition, such as ``alpha`` of ``"dro"``.

    Examples
    --------
    >>> from research.rivals.baselines import make_baseline
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(2000, random_state=0)
    >>> make_baseline("boosting", random_state=0).fit(data.X, data.y).score(data.X, data.y) > 0.9
    True
    >>> make_baseline("dro", alpha=0.7, guard="evidence", random_state=0).fit(data.X, data.y).n_groups_
    8
    """
    if name not in BASELINES:
        raise InputError(f"There is no baseline {name!r}: choose from {', '.join(BASELINES)}.")
    if name in _PARTITIONS:
        partition = _PARTITIONS[name](**settings)
        if "n_groups" in partition.get_params():
            partition.set_params(n_groups=2 if n_groups is None else n_groups)
        return DecoupledClassifier(partition, guard=guard, random_state=random_state)
    model = clone(_MODELS[name])
    seeds = {key: random_state for key in model.get_params() if key.split("__")[-1] == "random_state"}
    model.set_params(**settings, **seeds)
    pooled: Any = StandardizedLogisticRegression()
    groups = ClusterPartition(_GUARD_GROUPS if n_groups is None else n_groups)
    if name == "zafar":
        pooled, groups = make_pipeline(FunctionTransformer(without_group), pooled), IntersectionPartition()
    elif guard is None:
        groups = PooledPartition()
    return DecoupledClassifier(groups, model, pooled=pooled, fit_on="all", guard=guard, random_state=random_state)


def without_group(X: Any) -> Any:
    """All columns but the last, which has the group of each row for Zafar's classifiers."""
    return np.asarray(X)[:, :-1]
