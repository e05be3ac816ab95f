"""How often a recommendation is wrong, and how often it overlooks people who lose or asks for checks without need."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dafh import audit
from research.guarantees.worlds import draw_outcomes

SMALL_LOSS = 0.01
"""A loss of one percentage point: what a recommendation tolerates."""
KINDS = ("deploy", "deploy_with_checks", "deploy_some", "keep", "do_not_deploy")


@dataclass(frozen=True)
class GainWorld:
    """Learned groups of about equal size that gain by known amounts; a negative gain is a loss."""

    name: str
    gains: tuple[float, ...]
    rows: int
    """Rows of all groups together."""
    discordance: float
    """Share of rows on which one of the two classifiers is right and the other wrong."""
    named_gain: float | None = None
    """Gain of one of ten regions, whatever the group; sex and region are then known to the audit. NaN for no such
    region: the attributes are known, and make no difference."""

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        """Rows of one world, as `audit` takes them."""
        group, region = rng.integers(0, len(self.gains), self.rows), rng.integers(0, 10, self.rows)
        gain = np.array(self.gains)[group]
        world: dict[str, Any] = {"y": np.zeros(self.rows, int), "groups": group}
        if self.named_gain is not None:
            gain = np.where((region == 0) & ~np.isnan(self.named_gain), self.named_gain, gain)
            world["sensitive_features"] = pd.DataFrame(
                {"region": region.astype(str), "sex": rng.choice(["f", "m"], self.rows)}
            )
        lost, won = draw_outcomes(-gain, self.discordance, rng)
        return world | {"predictions": lost.astype(int), "pooled": won.astype(int)}

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
TENTH_LOSES = GainWorld("4,000 rows gain 4 points, a named tenth loses 5", (0.04,), 4000, 0.2, -0.05)
NAMED_WORLDS = (
    TENTH_LOSES,
    GainWorld("the same, 10% discordant", (0.04,), 4000, 0.1, -0.05),
    GainWorld("the same, 30% discordant", (0.05,), 4000, 0.3, -0.05),
    GainWorld("20,000 rows gain 4 points, a named tenth loses 5", (0.04,), 20_000, 0.2, -0.05),
    GainWorld("20,000 rows gain 4 points, a named tenth loses 1", (0.04,), 20_000, 0.2, -0.01),
    GainWorld("4,000 rows gain 4 points, all regions alike", (0.04,), 4000, 0.2, np.nan),
    GainWorld("20,000 rows gain 4 points, all regions alike", (0.04,), 20_000, 0.2, np.nan),
    GainWorld("20,000 rows gain 1 point, all regions alike", (0.01,), 20_000, 0.05, np.nan),
)


def recommendation_table(n_worlds: int = 500) -> pd.DataFrame:
    """Shares of worlds with each recommendation."""
    table = []
    for world in (*WORLDS, *NAMED_WORLDS):
        kinds, wrong = world.recommended(n_worlds)
        table.append((world.name, *kinds.values(), wrong))
    columns = ["worlds", *(kind.replace("_", " ") for kind in KINDS), "for a group that loses more"]
    return pd.DataFrame(table, columns=columns)
