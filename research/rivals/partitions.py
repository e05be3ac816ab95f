"""Partitions that only comparisons need: TreeLR, and the paper's rules for Arrest."""

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from dafh.classifiers import fit_group
from dafh.exceptions import InputError
from dafh.linear import StandardizedLogisticRegression
from dafh.partitions import NOBODY, Partition, require_columns
from dafh.stats import mcnemar_p

Features = NDArray[np.float64]
Labels = NDArray[np.generic]
Attributes = pd.DataFrame | None
Weights = NDArray[np.float64] | None

# ---- rules and chance ----


class RulesAndChance(Partition):
    """Groups by rules; rows for which none holds are spread over the groups at random, as in the paper.

    Parameters
    ----------
    rules : mapping of str to function
        Name of each group, and a function of `sensitive_features` that returns a boolean for each row. The first rule
        that holds decides.
    random_state : int, RandomState or None, default=None
    """

    needs_sensitive_features: ClassVar[bool] = True

    def __init__(self, rules: Mapping[str, Callable[[pd.DataFrame], Any]], *, random_state: Any = None) -> None:
        self.rules = rules
        self.random_state = random_state

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Draw the salt of the hash."""
        self._require(sensitive_features)
        self._salt = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.group_names_ = list(self.rules)
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Group of the first rule that holds, or a random one, the same in every call."""
        table = self._require(sensitive_features)
        holds = [np.asarray(rule(table), dtype=bool) for rule in self.rules.values()]
        by_chance = hashed_group(X, self._salt, self.n_groups_)
        return np.select(holds, range(self.n_groups_), by_chance).astype(np.intp)


def hashed_group(X: Features, salt: int, n_groups: int) -> NDArray[np.intp]:
    """Group of each row by a hash of its features and the salt."""
    # The hash is one of bits. In single precision, or as −0 instead of 0, equal numbers have different bits, and adding
    # 0 turns −0 into 0.
    values = np.asarray(X, np.float64) + 0.0
    hashes = pd.util.hash_pandas_object(pd.DataFrame(values), index=False)
    # Mixed again (SplitMix64): a salt that is only added would flip the last bit of all hashes or of none, and two
    # groups would stay the same two groups for every salt.
    mixed = hashes.to_numpy() + np.uint64(salt) * np.uint64(0x9E3779B9)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(n_groups)).astype(np.intp)


# ---- TreeLR ----

# All prunings are compared, and their number grows exponentially with the number of splits.
_MOST_TREES = 100_000

Path = tuple[tuple[str, Hashable], ...]
"""Attributes and their values, from the root of a tree down to a node."""


@dataclass
class Node:
    """Rows with the same values of some attributes."""

    path: Path
    """Attributes and values that lead here from the root; empty for the root."""
    rows: NDArray[np.intp]
    """Its rows, by position among the rows that grow the tree."""
    right: NDArray[np.bool_]
    """Whether its model is right: first for all rows that grow the tree, then for those that prune it."""
    attribute: str | None = None
    children: dict[Hashable, "Node"] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Attributes and values as text."""
        return ", ".join(f"{attribute}={value}" for attribute, value in self.path) or "everybody"


Tree = tuple[Node, ...]
"""A pruned tree, given by its leaves."""


class TreePartition(Partition):
    """Groups as the leaves of a tree over sensitive attributes.

    Two thirds of the rows grow the tree: the split after which leaves most clearly prefer their own classifiers is
    applied until no leaf can be split. The other third prunes it. All trees that remain after collapsing siblings are
    compared. Those in which some combination of attribute values is significantly better off with another classifier
    are discarded, and of the others the one whose smallest gain over the pooled classifier is largest is taken. If none
    is left, the pooled classifier serves all rows. A row with a value that was not seen in training is in no group.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Classifier of a node while the tree is built; None is logistic regression fitted to convergence.
    alpha : float, default=0.1
        Significance level of the tests, which is divided by their number.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    tree_ : tuple of Node
        The leaves that were kept.

    Examples
    --------
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(4000, random_state=0)
    >>> tree = TreePartition(random_state=0).fit(data.X.to_numpy(), data.y, data.sensitive_features)
    >>> tree.n_groups_
    4
    """

    needs_sensitive_features: ClassVar[bool] = True

    def __init__(
        self,
        *,
        estimator: Any = None,
        alpha: float = 0.10,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.random_state = random_state

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Grow and prune the tree."""
        table = self._require(sensitive_features).reset_index(drop=True)
        grow, prune = train_test_split(
            np.arange(len(y)),
            test_size=1 / 3,
            stratify=y if np.unique(y, return_counts=True)[1].min() > 1 else None,
            random_state=self.random_state,
        )
        search = _TreeSearch(X, y, sample_weight, table, list(table.columns), grow, prune, self.estimator)
        root = search.grown()
        leaves = search.best(list(prunings(root)), self.alpha) or (root,)
        self.tree_ = leaves
        self.group_names_ = [node.name for node in leaves]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Leaf of each row."""
        table = self._require(sensitive_features).reset_index(drop=True)
        require_columns(table, [name for leaf in self.tree_ for name, _ in leaf.path])
        groups = np.full(len(table), NOBODY, np.intp)
        for code, leaf in enumerate(self.tree_):
            groups[_follows(table, leaf.path)] = code
        return groups


def _follows(table: pd.DataFrame, path: Path) -> NDArray[np.bool_]:
    holds = np.ones(len(table), bool)
    for attribute, value in path:
        holds &= (table[attribute] == value).to_numpy()
    return holds


def prunings(node: Node) -> Iterator[Tree]:
    """Yield every tree that remains after collapsing siblings, down to the single node."""
    yield (node,)
    if node.children:
        for parts in itertools.product(*(list(prunings(child)) for child in node.children.values())):
            yield tuple(leaf for part in parts for leaf in part)


def n_prunings(node: Node) -> int:
    """Count the trees of `prunings` without making them."""
    return 1 + (int(np.prod([float(n_prunings(child)) for child in node.children.values()])) if node.children else 0)


@dataclass
class _TreeSearch:
    """The search for one tree: its data, and the classifiers of all nodes that were tried."""

    X: Features
    y: Labels
    weight: Weights
    table: pd.DataFrame
    names: list[str]
    grow: NDArray[np.intp]
    prune: NDArray[np.intp]
    estimator: Any
    nodes: dict[frozenset[tuple[str, Hashable]], Node] = field(default_factory=dict)

    def grown(self) -> Node:
        """Apply the best feasible split until there is none."""
        root = self.node((), np.arange(len(self.grow)))
        leaves = [root]
        while True:
            candidates = [
                (separation(self.leaves_after(leaves, leaf, children), root), position, leaf, attribute, children)
                for position, (leaf, attribute, children) in enumerate(self.splits(leaves))
            ]
            if not candidates:
                break
            _, _, chosen, attribute, children = min(candidates, key=lambda candidate: candidate[:2])
            chosen.attribute, chosen.children = attribute, children
            leaves = self.leaves_after(leaves, chosen, children)
        if n_prunings(root) > _MOST_TREES:
            raise InputError("The tree has too many prunings to compare: give it fewer attributes.")
        return root

    def leaves_after(self, leaves: list[Node], split: Node, children: dict[Hashable, Node]) -> list[Node]:
        """Replace one leaf by its children."""
        return [leaf for leaf in leaves if leaf is not split] + list(children.values())

    def splits(self, leaves: list[Node]) -> Iterator[tuple[Node, str, dict[Hashable, Node]]]:
        """Yield all feasible splits of all leaves, with fitted children."""
        for leaf in leaves:
            used = {attribute for attribute, _ in leaf.path}
            for attribute in self.names:
                if attribute not in used and (parts := self.feasible_parts(leaf, attribute)):
                    yield leaf, attribute, {v: self.node((*leaf.path, (attribute, v)), r) for v, r in parts.items()}

    def feasible_parts(self, leaf: Node, attribute: str) -> dict[Hashable, NDArray[np.intp]]:
        """Rows of each value of an attribute; empty if a value has too few rows, or too few rows of a class."""
        values = self.table[attribute].to_numpy()[self.grow[leaf.rows]]
        # In the order of appearance, because values of different types cannot be sorted.
        parts = {value: leaf.rows[values == value] for value in dict.fromkeys(values)}
        labels = self.y[self.grow]
        d = self.X.shape[1]
        classes, counts = np.unique(labels[leaf.rows], return_counts=True)
        enough = dict(zip(classes, np.minimum(counts, d), strict=True))
        feasible = len(parts) > 1 and all(
            len(rows) >= 2 * d and all((labels[rows] == c).sum() >= least for c, least in enough.items())
            for rows in parts.values()
        )
        return parts if feasible else {}

    def node(self, path: Path, rows: NDArray[np.intp]) -> Node:
        """Fit the classifier of a node, only once: the same values in another order are the same rows."""
        key = frozenset(path)
        if key not in self.nodes:
            taken = self.grow[rows]
            weight = None if self.weight is None else self.weight[taken]
            # With a fixed C: many nodes are tried, few are kept, and those are fitted again by DecoupledClassifier.
            estimator = StandardizedLogisticRegression(C=1.0) if self.estimator is None else self.estimator
            model = fit_group(estimator, self.X[taken], self.y[taken], weight)
            order = np.concatenate([self.grow, self.prune])
            self.nodes[key] = Node(path, rows, model.predict(self.X[order]) == self.y[order])
        known = self.nodes[key]
        return Node(path, rows, known.right)

    def best(self, trees: list[Tree], alpha: float) -> Tree | None:
        """Return the tree with the best gains, of those with at least two leaves and no significant harm."""
        root = self.nodes[frozenset()]
        atoms = self.atomic_groups()
        scored = [
            (self.gains(tree, root, atoms), position, tree)
            for position, tree in enumerate(trees)
            if len(tree) > 1 and self.is_harmless(tree, root, atoms, alpha)
        ]
        if not scored:
            return None
        return max(scored, key=lambda entry: (*entry[0], -entry[1]))[2]

    def atomic_groups(self) -> list[NDArray[np.intp]]:
        """Pruning rows of each combination of all attributes, by position among the pruning rows."""
        rows = self.table.iloc[self.prune][self.names].reset_index(drop=True)
        return [np.asarray(part) for part in rows.groupby(self.names, sort=False, observed=True).indices.values()]

    def gains(self, tree: Tree, root: Node, atoms: list[NDArray[np.intp]]) -> tuple[float, float, float]:
        """Smallest, largest and median gain over the pooled classifier, over atomic groups."""
        own, pooled, _ = self.judged(tree, root)
        gains = [float(own[rows].mean() - pooled[rows].mean()) for rows in atoms]
        return min(gains), max(gains), float(np.median(gains))

    def is_harmless(self, tree: Tree, root: Node, atoms: list[NDArray[np.intp]], alpha: float) -> bool:
        """Whether no atomic group is significantly better off with the pooled or with another leaf's classifier."""
        own, pooled, others = self.judged(tree, root)
        n_tests = len(atoms) * (len(tree) - 1) + len(atoms)
        for rows in atoms:
            for rival in [pooled, *others]:
                worse = int((~own[rows] & rival[rows]).sum())
                better = int((own[rows] & ~rival[rows]).sum())
                if mcnemar_p(worse, better) < alpha / n_tests:
                    return False
        return True

    def judged(self, tree: Tree, root: Node) -> tuple[NDArray[np.bool_], NDArray[np.bool_], list[NDArray[np.bool_]]]:
        """Whether the own, the pooled and every leaf's classifier is right, for the pruning rows."""
        n_grow = len(self.grow)
        own = root.right[n_grow:].copy()
        table = self.table.iloc[self.prune]
        for leaf in tree:
            served = _follows(table, leaf.path)
            own[served] = leaf.right[n_grow:][served]
        return own, root.right[n_grow:], [leaf.right[n_grow:] for leaf in tree]


def separation(leaves: Sequence[Node], root: Node) -> float:
    """Score of a tree on the rows that grew it; small if every leaf clearly prefers its own classifier."""
    total = 0.0
    for leaf in leaves:
        n, own = len(leaf.rows), 1 - leaf.right[leaf.rows].mean()
        rivals = [root, *(other for other in leaves if other is not leaf)]
        gaps = [own - (1 - rival.right[leaf.rows].mean()) for rival in rivals]
        total += sum(4 * np.exp(-n * gap**2 / 2) for gap in gaps)
    return float(total)
