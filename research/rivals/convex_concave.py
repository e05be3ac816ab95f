"""Linear classifiers under preference constraints, by convex-concave programming (Zafar et al. 2017).

One logistic regression for each group. The benefit of a group from a classifier is the mean of the positive part of its
scores, a convex stand-in for the share of accepted rows. A constraint says that a group benefits from its own
classifier at least as much as from another one, or as much as from a given classifier. Its two sides are both convex,
so that the own side is replaced by its tangent (which lies below it): what is left is convex, and whoever satisfies it
satisfies the constraint itself. Solving this and taking the next tangent at the solution lowers the loss step by step.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import expit

_MOST_TANGENTS = 30
_SMALLEST_PROGRESS = 1e-5
_MOST_MULTIPLIER_STEPS = 40
_FIRST_PENALTY = 10.0
_LARGEST_PENALTY = 1e6
_PRECISE = {"maxiter": 500, "ftol": 1e-10, "gtol": 1e-6}

Floats = NDArray[np.float64]
Smooth = Callable[[Floats], tuple[float, Floats]]
"""A function of all coefficients as one vector, with its gradient."""


@dataclass(frozen=True, eq=False)
class Group:
    """Rows of one group: columns with a last column of ones, label 0 or 1, and weights that add up to 1."""

    X: Floats
    y: Floats
    weight: Floats

    def benefits(self, thetas: Floats, sign: float) -> tuple[Floats, Floats]:
        """Mean positive part of the scores by each of several classifiers, (m,), and the gradients, (m, p).

        `sign` is −1 if the first label is the one that benefits.
        """
        scores = sign * (self.X @ thetas.T)
        counted = self.weight[:, None] * (scores > 0)
        return (counted * scores).sum(axis=0), sign * (counted.T @ self.X)


@dataclass(frozen=True, eq=False)
class Problem:
    """The groups, what each counts in the loss, and which benefits have to be at least as large as which."""

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
        free = np.append(np.ones(self.shape[1] - 1), 0.0)
        value, slope = 0.0, np.empty(self.shape)
        for k, (group, theta) in enumerate(zip(self.groups, thetas, strict=True)):
            one, gradient = mean_loss(group, theta)
            value += self.share[k] * one + self.l2 / 2 * float(free @ theta**2)
            slope[k] = self.share[k] * gradient + self.l2 * free * theta
        return value, slope.ravel()

    def violations(self, flat: Floats) -> Floats:
        """By how much each constraint is violated; 0 or less where it holds."""
        found = [group.benefits(flat.reshape(self.shape), self.sign)[0] for group in self.groups]
        return np.concatenate([self._violated(k, benefits, benefits[k]) for k, benefits in enumerate(found)])

    def _violated(self, k: int, benefits: Floats, own: float) -> Floats:
        return np.append(np.delete(benefits, k), self.least[k]) - own

    def tangents(self, flat: Floats) -> "Tangents":
        """Return the constraints with the own benefit replaced by its tangent at a point: convex, and tighter."""
        slopes = [group.benefits(flat.reshape(self.shape), self.sign)[1] for group in self.groups]
        return Tangents(self, np.stack([slope[k] for k, slope in enumerate(slopes)]))


@dataclass(frozen=True, eq=False)
class Tangents:
    """Convex constraints: what others give a group, or what it must get, minus the tangent of what it gets."""

    problem: Problem
    slopes: Floats
    """Slope of each group's own benefit, (groups, p). It is homogeneous, so that its tangent has no constant."""

    def __call__(self, flat: Floats) -> tuple[Floats, Floats]:
        """By how much each constraint is violated, (c,), and the gradients, (c, coefficients)."""
        problem, thetas = self.problem, flat.reshape(self.problem.shape)
        values, rows = [], []
        for k, group in enumerate(problem.groups):
            benefits, slopes = group.benefits(thetas, problem.sign)
            found = problem._violated(k, benefits, float(self.slopes[k] @ thetas[k]))
            gradient = np.zeros((len(found), *problem.shape))
            for place, j in enumerate(np.delete(np.arange(problem.shape[0]), k)):
                gradient[place, j] = slopes[j]
            gradient[:, k] -= self.slopes[k]
            values.append(found)
            rows.append(gradient.reshape(len(found), -1))
        return np.concatenate(values), np.concatenate(rows)


def mean_loss(group: Group, theta: Floats) -> tuple[float, Floats]:
    """Mean log-loss on the rows of a group, and its gradient."""
    score = group.X @ theta
    value = float(group.weight @ (np.logaddexp(0, score) - group.y * score))
    return value, (group.weight * (expit(score) - group.y)) @ group.X


def minimum(function: Smooth, start: Floats) -> Floats:
    """Minimise a smooth convex function."""
    found = minimize(function, start, jac=True, method="L-BFGS-B", options=_PRECISE)
    return np.asarray(found.x, np.float64)


def constrained_minimum(
    function: Smooth,
    constraints: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    tolerance: float,
    multipliers: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Minimise a convex function where convex constraints are at most 0, by augmented Lagrangians.

    Returns the minimum and the multipliers of the constraints, from which a similar problem can start.

    By hand, because scipy's SLSQP factorises a matrix of all coefficients in every step. The tests compare the two.
    """
    penalty, point, before = _FIRST_PENALTY, start, np.inf
    multiplier = np.zeros(len(constraints(start)[0])) if multipliers is None else multipliers

    def lagrangian(flat: Floats) -> tuple[float, Floats]:
        value, slope = function(flat)
        violated, gradient = constraints(flat)
        excess = np.maximum(violated + multiplier / penalty, 0)
        return value + penalty / 2 * float(excess @ excess), slope + penalty * excess @ gradient

    for _ in range(_MOST_MULTIPLIER_STEPS):
        point = minimum(lagrangian, point)
        violated = constraints(point)[0]
        # A constraint that is slack must have no multiplier left, else the point is not a minimum.
        left = float(np.abs(np.maximum(violated, -multiplier / penalty)).max(initial=0))
        multiplier = np.maximum(0, multiplier + penalty * violated)
        if left <= tolerance:
            break
        if left > before / 4:
            penalty = min(3 * penalty, _LARGEST_PENALTY)
        before = left
    return point, multiplier


def solve(problem: Problem, start: Floats, tolerance: float = 1e-4) -> tuple[Floats, int]:
    """Minimise the loss under the constraints, from a point that satisfies them; return it and the number of tangents.

    Where the unconstrained minimum satisfies the constraints, it is the answer, after 0 tangents.
    """
    free = minimum(problem.loss, start)
    if problem.violations(free).max(initial=0) <= tolerance:
        return free, 0
    point, value, multipliers = start, problem.loss(start)[0], None
    for number in range(1, _MOST_TANGENTS + 1):
        # Neighbouring tangents have nearly the same multipliers: starting there saves a quarter of the time on Adult.
        found, multipliers = constrained_minimum(
            problem.loss, problem.tangents(point), point, tolerance / 2, multipliers
        )
        lower = problem.loss(found)[0]
        # Rounding may leave a point a little worse than the one before, which is then kept.
        if problem.violations(found).max() > tolerance or lower > value:
            return point, number
        progress, point, value = value - lower, found, lower
        if progress <= _SMALLEST_PROGRESS:
            break
    return point, number


def parity_minimum(groups: list[Group], share: Floats, l2: float) -> Floats:
    """Coefficients of one classifier for all groups whose mean score is the same in each of them.

    This is the classifier with parity of benefits that preferred impact starts from. Equal mean scores are linear
    equations, so that the search is an unconstrained one in the space of their solutions.
    """
    means = np.stack([group.weight @ group.X for group in groups])
    basis = null_space(means - share @ means)
    free = np.append(np.ones(means.shape[1] - 1), 0.0)

    def loss(inner: Floats) -> tuple[float, Floats]:
        theta = basis @ inner
        parts = [mean_loss(group, theta) for group in groups]
        value = float(share @ [one for one, _ in parts]) + l2 / 2 * float(free @ theta**2)
        slope = share @ np.stack([gradient for _, gradient in parts]) + l2 * free * theta
        return value, basis.T @ slope

    return np.asarray(basis @ minimum(loss, np.zeros(basis.shape[1])), np.float64)
