"""The preference matrix: error rates of all classifiers on all groups, and every metric that follows from them.

For rows that belong to G groups, M classifiers and one pooled classifier, the preference matrix holds the error rate
of every classifier on every group. A group is *rational* to keep its own classifier if the pooled one is no better for
it, and *envy-free* if no other group's classifier is.

An empty group has no error rates (NaN), hence no gain, no envy and no violation, and changes no metric. Where there is
nothing to compare (a single group cannot envy), the envy gaps are 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from dafh.classifiers import GroupModel, final_classifier
from dafh.columns.encoder import TableEncoder
from dafh.evaluation.compared import ComparedRows, ServedPredictions
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.linear import linear_discrepancy
from dafh.stats.bounds import deviation_epsilon, discrepancy_bound

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
        return float(np.nanmax(self.envy_gaps, initial=0.0))

    @property
    def disparity_change(self) -> float:
        """Largest difference in accuracy between groups with own classifiers, minus the same with the pooled one."""
        own, pooled = self.own_errors, self.errors[:, -1]
        return float(np.nanmax(own) - np.nanmin(own) - (np.nanmax(pooled) - np.nanmin(pooled)))


@dataclass(frozen=True, eq=False)
class Theorems:
    """What the theorems say about a fitted model, as `theorems` returns it; prints as two sentences.

    Examples
    --------
    >>> print(Theorems(degree=0.02, epsilon=0.07, level=0.05, smallest_group=5000))
    Theorem 1: the degree of fairness without harm is 0.020 ± 0.070 with probability 95% (smallest group: 5,000 rows).
    """

    degree: float
    """Degree of fairness without harm on the given rows, the paper's objective."""
    epsilon: float
    """Theorem 1: the true degree is within so much of it, with probability `level` or less of being wrong."""
    level: float
    smallest_group: int
    """Rows of the smallest group."""
    discrepancies: NDArray[np.float64] | None = None
    """Theorem 2: of each learned group and the named group that it is compared with; None without an attribute."""
    named: tuple[Any, ...] = ()
    """The value of the attribute that each learned group is compared with."""

    @property
    def shortfall(self) -> float | None:
        """Theorem 2: the most by which the best degree for the named groups exceeds the best for the learned ones."""
        return None if self.discrepancies is None else discrepancy_bound(self.discrepancies)

    def __str__(self) -> str:
        text = (
            f"Theorem 1: the degree of fairness without harm is {self.degree:.3f} ± {self.epsilon:.3f} with "
            f"probability {1 - self.level:.0%} (smallest group: {self.smallest_group:,} rows)."
        )
        if self.discrepancies is None:
            return text
        pairs = ", ".join(f"{name} {value:.2f}" for name, value in zip(self.named, self.discrepancies, strict=True))
        return (
            f"{text}\nTheorem 2: groups by the attribute could exceed the best degree by {self.shortfall:.2f} at most "
            f"(discrepancies: {pairs})."
        )


def theorems(model: Any, X: Any, y: ArrayLike, *, attribute: ArrayLike | None = None, level: float = 0.05) -> Theorems:
    """Return the numbers of the paper's Theorems 1 and 2 for a fitted model, on rows that neither trained nor chose it.

    Parameters
    ----------
    model : fitted model of this package with groups, or a pipeline that ends in one
    X, y : rows and their labels
    attribute : array of shape (n,), optional
        A sensitive attribute with as many values as the model has groups, for Theorem 2. Each learned group is compared
        with the value that it shares most rows with, one to one.
    level : float, default=0.05
        Accepted probability that Theorem 1 is wrong.

    Examples
    --------
    >>> from dafh import DAFHClassifier
    >>> from dafh.datasets import make_grouped_classification
    >>> data = make_grouped_classification(3000, random_state=0)
    >>> model = DAFHClassifier(2, pooled="linear", random_state=0).fit(data.X[:2000], data.y[:2000])
    >>> found = theorems(model, data.X[2000:], data.y[2000:])
    >>> found.degree - found.epsilon > 0
    True
    """
    matrix = PreferenceMatrix.of(model, X, y)
    smallest = int(matrix.sizes.min())
    epsilon = float(deviation_epsilon(smallest, len(matrix.own), level))
    result = Theorems(matrix.degree, epsilon, level, smallest)
    if attribute is None:
        return result
    n_groups = final_classifier(model).n_groups_
    groups = np.asarray(model.predict_group(X))
    code, values = pd.factorize(np.asarray(attribute), sort=True)
    if len(code) != len(groups) or len(values) != n_groups or len(np.unique(groups)) != n_groups:
        raise InputError(
            f"attribute must have a value for each row of X, and as many different ones as there are groups with rows: "
            f"{len(values)} values for {len(np.unique(groups))} of {n_groups} groups."
        )
    shared = np.array([np.bincount(code[groups == k], minlength=n_groups) for k in range(n_groups)])
    partner = linear_sum_assignment(shared, maximize=True)[1]
    numbers = np.asarray(TableEncoder().fit(X).transform(X), np.float64)
    discrepancies = [linear_discrepancy(numbers[groups == k], numbers[code == partner[k]]) for k in range(n_groups)]
    return Theorems(matrix.degree, epsilon, level, smallest, np.array(discrepancies), tuple(values[partner]))
