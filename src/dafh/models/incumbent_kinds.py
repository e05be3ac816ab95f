"""Kinds of models that users bring: what was said and learned about a fitted one, and columns to read a score from."""

from typing import Any

import numpy as np

from dafh.classifiers.fitting import is_fitted
from dafh.incumbents.columns import IncumbentColumns
from dafh.incumbents.fitted import Incumbent, names_aside
from dafh.incumbents.scales import LabelShares, ScoreCurve
from dafh.models.container import Json
from dafh.models.description import Fields, Kind, NotPlainError, Writer
from dafh.models.encoder_kind import LARGEST_NUMBER
from dafh.models.values import MOST_LABELS, read_labels, write_labels

# ---- probabilities from scores and labels ----


def _write_scale(model: Any, writer: Writer) -> dict[str, Json]:
    curve, shares = model._curve, model._shares
    return {
        "curve": None if curve is None else writer.array(np.array([curve.intercept, curve.slope])),
        "shares": None if shares is None else writer.array(shares.table),
    }


def _read_scale(fields: Fields, model: Any) -> None:
    n = len(model.classes_)
    model._curve = model._shares = None
    if fields.has("curve"):
        intercept, slope = fields.floats("curve", 2, most=LARGEST_NUMBER).tolist()
        if n != 2:
            raise fields.refuse("curve", "needs two labels")
        model._curve = ScoreCurve(intercept, slope)
    if fields.has("shares"):
        table = fields.floats("shares", n, n, most=1)
        if (table < 0).any() or (np.abs(table.sum(axis=1) - 1) > 1e-6).any():
            raise fields.refuse("shares", "does not add up to 1")
        model._shares = LabelShares(table)


# ---- columns ----


def _write_columns_said(model: IncumbentColumns, _: Writer) -> dict[str, Json]:
    threshold = None if model.threshold is None else float(model.threshold)
    return {
        "score": model.score,
        "decision": model.decision,
        "threshold": threshold,
        "as_features": bool(model.as_features),
    }


def _read_columns_said(fields: Fields) -> IncumbentColumns:
    score, decision = (fields.text(name) if fields.has(name) else None for name in ("score", "decision"))
    threshold = fields.number("threshold", -LARGEST_NUMBER, LARGEST_NUMBER) if fields.has("threshold") else None
    if score is None and decision is None:
        raise fields.refuse("score", "is missing, and so is the decision")
    return IncumbentColumns(score, decision, threshold=threshold, as_features=fields.flag("as_features"))


def _write_columns(model: IncumbentColumns, writer: Writer) -> dict[str, Json]:
    if not is_fitted(model):
        raise NotPlainError("not fitted")
    return {
        **_write_columns_said(model, writer),
        "labels": write_labels(model.classes_),
        "cut": model._threshold,
        **_write_scale(model, writer),
    }


def _read_columns(fields: Fields) -> IncumbentColumns:
    model: Any = _read_columns_said(fields)
    model.classes_ = read_labels(fields, "labels")
    model._read = (model.score, model.decision)
    model._threshold = fields.number("cut", -LARGEST_NUMBER, LARGEST_NUMBER) if fields.has("cut") else None
    _read_scale(fields, model)
    # A score needs two labels; where nobody decides, a cut does; and a decision alone has shares.
    sound = (model.score is None) == (model._shares is not None) and (model.decision is None) == (
        model._threshold is not None
    )
    if not sound or (model.score is not None and len(model.classes_) != 2):
        raise fields.refuse("labels", "does not fit the columns that are read")
    return model


# ---- fitted models ----


def _write_incumbent(model: Incumbent, writer: Writer) -> dict[str, Json]:
    if not is_fitted(model):
        raise NotPlainError("not fitted")
    names = model._names
    return {
        "model": writer.part(model._model, "classifier"),
        "labels": write_labels(model.classes_),
        "places": writer.array(np.asarray(model._places, np.int64)),
        "by_number": bool(model._by_number),
        "columns": None if names is None else list(names),
        "only": [str(name) for name in names_aside(model.only)],
        **_write_scale(model, writer),
    }


def _read_incumbent(fields: Fields) -> Incumbent:
    inner = fields.part("model", "classifier")
    labels = read_labels(fields, "labels")
    places = fields.wholes("places", None, least=0, most=len(labels) - 1)
    if not 1 <= len(places) <= MOST_LABELS or len(np.unique(places)) < len(places):
        raise fields.refuse("places")
    by_number = fields.flag("by_number")
    said = labels[places].tolist() if by_number else None
    names = tuple(fields.texts("columns")) if fields.has("columns") else None
    model: Any = Incumbent(inner, labels=said, columns=names, only=tuple(fields.texts("only")))
    model.classes_, model._places, model._names, model._model = labels, places, names, inner
    model._by_number = by_number
    own = getattr(inner, "classes_", labels)
    if len(own) != len(places):
        raise fields.refuse("places", "has not one label for each of the model's")
    _read_scale(fields, model)
    if model._shares is None and not hasattr(
        inner, "decision_function" if model._curve is not None else "predict_proba"
    ):
        raise fields.refuse("model", "gives no probabilities")
    return model


INCUMBENT_KINDS: tuple[Kind, ...] = (
    Kind("incumbent columns", "classifier", (IncumbentColumns,), _write_columns, _read_columns),
    Kind("incumbent columns", "unfitted", (IncumbentColumns,), _write_columns_said, _read_columns_said),
    Kind("incumbent", "classifier", (Incumbent,), _write_incumbent, _read_incumbent),
)
