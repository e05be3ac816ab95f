"""Predictions reduced to which classifier is right on which row, and what that says about two classifiers."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_consistent_length

from dafh.classifiers import GroupModel, split_pipeline
from dafh.evaluation.losses import Loss
from dafh.exceptions import InputError
from dafh.frames import Table, check_attributes
from dafh.stats import Differences
from dafh.text import shown
from dafh.validation import as_array, check_labels, check_persons, check_weights, is_real

# Of more different weights than this, neighbours are put together: tests take time for each of them.
_MOST_SIZES = 400
_SMALLEST_SIZE = 1e-6
Tally = tuple[NDArray[np.float64], NDArray[np.float64]]


class PairedDecisions(NamedTuple):
    """What two classifiers decide about rows, as positions of classes."""

    group: NDArray[np.intp]
    """The number of groups stands for rows that belong to none."""
    own: NDArray[np.intp]
    """By the classifier that was asked for the row's group."""
    pooled: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class ServedPredictions:
    """What a fitted model of this package predicts for some rows, in the form that metrics and audit take.

    Examples
    --------
    >>> from dafh import DecoupledClassifier
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(500, random_state=0)
    >>> model = DecoupledClassifier(random_state=0).fit(data.X, data.y)
    >>> ServedPredictions.of(model, data.X).predictions.shape
    (500, 2)
    """

    predictions: NDArray[Any]
    """Labels by each classifier that serves at least one group, (n, M), without the pooled one."""
    groups: NDArray[np.intp]
    """Group of each row, (n,)."""
    pooled: NDArray[Any]
    """Labels by the pooled classifier, (n,)."""
    own: NDArray[np.intp]
    """Column that serves each group, (G,); M for the pooled classifier."""
    classifiers: list[int]
    """The model's number for the classifier in each column, M of them."""

    @classmethod
    def of(cls, model: GroupModel, X: Table, sensitive_features: Table | None = None) -> "ServedPredictions":
        """Ask a fitted model, or the pipeline that ends in one."""
        model, X = split_pipeline(model, X)
        if not hasattr(model, "predict_all"):
            raise InputError(
                "A fitted DAFHClassifier or DecoupledClassifier is needed, or a pipeline that ends in one, not a "
                f"{type(model).__name__}."
            )
        labels = model.predict_all(X)
        takes_attributes = "sensitive_features" in inspect.signature(model.predict_group).parameters
        known = {"sensitive_features": sensitive_features} if takes_attributes else {}
        groups = model.predict_group(X, **known)
        # Column k of predict_all is the classifier that serves group k, so one that serves several groups is there
        # several times. Each is taken once: a group cannot envy itself, and every copy would cost power in the audit.
        classifiers, first, column = np.unique(model.serves_, return_index=True, return_inverse=True)
        chosen = classifiers < model.n_groups_
        # Rows of no known group (an unseen attribute value) are numbered after the groups; the pooled one serves them.
        ungrouped = [int(chosen.sum())] * (int(groups.max(initial=0)) + 1 - model.n_groups_)
        return cls(
            predictions=labels[:, first[chosen]],
            groups=groups,
            pooled=labels[:, -1],
            own=np.append(column, ungrouped).astype(np.intp),
            classifiers=classifiers[chosen].tolist(),
        )


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """Checked predictions of M classifiers and a pooled one, reduced to which of them is right on which row.

    Examples
    --------
    >>> rows = ComparedRows.check(y=["a", "b"], predictions=[["a"], ["a"]], groups=[0, 0], pooled=["b", "b"])
    >>> rows.right
    array([[ True, False],
           [False,  True]])
    >>> rows.flagged
    array([[False,  True],
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
    positive: NDArray[np.bool_] | None = None
    """Whether the true label is the positive class, (n,); None where there are not two classes."""
    person: NDArray[np.intp] | None = None
    """Number of the person a row belongs to, (n,); None where every row is a person of its own."""
    attributes: pd.DataFrame | None = None
    """Declared attributes of the rows, for the guard."""
    log_gain: NDArray[np.float64] | None = None
    """Log-loss of the pooled classifier minus that of the group's own one, (n,); None where nothing is known of it."""
    honest_share: float = 1.0
    """Share of the gain on these rows that fresh rows will show; less than 1 where the groups have seen the rows."""
    weight_unit: float = 1.0
    """Weight of the heaviest row as it was given."""
    largest_weight: float = 0.0
    """Largest weight of a row in the population, or of all rows of a person, as given; 0 where nobody has said it."""

    @classmethod
    def check(
        cls,
        y: ArrayLike,
        predictions: ArrayLike,
        groups: ArrayLike,
        pooled: ArrayLike,
        own: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        persons: ArrayLike | None = None,
        attributes: Table | None = None,
        largest_weight: float | None = None,
    ) -> "ComparedRows":
        """Validate arrays; the parameters are those of `PreferenceMatrix.from_predictions`.

        Parameters
        ----------
        classes : array of labels, optional
            Of two classes, the second is the positive one; by default those that occur, sorted.
        persons : array of shape (n,), optional
            Identifier of the person that each row belongs to.
        attributes : data frame with n rows, optional
            Attributes that define declared groups.
        largest_weight : float, optional
            Largest weight of a row in the population, or of all rows of a person; by default the largest given.
        """
        given = {"y": y, "predictions": predictions, "groups": groups, "pooled": pooled}
        y, predictions, groups, pooled = (as_array(values, name) for name, values in given.items())
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
        weight = check_weights(sample_weight, len(y))
        check_largest_weight(largest_weight, weight)
        return cls(
            right=np.column_stack([predictions == y[:, None], pooled == y]),
            differ=predictions != pooled[:, None],
            group=groups,
            own=own,
            # Only ratios of weights matter. With the largest at 1, squares neither overflow nor vanish.
            weight=weight / weight.max(),
            positive=_positive(y, predictions, pooled, classes),
            person=check_persons(persons, len(y)),
            attributes=None if attributes is None else check_attributes(attributes, len(y)),
            weight_unit=float(weight.max()),
            largest_weight=largest_weight or 0.0,
        )

    @classmethod
    def none(cls, n_groups: int) -> "ComparedRows":
        """No rows at all, of K groups with a classifier each."""
        nothing = np.zeros((0, n_groups + 1), bool)
        own, group = np.arange(n_groups), np.zeros(0, np.intp)
        return cls(nothing, nothing[:, 1:], group, own, np.zeros(0), positive=np.zeros(0, bool))

    def take(self, chosen: NDArray[Any]) -> "ComparedRows":
        """Some of the rows; attributes, which are the guard's, are left behind."""
        names = ("right", "differ", "group", "weight", "positive", "person", "log_gain")
        parts: dict[str, Any] = {name: getattr(self, name) for name in names}
        taken: dict[str, Any] = {name: None if one is None else one[chosen] for name, one in parts.items()}
        return replace(self, attributes=None, **taken)

    @property
    def own_right(self) -> NDArray[np.bool_]:
        """Whether the classifier that serves a row is right on it, (n,)."""
        return self.right[np.arange(len(self.right)), self.own[self.group]]

    @property
    def flagged(self) -> NDArray[np.bool_] | None:
        """Whether classifier j predicts the positive class for row i, (n, M + 1); None without two classes."""
        return None if self.positive is None else self.right == self.positive[:, None]

    def compare(self, loss: Loss, pairs: Sequence[tuple[int, int, int]]) -> Differences:
        """Differences of two classifiers in a group, for each of Q questions.

        Parameters
        ----------
        loss : Loss
        pairs : sequence of (group, own classifier, rival)
        """
        units = LossUnits.of(self, loss)
        members = [np.flatnonzero(self.group == g) for g in range(len(self.own))]
        blocks = []
        # All rivals of a classifier together: one by one, the 90,000 questions about 300 groups took 20 s to count.
        for (g, own), same in groupby(pairs, key=lambda pair: pair[:2]):
            rows, rivals = members[g], [rival for _, _, rival in same]
            blocks.append(units.tally_all(rows, self.right[rows, own][:, None], self.right[np.ix_(rows, rivals)]))
        return units.differences(blocks)


@dataclass(frozen=True, eq=False)
class LossUnits:
    """What is at stake on each row for one loss, and how rows are put together into units."""

    loss: Loss
    stake: NDArray[np.float64]
    """Weight of each row times what a wrong decision on it costs, (n,)."""
    size: NDArray[np.float64]
    """Weight of each row that counts, 0 for others, (n,)."""
    person: NDArray[np.intp] | None
    largest: float
    """Largest size of a unit."""

    @classmethod
    def of(cls, rows: ComparedRows, loss: Loss) -> "LossUnits":
        """Look at rows with the eyes of a loss."""
        stake, counted = loss.stakes(rows.positive, len(rows.group))
        weight = _few_sizes(rows.weight) * counted
        sizes = weight if rows.person is None else _sums(rows.person, weight)
        # The bound is that of all rows: a heavier one may be drawn next where this group has none so far.
        largest = max(float(sizes.max(initial=0.0)), rows.largest_weight / rows.weight_unit)
        return cls(loss, weight * stake, weight, rows.person, largest or 1.0)

    def tally(self, rows: NDArray[np.intp], own_right: NDArray[np.bool_], rival_right: NDArray[np.bool_]) -> Tally:
        """Kinds of units among some rows, (V, 2) as difference and size, and the number of each kind, (V,)."""
        difference = self.stake[rows] * (rival_right.astype(np.float64) - own_right)
        size = self.size[rows]
        if self.person is not None:
            _, unit = np.unique(self.person[rows], return_inverse=True)
            return count_kinds(_sums(unit, difference), _sums(unit, size))
        return count_kinds(difference, size)

    def tally_all(self, rows: NDArray[np.intp], own_right: NDArray[np.bool_], rival_right: NDArray[np.bool_]) -> Tally:
        """The same for Q questions about the same rows, (n, Q) each or (n, 1): kinds, (V, 2), and numbers, (Q, V)."""
        own_right, rival_right = np.broadcast_arrays(own_right, rival_right)
        if self.person is not None:
            found = [self.tally(rows, *sides) for sides in zip(own_right.T, rival_right.T, strict=True)]
            return join_kinds(found)
        counted = self.size[rows] > 0
        kinds, kind = np.unique((self.stake + 1j * self.size)[rows[counted]], return_inverse=True)
        at = csr_array((np.ones(len(kind)), (kind, np.arange(len(kind)))), (len(kinds), len(kind)))
        worse, better = (rival_right & ~own_right)[counted], (own_right & ~rival_right)[counted]
        n_worse, n_better = at @ worse.astype(np.float32), at @ better.astype(np.float32)
        neither = np.bincount(kind)[:, None] - n_worse - n_better
        stakes = np.concatenate([kinds.real, -kinds.real, np.zeros(len(kinds))])
        return np.column_stack([stakes, np.tile(kinds.imag, 3)]), np.vstack([n_worse, n_better, neither]).T

    def differences(self, questions: Sequence[Tally]) -> Differences:
        """Put questions on one list of kinds of units."""
        kinds, counts = join_kinds(questions)
        return Differences(kinds[:, 0], kinds[:, 1], counts, self.loss.worst, self.largest)


def check_largest_weight(largest: float | None, weight: NDArray[np.float64]) -> None:
    """Refuse a largest weight that is none."""
    if largest is not None and not (is_real(largest) and weight.max(initial=0.0) <= largest < np.inf and largest > 0):
        raise InputError(
            f"largest_weight must be a number not below the largest sample_weight, {weight.max(initial=0.0):g}; got "
            f"{shown(largest)}."
        )


def join_kinds(questions: Sequence[Tally]) -> Tally:
    """Put questions on one list of kinds, (V, 2), with the number of each, (Q, V), without kinds that nobody has."""
    if not questions:
        return np.zeros((0, 2)), np.zeros((0, 0))
    blocks = [(kinds, np.atleast_2d(counts)) for kinds, counts in questions]
    kinds, place = np.unique(np.concatenate([kinds for kinds, _ in blocks]), axis=0, return_inverse=True)
    counts = np.zeros((sum(len(counts) for _, counts in blocks), len(kinds)))
    question = first = 0
    for own_kinds, numbers in blocks:
        last = first + len(own_kinds)
        for column, number in zip(place.ravel()[first:last], numbers.T, strict=True):  # Two may be one: −0 and 0.
            counts[question : question + len(numbers), column] += number
        question, first = question + len(numbers), last
    there = counts.any(axis=0)
    return kinds[there], counts[:, there]


def count_kinds(
    difference: NDArray[np.float64], size: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Different pairs of difference and size, (V, 2), and how often each occurs; units of size 0 are left out."""
    counted = size > 0
    # Complex numbers sort by both parts, and much faster than lines of an array.
    kinds, counts = np.unique(difference[counted] + 1j * size[counted], return_counts=True)
    return np.column_stack([kinds.real, kinds.imag]), counts.astype(np.float64)


def _sums(unit: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of the values of each unit."""
    return np.bincount(unit, values).astype(np.float64)


def _few_sizes(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights, those that are nearly alike replaced by their mean, so that there are few different ones."""
    sizes, place, counts = np.unique(weight, return_inverse=True, return_counts=True)
    if len(sizes) <= _MOST_SIZES:
        return weight
    # Bins of equal width in the logarithm, so that large weights, which decide most, stay apart.
    positive = sizes > 0
    # Down to a millionth of the largest: over a single weight of 1e-300, all others would share a few bins.
    edges = np.geomspace(max(sizes[positive].min(), _SMALLEST_SIZE * sizes.max()), sizes.max(), _MOST_SIZES)
    bins = np.where(positive, np.searchsorted(edges, sizes), -1) + 1
    total, number = np.bincount(bins, sizes * counts), np.bincount(bins, counts)
    return (total / np.maximum(number, 1))[bins][place]


def _positive(
    y: NDArray[Any], predictions: NDArray[Any], pooled: NDArray[Any], classes: ArrayLike | None
) -> NDArray[np.bool_] | None:
    if classes is None:
        parts = [np.unique(y), np.unique(pooled), np.unique(predictions)]
        classes = np.unique(np.concatenate([part for part in parts if part.size]))
    known = np.asarray(classes)
    return y == known[1] if len(known) == 2 else None


def _check_groups(
    n_models: int, groups: NDArray[Any], own: ArrayLike | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Validate the group of each row and the classifier of each group; by default, classifier k serves group k."""
    served_by = np.arange(n_models) if own is None else as_array(own, "own")
    if served_by.ndim != 1 or not len(served_by):
        raise InputError(f"own must have one entry per group, got shape {served_by.shape}.")
    if not np.issubdtype(groups.dtype, np.integer) or groups.min() < 0 or groups.max() >= len(served_by):
        raise InputError(f"groups must be integers from 0 to {len(served_by) - 1}, one per sample.")
    if not np.issubdtype(served_by.dtype, np.integer) or served_by.min() < 0 or served_by.max() > n_models:
        raise InputError(f"own must name a classifier from 0 to {n_models} (the pooled one) for every group.")
    return served_by.astype(np.intp), groups.astype(np.intp, copy=False)


def mean_loss(
    rows: ComparedRows, loss: Loss, wrong: NDArray[np.bool_], cell: NDArray[np.integer], n_cells: int
) -> NDArray[np.float64]:
    """Mean loss of each cell, (n_cells,), of decisions that are wrong where `wrong` says so; NaN for an empty cell."""
    stake, counted = loss.stakes(rows.positive, len(rows.group))
    total = np.bincount(cell, rows.weight * counted, minlength=n_cells)
    with np.errstate(invalid="ignore"):
        return np.bincount(cell, rows.weight * stake * wrong, minlength=n_cells) / total
