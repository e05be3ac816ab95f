"""Penalised logistic and softmax regression by damped Newton steps, and strengths of the penalty by evidence.

Minimised is the sum over rows of weight × negative log-likelihood of (offset + design · coefficients), plus half the
sum of penalty × coefficient². The problem is convex: where steps are damped, every start leads to the same solution.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls
from scipy.special import expit, logsumexp, softmax

from dafh.classifiers import residual
from dafh.linear.designs import BinnedDesign, Design

# Not penalised, but for the last digits: without this, classes could share any constant.
_INTERCEPT_PENALTY = 1e-6
# Rows that are predicted almost surely have next to no curvature, and a step would leave the numbers.
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
    """(n, m): added to what the design gives; m = 1 for two classes."""

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

    def curvatures(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Second derivatives of the loss by the coefficients of one output, (m, p, p); those of two are left out."""
        return self.curvatures_by(logits, np.zeros(len(self.label), np.uint8), 1)[0]

    def curvatures_by(
        self, logits: NDArray[np.float64], part: NDArray[np.integer], n_parts: int
    ) -> NDArray[np.float64]:
        """The same for each part of the rows, (parts, m, p, p)."""
        shares = class_shares(logits)
        spread = np.maximum(shares * (1 - shares), _LEAST_CURVATURE) * self.weight[:, None]
        outputs = [self.design.curvatures(spread[:, output], part, n_parts) for output in range(spread.shape[1])]
        return np.stack(outputs, axis=1)

    def joint_curvatures_by(
        self, logits: NDArray[np.float64], part: NDArray[np.integer], n_parts: int
    ) -> NDArray[np.float64]:
        """Second derivatives by all coefficients, those of one output after those of the other, (parts, pm, pm)."""
        shares, n_outputs, p = class_shares(logits), logits.shape[1], self.design.n_coefficients
        joint = np.empty((n_parts, n_outputs * p, n_outputs * p))
        for one in range(n_outputs):
            for other in range(one + 1):
                # Designs take weights from 0 on, so that the sign of mixed derivatives is put on afterwards.
                if one == other:
                    spread, sign = np.maximum(shares[:, one] * (1 - shares[:, one]), _LEAST_CURVATURE), 1
                else:
                    spread, sign = shares[:, one] * shares[:, other], -1
                found = sign * self.design.curvatures(self.weight * spread, part, n_parts)
                joint[:, one * p : (one + 1) * p, other * p : (other + 1) * p] = found
                joint[:, other * p : (other + 1) * p, one * p : (one + 1) * p] = found
        return joint


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
    tolerance : float
        Stop when a step promises less than this, per unit of weight.

    Examples
    --------
    >>> from dafh.linear.designs import DenseDesign
    >>> rows = Regression(DenseDesign(np.array([[0.0], [1.0]] * 3)), np.array([0, 1] * 3), np.ones(6), np.zeros((6, 1)))
    >>> fit_penalized(rows, np.ones(2)).coefficients.ravel().round(3)
    array([-0.549,  1.098])
    """
    penalty = _with_free_intercept(penalty) if free_intercept else penalty
    quadratic = _Quadratic(penalty)
    coefficients = np.zeros((len(penalty), rows.offset.shape[1])) if start is None else start
    logits = rows.offset + rows.design.logits(coefficients)
    value = rows.loss(logits) + quadratic.value(coefficients)
    enough = tolerance * float(rows.weight.sum())
    factors = None if curvatures is None else _factors(curvatures, quadratic)
    last = np.inf
    for _ in range(_MOST_STEPS):
        gradient = rows.gradient(logits) + quadratic.gradient(coefficients)
        if factors is None:
            factors = _factors(rows.curvatures(logits), quadratic)
        direction = _direction(rows, logits, gradient, quadratic, factors)
        promised = float((gradient * direction).sum())
        if promised <= enough:
            coefficients = coefficients - direction  # So short a step needs no damping, and is paid for.
            break
        coefficients, logits, value, damping = _damped(
            rows, quadratic, coefficients, logits, value, direction, promised
        )
        if damping <= _SMALLEST_DAMPING:  # Nothing is left to gain but rounding.
            break
        if damping < 1 or promised * (promised / last) ** _STEPS_FOR_A_CURVATURE > enough:
            factors = None  # The curvature is another one here.
        last = promised
    return Solution(coefficients, penalty)


def fit_monotonic(
    rows: Regression, penalty: NDArray[np.float64], differences: NDArray[np.float64], *, tolerance: float = 1e-14
) -> Solution:
    """Minimise the penalised loss where differences · coefficients may not be negative; for one output.

    Each step minimises the quadratic approximation under the constraints. In the coordinates of a root of its curvature
    that is the projection on a cone, which non-negative least squares solve exactly: for curvature R'R, the multipliers
    minimise ‖R⁻ᵀ differences' λ + R · target‖ over λ ≥ 0.

    Parameters
    ----------
    rows : Regression
    penalty : array of shape (p,)
        The first entry is of the intercept, which is not penalised.
    differences : array of shape (constraints, p)
    tolerance : float
        Stop when a step promises less than this, per unit of weight.

    Examples
    --------
    >>> from dafh.linear.designs import DenseDesign
    >>> rows = Regression(DenseDesign(np.array([[0.0], [1.0]] * 3)), np.array([0, 1] * 3), np.ones(6), np.zeros((6, 1)))
    >>> fit_monotonic(rows, np.ones(2), np.array([[0.0, -1.0]])).coefficients.ravel().round(3) + 0.0
    array([0., 0.])
    """
    if not len(differences):  # Of columns without points; `nnls` would not survive that.
        return fit_penalized(rows, penalty)
    penalty = _with_free_intercept(penalty)
    quadratic = _Quadratic(penalty)
    coefficients = np.zeros((len(penalty), 1))
    logits = rows.offset + rows.design.logits(coefficients)
    value = rows.loss(logits)
    for _ in range(_MOST_STEPS):
        gradient = rows.gradient(logits) + quadratic.gradient(coefficients)
        root = np.tril(_factors(rows.curvatures(logits), quadratic)[0][0]).T
        target = root @ coefficients[:, 0] - solve_triangular(root, gradient[:, 0], trans="T")
        cone = solve_triangular(root, differences.T, trans="T")
        moved = solve_triangular(root, target + cone @ nnls(cone, -target, maxiter=_MOST_STEPS * len(differences))[0])
        direction = coefficients - moved[:, None]
        promised = float((gradient * direction).sum())
        if promised <= tolerance * float(rows.weight.sum()):
            break
        # Both ends of the way satisfy the constraints, and so does all between them.
        coefficients, logits, value, damping = _damped(
            rows, quadratic, coefficients, logits, value, direction, promised
        )
        if damping <= _SMALLEST_DAMPING:
            break
    return Solution(coefficients, penalty)


def fit_by_evidence(rows: Regression, block: NDArray[np.intp], *, tolerance: float = 1e-10) -> Solution:
    """Fit, and choose the strength of the penalty for each block of coefficients by the evidence for it.

    Coefficients of a block are taken for a sample from a normal distribution around 0. The strength is the inverse of
    its variance, the one under which the labels are most probable: MacKay's update, ``strength = determined / Σ
    coefficient²`` with the number of coefficients that the data determine, ``Σ (1 − strength · variance)``. Columns
    that say little are smoothed or left out, columns that say much are followed closely, with one strength each and
    without a search.

    Parameters
    ----------
    rows : Regression
    block : array of shape (p,)
        Block of each coefficient; −1 for the intercept.

    References
    ----------
    D. MacKay (1992), Bayesian interpolation. S. Wood and M. Fasiolo (2017), A generalized Fellner-Schall method.
    """
    n_outputs = rows.offset.shape[1]
    if block.max() < 0:  # All columns are constant.
        return fit_penalized(rows, np.zeros(len(block)), tolerance=tolerance)
    coefficients = np.zeros((len(block), n_outputs))
    strength = np.full(int(block.max()) + 1, _FIRST_STRENGTH)
    logits = summed_at = rows.offset + rows.design.logits(coefficients)
    before = np.zeros(len(strength))
    for step in range(_MOST_ROUNDS):
        quadratic = _Quadratic(_with_free_intercept(strength[block]))
        value = rows.loss(logits) + quadratic.value(coefficients)
        gradient = rows.gradient(logits) + quadratic.gradient(coefficients)
        if step == 0 or float(rows.weight @ np.abs(logits - summed_at).mean(axis=1)) > _CLOSE * rows.weight.sum():
            curvatures, summed_at = rows.curvatures(logits), logits
        factors = _factors(curvatures, quadratic)
        direction = _direction(rows, logits, gradient, quadratic, factors)
        promised = float((gradient * direction).sum())
        coefficients, logits, _, _ = _damped(rows, quadratic, coefficients, logits, value, direction, promised)
        if step == 0:
            continue  # The first step is still far from the solution, and would mistake that for small effects.
        change, determined = _change_of_strengths(strength, block, coefficients, factors)
        # Two blocks that say the same would go up and down in turns.
        change = np.where(change * before < 0, change / 2, change)
        strength, before = (strength * np.exp(change)).clip(*_STRENGTHS), change
        if (np.abs(change) * np.minimum(determined, 1)).max() < _SETTLED:
            break
    return fit_penalized(rows, strength[block], start=coefficients, curvatures=curvatures, tolerance=tolerance)


def _change_of_strengths(
    strength: NDArray[np.float64], block: NDArray[np.intp], coefficients: NDArray[np.float64], factors: list[_Factor]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Go several updates far: change of each strength, as a logarithm, and the number of coefficients determined.

    MacKay's update goes a part of the way only. Where a block has next to no effect the way took dozens of rounds, each
    with a sum over all rows. While the other blocks keep their strengths, an update needs the eigenvalues of one block
    only, and several updates in one round lead to the same place in half of the rounds.
    """
    of = np.tile(block[block >= 0], len(factors))
    found, along = [], []
    for output, factor in enumerate(factors):
        for number in range(len(strength)):
            first, end = np.searchsorted(block, [number, number + 1])
            # Columns of the inverse's root, which are 0 above the block.
            unit = np.eye(len(block) - first, end - first)
            root = solve_triangular(factor[0][first:, first:], unit, lower=True, check_finite=False)
            values, directions = np.linalg.eigh(root.T @ root)
            found.append(values)
            along.append(directions.T @ coefficients[first:end, output])
    # No eigenvalue is above 1 / strength but by rounding.
    sizes, moved = np.concatenate(found).clip(0.0, 1 / strength[of]), np.concatenate(along)
    free, new = 1 - strength[of] * sizes, strength
    for _ in range(_UPDATES):
        left = 1 + (new - strength)[of] * sizes
        determined = np.bincount(of, free / left, len(strength))
        size = np.bincount(of, (moved / left) ** 2, len(strength))
        new = (np.maximum(determined, 1e-8) / np.maximum(size, 1e-12)).clip(*_STRENGTHS)
    return np.log(new / strength), determined.astype(np.float64)


def _factor(matrix: NDArray[np.float64]) -> _Factor:
    """Factor a curvature with its penalty."""
    try:
        return cho_factor(matrix, lower=True, check_finite=False)
    except LinAlgError:
        # Weights so large that the penalty is lost in rounding. A step with a little more curvature is shorter, and
        # still one downhill.
        return cho_factor(matrix + _LOST_IN_ROUNDING * np.diag(matrix).max() * np.eye(len(matrix)), lower=True)


@dataclass(frozen=True, eq=False)
class _Quadratic:
    """Half the sum of penalty × coefficient²."""

    penalty: NDArray[np.float64]

    def value(self, coefficients: NDArray[np.float64]) -> float:
        return float((coefficients * self.gradient(coefficients)).sum()) / 2

    def gradient(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.penalty[:, None] * coefficients

    def curvature(self) -> NDArray[np.float64]:
        return np.diag(self.penalty)


def _factors(curvatures: NDArray[np.float64], quadratic: _Quadratic) -> list[_Factor]:
    return [_factor(curvature + quadratic.curvature()) for curvature in curvatures]


def _direction(
    rows: Regression,
    logits: NDArray[np.float64],
    gradient: NDArray[np.float64],
    quadratic: _Quadratic,
    factors: list[_Factor],
) -> NDArray[np.float64]:
    """Return the step of Newton's method; for several outputs by conjugate gradients, with one factor per output."""

    def precondition(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack([cho_solve(factor, vector[:, output]) for output, factor in enumerate(factors)])

    if len(factors) == 1:
        return precondition(gradient)
    shares = class_shares(logits)

    def curve(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        change = rows.design.logits(vector)
        spread = shares * (change - (shares * change).sum(axis=1, keepdims=True))
        return rows.design.gradient(rows.weight[:, None] * spread) + quadratic.gradient(vector)

    direction = np.zeros_like(gradient)
    left, pre = gradient.copy(), precondition(gradient)
    search, size = pre, float((left * pre).sum())
    first = size
    if first == 0:  # The start is the solution, to the last digit.
        return direction
    for _ in range(_MOST_CONJUGATE_STEPS):
        curved = curve(search)
        length = size / float((search * curved).sum())
        direction += length * search
        left = left - length * curved
        pre = precondition(left)
        new = float((left * pre).sum())
        if new <= 1e-4 * first:
            break
        search, size = pre + new / size * search, new
    return direction


def _damped(
    rows: Regression,
    quadratic: _Quadratic,
    coefficients: NDArray[np.float64],
    logits: NDArray[np.float64],
    value: float,
    direction: NDArray[np.float64],
    promised: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
    """Go along a direction, half as far until the loss falls as it should: coefficients, logits, value, damping."""
    change = rows.design.logits(direction)
    damping = 1.0
    while True:
        moved, moved_logits = coefficients - damping * direction, logits - damping * change
        moved_value = rows.loss(moved_logits) + quadratic.value(moved)
        if moved_value <= value - 1e-4 * damping * promised:
            return moved, moved_logits, moved_value, damping
        if damping <= _SMALLEST_DAMPING:
            return coefficients, logits, value, damping
        damping /= 2


def _with_free_intercept(penalty: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([[_INTERCEPT_PENALTY], penalty[1:]])
