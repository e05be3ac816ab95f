"""Values that every kind of part has: labels and the cut-off between two, names of columns, and small tables."""

from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.models.container import Json, MalformedError
from dafh.models.description import LONGEST_TEXT, MOST_COLUMNS, Fields, NotPlainError, Writer

MOST_LABELS = 10_000
_LARGEST_LABELS = 2**26
"""Bytes of labels of fixed width: one long label makes all of them wide."""
_NUMBERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
_PLAIN = (str, bool, int, float)


class HasColumns(Protocol):
    """A fitted estimator, by the columns it takes."""

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]


# ---- columns of X ----


def write_columns(estimator: HasColumns, writer: Writer) -> dict[str, Json]:
    """Describe the columns that a fitted estimator takes."""
    names = getattr(estimator, "feature_names_in_", None)
    number = None if names is None else writer.column_names([str(name) for name in names])
    return {"n_columns": int(estimator.n_features_in_), "column_names": number}


def read_columns(fields: Fields, estimator: HasColumns) -> int:
    """Set the columns that an estimator takes, and return their number."""
    n_columns = fields.whole("n_columns", 1, MOST_COLUMNS)
    estimator.n_features_in_ = n_columns
    if fields.has("column_names"):
        estimator.feature_names_in_ = read_names(fields, n_columns)
    return n_columns


def read_names(fields: Fields, n_columns: int) -> NDArray[np.object_]:
    """Return the names of columns that an entry refers to."""
    names = fields.reader.names[fields.whole("column_names", 0, len(fields.reader.names) - 1)]
    if len(names) != n_columns:
        raise fields.refuse("column_names", "does not name all columns")
    return names


# ---- labels ----


def write_labels(labels: NDArray[np.generic]) -> Json:
    """Describe the classes of a classifier: texts, numbers or truth values, with the type of their array."""
    kind = {"U": "text", "O": "object"}.get(labels.dtype.kind, labels.dtype.name)
    values = labels.tolist()
    if kind not in ("text", "object", *_NUMBERS) or not all(type(value) in _PLAIN for value in values):
        raise NotPlainError(f"labels such as {values[0]!r} cannot be stored")
    return {"type": kind, "values": values}


def read_labels(fields: Fields, name: str, least: int = 2) -> NDArray[np.generic]:
    """Return the classes of a classifier, which are sorted and of one type."""
    inner = fields.fields(name)
    kind = inner.choice("type", ("text", "object", *_NUMBERS))
    values = inner.items("values", MOST_LABELS)
    inner.close()
    types = {type(value) for value in values}
    if len(values) < least or len(types) != 1 or not types <= set(_PLAIN):
        raise fields.refuse(name, "does not hold labels of one type")
    if kind == "object":
        labels: NDArray[Any] = _objects(values)
    elif kind == "text":
        labels = _fixed_width(fields, name, values)
    else:
        labels = _numbers(fields, name, values, kind)
    sorted_values = labels.tolist()
    if sorted_values != values or not all(one < other for one, other in pairwise(sorted_values)):
        raise fields.refuse(name, "does not hold sorted labels")
    return labels


def _fixed_width(fields: Fields, name: str, values: list[Json]) -> NDArray[np.generic]:
    texts = [value for value in values if isinstance(value, str)]
    width = max(map(len, texts), default=0)
    if len(texts) < len(values) or width > LONGEST_TEXT or 4 * width * len(texts) > _LARGEST_LABELS:
        raise fields.refuse(name, "holds labels that are too long or not text")
    return np.array(texts, f"<U{max(width, 1)}")


def _numbers(fields: Fields, name: str, values: list[Json], kind: str) -> NDArray[np.generic]:
    wanted = {"b": bool, "i": int, "u": int, "f": float}[np.dtype(kind).kind]
    if not all(type(value) is wanted for value in values):
        raise fields.refuse(name, "does not hold labels of one type")
    try:
        return np.array(values, kind)
    except OverflowError as error:
        raise fields.refuse(name, "holds labels that are out of range") from error


def _objects(values: list[Json] | list[str]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def read_threshold(fields: Fields, n_classes: int) -> float:
    """Return the probability above which the second of two classes is predicted."""
    threshold = fields.number("threshold", 0, 1)
    if threshold in (0, 1) or (n_classes != 2 and threshold != 0.5):
        raise fields.refuse("threshold", "is out of range")
    return threshold


# ---- plain values of attributes ----


def write_plain(values: object) -> Json:
    """Describe a list of values of sensitive attributes, which may be of several types."""
    found = [value.item() if isinstance(value, np.generic) else value for value in values]  # type: ignore[attr-defined]
    strange = [value for value in found if type(value) not in _PLAIN or value != value]
    if strange:
        raise NotPlainError(f"an attribute has the value {strange[0]!r}, which is neither text nor a number")
    return found


def read_plain(fields: Fields, name: str) -> NDArray[np.object_]:
    """Return a list of values of sensitive attributes."""
    values = fields.items(name)
    if not all(type(value) in _PLAIN for value in values):
        raise fields.refuse(name, "holds values that are neither text nor numbers")
    return _objects(values)


# ---- tables ----


def write_table(table: pd.DataFrame, writer: Writer) -> Json:
    """Describe a data frame of numbers, truth values and texts."""
    columns: list[Json] = [[str(name), _write_column(column.to_numpy(), writer)] for name, column in table.items()]
    index_name = None if table.index.name is None else str(table.index.name)
    return {"columns": columns, "index": _write_column(table.index.to_numpy(), writer), "index_name": index_name}


def read_table(fields: Fields, name: str) -> pd.DataFrame:
    """Return a data frame; all columns are of one length."""
    inner = fields.fields(name)
    index = _read_column(inner, inner.take("index"))
    columns = {}
    for entry in inner.items("columns", 1000):
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str) or entry[0] in columns:
            raise fields.refuse(name)
        columns[entry[0]] = _read_column(inner, entry[1])
    if any(len(column) != len(index) for column in columns.values()):
        raise fields.refuse(name, "has columns of different lengths")
    index_name = inner.text("index_name") if inner.has("index_name") else None
    inner.close()
    return pd.DataFrame(columns, index=pd.Index(index, name=index_name))


def _write_column(values: NDArray[np.generic], writer: Writer) -> Json:
    if values.dtype.kind in "fiub" and values.dtype != np.uint8:
        return {"array": writer.array(values)}
    return {"texts": [None if value is None else str(value) for value in values.tolist()]}


def _read_column(fields: Fields, value: Json) -> list[str | None] | NDArray[np.generic]:
    column = Fields(value, f"a column of {fields.where}", fields.reader)
    if column.has("array"):
        found: list[str | None] | NDArray[np.generic] = column.any_array("array")
    else:
        texts = column.items("texts")
        found = [text for text in texts if text is None or isinstance(text, str)]
        if len(found) < len(texts):
            raise MalformedError(f"{column.where} is malformed")
    column.close()
    return found
