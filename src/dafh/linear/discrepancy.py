"""How differently two groups can look to linear classifiers: the discrepancy in Theorem 2 of the paper."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dafh.exceptions import InputError

# Directions that are tried in each round, and the sizes of their random changes, from far to near.
_DIRECTIONS = 32
_CHANGES = np.geomspace(1.0, 0.01, _DIRECTIONS)
_MOST_ROUNDS = 40
# Later ones are a matter of small changes.
_LOGISTIC_ROUNDS = 4
# Rounds without improvement after which a search ends: one for each of the two classifiers, and one more chance each.
_PATIENCE = 4


def linear_discrepancy(
    X: ArrayLike, X_reference: ArrayLike, *, random_state: int | np.random.Generator | None = 0
) -> float:
    """Return the discrepancy of two groups over linear classifiers: exact in one column, an estimate in several.

    ``disc = max over h, h' of |P(h ≠ h') − P_reference(h ≠ h')|``. In one column, two classifiers disagree on an
    interval or on all but one, and the largest difference is a range of the difference of the two distribution
    functions. In several, h and h' are improved in turn. For a given direction of h, its best threshold is found
    exactly; directions come from a weighted logistic regression (disagree with h' in one group, agree in the other),
    from changes of the best direction so far, and at random.

    With several columns the result is a lower bound of the discrepancy of the given rows, because the search is local.
    With few rows for many columns it overestimates the discrepancy of the populations.

    Parameters
    ----------
    X, X_reference : arrays of shape (n, d) and (m, d)
        Rows of the learned group and of the true one.
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
    rows = StandardScaler().fit_transform(np.vstack([X, reference]))
    share = np.concatenate([np.full(len(X), 1.0 / len(X)), np.full(len(reference), -1.0 / len(reference))])
    if rows.shape[1] == 1:
        # Sums up to each value; an interval is the difference of two of them.
        sums = _sums_above(rows, share, np.ones((1, 1)))[0]
        return float(sums.max() - sums.min())
    rng = np.random.default_rng(random_state)
    n_starts = int(np.clip(20_000 // len(rows), 5, 40))  # Few rows have more local optima, and take less time.
    # Both signs: the group may be the one with more disagreement, or the reference. The first h' is constant, so that
    # the result is at least what one classifier reaches that tells the groups apart.
    starts = [np.zeros(len(rows), bool), *(rows @ rng.normal(size=(n_starts - 1, rows.shape[1])).T > 0).T]
    return max(_largest_difference(rows, sign * share, start, rng) for start in starts for sign in (1, -1))


def _sums_above(
    rows: NDArray[np.float64], values: NDArray[np.float64], directions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum of the values of the rows above each threshold, (directions, n + 1): none, one, …, all rows."""
    projected = directions @ rows.T
    order = np.argsort(-projected, axis=1)
    sums = np.cumsum(values[order], axis=1)
    # A threshold cannot divide rows that are equal: such sums count as none.
    ranked = np.take_along_axis(projected, order, axis=1)
    sums[:, :-1][ranked[:, :-1] == ranked[:, 1:]] = 0.0
    return np.column_stack([np.zeros(len(directions)), sums])


def _largest_difference(
    rows: NDArray[np.float64], share: NDArray[np.float64], fixed: NDArray[np.bool_], rng: np.random.Generator
) -> float:
    """Improve two linear classifiers in turn until the difference of their disagreement stops growing."""
    best, waited = 0.0, 0
    direction, of_fixed = rng.normal(size=(2, rows.shape[1]))
    for number in range(_MOST_ROUNDS):
        # Where h is 1 it disagrees with h' if that is 0: the row counts +share; where h' is 1, it counts −share.
        values = np.where(fixed, -share, share)
        near = direction / (np.linalg.norm(direction) or 1.0)
        tried = np.vstack([near, near + _CHANGES[:, None] * rng.normal(size=(_DIRECTIONS, len(near)))])
        if number < _LOGISTIC_ROUNDS:
            tried = np.vstack([tried, _logistic(rows, values)])
        tried = np.vstack([tried, -tried])
        sums = _sums_above(rows, values, tried)
        row, count = np.unravel_index(int(sums.argmax()), sums.shape)
        value = float(share[fixed].sum() + sums[row, count])
        waited = 0 if value > best + 1e-12 else waited + 1
        if waited >= _PATIENCE:
            break
        best = max(best, value)
        projected = rows @ tried[row]
        ranked = np.sort(projected)[::-1]
        h = projected >= ranked[count - 1] if count else np.zeros(len(rows), bool)
        # The classifier that was fixed is improved next, from its own direction.
        fixed, direction, of_fixed = h, of_fixed, tried[row]
    return best


def _logistic(rows: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Direction of a logistic regression that tells rows of positive values from those of negative ones, (1, d)."""
    if (values > 0).all() or (values < 0).all():
        return np.zeros((1, rows.shape[1]))
    return LogisticRegression(C=1000.0, max_iter=200).fit(rows, values > 0, np.abs(values)).coef_
