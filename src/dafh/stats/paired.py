"""Two classifiers on the same rows: test, interval, corrections for many questions, and rows needed.

All functions take counts: numbers, or arrays that broadcast.

- b, `own_worse`: rows that the own classifier gets wrong and its rival right;
- c, `own_better`: rows that the own classifier gets right and its rival wrong;
- n, `n_rows`: all rows, including those on which both are right or both are wrong.

The *gap* is the rival's error rate minus the own error rate, (c − b) / n. It is negative if the own classifier does
harm. Rows are assumed to be independent draws from the population in question, and not to have been used to train or
choose the classifiers. Rows that do not count alike, because of weights or costs, are compared by
`dafh.stats.Differences`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, ndtri

from dafh.exceptions import InputError
from dafh.stats.differences import Differences

Numbers = NDArray[np.float64] | Any

# Keeps divisions and beta functions defined where a count is zero; the result is then replaced.
_TINY = 1e-12


class PairedInterval(NamedTuple):
    """Lower and upper limit of a gap.

    Examples
    --------
    >>> interval = PairedInterval(low=-0.01, high=0.03)
    >>> interval.low <= 0 <= interval.high
    True
    """

    low: Numbers
    high: Numbers


def mcnemar_p(own_worse: ArrayLike, own_better: ArrayLike, *, mid: bool = False) -> Numbers:
    """Exact one-sided McNemar test of "the own classifier is not worse than its rival".

    Only discordant rows, on which exactly one of the two is right, carry information. If neither classifier is better,
    each of them favours either one with probability ½, so ``p = P[Bin(b + c, ½) ≤ c]``. With the arguments exchanged,
    it is the test of "the own classifier is not better".

    Parameters
    ----------
    own_worse, own_better : number or array
        b and c, see the module.
    mid : bool, default=False
        Count the observed outcome by one half (mid-p). The test is then no longer exact but symmetric: equal counts
        give ½, and exchanging the arguments gives 1 − p.

    Returns
    -------
    float or array
        Small if the own classifier is worse; 1, or ½ for mid-p, if there is no discordant row.

    Examples
    --------
    >>> float(mcnemar_p(own_worse=5, own_better=0)), float(mcnemar_p(0, 0)), float(mcnemar_p(3, 3, mid=True))
    (0.03125, 1.0, 0.5)
    """
    b, c = (np.asarray(count, np.float64) for count in (own_worse, own_better))
    # The binomial distribution function as an incomplete beta function: scipy's binomtest takes whole numbers only.
    p = np.where(b > 0, betainc(np.maximum(b, _TINY), c + 1, 0.5), 1.0)
    if mid:  # Halfway between P[X ≤ c] and P[X < c].
        p = (p + np.where(c > 0, 1.0 - betainc(np.maximum(c, _TINY), b + 1, 0.5), 0.0)) / 2
    return p[()]


def paired_interval(
    own_worse: ArrayLike, own_better: ArrayLike, n_rows: ArrayLike, confidence: float = 0.95
) -> PairedInterval:
    """Confidence interval for the gap between two classifiers on the same rows.

    The limits are those of `dafh.stats.Differences`. They hold their level on each side, at any confidence, in groups
    of any size and however often the classifiers disagree (``docs/guarantee.md`` has the table), and they never
    contradict `mcnemar_p`: the lower limit is above 0 exactly if that test shows a gain at (1 − confidence) / 2.

    Parameters
    ----------
    own_worse, own_better, n_rows : number or array
        b, c and n, see the module. Without rows the interval is −1 to 1.
    confidence : float, default=0.95
        Probability that the interval covers the true gap, between 0 and 1.

    Returns
    -------
    PairedInterval
        `low` and `high`, between −1 and 1.

    Examples
    --------
    >>> low, high = paired_interval(own_worse=10, own_better=30, n_rows=1000)
    >>> print(f"{low:.3f} to {high:.3f}")
    0.007 to 0.034
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence!r}.")
    found, shape = _of_counts(own_worse, own_better, n_rows)
    tail = (1 - confidence) / 2
    low, high = (limit.reshape(shape)[()] for limit in found.gain_limits(tail))
    return PairedInterval(low, high)


def _of_counts(*counts: ArrayLike) -> tuple[Differences, tuple[int, ...]]:
    """Differences of rows that count alike, and the shape in which the caller gave them."""
    return Differences.of_counts(*counts), np.broadcast_shapes(*(np.shape(count) for count in counts))


def excluded_harm(own_worse: ArrayLike, own_better: ArrayLike, n_rows: ArrayLike, level: float = 0.05) -> Numbers:
    """Largest harm that the rows do not exclude: the own classifier is not worse than its rival by more than this.

    It is an upper limit at confidence 1 − level for own error minus rival error. It is zero or negative exactly if the
    exact test of "not better" has a p-value of at most `level`: harm is then excluded altogether.

    Examples
    --------
    >>> print(f"{excluded_harm(own_worse=10, own_better=12, n_rows=1000):.4f}")
    0.0068
    >>> bool(excluded_harm(own_worse=10, own_better=30, n_rows=1000) < 0)
    True
    """
    if not 0 < level < 0.5:
        raise InputError(f"level must lie between 0 and 0.5, got {level!r}.")
    found, shape = _of_counts(own_worse, own_better, n_rows)
    return found.upper(level).reshape(shape)[()]


def bonferroni(p: ArrayLike) -> NDArray[np.float64]:
    """Bonferroni's correction: each p-value times their number. At level α, P(any false rejection) ≤ α.

    Examples
    --------
    >>> bonferroni([0.01, 0.04, 0.5])
    array([0.03, 0.12, 1.  ])
    """
    p = np.asarray(p, np.float64)
    return np.minimum(p * p.size, 1.0)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down correction: the same guarantee as `bonferroni`, and p-values that are never larger.

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
