"""Groups as they were learned: a tree of rules or a network, and what each group adds to the pooled logits.

These are parts of a `DAFHClassifier` and of nothing else, so they are no `Kind`: how large they must be follows from
the model. A further way to divide rows is one more entry of `_WAYS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dafh.groups.corrections import LinearCorrections, PointCorrections
from dafh.groups.rules import Question, RuleTree
from dafh.groups.serving import CorrectionModel, Weights
from dafh.groups.trained import NetworkModel, RuleModel
from dafh.models.binning_kind import bins_of, check_same_binning, n_numbers, split_by_bins
from dafh.models.container import Json, MalformedError
from dafh.models.description import Fields, NotPlainError, Writer
from dafh.rows.seen import TableView

WIDEST_LAYER = 2**14
"""Prediction takes memory for a block of rows times this."""
_MOST_LEAVES = 256
"""A leaf has half a percent of the rows or more. Rules in words take time for leaves times leaves."""


@dataclass(frozen=True)
class Shape:
    """What groups must fit: how tables are seen, and the numbers of columns, groups and logits."""

    view: TableView
    n_columns: int
    n_groups: int
    n_logits: int


# ---- rules ----


def _write_tree(tree: RuleTree, view: TableView, writer: Writer) -> Json:
    """Describe a tree by its questions, with the answer of each bin, and the group of each leaf."""
    check_same_binning(view, tree.binning)
    questions: list[Json] = []
    for question in tree.questions:
        yes = np.zeros(tree.binning.columns[question.column].n_bins, bool)
        yes[list(question.bins)] = True
        questions.append({"leaf": int(question.leaf), "column": int(question.column), "yes": writer.array(yes)})
    return {"questions": questions, "group": writer.array(tree.group)}


def _read_tree(fields: Fields, name: str, shape: Shape) -> RuleTree:
    """Return a tree whose every question divides a leaf, in words as well as in fact."""
    inner, binning = fields.fields(name), bins_of(shape.view)
    questions: list[Question] = []
    # Bins that rows of a leaf can have, for the columns that were asked about on the way to it.
    left: list[dict[int, NDArray[np.bool_]]] = [{}]
    for number, value in enumerate(inner.items("questions", _MOST_LEAVES - 1)):
        asked = Fields(value, f"question {number} of {inner.where}", inner.reader)
        leaf = asked.whole("leaf", 0, number)
        place = asked.whole("column", 0, len(binning.columns) - 1)
        column = binning.columns[place]
        yes = asked.flags("yes", column.n_bins)
        asked.close()
        # Rules say "up to 30" or "above 30", with or without gaps, and nothing more about a number.
        if not column.is_category and (np.diff(yes[:-1].astype(np.int8)) > 0).any():
            raise asked.refuse("yes", "is not a cut")
        before = left[leaf].get(place, np.ones(column.n_bins, bool))
        if not (before & yes).any() or not (before & ~yes).any():
            raise asked.refuse("yes", "divides nothing")
        left.append({**left[leaf], place: before & ~yes})
        left[leaf] = {**left[leaf], place: before & yes}
        questions.append(Question(leaf, place, tuple(np.flatnonzero(yes).tolist())))
    group = inner.wholes("group", len(left), least=0, most=shape.n_groups - 1).astype(np.intp)
    inner.close()
    if len(np.unique(group)) != shape.n_groups:
        raise MalformedError("a group of its rules has no leaf")
    return RuleTree(binning, tuple(questions), group)


def _write_corrections(corrections: Any, writer: Writer) -> Json:
    if type(corrections) is PointCorrections:
        points = writer.array(np.concatenate(corrections.points, axis=1))
        return {"kind": "points", "points": points, "intercept": writer.array(corrections.intercept)}
    if type(corrections) is not LinearCorrections:
        raise NotPlainError(f"corrections of the type {type(corrections).__name__} cannot be stored")
    return {
        "kind": "linear",
        # Arrays of several dimensions are never empty in a file.
        "weight": writer.array(corrections.weight) if corrections.weight.size else None,
        "of_logits": writer.array(corrections.of_logits) if corrections.of_logits.size else None,
        "intercept": writer.array(corrections.intercept),
    }


def _read_corrections(fields: Fields, name: str, shape: Shape) -> PointCorrections | LinearCorrections:
    inner = fields.fields(name)
    n_groups, m = shape.n_groups, shape.n_logits
    kind = inner.choice("kind", ("points", "linear"))
    intercept = inner.floats("intercept", n_groups, m)
    corrections: PointCorrections | LinearCorrections
    if kind == "points":
        binning = bins_of(shape.view)
        points = inner.floats("points", n_groups, sum(binning.n_bins), m)
        corrections = PointCorrections(tuple(split_by_bins(points, binning, axis=1)), intercept)
    else:
        weight = of_logits = np.zeros((n_groups, 0, m))
        if inner.has("weight"):
            weight = inner.floats("weight", n_groups, n_numbers(shape.view, shape.n_columns), m)
        if inner.has("of_logits"):
            of_logits = inner.floats("of_logits", n_groups, m, m)
        corrections = LinearCorrections(weight, of_logits, intercept)
    inner.close()
    return corrections


def _write_rules(model: RuleModel, view: TableView, writer: Writer) -> dict[str, Json]:
    return {
        "tree": _write_tree(model.tree, view, writer),
        "corrections": _write_corrections(model.corrections, writer),
    }


def _read_rules(fields: Fields, shape: Shape) -> RuleModel:
    return RuleModel(_read_tree(fields, "tree", shape), _read_corrections(fields, "corrections", shape))


# ---- networks ----


def _write_network(trained: NetworkModel, view: TableView, writer: Writer) -> dict[str, Json]:
    def layers(network: Weights) -> Json:
        return [[writer.array(weight), writer.array(bias)] for weight, bias in network]

    model = trained.model
    return {
        "tree": None if trained.tree is None else _write_tree(trained.tree, view, writer),
        "center": None if model.center is None else writer.array(model.center),
        "group": layers(model.group),
        "classifiers": layers(model.classifiers),
        "pooled": model.pooled,
        "base": layers(model.base),
    }


def _read_network(fields: Fields, shape: Shape) -> NetworkModel:
    tree = _read_tree(fields, "tree", shape) if fields.has("tree") else None
    n_columns, n_answers = n_numbers(shape.view, shape.n_columns), 0 if tree is None else len(tree.questions)
    n_groups, m = shape.n_groups, shape.n_logits
    model = CorrectionModel(
        center=fields.floats("center", n_columns) if fields.has("center") else None,
        group=_read_layers(fields, "group", (), n_columns + n_answers, n_groups),
        classifiers=_read_layers(fields, "classifiers", (n_groups,), n_columns, m),
        pooled=fields.choice("pooled", ("added", "inside", "unused")),  # type: ignore[arg-type]
        base=_read_layers(fields, "base", (), n_columns, m),
    )
    if not model.group or not model.classifiers or len(model.base) != (model.pooled == "inside"):
        raise MalformedError("its networks are not complete")
    return NetworkModel(model, tree)


def _read_layers(fields: Fields, name: str, leading: tuple[int, ...], n_inputs: int, n_outputs: int) -> Weights:
    """Layers that fit together, from a number of inputs to a number of outputs."""
    layers: list[tuple[NDArray[Any], NDArray[Any]]] = []
    described = fields.items(name, 100)
    for number, layer in enumerate(described, 1):
        if not isinstance(layer, list) or len(layer) != 2:
            raise fields.refuse(name)
        inner = Fields({"weight": layer[0], "bias": layer[1]}, f"layer {number} of {name!r}", fields.reader)
        wanted = n_outputs if number == len(described) else None
        weight = inner.floats("weight", *leading, n_inputs, wanted)
        n_inputs = weight.shape[-1]
        if n_inputs > max(WIDEST_LAYER, n_outputs):
            raise fields.refuse(name, "is too wide")
        layers.append((weight, inner.floats("bias", *leading, n_inputs)))
    return tuple(layers)


# ---- both ----

_WAYS: dict[str, tuple[type, Callable[..., dict[str, Json]], Callable[[Fields, Shape], Any]]] = {
    "rules": (RuleModel, _write_rules, _read_rules),
    "network": (NetworkModel, _write_network, _read_network),
}
"""Ways to divide rows, by the name that `DAFHClassifier.groups_` has for them."""


def write_groups(model: Any, view: TableView, writer: Writer) -> Json:
    """Describe groups that were learned, whichever way."""
    for name, (own, write, _) in _WAYS.items():
        if type(model) is own:
            return {"kind": name, **write(model, view, writer)}
    raise NotPlainError(f"groups of the type {type(model).__name__} cannot be stored")


def read_groups(fields: Fields, name: str, shape: Shape) -> tuple[str, Any]:
    """Return how rows are divided, and the groups that were learned."""
    inner = fields.fields(name)
    way = inner.choice("kind", tuple(_WAYS))
    model = _WAYS[way][2](inner, shape)
    inner.close()
    return way, model
