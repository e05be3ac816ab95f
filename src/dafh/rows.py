"""The rows of a fit: checked once, in one container, and divided into those that train and those that are held out.

Rows that are not in memory come from `dafh.large`, a sample of them in the same container.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets

from dafh.classifiers import FEWEST_ROWS_TO_SPLIT
from dafh.columns.bins import Binning, named_table
from dafh.columns.encoder import TableEncoder, is_given
from dafh.columns.hashes import row_hashes
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

# ---- held out ----

# Rows held out over all folds that are enough to choose by and to calibrate on; more folds only cost time.
_ENOUGH_ROWS_HELD_OUT = 2000
_MOST_FOLDS = 5


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
        n_folds: int | Literal["auto"],
        rng: np.random.Generator,
        *,
        person: NDArray[np.intp] | None = None,
        time: NDArray[np.float64] | None = None,
    ) -> Self:
        """Hold out a share of the rows in each fold, class by class; the only row of a class always trains.

        Parameters
        ----------
        label : array of shape (n,)
            Position of each row's class.
        selection_size, calibration_size : float
            Shares of the rows that choose the model, and that the guard is calibrated on, in each fold; either may be
            0, and together they must leave rows to train on.
        n_folds : int or "auto"
            No more than the shares allow: a row is held out once at most.
        person : array of shape (n,), optional
            Rows of one person are always held out together, for the same purpose.
        time : array of shape (n,), optional
            There is one fold, and it holds the last rows.
        """
        share = selection_size + calibration_size
        if share >= 1:
            raise InputError(
                f"selection_size ({selection_size:g}) and calibration_size ({calibration_size:g}) leave no rows to "
                "train on: together they must be less than 1."
            )
        if person is not None:
            first, unit = np.unique(person, return_index=True, return_inverse=True)[1:]
            latest = None if time is None else _latest(unit, time)
            drawn = cls.draw(label[first], selection_size, calibration_size, n_folds, rng, time=latest)
            return cls(drawn.fold[unit], drawn.calibrates[unit], drawn.n_folds)
        n_rows = len(label)
        drawn = cls.none(n_rows)
        if n_rows < FEWEST_ROWS_TO_SPLIT or not share:
            return drawn
        fold, calibrates = drawn.fold, drawn.calibrates
        if time is None:
            enough = min(int(np.ceil(_ENOUGH_ROWS_HELD_OUT / (share * n_rows))), _MOST_FOLDS)
            n_drawn = min(enough if n_folds == "auto" else n_folds, int(1 / share + 1e-9))
            # Class by class, so that a rare class is in every fold as often as in the data.
            shuffled = rng.permutation(n_rows)
            classes = [shuffled[label[shuffled] == c] for c in np.unique(label)]
            parts = [rows for rows in classes if len(rows) > 1]
        else:
            n_drawn, last = 1, np.argsort(time, kind="stable")[n_rows - round(n_rows * share) :]
            parts, share = [rng.permutation(last)], 1.0
        for rows in parts:
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
    order = rng.permutation(n_units)
    if time is not None:
        order = np.argsort(-_latest(unit, time), kind="stable")
    is_apart = np.zeros(n_units, bool)
    is_apart[order[: round(n_units * share)]] = True
    apart, kept = np.flatnonzero(is_apart[unit]), np.flatnonzero(~is_apart[unit])
    if len(np.unique(label[kept])) < 2:
        return np.arange(len(label)), apart[:0]
    return kept, apart


def _latest(unit: NDArray[np.intp], time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time of the last row of each unit."""
    latest = np.full(int(unit.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(latest, unit, time)
    return latest


# ---- encoded ----

# A multiple of what a network takes at a time (`dafh.groups.trained`): results are then the same to the last digit.
_BLOCK_ROWS = 8192


class TableView:
    """How a table becomes numbers and bins, learned from training rows without their labels.

    Parameters
    ----------
    encoder : TableEncoder or None
        None where the columns are numbers without gaps, and are taken as they are, or where nothing needs numbers.
    binning : Binning or None
        None where nothing needs bins.
    training : table, optional
        Rows that an encoder is learned from, when somebody asks for it: rules on a scorecard never do, and it would
        take a tenth of a small fit.
    columns : sequence of str, optional
        Features, where tables have further columns, which only the pooled classifier sees.
    """

    # All that there is of a view; a model file holds these.
    _encoder: TableEncoder | None
    binning: Binning | None
    _training: Table | None
    columns: list[str] | None

    def __init__(
        self,
        encoder: TableEncoder | None,
        binning: Binning | None,
        training: Table | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._encoder, self.binning, self._training = encoder, binning, training
        self.columns = None if columns is None else list(columns)

    @classmethod
    def learn(
        cls,
        given: Table,
        weight: NDArray[np.float64],
        binning: Binning | None = None,
        columns: Sequence[str] | None = None,
    ) -> "TableView":
        """Learn from training rows; bins that a classifier has already are shared."""
        features = given if columns is None else to_pandas(given)[list(columns)]
        binning = binning or Binning.learn(features, weight)
        return cls(None, binning, features if binning.needs_encoding(features) else None, columns)

    @property
    def encoder(self) -> TableEncoder | None:
        """What makes numbers of a table."""
        if self._training is not None:
            kinds = None if self.binning is None else self.binning.kinds
            self._encoder, self._training = TableEncoder(kinds).fit(self._training), None
        return self._encoder

    def settled(self) -> "TableView":
        """Return the view without training rows: what nobody has asked for by now is not needed."""
        return TableView(self._encoder, self.binning, columns=self.columns)

    def see(self, given: Table, codes: NDArray[np.uint8] | None = None) -> "SeenRows":
        """Look at rows; what is not asked for is not computed, nor are bins that are known."""
        seen = SeenRows(self, given)
        if codes is not None:
            seen.__dict__["codes"] = codes
        return seen


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows as they were given, with their numbers and bins."""

    view: TableView
    whole: Any
    """A data frame, or an array of numbers."""
    rows: NDArray[np.intp] | None = None
    """Positions of the rows in it; None for all of them."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.whole if self.rows is None else self.rows)

    @cached_property
    def given(self) -> Any:
        """The rows as they were given."""
        return self.whole if self.rows is None else take_rows(self.whole, self.rows)

    @property
    def features(self) -> Any:
        """The same without what only the pooled classifier sees."""
        return self.given if self.view.columns is None else self.given[self.view.columns]

    @cached_property
    def numbers(self) -> NDArray[Any]:
        """All columns as numbers, categories as columns of 0 and 1, (n, p)."""
        if self.view.encoder is not None:
            return self.view.encoder.encode(self.given)
        features = self.features
        values = features.to_numpy(np.float64) if isinstance(features, pd.DataFrame) else np.asarray(features)
        values = values if values.dtype.kind == "f" else values.astype(np.float64)
        # Written so that a gap fails, too.
        if not (np.abs(values) < min(LARGEST_NUMBER, float(np.finfo(values.dtype).max))).all():
            raise InputError("X has missing or infinite values, and had none in fit: fill them before predicting.")
        return values

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """Bin of each row in each column, (n, d)."""
        assert self.view.binning is not None
        return self.view.binning.codes(self.features)

    def blocks(self) -> Iterator["SeenRows"]:
        """Yield the rows in blocks, where their numbers would be a large table: each block's are gone before the next.

        Of 488,420 rows of Adult, the numbers take 400 MB.
        """
        if self.view.encoder is None or "numbers" in self.__dict__ or len(self) <= _BLOCK_ROWS:
            yield self
            return
        for first in range(0, len(self), _BLOCK_ROWS):
            yield self.take(np.arange(first, min(first + _BLOCK_ROWS, len(self))))

    def take(self, rows: NDArray[np.intp]) -> "SeenRows":
        """Return some of the rows, with what is known of them."""
        # Most who ask for some rows want their bins or numbers: some rows of a data frame take longer than all of that.
        part = SeenRows(self.view, self.given, rows)
        for name in ("numbers", "codes"):
            if name in self.__dict__:
                part.__dict__[name] = np.asarray(self.__dict__[name][rows], order="F" if name == "codes" else "C")
        return part


# ---- checked ----

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
