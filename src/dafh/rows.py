"""The rows of a fit: checked once, encoded once, and divided into rows that train and rows that are held out.

- `LabelledRows`: features, labels, weights and attributes side by side;
- `EncodedRows`: the features of any rows as numbers and as bins, by a `TableEncoding` that was learned in training;
- `HeldOut`: which rows are held out in which fold, and what for.

Rows that are not in memory come from `dafh.large`, a sample of them as `LabelledRows`.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets

from dafh.classifiers import FEWEST_ROWS_TO_SPLIT
from dafh.columns.bins import Binning
from dafh.columns.encoder import TableEncoder, is_given
from dafh.columns.kinds import LARGEST_NUMBER, warn_of_numbers_as_text
from dafh.exceptions import InputError, SuspiciousInputWarning
from dafh.frames import Table, check_attributes, check_sensitive_features, is_frame, take_rows, to_pandas
from dafh.text import listed, quoted
from dafh.validation import (
    check_features,
    check_known_labels,
    check_persons,
    check_spelling,
    check_table,
    check_times,
    check_weights,
)

# A label in at most so many rows, of which the next one has many more, is a mistake more often than a class.
_STRAY_ROWS, _TIMES_AS_FREQUENT = 2, 25
# A multiple of what a network takes at a time (`dafh.groups.trained`): results are then the same to the last digit.
_BLOCK_ROWS = 8192

Classes = NDArray[Any] | Callable[[NDArray[Any]], NDArray[Any]]
"""Labels that a fitted classifier knows, or a function that finds them from those that occur."""


# ---- labelled rows ----


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Features, labels, weights and attributes of the same rows, checked."""

    X: Any
    """Features as the classifiers take them: a frame keeps its names and types, all else is an array of numbers."""
    label: NDArray[np.intp]
    """Position of each label among `classes`."""
    classes: NDArray[Any]
    weight: NDArray[np.float64]
    numbers: Any = None
    """Features as numbers, (n, p), for a partition or a network."""
    sensitive: pd.DataFrame | None = None
    """Sensitive features, where a partition needs them; never an input of a classifier."""
    declared: pd.DataFrame | None = None
    """Attributes that define declared groups, which the guard sees and training does not."""
    person: NDArray[np.intp] | None = None
    """Number of the person that each row belongs to; None where every row is a person of its own."""
    time: NDArray[np.float64] | None = None
    """When each row was observed: later rows judge, earlier ones train."""

    @classmethod
    def check(
        cls,
        estimator: BaseEstimator,
        X: Table,
        y: ArrayLike,
        *,
        numbers: bool = False,
        pooled_columns: Sequence[str] | None = None,
        classes: Classes | None = None,
        sample_weight: ArrayLike | None = None,
        **attributes: Any,
    ) -> Self:
        """Check rows to train on; rows of weight 0 are left out.

        Parameters
        ----------
        estimator : estimator
            Remembers the number and names of the columns, as scikit-learn's estimators do.
        numbers : bool
            Whether all columns must be numbers; otherwise a table of any kind is taken.
        pooled_columns : names of columns, optional
            As in `check_table_for_pooled`.
        classes : array or function, optional
            Labels that a fitted pooled classifier knows; by default those that occur.
        **attributes
            sensitive_features, guard_features, persons and time, as in `DAFHClassifier.fit`.
        """
        X, matrix, labels = _check_columns(estimator, X, y, numbers=numbers, pooled_columns=pooled_columns, reset=True)
        weight = check_weights(sample_weight, len(labels))
        attributes = _check_attributes_of_rows(len(labels), **attributes)
        check_classification_targets(labels)
        # A class whose rows all weigh nothing is no class: the fit is the same as without these rows.
        counted = np.flatnonzero(weight > 0)
        present, sizes = np.unique(labels[counted], return_counts=True)
        if len(present) < 2:
            raise InputError(
                f"y holds one class only ({present.tolist()[0]!r}): at least two classes are needed to learn anything."
            )
        check_spelling(present, "y")
        _warn_of_stray_label(present, sizes)
        if is_frame(X) and not numbers:
            warn_of_numbers_as_text(X.iloc[:, : estimator.n_features_in_])
        classes = classes(present) if callable(classes) else classes
        classes = present if classes is None else np.unique(classes)
        unknown = np.setdiff1d(present, classes)
        if len(unknown):
            raise InputError(f"y holds classes that the fitted pooled classifier does not know: {unknown.tolist()}.")
        label = np.searchsorted(classes, labels)  # Meaningless for rows of weight 0, which are left out below.
        rows = cls(X, label, classes, weight, matrix, **attributes)
        return rows if len(counted) == len(label) else rows.take(counted)

    @classmethod
    def check_more(
        cls,
        estimator: BaseEstimator,
        X: Table,
        y: ArrayLike,
        *,
        numbers: bool = False,
        pooled_columns: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
        **attributes: Any,
    ) -> Self:
        """Check labelled rows for an estimator that knows its columns and classes, such as those for the guard."""
        checked, matrix, _ = _check_columns(estimator, X, numbers=numbers, pooled_columns=pooled_columns, reset=False)
        n_rows = len(checked)
        check_known_labels(y, estimator.classes_, n_rows)
        label = np.searchsorted(estimator.classes_, np.asarray(y))
        weight = check_weights(sample_weight, n_rows)
        attributes = _check_attributes_of_rows(n_rows, **attributes)
        return cls(checked, label, estimator.classes_, weight, matrix, **attributes)

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
        """Return the rows at these positions."""
        by_row = {name: values for name, values in vars(self).items() if name != "classes" and values is not None}
        return replace(self, **{name: take_rows(values, rows) for name, values in by_row.items()})


def _check_attributes_of_rows(
    n_rows: int,
    *,
    sensitive_features: Table | None = None,
    guard_features: Table | None = None,
    persons: ArrayLike | None = None,
    time: ArrayLike | None = None,
) -> dict[str, Any]:
    return {
        "sensitive": check_sensitive_features(sensitive_features, n_rows),
        "declared": None if guard_features is None else check_attributes(guard_features, n_rows, "guard_features"),
        "person": check_persons(persons, n_rows),
        "time": check_times(time, n_rows),
    }


def _check_columns(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike = "no_validation",
    *,
    numbers: bool,
    pooled_columns: Sequence[str] | None,
    reset: bool,
) -> tuple[Any, NDArray[Any] | None, NDArray[Any]]:
    """Features as classifiers take them, as numbers where they must be, and labels."""
    if not numbers:
        table, labels = check_table_for_pooled(estimator, X, y, reset=reset, pooled_columns=pooled_columns)
        return table if is_frame(X) else table.to_numpy(), None, labels
    checked = check_features(estimator, X, y, reset=reset)
    matrix, labels = checked if isinstance(checked, tuple) else (checked, np.zeros(0))
    return X if is_frame(X) else matrix, matrix, labels


def check_table_for_pooled(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike = "no_validation",
    *,
    reset: bool,
    pooled_columns: Sequence[str] | None = None,
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Validate a table like `check_table`, and put columns that only the pooled classifier sees behind the features.

    The estimator remembers names and number of the features alone.

    Parameters
    ----------
    pooled_columns : names of columns, optional
        What only the pooled classifier sees, beside rows as they came before a reader. None: it sees the features, as
        everything else does.
    """
    names = list(X.columns) if is_frame(X) else []
    unread = [name for name in names if is_given(name)]
    if not unread and not pooled_columns:
        return check_table(estimator, X, y, reset=reset)
    if not names:
        raise InputError(f"The pooled classifier needs {_columns(pooled_columns or ())}: pass a data frame.")
    table = to_pandas(X).reset_index(drop=True)
    check_columns_exist(table, pooled_columns or ())
    beside = [*(pooled_columns or ()), *unread]
    features, labels = check_table(estimator, table.drop(columns=beside), y, reset=reset)
    return (features if pooled_columns is None else pd.concat([features, table[beside]], axis=1)), labels


def check_columns_exist(table: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse a table without the columns that the pooled classifier needs."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(f"The pooled classifier needs {_columns(missing)}, which the table does not have.")


def _columns(names: Sequence[str]) -> str:
    listing = listed([quoted(name) for name in names[:5]])
    return f"the column {listing}" if len(names) == 1 else f"the columns {listing}"


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


# ---- encoded rows ----


@dataclass(frozen=True, eq=False)
class TableEncoding:
    """How a table becomes numbers and bins, learned from training rows without their labels."""

    encoder: TableEncoder | None
    """None where columns are numbers without gaps, and are taken as they are, or where nothing needs numbers."""
    binning: Binning | None
    """None where nothing needs bins."""
    columns: list[str] | None = None
    """Features, where tables have further columns, which only the pooled classifier sees."""

    @classmethod
    def learn(
        cls,
        X: Table,
        weight: NDArray[np.float64],
        binning: Binning | None = None,
        columns: Sequence[str] | None = None,
        *,
        numbers: bool = True,
    ) -> "TableEncoding":
        """Learn from training rows.

        `binning` is that of a classifier that has one already; `numbers` says whether anything will need numbers. Rules
        on a scorecard do not, and an encoder would take a tenth of a small fit.
        """
        features = X if columns is None else to_pandas(X)[list(columns)]
        binning = binning or Binning.learn(features, weight)
        encode = numbers and binning.needs_encoding(features)
        encoder = TableEncoder(binning.kinds).fit(features) if encode else None
        return cls(encoder, binning, None if columns is None else list(columns))

    def encode(self, X: Table, codes: NDArray[np.uint8] | None = None) -> "EncodedRows":
        """Encode rows when their numbers or bins are first needed; `codes` are bins that are known already."""
        encoded = EncodedRows(self, X)
        if codes is not None:
            encoded.__dict__["codes"] = codes
        return encoded


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows of a table with their numbers and bins, each computed when it is first needed."""

    encoding: TableEncoding
    table: Any
    """A data frame, or an array of numbers."""
    positions: NDArray[np.intp] | None = None
    """Positions of the rows in the table; None for all of them."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.table if self.positions is None else self.positions)

    @cached_property
    def X(self) -> Any:  # noqa: N802 - as in scikit-learn
        """All columns of the rows, as they came."""
        return self.table if self.positions is None else take_rows(self.table, self.positions)

    @property
    def features(self) -> Any:
        """The columns without those that only the pooled classifier sees."""
        return self.X if self.encoding.columns is None else self.X[self.encoding.columns]

    @cached_property
    def numbers(self) -> NDArray[Any]:
        """All columns as numbers, categories as columns of 0 and 1, (n, p)."""
        if self.encoding.encoder is not None:
            return self.encoding.encoder.encode(self.X)
        features = self.features
        values = features.to_numpy(np.float64) if isinstance(features, pd.DataFrame) else np.asarray(features)
        values = values if values.dtype.kind == "f" else values.astype(np.float64)
        # Written so that a gap fails, too: no comparison with NaN is true.
        if not (np.abs(values) < min(LARGEST_NUMBER, float(np.finfo(values.dtype).max))).all():
            raise InputError("X has missing or infinite values, and had none in fit: fill them before predicting.")
        return values

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """Bin of each row in each column, (n, d)."""
        assert self.encoding.binning is not None
        return self.encoding.binning.codes(self.features)

    def blocks(self) -> Iterator["EncodedRows"]:
        """Yield the rows in blocks, where their numbers would be a large table: each block's are freed before the next.

        Of 488,420 rows of Adult, the numbers take 400 MB.
        """
        if self.encoding.encoder is None or "numbers" in self.__dict__ or len(self) <= _BLOCK_ROWS:
            yield self
            return
        for first in range(0, len(self), _BLOCK_ROWS):
            yield self.take(np.arange(first, min(first + _BLOCK_ROWS, len(self))))

    def take(self, rows: NDArray[np.intp]) -> "EncodedRows":
        """Return the rows at these positions, with the numbers and bins that are known already."""
        if len(rows) == len(self) and np.array_equal(rows, np.arange(len(self))):
            return self
        # The table is cut lazily: most callers need bins or numbers only, and cutting a data frame takes longer.
        selected = EncodedRows(self.encoding, self.X, rows)
        for name in ("numbers", "codes"):
            if name in self.__dict__:
                # Sums over rows run along columns of bins, and along rows of numbers.
                selected.__dict__[name] = np.asarray(self.__dict__[name][rows], order="F" if name == "codes" else "C")
        return selected


# ---- held-out rows ----


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Which rows are held out in which fold, and what for."""

    fold: NDArray[np.int32]
    """Fold of each row; −1 for rows that always train."""
    calibrates: NDArray[np.bool_]
    """Whether a held-out row is for the guard; the others choose replica and epoch."""
    n_folds: int
    all_choose: bool = False
    """Whether the rows for the guard choose as well. What a fold judges is then what the other folds choose."""

    @classmethod
    def none(cls, n_rows: int) -> Self:
        """Hold nothing out: every row trains."""
        return cls(np.full(n_rows, -1, np.int32), np.zeros(n_rows, bool), 0)

    @classmethod
    def draw(
        cls,
        label: NDArray[np.intp],
        selection_size: float,
        calibration_size: float,
        n_folds: int,
        rng: np.random.Generator,
        *,
        person: NDArray[np.intp] | None = None,
        time: NDArray[np.float64] | None = None,
    ) -> Self:
        """Hold out a share of the rows in each fold, class by class; the only row of a class always trains.

        By hand and not by scikit-learn's splitters: folds may be smaller than one share of the rows, are divided
        between selection and guard, and follow time or keep persons together.

        Parameters
        ----------
        label : array of shape (n,)
            Position of each row's class.
        selection_size, calibration_size : float
            Shares of the rows that choose the model, and that the guard is calibrated on, in each fold; either may be
            0, and together they must leave rows to train on.
        n_folds : int
            At most; no more than the shares allow: a row is held out once.
        person : array of shape (n,), optional
            Rows of one person are always held out together, for the same purpose.
        time : array of shape (n,), optional
            There is one fold, and it holds the last rows.
        """
        share = selection_size + calibration_size
        if person is not None:
            # Persons are drawn like rows, each with the label of its first row, and their rows follow them.
            first, unit = np.unique(person, return_index=True, return_inverse=True)[1:]
            latest = None if time is None else _latest(unit, time)
            of_persons = cls.draw(label[first], selection_size, calibration_size, n_folds, rng, time=latest)
            return cls(of_persons.fold[unit], of_persons.calibrates[unit], of_persons.n_folds)
        n_rows = len(label)
        held_out = cls.none(n_rows)
        if n_rows < FEWEST_ROWS_TO_SPLIT or not share:  # Folds of a dozen rows choose by chance.
            return held_out
        fold, calibrates = held_out.fold, held_out.calibrates
        if time is None:
            # A row is held out once at most. Rounding must not turn five folds of 0.2 into four.
            n_drawn = min(n_folds, int(1 / share + 1e-9))
            # Class by class, so that a rare class is in every fold as often as in the data.
            shuffled = rng.permutation(n_rows)
            strata = [shuffled[label[shuffled] == c] for c in np.unique(label)]
            strata = [rows for rows in strata if len(rows) > 1]
        else:
            # Not class by class: the last rows are what a model meets next, whatever their labels are.
            n_drawn, last = 1, np.argsort(time, kind="stable")[n_rows - round(n_rows * share) :]
            strata, share = [rng.permutation(last)], 1.0
        for rows in strata:
            first = (np.arange(n_drawn + 1) * share * len(rows) + 1e-9).astype(int)
            # Of the rows held out, the first, third, sixth ... calibrate, say, from a random place on. Rounding in each
            # fold would leave rare classes to selection alone, and then no row could speak for them.
            ahead = rng.random() + np.arange(len(rows) + 1) * calibration_size / (selection_size + calibration_size)
            for number in range(n_drawn):
                fold[rows[first[number] : first[number + 1]]] = number
            calibrates[rows] = np.diff(np.floor(ahead)) > 0
        calibrates &= fold >= 0
        # A fold without any row to choose by cannot judge its models.
        selecting = fold[(fold >= 0) & ~calibrates] if selection_size else fold[fold >= 0]
        return cls(fold, calibrates, n_drawn) if len(np.unique(selecting)) == n_drawn else cls.none(n_rows)

    def shared(self) -> Self:
        """Let every row that is held out choose, and judge what the other folds choose."""
        return replace(self, calibrates=self.fold >= 0, all_choose=True)

    @property
    def selection(self) -> NDArray[np.intp]:
        """Rows that choose replica and epoch; all rows, where none is held out for that."""
        selecting = np.flatnonzero((self.fold >= 0) & (self.all_choose | ~self.calibrates))
        return selecting if len(selecting) else np.arange(len(self.fold))

    def calibration(self, fold: int) -> NDArray[np.intp]:
        """Rows for the guard in one fold."""
        return np.flatnonzero((self.fold == fold) & self.calibrates)


def set_rows_aside(
    label: NDArray[np.intp],
    share: float,
    rng: np.random.Generator,
    *,
    person: NDArray[np.intp] | None = None,
    time: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on, and rows to hold out of everything: a simple random sample, or the last ones where time counts.

    Not class by class: what is promised for the population holds only if every row has the same chance to be in the
    sample, and rounding would leave rare classes out. All rows of a person are on the same side. Where one class only
    would be left to train on, no row is set aside.
    """
    unit = np.arange(len(label)) if person is None else np.unique(person, return_inverse=True)[1]
    n_units = int(unit.max(initial=-1)) + 1
    order = rng.permutation(n_units)  # Drawn in any case: later draws do not depend on whether there is a time.
    if time is not None:
        order = np.argsort(-_latest(unit, time), kind="stable")
    is_held_out = np.zeros(n_units, bool)
    is_held_out[order[: round(n_units * share)]] = True
    held_out, training = np.flatnonzero(is_held_out[unit]), np.flatnonzero(~is_held_out[unit])
    if len(np.unique(label[training])) < 2:
        return np.arange(len(label)), held_out[:0]
    return training, held_out


def _latest(unit: NDArray[np.intp], time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time of the last row of each unit."""
    latest = np.full(int(unit.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(latest, unit, time)
    return latest
