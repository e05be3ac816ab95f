"""Kinds of what stands before a classifier and takes tables: the encoder and the reader, column by column."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from dafh.classifiers.fitting import is_fitted
from dafh.models.container import Json
from dafh.models.description import MOST_COLUMNS, Fields, Kind, NotPlainError, Writer
from dafh.models.values import read_columns
from dafh.tables.column import Column
from dafh.tables.encoder import Scale, TableEncoder
from dafh.tables.reader import TableReader
from dafh.tables.values import DATE, DATE_FORMATS

LARGEST_NUMBER = 1e100
"""Larger ones are gaps to whoever reads a table."""
_SMALLEST_SCALE = 1e-150
_MOST_CATEGORIES = 250
_LONGEST_NAMES = 2**22
"""Letters of the names of all encoded columns, each of which repeats the name of its column."""
_LONGEST_FORMAT = 40
_MOST_FORMATS = 100
"""Different ones in a file: it takes 0.3 ms to check one, and a file has room for a hundred thousand."""


def _write_unfitted(step: TableEncoder | TableReader, _: Writer) -> dict[str, Json]:
    kinds = step.kinds
    said: dict[str, Json] = {
        "given_kinds": None if kinds is None else [[str(name), str(kind)] for name, kind in kinds.items()]
    }
    return {**said, "keep_given": True} if getattr(step, "keep_given", False) else said


def _read_unfitted(fields: Fields, build: type[TableEncoder] | type[TableReader]) -> Any:
    # Only a reader hands on what it was given.
    more: dict[str, Any] = {}
    if build is TableReader and fields.has("keep_given"):
        more["keep_given"] = fields.flag("keep_given")
    if not fields.has("given_kinds"):
        return build(**more)
    given = {}
    for number, pair in enumerate(fields.items("given_kinds")):
        if not isinstance(pair, list) or len(pair) != 2:
            raise fields.refuse("given_kinds")
        inner = Fields({"name": pair[0], "kind": pair[1]}, f"column {number} of {fields.where}", fields.reader)
        given[inner.text("name")] = _read_kind(inner)
    return build(given, **more)


# ---- reader ----


def _write_reader(reader: TableReader, writer: Writer) -> dict[str, Json]:
    if not is_fitted(reader):
        raise NotPlainError("not fitted")
    names, kinds = list(reader.columns_), list(reader.columns_.values())
    found = {**_write_unfitted(reader, writer), "n_columns": len(names), "column_names": writer.column_names(names)}
    return {**found, "kinds": [str(kind) for kind in kinds]}


def _read_reader(fields: Fields) -> TableReader:
    reader: TableReader = _read_unfitted(fields, TableReader)
    n_columns = read_columns(fields, reader)
    kinds = read_kinds(fields, n_columns)
    if not hasattr(reader, "feature_names_in_"):
        raise fields.refuse("column_names", "does not name all columns")
    reader.columns_ = dict(zip(reader.feature_names_in_.tolist(), kinds, strict=True))
    return reader


def read_kinds(fields: Fields, n_columns: int) -> list[str]:
    """Return the kinds of columns."""
    kinds = fields.texts("kinds", n_columns)
    for kind in dict.fromkeys(kinds):
        check_kind(kind, fields)
    return kinds


# ---- encoder ----


def _write(encoder: TableEncoder, writer: Writer) -> dict[str, Json]:
    if not is_fitted(encoder):
        raise NotPlainError("not fitted")
    return {
        **_write_unfitted(encoder, writer),
        "columns": [_write_column(column, encoder.scales_.get(column.name)) for column in encoder.columns_],
    }


def _write_column(column: Column, scale: Scale | None) -> Json:
    if scale is None:
        return {"name": column.name, "categories": list(column.categories), "has_other": bool(column.has_other)}
    return {"name": column.name, "kind": column.kind, **{name: float(value) for name, value in asdict(scale).items()}}


def _read(fields: Fields) -> TableEncoder:
    encoder: Any = _read_unfitted(fields, TableEncoder)
    found = [_read_column(fields, number, value) for number, value in enumerate(fields.items("columns"))]
    columns = [column for column, _ in found]
    names = [column.name for column in columns]
    if not 1 <= len(names) <= MOST_COLUMNS or len(set(names)) < len(names):
        raise fields.refuse("columns", "holds no column, or one twice")
    encoder.columns_ = columns
    encoder.scales_ = {column.name: scale for column, scale in found if scale is not None}
    encoder.n_features_in_ = len(names)
    encoder.feature_names_in_ = np.array(names, dtype=object)
    length = sum(
        len(column.name) * (len(column.categories) + 1) + sum(map(len, column.categories)) for column in columns
    )
    if length > _LONGEST_NAMES:
        raise fields.refuse("columns", "has names that are too long")
    return encoder


def _read_column(fields: Fields, number: int, value: Json) -> tuple[Column, Scale | None]:
    inner = Fields(value, f"column {number} of {fields.where}", fields.reader)
    name = inner.text("name")
    scale = None
    if inner.has("categories"):
        categories = inner.texts("categories")
        if len(set(categories)) < len(categories) or len(categories) > _MOST_CATEGORIES:
            raise inner.refuse("categories")
        column = Column(name, "category", categories=tuple(categories), has_other=inner.flag("has_other"))
    else:
        column = Column(name, _read_kind(inner))
        scale = Scale(
            median=inner.number("median", -LARGEST_NUMBER, LARGEST_NUMBER),
            mean=inner.number("mean", -LARGEST_NUMBER, LARGEST_NUMBER),
            deviation=inner.number("deviation", _SMALLEST_SCALE),
            gap_share=inner.number("gap_share", 0, 1),
            gap_deviation=inner.number("gap_deviation", _SMALLEST_SCALE),
        )
        if column.is_category:
            raise inner.refuse("kind")
    inner.close()
    return column, scale


def _read_kind(fields: Fields) -> str:
    return check_kind(fields.text("kind"), fields)


def check_kind(kind: str, fields: Fields) -> str:
    """Refuse what is not a kind of columns."""
    form = kind.removeprefix(DATE)
    if kind in ("number", "flag", "category") or (kind.startswith(DATE) and form in DATE_FORMATS):
        return kind
    if not kind.startswith(DATE) or len(form) > _LONGEST_FORMAT:
        raise fields.refuse("kind")
    known = fields.reader.date_formats
    if form in known:
        return kind
    if len(known) == _MOST_FORMATS:
        raise fields.refuse("kind", "is one of too many formats of dates")
    known.add(form)
    try:  # A format of the user's: pandas says whether it is one, now and not in the middle of a prediction.
        pd.to_datetime(pd.Series(["x"]), format=form, errors="coerce")
    except ValueError as error:
        raise fields.refuse("kind", "is a format that dates do not have") from error
    return kind


ENCODER_KINDS: tuple[Kind, ...] = (
    Kind("table encoder", "transformer", (TableEncoder,), _write, _read),
    Kind("table reader", "transformer", (TableReader,), _write_reader, _read_reader),
    Kind("table encoder", "unfitted", (TableEncoder,), _write_unfitted, lambda f: _read_unfitted(f, TableEncoder)),
    Kind("table reader", "unfitted", (TableReader,), _write_unfitted, lambda f: _read_unfitted(f, TableReader)),
)
