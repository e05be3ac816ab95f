"""Penalised logistic and softmax regression by damped Newton steps, and strengths of the penalty by evidence.

Minimised is the sum over rows of weight × negative log-likelihood of (offset + design · coefficients), plus half the
sum of penalty × coefficient². The problem is convex: where steps are damped, every start leads to the same solution.

Leaving out a fold changes a solution little. `out_of_fold_logits` therefore begins every fit without a fold at the
solution for all rows, with the curvature that it needs by subtraction, and takes a few steps that only sum gradients.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls
from scipy.special import expit, logsumexp, softmax

from dafh.classifiers import residual
from dafh.linear.designs import BinnedDesign, Design
from dafh.linear.threads import in_threads

# Not penalised, but for the last digits: without this, classes could share any constant.
_INTERCEPT_PENALTY = 1e-6
# Rows that are predicted almost surely have next to no curvature, and a step would overflow.
_LEAST_CURVATURE = 1e-8
_MOST_STEPS = 100
_MOST_CONJUGATE_STEPS = 20
_SMALLEST_DAMPING = 2.0**-20
_LOST_IN_ROUNDING = 1e-10
# A curvature is summed anew where, at the pace of the last step, this many more would not do: it costs about as much.
_STEPS_FOR_A_CURVATURE = 8
# Strengths that evidence may choose; at the upper end a coefficient is 0 for all that can be seen.
_STRENGTHS = (1e-3, 1e6)
_FIRST_STRENGTH = 3.0
# The curvature is not summed anew where logits have changed by less than this on average.
_CLOSE = 0.05
_MOST_ROUNDS = 20
# A round goes eight updates far. To the end, strengths of columns that say the same go up and down in turns.
_UPDATES = 8
# Strengths have settled when none changes by more than this, as a logarithm, times the number of coefficients that the
# data determine where that is less than 1: a strength that decides about nothing may still be on its way.
_SETTLED = 0.1
_Factor = tuple[NDArray[np.float64], bool]
"""What `cho_factor` makes of a curvature with its penalty."""


def row_losses(logits: NDArray[np.float64], label: NDArray[np.intp]) -> NDArray[np.float64]:
    """Negative log-likelihood of each row's label, for one logit of two classes, (n, 1), or one per class, (n, m).

    Examples
    --------
    >>> row_losses(np.array([[0.0], [2.0]]), np.array([1, 0])).round(4)
    array([0.6931, 2.1269])
    """
    if logits.shape[1] == 1:
        # The logit with the sign that speaks against the label. Four times as fast as logaddexp, and as exact.
        against = np.where(label == 1, -logits[:, 0], logits[:, 0])
        return np.log1p(np.exp(-np.abs(against))) + np.maximum(against, 0.0)
    return logsumexp(logits, axis=1) - logits[np.arange(len(label)), label]


def class_shares(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of the class of each logit, (n, m)."""
    return expit(logits) if logits.shape[1] == 1 else softmax(logits, axis=1)


@dataclass(frozen=True, eq=False)
class Regression:
    """Rows to fit: what the logits are linear in, labels, weights, and logits that are there already."""

    design: Design
    label: NDArray[np.intp]
    weight: NDArray[np.float64]
    offset: NDArray[np.float64]
    """(n, m): added to the logits of the design; m = 1 for two classes."""

    def take(self, rows: NDArray[np.intp]) -> "Regression":
        """Return some of the rows."""
        return Regression(self.design.take(rows), self.label[rows], self.weight[rows], self.offset[rows])

    def with_tables(self, tables: list[NDArray[np.float64]]) -> "Regression":
        """Return the same rows with other tables of their bins."""
        assert isinstance(self.design, BinnedDesign)
        return replace(self, design=BinnedDesign(self.design.codes, tables))

    def loss(self, logits: NDArray[np.float64]) -> float:
        """Weighted negative log-likelihood of logits."""
        return float(self.weight @ row_losses(logits, self.label))

    def gradient(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient of the loss, (p, m)."""
        return -self.design.gradient(self.weight[:, None] * residual(logits, self.label))

    def curvatures(
        self, logits: NDArray[np.float64], group: NDArray[np.integer] | None = None, n_groups: int = 1
    ) -> NDArray[np.float64]:
        """Second derivatives of the loss in each group by the coefficients of one output, (K, m, p, p).

        Mixed derivatives of two outputs are left out: `fit_penalized` needs a factor for each output only.
        """
        shares = class_shares(logits)
        spread = np.maximum(shares * (1 - shares), _LEAST_CURVATURE) * self.weight[:, None]
        outputs = [self.design.curvatures(spread[:, output], group, n_groups) for output in range(spread.shape[1])]
        return np.stack(outputs, axis=1)

    def joint_curvatures(
        self, logits: NDArray[np.float64], group: NDArray[np.integer] | None = None, n_groups: int = 1
    ) -> NDArray[np.float64]:
        """Second derivatives by all coefficients, those of one output after those of the one before, (K, mp, mp)."""
        shares, (n_outputs, p) = class_shares(logits), (logits.shape[1], self.design.n_coefficients)
        joint = np.empty((n_groups, n_outputs, p, n_outputs, p))
        diagonal = self.curvatures(logits, group, n_groups)
        for output in range(n_outputs):
            joint[:, output, :, output] = diagonal[:, output]
            for second in range(output):
                # Designs take weights from 0 on: the sign of mixed derivatives is put on afterwards.
                spread = self.weight * shares[:, output] * shares[:, second]
                mixed = -self.design.curvatures(spread, group, n_groups)
                joint[:, output, :, second] = joint[:, second, :, output] = mixed
        return joint.reshape(n_groups, n_outputs * p, n_outputs * p)


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients (p, m), and the penalty they were fitted with."""

    coefficients: NDArray[np.float64]
    penalty: NDArray[np.float64]
    """(p,)."""


def fit_penalized(
    rows: Regression,
    penalty: NDArray[np.float64],
    *,
    start: NDArray[np.float64] | None = None,
    curvatures: NDArray[np.float64] | None = None,
    free_intercept: bool = True,
    constraints: NDArray[np.float64] | None = None,
    tolerance: float = 1e-10,
) -> Solution:
    """Minimise the penalised loss.

    Parameters
    ----------
    rows : Regression
    penalty : array of shape (p,)
        The first entry is of the intercept.
    start : array of shape (p, m), optional
    curvatures : array of shape (m, p, p), optional
        Of the loss near the solution: steps then reuse it instead of summing it anew, and there are more of them, which
        cost less.
    free_intercept : bool
        Whether the intercept is not penalised, whatever `penalty` says.
    constraints : array of shape (constraints, p), optional
        constraints · coefficients may not be negative; for one output, and a start that satisfies them.
    tolerance : float
        Stop when a step promises less than this, per unit of weight.

    Examples
    --------
    >>> from dafh.linear.designs import DenseDesign
    >>> rows = Regression(DenseDesign(np.array([[0.0], [1.0]] * 3)), np.array([0, 1] * 3), np.ones(6), np.zeros((6, 1)))
    >>> fit_penalized(rows, np.ones(2)).coefficients.ravel().round(3)
    array([-0.549,  1.098])
    >>> fit_penalized(rows, np.ones(2), constraints=np.array([[0.0, -1.0]])).coefficients.ravel().round(3) + 0.0
    array([0., 0.])
    """
    penalty = _with_free_intercept(penalty) if free_intercept else penalty
    coefficients = np.zeros((len(penalty), rows.offset.shape[1])) if start is None else start
    logits = rows.offset + rows.design.logits(coefficients)
    value = rows.loss(logits) + _penalty_term(penalty, coefficients)
    least_promise = tolerance * float(rows.weight.sum())
    factors = None if curvatures is None else _factors(curvatures, penalty)
    last_promise = np.inf
    for _ in range(_MOST_STEPS):
        gradient = rows.gradient(logits) + penalty[:, None] * coefficients
        if factors is None:
            factors = _factors(rows.curvatures(logits)[0], penalty)
        if constraints is not None and len(constraints):  # `nnls` needs at least one.
            direction = _constrained_direction(coefficients, gradient, factors[0], constraints)
        else:
            direction = _direction(rows, logits, gradient, penalty, factors)
        promise = float((gradient * direction).sum())
        if promise <= least_promise:
            coefficients = coefficients - direction  # The full step is small enough to accept without a line search.
            break
        coefficients, logits, value, damping = _line_search(
            rows, penalty, coefficients, logits, value, direction, promise
        )
        if damping <= _SMALLEST_DAMPING:  # Nothing is left to gain but rounding.
            break
        # Steps with an old curvature converge linearly: at the pace of the last one, would eight more of them do?
        if damping < 1 or promise * (promise / last_promise) ** _STEPS_FOR_A_CURVATURE > least_promise:
            factors = None
        last_promise = promise
    return Solution(coefficients, penalty)


def out_of_fold_logits(
    rows: Regression,
    solution: Solution,
    fold: NDArray[np.integer],
    factors: Sequence[float] = (1.0,),
    *,
    tolerance: float = 1e-9,
) -> list[NDArray[np.float64]]:
    """Logits of every row by a fit without its fold, (n, m), for each factor on the penalty of a solution for all rows.

    The default tolerance is far below what a fold can tell apart, and is reached in three or four steps. The result is
    that of the rows it was fitted on: the start at the solution for all rows leaves no trace.
    """
    n_folds = int(fold.max()) + 1
    curvatures = rows.curvatures(rows.offset + rows.design.logits(solution.coefficients), fold, n_folds)

    def fit_without(number: int, factor: float) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        members = np.flatnonzero(fold == number)
        without_fold = fit_penalized(
            rows.take(np.flatnonzero(fold != number)),
            factor * solution.penalty,
            start=solution.coefficients,
            curvatures=np.delete(curvatures, number, axis=0).sum(axis=0),
            tolerance=tolerance,
        )
        return members, rows.offset[members] + rows.design.take(members).logits(without_fold.coefficients)

    by_factor = []
    for factor in factors:
        logits = np.empty_like(rows.offset)
        for members, values in in_threads(partial(fit_without, factor=factor), range(n_folds), len(fold)):
            logits[members] = values
        by_factor.append(logits)
    return by_factor


def fit_by_evidence(rows: Regression, block: NDArray[np.intp], *, tolerance: float = 1e-10) -> Solution:
    """Fit, and choose the strength of the penalty for each block of coefficients by the evidence for it.

    Coefficients of a block are taken for a sample from a normal distribution around 0. The strength is the inverse of
    its variance, the one under which the labels are most probable: MacKay's update, ``strength = determined / Σ
    coefficient²`` with the number of coefficients that the data determine, ``Σ (1 − strength · variance)``. Columns
    that say little are smoothed or left out, columns that say much are followed closely, with one strength each and
    without a search.

    `block` is that of each coefficient (p,), −1 for the intercept.

    References
    ----------
    D. MacKay (1992), Bayesian interpolation. S. Wood and M. Fasiolo (2017), A generalized Fellner-Schall method.
    """
    if block.max() < 0:  # All columns are constant.
        return fit_penalized(rows, np.zeros(len(block)), tolerance=tolerance)
    coefficients = np.zeros((len(block), rows.offset.shape[1]))
    strength = np.full(int(block.max()) + 1, _FIRST_STRENGTH)
    logits = logits_of_curvature = rows.offset + rows.design.logits(coefficients)
    last_change = np.zeros(len(strength))
    for step in range(_MOST_ROUNDS):
        penalty = _with_free_intercept(strength[block])
        value = rows.loss(logits) + _penalty_term(penalty, coefficients)
        gradient = rows.gradient(logits) + penalty[:, None] * coefficients
        moved = np.abs(logits - logits_of_curvature).mean(axis=1)
        if step == 0 or float(rows.weight @ moved) > _CLOSE * rows.weight.sum():
            curvatures, logits_of_curvature = rows.curvatures(logits)[0], logits
        factors = _factors(curvatures, penalty)
        direction = _direction(rows, logits, gradient, penalty, factors)
        promise = float((gradient * direction).sum())
        coefficients, logits, _, _ = _line_search(rows, penalty, coefficients, logits, value, direction, promise)
        if step == 0:
            continue  # The first step is still far from the solution, and would mistake that for small effects.
        change, determined = _change_of_strengths(strength, block, coefficients, factors)
        # Two blocks that say the same would go up and down in turns.
        change = np.where(change * last_change < 0, change / 2, change)
        strength, last_change = (strength * np.exp(change)).clip(*_STRENGTHS), change
        if (np.abs(change) * np.minimum(determined, 1)).max() < _SETTLED:
            break
    return fit_penalized(rows, strength[block], start=coefficients, curvatures=curvatures, tolerance=tolerance)


def _change_of_strengths(
    strength: NDArray[np.float64], block: NDArray[np.intp], coefficients: NDArray[np.float64], factors: list[_Factor]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Go several updates far: change of each strength, as a logarithm, and the number of coefficients determined.

    MacKay's update goes a part of the way only. Where a block has next to no effect the way took dozens of rounds, each
    with a sum over all rows. While the other blocks keep their strengths, an update needs the eigenvalues of one block
    only, and several updates in one round lead to the same strengths in half of the rounds.
    """
    block_of = np.tile(block[block >= 0], len(factors))
    eigenvalues, projections = [], []
    for output, factor in enumerate(factors):
        for number in range(len(strength)):
            first, end = np.searchsorted(block, [number, number + 1])
            # For curvature LL', the variance of a block is a diagonal block of the inverse: root' root, with the
            # columns of L⁻¹ that belong to it, which are 0 above the block.
            unit = np.eye(len(block) - first, end - first)
            root = solve_triangular(factor[0][first:, first:], unit, lower=True, check_finite=False)
            values, directions = np.linalg.eigh(root.T @ root)
            eigenvalues.append(values)
            projections.append(directions.T @ coefficients[first:end, output])
    # No eigenvalue is above 1 / strength but by rounding.
    variances = np.concatenate(eigenvalues).clip(0.0, 1 / strength[block_of])
    projected = np.concatenate(projections)
    free, updated = 1 - strength[block_of] * variances, strength
    for _ in range(_UPDATES):
        # A strength that changes by δ turns a variance v into v / (1 + δ v), and a coefficient c into c / (1 + δ v).
        growth = 1 + (updated - strength)[block_of] * variances
        determined = np.bincount(block_of, free / growth, len(strength))
        squares = np.bincount(block_of, (projected / growth) ** 2, len(strength))
        updated = (np.maximum(determined, 1e-8) / np.maximum(squares, 1e-12)).clip(*_STRENGTHS)
    return np.log(updated / strength), determined.astype(np.float64)


def _with_free_intercept(penalty: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([[_INTERCEPT_PENALTY], penalty[1:]])


def _penalty_term(penalty: NDArray[np.float64], coefficients: NDArray[np.float64]) -> float:
    return float((coefficients * (penalty[:, None] * coefficients)).sum()) / 2


def _factors(curvatures: NDArray[np.float64], penalty: NDArray[np.float64]) -> list[_Factor]:
    """Factor the curvature of each output with its penalty."""
    factors = []
    for curvature in curvatures:
        matrix = curvature + np.diag(penalty)
        try:
            factors.append(cho_factor(matrix, lower=True, check_finite=False))
        except LinAlgError:
            # Weights so large that the penalty is lost in rounding. A step with a little more curvature is shorter,
            # and still one downhill.
            more = _LOST_IN_ROUNDING * np.diag(matrix).max() * np.eye(len(matrix))
            factors.append(cho_factor(matrix + more, lower=True))
    return factors


def _direction(
    rows: Regression,
    logits: NDArray[np.float64],
    gradient: NDArray[np.float64],
    penalty: NDArray[np.float64],
    factors: list[_Factor],
) -> NDArray[np.float64]:
    """Return the step of Newton's method; for several outputs by conjugate gradients, with one factor per output."""

    def precondition(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack([cho_solve(factor, vector[:, output]) for output, factor in enumerate(factors)])

    if len(factors) == 1:
        return precondition(gradient)
    # The curvature of all outputs together is never formed: its product with a vector takes one pass over the rows.
    shares = class_shares(logits)
    direction, residuum = np.zeros_like(gradient), gradient.copy()
    search = precondition(residuum)
    # Conjugate gradients for the joint curvature, preconditioned by that of each output alone.
    size = first_size = float((residuum * search).sum())
    if first_size == 0:  # The start is the solution, to the last digit.
        return direction
    for _ in range(_MOST_CONJUGATE_STEPS):
        change = rows.design.logits(search)
        spread = shares * (change - (shares * change).sum(axis=1, keepdims=True))
        curved = rows.design.gradient(rows.weight[:, None] * spread) + penalty[:, None] * search
        length = size / float((search * curved).sum())
        direction += length * search
        residuum = residuum - length * curved
        preconditioned = precondition(residuum)
        new_size = float((residuum * preconditioned).sum())
        if new_size <= 1e-4 * first_size:  # An inexact step is improved by the next one, with a newer gradient.
            break
        search, size = preconditioned + new_size / size * search, new_size
    return direction


def _constrained_direction(
    coefficients: NDArray[np.float64],
    gradient: NDArray[np.float64],
    factor: _Factor,
    constraints: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the step to the minimum of the quadratic approximation under the constraints.

    In the coordinates of a root of the curvature that is the projection on a cone, which non-negative least squares
    solve exactly: for curvature R'R, the multipliers minimise ‖R⁻ᵀ constraints' λ + R · target‖ over λ ≥ 0. Both ends
    of the step satisfy the constraints, and so does all between them.
    """
    root = np.tril(factor[0]).T
    target = root @ coefficients[:, 0] - solve_triangular(root, gradient[:, 0], trans="T")
    cone = solve_triangular(root, constraints.T, trans="T")
    # Exact after finitely many steps. Of scipy's solvers for constraints, SLSQP stopped up to 2e-6 away from the
    # optimum of the whole fit, in logits, and trust-constr 3e-5.
    multipliers = nnls(cone, -target, maxiter=_MOST_STEPS * len(constraints))[0]
    return coefficients - solve_triangular(root, target + cone @ multipliers)[:, None]


def _line_search(
    rows: Regression,
    penalty: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    logits: NDArray[np.float64],
    value: float,
    direction: NDArray[np.float64],
    promise: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
    """Go along a direction, half as far until Armijo's condition holds: coefficients, logits, value, damping."""
    change = rows.design.logits(direction)
    damping = 1.0
    while True:
        moved, moved_logits = coefficients - damping * direction, logits - damping * change
        moved_value = rows.loss(moved_logits) + _penalty_term(penalty, moved)
        if moved_value <= value - 1e-4 * damping * promise:
            return moved, moved_logits, moved_value, damping
        if damping <= _SMALLEST_DAMPING:
            return coefficients, logits, value, damping
        damping /= 2
