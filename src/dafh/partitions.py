"""Rules that divide rows into groups, fixed or fitted, for `dafh.DecoupledClassifier`.

A new partition is a subclass of `Partition`, whose docstring has one. To be saved, it needs a line in
`dafh.persistence.state.CLASSES`.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from dafh.checks.parameters import RandomState, is_whole
from dafh.classifiers.fitting import fit_group
from dafh.classifiers.protocols import Classifier
from dafh.exceptions import InputError
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.stats import mcnemar_p
from dafh.text import clipped, shown

Features = NDArray[np.float64]
Labels = NDArray[np.generic]
Attributes = pd.DataFrame | None
Weights = NDArray[np.float64] | None

MOST_GROUPS = 10_000
"""Each has a name and, in a classifier, a model of its own."""
NOBODY = -1
"""Group of a row that fits none of the groups; the pooled classifier serves it."""


class Partition(BaseEstimator):
    """Base of all partitions: a way to divide rows into groups, with or without sensitive attributes.

    A subclass defines `fit`, which sets `group_names_`, and `assign`.

    Attributes
    ----------
    group_names_ : list of str
        Name of each group in tables and reports.

    Examples
    --------
    >>> import numpy as np
    >>> class ByFirstColumn(Partition):
    ...     def fit(self, X, y, sensitive_features=None, sample_weight=None):
    ...         self.group_names_ = ["low", "high"]
    ...         return self
    ...     def assign(self, X, sensitive_features=None):
    ...         return (X[:, 0] > 0).astype(int)
    >>> X = np.array([[-1.0], [2.0]])
    >>> ByFirstColumn().fit(X, None).assign(X)
    array([0, 1])
    """

    needs_sensitive_features: ClassVar[bool] = False
    group_names_: list[str]

    @property
    def n_groups_(self) -> int:
        """Number of groups found in `fit`."""
        return len(self.group_names_)

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Learn the groups from training rows."""
        raise NotImplementedError

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Group of each row, 0 to `n_groups_` − 1, or `NOBODY`."""
        raise NotImplementedError

    def members(self, X: Features, sensitive_features: Attributes = None) -> list[NDArray[np.intp]]:
        """Training rows of each group, by position.

        A partition whose `assign` returns codes of `n_groups_` or more has an entry for each of them too.
        """
        groups = self.assign(X, sensitive_features)
        return [np.flatnonzero(groups == k) for k in range(self.n_groups_)]

    def _check_n_groups(self, n_groups: int) -> None:
        if not is_whole(n_groups) or not 1 <= n_groups <= MOST_GROUPS:
            raise InputError(
                f"{type(self).__name__} needs n_groups of at least 1, and at most {MOST_GROUPS:,}; got "
                f"{shown(n_groups)}."
            )

    def _require(self, sensitive_features: Attributes) -> pd.DataFrame:
        if sensitive_features is None:
            raise InputError(f"{type(self).__name__} divides rows by sensitive attributes: pass sensitive_features=...")
        return sensitive_features


def choose_columns(table: pd.DataFrame, attributes: Sequence[str] | None) -> list[str]:
    """Columns of a table of attributes to divide by, each once; None takes all of them."""
    if attributes is None:
        return list(table.columns)
    if isinstance(attributes, str):
        # A string is a sequence of its letters, and the message would be about a column 's'.
        raise InputError(f"attributes must be a list of columns: write [{shown(attributes)}].")
    if not np.iterable(attributes) or not all(isinstance(name, str) for name in attributes):
        raise InputError(f"attributes must be a list of names of columns, got {shown(attributes)}.")
    names = list(dict.fromkeys(attributes))
    if not names:
        raise InputError("attributes is empty: name at least one column of sensitive_features, or pass None for all.")
    require_columns(table, names)
    return names


def require_columns(table: pd.DataFrame, names: Iterable[str]) -> None:
    """Refuse a table of attributes that lacks one of these columns."""
    for name in names:
        if name not in table.columns:
            there = clipped(", ".join(table.columns), 300)
            raise InputError(f"sensitive_features has no column {shown(name)}; it has {there}.")


class _CombinationPartition(Partition):
    """Groups by the combinations of values that some columns of `sensitive_features` take."""

    needs_sensitive_features: ClassVar[bool] = True

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Collect the combinations that occur."""
        table = self._require(sensitive_features)
        names = self._columns(table)
        combinations = table[names].drop_duplicates()
        self._names, self._values = names, [combinations[name].to_numpy() for name in names]
        self.group_names_ = [
            ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
            for values in zip(*self._values, strict=True)
        ]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Look up the combination of each row; one that was not seen in training belongs to no group."""
        table = self._require(sensitive_features)
        require_columns(table, self._names)
        return pd.MultiIndex.from_arrays(self._values).get_indexer(pd.MultiIndex.from_frame(table[self._names]))

    def _columns(self, table: pd.DataFrame) -> list[str]:
        """Columns of the table to combine."""
        raise NotImplementedError


class IntersectionPartition(_CombinationPartition):
    """One group for every combination of attribute values seen in training.

    Parameters
    ----------
    attributes : sequence of str, or None, default=None
        Columns of `sensitive_features` to combine; None takes all of them.

    Examples
    --------
    >>> import pandas as pd
    >>> attributes = pd.DataFrame({"sex": ["f", "f", "m"], "born": ["here", "there", "here"]})
    >>> partition = IntersectionPartition().fit(None, None, attributes)
    >>> partition.group_names_
    ['sex=f, born=here', 'sex=f, born=there', 'sex=m, born=here']
    >>> partition.assign(None, pd.DataFrame({"sex": ["m", "m"], "born": ["here", "there"]}))
    array([ 2, -1])
    """

    def __init__(self, attributes: Sequence[str] | None = None) -> None:
        self.attributes = attributes

    def _columns(self, table: pd.DataFrame) -> list[str]:
        return choose_columns(table, self.attributes)


class AttributePartition(_CombinationPartition):
    """One group for every value of one attribute (the paper's *trivial partition*).

    Parameters
    ----------
    attribute : str or None, default=None
        Column of `sensitive_features`; None takes the only one there is.

    Examples
    --------
    >>> import pandas as pd
    >>> attributes = pd.DataFrame({"sex": ["f", "m", "f"]})
    >>> AttributePartition().fit(None, None, attributes).assign(None, attributes)
    array([0, 1, 0])
    """

    def __init__(self, attribute: str | None = None) -> None:
        self.attribute = attribute

    def _columns(self, table: pd.DataFrame) -> list[str]:
        available = list(table.columns)
        if self.attribute is None and len(available) > 1:
            raise InputError(f"Choose the attribute to divide by, AttributePartition(attribute=...), from {available}.")
        return choose_columns(table, None if self.attribute is None else [self.attribute])


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


class PooledPartition(Partition):
    """All rows in one group, for the pooled classifier and the capacity controls.

    Examples
    --------
    >>> PooledPartition().fit(None, None).assign(np.zeros((3, 1)))
    array([0, 0, 0])
    """

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Name the only group."""
        self.group_names_ = ["everybody"]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Assign all rows to group 0."""
        return np.zeros(len(X), np.intp)


class RandomPartition(Partition):
    """Random groups of about equal size, which show what more parameters alone are worth.

    The group of a row is a hash of its features, so that equal rows are always in the same group.

    Parameters
    ----------
    n_groups : int, default=2
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(1000.0)[:, None]
    >>> partition = RandomPartition(4, random_state=0).fit(X, None)
    >>> np.bincount(partition.assign(X)).min() > 200, (partition.assign(X[:5]) == partition.assign(X)[:5]).all()
    (np.True_, np.True_)
    """

    def __init__(self, n_groups: int = 2, *, random_state: RandomState = None) -> None:
        self.n_groups = n_groups
        self.random_state = random_state

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Draw the salt of the hash."""
        self._check_n_groups(self.n_groups)
        self._salt = draw_salt(self.random_state)
        self.group_names_ = [f"random {k}" for k in range(self.n_groups)]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Random group of each row, the same in every call."""
        return hashed_group(X, self._salt, self.n_groups_)


def draw_salt(random_state: RandomState) -> int:
    """Draw the number that makes one hash differ from another."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


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


class RulePartition(Partition):
    """Groups by rules that the user writes.

    Parameters
    ----------
    rules : mapping of str to function
        Name of each group, and a function of `sensitive_features` that returns a boolean for each row. The first rule
        that holds decides.
    rest : {"pooled", "random"}, default="pooled"
        What happens to rows for which no rule holds: the pooled classifier serves them, or they are spread over the
        groups at random, as in the paper's manual partition.
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> attributes = pd.DataFrame({"age": [20, 30, 70]})
    >>> partition = RulePartition({"young": lambda t: t.age < 25, "old": lambda t: t.age > 65})
    >>> partition.fit(np.zeros((3, 1)), None, attributes).assign(np.zeros((3, 1)), attributes)
    array([ 0, -1,  1])
    """

    needs_sensitive_features = True

    def __init__(
        self,
        rules: Mapping[str, Callable[[pd.DataFrame], ArrayLike]],
        *,
        rest: Literal["pooled", "random"] = "pooled",
        random_state: RandomState = None,
    ) -> None:
        self.rules = rules
        self.rest = rest
        self.random_state = random_state

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Check the rules."""
        self._require(sensitive_features)
        if not self.rules or self.rest not in ("pooled", "random"):
            raise InputError("RulePartition needs at least one rule, and rest='pooled' or rest='random'.")
        self._salt = draw_salt(self.random_state)
        self.group_names_ = list(self.rules)
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Group of the first rule that holds."""
        table = self._require(sensitive_features)
        groups = np.full(len(table), NOBODY, np.intp)
        if self.rest == "random":
            groups = hashed_group(X, self._salt, len(self.rules))
        # The first rule that holds decides, so it is applied last.
        for k, (name, rule) in reversed(list(enumerate(self.rules.items()))):
            holds = np.asarray(rule(table), dtype=bool)
            if holds.shape not in ((len(table),), ()):
                raise InputError(
                    f"The rule {name!r} must return one boolean for each of the {len(table)} rows, "
                    f"and returns an array of shape {holds.shape}."
                )
            groups[holds] = k
        return groups


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
    code: int = NOBODY
    """Group of the rows that belong to no child."""

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
    is left, the pooled classifier serves all rows. A row with a value that was not seen in training is served by the
    deepest ancestor that fits, or else by the pooled classifier.

    Parameters
    ----------
    attributes : sequence of str, or None, default=None
        Columns of `sensitive_features` to split by; None takes all of them.
    estimator : classifier or None, default=None
        Classifier of a node while the tree is built; None is logistic regression fitted to convergence.
    alpha : float, default=0.1
        Significance level of the tests, which is divided by their number.
    prune_size : float, default=1/3
        Share of the rows that prune the tree.
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
        attributes: Sequence[str] | None = None,
        *,
        estimator: Classifier | None = None,
        alpha: float = 0.10,
        prune_size: float = 1 / 3,
        random_state: RandomState = None,
    ) -> None:
        self.attributes = attributes
        self.estimator = estimator
        self.alpha = alpha
        self.prune_size = prune_size
        self.random_state = random_state

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Grow and prune the tree."""
        table = self._require(sensitive_features).reset_index(drop=True)
        names = choose_columns(table, self.attributes)
        grow, prune = train_test_split(
            np.arange(len(y)),
            test_size=self.prune_size,
            stratify=y if np.unique(y, return_counts=True)[1].min() > 1 else None,
            random_state=self.random_state,
        )
        search = _TreeSearch(X, y, sample_weight, table, names, grow, prune, self.estimator)
        root = search.grown()
        leaves = search.best(list(prunings(root)), self.alpha) or (root,)
        # Nodes between root and leaves wait behind the groups, for rows with a value that nobody had in training.
        self._nodes = [*leaves, *([] if leaves == (root,) else _ancestors(root, leaves))]
        _forget_rows(root)
        for code, node in enumerate(self._nodes):
            node.code = code
        for leaf in leaves:
            leaf.children = {}
        self._root, self.tree_ = root, leaves
        self.group_names_ = [node.name for node in leaves]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Leaf of each row; codes of `n_groups_` or more are ancestors, for values that were not seen in training."""
        table = self._require(sensitive_features).reset_index(drop=True)
        require_columns(table, [name for node in self._nodes for name, _ in node.path])
        groups = np.full(len(table), NOBODY, np.intp)
        waiting = [(self._root, np.arange(len(table)))]
        while waiting:
            node, rows = waiting.pop()
            groups[rows] = node.code
            if node.children:
                values = table[node.attribute].to_numpy()[rows]
                waiting += [(child, rows[values == value]) for value, child in node.children.items()]
        return groups

    def members(self, X: Features, sensitive_features: Attributes = None) -> list[NDArray[np.intp]]:
        """Training rows of each leaf, then of each node between the leaves and the root."""
        table = self._require(sensitive_features).reset_index(drop=True)
        return [np.flatnonzero(_follows(table, node.path)) for node in self._nodes]


def _forget_rows(node: Node) -> None:
    """Drop the training rows of a node and of all below it: they have grown and pruned the tree, and are not needed."""
    node.rows, node.right = node.rows[:0], node.right[:0]
    for child in node.children.values():
        _forget_rows(child)


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


def _ancestors(root: Node, tree: Tree) -> list[Node]:
    """Nodes between the root and the leaves of a tree, without either."""
    leaves = {leaf.path for leaf in tree}
    found, waiting = [], list(root.children.values())
    while waiting:
        node = waiting.pop()
        if node.path not in leaves and any(path[: len(node.path)] == node.path for path in leaves):
            found.append(node)
            waiting += node.children.values()
    return found


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
    estimator: Classifier | None
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
            raise InputError(
                "The tree has too many prunings to compare: choose fewer attributes, TreePartition(attributes=...)."
            )
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
