"""Model files that can be handed to someone who does not trust you: no pickle, nothing in them is ever run.

A file is a zip with the members

- ``card.json``: what the file says of its model, readable without building it;
- ``model.msgpack``: the model as plain values;
- ``arrays.npz``: its arrays;
- ``0.skops``, ``1.skops``, ...: parts of other libraries, if it has any.

The comment of the zip has the number of the format, and the SHA-256 of everything before it. Nothing is compressed, so
that no member is larger than the file that brings it. The checksum finds damage and not forgery, because whoever forges
a file can compute it too. Members are therefore read as if they came from an attacker, who gains nothing but a model
that predicts what they like.

Plain values stand for themselves in ``model.msgpack``; anything else is a list that begins with its kind, such as
``["tuple", items]`` or ``["object", class, fields]``. A class is looked up in `CLASSES` and nowhere else, and its
fields must be those that the class has:

- a data class: all its fields, checked against their annotations;
- an estimator: its parameters, and what `fit` has set, which begins or ends with an underscore;
- a pipeline: its steps. Its `memory` names a folder of pickles, which no file may choose;
- any other class of `CLASSES`: the attributes that the class annotates.

A field that is added to a class needs no change here. A new class that a fitted model may hold is one line in
`CLASSES`. What changes the meaning of an older file raises `FORMAT`.
"""

import dataclasses
import functools
import hashlib
import inspect
import io
import math
import platform
import re
import types
import warnings
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import dafh
from dafh.classifiers import final_classifier
from dafh.columns.bins import Binning
from dafh.columns.column import Column
from dafh.columns.encoder import Scale, TableEncoder, TableReader
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.evaluation.guard import GuardReport
from dafh.evaluation.losses import Costs, Loss, LossName
from dafh.exceptions import InputError, OtherVersionWarning
from dafh.frames import PlainTable
from dafh.groups.corrections import LinearCorrections, PointCorrections
from dafh.groups.recipe import Recipe
from dafh.groups.summary import ExceptionSummary
from dafh.groups.trained import ExceptionModel, NetworkModel
from dafh.incumbents import Incumbent, IncumbentColumns, LabelShares, ScoreCurve
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.scorecard import Scaling, Scorecard
from dafh.partitions import ClusterPartition, IntersectionPartition, PooledPartition
from dafh.regions.conditions import Condition, Region
from dafh.rows import TableEncoding
from dafh.storage import replacing
from dafh.text import clipped, plain
from dafh.validation import check_parameters, check_path

FORMAT = 5
"""Formats before were written before the first release, and are no longer read."""
_COMMENT = re.compile(rb"dafh model (\d{4}) ([0-9a-f]{64})")
_COMMENT_LENGTH = 80
_LARGEST_FILE = 2**30
_LARGEST_VALUES = 2**26
"""Bytes of the plain values of a model, and of its card."""
_MOST_MEMBERS = 100_000
"""Members of an archive."""
_DTYPES = "biufUMm"
"""Kinds of arrays that a file may hold: numbers, truth values, text and dates."""
_CARD, _VALUES, _ARRAYS = "card.json", "model.msgpack", "arrays.npz"
_MODELS = (DAFHClassifier, DecoupledClassifier, Scorecard)

CLASSES: dict[str, type] = {
    own.__name__: own
    for own in (
        *_MODELS,
        # Parameters, and what stands before a model
        Pipeline,
        Recipe,
        Scaling,
        StandardizedLogisticRegression,
        TableEncoder,
        TableReader,
        # Models that users bring
        Incumbent,
        IncumbentColumns,
        LabelShares,
        ScoreCurve,
        # Partitions
        ClusterPartition,
        IntersectionPartition,
        PooledPartition,
        # Groups that were learned
        LinearCorrections,
        NetworkModel,
        PointCorrections,
        Condition,
        ExceptionModel,
        ExceptionSummary,
        Region,
        # Columns
        Binning,
        Column,
        Scale,
        TableEncoding,
        # Records
        Costs,
        GuardReport,
        Loss,
        PlainTable,
    )
}
"""The classes that a file may name: all that is built from a file besides parts of other libraries."""


class MalformedError(ValueError):
    """Why a file is refused, or a model not written, as the second half of a sentence."""


# ---- save and load ----


def save(
    model: Any, path: str | Path, *, details: Mapping[str, object] | None = None, trusted: Sequence[str] = ()
) -> None:
    """Write a fitted model to a file from which `load` builds it again, without pickle.

    Parameters
    ----------
    model : fitted DAFHClassifier, DecoupledClassifier or Scorecard, or a pipeline that ends in one
    path : str or Path
        Replaced in one step: there is never a half-written file.
    details : mapping, optional
        More to say in the file's card, such as where the data came from. Numbers that are not finite become None;
        what JSON does not know, such as a date, becomes text.
    trusted : sequence of str, optional
        Types of parts from other libraries, such as your own pooled classifier, each as "module.Class". Most of
        scikit-learn needs no naming. Whoever loads the file has to name them too.

    Examples
    --------
    >>> import tempfile, pathlib, dafh
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(400, random_state=0)
    >>> model = dafh.DecoupledClassifier(random_state=0).fit(data.X, data.y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dafh"
    >>> dafh.save(model, path)
    >>> bool((dafh.load(path).predict(data.X) == model.predict(data.X)).all())
    True
    """
    content = file_content(model, details=details, trusted=trusted)
    with replacing(check_path(path)) as temporary:
        temporary.write_bytes(content)


def file_content(model: Any, *, details: Mapping[str, object] | None = None, trusted: Sequence[str] = ()) -> bytes:
    """Return what `save` writes, to write it together with something else; parameters are those of `save`."""
    final = final_classifier(model)
    if not isinstance(final, _MODELS):
        raise InputError(
            f"A model file holds a DAFHClassifier, a DecoupledClassifier, a Scorecard or a pipeline that ends in one, "
            f"not {type(model).__name__}."
        )
    check_is_fitted(final)
    try:
        card = _encode_card(make_card(model, details or {}))
        members = write_state(model, trusted)
        if max(len(card), len(members[_VALUES])) > _LARGEST_VALUES or len(members[_ARRAYS]) > _LARGEST_FILE:
            raise MalformedError("it is too large for a model file")
    except MalformedError as error:
        raise InputError(f"This model cannot be saved: {error}.") from error
    archive = _pack({_CARD: card, **members})
    # The length of the comment is the last number of the archive, and part of what the checksum is about.
    content = archive[:-2] + _COMMENT_LENGTH.to_bytes(2, "little")
    return content + f"dafh model {FORMAT:04} {hashlib.sha256(content).hexdigest()}".encode()


def load(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save` has written; safe with files from anywhere.

    Parameters
    ----------
    path : str or Path
    trusted : sequence of str, optional
        Types of other libraries that you allow to be built, each as "module.Class". Name none that you would not
        unpickle from the same source.

    Returns
    -------
    The model as it was fitted: classifier or pipeline.

    Examples
    --------
    >>> import tempfile, pathlib, dafh
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dafh"
    >>> _ = path.write_text("anything")
    >>> dafh.load(path)
    Traceback (most recent call last):
    ...
    dafh.exceptions.InputError: ...model.dafh cannot be read: it is not a dafh model file.
    """
    return open_model(path, trusted=trusted)[0]


def open_model(path: str | Path, *, trusted: Sequence[str] = ()) -> tuple[Any, dict[str, Any]]:
    """Read a model together with its card; parameters are those of `load`."""
    content = _read_bytes(check_path(path))
    with _refusing(path):
        members = _read_members(content)
        card = _decode_card(members.pop(_CARD))
        model = _read_state(members, trusted)
        final = final_classifier(model)
        if not isinstance(final, _MODELS):
            raise MalformedError(f"its model is a {type(final).__name__}, not one of dafh's")
        check_is_fitted(final)
    # Our own state does not depend on scikit-learn's version; what skops stores does.
    written, installed = card["versions"].get("scikit-learn"), version("scikit-learn")
    if "0.skops" in members and str(written).split(".")[:2] != installed.split(".")[:2]:
        warnings.warn(
            f"{path} was written with dafh {clipped(card['dafh'])} and scikit-learn {clipped(written)}, and is read "
            f"with scikit-learn {installed}: compare some predictions before you rely on it.",
            OtherVersionWarning,
            stacklevel=3,
        )
    return model, card


def read_card(path: str | Path) -> dict[str, Any]:
    """Read what a model file says of its model; the model itself is not built, so nothing has to be trusted."""
    content = _read_bytes(check_path(path))
    with _refusing(path):
        return _decode_card(_read_members(content)[_CARD])


@contextmanager
def _refusing(path: str | Path) -> Iterator[None]:
    """Turn everything that goes wrong with a file from anywhere into an InputError of one sentence."""
    try:
        yield
    except MalformedError as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    except Exception as error:  # Whatever a crafted file makes of the libraries and classes that it passes through.
        reason = f"{type(error).__name__}: {_short(error)}"
        raise InputError(f"{path} cannot be read: it is malformed ({reason}).") from error


def _short(error: BaseException) -> str:
    return clipped(" ".join(str(error).split()) or type(error).__name__, 120).rstrip(".")


def _read_members(content: bytes) -> dict[str, bytes]:
    """Check format and checksum of a file, and return its members; the model is not built."""
    if not content:
        raise MalformedError("it is empty")
    if content.startswith(b"dafh model "):
        raise MalformedError("it was written by an earlier version: fit and save the model again")
    if not content.startswith(b"PK"):
        raise MalformedError("it is not a dafh model file")
    comment = _COMMENT.fullmatch(content[-_COMMENT_LENGTH:])
    if comment is None:
        raise MalformedError("it was cut short, or is not a dafh model file")
    if hashlib.sha256(content[:-_COMMENT_LENGTH]).hexdigest().encode() != comment[2]:
        raise MalformedError("checksum mismatch: its content has changed since it was written")
    if int(comment[1]) > FORMAT:
        raise MalformedError("it was written by a newer dafh: upgrade to read it")
    if int(comment[1]) < FORMAT:
        raise MalformedError("it was written by an earlier version: fit and save the model again")
    members = _unpack(content)
    if {*members} - {_CARD, _VALUES, _ARRAYS} != {f"{number}.skops" for number in range(len(members) - 3)}:
        raise MalformedError("it is malformed: it lacks a member, or has one too many")
    if max(len(members[_CARD]), len(members[_VALUES])) > _LARGEST_VALUES:
        raise MalformedError("it is too large for a model file")
    return members


def _read_bytes(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file.")
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(f"{path} cannot be read: it is too large for a model file.")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"There is no model file {path}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def _pack(members: Mapping[str, bytes]) -> bytes:
    """Put members into an archive: without compression, and with the same bytes for the same members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def _unpack(content: bytes) -> dict[str, bytes]:
    """Take the members out of an archive that unpacks to no more than it holds."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        packed = any(m.compress_type != zipfile.ZIP_STORED or m.file_size != m.compress_size for m in members)
        if packed or sum(member.file_size for member in members) > len(content):
            raise MalformedError("it would unpack to more than it holds")
        if len(members) > _MOST_MEMBERS or len({member.filename for member in members}) < len(members):
            raise MalformedError("it has too many members, or two of the same name")
        return {member.filename: archive.read(member) for member in members}


# ---- the card: what a file says of its model in plain words ----


class _ColumnEntry(msgspec.Struct):
    name: str
    type: str


class _ExceptionEntry(msgspec.Struct):
    rule: str
    rows: float | None
    gain: float | None
    low: float | None
    high: float | None
    served_by: str
    loss: LossName


class _GuardEntry(msgspec.Struct):
    summary: str


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
    columns: list[_ColumnEntry]
    losses: list[LossName]
    exceptions: list[_ExceptionEntry] | None = None
    threshold: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    guard: _GuardEntry | None = None
    # Details that the command line adds.
    data: str = ""
    rows: int = 0
    rows_kept_back: int = 0
    test_fingerprint: str = ""
    schema: dict[str, Any] = {}
    fingerprints: list[str] = []
    guesses: list[str] = []


def make_card(model: Any, details: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a fitted model; `details` are added to what it says itself."""
    final = final_classifier(model)
    # A scorecard alone serves all rows: it has no groups, and nothing to guard.
    has_groups = not isinstance(final, Scorecard)
    report = final.guard_report_ if has_groups else None
    defaults = type(final)().get_params(deep=False)
    changed = {
        name: value
        for name, value in final.get_params(deep=False).items()
        if repr(value) != repr(defaults[name]) and name != "verbose"
    }
    way = "nothing"
    if has_groups:
        way = final.method_ if isinstance(final, DAFHClassifier) else type(final.partition_).__name__
    pooled = final.pooled_ if has_groups else final
    if isinstance(pooled, IncumbentColumns):
        pooled_name = f"read from {' and '.join(pooled.columns)}"
    else:  # Named as people know it: not by its wrapper, nor by the encoder before it.
        pooled_name = type(final_classifier(pooled.model if isinstance(pooled, Incumbent) else pooled)).__name__
    summary = getattr(final, "exceptions_", None)
    exceptions = None
    if summary is not None:
        servers = [summary.server(group) for group in range(summary.n_groups)]
        exceptions = summary.to_frame().assign(served_by=servers, loss=summary.loss).to_dict("records")
    about_model = {
        "dafh": dafh.__version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("scikit-learn", "numpy", "scipy", "skops")},
        "model": type(final).__name__,
        "settings": changed,
        "labels": final.classes_,
        "groups": final.n_groups_ if has_groups else 1,
        "groups_by": way,
        "exceptions": exceptions,
        "served_by": ["pooled" if server == final.n_groups_ else server for server in final.serves_.tolist()]
        if has_groups
        else ["pooled"],
        "pooled": pooled_name,
        "columns": _columns(model, details),
        "losses": [loss.name for loss in final.losses_] if has_groups else [],
        # Unknown for classifiers of any kind, and for several classes.
        "threshold": float(final.threshold_) if len(final.classes_) == 2 and hasattr(final, "threshold_") else None,
        "guard": None
        if report is None
        else {
            "summary": report.sentence(),
            "table": report.table.reset_index().to_dict("records"),
            "checks": report.checks.to_dict("records"),
        },
    }
    taken = [name for name in details if name in about_model]
    if taken:
        raise InputError(f"details may not hold {taken[0]!r}, which the model card says itself: use another name.")
    try:
        card: dict[str, Any] = plain({**about_model, **details})
    except RecursionError as error:
        raise InputError("details are nested too deeply for a model card, or hold themselves.") from error
    return card


def _columns(model: Any, details: Mapping[str, Any]) -> list[dict[str, str]]:
    """Names and types of the columns that the model takes."""
    schema = details.get("schema")
    if isinstance(schema, Mapping) and isinstance(schema.get("features"), Mapping):
        return [{"name": name, "type": kind} for name, kind in schema["features"].items()]
    first = model[0] if isinstance(model, Pipeline) else model
    names = getattr(first, "feature_names_in_", [f"column {i}" for i in range(first.n_features_in_)])
    columns: Any = getattr(first, "columns_", None)
    if isinstance(first, DAFHClassifier | Scorecard):
        binning = first.binning_ if isinstance(first, Scorecard) else first._encoding.binning
        columns = None if binning is None else binning.columns
    if columns is None:
        kinds = ["number"] * first.n_features_in_
    else:
        kinds = list(columns.values()) if isinstance(first, TableReader) else [column.kind for column in columns]
    return [{"name": str(name), "type": kind} for name, kind in zip(names, kinds, strict=True)]


def _encode_card(card: Mapping[str, Any]) -> bytes:
    """Write a card as JSON, and refuse what commands could not read again."""
    try:
        text = msgspec.json.encode(card)
    except UnicodeEncodeError as error:
        raise InputError("details hold half of a letter (a lone surrogate): write them without.") from error
    _decode_card(text)
    return text


def _decode_card(text: bytes) -> dict[str, Any]:
    """Read a card, and refuse one whose entries have other types than `_Card` says."""
    try:
        msgspec.json.decode(text, type=_Card)
        card: dict[str, Any] = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedError(f"the model card is malformed: {clipped(error, 120)}") from error
    return card


# ---- the model as plain values and arrays ----


def write_state(model: object, trusted: Collection[str] = ()) -> dict[str, bytes]:
    """Describe a model by members of a file: plain values, arrays, and parts of other libraries."""
    writer = _Writer(trusted)
    try:
        # MessagePack: unlike JSON it has numbers that are not finite.
        values = msgspec.msgpack.encode(writer.describe(model))
    except (OverflowError, UnicodeEncodeError) as error:
        raise MalformedError(f"it holds a number or a text that cannot be stored ({clipped(error, 80)})") from error
    arrays = {f"{number}.npy": content for number, content in enumerate(writer.arrays)}
    return {_VALUES: values, _ARRAYS: _pack(arrays), **{f"{n}.skops": part for n, part in enumerate(writer.parts)}}


class _Writer:
    """Describes values; arrays and parts of other libraries are collected on the way."""

    def __init__(self, trusted: Collection[str]) -> None:
        self.arrays: list[bytes] = []
        self.parts: list[bytes] = []
        self._trusted = trusted
        # An object that is used in several places is written once. By identity, together with the object: the identity
        # of one that is gone may be given to another.
        self._numbers: dict[int, tuple[object, int]] = {}

    def describe(self, value: Any) -> Any:
        """Return a plain value as it is, and anything else as a list that begins with its kind."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # Another fit starts from another state anyway.
        if isinstance(value, pd.Index | pd.Series):
            value = value.to_numpy()
        if type(value) in (list, tuple):
            return [type(value).__name__, [self.describe(item) for item in value]]
        if isinstance(value, Mapping):
            return ["mapping", [[self.describe(key), self.describe(item)] for key, item in value.items()]]
        if isinstance(value, np.generic):
            if value.dtype.kind not in "biufU":
                raise MalformedError(f"it holds {clipped(repr(value))}, which is neither text nor a number")
            return ["scalar", "str" if value.dtype.kind == "U" else value.dtype.name, value.item()]
        if id(value) in self._numbers:
            return ["same", self._numbers[id(value)][1]]
        described = self._describe_array(value) if isinstance(value, np.ndarray) else self._describe_object(value)
        # Numbered after its own parts, as the reader does.
        self._numbers[id(value)] = value, len(self._numbers)
        return described

    def _describe_array(self, value: NDArray[Any]) -> list[Any]:
        if value.dtype.kind == "O":
            return ["objects", list(value.shape), [self.describe(item) for item in value.ravel().tolist()]]
        if value.dtype.kind not in _DTYPES:
            raise MalformedError(f"it holds an array of type {value.dtype}, which a model file cannot store")
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        self.arrays.append(file.getvalue())
        return ["array", len(self.arrays) - 1]

    def _describe_object(self, value: Any) -> list[Any]:
        own: type = type(value)
        if CLASSES.get(own.__name__) is own:
            names = vars(value) if issubclass(own, BaseEstimator) and own is not Pipeline else _required(own)
            fields = {name: getattr(value, name) for name in names if _is_field(own, name)}
            _check_fields(own, fields)
            return ["object", own.__name__, {name: self.describe(item) for name, item in fields.items()}]
        is_model = any(hasattr(value, name) for name in ("fit", "predict", "transform", "assign"))
        if not is_model or own.__module__.partition(".")[0] == "dafh":
            raise MalformedError(f"it holds a {own.__name__}, which a model file cannot store")
        self.parts.append(_write_part(value, self._trusted))
        return ["part", len(self.parts) - 1]


def _read_state(members: Mapping[str, bytes], trusted: Collection[str]) -> Any:
    """Build the model that `write_state` has described, or refuse what is none."""
    arrays = _unpack(members[_ARRAYS])
    built: list[Any] = []

    def build(described: Any) -> Any:
        value: Any
        match described:
            case None | bool() | int() | float() | str():
                return described
            case ["list", [*items]]:
                return [build(item) for item in items]
            case ["tuple", [*items]]:
                return tuple(build(item) for item in items)
            case ["mapping", [*pairs]]:
                return {build(key): build(item) for key, item in pairs}
            case ["scalar", "str", str(text)]:
                return np.str_(text)
            case ["scalar", str(dtype), bool() | int() | float() as number] if np.dtype(dtype).kind in "biuf":
                return np.dtype(dtype).type(number)
            case ["same", int(number)] if 0 <= number < len(built):
                return built[number]
            case ["array", int(number)]:
                value = _read_array(arrays[f"{number}.npy"])
            case ["objects", [*shape], [*items]]:
                value = np.empty(len(items), dtype=object)
                value[:] = [build(item) for item in items]
                value = value.reshape([size for size in shape if size >= 0])
            case ["object", str(name), dict(fields)]:
                if name not in CLASSES:
                    raise MalformedError(f"{clipped(name, 40)!r} is not a class that this version of dafh knows")
                value = _build_object(CLASSES[name], {field: build(item) for field, item in fields.items()})
            case ["part", int(number)]:
                value = _read_part(members[f"{number}.skops"], trusted)
            case _:
                raise MalformedError("it is malformed: it holds something that is not there, or of no kind")
        built.append(value)
        return value

    return build(msgspec.msgpack.decode(members[_VALUES]))


def _read_array(content: bytes) -> NDArray[Any]:
    """Read an array that is as large as the bytes there are, whatever its header says."""
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise MalformedError("an array is of another format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.kind not in _DTYPES or math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise MalformedError("an array is of another type or size than it says")
    file.seek(0)
    array: NDArray[Any] = np.load(file, allow_pickle=False)
    return array


def _build_object(own: type, fields: dict[str, Any]) -> Any:
    """Build an object from all its fields."""
    _check_fields(own, fields)
    if not issubclass(own, BaseEstimator) and not dataclasses.is_dataclass(own):
        value: Any = object.__new__(own)
    else:
        value = own(**{name: fields.pop(name) for name in _required(own)})
    for name, item in fields.items():
        setattr(value, name, item)
    if hasattr(own, "_constraints"):
        check_parameters(value, own._constraints)
    return value


@functools.cache
def _annotations(own: type) -> dict[str, Any]:
    """Types of the attributes that a class annotates, without those that belong to the class itself."""
    return {name: kind for name, kind in get_type_hints(own).items() if not str(kind).startswith("typing.ClassVar")}


@functools.cache
def _required(own: type) -> tuple[str, ...]:
    """Fields that every object of a class has."""
    if own is Pipeline:
        return ("steps",)
    if dataclasses.is_dataclass(own):
        return tuple(field.name for field in dataclasses.fields(own))
    return tuple(inspect.signature(own).parameters if issubclass(own, BaseEstimator) else _annotations(own))


def _is_field(own: type, name: str) -> bool:
    """Whether an object has a field of this name in its file: required, or set by `fit`."""
    if name in _required(own):
        return True
    # `_metadata_request` remembers `set_fit_request`, and is not fitted. What hides a method or a property is no field.
    visible = not name.startswith("__") and (name.startswith("_") or name.endswith("_")) and name != "_metadata_request"
    is_estimator = issubclass(own, BaseEstimator) and own is not Pipeline
    return is_estimator and visible and not hasattr(inspect.getattr_static(own, name, None), "__get__")


def _check_fields(own: type, fields: Mapping[str, Any]) -> None:
    """Refuse fields that a class does not have, fields that are missing, and values of another type."""
    missing = set(_required(own)) - set(fields)
    unknown = {name for name in fields if not _is_field(own, name)}
    for names, what in ((missing, "lacks"), (unknown, "has no field")):
        if names:
            raise MalformedError(f"{own.__name__} {what} {clipped(min(names), 40)!r}")
    for name, item in fields.items():
        kind = list[tuple[str, Any]] if own is Pipeline else _annotations(own).get(name, Any)
        # Parameters of estimators are checked by their constraints, which say more than an annotation.
        is_parameter = issubclass(own, BaseEstimator) and own is not Pipeline and name in _required(own)
        if not is_parameter and not _fits(item, kind):
            raise MalformedError(f"the field {name!r} of {own.__name__} is a {type(item).__name__}")


_NUMBERS: dict[Any, tuple[type, ...]] = {
    float: (int, float, np.integer, np.floating),
    int: (int, np.integer),
    bool: (bool, np.bool_),
}


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of an annotated type. Arrays are not asked for their type, which annotations have in part."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if kind in _NUMBERS:
        return isinstance(value, _NUMBERS[kind]) and (kind is bool or not isinstance(value, bool))
    if origin in (Union, types.UnionType):
        return any(_fits(value, alternative) for alternative in inner)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in inner)
    if origin is tuple and isinstance(value, tuple):
        kinds: Iterable[Any] = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return len(list(kinds)) == len(value) and all(map(_fits, value, kinds))
    if origin is list and isinstance(value, list):
        return all(_fits(item, inner[0]) for item in value)
    if origin is dict and isinstance(value, dict):
        return all(_fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items())
    try:
        return isinstance(value, origin or kind)
    except TypeError:  # A protocol that can only be checked before the program runs, or a type that is not a class.
        return True


# ---- parts of other libraries ----


def _write_part(value: object, trusted: Collection[str]) -> bytes:
    """Write an estimator of another library, if the writer names all its types that skops does not trust."""
    import skops.io

    try:
        content: bytes = skops.io.dumps(value)
        missing = sorted({*skops.io.get_untrusted_types(data=content)} - {*trusted})
    except Exception as error:  # In any way that a class of any library fails.
        raise InputError(f"{type(value).__name__} cannot be written without pickle: {_short(error)}.") from error
    if missing:
        raise InputError(
            f"{type(value).__name__} holds types that are not trusted unasked: name them, "
            f"save(..., trusted={missing!r}), and load the file with the same list."
        )
    return content


def _read_part(content: bytes, trusted: Collection[str]) -> Any:
    """Build an estimator of another library, if the reader trusts all its types."""
    import skops.io

    _unpack(content)  # For its limits.
    types_of_part = skops.io.get_untrusted_types(data=content)
    missing = sorted({*types_of_part} - {*trusted})
    if missing:
        named = clipped(", ".join(missing[:5]), 200)
        raise MalformedError(f"it holds types that are built only if load(..., trusted=[...]) names them: {named}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # Said once for the whole file.
        return skops.io.loads(content, trusted=types_of_part)
