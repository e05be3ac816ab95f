"""Partitions that only comparisons need: TreeLR, and the paper's manual partition of Arrest."""

import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from dafh.linear import StandardizedLogisticRegression
from dafh.partitions import NOBODY, Partition
from dafh.stats import mcnemar_p

Features = NDArray[np.float64]
Labels = NDArray[np.generic]
Attributes = pd.DataFrame | None
Mask = NDArray[np.bool_]

# ---- the manual partition ----


class ManualPartition(Partition):
    """The paper's manual partition of Arrest.

    Non-white men up to 45 are one group and non-white women from 25 to 45 the other; all other rows are spread over
    both at random.
    """

    needs_sensitive_features: ClassVar[bool] = True

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Any = None) -> Self:
        """Draw the salt of the hash."""
        self._salt = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.group_names_ = ["non-white men under 45", "non-white women 25 to 45"]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Group by the rules, or by a hash of the row, so that a row is in the same group in every call."""
        table = self._require(sensitive_features)
        others = table["race_group"] != "Caucasian"
        men = others & (table["sex"] == "Male") & table["age_group"].isin(["less than 25", "25 - 45"])
        women = others & (table["sex"] == "Female") & (table["age_group"] == "25 - 45")
        # Adding 0 turns −0 into 0, which has other bits. The lowest bit of the hash is no use: the salt flips that of
        # all rows or of none.
        salted = pd.DataFrame(np.asarray(X, np.float64) + 0.0).assign(salt=self._salt)
        hashed = pd.util.hash_pandas_object(salted, index=False).to_numpy() >> np.uint64(32)
        return np.select([men, women], [0, 1], hashed.astype(np.intp) % 2)


# ---- TreeLR ----

Path = tuple[tuple[str, Hashable], ...]
"""Attributes and their values, from the root of a tree down to a node; empty for the root."""


@dataclass
class Node:
    """Rows with the same values of some attributes."""

    path: Path
    rows: NDArray[np.intp]
    """Its rows, by position among the rows that grow the tree."""
    right: Mask
    """Whether its model is right: first for all rows that grow the tree, then for those that prune it."""
    children: dict[Hashable, "Node"] = field(default_factory=dict)


Tree = tuple[Node, ...]
"""A pruned tree, given by its leaves."""


class TreePartition(Partition):
    """TreeLR (Ustun, Liu and Parkes 2019): groups as the leaves of a tree over sensitive attributes.

    Two thirds of the rows grow the tree: the split after which leaves most clearly prefer their own classifiers is
    applied until no leaf can be split. The other third prunes it. All trees that remain after collapsing siblings are
    compared. Those in which some combination of attribute values is significantly better off with another classifier
    are discarded (level `alpha`, divided by the number of tests), and of the others the one whose smallest gain over
    the pooled classifier is largest is taken. If none is left, the pooled classifier serves all rows. A row with a
    value that was not seen in training is in no group. `estimator` is the classifier of a node while the tree is built;
    None is logistic regression fitted to convergence. `tree_` has the leaves.
    """

    needs_sensitive_features: ClassVar[bool] = True

    def __init__(self, *, estimator: Any = None, alpha: float = 0.10, random_state: Any = None) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.random_state = random_state

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Any = None) -> Self:
        """Grow and prune the tree."""
        table = self._require(sensitive_features).reset_index(drop=True)
        grow, prune = train_test_split(
            np.arange(len(y)),
            test_size=1 / 3,
            stratify=y if np.unique(y, return_counts=True)[1].min() > 1 else None,
            random_state=self.random_state,
        )
        search = _TreeSearch(X, y, table, grow, prune, self.estimator)
        root = search.grow_tree()
        self.tree_ = search.best(list(prunings(root)), self.alpha) or (root,)
        self.group_names_ = [
            ", ".join(f"{name}={value}" for name, value in leaf.path) or "everybody" for leaf in self.tree_
        ]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Leaf of each row."""
        table = self._require(sensitive_features).reset_index(drop=True)
        groups = np.full(len(table), NOBODY, np.intp)
        for code, leaf in enumerate(self.tree_):
            groups[_follows(table, leaf.path)] = code
        return groups


def _follows(table: pd.DataFrame, path: Path) -> Mask:
    """Rows that have the values of a path."""
    holds = np.ones(len(table), bool)
    for attribute, value in path:
        holds &= (table[attribute] == value).to_numpy()
    return holds


def prunings(node: Node) -> Iterator[Tree]:
    """Yield every tree that remains after collapsing siblings, down to the single node."""
    yield (node,)
    if node.children:
        for subtrees in itertools.product(*(list(prunings(child)) for child in node.children.values())):
            yield tuple(itertools.chain.from_iterable(subtrees))


@dataclass
class _TreeSearch:
    """The search for one tree: its data, and the classifiers of all nodes that were tried."""

    X: Features
    y: Labels
    table: pd.DataFrame
    grow: NDArray[np.intp]
    prune: NDArray[np.intp]
    estimator: Any
    nodes: dict[frozenset[tuple[str, Hashable]], Node] = field(default_factory=dict)

    def grow_tree(self) -> Node:
        """Apply the best feasible split until there is none; scores never stop the growth."""
        root = self.node((), np.arange(len(self.grow)))
        leaves = [root]
        while splits := list(self.splits(leaves)):
            trees = [
                [leaf for leaf in leaves if leaf is not parent] + list(children.values()) for parent, children in splits
            ]
            best = int(np.argmin([separation(tree, root) for tree in trees]))
            parent, parent.children = splits[best]
            leaves = trees[best]
        return root

    def splits(self, leaves: list[Node]) -> Iterator[tuple[Node, dict[Hashable, Node]]]:
        """Yield all feasible splits of all leaves, with fitted children; each attribute once on a path."""
        for leaf in leaves:
            for attribute in self.table.columns.difference([name for name, _ in leaf.path], sort=False):
                values = self.table[attribute].to_numpy()[self.grow[leaf.rows]]
                # In the order of appearance, because values of different types cannot be sorted.
                rows = {value: leaf.rows[values == value] for value in dict.fromkeys(values)}
                if self.is_feasible(leaf, list(rows.values())):
                    yield leaf, {v: self.node((*leaf.path, (attribute, v)), members) for v, members in rows.items()}

    def is_feasible(self, leaf: Node, children: list[NDArray[np.intp]]) -> bool:
        """Whether there are several children, each with 2d rows or more, and d of each class; d columns.

        Of a class with fewer rows in the leaf, each child needs all of them.
        """
        labels, d = self.y[self.grow], self.X.shape[1]
        classes, counts = np.unique(labels[leaf.rows], return_counts=True)
        least = np.minimum(counts, d)
        return len(children) > 1 and all(
            len(rows) >= 2 * d and ((labels[rows][:, None] == classes).sum(axis=0) >= least).all() for rows in children
        )

    def node(self, path: Path, rows: NDArray[np.intp]) -> Node:
        """Fit the classifier of a node, only once: the same values in another order are the same rows."""
        key = frozenset(path)
        if key not in self.nodes:
            train, judged = self.grow[rows], np.concatenate([self.grow, self.prune])
            # With a fixed C: many nodes are tried, few stay, and those are fitted again by DecoupledClassifier.
            model = StandardizedLogisticRegression(C=1.0) if self.estimator is None else clone(self.estimator)
            if len(np.unique(self.y[train])) == 1:  # Most classifiers refuse a single class.
                model = DummyClassifier(strategy="most_frequent")
            model.fit(self.X[train], self.y[train])
            self.nodes[key] = Node(path, rows, model.predict(self.X[judged]) == self.y[judged])
        return Node(path, rows, self.nodes[key].right)

    def best(self, trees: list[Tree], alpha: float) -> Tree | None:
        """Return the tree with the best gains, of those with at least two leaves and no significant harm.

        Gains over the pooled classifier in atomic groups, the rows of each combination of all attributes: the smallest
        counts first, then the largest, then the median.
        """
        table = self.table.iloc[self.prune].reset_index(drop=True)
        atoms = [np.asarray(rows) for rows in table.groupby(list(table), sort=False, observed=True).indices.values()]
        pooled = self.nodes[frozenset()].right[len(self.grow) :]
        best, best_gains = None, (-np.inf,)
        for tree in trees:
            leaves = [leaf.right[len(self.grow) :] for leaf in tree]
            served = pooled.copy()
            for leaf, right in zip(tree, leaves, strict=True):
                members = _follows(table, leaf.path)
                served[members] = right[members]
            if len(tree) == 1 or _is_harmful(served, [pooled, *leaves], atoms, alpha):
                continue
            gains = [float(served[rows].mean() - pooled[rows].mean()) for rows in atoms]
            ranked = (min(gains), max(gains), float(np.median(gains)))
            if ranked > best_gains:
                best, best_gains = tree, ranked
        return best


def _is_harmful(served: Mask, rivals: list[Mask], atoms: list[NDArray[np.intp]], alpha: float) -> bool:
    """Whether any atomic group is significantly better off with the pooled or with another leaf's classifier.

    `rivals` says where each classifier is right, the pooled one first, and `served` where the row's own is. The exact
    one-sided McNemar tests share the level: one against the pooled and each other leaf's classifier for each group.
    """
    level = alpha / (len(atoms) * (len(rivals) - 1))
    return any(
        mcnemar_p(int((~served[rows] & rival[rows]).sum()), int((served[rows] & ~rival[rows]).sum())) < level
        for rows in atoms
        for rival in rivals
    )


def separation(leaves: Sequence[Node], root: Node) -> float:
    """Score of a tree on the rows that grew it; small if every leaf clearly prefers its own classifier."""
    total = 0.0
    for leaf in leaves:
        n, own_error = len(leaf.rows), 1 - leaf.right[leaf.rows].mean()
        rivals = [root, *(rival for rival in leaves if rival is not leaf)]
        gaps = [own_error - (1 - rival.right[leaf.rows].mean()) for rival in rivals]
        total += sum(4 * np.exp(-n * gap**2 / 2) for gap in gaps)
    return float(total)
