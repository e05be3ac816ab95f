"""Kinds of rivals: one linear model or network, boosting on residuals, and classifiers under preference constraints."""

from typing import Any

import numpy as np

from dafh.checks.parameters import NOTHING, Allowed, Constraints
from dafh.classifiers.fitting import is_fitted
from dafh.models.container import Json, MalformedError
from dafh.models.description import Fields, Kind, NotPlainError, Writer
from dafh.models.estimator_kinds import GUARD, limited, read_decoupled, write_decoupled
from dafh.models.settings import Buildable, read_settings, write_settings
from dafh.models.trees import LARGEST_LEAF
from dafh.models.values import read_columns, read_labels, write_columns, write_labels
from dafh.rivals.arl import ARLClassifier
from dafh.rivals.base import RivalClassifier
from dafh.rivals.bpf import BlindParetoClassifier
from dafh.rivals.dro import DROClassifier
from dafh.rivals.george import GeorgeClassifier
from dafh.rivals.jtt import JTTClassifier
from dafh.rivals.residual_boosting import ResidualBoostingClassifier, Tree
from dafh.rivals.zafar import ZafarClassifier

_WIDEST_LAYER = 2**14
_MOST_STEPS = 100_000
_MOST_ROUNDS, _DEEPEST_TREE, _MOST_NODES = 10_000, 30, 2**16


def _allowed(rival: type[RivalClassifier]) -> Constraints:
    constraints = {**RivalClassifier._constraints, **rival._constraints}
    return limited(constraints, hidden=_WIDEST_LAYER, max_iter=_MOST_STEPS, epochs=_MOST_STEPS)


_TRAINED: dict[str, Buildable] = {
    name: Buildable(rival, _allowed(rival))
    for name, rival in {
        "dro": DROClassifier,
        "arl": ARLClassifier,
        "blind pareto fairness": BlindParetoClassifier,
        "jtt": JTTClassifier,
        "george": GeorgeClassifier,
    }.items()
}
_BOOSTING = Buildable(
    ResidualBoostingClassifier,
    limited(ResidualBoostingClassifier._constraints, max_depth=_DEEPEST_TREE, max_rounds=_MOST_ROUNDS),
    frozenset({"pooled"}),
)
_LABEL = Allowed("a label", lambda value: isinstance(value, str | int | float | bool))
_PREFERENCE = Buildable(ZafarClassifier, {**ZafarClassifier._constraints, **GUARD, "accepted": (_LABEL, NOTHING)})


# ---- one model for all rows ----


def _write_trained(model: Any, known: Buildable, writer: Writer) -> dict[str, Json]:
    if not is_fitted(model):
        raise NotPlainError("not fitted")
    return {
        "settings": write_settings(model, known),
        "labels": write_labels(model.classes_),
        **write_columns(model, writer),
        "layers": [part for weight, bias in model.layers_ for part in (writer.array(weight), writer.array(bias))],
        "steps": int(model.n_iter_),
    }


def _read_trained(fields: Fields, known: Buildable) -> Any:
    model: Any = read_settings(fields, known)
    model.classes_ = read_labels(fields, "labels")
    sizes = [read_columns(fields, model)]
    arrays = fields.items("layers", 4)
    if len(arrays) not in (2, 4):
        raise fields.refuse("layers")
    model.layers_ = []
    for weight, bias in zip(arrays[::2], arrays[1::2], strict=True):
        inner = Fields({"weight": weight, "bias": bias}, f"a layer of {fields.where}", fields.reader)
        layer = inner.floats("weight", sizes[-1], None)
        model.layers_.append((layer, inner.floats("bias", layer.shape[1])))
        sizes.append(layer.shape[1])
    n_classes = len(model.classes_)
    if sizes[-1] != (1 if n_classes == 2 else n_classes) or max(sizes[1:]) > max(_WIDEST_LAYER, n_classes):
        raise fields.refuse("layers", "does not fit its classes")
    model.n_iter_ = fields.whole("steps", 0, 10**9)
    return model


# ---- boosting on residuals ----


def _write_boosting_settings(model: ResidualBoostingClassifier, writer: Writer) -> dict[str, Json]:
    pooled = None if model.pooled is None else writer.part(model.pooled, "unfitted")
    return {"settings": write_settings(model, _BOOSTING), "pooled": pooled}


def _read_boosting_settings(fields: Fields) -> Any:
    model = read_settings(fields, _BOOSTING)
    if fields.has("pooled"):
        model.set_params(pooled=fields.part("pooled", "unfitted"))
    return model


def _write_boosting(model: ResidualBoostingClassifier, writer: Writer) -> dict[str, Json]:
    if not is_fitted(model):
        raise NotPlainError("not fitted")
    trees: list[Json] = [
        [writer.array(part) for part in (tree.children, tree.column, tree.threshold, tree.value)]
        for trees in model.trees_
        for tree in trees
    ]
    return {
        **_write_boosting_settings(model, writer),
        "labels": write_labels(model.classes_),
        **write_columns(model, writer),
        "pooled_classifier": writer.part(model.pooled_, "classifier"),
        "trees": trees,
    }


def _read_boosting(fields: Fields) -> Any:
    model = _read_boosting_settings(fields)
    model.classes_ = read_labels(fields, "labels")
    n_columns = read_columns(fields, model)
    model.pooled_ = fields.part("pooled_classifier", "classifier")
    own = np.asarray(getattr(model.pooled_, "classes_", ()))
    if not np.array_equal(own, model.classes_) or getattr(model.pooled_, "n_features_in_", n_columns) != n_columns:
        raise MalformedError(f"the pooled classifier of {fields.where} does not fit it")
    m = 1 if len(model.classes_) == 2 else len(model.classes_)
    # Trees see the logits of the pooled classifier behind the columns.
    trees = [_read_tree(fields, described, n_columns + m) for described in fields.items("trees", _MOST_ROUNDS * m)]
    if len(trees) % m:
        raise fields.refuse("trees")
    model.trees_ = [trees[first : first + m] for first in range(0, len(trees), m)]
    model.n_rounds_ = len(model.trees_)
    return model


def _read_tree(fields: Fields, described: Json, n_columns: int) -> Tree:
    if not isinstance(described, list) or len(described) != 4:
        raise fields.refuse("trees")
    names = ("children", "column", "threshold", "value")
    inner = Fields(dict(zip(names, described, strict=True)), f"a tree of {fields.where}", fields.reader)
    value = inner.floats("value", None, most=LARGEST_LEAF)
    n_nodes = len(value)
    if not 1 <= n_nodes <= _MOST_NODES:
        raise inner.refuse("value")
    children = inner.wholes("children", n_nodes, 2, least=0, most=n_nodes - 1)
    leaf = (children == 0).all(axis=1)
    # Children stand behind their parent, so that every walk ends.
    if not (children[~leaf] > np.flatnonzero(~leaf)[:, None]).all():
        raise inner.refuse("children", "points outside itself")
    if len(np.unique(children[~leaf])) < children[~leaf].size:
        raise inner.refuse("children", "has nodes with two parents")
    depth = np.zeros(n_nodes, int)
    for node in np.flatnonzero(~leaf):
        depth[children[node]] = depth[node] + 1
    if depth.max() > _DEEPEST_TREE:  # Every row walks down, level by level.
        raise inner.refuse("children", "is too deep")
    column = inner.wholes("column", n_nodes, least=0, most=n_columns - 1)
    return Tree(children, column, inner.floats("threshold", n_nodes), value)


# ---- preference constraints ----


def _write_preference(model: ZafarClassifier, writer: Writer) -> dict[str, Json]:
    found = write_decoupled(model, writer, _PREFERENCE)
    return {**found, "tangents": int(model.n_tangents_), "violations": writer.array(model.violations_)}


def _read_preference(fields: Fields) -> Any:
    model = read_decoupled(fields, _PREFERENCE)
    model.n_tangents_ = fields.whole("tangents", 0, 10**6)
    model.violations_ = fields.floats("violations", None)
    return model


def _kinds(name: str, known: Buildable) -> list[Kind]:
    own: Any = known.build
    return [
        Kind(
            name,
            "classifier",
            (own,),
            lambda model, writer: _write_trained(model, known, writer),
            lambda fields: _read_trained(fields, known),
        ),
        Kind(
            name,
            "unfitted",
            (own,),
            lambda model, _: {"settings": write_settings(model, known)},
            lambda fields: read_settings(fields, known),
        ),
    ]


RIVAL_KINDS: tuple[Kind, ...] = (
    *(kind for name, known in _TRAINED.items() for kind in _kinds(name, known)),
    Kind("residual boosting", "classifier", (ResidualBoostingClassifier,), _write_boosting, _read_boosting),
    Kind(
        "residual boosting",
        "unfitted",
        (ResidualBoostingClassifier,),
        _write_boosting_settings,
        _read_boosting_settings,
    ),
    Kind("preference constraints", "classifier", (ZafarClassifier,), _write_preference, _read_preference),
)
