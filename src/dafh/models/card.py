"""The card of a model file: what the model is, in plain values that anyone may read without building it."""

import json
import platform
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

import dafh
from dafh.classifiers.pipelines import final_classifier
from dafh.estimators.dafh import DAFHClassifier
from dafh.evaluation.guard_report import GuardReport
from dafh.evaluation.losses import LOSS_NAMES
from dafh.exceptions import InputError
from dafh.incumbents.columns import IncumbentColumns
from dafh.incumbents.fitted import Incumbent
from dafh.linear.scorecard import Scorecard
from dafh.models.container import DEEPEST, Json, MalformedError, parse
from dafh.tables.reader import TableReader
from dafh.text import clipped, plain

_PACKAGES = ("scikit-learn", "numpy", "scipy", "skops")
_ENTRIES = {
    "dafh": str, "written": str, "python": str, "versions": dict, "model": str, "settings": dict, "labels": list,
    "groups": int, "groups_by": str, "served_by": list, "pooled": str, "columns": list, "losses": list,
}  # fmt: skip
_DETAILS = {
    "data": str, "rows": int, "rows_kept_back": int, "test_fingerprint": str, "schema": dict, "fingerprints": list,
    "guesses": list,
}  # fmt: skip
"""Entries that the command line adds, and relies on when it reads them."""
_OWN = {*_ENTRIES, "guard", "rules", "threshold"}


def make_card(model: Any, details: Mapping[str, object]) -> dict[str, Json]:
    """Describe a fitted model; `details` are added as they are, or refused."""
    final = final_classifier(model)
    # A scorecard alone serves all rows, and has nothing to guard.
    alone = isinstance(final, Scorecard)
    report = None if alone else final.guard_report_
    added = _plain_details(details)
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
        "rules": _rules(final),
        "served_by": ["pooled"] if alone else ["pooled" if s == final.n_groups_ else int(s) for s in final.serves_],
        "pooled": _pooled_name(final if alone else final.pooled_),
        "columns": _columns(model, added),
        "losses": [] if alone else [loss.name for loss in final.losses_],
        "threshold": _cutoff(final),
        "guard": None if report is None else _guard(report),
        **added,
    }


def _guard(report: GuardReport) -> dict[str, Json]:
    """What the guard decided for each group and why, with everything that it was asked."""
    return {
        "summary": report.sentence(),
        "table": plain(report.table.reset_index().to_dict("records")),
        "checks": plain(report.checks.to_dict("records")),
    }


def _cutoff(final: Any) -> float | None:
    """Probability above which the second of two classes is predicted; unknown for classifiers of any kind."""
    known = len(final.classes_) == 2 and hasattr(final, "threshold_")
    return float(final.threshold_) if known else None


def _way(final: Any) -> str:
    """Say how rows are divided into groups: by rules, by a network, or by the partition that was given."""
    if isinstance(final, Scorecard):
        return "nothing"
    return str(final.groups_) if isinstance(final, DAFHClassifier) else type(final.partition_).__name__


def _rules(final: Any) -> Json:
    """One text for each group that is a rule, as `RulesInUse` prints it."""
    rules = getattr(final, "rules_", None)
    return None if rules is None else [rules.tree.rule(k) for k in range(rules.n_groups)]


def _pooled_name(pooled: Any) -> str:
    if isinstance(pooled, IncumbentColumns):
        return f"read from {' and '.join(pooled.columns)}"
    # Behind an encoder, or within what we know about it, it is the classifier that people know it by.
    last = final_classifier(pooled.model if isinstance(pooled, Incumbent) else pooled)
    return type(getattr(last, "trained_as", last)).__name__


def to_bytes(card: Mapping[str, Json]) -> bytes:
    """Write a card as JSON."""
    return json.dumps(card, ensure_ascii=False, indent=1, allow_nan=False).encode()


def read(text: bytes) -> dict[str, Any]:
    """Read a card and refuse one that is not made as `make_card` makes it: whoever shows it relies on that."""
    try:
        card = parse(text)
    except MalformedError as error:
        raise MalformedError(f"the model card is malformed: {error}") from error
    if not isinstance(card, dict):
        raise MalformedError("the model card is malformed")
    _check_types(card, {**_ENTRIES, **{name: kind for name, kind in _DETAILS.items() if name in card}})
    guard, columns, rules = card.get("guard"), card["columns"], card.get("rules")
    cutoff: Any = card.get("threshold")
    sound = (
        all(isinstance(column, dict) and {"name", "type"} <= set(column) for column in columns)  # type: ignore[union-attr]
        and (guard is None or (isinstance(guard, dict) and isinstance(guard.get("summary"), str)))
        and (rules is None or (isinstance(rules, list) and all(isinstance(rule, str) for rule in rules)))
        and (cutoff is None or (isinstance(cutoff, float) and 0 < cutoff < 1))
        and all(loss in LOSS_NAMES for loss in card["losses"])  # type: ignore[union-attr]
        and all(isinstance(entry, str) for name in ("fingerprints", "guesses") for entry in card.get(name, []))  # type: ignore[union-attr]
    )
    if not sound:
        raise MalformedError("the model card is malformed")
    return card


def _check_types(card: Mapping[str, Json], expected: Mapping[str, type]) -> None:
    for name, kind in expected.items():
        if not isinstance(card.get(name), kind) or (kind is int and isinstance(card[name], bool)):
            raise MalformedError(f"the model card is malformed: {name!r} is not {_WORDS[kind]}")


_WORDS = {str: "a text", dict: "a mapping", list: "a list", int: "a whole number"}


def origin(card: Mapping[str, Any]) -> str:
    """Say which versions wrote a file."""
    return f"written with dafh {clipped(card['dafh'])} and scikit-learn {clipped(card['versions'].get('scikit-learn'))}"


def _changed(estimator: BaseEstimator) -> dict[str, Any]:
    """Parameters that differ from the default, by what they look like; how much is printed is none of the model."""
    given, default = estimator.get_params(deep=False), type(estimator)().get_params(deep=False)
    return {name: v for name, v in given.items() if repr(v) != repr(default[name]) and name != "verbose"}


def _columns(model: Any, details: Mapping[str, Any]) -> list[Json]:
    """Names and types of the columns that the model takes: a fingerprint of the data without any of its rows."""
    if "schema" in details:
        return [{"name": name, "type": kind} for name, kind in details["schema"]["features"].items()]
    first = model[0] if isinstance(model, Pipeline) else model
    names = getattr(first, "feature_names_in_", [f"column {i}" for i in range(first.n_features_in_)])
    return [{"name": str(name), "type": kind} for name, kind in zip(names, _kinds(first), strict=True)]


def _kinds(first: Any) -> list[str]:
    """Kinds of the columns that a step takes: what it has learned about them, or else numbers."""
    if isinstance(first, TableReader):
        return list(first.columns_.values())
    columns: Any = getattr(first, "columns_", None)
    if isinstance(first, DAFHClassifier | Scorecard):
        binning = first.binning_ if isinstance(first, Scorecard) else first._view.binning
        columns = None if binning is None else binning.columns
    return ["number"] * first.n_features_in_ if columns is None else [column.kind for column in columns]


# ---- details ----


def _plain_details(details: Mapping[str, object]) -> dict[str, Any]:
    """Details as JSON holds them: what has an obvious plain form is converted, anything else refused."""
    taken = [name for name in details if name in _OWN]
    if taken:
        raise InputError(f"details may not hold {taken[0]!r}, which the model card says itself: use another name.")
    found = {_key(name): _plain(value, f"details[{name!r}]", 1) for name, value in details.items()}
    _check_types(found, {name: kind for name, kind in _DETAILS.items() if name in found})
    schema = found.get("schema", {"features": {}})
    if not isinstance(schema, dict) or not isinstance(schema.get("features"), dict):
        raise MalformedError("the model card is malformed: 'schema' has no features")
    return found


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise InputError(f"The names in details must be texts; {clipped(repr(name))} is not.")
    return _text(name, "a name in details")


def _text(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where} holds half of a letter (a lone surrogate): write it without.") from error
    return value


def _plain(value: object, where: str, depth: int) -> Json:
    if depth > DEEPEST // 2:
        raise InputError(f"{where} is nested too deeply for a model card, or holds itself.")
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(str(value), where)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise InputError(f"{where} is a number of more than 64 bits: write it as text.")
        return int(value)
    if isinstance(value, float):
        # JSON has no word for these, and a mean over nothing should not keep a model from being saved.
        return float(value) if np.isfinite(value) else None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta | PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {_key(name): _plain(entry, where, depth + 1) for name, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(entry, where, depth + 1) for entry in value]
    raise InputError(
        f"{where} holds a {type(value).__name__}: details are plain values (text, numbers, lists, mappings)."
    )
