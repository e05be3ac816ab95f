"""Boosted trees as plain arrays: read from scikit-learn's once they are fitted, and served by NumPy."""

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from dafh.classifiers.logits import decide
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.models.container import MalformedError

# Rows and trees that are followed at the same time: enough to make NumPy's overhead small, few enough for the cache.
_BLOCK = 2**18
_DEEPEST_TREE = 1000
LARGEST_LEAF = 1e100
_PROBES = 200


class BoostedTrees(ClassifierMixin, BaseEstimator):
    """Gradient boosting as a model file holds it: predicts as the fitted HistGradientBoostingClassifier did.

    Rebuilding scikit-learn's own object from a file would hand compiled code indices that nobody has checked. Here
    every index is checked when the trees are set, and NumPy checks it again.

    Parameters
    ----------
    trained_as : HistGradientBoostingClassifier
        Not fitted: what the trees were trained with. A clone of `BoostedTrees` is a clone of this, as the clone of the
        original classifier would be.
    """

    def __init__(self, trained_as: HistGradientBoostingClassifier) -> None:
        self.trained_as = trained_as

    def __sklearn_clone__(self) -> HistGradientBoostingClassifier:
        return clone(self.trained_as)

    def fit(self, X: Table, y: ArrayLike) -> Self:
        """Refuse: the trees are what they are."""
        raise InputError("Trees from a model file cannot be fitted: sklearn.base.clone() makes a copy that can be.")

    def set_trees(
        self,
        classes: NDArray[np.generic],
        baseline: NDArray[np.float64],
        roots: NDArray[np.int64],
        children: NDArray[np.int64],
        column: NDArray[np.int64],
        threshold: NDArray[np.float64],
        gaps_left: NDArray[np.bool_],
        value: NDArray[np.float64],
    ) -> Self:
        """Set the trees, all nodes in one list.

        Parameters
        ----------
        classes : array of shape (n_classes,)
        baseline : array of shape (m,)
            Logits before any tree; m is 1 for two classes, else their number.
        roots : array of shape (n_trees,)
            First node of each tree; tree t adds to logit t mod m.
        children : array of shape (n_nodes, 2)
            Nodes on the left and on the right; 0 and 0 for a leaf.
        column, threshold, gaps_left : arrays of shape (n_nodes,)
            A row goes left where its value is at most the threshold, or missing and `gaps_left`.
        value : array of shape (n_nodes,)
            What a leaf adds.
        """
        m = 1 if len(classes) == 2 else len(classes)
        n_nodes, inner = len(value), children[:, 1] > 0
        own = np.arange(n_nodes)
        # Children stand behind their parent and before the next tree. So every walk ends, and stays in its tree.
        behind = (children > own[:, None]) & (children < np.append(roots, n_nodes)[_tree_of(roots, n_nodes) + 1, None])
        if baseline.shape != (m,) or not len(roots) or len(roots) % m or roots[0] != 0 or (np.diff(roots) < 1).any():
            raise MalformedError("its boosted trees do not fit its classes")
        if not behind[inner].all() or not ((column >= 0) & (column < self.n_features_in_)).all():
            raise MalformedError("a boosted tree points outside itself")
        if np.isnan(threshold).any() or _depth(roots, children, inner) > _DEEPEST_TREE:
            raise MalformedError("a boosted tree is malformed")
        self.classes_, self.baseline_, self.roots_, self.children_ = classes, baseline, roots, children
        self.column_, self.threshold_, self.gaps_left_, self.value_ = column, threshold, gaps_left, value
        return self

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class; columns as in `classes_`."""
        logits = self._logits(X)
        if logits.shape[1] == 1:
            positive = expit(logits[:, 0])
            return np.column_stack([1 - positive, positive])
        return softmax(logits, axis=1)

    def predict(self, X: Table) -> NDArray[np.generic]:
        """Return the most probable label of each row."""
        return self.classes_[decide(self._logits(X))]

    def _logits(self, X: Table) -> NDArray[np.float64]:
        """Logit of ``classes_[1]`` (two classes) or of every class, (n, m)."""
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        m = len(self.baseline_)
        logits = np.empty((len(values), m))
        rows_at_a_time = max(1, _BLOCK // len(self.roots_))
        for first in range(0, len(values), rows_at_a_time):
            block = values[first : first + rows_at_a_time]
            leaves = self.value_[self._leaves(block)].reshape(len(block), -1, m)
            start = np.broadcast_to(self.baseline_, (len(block), 1, m))
            # Summed in the order of training, as scikit-learn does: np.sum adds pairwise, and the last digit differs.
            logits[first : first + len(block)] = np.cumsum(np.concatenate([start, leaves], axis=1), axis=1)[:, -1]
        return logits

    def _leaves(self, rows: NDArray[np.float64]) -> NDArray[np.intp]:
        """Leaf of each row in each tree, (n, n_trees); all walks go down one level at a time."""
        node = np.tile(self.roots_, len(rows))
        row = np.repeat(np.arange(len(rows)), len(self.roots_))
        is_leaf = self.children_[:, 1] == 0
        walking = np.flatnonzero(~is_leaf[node])
        while len(walking):
            at = node[walking]
            seen = rows[row[walking], self.column_[at]]
            right = np.where(np.isnan(seen), ~self.gaps_left_[at], seen > self.threshold_[at])
            node[walking] = self.children_[at, right.astype(np.intp)]
            walking = walking[~is_leaf[node[walking]]]
        return node.reshape(len(rows), len(self.roots_))


def _tree_of(roots: NDArray[np.int64], n_nodes: int) -> NDArray[np.intp]:
    return np.searchsorted(roots, np.arange(n_nodes), side="right") - 1


def _depth(roots: NDArray[np.int64], children: NDArray[np.int64], inner: NDArray[np.bool_]) -> int:
    """Levels of the deepest tree, counted until there are too many."""
    level, depth = roots, 0
    while len(level) and depth <= _DEEPEST_TREE:
        # A file may give one node to many parents: each is counted once, or the levels would double.
        level = np.unique(children[level[inner[level]]])
        depth += 1
    return depth


def as_boosted_trees(fitted: HistGradientBoostingClassifier) -> BoostedTrees | None:
    """Turn a fitted classifier into `BoostedTrees`; None if its trees cannot be read, or would predict otherwise."""
    arrays = _read_trees(fitted)
    if arrays is None:
        return None
    trees = BoostedTrees(clone(fitted))
    trees.n_features_in_ = fitted.n_features_in_
    if hasattr(fitted, "feature_names_in_"):
        trees.feature_names_in_ = fitted.feature_names_in_
    trees.set_trees(np.asarray(fitted.classes_), **arrays)
    # The meaning of a private attribute may change with a version: both are asked about rows at and beside thresholds.
    rng = np.random.default_rng(0)
    values = np.append(arrays["threshold"], [-np.inf, np.inf, np.nan])
    values = np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])
    probes = rng.choice(values[~np.isinf(values)], (_PROBES, fitted.n_features_in_))
    rows = pd.DataFrame(probes, columns=getattr(fitted, "feature_names_in_", None))
    given = rows if hasattr(fitted, "feature_names_in_") else probes
    return trees if np.allclose(trees.predict_proba(given), fitted.predict_proba(given)) else None


def _read_trees(fitted: HistGradientBoostingClassifier) -> dict[str, NDArray[Any]] | None:
    """Read the trees of a fitted classifier as the arrays that `BoostedTrees.set_trees` takes.

    This is the one place that reads private attributes of scikit-learn. It has no public access to the trees of
    gradient boosting, and to write them with pickle, or as scikit-learn's own objects, is what model files are there to
    avoid. It only reads, and only when a model is saved.

    Returns None for trees that split by categories, and where scikit-learn has changed: the classifier is then a
    foreign part.
    """
    try:
        nodes = [np.asarray(tree.nodes) for stage in fitted._predictors for tree in stage]
        baseline = np.asarray(fitted._baseline_prediction, np.float64).ravel()
        names = ("left", "right", "feature_idx", "num_threshold", "missing_go_to_left", "value", "is_leaf")
        parts = {name: np.concatenate([tree[name] for tree in nodes]) for name in names}
        if any(tree["is_categorical"].any() for tree in nodes) or fitted.is_categorical_ is not None:
            return None
    except (AttributeError, KeyError, ValueError, IndexError):
        return None
    sizes = [len(tree) for tree in nodes]
    roots = np.cumsum([0, *sizes[:-1]])
    inner = ~parts["is_leaf"].astype(bool)
    children = np.column_stack([parts["left"], parts["right"]]).astype(np.int64) + np.repeat(roots, sizes)[:, None]
    return {
        "baseline": baseline,
        "roots": roots,
        "children": np.where(inner[:, None], children, 0),
        "column": np.where(inner, parts["feature_idx"], 0).astype(np.int64),
        "threshold": np.where(inner, parts["num_threshold"], 0.0),
        "gaps_left": inner & parts["missing_go_to_left"].astype(bool),
        "value": np.where(inner, 0.0, parts["value"]),
    }
