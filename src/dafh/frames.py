"""Data frames of any library, and tables of sensitive attributes."""

from dataclasses import dataclass
from typing import Any, TypeGuard, cast

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.exceptions import InputError

Table = ArrayLike
"""Rows and columns: an array, nested lists, or a data frame of any library, which NumPy takes as well."""
MISSING = "(missing)"
"""What a gap is called where it counts as a category: rows without an entry are a group of their own."""
OTHER = "(other)"
"""What the rare categories of a long list are called, put together."""


@dataclass(frozen=True, eq=False)
class PlainTable:
    """A small table as plain columns: what a fitted model, and a model file, holds in place of a data frame.

    Examples
    --------
    >>> table = PlainTable.of(pd.DataFrame({"rows": [3, 5]}, index=pd.RangeIndex(2, name="group")))
    >>> table.to_frame()
           rows
    group
    0         3
    1         5
    """

    columns: dict[str, NDArray[Any]]
    index: NDArray[Any]
    index_name: str | None = None

    @classmethod
    def of(cls, frame: pd.DataFrame) -> "PlainTable":
        """Take a data frame apart."""
        columns = {str(name): column.to_numpy() for name, column in frame.items()}
        return cls(columns, frame.index.to_numpy(), None if frame.index.name is None else str(frame.index.name))

    def to_frame(self) -> pd.DataFrame:
        """Return a new data frame."""
        return pd.DataFrame(dict(self.columns), index=pd.Index(self.index, name=self.index_name), copy=True)

    def __eq__(self, other: object) -> bool:
        """Compare by content; a gap equals a gap."""
        return self.to_frame().equals(other.to_frame()) if isinstance(other, PlainTable) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def is_frame(X: object) -> TypeGuard[Any]:
    """Whether X is a data frame (pandas, polars, ...) and not an array or a list."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def dense(X: Any) -> Any:
    """Return a sparse matrix as an array of all its cells, and anything else as it is.

    Bins take a byte for each cell, whether it is zero or not: there is nothing that a sparse matrix would save later.
    """
    return X.toarray() if hasattr(X, "toarray") and hasattr(X, "nnz") else X


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Return some rows of an array or of a data frame of any library, in the order of their positions."""
    # By hand: scikit-learn's function for this is private. Polars frames take positions in brackets, as arrays do.
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def to_pandas(table: Table) -> pd.DataFrame:
    """Turn a frame or a series of any library, an array or a dictionary into a pandas frame."""
    table = dense(table)
    if isinstance(table, pd.DataFrame):
        return table
    if isinstance(table, pd.Series):
        return table.to_frame(table.name or "attribute")
    native: Any = nw.from_native(table, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        native = native.rename(native.name or "attribute").to_frame()
    if isinstance(native, nw.DataFrame):
        # Column by column through NumPy: the libraries' own conversions disagree about dates and gaps.
        return pd.DataFrame({name: native[name].to_numpy() for name in native.columns})
    try:
        return pd.DataFrame(cast(Any, table))
    except Exception as error:  # Whatever an object raises that is asked for rows it does not have.
        raise InputError(
            "A table is needed (rows and columns, or one value for each row), not a value of type "
            f"{type(table).__name__}."
        ) from error


def check_sensitive_features(sensitive_features: Table | None, n_rows: int) -> pd.DataFrame | None:
    """Turn any table of attributes into a pandas frame with text column names; a missing value is a value too."""
    if sensitive_features is None:
        return None
    table = check_attributes(sensitive_features, n_rows)
    return table.astype(object).where(table.notna(), MISSING)


def check_attributes(attributes: Table, n_rows: int, name: str = "sensitive_features") -> pd.DataFrame:
    """Turn any table of attributes into a pandas frame with text column names, its values left as they are.

    `name` is what the caller's users call it.
    """
    table = to_pandas(attributes).reset_index(drop=True)
    if len(table) != n_rows:
        raise InputError(f"{name} has {len(table)} rows, the data have {n_rows}: give one row for each.")
    if not table.shape[1]:
        raise InputError(f"{name} has no columns: give at least one attribute.")
    for position in range(table.shape[1]):
        column = table.iloc[:, position]
        if column.dtype == object and any(isinstance(value, list | dict | set | np.ndarray) for value in column):
            raise InputError(f"{name} holds lists or records: an attribute is text, a number or a date.")
    names = [f"attribute {n}" if isinstance(n, int) else str(n) for n in table.columns]
    if len(set(names)) < len(names):
        raise InputError(f"{name} has two columns of the same name: rename one.")
    return table.set_axis(names, axis=1)
