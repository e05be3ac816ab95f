"""Preference-based fairness of Zafar et al. (2017): one linear classifier per group of an attribute.

The one rival that needs the attribute, in training and for every prediction. "Preferred impact": each group is accepted
at least as often by its own classifier as by one classifier with equal acceptance of all groups. "Preferred treatment":
at least as often as by any other group's classifier. Both are about acceptance, not about errors.

The benefit of a group from a classifier is the mean of the positive part of its scores, a convex stand-in for the share
of accepted rows. In a constraint, the group's own benefit is replaced by its tangent, which lies below it: what is left
is convex, and whoever satisfies it satisfies the constraint itself. Solving this and taking the next tangent at the
solution lowers the loss step by step (convex-concave programming).
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from research.rivals.training import Floats, TwoClassClassifier, two_classes

_MOST_TANGENTS = 30
_SMALLEST_PROGRESS = 1e-5
_PRECISE = {"maxiter": 500, "ftol": 1e-10, "gtol": 1e-6}


@dataclass(eq=False, repr=False, kw_only=True)
class ZafarClassifier(TwoClassClassifier):
    """Fit one logistic regression per group of an attribute, so that each group prefers its own, in both ways.

    The last column of X is the group of each row, as a number; no classifier sees it. Rows of a group that was not
    there in training are served by the classifier of the first group.

    `accepted` is the decision that people want; None is the second label in sorted order. `l2` is the penalty beside
    the mean loss of a row, and `tolerance` says by how much a constraint on the mean positive part of the scores may be
    violated. `coef_` has the classifiers on standardised columns, intercepts last; `n_tangents_` convex problems were
    solved, 0 where the constraints are inactive; `violations_` are those of each constraint on the training rows.
    """

    RANGES: ClassVar[dict[str, tuple[float, ...]]] = {"l2": (1e-4, 1e-3, 1e-2, 1e-1)}

    accepted: object = None
    l2: float = 1e-3
    tolerance: float = 1e-4

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the classifiers of all groups together."""
        values, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, label = two_classes(labels)
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
        groups = [Group(scaled[rows], label[rows]) for rows in members]
        share = np.array([len(rows) for rows in members]) / len(label)
        sign = -1.0 if self.accepted is not None and self.accepted == self.classes_[0] else 1.0
        # One classifier for all groups satisfies both constraints, with equality.
        start = parity_minimum(groups, share, self.l2)
        least = np.concatenate([group.benefits(start[None], sign)[0] for group in groups])
        problem = Problem(groups, share, self.l2, least, sign)
        flat, self.n_tangents_ = solve(problem, np.tile(start, len(groups)), self.tolerance)
        self.violations_ = problem.violations(flat)
        return flat.reshape(problem.shape)

    def _logits(self, values: Floats) -> Floats:
        scores = self._columns(values) @ self.coef_.T
        group = np.argmax(values[:, -1:] == self.groups_, axis=1)
        return scores[np.arange(len(values)), group]


class Group(NamedTuple):
    """Rows of one group: columns with a last column of ones, and label 0 or 1."""

    X: Floats
    y: Floats

    def benefits(self, thetas: Floats, sign: float) -> tuple[Floats, Floats]:
        """Mean positive part of the scores by each of several classifiers, (m,), and the gradients, (m, p).

        `sign` is −1 if the first label is the one that benefits.
        """
        scores = sign * (self.X @ thetas.T)
        return np.maximum(scores, 0).mean(axis=0), sign * ((scores > 0).T @ self.X) / len(self.y)


@dataclass(frozen=True, eq=False)
class Problem:
    """The groups, what each counts in the loss, and the benefit that each must have from its own classifier."""

    groups: list[Group]
    share: Floats
    """Share of the rows in each group."""
    l2: float
    """Strength of the L2 penalty on all coefficients but the intercepts."""
    least: Floats
    """Smallest benefit of each group from its own classifier."""
    sign: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups, and of coefficients of each."""
        return len(self.groups), self.groups[0].X.shape[1]

    def loss(self, flat: Floats) -> tuple[float, Floats]:
        """Mean log-loss of all rows by the classifier of their group, with the penalty, and the gradient."""
        thetas = flat.reshape(self.shape)
        gradient = self.l2 * thetas * np.append(np.ones(self.shape[1] - 1), 0.0)
        value = float((gradient * thetas).sum()) / 2
        for k, (X, y) in enumerate(self.groups):
            score = X @ thetas[k]
            value += self.share[k] * float((np.logaddexp(0, score) - y * score).mean())
            gradient[k] += self.share[k] * (expit(score) - y) @ X / len(y)
        return value, gradient.ravel()

    def slopes(self, flat: Floats) -> Floats:
        """Gradient of each group's benefit from its own classifier, (groups, p)."""
        thetas = flat.reshape(self.shape)
        return np.stack([group.benefits(thetas, self.sign)[1][k] for k, group in enumerate(self.groups)])

    def violations(self, flat: Floats) -> Floats:
        """By how much each constraint is violated; 0 or less where it holds."""
        # Benefits are homogeneous: a tangent has no constant, and at its own point it is the benefit.
        return self.violated(flat, self.slopes(flat))[0]

    def violated(self, flat: Floats, slopes: Floats) -> tuple[Floats, Floats]:
        """Violations with own benefits on tangents of these slopes: convex and tighter, with gradients."""
        thetas = flat.reshape(self.shape)
        values, gradients = [], []
        for k, group in enumerate(self.groups):
            benefits, by_theta = group.benefits(thetas, self.sign)
            rivals = np.delete(np.arange(len(self.groups)), k)
            gradient = np.zeros((len(rivals) + 1, *self.shape))
            gradient[np.arange(len(rivals)), rivals] = by_theta[rivals]
            gradient[:, k] -= slopes[k]
            values.append(np.append(benefits[rivals], self.least[k]) - slopes[k] @ thetas[k])
            gradients.append(gradient.reshape(len(gradient), -1))
        return np.concatenate(values), np.concatenate(gradients)

    def convex_minimum(self, point: Floats) -> Floats:
        """Minimise the loss under the constraints with tangents at a point, which satisfies them."""
        slopes = self.slopes(point)
        rule = {
            "type": "ineq",
            "fun": lambda flat: -self.violated(flat, slopes)[0],
            "jac": lambda flat: -self.violated(flat, slopes)[1],
        }
        options = {"ftol": 1e-9, "maxiter": 200}
        optimum = minimize(self.loss, point, jac=True, method="SLSQP", constraints=rule, options=options)
        return np.asarray(optimum.x, np.float64)


def solve(problem: Problem, start: Floats, tolerance: float = 1e-4) -> tuple[Floats, int]:
    """Minimise the loss under the constraints, from a point that satisfies them; return it and the number of tangents.

    Where the unconstrained minimum satisfies the constraints, it is the answer, after 0 tangents.
    """
    free = minimize(problem.loss, start, jac=True, method="L-BFGS-B", options=_PRECISE).x
    if problem.violations(free).max(initial=0) <= tolerance:
        return free, 0
    point, value = start, problem.loss(start)[0]
    for number in range(1, _MOST_TANGENTS + 1):
        candidate = problem.convex_minimum(point)
        lower = problem.loss(candidate)[0]
        # Rounding may leave a point a little worse than the one before, which is then kept.
        if problem.violations(candidate).max() > tolerance or lower > value:
            return point, number
        progress, point, value = value - lower, candidate, lower
        if progress <= _SMALLEST_PROGRESS:
            break
    return point, number


def parity_minimum(groups: list[Group], share: Floats, l2: float) -> Floats:
    """Coefficients of one classifier for all groups whose mean score is the same in each of them.

    This is the classifier with parity of benefits that preferred impact starts from. Equal mean scores are linear
    equations, so that the search is an unconstrained one in the space of their solutions.
    """
    means = np.stack([group.X.mean(axis=0) for group in groups])
    basis = null_space(means - share @ means)
    all_rows = Group(np.concatenate([group.X for group in groups]), np.concatenate([group.y for group in groups]))
    unconstrained = Problem([all_rows], np.ones(1), l2, np.zeros(1))

    def loss(inner: Floats) -> tuple[float, Floats]:
        value, slope = unconstrained.loss(basis @ inner)
        return value, basis.T @ slope

    optimum = minimize(loss, np.zeros(basis.shape[1]), jac=True, method="L-BFGS-B", options=_PRECISE)
    return np.asarray(basis @ optimum.x, np.float64)
