"""Evidence that may be looked at after every row, forever: bets against a hypothesis, and what they have won.

A bettor starts with a capital of 1 and bets, row by row, that the mean of x, a number from −1 to 1, is positive. If the
mean is never positive, given all that came before, no way of betting wins in expectation: the capital is a
non-negative supermartingale, an *e-process*, and the probability that it ever reaches 1/α is at most α (Ville 1939). So
"the own classifier does no harm" may be tested after every row, with x = own loss − pooled loss.

- `Bettors`: the capital. Each of a few bettors stakes a fixed share of what it has (`BETS`). For discordant rows that
  count alike this is a mixture of likelihood ratios for several sizes of harm.
- Bets are never larger than what is missing to the alarm: capital beyond it would be of no use.
- A small part of the capital (3%) is kept back and joins the bets later, row by row. This is what notices harm that
  begins after a good start, when the first bettors have lost nearly all they had.
- Many questions share a level by their number: each of Q needs Q/α.

References: Shafer (2021), Testing by betting; Waudby-Smith and Ramdas (2024), Estimating means of bounded random
variables by betting; Ramdas, Grünwald, Vovk and Shafer (2023), Game-theoretic statistics and safe anytime-valid
inference.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Shares of its capital that each bettor stakes, and what it has at first. The best share for discordant rows of which a
# part p speaks for harm is 2p − 1: 0.2 for harm of 2 percentage points at 10% discordance, 0.5 for 5 points.
BETS = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 0.62])
PRIOR = np.array([0.02, 0.04, 0.07, 0.22, 0.32, 0.33])
# What is kept back, and after how many bets a third or so of it is in play.
_KEPT_BACK = 0.03
_PACE = 100.0
# Bets that are settled at once: a product of so many factors of 0.38 or 1.62 is far from the limits of floating point.
_BLOCK = 128
# No capital grows beyond this: it means no more than 1e100 does, and must not overflow.
_RICHEST = 1e200


def in_play(n_bets: ArrayLike) -> NDArray[np.float64]:
    """Part of the capital kept back that has joined after so many bets: 0 at first, 1 in the end, ever more slowly.

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
        accounts = np.tile(mass * (1 - _KEPT_BACK) * PRIOR, (n_questions, 1))
        return cls(accounts, np.full(n_questions, mass), np.zeros(n_questions))

    def restart(self, questions: NDArray[np.intp], mass: float) -> None:
        """Begin anew for some questions."""
        fresh = type(self).start(len(questions), mass)
        self.accounts[questions], self.mass[questions], self.n_bets[questions] = (
            fresh.accounts,
            fresh.mass,
            fresh.n_bets,
        )

    def cap(self, most: NDArray[np.float64]) -> None:
        """Give away what exceeds a limit for each question, (Q,): large capital would outlive what it was won by.

        Whoever gives away has no more than before, so that the level holds.
        """
        self.accounts *= np.minimum(most / np.maximum(self.accounts.sum(axis=1), 1e-300), 1.0)[:, None]

    @property
    def capital(self) -> NDArray[np.float64]:
        """All that the bettors of a question have, with what is kept back, (Q,): the e-process."""
        return self.accounts.sum(axis=1) + self.mass * _KEPT_BACK * (1 - in_play(self.n_bets))

    def bet(self, question: int, x: NDArray[np.float64], target: float = np.inf) -> NDArray[np.float64]:
        """Settle bets on numbers from −1 to 1, in their order; return the capital after each.

        Parameters
        ----------
        question : int
        x : array of shape (n,)
            Without zeros, which change nothing.
        target : float
            Capital at which an alarm is raised.
        """
        accounts, mass, first = self.accounts[question], self.mass[question], self.n_bets[question]
        joined = in_play(first + np.arange(len(x) + 1))
        deposits, rest = mass * _KEPT_BACK * np.diff(joined), mass * _KEPT_BACK * (1 - joined[1:])
        path, done, size = np.empty(len(x)), 0, _BLOCK
        while done < len(x):
            part = slice(done, done + size)
            before, after = settle(accounts, x[part], deposits[part])
            stakes, capital = before @ BETS, before.sum(axis=1) + rest[part]
            too_much = np.flatnonzero(capital + stakes > target)
            taken = int(too_much[0]) if len(too_much) else len(after)
            path[done : done + taken] = after[:taken].sum(axis=1) + rest[part][:taken]
            accounts = _bounded(after[taken - 1]) if taken else accounts
            done += taken
            size = min(2 * size, _BLOCK)
            if len(too_much):
                missing = (target - capital[taken]) / stakes[taken]
                if missing < 1e-9:  # The target is reached: nothing is staked any more.
                    accounts = accounts + deposits[done:].sum() * PRIOR
                    path[done:] = accounts.sum() + rest[-1]
                    break
                accounts = before[taken] * (1 + missing * BETS * x[done])
                path[done] = accounts.sum() + rest[done]
                done, size = done + 1, 4  # Another bet may be too large soon.
        self.accounts[question], self.n_bets[question] = accounts, first + len(x)
        return path

    def bet_once(self, x: NDArray[np.float64], target: float = np.inf) -> None:
        """Settle one bet of each question, (Q,); 0 is no bet."""
        placed = x != 0
        joined = in_play(self.n_bets + placed) - in_play(self.n_bets)
        self.accounts += np.outer(self.mass * _KEPT_BACK * joined, PRIOR)
        self.n_bets += placed
        missing = np.maximum(target - self.capital, 0.0) / (self.accounts @ BETS)
        self.accounts *= 1 + np.outer(np.minimum(missing, 1.0) * x, BETS)


def settle(
    accounts: NDArray[np.float64], x: NDArray[np.float64], deposits: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Accounts before each bet, with what joins for it, and after it, (n, L) each.

    An account follows a ← (a + deposit)(1 + λx). Divided by the product of all factors so far, it is a plain sum.
    """
    products = np.empty((len(x) + 1, len(BETS)))
    products[0] = 1.0
    np.cumprod(1 + x[:, None] * BETS, axis=0, out=products[1:])
    earlier, growth = products[:-1], products[1:]
    invested = accounts + np.cumsum(deposits[:, None] * PRIOR / earlier, axis=0)
    return invested * earlier, invested * growth


def _bounded(accounts: NDArray[np.float64]) -> NDArray[np.float64]:
    total = float(accounts.sum())
    return accounts * (_RICHEST / total) if total > _RICHEST else accounts
