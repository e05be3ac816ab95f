"""What users pass in, checked: parameters, paths, tables, labels, weights, persons and times.

A check that several rooms need goes here; one that a single room needs stays there.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
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

# ---- parameters ----


@dataclass(frozen=True)
class Allowed:
    """One kind of value that a parameter may have: in words, and as a test."""

    words: str
    holds: Callable[[Any], bool]


RandomState = int | np.random.RandomState | None
"""What a parameter `random_state` may be."""
Constraints = Mapping[str, tuple[Allowed, ...]]
"""What each parameter of an estimator may be: any of the kinds listed."""


def whole_number(least: int, most: float = np.inf) -> Allowed:
    """Allow whole numbers from `least` on, up to `most` where memory or time set a limit."""
    upper = "inf)" if most == np.inf else f"{most}]"
    # Beyond 64 bits no library below can count.
    return Allowed(
        f"an int in the range [{least}, {upper}",
        lambda value: is_whole(value) and least <= value <= min(most, 2**63),
    )


def number(low: float, high: float = np.inf, *, closed: str = "neither") -> Allowed:
    """Allow numbers between two limits; `closed` says which of them are included: left, right or neither."""
    # The words of scikit-learn's own messages, which users know.
    left, right = "[" if closed == "left" else "(", "]" if closed == "right" else ")"

    def holds(value: Any) -> bool:
        return fits_float(value) and (
            low < value < high or (closed == "left" and value == low) or (closed == "right" and value == high)
        )

    return Allowed(f"a float in the range {left}{low:g}, {high:g}{right}", holds)


def one_of(*names: str) -> Allowed:
    """Allow a few words."""
    words = f"a str among {{{', '.join(map(repr, sorted(names)))}}}"
    return Allowed(words, lambda value: isinstance(value, str) and value in names)


def having(*methods: str) -> Allowed:
    """Allow objects with some methods, such as classifiers."""
    words = f"an object that has {', '.join(map(repr, methods))}"
    return Allowed(words, lambda value: all(callable(getattr(value, method, None)) for method in methods))


def instance_of(kind: type) -> Allowed:
    """Allow objects of a class."""
    return Allowed(f"an instance of {kind.__name__}", lambda value: isinstance(value, kind))


def sequence_of(kind: Allowed, words: str, most: float = np.inf) -> Allowed:
    """Allow sequences whose members are all of one kind, and no more than `most` of them."""

    def holds(value: Any) -> bool:
        try:
            # What can be gone through only once, such as a generator, would be used up by this check. A sparse matrix
            # seems to have a length, and has none.
            # A set has no order, and what comes first would change from run to run.
            ordered = np.iterable(value) and not isinstance(value, str | Set | Mapping)
            listed = ordered and len(cast(Any, value)) <= most
        except TypeError:
            return False
        return listed and all(kind.holds(member) for member in value)

    return Allowed(words, holds)


NOTHING = Allowed("None", lambda value: value is None)
RANDOM_STATE = Allowed(
    "an int from 0 to 2**32 - 1, a numpy.random.RandomState or None",
    lambda value: value is None or isinstance(value, np.random.RandomState) or (is_whole(value) and 0 <= value < 2**32),
)


def is_real(value: object) -> bool:
    """Whether a value is a number and not a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def fits_float(value: object) -> bool:
    """Whether a value is a number that a float can hold: whole numbers of 400 digits are too large for one."""
    try:
        return is_real(value) and not np.isnan(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return False


def is_whole(value: object) -> bool:
    """Whether a value is a whole number and not a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def check_parameters(estimator: BaseEstimator, constraints: Constraints) -> None:
    """Refuse the first parameter of an estimator that is none of what it may be."""
    for name, kinds in constraints.items():
        value = getattr(estimator, name)
        if not any(kind.holds(value) for kind in kinds):
            *others, last = (kind.words for kind in kinds)
            allowed = f"{', '.join(others)} or {last}" if others else last
            raise InputError(
                f"The {name!r} parameter of {type(estimator).__name__} must be {allowed}. Got {shown(value)} instead."
            )


def check_path(path: object) -> Path:
    """Take a path as `pathlib` does; refuse what is none."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputError(f"A path must be text or a pathlib.Path, got {shown(path)}.")
    return Path(path)


# ---- rows ----

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
