"""The baselines of the paper and capacity controls, by name and ready to fit."""

from collections.abc import Callable

from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dafh.checks.parameters import RandomState
from dafh.classifiers.protocols import Classifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.exceptions import InputError
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.partitions import (
    AttributePartition,
    ClusterPartition,
    IntersectionPartition,
    Partition,
    PooledPartition,
    RandomPartition,
    TreePartition,
    paper_manual_partition,
)

_PARTITIONS: dict[str, Callable[[], Partition]] = {
    "pooled": PooledPartition,
    "trivial": AttributePartition,
    "clustering": ClusterPartition,
    "manual": paper_manual_partition,
    "lr-all": IntersectionPartition,
    "treelr": TreePartition,
    "random": RandomPartition,
}
# The network stops early on held-out rows, because a control that overfits would make every method look good.
_CONTROLS = {
    "majority": DummyClassifier(strategy="most_frequent"),
    "mlp": make_pipeline(StandardScaler(), MLPClassifier((100,), early_stopping=True, max_iter=200)),
    "boosting": HistGradientBoostingClassifier(),
}
BASELINES = (*_PARTITIONS, *_CONTROLS)
"""Names that `make_baseline` takes."""


def make_baseline(
    name: str, *, n_groups: int = 2, estimator: Classifier | None = None, random_state: RandomState = None
) -> DecoupledClassifier:
    """Return an unfitted baseline.

    Parameters
    ----------
    name : str
        ``"pooled"``, ``"trivial"`` (by one attribute), ``"clustering"``, ``"manual"`` (the paper's rules for Arrest),
        ``"lr-all"`` (all combinations of attributes), ``"treelr"``, ``"random"``; or a capacity control, which is one
        stronger or weaker model for all rows: ``"majority"``, ``"mlp"`` (100 hidden units), ``"boosting"``.
    n_groups : int, default=2
        Number of groups, for the partitions that have such a setting.
    estimator : classifier or None, default=None
        Own classifiers of all partitions, and the pooled classifier of the controls; None is logistic regression
        fitted to convergence.
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> from dafh.rivals.baselines import make_baseline
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(2000, random_state=0)
    >>> make_baseline("boosting", random_state=0).fit(data.X, data.y).score(data.X, data.y) > 0.9
    True
    """
    if name in _PARTITIONS:
        partition = _PARTITIONS[name]()
        if "estimator" in partition.get_params():
            partition.set_params(estimator=estimator)
        if "n_groups" in partition.get_params():
            partition.set_params(n_groups=n_groups)
        return DecoupledClassifier(partition, estimator, random_state=random_state)
    if name not in _CONTROLS:
        raise InputError(f"There is no baseline {name!r}: choose from {', '.join(BASELINES)}.")
    control = clone(_CONTROLS[name])
    seeds = {key: random_state for key in control.get_params() if key.split("__")[-1] == "random_state"}
    control.set_params(**seeds)
    pooled = StandardizedLogisticRegression() if estimator is None else estimator
    return DecoupledClassifier(PooledPartition(), control, pooled=pooled, random_state=random_state)
