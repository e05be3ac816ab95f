"""Who would rather be served by whom: the preference matrix and every metric that follows from it.

For rows that belong to G groups, M classifiers and one pooled classifier, the preference matrix holds the error rate
of every classifier on every group. A group is *rational* to keep its own classifier if the pooled one is no better
for it, and *envy-free* if no other group's classifier is.

Empty groups have no error rates (NaN), hence no gain, no envy and no violation, and no metric depends on them. Where
nothing is left to compare (a single group cannot envy), the envy gaps are 0.
"""

import inspect
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length

from dafh._validation import check_labels, check_weights
from dafh.exceptions import InputError

__all__ = [
    "PreferenceMatrix",
    "accuracy",
    "disagreement",
    "disparity_change",
    "max_envy_gap",
    "max_gain",
    "min_envy_gap",
    "min_gain",
    "pr_without_harm",
    "violations",
]

# Two error rates this close are the same rate, computed from weights in another order.
_ROUNDING = 1e-12
# Rows at a time where products of floating point numbers are taken: a million rows need no copy of their own.
_BLOCK_ROWS = 65_536


@dataclass(frozen=True)
class PreferenceMatrix:
    """Error rate of every classifier on every group, and the metrics of fairness without harm.

    Build it with `from_predictions`, or with `of` from any fitted model of this package.

    Examples
    --------
    Two groups of two rows; classifier 0 is always right for group 0, the pooled one half of the time.

    >>> matrix = PreferenceMatrix.from_predictions(
    ...     y=[1, 0, 1, 0], predictions=[[1, 0], [0, 0], [0, 1], [0, 1]], groups=[0, 0, 1, 1], pooled=[1, 1, 1, 1]
    ... )
    >>> matrix.errors
    array([[0. , 0.5, 0.5],
           [0.5, 0.5, 0.5]])
    >>> matrix.gains, matrix.violations, matrix.accuracy, matrix.pr_without_harm
    (array([0.5, 0. ]), 0, 0.75, 0.75)
    """

    errors: NDArray[np.float64]
    """Error rate of classifier j on group g, (G, M + 1); the last column is the pooled classifier."""
    sizes: NDArray[np.int64]
    """Number of rows of each group, (G,)."""
    weights: NDArray[np.float64]
    """Share of the total weight of each group, (G,); the share of rows unless weights were given."""
    own: NDArray[np.intp]
    """Column of the classifier that serves each group, (G,)."""
    pr_without_harm: float
    """Share of rows that no other classifier, nor the pooled one, serves better than their own.

    It is 1 minus the probability that the own classifier is wrong and another right, and therefore 1 for copies of
    the pooled classifier: read it beside accuracy, gains, sizes and disagreement.
    """
    disagreement: float
    """Share of rows on which the classifiers, pooled included, do not all predict the same."""

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        predictions: ArrayLike,
        groups: ArrayLike,
        pooled: ArrayLike,
        *,
        own: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "PreferenceMatrix":
        """Compare predictions of any models on the same rows.

        Parameters
        ----------
        y : array of shape (n,)
            True labels of any type.
        predictions : array of shape (n, M)
            Labels predicted by each decoupled classifier, for all rows.
        groups : array of int of shape (n,)
            Group of each row, counted from 0.
        pooled : array of shape (n,)
            Labels predicted by the pooled classifier.
        own : array of int of shape (G,), optional
            Column of `predictions` that serves each group, M for the pooled classifier. By default, classifier k
            serves group k.
        sample_weight : array of shape (n,), optional
            Non-negative row weights.
        """
        compared = ComparedRows.check(y, predictions, groups, pooled, own, sample_weight)
        return cls.from_rows(compared)

    @classmethod
    def from_rows(cls, rows: "ComparedRows") -> "PreferenceMatrix":
        """Build the matrix from rows that were checked before."""
        n_groups = len(rows.own)
        group_weight = np.bincount(rows.group, rows.weight, minlength=n_groups)
        wrong = [np.bincount(rows.group, rows.weight * ~column, minlength=n_groups) for column in rows.right.T]
        with np.errstate(invalid="ignore"):  # 0 / 0: an empty group has no error rate
            errors = np.column_stack(wrong) / group_weight[:, None]
        regret = ~rows.own_right & rows.right.any(axis=1)
        return cls(
            errors=errors,
            sizes=np.bincount(rows.group[rows.weight > 0], minlength=n_groups),
            weights=group_weight / group_weight.sum(),
            own=rows.own,
            pr_without_harm=float(1.0 - np.average(regret, weights=rows.weight)),
            disagreement=float(np.average(rows.differ.any(axis=1), weights=rows.weight)),
        )

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> "PreferenceMatrix":
        """Compare the classifiers of a fitted model of this package on the rows of X.

        The model may be the last step of a pipeline. Rows of no group, which the pooled classifier serves, make one
        more group at the end. Sensitive features are handed to models whose groups depend on them, and to no others.
        """
        served = ServedPredictions.of(model, X, sensitive_features)
        return cls.from_predictions(
            y, served.predictions, served.groups, served.pooled, own=served.own, sample_weight=sample_weight
        )

    @property
    def own_errors(self) -> NDArray[np.float64]:
        """Error rate of each group with the classifier that serves it."""
        return self.errors[np.arange(len(self.own)), self.own]

    @property
    def accuracy(self) -> float:
        """Share of rows that the classifier serving them gets right."""
        return float(1.0 - np.nansum(self.weights * self.own_errors))

    @property
    def pooled_accuracy(self) -> float:
        """Share of rows that the pooled classifier gets right."""
        return float(1.0 - np.nansum(self.weights * self.errors[:, -1]))

    @property
    def gains(self) -> NDArray[np.float64]:
        """Rationality gap of each group: pooled error minus own error; not negative where the group is rational."""
        return self.errors[:, -1] - self.own_errors

    @property
    def envy_gaps(self) -> NDArray[np.float64]:
        """Error of classifier j on group g minus its own, (G, M); NaN for the own classifier."""
        gaps = self.errors[:, :-1] - self.own_errors[:, None]
        gaps[np.arange(gaps.shape[1]) == self.own[:, None]] = np.nan
        return gaps

    @property
    def violations(self) -> int:
        """Groups with a negative gain, plus pairs with a negative envy gap: point estimates, as the paper counts."""
        return int((self.gains < -_ROUNDING).sum() + (self.envy_gaps < -_ROUNDING).sum())

    @property
    def degree(self) -> float:
        """Degree of fairness without harm, the paper's objective: mean over groups of gain + mean envy gap (over K)."""
        envy = np.nansum(self.envy_gaps, axis=1) / max(self.envy_gaps.shape[1], 1)
        return float(np.nanmean(self.gains + envy))

    @property
    def max_gain(self) -> float:
        """Largest gain of any group over the pooled classifier."""
        return float(np.nanmax(self.gains))

    @property
    def min_gain(self) -> float:
        """Smallest gain of any group: negative if some group is harmed."""
        return float(np.nanmin(self.gains))

    @property
    def max_envy_gap(self) -> float:
        """Largest envy gap. The paper calls this number "min envy"."""
        return _extreme(self.envy_gaps, np.max)

    @property
    def min_envy_gap(self) -> float:
        """Smallest envy gap: negative if some group would rather have another group's classifier."""
        return _extreme(self.envy_gaps, np.min)

    @property
    def disparity_change(self) -> float:
        """Spread of accuracy between groups with own classifiers, minus the same with the pooled one."""
        own, pooled = self.own_errors, self.errors[:, -1]
        return float(np.nanmax(own) - np.nanmin(own) - (np.nanmax(pooled) - np.nanmin(pooled)))

    def to_frame(self) -> pd.DataFrame:
        """Return the matrix with one row per group: rows, share, own classifier, gain and all error rates."""
        names = [f"error_{j}" for j in range(self.errors.shape[1] - 1)] + ["error_pooled"]
        frame = pd.DataFrame(self.errors, columns=names, index=pd.RangeIndex(len(self.own), name="group"))
        frame.insert(0, "gain", self.gains)
        frame.insert(0, "own", self.own)
        frame.insert(0, "share", self.weights)
        frame.insert(0, "rows", self.sizes)
        return frame


def _extreme(gaps: NDArray[np.float64], function: Any) -> float:
    known = gaps[~np.isnan(gaps)]
    return float(function(known)) if known.size else 0.0


class ServedPredictions(NamedTuple):
    """What a fitted model of this package predicts for some rows, as `PreferenceMatrix` and `audit` take it."""

    predictions: NDArray[Any]
    """One column for each classifier that serves somebody, the pooled one apart."""
    groups: NDArray[np.intp]
    pooled: NDArray[Any]
    own: NDArray[np.intp]
    """Column that serves each group; the number of columns for the pooled classifier."""
    classifiers: list[int]
    """Number of the classifier in each column."""

    @classmethod
    def of(cls, model: Any, X: Any, sensitive_features: Any = None) -> "ServedPredictions":
        """Ask the model, or the pipeline that ends in one."""
        if isinstance(model, Pipeline):
            model, X = model[-1], model[:-1].transform(X)
        labels = model.predict_all(X)
        takes_attributes = "sensitive_features" in inspect.signature(model.predict_group).parameters
        known = {"sensitive_features": sensitive_features} if takes_attributes else {}
        groups = model.predict_group(X, **known)
        # Column k of predict_all is the classifier that serves group k: each classifier is taken once.
        classifiers, first, column = np.unique(model.serves_, return_index=True, return_inverse=True)
        chosen = classifiers < model.n_groups_
        nobody = [int(chosen.sum())] * (int(groups.max(initial=0)) + 1 - model.n_groups_)
        return cls(
            labels[:, first[chosen]],
            groups,
            labels[:, -1],
            np.append(column, nobody).astype(np.intp),
            classifiers[chosen].tolist(),
        )


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
        weight = check_weights(sample_weight, right)
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


def pr_without_harm(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Share of rows served best by their own classifier; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).pr_without_harm


def accuracy(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Share of rows that their own classifier gets right; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).accuracy


def disagreement(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Share of rows on which not all classifiers agree; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).disagreement


def violations(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> int:
    """Count negative gains and envy gaps; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).violations


def max_gain(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Largest gain over the pooled classifier; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).max_gain


def min_gain(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Smallest gain over the pooled classifier; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).min_gain


def max_envy_gap(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Largest envy gap (the paper's "min envy"); arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).max_envy_gap


def min_envy_gap(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Smallest envy gap; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).min_envy_gap


def disparity_change(y: Any, predictions: Any, groups: Any, pooled: Any, **options: Any) -> float:
    """Disparity of accuracy, own minus pooled; arguments as in `PreferenceMatrix.from_predictions`."""
    return PreferenceMatrix.from_predictions(y, predictions, groups, pooled, **options).disparity_change
