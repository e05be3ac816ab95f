"""Predictions reduced to which classifier is right on which row, and what that says about two classifiers."""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
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
        attributes = {"sensitive_features": sensitive_features} if takes_attributes else {}
        groups = model.predict_group(X, **attributes)
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
        arrays = {"y": y, "predictions": predictions, "groups": groups, "pooled": pooled}
        y, predictions, groups, pooled = (as_array(values, name) for name, values in arrays.items())
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
        no_rows = np.zeros((0, n_groups + 1), bool)
        own, group = np.arange(n_groups), np.zeros(0, np.intp)
        return cls(no_rows, no_rows[:, 1:], group, own, np.zeros(0), positive=np.zeros(0, bool))

    def take(self, chosen: NDArray[Any]) -> "ComparedRows":
        """Some of the rows; attributes, which are the guard's, are left behind."""
        names = ("right", "differ", "group", "weight", "positive", "person", "log_gain")
        columns: dict[str, Any] = {name: getattr(self, name) for name in names}
        chosen_rows: dict[str, Any] = {
            name: None if values is None else values[chosen] for name, values in columns.items()
        }
        return replace(self, attributes=None, **chosen_rows)

    @property
    def own_right(self) -> NDArray[np.bool_]:
        """Whether the classifier that serves a row is right on it, (n,)."""
        return self.right[np.arange(len(self.right)), self.own[self.group]]

    @cached_property
    def size(self) -> NDArray[np.float64]:
        """Weight of each row in tests, (n,): of very many different weights, neighbours have been put together."""
        return _few_sizes(self.weight)

    def harm(self, loss: Loss, own_right: NDArray[np.bool_], rival_right: NDArray[np.bool_] | None = None) -> "RowHarm":
        """Loss of some decisions minus that of a rival's, for every row; without a rival, the loss itself.

        The loss itself is the harm beside a rival that is never wrong.
        """
        stake, counted = loss.stakes(self.positive, len(self.group))
        size = self.size * counted
        difference = size * stake * ((1.0 if rival_right is None else rival_right) - own_right.astype(np.float64))
        units = size if self.person is None else np.bincount(self.person, size)
        # The bound is that of all rows: a heavier one may be drawn next where a group has none so far.
        largest = max(float(units.max(initial=0.0)), self.largest_weight / self.weight_unit)
        margin = None if rival_right is None else 0.0
        return RowHarm(loss.name, difference, size, self.person, loss.worst, largest or 1.0, margin)

    def mean_loss(
        self, loss: Loss, right: NDArray[np.bool_], group: NDArray[np.integer], n_groups: int
    ) -> NDArray[np.float64]:
        """Mean loss of decisions in each group of rows, (n_groups,); NaN for an empty group."""
        stake, counted = loss.stakes(self.positive, len(self.group))
        total = np.bincount(group, self.weight * counted, minlength=n_groups)
        with np.errstate(invalid="ignore"):
            return np.bincount(group, self.weight * stake * ~right, minlength=n_groups) / total

    def losses_by_group(
        self,
        loss: Loss,
        own_right: NDArray[np.bool_],
        rival_right: NDArray[np.bool_],
        group: NDArray[np.integer],
        n_groups: int,
    ) -> pd.DataFrame:
        """One row for each group of rows: n, the rows that count for the loss, own_loss and rival_loss."""
        counted = loss.stakes(self.positive, len(self.group))[1] & (self.weight > 0)
        return pd.DataFrame(
            {
                "n": np.bincount(group[counted], minlength=n_groups),
                "own_loss": self.mean_loss(loss, own_right, group, n_groups),
                "rival_loss": self.mean_loss(loss, rival_right, group, n_groups),
            }
        )


@dataclass(frozen=True, eq=False)
class RowHarm:
    """What each row says about one question: a loss that two models differ in, or the loss of one model.

    All tests and limits rest on it: rows are put together into groups, and a person's rows in a group into one unit.

    Examples
    --------
    Of four rows in two groups, the decisions lose one, and win another, that their rival decides the other way.

    >>> harm = RowHarm("error", difference=np.array([1.0, 0.0, 0.0, -1.0]), size=np.ones(4))
    >>> harm.by_group(np.array([0, 0, 1, 1]), 2).harm
    array([ 0.5, -0.5])
    """

    name: str
    difference: NDArray[np.float64]
    """Weight × (loss − loss to compare with), (n,); above 0 for harm."""
    size: NDArray[np.float64]
    """Weight of each row that counts, 0 for others, (n,)."""
    person: NDArray[np.intp] | None = None
    worst: float = 1.0
    """Largest loss of a row of weight 1."""
    largest: float = 1.0
    """Largest size of a unit."""
    margin: float | None = 0.0
    """Harm that is tolerated in a search; None for that of everybody, as the other half of the rows shows it."""

    @cached_property
    def _kinds(self) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        return _kinds_of_units(self.difference, self.size)

    def by_group(self, group: NDArray[np.integer], n_groups: int) -> Differences:
        """Differences among the rows of each group, one question for each."""
        if self.person is None:
            kinds, kind = self._kinds
        else:  # A person with rows in several groups is a unit in each of them.
            unit = group * (int(self.person.max(initial=0)) + 1) + self.person
            _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
            unit_difference, unit_size = (
                np.bincount(unit, values).astype(np.float64) for values in (self.difference, self.size)
            )
            (kinds, kind), group = _kinds_of_units(unit_difference, unit_size), group[first]
        counts = np.bincount(group * len(kinds) + kind, minlength=n_groups * len(kinds)).reshape(n_groups, len(kinds))
        is_unit = kinds[:, 1] > 0
        differences = Differences(
            kinds[is_unit, 0], kinds[is_unit, 1], counts[:, is_unit].astype(np.float64), self.worst, self.largest
        )
        return differences.take(np.arange(n_groups))

    def among(self, masks: Iterable[NDArray[np.bool_]]) -> Differences:
        """Differences among the rows of each mask, (n,), one question for each; rows may be in several."""
        questions = [self.by_group(mask.astype(np.intp), 2).take(np.array([1])) for mask in masks]
        return Differences.joined(questions, self.worst, self.largest)

    def mean(self, rows: NDArray[Any]) -> float:
        """Mean harm of some rows."""
        total = self.size[rows].sum()
        return float(self.difference[rows].sum() / total) if total > 0 else np.nan


def _kinds_of_units(
    difference: NDArray[np.float64], size: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Different pairs of difference and size, sorted, (V, 2), and the number of each unit's pair, (n,)."""
    # A hash table of complex numbers is ten times as fast as sorting the pairs. Adding 0 makes −0 the same as 0.
    kind, kinds = pd.factorize(difference + 0.0 + 1j * size)
    order = np.argsort(kinds)
    kinds = kinds[order]
    return np.column_stack([kinds.real, kinds.imag]), np.argsort(order)[kind]


def check_largest_weight(largest: float | None, weight: NDArray[np.float64]) -> None:
    """Refuse a largest weight that is none."""
    if largest is not None and not (is_real(largest) and weight.max(initial=0.0) <= largest < np.inf and largest > 0):
        raise InputError(
            f"largest_weight must be a number not below the largest sample_weight, {weight.max(initial=0.0):g}; got "
            f"{shown(largest)}."
        )


def _few_sizes(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights, those that are nearly alike replaced by their mean, so that there are few different ones."""
    sizes, position, counts = np.unique(weight, return_inverse=True, return_counts=True)
    if len(sizes) <= _MOST_SIZES:
        return weight
    # Bins of equal width in the logarithm, so that large weights, which decide most, stay apart.
    positive = sizes > 0
    # Down to a millionth of the largest: over a single weight of 1e-300, all others would share a few bins.
    edges = np.geomspace(max(sizes[positive].min(), _SMALLEST_SIZE * sizes.max()), sizes.max(), _MOST_SIZES)
    bins = np.where(positive, np.searchsorted(edges, sizes), -1) + 1
    total, number = np.bincount(bins, sizes * counts), np.bincount(bins, counts)
    return (total / np.maximum(number, 1))[bins][position]


def _positive(
    y: NDArray[Any], predictions: NDArray[Any], pooled: NDArray[Any], classes: ArrayLike | None
) -> NDArray[np.bool_] | None:
    if classes is None:
        labels = [np.unique(y), np.unique(pooled), np.unique(predictions)]
        classes = np.unique(np.concatenate([values for values in labels if values.size]))
    class_names = np.asarray(classes)
    return y == class_names[1] if len(class_names) == 2 else None


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
