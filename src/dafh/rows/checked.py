"""The container of checked rows that both estimators work on."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets

from dafh.checks import check_features, check_known_labels, check_table, check_weights
from dafh.classifiers.fitting import FEWEST_ROWS_TO_SPLIT
from dafh.exceptions import InputError
from dafh.frames import Table, check_sensitive_features, is_frame, take_rows

_NO_NUMBERS = np.empty((0, 0))


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

    @classmethod
    def check(
        cls,
        estimator: BaseEstimator,
        X: Table,
        y: ArrayLike,
        *,
        classes: NDArray[Any] | None = None,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Table | None = None,
    ) -> Self:
        """Check rows to train on; rows of weight 0 are left out.

        Parameters
        ----------
        estimator : estimator
            Remembers the number and names of the columns, as scikit-learn's estimators do.
        classes : array, optional
            Labels that a fitted pooled classifier knows; by default those that occur.
        """
        values, labels = check_features(estimator, X, y, reset=True)
        weight = check_weights(sample_weight, len(values))
        attributes = check_sensitive_features(sensitive_features, len(values))
        return cls._labelled(X if is_frame(X) else values, labels, classes, weight, X=values, attributes=attributes)

    @classmethod
    def _labelled(
        cls,
        given: Any,
        labels: NDArray[Any],
        classes: NDArray[Any] | None,
        weight: NDArray[np.float64],
        *,
        X: NDArray[Any] | None = None,
        attributes: pd.DataFrame | None = None,
    ) -> Self:
        check_classification_targets(labels)
        counted = np.flatnonzero(weight > 0)
        present = np.unique(labels[counted])
        if len(present) < 2:
            raise InputError(
                f"y holds one class only ({present.tolist()[0]!r}): at least two classes are needed to learn anything."
            )
        classes = present if classes is None else np.unique(classes)
        unknown = np.setdiff1d(present, classes)
        if len(unknown):
            raise InputError(f"y holds classes that the fitted pooled classifier does not know: {unknown.tolist()}.")
        label = np.searchsorted(classes, labels)  # Meaningless for rows that do not count; they are left out below.
        rows = cls(_NO_NUMBERS if X is None else X, given, label, classes, weight, attributes)
        return rows if len(counted) == len(label) else rows.take(counted)

    @classmethod
    def check_table(
        cls,
        estimator: BaseEstimator,
        X: Table,
        y: ArrayLike,
        *,
        classes: NDArray[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Check a table of any kind to train on, like `check`."""
        table, labels = check_table(estimator, X, y, reset=True)
        return cls._labelled(_as_given(X, table), labels, classes, check_weights(sample_weight, len(table)))

    @classmethod
    def check_more_of_table(
        cls, estimator: BaseEstimator, X: Table, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Check a labelled table for an estimator that knows its columns and classes."""
        table, _ = check_table(estimator, X, reset=False)
        check_known_labels(y, estimator.classes_, len(table))
        label = np.searchsorted(estimator.classes_, np.asarray(y))
        weight = check_weights(sample_weight, len(table))
        return cls(_NO_NUMBERS, _as_given(X, table), label, estimator.classes_, weight)

    @classmethod
    def check_more(
        cls,
        estimator: BaseEstimator,
        X: Table,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Table | None = None,
    ) -> Self:
        """Check labelled rows for an estimator that knows its columns and classes, such as those for the guard."""
        values = check_features(estimator, X, reset=False)
        check_known_labels(y, estimator.classes_, len(values))
        label = np.searchsorted(estimator.classes_, np.asarray(y))
        weight = check_weights(sample_weight, len(values))
        attributes = check_sensitive_features(sensitive_features, len(values))
        return cls(values, X if is_frame(X) else values, label, estimator.classes_, weight, attributes)

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
        )

    def with_numbers(self, X: NDArray[Any]) -> Self:
        """Return the rows with their features as numbers."""
        return replace(self, X=X)

    def merge_repeated(self) -> Self:
        """Replace equal rows of a tiny data set by one with their total weight, in sorted order.

        Where all rows fit into one batch, a weight of 2 then means exactly what a row given twice means, and the order
        of the rows means nothing.
        """
        table = np.column_stack([self.X, self.label])
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
        if len(first) >= FEWEST_ROWS_TO_SPLIT:
            return self  # Rows can be held out, and a merged row would be in one fold with all its weight.
        return replace(self.take(first), weight=np.bincount(inverse, self.weight).astype(np.float64))


def _as_given(X: Table, table: pd.DataFrame) -> Any:
    """Return a frame as it is, everything else as an array of numbers."""
    return table if is_frame(X) else table.to_numpy()
