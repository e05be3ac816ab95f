"""The container of checked rows that both estimators work on."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets

from dafh.checks.rows import (
    check_features,
    check_known_labels,
    check_persons,
    check_spelling,
    check_table,
    check_times,
    check_weights,
)
from dafh.columns.bins import named_table
from dafh.columns.encoder import is_given
from dafh.columns.hashes import row_hashes
from dafh.columns.kinds import warn_of_numbers_as_text
from dafh.exceptions import InputError, SuspiciousInputWarning
from dafh.frames import Table, check_attributes, check_sensitive_features, is_frame, take_rows, to_pandas
from dafh.text import listed, quoted

_NO_NUMBERS = np.empty((0, 0))
LARGEST_WEIGHT = 1e12
"""Beyond it, penalties are lost in rounding beside the rows."""
# A label in at most so many rows, of which the next one has many more, is a mistake more often than a class.
_STRAY_ROWS, _TIMES_AS_FREQUENT = 2, 25
# Shares of calibration rows that may be training rows, and of training rows that differ from each other.
_MOST_SHARED, _DISTINCT = 0.5, 0.9
Classes = NDArray[Any] | Callable[[NDArray[Any]], NDArray[Any]]
"""Labels that are known, or a function that finds them from those that occur."""


@dataclass(frozen=True, eq=False)
class RowContext:
    """What is known about rows beside features and labels, for the guard and for how rows are held out."""

    declared: pd.DataFrame | None = None
    """Attributes that define declared groups."""
    person: NDArray[np.intp] | None = None
    """Number of the person that each row belongs to; None where every row is a person of its own."""
    time: NDArray[np.float64] | None = None
    """When each row was observed: later rows judge, earlier ones train."""

    @classmethod
    def check(
        cls, n_rows: int, guard_features: Table | None, persons: ArrayLike | None, time: ArrayLike | None
    ) -> Self:
        """Check what the user brings, each of it optional, with one entry for each row."""
        declared = None if guard_features is None else check_attributes(guard_features, n_rows, "guard_features")
        return cls(declared, check_persons(persons, n_rows), check_times(time, n_rows))

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return what is known about some of the rows."""
        return replace(
            self,
            declared=None if self.declared is None else self.declared.iloc[rows],
            person=None if self.person is None else self.person[rows],
            time=None if self.time is None else self.time[rows],
        )


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Features, labels, weights and attributes of the same rows, checked."""

    X: NDArray[Any]
    """Features as numbers, (n, d); empty where a table of any kind was checked, and is looked at later."""
    given: Any
    """X as the pooled classifier should see it: a frame keeps its column names and types."""
    label: NDArray[np.intp]
    """Position of each label among `classes`."""
    classes: NDArray[Any]
    weight: NDArray[np.float64]
    attributes: pd.DataFrame | None = None
    """Sensitive features, where the user brings some; never an input of a classifier."""
    context: RowContext = RowContext()
    """What the guard may be shown about the rows, and training never is."""

    @classmethod
    def check(
        cls,
        estimator: BaseEstimator,
        X: Table,
        y: ArrayLike,
        *,
        numbers: bool = False,
        aside: Sequence[str] | None = None,
        classes: Classes | None = None,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Table | None = None,
        guard_features: Table | None = None,
        persons: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Check rows to train on; rows of weight 0 are left out.

        Parameters
        ----------
        estimator : estimator
            Remembers the number and names of the columns, as scikit-learn's estimators do.
        numbers : bool
            Whether all columns must be numbers; otherwise a table of any kind is taken, and looked at later.
        aside : names of columns, optional
            As in `check_parted`.
        classes : array or function, optional
            Labels that a fitted pooled classifier knows; by default those that occur.
        """
        values, given, labels = _check_columns(estimator, X, y, numbers=numbers, aside=aside, reset=True)
        weight = check_weights(sample_weight, len(labels))
        attributes = check_sensitive_features(sensitive_features, len(labels))
        context = RowContext.check(len(labels), guard_features, persons, time)
        check_classification_targets(labels)
        if (weight > LARGEST_WEIGHT).any():
            raise InputError(
                f"sample_weight holds {weight.max():g}; a fit takes weights of up to {LARGEST_WEIGHT:g}: divide all of "
                "them by the same number."
            )
        counted = np.flatnonzero(weight > 0)
        present, sizes = np.unique(labels[counted], return_counts=True)
        if len(present) < 2:
            raise InputError(
                f"y holds one class only ({present.tolist()[0]!r}): at least two classes are needed to learn anything."
            )
        check_spelling(present, "y")
        _warn_of_stray_label(present, sizes)
        if is_frame(given) and not numbers:
            warn_of_numbers_as_text(given.iloc[:, : estimator.n_features_in_])
        found = classes(present) if callable(classes) else classes
        known = present if found is None else np.unique(found)
        unknown = np.setdiff1d(present, known)
        if len(unknown):
            raise InputError(f"y holds classes that the fitted pooled classifier does not know: {unknown.tolist()}.")
        label = np.searchsorted(known, labels)  # Meaningless for rows that do not count; they are left out below.
        rows = cls(values, given, label, known, weight, attributes, context)
        return rows if len(counted) == len(label) else rows.take(counted)

    @classmethod
    def check_more(
        cls,
        estimator: BaseEstimator,
        X: Table,
        y: ArrayLike,
        *,
        numbers: bool = False,
        aside: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Table | None = None,
        guard_features: Table | None = None,
        persons: ArrayLike | None = None,
    ) -> Self:
        """Check labelled rows for an estimator that knows its columns and classes, such as those for the guard."""
        values, given, _ = _check_columns(estimator, X, numbers=numbers, aside=aside, reset=False)
        check_known_labels(y, estimator.classes_, len(given))
        label = np.searchsorted(estimator.classes_, np.asarray(y))
        weight = check_weights(sample_weight, len(given))
        attributes = check_sensitive_features(sensitive_features, len(given))
        context = RowContext.check(len(given), guard_features, persons, None)
        return cls(values, given, label, estimator.classes_, weight, attributes, context)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.label)

    @property
    def y(self) -> NDArray[Any]:
        """Labels as they were given."""
        return self.classes[self.label]

    @property
    def fit_weight(self) -> NDArray[np.float64] | None:
        """Weights to hand to a classifier; None where all are 1, because not every classifier takes weights."""
        return None if (self.weight == 1).all() else self.weight

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return some of the rows."""
        return replace(
            self,
            X=self.X[rows] if len(self.X) else self.X,
            given=take_rows(self.given, rows),
            label=self.label[rows],
            weight=self.weight[rows],
            attributes=None if self.attributes is None else self.attributes.iloc[rows],
            context=self.context.take(rows),
        )


def _warn_of_stray_label(labels: NDArray[Any], sizes: NDArray[np.intp]) -> None:
    """Warn of a label that is in so few rows that it is probably a mistake, and makes two classes three."""
    order = np.argsort(sizes)
    if len(labels) < 3 or sizes[order[0]] > _STRAY_ROWS or sizes[order[1]] < _TIMES_AS_FREQUENT * sizes[order[0]]:
        return
    warnings.warn(
        f"y holds {quoted(labels[order[0]])} in {sizes[order[0]]:,} of {sizes.sum():,} rows, which makes it a class of "
        "its own: correct it, or leave those rows out.",
        SuspiciousInputWarning,
        stacklevel=2,
    )


def refuse_training_rows(judges: "CheckedRows", training: "CheckedRows") -> None:
    """Refuse rows for the guard that are rows for training: they would show that every classifier is good."""
    known, asked = (_hashes(rows) for rows in (training, judges))
    is_known = np.isin(asked, known)
    # Where rows of a few categories repeat anyway, the same row may be another person.
    distinct = len(np.unique(known)) / max(len(known), 1)
    if is_known.any() and is_known.mean() > _MOST_SHARED and distinct > _DISTINCT:
        raise InputError(
            f"X_calibration holds {is_known.sum():,} rows of X: the guard needs rows that training has not seen."
        )


def _hashes(rows: "CheckedRows") -> NDArray[np.uint64]:
    table = named_table(rows.given)
    return row_hashes(table.assign(**{"\0label": rows.label}))


def _check_columns(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike = "no_validation",
    *,
    numbers: bool,
    aside: Sequence[str] | None,
    reset: bool,
) -> tuple[NDArray[Any], Any, NDArray[Any]]:
    """Features as numbers where they must be, as the pooled classifier should see them, and labels."""
    if numbers:
        checked = check_features(estimator, X, y, reset=reset)
        values, labels = checked if isinstance(checked, tuple) else (checked, np.zeros(0))
        return values, X if is_frame(X) else values, labels
    table, labels = check_parted(estimator, X, y, reset=reset, aside=aside)
    return _NO_NUMBERS, table if is_frame(X) else table.to_numpy(), labels


def check_parted(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike = "no_validation",
    *,
    reset: bool,
    aside: Sequence[str] | None = None,
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Validate a table like `check_table`: features first, then what only the pooled classifier sees.

    The estimator remembers names and number of the features; what stands beside them is not its own business.

    Parameters
    ----------
    aside : names of columns, optional
        What only the pooled classifier sees, beside rows as they came before a reader. None: it sees the features, as
        everything else does.
    """
    names = list(X.columns) if is_frame(X) else []
    given = [name for name in names if is_given(name)]
    if not given and not aside:
        return check_table(estimator, X, y, reset=reset)
    if not names:
        raise InputError(f"The pooled classifier needs {_columns(aside or ())}: pass a data frame.")
    table = to_pandas(X).reset_index(drop=True)
    check_there(table, aside or ())
    beside = [*(aside or ()), *given]
    features, labels = check_table(estimator, table.drop(columns=beside), y, reset=reset)
    return (features if aside is None else pd.concat([features, table[beside]], axis=1)), labels


def check_there(table: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse a table without the columns that the pooled classifier asks for."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(f"The pooled classifier needs {_columns(missing)}, which the table does not have.")


def _columns(names: Sequence[str]) -> str:
    shown = listed([quoted(name) for name in names[:5]])
    return f"the column {shown}" if len(names) == 1 else f"the columns {shown}"
