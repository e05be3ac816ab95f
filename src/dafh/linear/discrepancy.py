"""How differently two groups can look to linear classifiers: the discrepancy in Theorem 2 of the paper."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dafh.exceptions import InputError

# The weights of all rows add up to 1. With this C the penalty is small, but separable groups still have a solution.
_INVERSE_PENALTY = 1000.0
# Fitted to convergence: with scikit-learn's default tolerance the search stops early, and lower on average.
_SOLVER = {"tol": 1e-6, "max_iter": 1000}
_MOST_ROUNDS = 20
_SMALLEST_IMPROVEMENT = 1e-9


def linear_discrepancy(
    X: ArrayLike, X_reference: ArrayLike, *, n_starts: int = 5, random_state: int | np.random.Generator | None = 0
) -> float:
    """Estimate the discrepancy of two groups over linear classifiers.

    ``disc = max over h, h' of |P(h ≠ h') − P_reference(h ≠ h')|``. For a fixed h' the best h solves a weighted
    classification problem: disagree with h' in one group, agree with it in the other. Logistic regression solves it for
    h and h' in turn, from several starts. The first start is a constant h', so that the result is at least what one
    linear classifier that tells the groups apart reaches.

    The result is a lower bound of the discrepancy of the given rows, because the search is local. With few rows for
    many columns it overestimates the discrepancy of the populations.

    Parameters
    ----------
    X, X_reference : arrays of shape (n, d) and (m, d)
        Rows of the learned group and of the true one.
    n_starts : int, default=5
    random_state : int, Generator or None, default=0

    Returns
    -------
    float
        Between 0 (the groups look alike) and 1.

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
            f"X and X_reference must have rows, and the same columns: their shapes are {X.shape} and {reference.shape}."
        )
    if n_starts < 1:
        raise InputError(f"n_starts must be at least 1, got {n_starts}.")
    rows = StandardScaler().fit_transform(np.vstack([X, reference]))
    sign = np.concatenate([np.full(len(X), 1.0 / len(X)), np.full(len(reference), -1.0 / len(reference))])
    rng = np.random.default_rng(random_state)
    directions = rng.normal(size=(n_starts - 1, rows.shape[1]))
    # Each random start divides the rows at one of them. With a random intercept, most starts in one column
    # had all rows on one side, and the search ended where it began.
    boundaries = np.einsum("sd,sd->s", rows[rng.integers(len(rows), size=n_starts - 1)], directions)
    starts = [np.zeros(len(rows), bool), *(rows @ directions.T > boundaries).T]
    # Both signs: the group may be the one with more disagreement, or the reference.
    return max(_largest_difference(rows, direction * sign, start) for start in starts for direction in (1, -1))


def _largest_difference(rows: NDArray[np.float64], sign: NDArray[np.float64], other: NDArray[np.bool_]) -> float:
    """Improve two linear classifiers in turn until the signed difference of their disagreement stops growing."""
    best = 0.0
    model = LogisticRegression(C=_INVERSE_PENALTY, **_SOLVER)
    for _ in range(_MOST_ROUNDS):
        target = np.where(sign > 0, ~other, other)
        if target.all() or not target.any():
            one = target  # a constant classifier meets every target exactly
        else:
            # Each group has a total weight of 1/2, whatever its size.
            one = model.fit(rows, target, sample_weight=np.abs(sign) / 2).predict(rows)
        value = float(sign[one != other].sum())
        if value <= best + _SMALLEST_IMPROVEMENT:
            break
        best, other = value, one
    return best
