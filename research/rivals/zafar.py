"""Preference-based fairness of Zafar et al. (2017): one linear classifier per group of an attribute.

The one rival that needs the attribute, in training and for every prediction. "Preferred impact": each group is accepted
at least as often by its own classifier as by one classifier with equal acceptance of all groups. "Preferred treatment":
at least as often as by any other group's classifier. Both are about acceptance, not about errors.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from dafh.exceptions import InputError
from research.rivals.base import decide, to_probabilities, two_classes
from research.rivals.convex_concave import Floats, Group, Problem, parity_minimum, solve


@dataclass(eq=False, repr=False, kw_only=True)
class ZafarClassifier(ClassifierMixin, BaseEstimator):
    """Fit one logistic regression per group of an attribute, so that each group prefers its own, in both ways.

    The last column of X is the group of each row, as a number; no classifier sees it. Rows of a group that was not
    there in training are served by the classifier of the first group.

    Parameters
    ----------
    accepted : label or None, default=None
        The decision that people want; None is the second label in sorted order.
    l2 : float, default=1e-3
        Strength of the L2 penalty, on standardised columns, beside the mean loss of a row.
    tolerance : float, default=1e-4
        By how much a constraint on the mean positive part of the scores may be violated.

    Attributes
    ----------
    classes_, groups_ : arrays
        Labels, and numbers of the groups.
    coef_ : array of shape (groups, columns + 1)
        The classifiers, on standardised columns, intercepts last.
    n_tangents_ : int
        Convex problems that were solved; 0 where the constraints are inactive.
    violations_ : array
        By how much each constraint is violated on the training rows; 0 or less where it holds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(600, 2)), rng.integers(0, 2, 600)])
    >>> model = ZafarClassifier().fit(X, X[:, 0] + X[:, 2] > 0.5)
    >>> bool(model.violations_.max() <= 1e-4)
    True
    """

    RANGES: ClassVar[dict[str, tuple[float, ...]]] = {"l2": (1e-4, 1e-3, 1e-2, 1e-1)}

    accepted: object = None
    l2: float = 1e-3
    tolerance: float = 1e-4

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the classifiers of all groups together."""
        values, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, label = two_classes(labels)
        if self.accepted is not None and self.accepted not in self.classes_.tolist():
            raise InputError(f"accepted is {self.accepted!r}, which is no label of y: {self.classes_.tolist()}.")
        self.scaler_ = StandardScaler().fit(values[:, :-1])
        self.groups_ = np.unique(values[:, -1])
        scaled = self._columns(values)
        with threadpool_limits(1):
            self.coef_ = self._solve(scaled, label.astype(np.float64), values[:, -1])
        return self

    def _columns(self, values: Floats) -> Floats:
        """Standardised columns with a last one of ones in the place of the group."""
        return np.column_stack([self.scaler_.transform(values[:, :-1]), np.ones(len(values))])

    def _solve(self, scaled: Floats, label: Floats, group: Floats) -> Floats:
        members = [np.flatnonzero(group == number) for number in self.groups_]
        groups = [Group(scaled[rows], label[rows], np.full(len(rows), 1 / len(rows))) for rows in members]
        share = np.array([len(rows) for rows in members]) / len(label)
        sign = -1.0 if self.accepted is not None and self.accepted == self.classes_[0] else 1.0
        # One classifier for all groups satisfies both constraints, with equality.
        start = parity_minimum(groups, share, self.l2)
        least = np.concatenate([group.benefits(start[None], sign)[0] for group in groups])
        problem = Problem(groups, share, self.l2, least, sign)
        found, self.n_tangents_ = solve(problem, np.tile(start, len(groups)), self.tolerance)
        self.violations_ = problem.violations(found)
        return found.reshape(problem.shape)

    def _logits(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype=np.float64)
        every = self._columns(values) @ self.coef_.T
        place = np.argmax(values[:, -1:] == self.groups_, axis=1)
        return every[np.arange(len(values)), place][:, None]

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probability of each class, by the classifier of the row's group."""
        return to_probabilities(self._logits(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label of each row, by the classifier of its group."""
        return self.classes_[decide(self._logits(X))]
