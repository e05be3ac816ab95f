"""How often a limit is missed: exactly, by enumeration of all outcomes."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from scipy.stats import binom

from dafh.stats import Differences

LEVELS = (0.05, 0.025, 0.005, 0.001)
"""Levels of one limit: of a test, of one side of a 95% interval, and what ten and fifty questions leave of a level."""
# Outcomes with a smaller probability are left out of an enumeration; all of them together change no printed digit.
_NEGLIGIBLE = 1e-9


def missed(n_rows: int, discordance: float, harm: float, levels: ArrayLike = LEVELS) -> NDArray[np.float64]:
    """Probability that rows which count alike show less harm than there is, for each level.

    Enumeration has no sampling error: by simulation, 5.0 % could not be told from 5.1 %. Of a given number of
    discordant rows, the more are won the smaller is the p-value. So it is enough to find where it falls to the level.
    """
    levels = np.atleast_1d(np.asarray(levels, np.float64))
    won = (discordance - harm) / 2 / discordance
    first, last = (int(binom.ppf(q, n_rows, discordance)) for q in (_NEGLIGIBLE, 1 - _NEGLIGIBLE))
    total = np.tile(np.arange(first, last + 1), (len(levels), 1))
    level = np.broadcast_to(levels[:, None], total.shape)
    # The smallest number of won rows that passes lies in (low, high], or beyond what can reasonably happen.
    low = binom.ppf(_NEGLIGIBLE, total, won) - 1
    high = np.minimum(binom.ppf(1 - _NEGLIGIBLE, total, won), total) + 1
    while (open_ := np.flatnonzero((high - low > 1).ravel())).size:
        middle = ((low + high) // 2).ravel()[open_]
        m = total.ravel()[open_]
        passes = Differences.of_counts(m - middle, middle, n_rows).p_within(harm) <= level.ravel()[open_]
        high.ravel()[open_[passes]] = middle[passes]
        low.ravel()[open_[~passes]] = middle[~passes]
    return (binom.pmf(total, n_rows, discordance) * binom.sf(high - 1, total, won)).sum(axis=1)


def limit_table(
    sizes: Sequence[int] = (5, 10, 20, 50, 100, 500, 1000, 5000),
    discordances: Sequence[float] = (0.01, 0.05, 0.2, 0.4, 0.7, 0.95, 1.0),
    relative_harms: Sequence[float] = (-0.95, -0.75, -0.5, -0.25, -0.05, 0.0, 0.05, 0.25, 0.5, 0.75, 0.95),
) -> pd.DataFrame:
    """How often a limit is missed at worst, for each number of rows and level, and the worst ratio to the level."""
    cases = list(itertools.product(discordances, relative_harms))
    worst = {n: np.max([missed(n, psi, psi * share) for psi, share in cases], axis=0) for n in sizes}
    return pd.DataFrame([{"rows": n_rows, **_by_level(shares)} for n_rows, shares in worst.items()])


def _by_level(worst: NDArray[np.float64]) -> dict[str, float]:
    columns = {f"missed at {100 * level:g}%": float(share) for level, share in zip(LEVELS, worst, strict=True)}
    return {**columns, "worst ratio to the level": float((worst / LEVELS).max())}


# ---- costs ----

COST_OUTCOMES = np.array([5.0, 1.0, 0.0, -1.0, -5.0])
"""Own cost minus rival cost of a row, for a false positive that costs 1 and a false negative that costs 5."""


def cost_missed(n_rows: int, chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability that rows show less harm in costs than there is, for each of the `LEVELS`, over all outcomes.

    Parameters
    ----------
    n_rows : int
    chances : array of shape (5,)
        Probabilities of `COST_OUTCOMES`.
    """
    counts = all_counts(n_rows, len(chances))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log(chances), 0.0) - gammaln(counts + 1)
    chance = np.exp(gammaln(n_rows + 1) + terms.sum(axis=1))
    possible = chance > _NEGLIGIBLE / len(chance)
    differences = Differences(COST_OUTCOMES, np.ones(5), counts[possible], worst=5.0)
    p = differences.p_within(float(chances @ COST_OUTCOMES))
    return np.array([chance[possible] @ (p <= level) for level in LEVELS])


def all_counts(n_rows: int, n_kinds: int) -> NDArray[np.float64]:
    """All ways to divide rows among kinds, one in each line.

    Examples
    --------
    >>> all_counts(2, 2)
    array([[0., 2.],
           [1., 1.],
           [2., 0.]])
    """
    # Bars between stars: n_kinds − 1 of n_rows + n_kinds − 1 places.
    bars = np.array(list(itertools.combinations(range(n_rows + n_kinds - 1), n_kinds - 1)))
    ends = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), n_rows + n_kinds - 1)])
    return np.diff(ends, axis=1).astype(np.float64) - 1


def random_chances(n_kinds: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw probabilities of several kinds: about alike, or with most of the weight on one or two of them."""
    chances = rng.dirichlet(np.full(n_kinds, rng.choice([0.15, 0.4, 1.0, 4.0])))
    return (chances + 1e-6) / (1 + 1e-6 * n_kinds)


def cost_table(sizes: Sequence[int] = (5, 10, 20), n_distributions: int = 200, seed: int = 0) -> pd.DataFrame:
    """How often a limit for costs is missed at worst, over random distributions of `COST_OUTCOMES`."""
    rng, table = np.random.default_rng(seed), []
    for n_rows in sizes:
        # An enumeration of 20 rows takes ten times as long as one of 10.
        number = n_distributions if n_rows <= 10 else n_distributions // 5
        cases = [cost_missed(n_rows, random_chances(5, rng)) for _ in range(number)]
        table.append({"rows": n_rows, "distributions": number, **_by_level(np.max(cases, axis=0))})
    return pd.DataFrame(table)
