"""Kinds of our own estimators."""

from types import NoneType
from typing import Any, get_args

import numpy as np

from dafh.checks.parameters import NOTHING, Allowed, Constraints
from dafh.classifiers.fitting import is_fitted
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.estimators.pooled import PooledName
from dafh.groups.recipe import Recipe
from dafh.incumbents.fitted import Incumbent
from dafh.models.binning_kind import read_view, write_view
from dafh.models.container import Json, MalformedError
from dafh.models.description import Fields, Kind, NotPlainError, Writer
from dafh.models.group_kinds import WIDEST_LAYER, Shape, read_groups, write_groups
from dafh.models.guard_kind import read_losses, read_report, write_losses, write_report
from dafh.models.partition_kinds import MOST_GROUPS
from dafh.models.settings import COSTS, LOSSES, Buildable, read_settings, write_settings
from dafh.models.values import (
    read_columns,
    read_labels,
    read_table,
    read_threshold,
    write_columns,
    write_labels,
    write_table,
)

_PARTS = frozenset({"verbose", "pooled", "estimator", "partition", "recipe"})
"""Parameters that are parts of their own, or none of the file's business."""
_MOST_LAYERS = 20
_CURVES = {f"{rows}_{metric}" for rows in ("train", "selection") for metric in ("accuracy", "pr")}
"""What charts and reports draw of the training."""


def limited(constraints: Constraints, **most: int) -> Constraints:
    """Constraints of an estimator, with largest whole numbers for what decides how long a refit takes."""

    def limit(kind: Allowed, largest: int) -> Allowed:
        def holds(value: Any) -> bool:
            if not kind.holds(value):
                return False
            numbers = value if isinstance(value, tuple | list) else [value]
            return len(numbers) <= _MOST_LAYERS and all(isinstance(n, str) or n <= largest for n in numbers)

        return Allowed(f"{kind.words}, at most {largest}", holds)

    tighter = {name: tuple(limit(kind, largest) for kind in constraints[name]) for name, largest in most.items()}
    return {**constraints, **tighter}


RECIPE_SETTINGS = Buildable(
    Recipe,
    limited(
        Recipe._constraints,
        group_hidden=WIDEST_LAYER,
        classifier_hidden=WIDEST_LAYER,
        n_replicas=1000,
        max_epochs=100_000,
        n_folds=1000,
    ),
)
GUARD: Constraints = {"guard_losses": (LOSSES,), "costs": (COSTS, NOTHING)}
"""Where an estimator takes anything and checks it in `fit`, a file is checked at once."""
DAFH_SETTINGS = Buildable(
    DAFHClassifier, {**limited(DAFHClassifier._constraints, n_groups=MOST_GROUPS), **GUARD}, _PARTS
)
DECOUPLED_SETTINGS = Buildable(DecoupledClassifier, {**DecoupledClassifier._constraints, **GUARD}, _PARTS)


# ---- classifiers that a model serves with ----


def _check_classes(model: Any, *classifiers: Any) -> None:
    """Refuse classifiers that predict labels the model does not have."""
    known = set(model.classes_.tolist())
    for classifier in classifiers:
        own = getattr(classifier, "classes_", None)
        if own is None or not set(np.asarray(own).tolist()) <= known:
            raise MalformedError("a classifier in it predicts labels that the model does not have")
        if getattr(classifier, "n_features_in_", model.n_features_in_) != model.n_features_in_:
            raise MalformedError("a classifier in it takes other columns than the model")


def _write_parameter(estimator: Any, name: str, writer: Writer) -> Json:
    value = getattr(estimator, name)
    return None if value is None else writer.part(value, "unfitted")


def _read_parameter(fields: Fields, name: str, model: Any) -> None:
    if fields.has(name):
        model.set_params(**{name: fields.part(name, "unfitted")})


# ---- DecoupledClassifier ----


def write_decoupled(
    model: DecoupledClassifier, writer: Writer, known: Buildable = DECOUPLED_SETTINGS
) -> dict[str, Json]:
    """Describe a model that was told its groups."""
    if not is_fitted(model):
        raise NotPlainError("not fitted")

    def own(classifiers: list[Any]) -> Json:
        # A group with too few rows has the pooled classifier itself, which is written once. So is one that serves
        # several groups: later ones have its place in the list.
        first = {id(one): place for place, one in reversed(list(enumerate(classifiers)))}
        return [
            None if one is model.pooled_ else place if (place := first[id(one)]) < k else writer.part(one, "classifier")
            for k, one in enumerate(classifiers)
        ]

    return {
        "settings": write_settings(model, known),
        **{name: _write_parameter(model, name, writer) for name in ("partition", "estimator", "pooled")},
        "labels": write_labels(model.classes_),
        **write_columns(model, writer),
        "fitted_partition": writer.part(model.partition_, "partition"),
        "pooled_classifier": writer.part(model.pooled_, "classifier"),
        "own_classifiers": own(model._own_estimators),
        "substitutes": own(model._substitutes),
        "losses": write_losses(model.losses_),
        "guard_report": write_report(model.guard_report_, writer),
    }


def read_decoupled(fields: Fields, known: Buildable = DECOUPLED_SETTINGS) -> Any:
    """Build a model that was told its groups."""
    model: Any = read_settings(fields, known)
    for name in ("partition", "estimator", "pooled"):
        _read_parameter(fields, name, model)
    model.classes_ = read_labels(fields, "labels")
    read_columns(fields, model)
    model.partition_ = fields.part("fitted_partition", "partition")
    model.n_groups_ = model.partition_.n_groups_
    model.pooled_ = fields.part("pooled_classifier", "classifier")

    def own(name: str) -> list[Any]:
        found: list[Any] = []
        for one in fields.items(name, MOST_GROUPS):
            if isinstance(one, int) and not isinstance(one, bool):
                if not 0 <= one < len(found):
                    raise fields.refuse(name, "points outside itself")
                found.append(found[one])
            else:
                found.append(model.pooled_ if one is None else fields.reader.part(one, "classifier"))
        return found

    model._own_estimators, model._substitutes = own("own_classifiers"), own("substitutes")
    if len(model._own_estimators) != model.n_groups_ or len(model._substitutes) != _n_substitutes(model.partition_):
        raise MalformedError(f"{fields.where} has not one classifier for each group")
    _check_classes(model, model.pooled_, *model._own_estimators, *model._substitutes)
    if len(getattr(model.partition_, "mean_", range(model.n_features_in_))) != model.n_features_in_:
        raise MalformedError(f"the partition of {fields.where} takes other columns than the model")
    model.losses_ = read_losses(fields, len(model.classes_))
    model._serve(read_report(fields, model.n_groups_, model.losses_))
    return model


def _n_substitutes(partition: Any) -> int:
    """Nodes of a tree between its root and its leaves."""
    return len(partition._nodes) - partition.n_groups_ if hasattr(partition, "_nodes") else 0


# ---- DAFHClassifier ----


def _write_dafh(model: DAFHClassifier, writer: Writer) -> dict[str, Json]:
    if not is_fitted(model):
        raise NotPlainError("not fitted")
    # A fitted incumbent is a parameter and the pooled classifier at once; it is written once. One that was wrapped for
    # the rows of the fit comes back wrapped, and one that needed no wrapping without.
    brought = model.pooled.model if type(model.pooled) is Incumbent else model.pooled
    incumbent = brought is model.pooled_ or type(model.pooled_) is Incumbent
    pooled: Json = None
    if not incumbent:
        pooled = model.pooled if isinstance(model.pooled, str) else writer.part(model.pooled, "unfitted")
    share = None if model.rules_ is None else model.rules_.share
    return {
        "settings": write_settings(model, DAFH_SETTINGS),
        "recipe": _write_parameter(model, "recipe", writer),
        "pooled": pooled,
        "incumbent": incumbent,
        "aside": None if model._aside is None else list(model._aside),
        "labels": write_labels(model.classes_),
        **write_columns(model, writer),
        "pooled_classifier": writer.part(model.pooled_, "classifier"),
        "view": write_view(model._view, model.pooled_, writer),
        "n_groups": int(model.n_groups_),
        "groups": write_groups(model._trained, model._view, writer),
        "shares": None if share is None else writer.array(share),
        "losses": write_losses(model.losses_),
        "guard_report": write_report(model.guard_report_, writer),
        "candidates": write_table(model.candidates_, writer),
        "history": None if model.history_ is None else write_table(model.history_, writer),
        "population": None if model.population_ is None else write_table(model.population_, writer),
        "best_epoch": None if model.best_epoch_ is None else int(model.best_epoch_),
        "threshold": float(model.threshold_),
        "label_information": float(model.label_information_),
    }


def _read_dafh(fields: Fields) -> DAFHClassifier:
    model: Any = read_settings(fields, DAFH_SETTINGS)
    _read_parameter(fields, "recipe", model)
    if not isinstance(model.recipe, Recipe | NoneType):
        raise fields.refuse("recipe")
    pooled = _read_pooled(fields)
    model.classes_ = read_labels(fields, "labels")
    n_columns = read_columns(fields, model)
    model.pooled_ = fields.part("pooled_classifier", "classifier")
    if fields.flag("incumbent") != (pooled is None):
        raise fields.refuse("pooled")
    model.set_params(pooled=model.pooled_ if pooled is None else pooled)
    _check_classes(model, model.pooled_)
    model._aside = _read_aside(fields, model)
    model._view = read_view(fields, "view", model)
    model.n_groups_ = fields.whole("n_groups", 1, MOST_GROUPS)
    m = 1 if len(model.classes_) == 2 else len(model.classes_)
    model.groups_, model._trained = read_groups(fields, "groups", Shape(model._view, n_columns, model.n_groups_, m))
    model.losses_ = read_losses(fields, len(model.classes_))
    model._serve(read_report(fields, model.n_groups_, model.losses_))
    _read_shares(fields, model)
    model.candidates_ = read_table(fields, "candidates")
    _read_training(fields, model)
    model.threshold_ = read_threshold(fields, len(model.classes_))
    model.label_information_ = fields.number("label_information", 0, 1 + 1e-9)
    return model


def _read_pooled(fields: Fields) -> Any:
    """Return the parameter of this name: a word, a classifier that is not fitted, or None for an incumbent."""
    if not fields.has("pooled"):
        return None
    described = fields.take("pooled")
    if not isinstance(described, str):
        return fields.reader.part(described, "unfitted")
    if described not in get_args(PooledName):
        raise fields.refuse("pooled")
    return described


def _read_aside(fields: Fields, model: Any) -> tuple[str, ...] | None:
    """Return the columns that only the pooled classifier sees; those are no features."""
    if not fields.has("aside"):
        return None
    names = tuple(fields.texts("aside"))
    named = list(getattr(model, "feature_names_in_", []))
    if len(set(names)) < len(names) or set(names) & set(named) or (names and not named):
        raise fields.refuse("aside")
    return names


def _read_shares(fields: Fields, model: Any) -> None:
    """Add the share of the training rows in each group to the rules, which are put together from all the rest."""
    if not fields.has("shares"):
        return
    share = fields.floats("shares", model.n_groups_, most=1)
    if model.rules_ is None or (share < 0).any():
        raise fields.refuse("shares")
    model.rules_ = model.rules_.with_shares(share)


def _read_training(fields: Fields, model: Any) -> None:
    """Set how a network was trained; rules were not trained in epochs."""
    model.history_ = model.population_ = model.best_epoch_ = None
    if model.groups_ == "rules":
        for name in ("history", "population", "best_epoch"):
            if fields.has(name):
                raise fields.refuse(name, "belongs to a network")
        return
    model.history_, model.population_ = read_table(fields, "history"), read_table(fields, "population")
    curves = model.history_.select_dtypes("number")
    if model.history_.index.name != "epoch" or not set(curves.columns) >= _CURVES:
        raise fields.refuse("history")
    model.best_epoch_ = fields.whole("best_epoch", 1, 10**9)


ESTIMATOR_KINDS: tuple[Kind, ...] = (
    Kind("decoupled classifier", "classifier", (DecoupledClassifier,), write_decoupled, read_decoupled),
    Kind(
        "recipe",
        "unfitted",
        (Recipe,),
        lambda recipe, _: {"settings": write_settings(recipe, RECIPE_SETTINGS)},
        lambda fields: read_settings(fields, RECIPE_SETTINGS),
    ),
    Kind("dafh classifier", "classifier", (DAFHClassifier,), _write_dafh, _read_dafh),
)
