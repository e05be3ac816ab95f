"""Two classifiers on the same rows: test, correction for many questions, and rows needed.

All functions take counts: numbers, or arrays that broadcast.

- b, `own_worse`: rows that the own classifier gets wrong and its rival right;
- c, `own_better`: rows that the own classifier gets right and its rival wrong;
- n, `n_rows`: all rows, including those on which both are right or both are wrong.

The *gap* is the rival's error rate minus the own error rate, (c − b) / n. It is negative if the own classifier does
harm. Rows are assumed to be independent draws from the population in question, and not to have been used to train or
choose the classifiers. `dafh.stats.Differences` has intervals, and compares rows that do not count alike, because of
weights or costs.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, ndtri

Numbers = NDArray[np.float64] | Any


def mcnemar_p(own_worse: ArrayLike, own_better: ArrayLike) -> Numbers:
    """Exact one-sided McNemar test of "the own classifier is not worse than its rival".

    Only discordant rows, on which exactly one of the two is right, carry information. If neither classifier is better,
    each of them favours either one with probability ½, so ``p = P[Bin(b + c, ½) ≤ c]``. With the arguments exchanged,
    it is the test of "the own classifier is not better".

    Parameters
    ----------
    own_worse, own_better : number or array
        b and c, see the module.

    Returns
    -------
    float or array
        Small if the own classifier is worse; 1 if there is no discordant row.

    Examples
    --------
    >>> float(mcnemar_p(own_worse=5, own_better=0)), float(mcnemar_p(0, 0))
    (0.03125, 1.0)
    """
    b, c = (np.asarray(count, np.float64) for count in (own_worse, own_better))
    # The binomial distribution function as an incomplete beta function: scipy's binomtest takes whole numbers only.
    # A count of zero is replaced, for which the beta function is not defined.
    return np.where(b > 0, betainc(np.maximum(b, 1e-12), c + 1, 0.5), 1.0)[()]


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down correction of p-values: at level α, P(any false rejection) ≤ α.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, np.float64)
    order = np.argsort(p, axis=None)
    steps = p.ravel()[order] * np.arange(p.size, 0, -1)
    corrected = np.empty(p.size)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected.reshape(p.shape)


def robust_radius(own_worse: ArrayLike, own_better: ArrayLike, level: ArrayLike = 0.05) -> Numbers:
    """How strong a shift of the population, or a selection of labels, would have to be to overturn "not worse".

    Let Γ be the odds π/(1 − π), with π the lower Clopper-Pearson limit of the share of discordant rows that the own
    classifier wins. In every population in which rows that it loses are less than Γ times as frequent, relative to
    those that it wins, as where these rows come from, it is not worse, with error probability `level`. This is the Γ of
    a sensitivity analysis for matched pairs (Rosenbaum 2002), for a single binary outcome.

    Parameters
    ----------
    own_worse, own_better : number or array
        b and c, see the module; rows that count alike.
    level : float, default=0.05

    Returns
    -------
    float or array
        Below 1 where "not worse" is not shown even without a shift; 0 without a row that was won.

    Examples
    --------
    30 rows won, 10 lost:

    >>> float(robust_radius(own_worse=10, own_better=30).round(2))
    1.58
    """
    b, c = (np.asarray(count, np.float64) for count in (own_worse, own_better))
    # The limit is a quantile of the beta distribution, which is not defined for a count of zero.
    share = np.where(c > 0, betaincinv(np.maximum(c, 1e-12), b + 1, level), 0.0)
    return (share / (1 - share))[()]


def rows_needed(gap: ArrayLike, discordance: ArrayLike, level: float = 0.05, power: float = 0.8) -> Numbers:
    """Number of rows with which `mcnemar_p` at this level finds a true gap of this size with the given power.

    Parameters
    ----------
    gap : number or array
        True difference of the two error rates; its sign does not matter.
    discordance : number or array
        Share of rows that exactly one of the two gets right, (b + c) / n.
    level : float, default=0.05
        Level of the one-sided test.
    power : float, default=0.8
        Probability of finding the gap.

    Returns
    -------
    float or array
        Infinite if the gap is zero. The normal approximation with a continuity correction is on the safe side: on a
        grid of gaps and discordances the exact power is never less than asked for, and up to 11 percentage points more.

    Examples
    --------
    >>> float(rows_needed(gap=0.02, discordance=0.1))
    1643.0
    """
    gap, discordance = np.abs(np.asarray(gap, np.float64)), np.asarray(discordance, np.float64)
    # A gap cannot exceed the discordance. Callers who pass a margin as part of the gap may ask for it all the same.
    discordance = np.clip(np.maximum(discordance, gap), 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = ndtri(1 - level) * np.sqrt(discordance) + ndtri(power) * np.sqrt(discordance - gap**2)
        plain = (spread / gap) ** 2
        corrected = plain / 4 * (1 + np.sqrt(1 + 4 / (plain * gap))) ** 2
    return np.where(gap > 0, np.ceil(corrected), np.inf)[()]
