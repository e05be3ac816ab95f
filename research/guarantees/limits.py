"""How often any limit of a gain is ever missed, and any share is wrongly said to have drifted."""

import numpy as np
import pandas as pd

from dafh.stats import WeightedCounts, drift_evidence


def missed_share(
    chance: tuple[float, float, float], n_groups: int, n_rows: int, n_looks: int, n_worlds: int, seed: int
) -> float:
    """Share of worlds in which the limits of any group ever miss its gain, at level 5%.

    `chance` are the probabilities that only the own classifier is wrong, only the pooled one, and neither or both.
    """
    rng = np.random.default_rng(seed)
    looks = np.unique(np.geomspace(1, n_rows, n_looks).astype(int))
    steps = np.diff(looks, prepend=0)
    harm, level = chance[0] - chance[1], 0.05 / 2 / n_groups
    x, ones = np.array([1.0, -1.0, 0.0]), np.ones(3)
    n_missed = 0
    for _ in range(n_worlds):
        counts = np.stack([rng.multinomial(step, chance, n_groups) for step in steps], axis=1).cumsum(axis=1)
        totals = WeightedCounts(x, ones, ones, counts.reshape(-1, 3).astype(float))
        truth = np.full(len(totals.counts), harm)
        # One step of the search for each limit tells on which side of the truth it lies.
        n_missed += bool(totals.lies_above(truth, level).any() or totals.exchanged().lies_above(-truth, level).any())
    return n_missed / n_worlds


def coverage_table(n_worlds: int = 2000, n_looks: int = 200) -> pd.DataFrame:
    """Percentage of worlds in which all limits hold at all looks, of up to 200,000 rows."""
    rows = []
    for number, (discordance, harm) in enumerate([(0.01, 0.0), (0.1, 0.0), (0.1, 0.02), (0.5, -0.1)]):
        chance = ((discordance + harm) / 2, (discordance - harm) / 2, 1 - discordance)
        line: dict[str, object] = {"discordance, %": 100 * discordance, "gain, points": -100 * harm}
        for n_groups in (1, 4, 12):
            missed = missed_share(chance, n_groups, 200_000, n_looks, n_worlds, number)
            line[f"{n_groups} group" + "s" * (n_groups > 1)] = 100 * (1 - missed)
        rows.append(line)
    return pd.DataFrame(rows)


def drift_table(n_worlds: int = 2000, n_looks: int = 60) -> pd.DataFrame:
    """Percentage of worlds in which a share that stays the same is ever said to have changed, at level 5%."""
    rows = []
    looks = np.unique(np.geomspace(1, 200_000, n_looks).astype(int))
    for number, share in enumerate((0.001, 0.01, 0.1, 0.5)):
        line: dict[str, object] = {"share, %": 100 * share}
        for reference in (100, 5000, 200_000):
            rng = np.random.default_rng([number, reference])
            before = rng.binomial(reference, share, n_worlds)[:, None]
            hits = rng.binomial(np.diff(looks, prepend=0), share, (n_worlds, len(looks))).cumsum(axis=1)
            evidence = drift_evidence(hits, looks, before, reference, level=0.025)
            line[f"{reference:,} reference rows"] = 100 * float((evidence >= 40).any(axis=1).mean())
        rows.append(line)
    return pd.DataFrame(rows)
