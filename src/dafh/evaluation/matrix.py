"""Who would rather be served by whom: the preference matrix and every metric that follows from it.

For rows that belong to G groups, M classifiers and one pooled classifier, the preference matrix holds the error rate
of every classifier on every group. A group is *rational* to keep its own classifier if the pooled one is no better
for it, and *envy-free* if no other group's classifier is.

Empty groups have no error rates (NaN), hence no gain, no envy and no violation, and no metric depends on them. Where
nothing is left to compare (a single group cannot envy), the envy gaps are 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.evaluation.paired import ComparedRows
from dafh.evaluation.served import ServedPredictions

# Two error rates this close are the same rate, computed from weights in another order.
_ROUNDING = 1e-12


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
