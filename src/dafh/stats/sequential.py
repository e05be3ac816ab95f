"""Evidence that may be looked at after every row, forever: alarms, limits of a mean, and changes of shares.

**Bets** (`Bettors`). A bettor starts with a capital of 1 and bets, row by row, that the mean of x, a number from −1 to
1, is positive. If the mean is never positive, given all that came before, no way of betting wins in expectation: the
capital is a non-negative supermartingale, an *e-process*, and the probability that it ever reaches 1/α is at most α
(Ville 1939). So "the own classifier does no harm" may be tested after every row, with x = own loss − pooled loss. Many
questions share a level by their number: each of Q needs Q/α.

**Limits** (`WeightedCounts`). The lower limit of a mean is the largest m that bets refute: against every candidate m a
mixture of bettors stakes shares θ of its capital on x > m, and m is refuted where the capital reaches 1/level. If the
mean changes in time, the lower limit is one of the largest mean so far, and the upper limit one of the smallest; where
they cross, a change is shown.

**Shares** (`drift_evidence`). A share in training is itself an estimate. So two things must happen before a change is
claimed: the training share is known to lie in an interval (Clopper and Pearson), at one half of the level, and rows
since then are evidence against every share in that interval, at the other half.

References: Shafer (2021), Testing by betting; Waudby-Smith and Ramdas (2024), Estimating means of bounded random
variables by betting; Ramdas, Grünwald, Vovk and Shafer (2023), Game-theoretic statistics and safe anytime-valid
inference.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, betaln, logsumexp, xlog1py, xlogy

from dafh.exceptions import InputError

# ---- bets that a mean is positive ----

# Shares λ of its capital that each bettor stakes, and what it has at first. The best share for discordant rows of which
# a part p speaks for harm is 2p − 1: 0.2 for harm of 2 percentage points at 10% discordance, 0.5 for 5 points. A single
# λ would be fast for one size of harm only; a mixture loses at most the logarithm of the part of the best bettor.
BETS = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 0.62])
PRIOR = np.array([0.02, 0.04, 0.07, 0.22, 0.32, 0.33])
# Part of the capital that is kept in reserve, and after how many bets a third or so of it is in play. It notices harm
# that begins after a good start, when the first bettors have lost nearly all they had.
_RESERVE = 0.03
_PACE = 100.0
# Bets that are settled at once: a product of so many factors of 0.38 or 1.62 is far from the limits of floating point.
_BLOCK = 128
# No capital grows beyond this: it means no more than 1e100 does, and must not overflow.
_RICHEST = 1e200
# Part of a stake below which nothing is staked: the target is reached but for rounding.
_SMALLEST_STAKE = 1e-9


def in_play(n_bets: ArrayLike) -> NDArray[np.float64]:
    """Part of the reserve that has joined after so many bets: 0 at first, 1 in the end, ever more slowly.

    Examples
    --------
    >>> in_play([0, 100, 10_000]).round(2)
    array([0.  , 0.41, 0.82])
    """
    return 1.0 - 1.0 / (1.0 + np.log1p(np.asarray(n_bets, np.float64) / _PACE))


@dataclass(eq=False)
class Bettors:
    """Capital of those who bet on Q questions; `bet` settles bets of one question, `bet_once` one of each.

    Examples
    --------
    The own classifier loses 17 of 20 discordant rows. The capital then exceeds 20. If the classifier does no harm, the
    probability that this ever happens is at most 5%.

    >>> bettors = Bettors.start(n_questions=1)
    >>> path = bettors.bet(0, np.repeat([1.0, -1.0, 1.0], [5, 3, 12]))
    >>> print(f"{path[-1]:.1f}")
    105.3
    """

    accounts: NDArray[np.float64]
    """What each bettor has, (Q, L)."""
    mass: NDArray[np.float64]
    """Capital at the start, (Q,)."""
    n_bets: NDArray[np.float64]
    """Bets so far, (Q,): rows with a difference other than 0."""

    @classmethod
    def start(cls, n_questions: int, mass: float = 1.0) -> Self:
        """Begin with a capital of `mass` for every question; a mass below 1 leaves room for a later start."""
        accounts = np.tile(mass * (1 - _RESERVE) * PRIOR, (n_questions, 1))
        return cls(accounts, np.full(n_questions, mass), np.zeros(n_questions))

    def restart(self, questions: NDArray[np.intp], mass: float) -> None:
        """Begin anew for some questions."""
        self.accounts[questions] = mass * (1 - _RESERVE) * PRIOR
        self.mass[questions] = mass
        self.n_bets[questions] = 0.0

    def cap(self, most: NDArray[np.float64]) -> None:
        """Give away what exceeds a limit for each question, (Q,): large capital would outlive what it was won by.

        Whoever gives away has no more than before, so that the level holds.
        """
        self.accounts *= np.minimum(most / np.maximum(self.accounts.sum(axis=1), 1e-300), 1.0)[:, None]

    @property
    def capital(self) -> NDArray[np.float64]:
        """All that the bettors of a question have, with the reserve, (Q,): the e-process."""
        return self.accounts.sum(axis=1) + self.mass * _RESERVE * (1 - in_play(self.n_bets))

    def bet(self, question: int, x: NDArray[np.float64], target: float = np.inf) -> NDArray[np.float64]:
        """Settle bets on numbers from −1 to 1, in their order; return the capital after each.

        Bets are never larger than what is missing to the target: capital beyond it would be of no use. Row by row, as
        in `bet_once`, 100,000 bets would take 70 times as long as in blocks.

        Parameters
        ----------
        question : int
        x : array of shape (n,)
            Without zeros, which change nothing.
        target : float
            Capital at which an alarm is raised.
        """
        accounts, first_bet = self.accounts[question], self.n_bets[question]
        reserve = self.mass[question] * _RESERVE * (1 - in_play(first_bet + np.arange(len(x) + 1)))
        deposits, reserve = -np.diff(reserve), reserve[1:]
        path, start = np.empty(len(x)), 0
        while start < len(x):
            block = slice(start, start + _BLOCK)
            opening, closing = _settle(accounts, x[block], deposits[block])
            stakes = opening @ BETS
            missing = target - opening.sum(axis=1) - reserve[block]
            too_large = np.flatnonzero(stakes > missing)
            n_settled = int(too_large[0]) if len(too_large) else len(closing)
            path[start : start + n_settled] = closing[:n_settled].sum(axis=1) + reserve[block][:n_settled]
            if n_settled:
                accounts = closing[n_settled - 1]
                accounts = accounts * min(_RICHEST / float(accounts.sum()), 1.0)
            start += n_settled
            if len(too_large):
                share = missing[n_settled] / stakes[n_settled]
                if share < _SMALLEST_STAKE:
                    accounts = accounts + deposits[start:].sum() * PRIOR
                    path[start:] = accounts.sum() + reserve[-1]
                    break
                accounts = opening[n_settled] * (1 + share * BETS * x[start])
                path[start] = accounts.sum() + reserve[start]
                start += 1
        self.accounts[question], self.n_bets[question] = accounts, first_bet + len(x)
        return path

    def bet_once(self, x: NDArray[np.float64], target: float = np.inf) -> None:
        """Settle one bet of each question, (Q,); 0 is no bet."""
        is_bet = x != 0
        joined = in_play(self.n_bets + is_bet) - in_play(self.n_bets)
        self.accounts += np.outer(self.mass * _RESERVE * joined, PRIOR)
        self.n_bets += is_bet
        missing = np.maximum(target - self.capital, 0.0) / (self.accounts @ BETS)
        self.accounts *= 1 + np.outer(np.minimum(missing, 1.0) * x, BETS)


def _settle(
    accounts: NDArray[np.float64], x: NDArray[np.float64], deposits: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Accounts as each bet is placed, with what joins from the reserve, and after it, (n, L) each.

    An account follows a ← (a + deposit)(1 + λx). Divided by the product of all factors so far, it is a plain sum.
    """
    products = np.ones((len(x) + 1, len(BETS)))
    np.cumprod(1 + x[:, None] * BETS, axis=0, out=products[1:])
    invested = accounts + np.cumsum(deposits[:, None] * PRIOR / products[:-1], axis=0)
    return invested * products[:-1], invested * products[1:]


# ---- limits of a mean that hold at all times together ----

# Shares θ of the capital. For n rows of variance v the best is about √(8 / n v): from a few rows to some 10⁸.
_SHARES = np.geomspace(2e-4, 0.9, 28)
# More on the larger ones, because limits are wanted early, too.
_SHARE_PRIOR = _SHARES**0.25 / (_SHARES**0.25).sum()
# Bisections: to a millionth of the largest possible difference.
_STEPS = 22
_MOST_AT_ONCE = 10_000


@dataclass(frozen=True, eq=False)
class WeightedCounts:
    """How often each kind of row occurred, for each of Q questions, and limits of the mean that hold at all times.

    The capital against a mean m is Σ_θ prior(θ) Π_i [1 + θ w_i (x_i − m) / (1 + m)]. It falls in m, so that a bisection
    finds the limit, and depends on the rows only through how often each value occurs: nothing has to be kept but
    counts. It adapts to the variance by itself: where few rows are discordant, limits are narrow.

    Weights w are from 0 to 1. Of many different weights, neighbours are put together between a lower and an upper one;
    each bet takes the one that is worse for it, so that the level holds.

    Examples
    --------
    1,000 rows: the own classifier loses 60 that its rival gets right, and wins 40, or none.

    >>> rows = WeightedCounts.of_counts(own_worse=[60, 60], own_better=[40, 0], n_rows=[1000, 1000])
    >>> rows.lower(0.025).round(3), rows.upper(0.025).round(3)
    (array([-0.013,  0.039]), array([0.054, 0.088]))
    """

    x: NDArray[np.float64]
    """Value of each kind, from −1 to 1, (V,)."""
    low: NDArray[np.float64]
    """Smallest weight of the rows of each kind, (V,)."""
    high: NDArray[np.float64]
    """Largest weight, (V,)."""
    counts: NDArray[np.float64]
    """(Q, V)"""

    @classmethod
    def of_counts(cls, own_worse: ArrayLike, own_better: ArrayLike, n_rows: ArrayLike) -> "WeightedCounts":
        """Rows that count alike, as in `dafh.stats.Differences`."""
        b, c, n = (np.asarray(count, np.float64).ravel() for count in (own_worse, own_better, n_rows))
        if (b < 0).any() or (c < 0).any() or (b + c > n).any():
            raise InputError("Counts must not be negative, and own_worse + own_better must not exceed n_rows.")
        return cls(np.array([1.0, -1.0, 0.0]), np.ones(3), np.ones(3), np.column_stack([b, c, n - b - c]))

    def exchanged(self) -> "WeightedCounts":
        """Return the same with the other sign."""
        return WeightedCounts(-self.x, self.low, self.high, self.counts)

    def lower(self, level: float) -> NDArray[np.float64]:
        """Lower limit of each mean, (Q,), with error probability `level` at all times together; −1 without rows."""
        if not 0 < level < 1:
            raise InputError(f"level must lie between 0 and 1, got {level!r}.")
        low, high = np.full(len(self.counts), -1.0), np.ones(len(self.counts))
        for _ in range(_STEPS):
            middle = (low + high) / 2
            refuted = self.lies_above(middle, level)
            low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
        return low

    def lies_above(self, mean: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
        """Whether the lower limit of each mean lies above a number, (Q,): one step of the search for it."""
        return self._log_capital(mean) >= -np.log(level)

    def upper(self, level: float) -> NDArray[np.float64]:
        """Upper limit of each mean, (Q,)."""
        return -self.exchanged().lower(level)

    def _log_capital(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithm of what those have who bet that the mean is larger, (Q,)."""
        won = self.x - mean[:, None]
        weight = np.where(won > 0, self.low, self.high)
        relative = weight * won / (1 + mean[:, None])
        # Many questions at once, unless weights differ: each then has many kinds of rows, of which most do not occur.
        step = max(_MOST_AT_ONCE // self.counts.shape[1], 1)
        logs = np.empty((len(mean), len(_SHARES)))
        for first in range(0, len(mean), step):
            block = slice(first, first + step)
            used = (self.counts[block] > 0).any(axis=0)
            bets = np.log1p(relative[block][:, used, None] * _SHARES)
            logs[block] = np.einsum("qv,qvl->ql", self.counts[block][:, used], bets)
        largest = logs.max(axis=1, keepdims=True)
        return np.log(np.exp(logs - largest) @ _SHARE_PRIOR) + largest[:, 0]


# ---- shares that should be what they were in training ----

# How much the beta distributions trust the training share, in rows: small ones find large changes first.
_TRUST = np.array([10.0, 100.0, 1000.0, 10_000.0])


def share_interval(hits: ArrayLike, n_rows: ArrayLike, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Clopper and Pearson's interval for a share, of which `hits` of `n_rows` were observed; 0 to 1 without rows.

    Examples
    --------
    >>> low, high = share_interval([0, 50], [100, 100], level=0.05)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.398]), array([0.036, 0.602]))
    """
    k, n = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(n_rows, np.float64))
    # Quantiles of beta distributions, which are not defined for a count of zero.
    low = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), n - k + 1, level / 2), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1e-9), 1 - level / 2), 1.0)
    return low, high


def drift_evidence(
    hits: ArrayLike,
    n_rows: ArrayLike,
    reference_hits: ArrayLike,
    reference_rows: ArrayLike,
    level: float,
    margin: float = 0.0,
) -> NDArray[np.float64]:
    """Evidence that a share differs from every share that the reference rows allow.

    The evidence against a share p is a mixture of likelihood ratios over beta distributions around the training share,
    an e-process. At all times together, the probability that it reaches 1/a where the share is what it was is at most
    a + level.

    Parameters
    ----------
    hits, n_rows : numbers or arrays
        Rows since the start that have the property, of how many.
    reference_hits, reference_rows : numbers or arrays
        The same in the reference rows.
    level : float
        Error probability of the interval of the reference share.
    margin : float, default=0
        Change that is tolerated.

    Returns
    -------
    array
        1 without rows.

    Examples
    --------
    A share of 10% in 5,000 training rows; then 100 and 150 of 1,000 rows.

    >>> drift_evidence([100, 150], 1000, 500, 5000, level=0.025).round(1)
    array([ 0.5, 72.8])
    """
    counts = (hits, n_rows, reference_hits, reference_rows)
    k, n, k0, n0 = np.broadcast_arrays(*(np.asarray(count, np.float64) for count in counts))
    low, high = share_interval(k0, n0, level)
    low, high = np.maximum(low - margin, 0.0), np.minimum(high + margin, 1.0)
    share = np.where(n > 0, k / np.maximum(n, 1.0), low)
    # The likelihood ratio is smallest for the share in the interval that is nearest to the one observed.
    p = np.clip(share, low, high)
    # Beta distributions around the training share, each with parameters that add up to its trust in rows.
    center = (k0 + 0.5) / (n0 + 1.0)
    a, b = center[..., None] * _TRUST, (1 - center[..., None]) * _TRUST
    # Σ_trust B(a + k, b + n − k) / B(a, b) / 4, over p^k (1 − p)^(n − k).
    mixed = betaln(a + k[..., None], b + (n - k)[..., None]) - betaln(a, b)
    log_ratio = logsumexp(mixed - np.log(len(_TRUST)), axis=-1) - xlogy(k, p) - xlog1py(n - k, -p)
    return np.exp(np.clip(log_ratio, -700, 700))
