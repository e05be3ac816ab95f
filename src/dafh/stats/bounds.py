"""What theory promises about the degree of fairness without harm: Theorems 1 and 2 of the paper, corrected.

The degree is the paper's objective in error rates R_k(h) of group k,

    (1/K) Σ_k { R_k(pooled) − R_k(h_k) + (1/K) Σ_{j ≠ k} [R_k(h_j) − R_k(h_k)] }.

In it the error rates of one group have weights that add up to 4 − 2/K in absolute value, and that factor takes the
place of the paper's 3, which is right for two groups only.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit

from dafh.exceptions import InputError


def deviation_factor(n_groups: int) -> float:
    """Largest change of the degree, in units of the largest change of any error rate: 4 − 2/K.

    Examples
    --------
    >>> deviation_factor(2), deviation_factor(4)
    (3.0, 3.5)
    """
    if n_groups < 1:
        raise InputError(f"n_groups must be at least 1, got {n_groups}.")
    return 4.0 - 2.0 / n_groups


def deviation_probability(epsilon: ArrayLike, smallest_group: ArrayLike, n_groups: int) -> Any:
    """Bound on the probability that the measured degree is off by more than ε (Theorem 1, corrected).

    ``P(|measured − true| > ε) ≤ 2 K (K + 1) exp(−2 ε² n / (4 − 2/K)²)``

    Assumes classifiers and groups that are fixed before the rows are seen (rows that neither trained nor selected
    them), independent rows, and a loss between 0 and 1. It is Hoeffding's inequality for every error rate at once,
    hence wide: the intervals of `dafh.stats.paired` say more about a single group.

    Parameters
    ----------
    epsilon : float or array
    smallest_group : int or array
        Rows of the smallest group.
    n_groups : int

    Examples
    --------
    >>> print(f"{deviation_probability(epsilon=0.1, smallest_group=5000, n_groups=2):.6f}")
    0.000179
    """
    scaled = np.asarray(epsilon, np.float64) / deviation_factor(n_groups)
    chance = 2 * n_groups * (n_groups + 1) * np.exp(-2 * scaled**2 * np.asarray(smallest_group, np.float64))
    return np.minimum(chance, 1.0)[()]


def deviation_epsilon(smallest_group: ArrayLike, n_groups: int, level: float = 0.05) -> Any:
    """Distance ε within which the measured degree lies with probability 1 − level; see `deviation_probability`.

    Examples
    --------
    >>> print(f"{deviation_epsilon(smallest_group=5000, n_groups=2):.3f}")
    0.070
    """
    rows = np.asarray(smallest_group, np.float64)
    with np.errstate(divide="ignore"):
        return (deviation_factor(n_groups) * np.sqrt(_log_odds(n_groups, level) / (2 * rows)))[()]


def deviation_rows(epsilon: ArrayLike, n_groups: int, level: float = 0.05) -> Any:
    """Rows that the smallest group needs for the measured degree to be within ε; see `deviation_probability`.

    Examples
    --------
    >>> float(deviation_rows(epsilon=0.1, n_groups=2))
    2467.0
    """
    scaled = np.asarray(epsilon, np.float64) / deviation_factor(n_groups)
    with np.errstate(divide="ignore"):
        return np.ceil(_log_odds(n_groups, level) / (2 * scaled**2))[()]


def _log_odds(n_groups: int, level: float) -> float:
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, got {level}.")
    return float(np.log(2 * n_groups * (n_groups + 1) / level))


def discrepancy_bound(discrepancies: ArrayLike) -> float:
    """Bound on what is lost against the true groups (Theorem 2, corrected): (4 − 2/K) · largest discrepancy.

    With the best classifiers for the learned groups, the degree is at most this much below the best one for the groups
    of the sensitive attribute, if each learned group k is compared with the true group it stands for.

    Assumes a symmetric loss that obeys the triangle inequality (the 0-1 loss does), a labelling function without noise,
    and for each pair of groups some classifier with the same error in both. With estimated discrepancies it is an
    estimate too.

    Parameters
    ----------
    discrepancies : array of shape (K,)
        One for each group, from `linear_discrepancy`.

    Examples
    --------
    >>> discrepancy_bound([0.02, 0.05])
    0.15000000000000002
    """
    values = np.asarray(discrepancies, np.float64).ravel()
    return deviation_factor(len(values)) * float(values.max())


def linear_discrepancy(
    X: ArrayLike, X_reference: ArrayLike, *, n_starts: int = 5, random_state: int | np.random.Generator | None = 0
) -> float:
    """Estimate the discrepancy of two groups over linear classifiers: how differently two classifiers can disagree.

    ``disc = max over h, h' of |P(h ≠ h') − P_reference(h ≠ h')|``. With h' held, the best h solves a classification
    problem with weights: disagree with h' in one group, agree with it in the other. That is solved by logistic
    regression, for h and h' in turn, from several starts; the first has a constant h', so that the result is never less
    than what a linear classifier that tells the groups apart reaches.

    It is the discrepancy of the rows given, found by local search: a lower bound of that, and with few rows for many
    columns an overestimate of the one between the populations.

    Parameters
    ----------
    X, X_reference : arrays of shape (n, d) and (m, d)
        Rows of the learned group and of the true one.
    n_starts : int, default=5
    random_state : int, Generator or None, default=0

    Returns
    -------
    float
        Between 0 (no difference can be seen) and 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> one, other = rng.normal(size=(500, 2)), rng.normal(size=(500, 2)) + [4, 0]
    >>> linear_discrepancy(one, other) > 0.9
    True
    """
    X, reference = np.asarray(X, np.float64), np.asarray(X_reference, np.float64)
    if X.ndim != 2 or reference.ndim != 2 or X.shape[1] != reference.shape[1] or not len(X) or not len(reference):
        raise InputError(
            f"X and X_reference need rows, and the same columns: their shapes are {X.shape} and {reference.shape}."
        )
    rows = np.vstack([X, reference])
    scale = rows.std(axis=0)
    design = np.column_stack([(rows - rows.mean(axis=0)) / np.where(scale > 0, scale, 1.0), np.ones(len(rows))])
    sign = np.concatenate([np.full(len(X), 1.0 / len(X)), np.full(len(reference), -1.0 / len(reference))])
    rng = np.random.default_rng(random_state)
    starts = [np.zeros(len(rows), bool), *(design @ rng.normal(size=(design.shape[1], n_starts - 1)) > 0).T]
    return max(max(_alternate(design, direction * sign, start)) for start in starts for direction in (1, -1))


def _alternate(design: NDArray[Any], sign: NDArray[Any], other: NDArray[np.bool_]) -> Iterator[float]:
    """Improve two linear classifiers in turn; yield the signed difference of their disagreement while it grows."""
    best = 0.0
    yield best
    for _ in range(20):
        target = np.where(sign > 0, ~other, other)
        one = design @ _weighted_logistic(design, target, np.abs(sign)) > 0
        value = float(sign[one != other].sum())
        if value <= best + 1e-9:
            return
        yield value
        best, other = value, one


def _weighted_logistic(design: NDArray[Any], target: NDArray[np.bool_], weight: NDArray[Any]) -> NDArray[Any]:
    """Coefficients of a logistic regression with a little shrinkage, so that separable groups have a solution too."""
    toward = np.where(target, 1.0, -1.0)
    weight = weight / weight.sum()

    def loss(coefficients: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        margin = toward * (design @ coefficients)
        gradient = -(design * (weight * toward * expit(-margin))[:, None]).sum(axis=0)
        return (
            float((weight * np.logaddexp(0, -margin)).sum() + 5e-4 * (coefficients**2).sum()),
            gradient + 1e-3 * coefficients,
        )

    return minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B").x
