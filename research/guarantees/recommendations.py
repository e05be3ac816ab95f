"""How often a recommendation is wrong: "deploy" where nobody gains, or for a group that loses more than a point."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dafh import audit

SMALL_LOSS = 0.01
"""A loss of one percentage point: what a recommendation tolerates."""
KINDS = ("deploy", "deploy_some", "keep", "do_not_deploy")


@dataclass(frozen=True)
class GainWorld:
    """Groups of about equal size that gain by known amounts; a negative gain is a loss."""

    name: str
    gains: tuple[float, ...]
    rows: int
    """Rows of all groups together."""
    discordance: float
    """Share of rows on which one of the two classifiers is right and the other wrong."""

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        """Rows of one world, as `audit` takes them."""
        group = rng.integers(0, len(self.gains), self.rows)
        chance = rng.random(self.rows)
        lost = chance < (self.discordance - np.array(self.gains)[group]) / 2
        won = ~lost & (chance < self.discordance)
        y = np.zeros(self.rows, int)
        return {"y": y, "predictions": lost.astype(int), "groups": group, "pooled": won.astype(int)}

    def recommended(self, n_worlds: int, seed: int = 7) -> tuple[dict[str, float], float]:
        """Share of worlds with each kind of recommendation, and with one for a group that loses more than a point."""
        rng, kinds, wrong = np.random.default_rng(seed), Counter[str](), 0
        for _ in range(n_worlds):
            advice = audit(**self.draw(rng)).recommendation
            kinds[advice.kind] += 1
            wrong += any(self.gains[int(group)] < -SMALL_LOSS for group in advice.deploy)
        return {kind: kinds[kind] / n_worlds for kind in KINDS}, wrong / n_worlds


NOBODY_GAINS = GainWorld("6 groups of 1,500 rows gain nothing", (0.0,) * 6, 9000, 0.2)
ALL_LOSE = GainWorld("4 groups of 1,500 rows lose 1.5 points", (-0.015,) * 4, 6000, 0.2)
THREE_LOSE = GainWorld("one gains 10 points, three lose a little more than 1", (0.1, *(-0.01001,) * 3), 8000, 0.1)
WORLDS = (
    NOBODY_GAINS,
    ALL_LOSE,
    THREE_LOSE,
    GainWorld("4 groups of 1,500 rows gain 2 points", (0.02,) * 4, 6000, 0.1),
    GainWorld("two gain 4 points, two lose 4", (0.04, 0.04, -0.04, -0.04), 6000, 0.1),
)


def recommendation_table(n_worlds: int = 500) -> pd.DataFrame:
    """Shares of worlds with each recommendation."""
    found = []
    for world in WORLDS:
        kinds, wrong = world.recommended(n_worlds)
        found.append((world.name, *kinds.values(), wrong))
    return pd.DataFrame(found, columns=["worlds", *KINDS, "for a group that loses more"])
