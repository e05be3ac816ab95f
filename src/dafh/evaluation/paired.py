"""Rows reduced to who is right on which, and the counts behind every paired test."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from dafh.checks import check_labels, check_weights
from dafh.exceptions import InputError

# Rows at a time where products of floating point numbers are taken: a million rows need no copy of their own.
_BLOCK_ROWS = 65_536


class PairedCounts(NamedTuple):
    """What the rows of each group say about every pair of classifiers.

    Rows count once each; rows of unequal weight count with their effective number (Kish), so that a group has as many
    rows as equal weights would need to say as much.
    """

    beats: NDArray[np.float64]
    """Rows of group g that classifier i gets right and j wrong, (G, M + 1, M + 1); the pooled one is last."""
    n_rows: NDArray[np.float64]
    """Rows of each group, (G,)."""
    n_wrong: NDArray[np.float64]
    """Rows of group g that classifier i gets wrong, (G, M + 1)."""

    @classmethod
    def zero(cls, n_groups: int, n_models: int) -> "PairedCounts":
        """Counts of no rows at all."""
        shape = (n_groups, n_models + 1)
        return cls(np.zeros((*shape, n_models + 1)), np.zeros(n_groups), np.zeros(shape))

    def plus(self, other: "PairedCounts") -> "PairedCounts":
        """Add the counts of other rows."""
        return PairedCounts(*(one + more for one, more in zip(self, other, strict=True)))

    def pair(self, own: NDArray[np.intp], rival: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Rows of each group that say the own classifier is worse, that it is better, and all (b, c and n)."""
        every = np.arange(len(self.n_rows))
        return self.beats[every, rival, own], self.beats[every, own, rival], self.n_rows

    @property
    def errors(self) -> NDArray[np.float64]:
        """Error rate of every classifier on every group; NaN for an empty group."""
        with np.errstate(invalid="ignore"):
            return self.n_wrong / self.n_rows[:, None]


@dataclass(frozen=True)
class ComparedRows:
    """Checked predictions of M classifiers and a pooled one, reduced to who is right on which row."""

    right: NDArray[np.bool_]
    """(n, M + 1), the pooled classifier last."""
    differ: NDArray[np.bool_]
    """Whether classifier j predicts something else than the pooled one, (n, M)."""
    group: NDArray[np.intp]
    own: NDArray[np.intp]
    """Column of the classifier that serves each group, (G,)."""
    weight: NDArray[np.float64]

    @classmethod
    def check(cls, y: Any, predictions: Any, groups: Any, pooled: Any, own: Any, sample_weight: Any) -> "ComparedRows":
        """Validate arrays as `PreferenceMatrix.from_predictions` takes them."""
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
        check_labels(y, [predictions, pooled] if predictions.size else [pooled])
        own, groups = _check_groups(predictions.shape[1], groups, own)
        right = np.column_stack([predictions == y[:, None], pooled == y])
        weight = check_weights(sample_weight, len(y))
        return cls(right, predictions != pooled[:, None], groups, own, weight / weight.max())

    @property
    def own_right(self) -> NDArray[np.bool_]:
        """Whether the classifier that serves a row is right, (n,)."""
        return self.right[np.arange(len(self.right)), self.own[self.group]]

    def paired_counts(self) -> PairedCounts:
        """Count, group by group, the rows that tell each pair of classifiers apart."""
        n_groups, n_models = len(self.own), self.right.shape[1]
        n_rows, per_weight = effective_rows(self.group, self.weight, n_groups)
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


def effective_rows(
    group: NDArray[np.intp], weight: NDArray[np.float64], n_groups: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Effective number of rows of each group, and how many of them a weight of 1 stands for."""
    total = np.bincount(group, weight, minlength=n_groups)
    squares = np.bincount(group, weight**2, minlength=n_groups)
    per_weight = np.divide(total, squares, out=np.zeros(n_groups), where=squares > 0)
    return total * per_weight, per_weight


def _check_groups(n_models: int, groups: NDArray[Any], own: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    own = np.arange(n_models) if own is None else np.asarray(own)
    if not np.issubdtype(groups.dtype, np.integer) or groups.min() < 0 or groups.max() >= len(own):
        raise InputError(f"groups must be integers from 0 to {len(own) - 1}, one per sample.")
    if not np.issubdtype(own.dtype, np.integer) or own.min() < 0 or own.max() > n_models:
        raise InputError(f"own must name a classifier from 0 to {n_models} (the pooled one) for every group.")
    return own.astype(np.intp), groups.astype(np.intp, copy=False)
