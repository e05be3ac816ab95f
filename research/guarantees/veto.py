"""What "evidence" keeps, by enumeration."""

import numpy as np
import pandas as pd
from scipy.stats import binom


def kept_chance(n_rows: int, gain: float, discordance: float) -> float:
    """Probability that a group keeps its own classifier, which must get more rows right; by enumeration."""
    total = np.arange(n_rows + 1)
    # Of so many discordant rows, more than half must be won.
    won = binom.sf(total // 2, total, (discordance + gain) / 2 / discordance)
    return float(binom.pmf(total, n_rows, discordance) @ won)


def veto_table(sizes: tuple[int, ...] = (50, 200, 1000), discordance: float = 0.1) -> pd.DataFrame:
    """Share of own classifiers kept that are worse by 5, 2 and 1 points, equal, or better by 2."""
    gains = {"5 worse": -0.05, "2 worse": -0.02, "1 worse": -0.01, "equal": 0.0, "2 better": 0.02}
    return pd.DataFrame(
        [
            {"rows": n_rows, **{name: kept_chance(n_rows, gain, discordance) for name, gain in gains.items()}}
            for n_rows in sizes
        ]
    )
