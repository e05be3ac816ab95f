"""Checks of what users pass in, each with one sentence that says what to change."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, validate_data

from dafh.exceptions import InputError

__all__ = [
    "LARGEST_NUMBER",
    "MISSING",
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_attributes",
    "check_features",
    "check_hidden",
    "check_known_labels",
    "check_labels",
    "check_sensitive_features",
    "check_weights",
    "is_frame",
    "replica_grid",
    "to_days",
    "to_pandas",
    "unchanged_on_error",
]


LARGEST_NUMBER = 1e100
"""Numbers from here on, infinity included, count as missing: their squares no longer fit into a number."""
MISSING = "(missing)"
"""What a missing sensitive attribute is called: people without an entry are a group of their own."""


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Put an estimator back as it was if what happens inside fails or is interrupted: no half-fitted models."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def is_frame(X: Any) -> bool:
    """Whether X is a data frame (pandas, polars, ...) and not an array or a list."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def check_features(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
    """Validate X, and y where given, as floating point numbers; text gets a hint instead of a conversion error."""
    try:
        return validate_data(
            estimator,
            X,
            y,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_min_samples=1 if not reset else 2,
        )
    except ValueError as error:
        if "convert string" in str(error):
            raise InputError(_text_message(estimator, X)) from error
        raise


def _text_message(estimator: Any, X: Any) -> str:
    where = "X"
    if is_frame(X):
        text = [str(name) for name, kind in zip(X.columns, X.dtypes, strict=True) if not _is_number(kind)]
        where = f"the columns {', '.join(text[:5])}{', ...' if len(text) > 5 else ''} of X"
    name = type(estimator).__name__
    return (
        f"{name} needs numbers, but {where} hold text: wrap it as dafh.tabular_pipeline({name}(...)), which encodes "
        "data frames of any kind."
    )


def _is_number(kind: Any) -> bool:
    numeric = getattr(kind, "is_numeric", None)  # polars
    return bool(numeric()) if numeric is not None else getattr(kind, "kind", "O") in "biufc"


def check_weights(sample_weight: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """Validate row weights; None counts every row once."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise InputError("All sample weights are zero: at least one row has to count.")
    return weights


def check_known_labels(y: Any, classes: NDArray[Any], n_rows: int) -> None:
    """Refuse labels that a fitted classifier cannot predict, and another number of them than rows."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InputError(f"y has the shape {labels.shape}, X has {n_rows} rows: give one label for each.")
    unknown = pd.unique(labels[~pd.Series(labels).isin(classes).to_numpy()])
    if len(unknown):
        raise InputError(
            f"y holds labels that the classifier was not fitted with: {unknown[:5].tolist()}; it knows "
            f"{classes[:10].tolist()}."
        )


def replica_grid(owner: str, n_replicas: int, **choices: float | Sequence[float]) -> dict[str, NDArray[np.float64]]:
    """Spread settings over replicas: every parameter is one number or several, and combinations are cycled.

    The first parameter changes fastest, so that a population smaller than the grid still has all its values.

    Examples
    --------
    >>> replica_grid("X", 4, envy_weight=(0, 1), noise=0.5)
    {'envy_weight': array([0., 1., 0., 1.]), 'noise': array([0.5, 0.5, 0.5, 0.5])}
    """
    grid, stride = {}, 1
    for name, choice in choices.items():
        values = np.atleast_1d(np.asarray(choice, dtype=object))
        if values.ndim != 1 or not len(values) or not all(_is_setting(value) for value in values):
            raise InputError(
                f"The {name!r} parameter of {owner} must be a non-negative number, or a list of such numbers to vary "
                f"over the replicas. Got {choice!r} instead."
            )
        grid[name] = values.astype(np.float64)[np.arange(n_replicas) // stride % len(values)]
        stride *= len(values)
    return grid


def check_labels(y: NDArray[Any], predictions: list[NDArray[Any]]) -> None:
    """Refuse true and predicted labels that cannot be compared: gaps, texts with numbers, probabilities."""
    if pd.isna(y).any():
        raise InputError("y has missing values: leave those rows out, nobody knows whether they are served well.")
    if any(bool(pd.isna(column).any()) for column in predictions):
        raise InputError("There are missing predictions: every classifier has to decide about every row.")
    for column in predictions:
        if _is_text(column) != _is_text(y):
            raise InputError(
                f"y holds labels like {y.flat[0]!r}, and predictions are like {column.flat[0]!r}: both must be of one "
                "kind."
            )
    if _is_whole(y) and not all(_is_whole(column) for column in predictions):
        raise InputError("predictions must be labels, as y has them, not probabilities or scores.")


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind in "US" or (labels.dtype.kind == "O" and isinstance(labels.flat[0], str))


def _is_whole(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind != "f" or bool((labels == np.floor(labels)).all())


def check_hidden(owner: str, name: str, sizes: Any) -> tuple[int, ...]:
    """Validate the widths of hidden layers."""
    sizes = tuple(sizes)
    if not all(isinstance(size, Integral) and not isinstance(size, bool) and int(size) > 0 for size in sizes):
        raise InputError(
            f"The {name!r} parameter of {owner} must be a sequence of positive ints. Got {sizes!r} instead."
        )
    return tuple(int(size) for size in sizes)


def _is_setting(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf


def to_days(dates: pd.Series) -> pd.Series:
    """Count dates in days since 1970, a gap as NaN; in seconds first, which reach farther than pandas' nanoseconds."""
    local = dates.dt.tz_localize(None) if dates.dt.tz is not None else dates
    seconds = local.to_numpy("datetime64[s]")
    days = seconds.astype(np.int64) / 86_400
    return pd.Series(np.where(np.isnat(seconds), np.nan, days), dates.index, name=dates.name)


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
