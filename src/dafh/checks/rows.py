"""Features, labels, weights and what else is known about rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from dafh.exceptions import InputError
from dafh.frames import Table, dense, is_frame, to_pandas
from dafh.text import quoted, shown

_TEXT_IN_ARRAY = "X holds text: pass a data frame, in which every column has a type."


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Put an estimator back as it was if what happens inside fails or is interrupted: no half-fitted models."""
    before = dict(vars(estimator))  # Fitting replaces attributes and never changes them in place: no deep copy.
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_features(estimator: BaseEstimator, X: Table, y: ArrayLike = "no_validation", *, reset: bool) -> Any:
    """Validate X, and y where given, as floating point numbers; text gets a hint instead of a conversion error."""
    _check_unique_names(X)

    def hint() -> str:
        name, where = type(estimator).__name__, "X holds"
        if is_frame(X):
            text = [str(one) for one in to_pandas(X).select_dtypes(exclude=["number", "bool"])]
            listed = ", ".join(text[:5]) + (", ..." if len(text) > 5 else "")
            where = f"column {listed} of X holds" if len(text) == 1 else f"the columns {listed} of X hold"
        return (
            f"{name} needs numbers, but {where} text: wrap it as dafh.tabular_pipeline({name}(...)), which encodes "
            "data frames of any kind."
        )

    return _check_numbers(estimator, dense(X), y, hint, reset=reset)


def _check_numbers(
    estimator: BaseEstimator, X: Any, y: ArrayLike, hint: Callable[[], str], *, reset: bool, **options: Any
) -> Any:
    try:
        # Single precision stays: half the memory.
        types, least = [np.float64, np.float32], 2 if reset else 1
        return validate_data(estimator, X, y, reset=reset, dtype=types, ensure_min_samples=least, **options)
    except ValueError as error:
        if "convert string" in str(error):
            raise InputError(hint()) from error
        raise
    except OverflowError as error:
        raise InputError(f"X cannot be read as numbers: {shown(str(error))}.") from error


class TakesSparse(BaseEstimator):
    """An estimator that takes sparse matrices, by making them dense, and says so."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class TakesTables(TakesSparse):
    """An estimator that takes tables of any kind, with text, categories and missing values, and says so."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def check_table(
    estimator: BaseEstimator, X: Table, y: ArrayLike = "no_validation", *, reset: bool
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Validate a table of any kind, and y where given: a data frame keeps its types, all else must be numbers.

    Missing values are allowed, and sparse matrices become dense. Names and number of the columns are remembered, or
    compared, as in scikit-learn.
    """
    X = dense(X)
    least = 1 if not reset else 2
    unlabelled = isinstance(y, str) and y == "no_validation"
    if isinstance(y, str) and not unlabelled:
        raise InputError(f"y must hold one label for each row; {shown(y)} is one text.")
    if y is None:
        raise InputError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    if not is_frame(X):
        checked = _check_numbers(estimator, X, y, lambda: _TEXT_IN_ARRAY, reset=reset, ensure_all_finite="allow-nan")
        values, labels = (checked, np.empty(0)) if unlabelled else checked
        return pd.DataFrame(values), labels
    _check_unique_names(X)
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)
    table = to_pandas(cast(Table, X)).reset_index(drop=True)
    if not table.shape[1] or len(table) < least:
        raise InputError(
            f"X has {len(table)} sample(s) and {table.shape[1]} column(s): at least {least} and 1 are needed."
        )
    if reset:
        _refuse_infinite(table)
    if unlabelled:
        return table, np.empty(0)
    labels = column_or_1d(y, warn=True)
    check_consistent_length(table, labels)
    if pd.isna(labels).any():
        raise InputError("y has missing values: leave those rows out.")
    return table, labels


def _refuse_infinite(table: pd.DataFrame) -> None:
    """Refuse infinite numbers in training, as scikit-learn does in arrays: they are mistakes of a division."""
    for position, name in enumerate(table.columns):
        column = table.iloc[:, position]
        if pd.api.types.is_float_dtype(column.dtype) and np.isinf(column.to_numpy(np.float64, na_value=np.nan)).any():
            raise InputError(f"Column {quoted(name)} holds infinite numbers: replace them, or leave them empty.")


def _check_unique_names(X: Any) -> None:
    # Before scikit-learn looks: of the libraries it asks, one has an error of its own for repeated names.
    if is_frame(X) and len(set(map(str, X.columns))) < len(list(X.columns)):
        raise InputError("Names of columns must be unique.")


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Validate row weights; None counts every row once, and one number counts all rows alike."""
    if sample_weight is None or np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, 1.0 if sample_weight is None else sample_weight)
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (n_rows,):
        raise InputError(f"sample_weight has the shape {weights.shape}, X has {n_rows} rows: give one weight for each.")
    if (weights < 0).any():
        raise InputError("Negative values in sample_weight: a row counts once, more often or not at all.")
    if not weights.any():
        raise InputError("All sample weights are zero: at least one row has to count.")
    return weights


def check_persons(persons: ArrayLike | None, n_rows: int) -> NDArray[np.intp] | None:
    """Number the persons that rows belong to; a row without an identifier is a person of its own."""
    if persons is None:
        return None
    try:
        codes, _ = pd.factorize(one_column(persons, n_rows, "persons", "one identifier"))
    except (TypeError, NotImplementedError) as error:  # The second is what Arrow raises.
        raise InputError("persons holds lists or records: an identifier is text or a number.") from error
    unknown = codes < 0
    codes[unknown] = codes.max(initial=-1) + 1 + np.arange(unknown.sum())
    return codes.astype(np.intp)


def check_times(time: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Times as numbers: numbers, dates, or text that reads as dates."""
    if time is None:
        return None
    values = absolute_times(one_column(time, n_rows, "time", "one time"))
    if not np.isfinite(values).all():
        raise InputError("time has missing values: every row needs one, to be before or after the others.")
    return values


def absolute_times(column: "pd.Series[Any]") -> NDArray[np.float64]:
    """Times as numbers that do not depend on other rows: dates as days since 1970."""
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        try:
            dates = pd.to_datetime(column, format="mixed")
            # Microseconds reach farther than the nanoseconds of pandas, and are as fine as a float of days can be.
            plain = dates if dates.dt.tz is None else dates.dt.tz_convert(None)
            times = plain.astype("datetime64[us]").to_numpy()
        except (TypeError, ValueError, OverflowError):
            raise InputError("time must hold numbers or dates, one for each row.") from None
        return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 86_400e6)
    return column.to_numpy(np.float64)


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Take an array of any shape from what a caller passes; lists of different lengths make none."""
    try:
        return np.asarray(values)
    except Exception as error:  # Whatever an object raises that is asked for values it does not have.
        raise InputError(f"{name} cannot be read as an array: {shown(str(error))}.") from error


def one_column(values: ArrayLike, n_rows: int, name: str, entry: str) -> "pd.Series[Any]":
    """Take one value for each row from anything that holds one column."""
    table = to_pandas(values)
    if table.shape != (n_rows, 1):
        raise InputError(f"{name} has the shape {table.shape} for {n_rows:,} rows: give {entry} for each row.")
    return table.iloc[:, 0]


def check_known_labels(y: ArrayLike, classes: NDArray[Any], n_rows: int) -> None:
    """Refuse labels that a fitted classifier cannot predict, and another number of them than rows."""
    labels = as_array(y, "y")
    if labels.shape != (n_rows,):
        raise InputError(f"y has the shape {labels.shape}, X has {n_rows} rows: give one label for each.")
    # As objects: pandas has no column of some types of dates.
    unknown = pd.unique(labels[~pd.Series(labels.astype(object), dtype=object).isin(classes).to_numpy()])
    if len(unknown):
        raise InputError(
            f"y holds labels that the classifier was not fitted with: {unknown[:5].tolist()}; it knows "
            f"{classes[:10].tolist()}."
        )


def check_labels(y: NDArray[Any], predictions: list[NDArray[Any]]) -> None:
    """Refuse true and predicted labels that cannot be compared: gaps, texts with numbers, probabilities."""
    _check_plain(y, *predictions)
    if pd.isna(y).any():
        raise InputError("y has missing values: leave those rows out.")
    if any(bool(pd.isna(column).any()) for column in predictions):
        raise InputError("There are missing predictions: every classifier has to decide about every row.")
    for column in predictions:
        if _is_text(column) != _is_text(y):
            raise InputError(
                f"y holds labels like {_first(y)!r}, and predictions are like {_first(column)!r}: both must be of one "
                "kind."
            )
    if _is_whole(y) and not all(_is_whole(column) for column in predictions):
        raise InputError("predictions must be labels, as y has them, not probabilities or scores.")


def check_spelling(labels: NDArray[Any], name: str) -> None:
    """Refuse labels that differ in case or in blanks around them only: "Yes " and "yes" are meant to be one."""
    spelled: dict[str, str] = {}
    for label in labels.tolist():
        if isinstance(label, str):
            other = spelled.setdefault(label.strip().casefold(), label)
            if other != label:
                raise InputError(f"{name} holds {label!r} and {other!r}: write one label in one way.")


def _check_plain(*columns: NDArray[Any]) -> None:
    """Refuse labels that cannot be put into an order together: records, dates beside numbers."""
    try:
        np.unique(np.concatenate([np.unique(column) for column in columns]))
    except TypeError as error:
        # None among texts is told as a gap.
        if not any(bool(pd.isna(column).any()) for column in columns if column.dtype.kind == "O"):
            raise InputError("Labels must be texts or numbers, and y and predictions of one kind.") from error


def _first(labels: NDArray[Any]) -> object:
    """First label as a plain Python value, which prints as 1 and not as np.int64(1)."""
    return labels.ravel()[:1].tolist()[0]


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind in "US" or (labels.dtype.kind == "O" and isinstance(labels.flat[0], str))


def _is_whole(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind != "f" or bool((labels == np.floor(labels)).all())
