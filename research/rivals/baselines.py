"""The baselines of the paper, capacity controls and rivals, by name and ready to fit."""

from collections.abc import Callable
from typing import Any, Literal

from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dafh.checks.parameters import RandomState
from dafh.classifiers.protocols import Classifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.evaluation.guard_report import GuardKind
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
from research.rivals.arl import ARLClassifier
from research.rivals.bpf import BlindParetoClassifier
from research.rivals.dro import DROClassifier
from research.rivals.george import GeorgeClassifier
from research.rivals.jtt import JTTClassifier
from research.rivals.residual_boosting import ResidualBoostingClassifier
from research.rivals.zafar import ZafarClassifier

ModelClass = Literal["linear", "network"]

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
# Fairness without demographics: one model for all rows.
RIVALS: dict[str, Callable[..., Any]] = {
    "dro": DROClassifier,
    "arl": ARLClassifier,
    "bpf": BlindParetoClassifier,
    "jtt": JTTClassifier,
    "george": GeorgeClassifier,
    "residual-boosting": ResidualBoostingClassifier,
}
"""Rivals that need no attributes, by name."""
BASELINES = (*_PARTITIONS, *_CONTROLS, *RIVALS, "zafar")
"""Names that `make_baseline` takes."""
# Groups that a guard chooses by, where a rival has none of its own.
_GUARD_GROUPS = 8


def make_baseline(
    name: str,
    *,
    model: ModelClass = "linear",
    n_groups: int | None = None,
    estimator: Classifier | None = None,
    guard: GuardKind | None = None,
    random_state: RandomState = None,
    **settings: Any,
) -> DecoupledClassifier:
    """Return an unfitted baseline.

    Parameters
    ----------
    name : str
        ``"pooled"``, ``"trivial"`` (by one attribute), ``"clustering"``, ``"manual"`` (the paper's rules for Arrest),
        ``"lr-all"`` (all combinations of attributes), ``"treelr"``, ``"random"``; or a capacity control, which is one
        stronger or weaker model for all rows: ``"majority"``, ``"mlp"`` (100 hidden units), ``"boosting"``; or a rival,
        which aims to improve results for the worst-off without knowing them: ``"dro"``, ``"arl"``, ``"bpf"`` (Blind
        Pareto Fairness), ``"jtt"``, ``"george"``, ``"residual-boosting"``; or ``"zafar"`` (preference-based, by one
        attribute).
    model : {"linear", "network"}, default="linear"
        What a rival trains: a linear model, or a network with 100 hidden units.
    n_groups : int, optional
        Number of groups, for the partitions that have such a setting: by default 2, and 8 for the clusters by which a
        guard chooses between a rival and the pooled classifier.
    estimator : classifier or None, default=None
        Own classifiers of all partitions, and the pooled classifier of controls and rivals; None is logistic regression
        fitted to convergence.
    guard : {"veto", "proof"} or None, default=None
        As in `DecoupledClassifier`. For controls and rivals, it chooses between them and the pooled classifier in each
        cluster of rows (K-means). Clusters do not depend on labels: groups that were made where a rival looks good
        would be judged by the rows that made them.
    random_state : int, RandomState or None, default=None
    **settings
        Parameters of a rival, such as ``alpha`` of ``"dro"``.

    Examples
    --------
    >>> from research.rivals.baselines import make_baseline
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(2000, random_state=0)
    >>> make_baseline("boosting", random_state=0).fit(data.X, data.y).score(data.X, data.y) > 0.9
    True
    >>> make_baseline("dro", alpha=0.7, guard="veto", random_state=0).fit(data.X, data.y).n_groups_
    8
    """
    if name not in BASELINES:
        raise InputError(f"There is no baseline {name!r}: choose from {', '.join(BASELINES)}.")
    if name == "zafar":
        return _with_settings(ZafarClassifier(guard=guard, random_state=random_state), name, model, settings)
    if name not in RIVALS:
        _with_settings(None, name, model, settings)
    if name in _PARTITIONS:
        partition = _PARTITIONS[name]()
        if "estimator" in partition.get_params():
            partition.set_params(estimator=estimator)
        if "n_groups" in partition.get_params():
            partition.set_params(n_groups=2 if n_groups is None else n_groups)
        return DecoupledClassifier(partition, estimator, guard=guard, random_state=random_state)
    rival = _with_settings(RIVALS[name](), name, model, settings) if name in RIVALS else clone(_CONTROLS[name])
    seeds = {key: random_state for key in rival.get_params() if key.split("__")[-1] == "random_state"}
    rival.set_params(**seeds)
    pooled = StandardizedLogisticRegression() if estimator is None else estimator
    if guard is None:
        return DecoupledClassifier(PooledPartition(), rival, pooled=pooled, random_state=random_state)
    groups = ClusterPartition(_GUARD_GROUPS if n_groups is None else n_groups)
    return DecoupledClassifier(groups, rival, pooled=pooled, fit_on="all", guard=guard, random_state=random_state)


def _with_settings(rival: Any, name: str, model: ModelClass, settings: dict[str, Any]) -> Any:
    """Set the parameters of a rival; None stands for a baseline that has none to set."""
    available = {} if rival is None else rival.get_params(deep=False)
    free = sorted(set(available) - {"model", "random_state", "guard", "pooled"})
    for key in settings:
        if key not in free:
            has = f"choose from {', '.join(free)}" if free else "it has none"
            raise InputError(f"The baseline {name!r} has no setting {key!r}: {has}.")
    if model not in ("linear", "network"):
        raise InputError(f"model must be 'linear' or 'network', got {model!r}.")
    if "model" in available:
        settings = {**settings, "model": model}
    elif model != "linear":
        raise InputError(f"The baseline {name!r} trains no network: leave model at 'linear'.")
    return None if rival is None else rival.set_params(**settings)
