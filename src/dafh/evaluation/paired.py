"""Rows reduced to which classifier is right on which row, and the counts that every paired test needs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from dafh.checks import check_labels, check_weights
from dafh.evaluation.equality import EqualByValue
from dafh.exceptions import InputError

# The counts are matrix products of floating point numbers. Converting this many rows at a time instead of all of them
# saves eight times the memory of the comparisons, and is no slower.
_BLOCK_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class PairedCounts(EqualByValue):
    """For each group, how many rows separate each pair of classifiers.

    Rows of equal weight count once each. Rows of unequal weight count with Kish's effective number of rows: the number
    of equally weighted rows that would carry as much information.

    Examples
    --------
    Four rows of one group. Its own classifier is right on three of them and the pooled one on two.

    >>> rows = ComparedRows.check(y=[1, 1, 1, 1], predictions=[[1], [1], [1], [0]], groups=[0] * 4, pooled=[1, 0, 0, 1])
    >>> counts = rows.paired_counts()
    >>> counts.beats[0]
    array([[0., 2.],
           [1., 0.]])
    >>> counts.errors
    array([[0.25, 0.5 ]])
    """

    beats: NDArray[np.float64]
    """Rows of group g that classifier i gets right and j gets wrong, (G, M + 1, M + 1); the pooled one is last."""
    n_rows: NDArray[np.float64]
    """Rows of each group, (G,)."""
    n_wrong: NDArray[np.float64]
    """Rows of group g that classifier i gets wrong, (G, M + 1)."""

    @classmethod
    def zero(cls, n_groups: int, n_models: int) -> "PairedCounts":
        """Counts of no rows at all, to add others to."""
        shape = (n_groups, n_models + 1)
        return cls(np.zeros((*shape, n_models + 1)), np.zeros(n_groups), np.zeros(shape))

    def plus(self, other: "PairedCounts") -> "PairedCounts":
        """Add the counts of other rows, such as those of the next fold."""
        return PairedCounts(self.beats + other.beats, self.n_rows + other.n_rows, self.n_wrong + other.n_wrong)

    def pair(
        self, own: NDArray[np.intp], rival: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """For each group, the rows on which `own` does worse than `rival`, those on which it does better, and all.

        These are b, c and n of `dafh.stats`.
        """
        every = np.arange(len(self.n_rows))
        return self.beats[every, rival, own], self.beats[every, own, rival], self.n_rows

    @property
    def errors(self) -> NDArray[np.float64]:
        """Error rate of every classifier on every group, (G, M + 1); NaN for an empty group."""
        with np.errstate(invalid="ignore"):
            return self.n_wrong / self.n_rows[:, None]


@dataclass(frozen=True, eq=False)
class ComparedRows(EqualByValue):
    """Checked predictions of M classifiers and a pooled one, reduced to which of them is right on which row.

    Examples
    --------
    >>> rows = ComparedRows.check(y=["a", "b"], predictions=[["a"], ["a"]], groups=[0, 0], pooled=["b", "b"])
    >>> rows.right
    array([[ True, False],
           [False,  True]])
    """

    right: NDArray[np.bool_]
    """Whether classifier j is right on row i, (n, M + 1); the pooled classifier is last."""
    differ: NDArray[np.bool_]
    """Whether classifier j and the pooled one predict different labels, (n, M)."""
    group: NDArray[np.intp]
    """Group of each row, (n,)."""
    own: NDArray[np.intp]
    """Column of the classifier that serves each group, (G,)."""
    weight: NDArray[np.float64]
    """Weight of each row, (n,); the largest is 1."""

    @classmethod
    def check(
        cls,
        y: ArrayLike,
        predictions: ArrayLike,
        groups: ArrayLike,
        pooled: ArrayLike,
        own: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "ComparedRows":
        """Validate arrays; the parameters are those of `PreferenceMatrix.from_predictions`."""
        y, predictions, groups, pooled = (np.asarray(values) for values in (y, predictions, groups, pooled))
        if predictions.ndim != 2:
            raise InputError(
                "predictions must have one row per sample and one column per classifier, "
                f"got shape {predictions.shape}."
            )
        for name, values in {"y": y, "groups": groups, "pooled": pooled}.items():
            if values.ndim != 1:
                raise InputError(f"{name} must have one entry per sample, got shape {values.shape}.")
        check_consistent_length(y, predictions, groups, pooled)
        if not len(y):
            raise InputError("There are no rows to compare predictions on.")
        # A model whose groups are all served by the pooled classifier has no column of its own.
        check_labels(y, [predictions, pooled] if predictions.size else [pooled])
        own, groups = _check_groups(predictions.shape[1], groups, own)
        right = np.column_stack([predictions == y[:, None], pooled == y])
        weight = check_weights(sample_weight, len(y))
        # Only ratios of weights matter. With the largest at 1, squares neither overflow nor vanish.
        return cls(right, predictions != pooled[:, None], groups, own, weight / weight.max())

    @property
    def own_right(self) -> NDArray[np.bool_]:
        """Whether the classifier that serves a row is right on it, (n,)."""
        return self.right[np.arange(len(self.right)), self.own[self.group]]

    def paired_counts(self) -> PairedCounts:
        """Count, for each group, the rows that separate each pair of classifiers."""
        n_groups, n_models = len(self.own), self.right.shape[1]
        n_rows, per_weight = _effective_rows(self.group, self.weight, n_groups)
        beats, wrong = np.zeros((n_groups, n_models, n_models)), np.zeros((n_groups, n_models))
        for first in range(0, len(self.right), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            right, group = self.right[block].astype(np.float64), self.group[block]
            weight = self.weight[block, None] * per_weight[group, None]
            for g in np.unique(group):
                members = right[group == g]
                missed = weight[group == g] * (1.0 - members)
                beats[g] += members.T @ missed
                wrong[g] += missed.sum(axis=0)
        return PairedCounts(beats, n_rows, wrong)


def _effective_rows(
    group: NDArray[np.intp], weight: NDArray[np.float64], n_groups: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Kish's effective number of rows of each group, (Σw)² / Σw², and how many of them a weight of 1 stands for."""
    total = np.bincount(group, weight, minlength=n_groups)
    squares = np.bincount(group, weight**2, minlength=n_groups)
    per_weight = np.divide(total, squares, out=np.zeros(n_groups), where=squares > 0)
    return total * per_weight, per_weight


def _check_groups(
    n_models: int, groups: NDArray[Any], own: ArrayLike | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Validate the group of each row and the classifier of each group; by default, classifier k serves group k."""
    served_by = np.arange(n_models) if own is None else np.asarray(own)
    if not np.issubdtype(groups.dtype, np.integer) or groups.min() < 0 or groups.max() >= len(served_by):
        raise InputError(f"groups must be integers from 0 to {len(served_by) - 1}, one per sample.")
    if not np.issubdtype(served_by.dtype, np.integer) or served_by.min() < 0 or served_by.max() > n_models:
        raise InputError(f"own must name a classifier from 0 to {n_models} (the pooled one) for every group.")
    return served_by.astype(np.intp), groups.astype(np.intp, copy=False)
