"""The preference matrix: error rates of all classifiers on all groups, and every metric that follows from them.

For rows that belong to G groups, M classifiers and one pooled classifier, the preference matrix holds the error rate
of every classifier on every group. A group is *rational* to keep its own classifier if the pooled one is no better for
it, and *envy-free* if no other group's classifier is.

An empty group has no error rates (NaN), hence no gain, no envy and no violation, and changes no metric. Where there is
nothing to compare (a single group cannot envy), the envy gaps are 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dafh.classifiers import GroupModel
from dafh.evaluation.paired import ComparedRows, ServedPredictions
from dafh.frames import Table

# Weights that are added up in another order give error rates that differ by this much at most.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class PreferenceMatrix:
    """Error rate of every classifier on every group, and the metrics of fairness without harm.

    Build it with `from_predictions`, or with `of` from any fitted model of this package.

    Examples
    --------
    Two groups of two rows. Classifier 0 is always right on group 0, the pooled one half of the time.

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
    """Share of rows that neither another group's classifier nor the pooled one serves better than their own.

    It is 1 minus the share of rows on which the own classifier is wrong and another one right. Copies of the pooled
    classifier therefore reach 1: read it together with accuracy, gains, sizes and disagreement.
    """
    disagreement: float
    """Share of rows on which the classifiers, including the pooled one, do not all predict the same label."""

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
            Labels predicted by each classifier, for all rows and not only for its own group.
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
    def from_rows(cls, rows: ComparedRows) -> "PreferenceMatrix":
        """Build the matrix from rows that have been checked."""
        n_groups = len(rows.own)
        group_weight = np.bincount(rows.group, rows.weight, minlength=n_groups)
        wrong = [np.bincount(rows.group, rows.weight * ~column, minlength=n_groups) for column in rows.right.T]
        with np.errstate(invalid="ignore"):  # 0 / 0 for an empty group
            errors = np.column_stack(wrong) / group_weight[:, None]
        # Regret: the row's own classifier is wrong and some other one, the pooled one included, is right.
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
        model: GroupModel,
        X: Table,
        y: ArrayLike,
        *,
        sensitive_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "PreferenceMatrix":
        """Compare the classifiers of a fitted model of this package on the rows of X.

        The model may be the last step of a pipeline. Rows that belong to none of its groups are served by the pooled
        classifier, and form one more group at the end. Sensitive features are passed only to models whose groups are
        defined by them.
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
        """Gain of each group, (G,): pooled error minus own error. Negative if the group is better off pooled."""
        return self.errors[:, -1] - self.own_errors

    @property
    def envy_gaps(self) -> NDArray[np.float64]:
        """Error of classifier j on group g minus the group's own error, (G, M); NaN for the own classifier."""
        gaps = self.errors[:, :-1] - self.own_errors[:, None]
        gaps[np.arange(gaps.shape[1]) == self.own[:, None]] = np.nan
        return gaps

    @property
    def violations(self) -> int:
        """Number of negative gains and negative envy gaps: point estimates without a test, as the paper counts."""
        return int((self.gains < -_ROUNDING).sum() + (self.envy_gaps < -_ROUNDING).sum())

    @property
    def degree(self) -> float:
        """Degree of fairness without harm, the paper's objective: mean over groups of gain plus mean envy gap."""
        # The paper divides the sum of K − 1 envy gaps by K, and its theorem on the degree relies on that.
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
        """Largest envy gap; the paper calls it "min envy". It counts a group's own classifier: it is 0 at least."""
        return max(_extreme(self.envy_gaps, np.max), 0.0)

    @property
    def min_envy_gap(self) -> float:
        """Smallest envy gap: negative if another group's classifier is better for some group."""
        return _extreme(self.envy_gaps, np.min)

    @property
    def disparity_change(self) -> float:
        """Largest difference in accuracy between groups with own classifiers, minus the same with the pooled one."""
        own, pooled = self.own_errors, self.errors[:, -1]
        return float(np.nanmax(own) - np.nanmin(own) - (np.nanmax(pooled) - np.nanmin(pooled)))


def _extreme(gaps: NDArray[np.float64], function: Callable[[NDArray[np.float64]], float]) -> float:
    # Not nanmax: it warns and returns NaN where no gap is known.
    known = gaps[~np.isnan(gaps)]
    return float(function(known)) if known.size else 0.0
