"""Model files that can be handed to someone who does not trust you: no pickle, nothing in them is ever run.

A file is a zip without compression, with the members

- ``card.json``: what the file says of its model, readable without building it;
- ``model.msgpack``: the model as plain values;
- ``0.npy``, ``1.npy``, ...: its arrays, so that `numpy.load` reads the file, too;
- ``0.skops``, ``1.skops``, ...: parts of other libraries, if it has any.

The comment of the zip has the number of the format, and the SHA-256 of everything before it. The checksum finds damage
and not forgery, because whoever forges a file can compute it too. Members are therefore read as if they came from an
attacker, who gains nothing but a model that predicts what they like.

Plain values stand for themselves in ``model.msgpack``; anything else is a list that begins with its kind, such as
``["tuple", items]`` or ``["object", class, fields]``. A class is looked up in `CLASSES` and nowhere else. An object is
built from the fields of a data class, from the parameters of an estimator and what `fit` has set, or from the steps of
a pipeline; its fields are checked against the annotations of its class.

A field that is added to a class needs no change here. A new class that a fitted model may hold is one line in
`CLASSES`. What changes the meaning of an older file raises `FORMAT`.
"""

import hashlib
import inspect
import io
import platform
import re
import types
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
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
from dafh.incumbents import Incumbent, IncumbentColumns
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.scorecard import Scaling, Scorecard
from dafh.partitions import ClusterPartition, IntersectionPartition, PooledPartition
from dafh.regions.conditions import Condition, Region
from dafh.rows import TableEncoding
from dafh.storage import replacing
from dafh.text import clipped, plain
from dafh.validation import check_parameters, check_path

FORMAT = 8
"""Formats before were written before the first release, and are no longer read."""
_COMMENT = re.compile(rb"dafh model (\d{4}) ([0-9a-f]{64})")
_COMMENT_LENGTH = 80
_LARGEST_FILE = 2**30
# Bytes of the plain values of a model, and of its card: as Python objects they take many times as much.
_LARGEST_VALUES = 2**26
_CARD, _VALUES = "card.json", "model.msgpack"
_MODELS = (DAFHClassifier, DecoupledClassifier, Scorecard)

CLASSES: dict[str, type] = {
    listed.__name__: listed
    for listed in (
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
        card = msgspec.json.encode(make_card(model, details or {}))
        _decode_card(card)  # Commands must be able to read what `details` add.
        members = {_CARD: card, **write_state(model, trusted)}
        too_large = sum(map(len, members.values())) > _LARGEST_FILE
        if too_large or max(len(members[_CARD]), len(members[_VALUES])) > _LARGEST_VALUES:
            raise MalformedError("it is too large for a model file")
    except (MalformedError, OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise InputError(f"This model cannot be saved: {clipped(error, 300)}.") from error
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, member in members.items():
            archive.writestr(zipfile.ZipInfo(name), member)  # Without the time: the same model gives the same bytes.
    # The length of the comment is the last number of the archive, and part of what the checksum is about.
    content = file.getvalue()[:-2] + _COMMENT_LENGTH.to_bytes(2, "little")
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
    dafh.exceptions.InputError: ...model.dafh cannot be read: it is not a dafh model file, or was cut short.
    """
    return open_model(path, trusted=trusted)[0]


def open_model(path: str | Path, *, trusted: Sequence[str] = ()) -> tuple[Any, dict[str, Any]]:
    """Read a model together with its card; parameters are those of `load`."""
    with _refusing(path):
        members = _read_members(path)
        card = _decode_card(members[_CARD])
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
    with _refusing(path):
        return _decode_card(_read_members(path)[_CARD])


@contextmanager
def _refusing(path: str | Path) -> Iterator[None]:
    """Turn everything that goes wrong with a file from anywhere into an InputError of one sentence."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"There is no model file {path}.") from error
    except Exception as error:  # Whatever a crafted file makes of the libraries and classes that it passes through.
        reason = f"it is malformed ({type(error).__name__}: {clipped(error, 120).rstrip('. ')})"
        if isinstance(error, MalformedError | OSError):
            reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path} cannot be read: {reason}.") from error


def _read_members(path: str | Path) -> dict[str, bytes]:
    """Check size, format and checksum of a file, and return its members; the model is not built."""
    file = check_path(path)
    if file.stat().st_size > _LARGEST_FILE:
        raise MalformedError("it is too large for a model file")
    content = file.read_bytes()
    comment = _COMMENT.fullmatch(content[-_COMMENT_LENGTH:])
    if comment is None:
        raise MalformedError("it is not a dafh model file, or was cut short")
    if hashlib.sha256(content[:-_COMMENT_LENGTH]).hexdigest().encode() != comment[2]:
        raise MalformedError("checksum mismatch: its content has changed since it was written")
    if int(comment[1]) != FORMAT:
        way_out = "upgrade to read it" if int(comment[1]) > FORMAT else "fit and save the model again"
        raise MalformedError(f"it was written by another version of dafh: {way_out}")
    members = _unpack(content)
    if max(len(members[_CARD]), len(members[_VALUES])) > _LARGEST_VALUES:
        raise MalformedError("it is too large for a model file")
    return members


def _unpack(content: bytes) -> dict[str, bytes]:
    """Take the members out of an archive that unpacks to no more than it holds."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        if packed or sum(member.file_size for member in members) > len(content):
            raise MalformedError("it would unpack to more than it holds")
        return {member.filename: archive.read(member) for member in members}


# ---- the card: what a file says of its model in plain words ----


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
    columns: list[dict[Literal["name", "type"], str]]
    losses: list[LossName]
    exceptions: list[dict[str, str | float | None]] | None = None
    threshold: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    guard: dict[str, Any] | None = None
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
    defaults = type(final)().get_params(deep=False)
    settings = {
        name: value
        for name, value in final.get_params(deep=False).items()
        if repr(value) != repr(defaults[name]) and name != "verbose"
    }
    about_model: dict[str, Any] = {
        "dafh": dafh.__version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("scikit-learn", "numpy", "scipy", "skops")},
        "model": type(final).__name__,
        "settings": settings,
        "labels": final.classes_,
        "columns": _columns(model, details),
        # Unknown for classifiers of any kind, and for several classes.
        "threshold": float(final.threshold_) if len(final.classes_) == 2 and hasattr(final, "threshold_") else None,
        **_describe_groups(final),
    }
    if repeated := [name for name in details if name in about_model]:
        raise InputError(f"details may not hold {repeated[0]!r}, which the model card says itself: use another name.")
    card: dict[str, Any] = plain({**about_model, **details})
    return card


def _describe_groups(final: Any) -> dict[str, Any]:
    """Entries of a card about groups and who serves them."""
    if isinstance(final, Scorecard):  # It serves all rows alone, and there is nothing to guard.
        groups: dict[str, Any] = {"groups": 1, "groups_by": "nothing", "served_by": ["pooled"]}
        return {**groups, "pooled": "Scorecard", "losses": [], "exceptions": None, "guard": None}
    report, summary, pooled = final.guard_report_, getattr(final, "exceptions_", None), final.pooled_
    if isinstance(pooled, IncumbentColumns):
        pooled_name = f"read from {' and '.join(pooled.only)}"
    else:  # Named as people know it: not by its wrapper, nor by the encoder before it.
        pooled_name = type(final_classifier(pooled.model if isinstance(pooled, Incumbent) else pooled)).__name__
    exceptions = guard = None
    if summary is not None:
        servers = [summary.server(group) for group in range(summary.n_groups)]
        exceptions = summary.to_frame().assign(served_by=servers, loss=summary.loss).to_dict("records")
    if report is not None:
        tables = {"table": report.table.reset_index(), "checks": report.checks}
        guard = {"summary": report.sentence()} | {name: table.to_dict("records") for name, table in tables.items()}
    return {
        "groups": final.n_groups_,
        "groups_by": final.method_ if isinstance(final, DAFHClassifier) else type(final.partition_).__name__,
        "served_by": ["pooled" if server == final.n_groups_ else server for server in final.serves_.tolist()],
        "pooled": pooled_name,
        "losses": [loss.name for loss in final.losses_],
        "exceptions": exceptions,
        "guard": guard,
    }


def _columns(model: Any, details: Mapping[str, Any]) -> list[dict[str, str]]:
    """Names and types of the columns that the model takes."""
    schema = details.get("schema")
    if isinstance(schema, Mapping) and isinstance(schema.get("features"), Mapping):
        return [{"name": name, "type": kind} for name, kind in schema["features"].items()]
    first = model[0] if isinstance(model, Pipeline) else model
    names = getattr(first, "feature_names_in_", [f"column {i}" for i in range(first.n_features_in_)])
    kinds = ["number"] * first.n_features_in_
    if isinstance(first, TableReader):
        kinds = list(first.columns_.values())
    elif isinstance(first, DAFHClassifier | Scorecard):
        binning = first.binning_ if isinstance(first, Scorecard) else first._encoding.binning
        kinds = kinds if binning is None else [column.kind for column in binning.columns]
    return [{"name": str(name), "type": kind} for name, kind in zip(names, kinds, strict=True)]


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
    members: dict[str, bytes] = {}
    # An object that is used in several places is written once, and comes back as one. By identity, together with the
    # object: the identity of one that is gone may be given to another.
    numbers: dict[int, tuple[object, int]] = {}

    def add_member(kind: str, ending: str, content: bytes) -> list[Any]:
        number = sum(name.endswith(ending) for name in members)
        members[f"{number}{ending}"] = content
        return [kind, number]

    def describe_object(value: Any) -> list[Any]:
        value_class = type(value)
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
            file = io.BytesIO()
            np.save(file, value, allow_pickle=False)
            return add_member("array", ".npy", file.getvalue())
        if isinstance(value, np.ndarray):
            return ["objects", list(value.shape), [describe(item) for item in value.ravel().tolist()]]
        if CLASSES.get(value_class.__name__) is value_class:
            _check_types(value)
            return ["object", value_class.__name__, {name: describe(item) for name, item in _fields(value).items()}]
        is_model = any(hasattr(value, name) for name in ("fit", "predict", "transform", "assign"))
        if not is_model or value_class.__module__.partition(".")[0] == "dafh":
            raise MalformedError(f"it holds a {value_class.__name__}, which a model file cannot store")
        return add_member("part", ".skops", _write_part(value, trusted))

    def describe(value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # Another fit starts from another state anyway.
        if type(value) in (list, tuple):
            return [type(value).__name__, [describe(item) for item in value]]
        if isinstance(value, Mapping):
            return ["mapping", [[describe(key), describe(item)] for key, item in value.items()]]
        if id(value) not in numbers:
            described = describe_object(value)
            # Numbered after what it holds, as the reader does.
            numbers[id(value)] = value, len(numbers)
            return described
        return ["same", numbers[id(value)][1]]

    # MessagePack: unlike JSON it has numbers that are not finite.
    return {_VALUES: msgspec.msgpack.encode(describe(model)), **members}


def _read_state(members: Mapping[str, bytes], trusted: Collection[str]) -> Any:
    """Build the model that `write_state` has described, or refuse what is none."""
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
            case ["same", int(number)] if 0 <= number < len(built):
                return built[number]
            case ["array", int(number)]:
                # `()` makes a scalar again of what has no dimensions, and changes nothing else.
                value = np.load(io.BytesIO(members[f"{number}.npy"]), allow_pickle=False)[()]
            case ["objects", [*shape], [*items]]:
                value = np.empty(len(items), dtype=object)
                value[:] = [build(item) for item in items]
                value = value.reshape(shape)
            case ["object", str(name), dict(fields)] if name in CLASSES:
                value = _build_object(CLASSES[name], {field: build(item) for field, item in fields.items()})
            case ["part", int(number)]:
                value = _read_part(members[f"{number}.skops"], trusted)
            case _:
                raise MalformedError("it holds a value of no kind, or of a class that this version of dafh lacks")
        built.append(value)
        return value

    return build(msgspec.msgpack.decode(members[_VALUES]))


def _parameters(value_class: type) -> Collection[str]:
    """What an object is built from. The `memory` of a pipeline names a folder of pickles, which no file may choose."""
    return ["steps"] if value_class is Pipeline else inspect.signature(value_class).parameters


def _is_fitted_attribute(value_class: type, name: str) -> bool:
    """Whether `fit` may have set it: what hides a method or a property is no attribute."""
    # `_metadata_request` remembers `set_fit_request`, and is not fitted.
    is_set_by_fit = (name.startswith("_") or name.endswith("_")) and name != "_metadata_request"
    return issubclass(value_class, BaseEstimator) and is_set_by_fit and not hasattr(value_class, name)


def _fields(value: Any) -> dict[str, Any]:
    """Fields that describe an object."""
    fields = {name: getattr(value, name) for name in _parameters(type(value))}
    return fields | {name: item for name, item in vars(value).items() if _is_fitted_attribute(type(value), name)}


def _build_object(value_class: type, fields: dict[str, Any]) -> Any:
    """Build an object from all its fields."""
    value = value_class(**{name: fields.pop(name) for name in _parameters(value_class)})
    for name, item in fields.items():
        if not _is_fitted_attribute(value_class, name):
            raise MalformedError(f"{value_class.__name__} has no field {clipped(name, 40)!r}")
        setattr(value, name, item)
    if hasattr(value_class, "_constraints"):
        check_parameters(value, value_class._constraints)
    _check_types(value)
    return value


_PLAIN_TYPES: dict[Any, Any] = {
    bool: bool | np.bool_,
    int: int | np.integer,
    float: int | float | np.integer | np.floating,
}
"""What an annotation of a plain type takes."""


def _check_types(value: Any) -> None:
    """Refuse an object whose fields are of other types than its class says."""
    for name, kind in get_type_hints(type(value)).items():
        if name in vars(value) and not _fits(vars(value)[name], kind):
            field_type = type(vars(value)[name]).__name__
            raise MalformedError(f"the field {name!r} of {type(value).__name__} is a {field_type}")


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of an annotated type; what containers and arrays hold is not looked at."""
    origin = get_origin(kind) or kind
    if origin in (Union, types.UnionType):
        return any(_fits(value, alternative) for alternative in get_args(kind))
    if origin is Literal:
        return value in get_args(kind)
    try:
        return kind is Any or isinstance(value, _PLAIN_TYPES.get(origin, origin))
    except TypeError:  # A protocol that can only be checked before the program runs.
        return True


# ---- parts of other libraries ----


def _write_part(value: object, trusted: Collection[str]) -> bytes:
    """Write an estimator of another library, if the writer names all its types that skops does not trust."""
    import skops.io

    try:
        content: bytes = skops.io.dumps(value)
        missing = sorted({*skops.io.get_untrusted_types(data=content)} - {*trusted})
    except Exception as error:  # In any way that a class of any library fails.
        reason = clipped(error, 120).rstrip(". ")
        raise InputError(f"{type(value).__name__} cannot be written without pickle: {reason}.") from error
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
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # One warning serves the whole file.
        return skops.io.loads(content, trusted=types_of_part)
