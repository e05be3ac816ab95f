"""Confidence sequences: limits of a mean that hold at all times together, however often one looks.

The lower limit is the largest mean that bets refute: against every candidate m, a mixture of bettors stakes shares θ of
its capital on x > m, and m is refuted where the capital reaches 1/level (Waudby-Smith and Ramdas 2024). The capital

    Σ_θ prior(θ) Π_i [1 + θ (x_i − m) / (1 + m)]

falls in m, so that a bisection finds the limit, and it depends on the rows only through how often each value of x
occurs: nothing has to be kept but counts. It adapts to the variance by itself: where few rows are discordant, limits
are narrow.

A row of weight w counts as w (x − m), with weights from 0 to 1. Of many different weights, neighbours are put together
between a lower and an upper one; each bet takes the one that is worse for it, so that the level holds.

If the mean changes in time, the lower limit is one of the largest mean so far, and the upper limit one of the smallest.
Where they cross, a change is shown.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dafh.exceptions import InputError

# Shares of the capital. For n rows of variance v the best is about √(8 / n v): from a few rows to some 10⁸.
_SHARES = np.geomspace(2e-4, 0.9, 28)
# More on the larger ones, because limits are wanted early, too.
_PRIOR = _SHARES**0.25 / (_SHARES**0.25).sum()
# Of the largest possible difference: a millionth.
_STEPS = 22
_MOST_AT_ONCE = 10_000


@dataclass(frozen=True, eq=False)
class WeighedCounts:
    """How often each kind of row occurred, for each of Q questions.

    Examples
    --------
    1,000 rows: the own classifier loses 60 that its rival gets right, and wins 40, or none.

    >>> found = WeighedCounts.of_counts(own_worse=[60, 60], own_better=[40, 0], n_rows=[1000, 1000])
    >>> found.lower(0.025).round(3), found.upper(0.025).round(3)
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
    def of_counts(cls, own_worse: ArrayLike, own_better: ArrayLike, n_rows: ArrayLike) -> "WeighedCounts":
        """Rows that count alike, as in `dafh.stats.Differences`."""
        b, c, n = (np.asarray(count, np.float64).ravel() for count in (own_worse, own_better, n_rows))
        if (b < 0).any() or (c < 0).any() or (b + c > n).any():
            raise InputError("Counts must not be negative, and own_worse + own_better must not exceed n_rows.")
        return cls(np.array([1.0, -1.0, 0.0]), np.ones(3), np.ones(3), np.column_stack([b, c, n - b - c]))

    def exchanged(self) -> "WeighedCounts":
        """Return the same with the other sign."""
        return WeighedCounts(-self.x, self.low, self.high, self.counts)

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
            part = slice(first, first + step)
            used = (self.counts[part] > 0).any(axis=0)
            bets = np.log1p(relative[part][:, used, None] * _SHARES)
            logs[part] = np.einsum("qv,qvl->ql", self.counts[part][:, used], bets)
        largest = logs.max(axis=1, keepdims=True)
        return np.log(np.exp(logs - largest) @ _PRIOR) + largest[:, 0]
