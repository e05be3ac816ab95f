"""Fitted models as plain values and arrays, and back.

A model is a list of nodes, each of which refers only to nodes before it: lists, tuples, mappings, arrays, and objects,
which are the name of a class and its fields. So an object that is used in several places is written once and comes back
as one object, and no file can describe a cycle. msgspec checks the types of the nodes while it reads them. A class is
looked up in `CLASSES` and nowhere else, and its fields must be those that the class has.

What is written of an object:

- a data class: all its fields, checked against their annotations;
- an estimator: its parameters, and what `fit` has set, which begins or ends with an underscore;
- a pipeline: its steps. Its `memory` names a folder of pickles, which no file may choose;
- any other class of `CLASSES`: the attributes that the class annotates.

Estimators of other libraries are stored as skops writes them, and are built only if the reader trusts their types.
"""

import dataclasses
import functools
import inspect
import io
import math
import types
import warnings
import zipfile
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline

from dafh.columns.bins import Binning
from dafh.columns.column import Column
from dafh.columns.encoder import Scale, TableEncoder, TableReader
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.decoupled import DecoupledClassifier
from dafh.evaluation.guard_report import GuardReport
from dafh.evaluation.losses import Costs, Loss
from dafh.exceptions import InputError
from dafh.frames import PlainTable
from dafh.groups.corrections import LinearCorrections, PointCorrections
from dafh.groups.recipe import Recipe
from dafh.groups.summary import ExceptionSummary
from dafh.groups.trained import ExceptionModel, NetworkModel
from dafh.incumbents import Incumbent, IncumbentColumns, LabelShares, ScoreCurve
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.scorecard import Scaling, Scorecard
from dafh.partitions import (
    ClusterPartition,
    IntersectionPartition,
    PooledPartition,
)
from dafh.regions.conditions import Condition, Region
from dafh.rows import TableEncoding
from dafh.text import clipped
from dafh.validation import check_parameters

CLASSES: dict[str, type] = {
    own.__name__: own
    for own in (
        # Estimators, and what stands before them
        DAFHClassifier,
        DecoupledClassifier,
        Pipeline,
        Recipe,
        Scaling,
        Scorecard,
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

MOST_MEMBERS = 100_000
"""Members of an archive."""
_DTYPES = "biufUMm"
"""Kinds of arrays that a file may hold: numbers, truth values, text and dates."""
_ROUTING = "_metadata_request"
"""What scikit-learn remembers of `set_fit_request`: an object of its own, and nothing that was fitted."""


class MalformedError(ValueError):
    """Why a file is refused, or a model not written, as the second half of a sentence."""


# ---- nodes ----


class Ref(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A node before this one."""

    node: int


Value = None | bool | int | float | str | Ref


class _Node(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Base of all nodes."""


class ListNode(_Node, tag="list"):
    """A list."""

    items: list[Value]


class TupleNode(_Node, tag="tuple"):
    """A tuple."""

    items: list[Value]


class MappingNode(_Node, tag="mapping"):
    """A dictionary, by its keys and values."""

    keys: list[Value]
    values: list[Value]


class ScalarNode(_Node, tag="scalar"):
    """A scalar of NumPy."""

    dtype: Literal[
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "str"
    ]
    value: bool | int | float | str


class ArrayNode(_Node, tag="array"):
    """An array, by its number among those of the file."""

    number: int


class ObjectsNode(_Node, tag="objects"):
    """An array of plain values, such as names of columns."""

    shape: list[int]
    items: list[Value]


class ObjectNode(_Node, tag="object"):
    """An object of a class of `CLASSES`."""

    name: str
    fields: dict[str, Value]


class PartNode(_Node, tag="part"):
    """An estimator of another library, by its number among those of the file."""

    number: int
    name: str


AnyNode = ListNode | TupleNode | MappingNode | ScalarNode | ArrayNode | ObjectsNode | ObjectNode | PartNode


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All nodes of a model; the last one is the model."""

    nodes: list[AnyNode]


@dataclasses.dataclass(frozen=True)
class State:
    """A model as members of a file."""

    values: bytes
    """The nodes, as MessagePack: unlike JSON it has numbers that are not finite."""
    arrays: bytes
    """A .npz file."""
    parts: tuple[bytes, ...] = ()
    """Estimators of other libraries, as skops writes them."""


# ---- writing ----


def write_state(model: object, trusted: Collection[str] = ()) -> State:
    """Describe a model by plain values and arrays; `trusted` as in `save`."""
    writer = _Writer(trusted)
    writer.write(model)
    try:
        values = msgspec.msgpack.encode(Document(writer.nodes))
    except (OverflowError, UnicodeEncodeError) as error:
        raise MalformedError(f"it holds a number or a text that cannot be stored ({clipped(error, 80)})") from error
    return State(values, pack({f"{n}.npy": content for n, content in enumerate(writer.arrays)}), tuple(writer.parts))


class _Writer:
    """Collects nodes, arrays and parts."""

    def __init__(self, trusted: Collection[str]) -> None:
        self.nodes: list[AnyNode] = []
        self.arrays: list[bytes] = []
        self.parts: list[bytes] = []
        self._trusted = trusted
        # By identity, together with the object: the identity of one that is gone may be given to another.
        self._known: dict[int, tuple[object, Ref]] = {}

    def write(self, value: Any) -> Value:
        """Return a value as it stands in a node; all but plain ones become nodes themselves."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # Whoever fits again gets another state anyway.
        if isinstance(value, pd.Index | pd.Series):
            value = value.to_numpy()
        if type(value) is list:
            return self._add(ListNode([self.write(item) for item in value]))
        if type(value) is tuple:
            return self._add(TupleNode([self.write(item) for item in value]))
        if isinstance(value, Mapping):
            keys = [self.write(key) for key in value]
            return self._add(MappingNode(keys, [self.write(item) for item in value.values()]))
        if isinstance(value, np.generic):
            return self._scalar(value)
        if id(value) not in self._known:
            self._known[id(value)] = (value, self._add(self._node(value)))
        return self._known[id(value)][1]

    def _add(self, node: AnyNode) -> Ref:
        self.nodes.append(node)
        return Ref(len(self.nodes) - 1)

    def _scalar(self, value: np.generic) -> Ref:
        name = "str" if value.dtype.kind == "U" else value.dtype.name
        if value.dtype.kind not in "biufU":
            raise MalformedError(f"it holds {clipped(repr(value))}, which is neither text nor a number")
        return self._add(ScalarNode(name, value.item()))  # type: ignore[arg-type]

    def _node(self, value: Any) -> AnyNode:
        if isinstance(value, np.ndarray):
            return self._array(value)
        if CLASSES.get(type(value).__name__) is type(value):
            fields = _fields(value)
            _check_fields(type(value), fields)
            return ObjectNode(type(value).__name__, {name: self.write(item) for name, item in fields.items()})
        is_model = any(hasattr(value, name) for name in ("fit", "predict", "transform", "assign"))
        if not is_model or type(value).__module__.partition(".")[0] == "dafh":
            raise MalformedError(f"it holds a {type(value).__name__}, which a model file cannot store")
        self.parts.append(write_part(value, self._trusted))
        return PartNode(len(self.parts) - 1, type(value).__name__)

    def _array(self, value: NDArray[Any]) -> AnyNode:
        if value.dtype.kind == "O":
            return ObjectsNode(list(value.shape), [self.write(item) for item in value.ravel().tolist()])
        if value.dtype.kind not in _DTYPES:
            raise MalformedError(f"it holds an array of type {value.dtype}, which a model file cannot store")
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        self.arrays.append(file.getvalue())
        return ArrayNode(len(self.arrays) - 1)


def _fields(value: Any) -> dict[str, Any]:
    """What is written of an object; the module says which attributes these are."""
    own: type = type(value)
    if own is Pipeline:
        return {"steps": [(name, step) for name, step in value.steps]}
    if dataclasses.is_dataclass(own):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(own)}
    if isinstance(value, BaseEstimator):
        fitted = {name: item for name, item in vars(value).items() if _is_fitted_name(own, name)}
        return value.get_params(deep=False) | fitted
    return {name: getattr(value, name) for name in _annotations(own)}


def _is_fitted_name(own: type, name: str) -> bool:
    """Whether `fit` may set an attribute of this name; one that hides a method or a property is none of them."""
    visible = not name.startswith("__") and (name.startswith("_") or name.endswith("_"))
    return visible and name != _ROUTING and not hasattr(inspect.getattr_static(own, name, None), "__get__")


# ---- reading ----


def read_state(state: State, trusted: Collection[str] = ()) -> Any:
    """Build the model that `write_state` has described, or refuse what is none (`MalformedError`)."""
    document = msgspec.msgpack.decode(state.values, type=Document)
    members = unpack(state.arrays)
    built: list[Any] = []
    for node in document.nodes:
        built.append(_build(node, built, members, state.parts, trusted))
    if not built:
        raise MalformedError("it holds no model")
    return built[-1]


def _build(
    node: AnyNode, built: list[Any], arrays: Mapping[str, bytes], parts: tuple[bytes, ...], trusted: Collection[str]
) -> Any:
    def value(given: Value) -> Any:
        if not isinstance(given, Ref):
            return given
        if not 0 <= given.node < len(built):
            raise MalformedError("it refers to something that is not there")
        return built[given.node]

    match node:
        case ListNode(items):
            return [value(item) for item in items]
        case TupleNode(items):
            return tuple(value(item) for item in items)
        case MappingNode(keys, values):
            return {value(key): value(item) for key, item in zip(keys, values, strict=True)}
        case ScalarNode(dtype, plain):
            return np.str_(plain) if dtype == "str" else np.dtype(dtype).type(plain)
        case ArrayNode(number):
            return _read_array(arrays[f"{number}.npy"])
        case ObjectsNode(shape, items):
            array = np.empty(len(items), dtype=object)
            array[:] = [value(item) for item in items]
            return array.reshape([size for size in shape if size >= 0])
        case ObjectNode(name, fields):
            if name not in CLASSES:
                raise MalformedError(f"{clipped(name, 40)!r} is not a class that this version of dafh knows")
            return _object(CLASSES[name], {name: value(item) for name, item in fields.items()})
        case PartNode(number):
            return read_part(parts[number] if number >= 0 else b"", trusted)


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


def _object(own: type, fields: dict[str, Any]) -> Any:
    """Build an object from all its fields."""
    _check_fields(own, fields)
    if own is Pipeline or (dataclasses.is_dataclass(own) and not issubclass(own, BaseEstimator)):
        return own(**fields)
    built = (
        own(**{name: fields.pop(name) for name in _parameters(own)})
        if issubclass(own, BaseEstimator)
        else object.__new__(own)
    )
    for name, item in fields.items():
        setattr(built, name, item)
    if hasattr(own, "_constraints"):
        check_parameters(built, own._constraints)
    return built


# ---- fields of classes ----


@functools.cache
def _parameters(own: type) -> tuple[str, ...]:
    return tuple(inspect.signature(own).parameters)


@functools.cache
def _annotations(own: type) -> dict[str, Any]:
    """Types of the attributes that a class annotates, without those that belong to the class itself."""
    return {name: kind for name, kind in get_type_hints(own).items() if not str(kind).startswith("typing.ClassVar")}


def _check_fields(own: type, fields: Mapping[str, Any]) -> None:
    """Refuse fields that a class does not have, fields that are missing, and values of another type."""
    optional: Iterable[str] = ()
    if own is Pipeline:
        required: Iterable[str] = ("steps",)
    elif dataclasses.is_dataclass(own):
        required = [field.name for field in dataclasses.fields(own)]
    elif issubclass(own, BaseEstimator):
        required = _parameters(own)
        optional = [name for name in fields if _is_fitted_name(own, name)]
    else:
        required = _annotations(own)
    missing, unknown = set(required) - set(fields), set(fields) - {*required, *optional}
    for names, what in ((missing, "lacks"), (unknown, "has no field")):
        if names:
            raise MalformedError(f"{own.__name__} {what} {clipped(min(names), 40)!r}")
    kinds = {"steps": list[tuple[str, Any]]} if own is Pipeline else _annotations(own)
    for name, item in fields.items():
        # Parameters of estimators are checked by their constraints, which say more than an annotation.
        checked = not issubclass(own, BaseEstimator) or own is Pipeline or name not in _parameters(own)
        if checked and not _fits(item, kinds.get(name, Any)):
            raise MalformedError(f"the field {name!r} of {own.__name__} is a {type(item).__name__}")


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of an annotated type. Arrays are not asked for their type, which annotations have in part."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin is tuple and isinstance(value, tuple):
        kinds = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return len(kinds) == len(value) and all(map(_fits, value, kinds))
    if origin is list and isinstance(value, list):
        return all(_fits(item, inner[0]) for item in value)
    if origin is dict and isinstance(value, dict):
        return all(_fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items())
    if kind is float:
        return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    try:
        return isinstance(value, origin or kind)
    except TypeError:  # A protocol that can only be checked before the program runs, or a type that is not a class.
        return True


# ---- parts of other libraries ----


def write_part(value: object, trusted: Collection[str]) -> bytes:
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


def read_part(content: bytes, trusted: Collection[str]) -> Any:
    """Build an estimator of another library, if the reader trusts all its types."""
    import skops.io

    unpack(content)  # For its limits.
    types_of_part = skops.io.get_untrusted_types(data=content)
    missing = sorted({*types_of_part} - {*trusted})
    if missing:
        named = clipped(", ".join(missing[:5]), 200)
        raise MalformedError(f"it holds types that are built only if load(..., trusted=[...]) names them: {named}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)  # Said once for the whole file.
            return skops.io.loads(content, trusted=types_of_part)
    except Exception as error:  # In any way that a class of any library fails.
        raise MalformedError(f"a part of it cannot be built ({_short(error)})") from error


def _short(error: BaseException) -> str:
    return clipped(" ".join(str(error).split()) or type(error).__name__, 150).rstrip(".")


# ---- archives ----


def pack(members: Mapping[str, bytes]) -> bytes:
    """Put members into an archive: without compression, and with the same bytes for the same members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def unpack(content: bytes) -> dict[str, bytes]:
    """Take the members out of an archive that unpacks to no more than it holds."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        packed = any(m.compress_type != zipfile.ZIP_STORED or m.file_size != m.compress_size for m in members)
        if packed or sum(member.file_size for member in members) > len(content):
            raise MalformedError("it would unpack to more than it holds")
        if len(members) > MOST_MEMBERS or len({member.filename for member in members}) < len(members):
            raise MalformedError("it has too many members, or two of the same name")
        return {member.filename: archive.read(member) for member in members}
