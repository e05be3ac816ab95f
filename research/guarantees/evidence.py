"""What "evidence" keeps, by enumeration: the error rate alone decides, and fresh rows judge."""

import numpy as np
import pandas as pd
from scipy.stats import binom

from dafh.evaluation.guard import EVIDENCE_LEVEL


def kept_chance(n_rows: int, gain: float, discordance: float, level: float = EVIDENCE_LEVEL) -> float:
    """Probability that a group keeps its own classifier: the exact test of "not better" must have p ≤ `level`."""
    # Other numbers of discordant rows are too unlikely to change a printed digit.
    total = np.arange(binom.ppf(1e-12, n_rows, discordance), binom.isf(1e-12, n_rows, discordance) + 1)
    # Of so many discordant rows, so many must be won at least: the fewest that a fair coin wins with at most this
    # probability. One more than all, where even those would not do.
    needed = binom.isf(level, total, 0.5) + 1
    won = binom.sf(needed - 1, total, (discordance + gain) / 2 / discordance)
    return float(binom.pmf(total, n_rows, discordance) @ won)


def evidence_table(sizes: tuple[int, ...] = (50, 200, 1000), discordance: float = 0.1) -> pd.DataFrame:
    """Share of own classifiers kept that are worse by 5, 2 and 1 points, equal, or better by 2 and by 5."""
    gains = {"5 worse": -0.05, "2 worse": -0.02, "1 worse": -0.01, "equal": 0.0, "2 better": 0.02, "5 better": 0.05}
    return pd.DataFrame(
        [
            {"rows": n_rows, **{name: kept_chance(n_rows, gain, discordance) for name, gain in gains.items()}}
            for n_rows in sizes
        ]
    )
