"""Data frames of any library, and tables of sensitive attributes."""

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.exceptions import InputError

Table = ArrayLike
"""Rows and columns: an array, nested lists, or a data frame of any library, which NumPy takes as well."""
LARGEST_NUMBER = 1e100
"""Numbers from here on, infinity included, count as missing: their squares no longer fit into a number."""
MISSING = "(missing)"
"""What a missing sensitive attribute is called: people without an entry are a group of their own."""


def is_frame(X: Any) -> bool:
    """Whether X is a data frame (pandas, polars, ...) and not an array or a list."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def to_days(dates: pd.Series) -> pd.Series:
    """Count dates in days since 1970, a gap as NaN; in seconds first, which reach farther than pandas' nanoseconds."""
    local = dates.dt.tz_localize(None) if dates.dt.tz is not None else dates
    seconds = local.to_numpy("datetime64[s]")
    days = seconds.astype(np.int64) / 86_400
    return pd.Series(np.where(np.isnat(seconds), np.nan, days), dates.index, name=dates.name)


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Return some rows of an array or of a data frame of any library, in the order of their positions."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def to_pandas(table: Any) -> pd.DataFrame:
    """Turn a frame or a series of any library, an array or a dictionary into a pandas frame."""
    if isinstance(table, pd.DataFrame):
        return table
    if isinstance(table, pd.Series):
        return table.to_frame(table.name or "attribute")
    native = nw.from_native(table, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        native = native.rename(native.name or "attribute").to_frame()
    if isinstance(native, nw.DataFrame):
        # Column by column through NumPy: the libraries' own conversions need pyarrow.
        return pd.DataFrame({name: native[name].to_numpy() for name in native.columns})
    return pd.DataFrame(table)


def check_sensitive_features(sensitive_features: Any, n_rows: int) -> pd.DataFrame | None:
    """Turn any table of attributes into a pandas frame with text column names; a missing value is a value too."""
    if sensitive_features is None:
        return None
    table = check_attributes(sensitive_features, n_rows)
    return table.astype(object).where(table.notna(), MISSING)


def check_attributes(sensitive_features: Any, n_rows: int) -> pd.DataFrame:
    """Turn any table of attributes into a pandas frame with text column names, its values left as they are."""
    table = to_pandas(sensitive_features).reset_index(drop=True)
    if len(table) != n_rows:
        raise InputError(f"sensitive_features has {len(table)} rows, the data have {n_rows}: give one row for each.")
    if not table.shape[1]:
        raise InputError("sensitive_features has no columns: give at least one attribute.")
    return table.set_axis([f"attribute {n}" if isinstance(n, int) else str(n) for n in table.columns], axis=1)
