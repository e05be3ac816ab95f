"""Bins of columns, and how a model sees a table: parts of parts, read together with the columns they belong to."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from dafh.linear.scorecard import Scorecard
from dafh.models.container import Json, MalformedError
from dafh.models.description import Fields, NotPlainError, Writer
from dafh.models.encoder_kind import LARGEST_NUMBER, read_kinds
from dafh.models.values import HasColumns, read_names
from dafh.rows.seen import TableView
from dafh.tables.bins import Binning
from dafh.tables.column import Column
from dafh.tables.encoder import TableEncoder

_MOST_BINS = 256
"""The bin of a row is a byte."""
_FARTHEST_DAY = 1e13
"""From 1970; farther ones cannot be written as dates."""
_POOLED = "pooled"
"""In place of an encoder or of bins: those of the pooled classifier, the same object."""


# ---- bins ----


def write_binning(binning: Binning, writer: Writer) -> Json:
    """Describe the bins of all columns; cuts of all columns in one array, because a wide table has very many."""
    numbers = [column for column in binning.columns if not column.is_category]
    categories = [column for column in binning.columns if column.is_category]
    return {
        "column_names": writer.column_names([column.name for column in binning.columns]),
        "kinds": [column.kind for column in binning.columns],
        "categories": [list(column.categories) for column in categories],
        "has_other": writer.array(np.array([column.has_other for column in categories], bool)),
        "n_cuts": writer.array(np.array([len(column.cuts) for column in numbers], np.int64)),
        "cuts": writer.array(np.array([cut for column in numbers for cut in column.cuts], np.float64)),
        "centers": writer.array(np.array([center for column in numbers for center in column.centers], np.float64)),
        "has_gaps": writer.array(np.array([column.has_gaps for column in numbers], bool)),
    }


def read_binning(fields: Fields, name: str, model: HasColumns) -> Binning:
    """Return the bins of the columns that a model takes."""
    inner = fields.fields(name)
    names = read_names(inner, model.n_features_in_)
    # Rules name the columns they ask about; with other names they would say one thing and do another.
    if list(getattr(model, "feature_names_in_", names)) != list(names):
        raise inner.refuse("column_names", "does not name the columns of the model")
    kinds = read_kinds(inner, len(names))
    named = list(zip(names, kinds, strict=True))
    # Both in the order of the columns, each column in one of them.
    of_categories = iter(_read_categories(inner, [name for name, kind in named if kind == "category"]))
    of_numbers = iter(_read_numbers(inner, [pair for pair in named if pair[1] != "category"]))
    inner.close()
    columns = [next(of_categories) if kind == "category" else next(of_numbers) for kind in kinds]
    return Binning(tuple(columns))


def _read_categories(fields: Fields, names: list[str]) -> list[Column]:
    described = fields.items("categories")
    if len(described) != len(names):
        raise fields.refuse("categories", "does not fit its columns")
    has_other = fields.flags("has_other", len(names)).tolist()
    columns = []
    for name, value, other in zip(names, described, has_other, strict=True):
        texts = Fields({"categories": value}, f"a column of {fields.where}", fields.reader).texts("categories")
        column = Column(name, "category", categories=tuple(texts), has_other=other)
        if len(set(texts)) < len(texts):
            raise fields.refuse("categories", "holds a category twice")
        if column.n_bins > _MOST_BINS:
            raise fields.refuse("categories", f"has more than {_MOST_BINS} bins")
        columns.append(column)
    return columns


def _read_numbers(fields: Fields, columns: list[tuple[str, str]]) -> list[Column]:
    # A bin beyond the last cut, and one for gaps.
    n_cuts = fields.wholes("n_cuts", len(columns), least=0, most=_MOST_BINS - 2)
    cuts = fields.floats("cuts", int(n_cuts.sum()), most=LARGEST_NUMBER)
    centers = fields.floats("centers", len(cuts) + len(columns), most=LARGEST_NUMBER)
    # Made only now: as long as the cuts that are there, and not as those that a file says it has.
    owner = np.repeat(np.arange(len(columns)), n_cuts)
    if not (np.diff(cuts) > 0)[np.diff(owner) == 0].all():
        raise fields.refuse("cuts", "is not ascending")
    is_date = np.array([Column("", kind).is_date for _, kind in columns], bool)
    if np.abs(cuts[is_date[owner]]).max(initial=0) > _FARTHEST_DAY:
        raise fields.refuse("cuts", "holds days that no calendar has")
    has_gaps = fields.flags("has_gaps", len(columns)).tolist()
    ends = np.concatenate([[0], np.cumsum(n_cuts)]).tolist()
    all_cuts, all_centers = cuts.tolist(), centers.tolist()
    return [
        # One center more than cuts in each column before this one.
        Column(name, kind, tuple(all_cuts[a:b]), tuple(all_centers[a + place : b + place + 1]), gaps)
        for place, ((name, kind), (a, b), gaps) in enumerate(zip(columns, pairwise(ends), has_gaps, strict=True))
    ]


def split_by_bins(values: NDArray[Any], binning: Binning, axis: int = 0) -> list[NDArray[Any]]:
    """Take apart by column what stands in one array, bins of all columns one after the other."""
    parts = np.split(values, np.cumsum(binning.n_bins)[:-1], axis=axis)
    return [np.ascontiguousarray(part) for part in parts]


# ---- views of tables ----


def write_view(view: TableView, pooled: Any, writer: Writer) -> Json:
    """Describe how tables are seen; what the pooled classifier has as well is written with that, and once."""
    encoder: Json = None
    if view.encoder is not None:
        shared = view.encoder is _encoder_of(pooled)
        encoder = _POOLED if shared else writer.part(view.encoder, "transformer")
    binning: Json = None
    if view.binning is not None:
        binning = _POOLED if view.binning is _binning_of(pooled) else write_binning(view.binning, writer)
    return {"encoder": encoder, "binning": binning}


def read_view(fields: Fields, name: str, model: Any) -> TableView:
    """Return how a model with columns and a pooled classifier sees tables.

    What it shares with the pooled classifier is the same object again: predictions look at rows once because of that.
    """
    inner = fields.fields(name)
    encoder: TableEncoder | None = None
    if inner.has("encoder"):
        described = inner.take("encoder")
        encoder = _encoder_of(model.pooled_) if described == _POOLED else inner.reader.part(described, "transformer")
        if type(encoder) is not TableEncoder:
            raise inner.refuse("encoder", "is not an encoder of tables")
        names = encoder.feature_names_in_
        if len(names) != model.n_features_in_ or list(getattr(model, "feature_names_in_", names)) != list(names):
            raise inner.refuse("encoder", "takes other columns than the model")
    binning: Binning | None = None
    if inner.has("binning"):
        described = inner.take("binning")
        if described == _POOLED:
            binning = _binning_of(model.pooled_)
            if binning is None or not _same_columns(model, model.pooled_):
                raise inner.refuse("binning", "is not that of a scorecard for the same columns")
        else:
            binning = read_binning(Fields({"binning": described}, inner.where, inner.reader), "binning", model)
    inner.close()
    # Without names there is nothing beside the features.
    columns = None if model._aside is None else getattr(model, "feature_names_in_", None)
    return TableView(encoder, binning, columns=columns)


def _encoder_of(pooled: Any) -> TableEncoder | None:
    """The encoder before a pooled classifier, if there is nothing between the two."""
    if type(pooled) is Pipeline and len(pooled.steps) == 2 and type(pooled.steps[0][1]) is TableEncoder:
        return pooled.steps[0][1]
    return None


def _binning_of(pooled: Any) -> Binning | None:
    return pooled.binning_ if type(pooled) is Scorecard else None


def _same_columns(model: Any, other: Any) -> bool:
    """Whether two take the same columns; one that was fitted on an array knows no names."""
    known = [list(one.feature_names_in_) for one in (model, other) if hasattr(one, "feature_names_in_")]
    return bool(model.n_features_in_ == other.n_features_in_) and known[1:] in ([], known[:1])


def n_numbers(view: TableView, n_columns: int) -> int:
    """Return the number of columns of a table as numbers."""
    return n_columns if view.encoder is None else len(view.encoder.get_feature_names_out())


def check_same_binning(view: TableView, binning: Binning) -> None:
    """Refuse to write rules about other bins than those of the view, which they get back from a file."""
    if view.binning is not binning:
        raise NotPlainError("its rules are about other bins than those it looks at")


def bins_of(view: TableView) -> Binning:
    """Return the bins of a view; what is about bins needs some."""
    if view.binning is None:
        raise MalformedError("its rules are about bins that are not there")
    return view.binning
