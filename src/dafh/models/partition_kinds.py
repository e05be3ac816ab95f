"""Kinds of partitions. `RulePartition` is not among them: it holds functions of the user's, which no file can."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dafh.checks.parameters import NOTHING, Allowed, number, sequence_of, whole_number
from dafh.models.container import Json, MalformedError
from dafh.models.description import LONGEST_TEXT, Fields, Kind, NotPlainError, Writer
from dafh.models.settings import Buildable, read_settings, write_settings
from dafh.models.values import read_plain, write_plain
from dafh.partitions import (
    NOBODY,
    AttributePartition,
    ClusterPartition,
    IntersectionPartition,
    Partition,
    PooledPartition,
    RandomPartition,
    TreePartition,
)
from dafh.partitions.tree import Node

MOST_GROUPS = 10_000
_DEEPEST_TREE = 100
_LONGEST_NAMES = 2**22
_NAME = Allowed("a name", lambda value: isinstance(value, str) and len(value) <= LONGEST_TEXT)
_NAMES = sequence_of(_NAME, "names")
_GROUPS = Allowed("1 to 10,000", lambda value: whole_number(1).holds(value) and value <= MOST_GROUPS)
_SEED = whole_number(0)

_SETTINGS = {
    "everybody": Buildable(PooledPartition, {}),
    "random groups": Buildable(RandomPartition, {"n_groups": (_GROUPS,), "random_state": (_SEED, NOTHING)}),
    "clusters": Buildable(ClusterPartition, {"n_groups": (_GROUPS,), "random_state": (_SEED, NOTHING)}),
    "one attribute": Buildable(AttributePartition, {"attribute": (_NAME, NOTHING)}),
    "combinations": Buildable(IntersectionPartition, {"attributes": (_NAMES, NOTHING)}),
    "tree": Buildable(
        TreePartition,
        {
            "attributes": (_NAMES, NOTHING),
            "alpha": (number(0, 1),),
            "prune_size": (number(0, 1),),
            "random_state": (_SEED, NOTHING),
        },
        ignored=frozenset({"estimator"}),
    ),
}


def _write_unfitted(partition: Partition, writer: Writer) -> dict[str, Json]:
    name = next(name for name, known in _SETTINGS.items() if known.build is type(partition))
    found: dict[str, Json] = {"settings": write_settings(partition, _SETTINGS[name])}
    if name == "tree":
        estimator = partition.get_params(deep=False)["estimator"]
        found["estimator"] = None if estimator is None else writer.part(estimator, "unfitted")
    return found


def _read_unfitted(fields: Fields, name: str) -> Any:
    partition = read_settings(fields, _SETTINGS[name])
    if name == "tree" and fields.has("estimator"):
        partition.set_params(estimator=fields.part("estimator", "unfitted"))
    return partition


# ---- groups that need no sensitive attributes ----


def _write_everybody(partition: PooledPartition, writer: Writer) -> dict[str, Json]:
    return _write_unfitted(partition, writer)


def _read_everybody(fields: Fields) -> PooledPartition:
    return _read_unfitted(fields, "everybody").fit(None, None)


def _write_random(partition: RandomPartition, writer: Writer) -> dict[str, Json]:
    return {**_write_unfitted(partition, writer), "n_groups": partition.n_groups_, "salt": partition._salt}


def _read_random(fields: Fields) -> RandomPartition:
    partition = _read_unfitted(fields, "random groups")
    partition._salt = fields.whole("salt", 0, 2**31)
    partition.group_names_ = [f"random {k}" for k in range(fields.whole("n_groups", 1, MOST_GROUPS))]
    return partition


def _write_clusters(partition: ClusterPartition, writer: Writer) -> dict[str, Json]:
    arrays = {"mean": partition.mean_, "scale": partition.scale_, "centers": partition.centers_}
    return {**_write_unfitted(partition, writer), **{name: writer.array(value) for name, value in arrays.items()}}


def _read_clusters(fields: Fields) -> ClusterPartition:
    partition = _read_unfitted(fields, "clusters")
    partition.mean_ = fields.floats("mean", None)
    partition.scale_ = fields.floats("scale", len(partition.mean_))
    partition.centers_ = fields.floats("centers", None, len(partition.mean_))
    if not len(partition.mean_) or not (partition.scale_ >= 1e-150).all() or len(partition.centers_) > MOST_GROUPS:
        raise MalformedError(f"{fields.where} is malformed")
    partition.group_names_ = [f"cluster {k}" for k in range(len(partition.centers_))]
    return partition


# ---- groups by sensitive attributes ----


def _write_combinations(partition: Any, writer: Writer) -> dict[str, Json]:
    values = [write_plain(column) for column in partition._values]
    return {**_write_unfitted(partition, writer), "attributes": list(partition._names), "values": values}


def _read_combinations(fields: Fields, name: str) -> Any:
    partition = _read_unfitted(fields, name)
    names = fields.texts("attributes")
    columns = fields.items("values")
    if not names or len(set(names)) < len(names) or len(columns) != len(names):
        raise fields.refuse("attributes")
    inner = Fields(dict(zip(names, columns, strict=True)), fields.where, fields.reader)
    values = [read_plain(inner, attribute) for attribute in names]
    groups = list(zip(*values, strict=False))
    sizes = {len(column) for column in values}
    if len(sizes) != 1 or not 1 <= len(groups) <= MOST_GROUPS or len(set(groups)) < len(groups):
        raise fields.refuse("values")
    _check_names(fields, (zip(names, group, strict=True) for group in groups))
    partition.set_groups(names, values)
    return partition


def _check_names(fields: Fields, groups: Iterable[Iterable[tuple[str, object]]]) -> None:
    """Refuse groups whose names, which repeat attributes and values, would take far more memory than the file."""
    if sum(len(name) + len(str(value)) for group in groups for name, value in group) > _LONGEST_NAMES:
        raise MalformedError(f"the names of {fields.where} are too long")


def _write_tree(partition: TreePartition, writer: Writer) -> dict[str, Json]:
    """Nodes in one list, children behind their parents; the rows that grew the tree are not written."""
    nodes: list[Node] = []
    places: dict[int, int] = {}
    waiting = [partition._root]
    while waiting:
        node = waiting.pop(0)
        places[id(node)] = len(nodes)
        nodes.append(node)
        waiting += node.children.values()
    described: list[Json] = [
        {
            "code": int(node.code),
            "attribute": node.attribute if node.children else None,
            "values": write_plain(list(node.children)),
            "children": [places[id(child)] for child in node.children.values()],
        }
        for node in nodes
    ]
    return {**_write_unfitted(partition, writer), "nodes": described}


def _read_tree(fields: Fields) -> TreePartition:
    partition = _read_unfitted(fields, "tree")
    nodes: list[Node] = []
    parents: dict[int, tuple[Node, str, Any]] = {}
    described = fields.items("nodes", MOST_GROUPS)
    for place, value in enumerate(described):
        inner = Fields(value, f"node {place} of {fields.where}", fields.reader)
        parent = parents.pop(place, None)
        if place and parent is None:
            raise fields.refuse("nodes", "holds a node that is nobody's child")
        nothing = np.array([], np.intp)
        path = () if parent is None else (*parent[0].path, (parent[1], parent[2]))
        if len(path) > _DEEPEST_TREE:
            raise fields.refuse("nodes", "is too deep")
        node = Node(path, nothing, nothing.astype(bool), code=inner.whole("code", NOBODY, len(described) - 1))
        if parent is not None:
            parent[0].children[parent[2]] = node
        attribute = inner.text("attribute") if inner.has("attribute") else None
        values, children = read_plain(inner, "values").tolist(), inner.items("children")
        inner.close()
        if len(set(values)) < len(values) or len(values) != len(children) or (attribute is None) != (not values):
            raise fields.refuse("nodes")
        node.attribute = attribute
        for one, child in zip(values, children, strict=True):
            if not isinstance(child, int) or isinstance(child, bool) or not place < child < len(described):
                raise fields.refuse("nodes", "points outside itself")
            if child in parents:
                raise fields.refuse("nodes", "holds a node that is the child of two")
            parents[child] = (node, str(attribute), one)
        nodes.append(node)
    _keep_tree(partition, nodes, fields)
    return partition


def _keep_tree(partition: TreePartition, nodes: list[Node], fields: Fields) -> None:
    """Put leaves first, as their codes say, and what is between them and the root behind them."""
    coded = sorted((node for node in nodes if node.code != NOBODY), key=lambda node: node.code)
    n_leaves = sum(not node.children for node in coded)
    # All but the root have a code, and the root has one where it is the only node.
    sound = (
        bool(nodes)
        and [node.code for node in coded] == list(range(len(coded)))
        and len(coded) == len(nodes) - bool(nodes[0].children)
        and not any(node.children for node in coded[:n_leaves])
    )
    if not sound:
        raise fields.refuse("nodes", "is not the tree of a partition")
    _check_names(fields, (node.path for node in coded))
    partition.set_tree(nodes[0], tuple(coded[:n_leaves]), coded[n_leaves:])


_FITTED: dict[str, tuple[type, Callable[..., dict[str, Json]], Callable[[Fields], Any]]] = {
    "everybody": (PooledPartition, _write_everybody, _read_everybody),
    "random groups": (RandomPartition, _write_random, _read_random),
    "clusters": (ClusterPartition, _write_clusters, _read_clusters),
    "one attribute": (AttributePartition, _write_combinations, lambda f: _read_combinations(f, "one attribute")),
    "combinations": (IntersectionPartition, _write_combinations, lambda f: _read_combinations(f, "combinations")),
    "tree": (TreePartition, _write_tree, _read_tree),
}


def _written_if_fitted(write: Callable[..., dict[str, Json]]) -> Callable[..., dict[str, Json]]:
    def checked(partition: Partition, writer: Writer) -> dict[str, Json]:
        if not hasattr(partition, "group_names_"):
            raise NotPlainError("not fitted")
        return write(partition, writer)

    return checked


def _unfitted_kind(name: str, own: type) -> Kind:
    return Kind(name, "unfitted", (own,), _write_unfitted, lambda fields: _read_unfitted(fields, name))


PARTITION_KINDS: tuple[Kind, ...] = (
    *(Kind(name, "partition", (own,), _written_if_fitted(w), r) for name, (own, w, r) in _FITTED.items()),
    *(_unfitted_kind(name, own) for name, (own, _, _) in _FITTED.items()),
)
