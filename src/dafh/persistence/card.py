"""The card of a model file: what the model is, in plain values that anyone may read without building it."""

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import PurePath
from typing import Annotated, Any

import msgspec
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

import dafh
from dafh.classifiers import final_classifier
from dafh.columns.encoder import TableReader
from dafh.estimators.dafh import DAFHClassifier
from dafh.evaluation.losses import LossName
from dafh.exceptions import InputError
from dafh.incumbents import Incumbent, IncumbentColumns
from dafh.linear.scorecard import Scorecard
from dafh.persistence.state import MalformedError
from dafh.text import clipped, plain

_PACKAGES = ("scikit-learn", "numpy", "scipy", "skops")


def make_card(model: Any, details: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a fitted model; `details` are added as they are, or refused."""
    final = final_classifier(model)
    # A scorecard alone serves all rows, and has nothing to guard.
    alone = isinstance(final, Scorecard)
    report = None if alone else final.guard_report_
    taken = [name for name in details if name in _OWN]
    if taken:
        raise InputError(f"details may not hold {taken[0]!r}, which the model card says itself: use another name.")
    return {
        "dafh": dafh.__version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _PACKAGES},
        "model": type(final).__name__,
        "settings": plain(_changed(final)),
        "labels": plain(final.classes_),
        "groups": 1 if alone else int(final.n_groups_),
        "groups_by": _way(final),
        "exceptions": _exceptions(final),
        "served_by": ["pooled"] if alone else ["pooled" if s == final.n_groups_ else int(s) for s in final.serves_],
        "pooled": _pooled_name(final if alone else final.pooled_),
        "columns": _columns(model, details),
        "losses": [] if alone else [loss.name for loss in final.losses_],
        # Unknown for classifiers of any kind, and for several classes.
        "threshold": float(final.threshold_) if len(final.classes_) == 2 and hasattr(final, "threshold_") else None,
        "guard": None
        if report is None
        else {
            "summary": report.sentence(),
            "table": plain(report.table.reset_index().to_dict("records")),
            "checks": plain(report.checks.to_dict("records")),
        },
        **details,
    }


def _way(final: Any) -> str:
    """Say how rows are divided into groups: by exceptions, by a network, or by the partition that was given."""
    if isinstance(final, Scorecard):
        return "nothing"
    return str(final.method_) if isinstance(final, DAFHClassifier) else type(final.partition_).__name__


def _exceptions(final: Any) -> list[dict[str, Any]] | None:
    """For each group of a list of exceptions: rule, share of the training rows, gain with limits, and who serves it."""
    exceptions = getattr(final, "exceptions_", None)
    if exceptions is None:
        return None
    served = {"served_by": [exceptions.server(group) for group in range(exceptions.n_groups)]}
    entries: list[dict[str, Any]] = plain(exceptions.to_frame().assign(**served).to_dict("records"))
    return [{**entry, "loss": exceptions.loss} for entry in entries]


def _pooled_name(pooled: Any) -> str:
    if isinstance(pooled, IncumbentColumns):
        return f"read from {' and '.join(pooled.columns)}"
    # Behind an encoder, or within what we know about it, it is the classifier that people know it by.
    last = final_classifier(pooled.model if isinstance(pooled, Incumbent) else pooled)
    return type(last).__name__


def to_bytes(card: Mapping[str, Any]) -> bytes:
    """Write a card as JSON, and refuse what it cannot hold."""
    try:
        text = msgspec.json.encode(card, enc_hook=_plain)
    except UnicodeEncodeError as error:
        raise InputError("details hold half of a letter (a lone surrogate): write them without.") from error
    except RecursionError as error:
        raise InputError("details are nested too deeply for a model card, or hold themselves.") from error
    except TypeError as error:
        raise InputError(f"details must have names that are texts: {clipped(error)}.") from error
    read(text)  # Whoever shows a card relies on the types of its entries.
    return text


def _plain(value: object) -> object:
    """Values that msgspec leaves to us, in a form that JSON has."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise InputError(
        f"details hold a {type(value).__name__}: they are plain values (text, numbers, dates, lists, mappings)."
    )


class _Column(msgspec.Struct):
    name: Any
    type: Any


class _Exception(msgspec.Struct):
    rule: str
    rows: float | None
    gain: float | None
    low: float | None
    high: float | None
    served_by: str
    loss: LossName


class _Guard(msgspec.Struct):
    summary: str


class _Schema(msgspec.Struct, frozen=True):
    features: dict[str, Any]


class _Card(msgspec.Struct):
    """Types of the entries that commands and reports rely on; a card may have more."""

    dafh: str
    written: str
    python: str
    versions: dict[str, Any]
    model: str
    settings: dict[str, Any]
    labels: list[Any]
    groups: int
    groups_by: str
    served_by: list[Any]
    pooled: str
    columns: list[_Column]
    losses: list[LossName]
    exceptions: list[_Exception] | None = None
    threshold: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    guard: _Guard | None = None
    # Details that the command line adds.
    data: str = ""
    rows: int = 0
    rows_kept_back: int = 0
    test_fingerprint: str = ""
    schema: _Schema = _Schema({})
    fingerprints: list[str] = []
    guesses: list[str] = []


_OWN = set(_Card.__struct_fields__[: _Card.__struct_fields__.index("data")])
"""Entries that are about the model itself."""


def read(text: bytes) -> dict[str, Any]:
    """Read a card, and refuse one that is not made as `make_card` makes it."""
    try:
        msgspec.json.decode(text, type=_Card)
        card: dict[str, Any] = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedError(f"the model card is malformed: {clipped(error, 120)}") from error
    return card


def origin(card: Mapping[str, Any]) -> str:
    """Say which versions wrote a file."""
    return f"written with dafh {clipped(card['dafh'])} and scikit-learn {clipped(card['versions'].get('scikit-learn'))}"


def _changed(estimator: BaseEstimator) -> dict[str, Any]:
    """Parameters that differ from the default, by what they look like; how much is printed is none of the model."""
    given, default = estimator.get_params(deep=False), type(estimator)().get_params(deep=False)
    return {name: v for name, v in given.items() if repr(v) != repr(default[name]) and name != "verbose"}


def _columns(model: Any, details: Mapping[str, Any]) -> list[Any]:
    """Names and types of the columns that the model takes: a fingerprint of the data without any of its rows."""
    schema = details.get("schema")
    if isinstance(schema, Mapping) and isinstance(schema.get("features"), Mapping):
        return [{"name": name, "type": kind} for name, kind in schema["features"].items()]
    first = model[0] if isinstance(model, Pipeline) else model
    names = getattr(first, "feature_names_in_", [f"column {i}" for i in range(first.n_features_in_)])
    return [{"name": str(name), "type": kind} for name, kind in zip(names, _kinds(first), strict=True)]


def _kinds(first: Any) -> list[str]:
    """Kinds of the columns that a step takes: what it has learned about them, or else numbers."""
    if isinstance(first, TableReader):
        return list(first.columns_.values())
    columns: Any = getattr(first, "columns_", None)
    if isinstance(first, DAFHClassifier | Scorecard):
        binning = first.binning_ if isinstance(first, Scorecard) else first._encoding.binning
        columns = None if binning is None else binning.columns
    return ["number"] * first.n_features_in_ if columns is None else [column.kind for column in columns]
