"""Theorems 1 and 2 of the paper, corrected: bounds on the degree of fairness without harm.

The degree is the paper's objective in error rates R_k(h) of group k,

    (1/K) Σ_k { R_k(pooled) − R_k(h_k) + (1/K) Σ_{j ≠ k} [R_k(h_j) − R_k(h_k)] }.

The weights of one group's error rates in it add up to 4 − 2/K in absolute value. This factor replaces the paper's 3,
which is right for two groups only.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dafh.exceptions import InputError

Numbers = np.float64 | NDArray[np.float64]
"""One number where numbers were given, an array where arrays were."""


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


def deviation_epsilon(smallest_group: ArrayLike, n_groups: int, level: float = 0.05) -> Numbers:
    """Return the ε within which the measured degree is right with probability 1 − level (Theorem 1, corrected).

    ``P(|measured − true| > ε) ≤ 2 K (K + 1) exp(−2 ε² n / (4 − 2/K)²)``, with n rows in the smallest group.

    It assumes independent rows that were used neither to train nor to select the classifiers and groups, and a loss
    between 0 and 1. It applies Hoeffding's inequality, two-sided, to the error rates of K + 1 classifiers in K groups
    at once and is therefore wide: for a single group the limits of `dafh.stats.Differences` are narrower.

    Examples
    --------
    >>> print(f"{deviation_epsilon(smallest_group=5000, n_groups=2):.3f}")
    0.070
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, got {level}.")
    n_rows = np.asarray(smallest_group, np.float64)
    if not (n_rows >= 0).all():
        raise InputError(f"smallest_group must not be negative, got {n_rows}.")
    with np.errstate(divide="ignore"):
        off_by = np.sqrt(np.log(2 * n_groups * (n_groups + 1) / level) / (2 * n_rows))
    # Where each error rate is off by no more than this, the degree is off by no more than the factor times it.
    return (deviation_factor(n_groups) * off_by)[()]


def discrepancy_bound(discrepancies: ArrayLike) -> float:
    """Bound what is lost against the true groups (Theorem 2, corrected): (4 − 2/K) · largest discrepancy.

    Each learned group is compared with the true group, of the sensitive attribute, that it stands for. With the best
    classifiers for the learned groups, the degree is at most this much below the best degree for the true groups.

    It assumes a symmetric loss that obeys the triangle inequality (the 0-1 loss does), labels without noise, and for
    each pair of groups a classifier with the same error in both. With estimated discrepancies the bound is an estimate
    too.

    Parameters
    ----------
    discrepancies : array of shape (K,)
        One for each group, from `dafh.linear.linear_discrepancy`.

    Examples
    --------
    >>> discrepancy_bound([0.02, 0.05])
    0.15000000000000002
    """
    values = np.asarray(discrepancies, np.float64).ravel()
    if not len(values) or not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"discrepancies must be one number from 0 to 1 for each group, got {values}.")
    return deviation_factor(len(values)) * float(values.max())
