"""The kind of scorecards: bins of the columns, and points for each of them."""

from typing import Any

import numpy as np
import pandas as pd

from dafh.classifiers.fitting import is_fitted
from dafh.linear.scorecard import Scorecard
from dafh.models.binning_kind import read_binning, split_by_bins, write_binning
from dafh.models.container import Json
from dafh.models.description import MOST_COLUMNS, Fields, Kind, NotPlainError, Writer
from dafh.models.settings import BUILDABLE, read_settings, write_settings
from dafh.models.values import read_columns, read_labels, read_threshold, write_columns, write_labels
from dafh.tables.bins import Binning

_NAME = "scorecard"
_ROUNDING = 1e-6
_MOST_COEFFICIENTS = 10**9


def _write_unfitted(model: Scorecard, _: Writer) -> dict[str, Json]:
    return {"settings": write_settings(model, BUILDABLE[_NAME])}


def _write(model: Scorecard, writer: Writer) -> dict[str, Json]:
    if not is_fitted(model):
        raise NotPlainError("not fitted")
    place = {column.name: position for position, column in enumerate(model.binning_.columns)}
    strengths = model.strengths_
    return {
        **_write_unfitted(model, writer),
        "labels": write_labels(model.classes_),
        **write_columns(model, writer),
        "binning": write_binning(model.binning_, writer),
        "points": writer.array(np.concatenate(model.points_)),
        "intercept": writer.array(model.intercept_),
        "shares": writer.array(np.concatenate(model.shares_)),
        "strength": float(model.strength_),  # type: ignore[arg-type]
        "threshold": float(model.threshold_),
        "strengths": {
            "column": writer.array(np.array([place[name] for name in strengths["column"]], np.int64)),
            "coefficients": writer.array(strengths["coefficients"].to_numpy(np.int64)),
            "strength": writer.array(strengths["strength"].to_numpy(np.float64)),
        },
    }


def _read(fields: Fields) -> Scorecard:
    model: Any = read_settings(fields, BUILDABLE[_NAME])
    model.classes_ = read_labels(fields, "labels")
    read_columns(fields, model)
    binning = model.binning_ = read_binning(fields, "binning", model)
    m = 1 if len(model.classes_) == 2 else len(model.classes_)
    n_bins = sum(binning.n_bins)
    model.points_ = split_by_bins(fields.floats("points", n_bins, m), binning)
    model.intercept_ = fields.floats("intercept", m)
    shares = fields.floats("shares", n_bins, most=1 + _ROUNDING)
    sums = np.add.reduceat(shares, np.cumsum([0, *binning.n_bins[:-1]]))
    if (shares < 0).any() or np.abs(sums - 1).max() > _ROUNDING:
        raise fields.refuse("shares", "does not add up to 1")
    model.shares_ = split_by_bins(shares, binning)
    model.strength_ = fields.number("strength", 0)
    model.threshold_ = read_threshold(fields, len(model.classes_))
    model.strengths_ = _read_strengths(fields.fields("strengths"), binning)
    return model


def _read_strengths(fields: Fields, binning: Binning) -> pd.DataFrame:
    # A column has a strength for each of a few parts.
    column = fields.wholes("column", None, least=0, most=len(binning.columns) - 1)
    if len(column) > 4 * MOST_COLUMNS:
        raise fields.refuse("column")
    coefficients = fields.wholes("coefficients", len(column), least=0, most=_MOST_COEFFICIENTS)
    strength = fields.floats("strength", len(column))
    fields.close()
    names = [binning.columns[place].name for place in column.tolist()]
    lines = list(zip(names, coefficients.tolist(), strength.tolist(), strict=True))
    return pd.DataFrame(lines, columns=["column", "coefficients", "strength"])


SCORECARD_KINDS: tuple[Kind, ...] = (
    Kind(_NAME, "classifier", (Scorecard,), _write, _read),
    Kind(_NAME, "unfitted", (Scorecard,), _write_unfitted, lambda fields: read_settings(fields, BUILDABLE[_NAME])),
)
