"""Data frames of any library as typed pandas frames, for estimators that take tables themselves."""

from collections.abc import Mapping
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.tables.bins import named_table
from dafh.tables.column import Column
from dafh.tables.values import kind_of
from dafh.text import clipped, quoted

_GIVEN = "\0given "
"""Before the names of columns as they came; no column of a file has it."""


class TableReader(TransformerMixin, BaseEstimator):
    """Read the columns of a data frame as what they held in `fit`: numbers, dates, flags or categories.

    Numbers come out as floats, dates as dates, flags as booleans and categories as text, or as a categorical column of
    text where they came as one; a missing value stays missing.
    Nothing but the kind of each column is learned. Columns may come in any order, and new ones are left out.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        Kind of columns by name: "number", "flag", "category", or "date" with a format, as in a table's schema. Of
        columns that are not named the type decides, in `fit` and once: text is categories, whatever it looks like.
    keep_given : bool, default=False
        Whether to hand on all columns as they came, too, under names that no table has: for a fitted model behind this
        step that was fitted on such rows (`as_given` takes them out again).

    Attributes
    ----------
    columns_ : dict of str to str
        Name and kind of each column.

    Examples
    --------
    >>> reader = TableReader({"day": "date %d.%m.%Y"})
    >>> reader.fit(pd.DataFrame({"day": ["31.12.2020", None], "zip": ["01", "2"]})).columns_
    {'day': 'date %d.%m.%Y', 'zip': 'category'}
    >>> reader.transform(pd.DataFrame({"zip": [2], "day": ["1.1.2021"]})).to_dict("list")
    {'day': [Timestamp('2021-01-01 00:00:00')], 'zip': ['2']}
    """

    def __init__(self, kinds: Mapping[str, str] | None = None, *, keep_given: bool = False) -> None:
        self.kinds = kinds
        self.keep_given = keep_given

    def fit(self, X: Table, y: object = None) -> Self:
        """Learn which column holds what."""
        frame = checked_frame(X)
        if any(is_given(name) for name in frame.columns):
            raise InputError(f"Names of columns must not begin with {_GIVEN!r}: rename them.")
        self.columns_ = settled_kinds(frame, self.kinds)
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        return self

    def transform(self, X: Table) -> pd.DataFrame:
        """Read rows with the columns seen in `fit`, in any order."""
        check_is_fitted(self)
        frame = checked_frame(X)
        check_seen_columns(frame, list(self.columns_))
        parts = {name: Column(name, kind).read(frame[name]) for name, kind in self.columns_.items()}
        if self.keep_given:
            parts |= {f"{_GIVEN}{name}": frame[name] for name in frame.columns}
        return pd.DataFrame(parts, index=frame.index)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the columns, which stay as they are."""
        check_is_fitted(self)
        return np.array(list(self.columns_), dtype=object)


def is_given(name: object) -> bool:
    """Whether a column is one that was handed on as it came."""
    return isinstance(name, str) and name.startswith(_GIVEN)


def as_given(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows as they came, before a reader has looked at them; without a reader, the rows themselves.

    Examples
    --------
    >>> raw = pd.DataFrame({"zip": [2]})
    >>> as_given(TableReader({"zip": "category"}, keep_given=True).fit_transform(raw)).to_dict("list")
    {'zip': [2]}
    """
    names = [name for name in frame.columns if is_given(name)]
    return frame[names].rename(columns=lambda name: name.removeprefix(_GIVEN)) if names else frame


def checked_frame(X: Table) -> pd.DataFrame:
    """Turn any frame, or array, into a pandas frame with unique text column names."""
    frame = named_table(X)
    if not frame.shape[1] or not len(frame):
        raise InputError(f"The data frame is empty: it has {len(frame)} rows and {frame.shape[1]} columns.")
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(f"Column names must be unique; {quoted(repeated[0])} occurs more than once.")
    return frame


def settled_kinds(frame: pd.DataFrame, given: Mapping[str, str] | None) -> dict[str, str]:
    """Kind of each column: as the user says, else by its type."""
    given = dict(given or {})
    check_seen_columns(frame, list(given))
    return {name: given.get(name) or kind_of(frame[name]) for name in frame.columns}


def check_seen_columns(frame: pd.DataFrame, names: list[str]) -> None:
    """Refuse a frame that lacks columns of `fit`, in one sentence."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        extra = [clipped(name) for name in frame.columns if name not in set(names)]
        more = f" (new columns: {', '.join(extra[:5])})" if extra else ""
        raise InputError(f"Columns seen in fit are missing now: {', '.join(map(clipped, missing[:5]))}{more}.")
