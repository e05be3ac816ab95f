"""How often an audit gives a wrong answer: "satisfied" where a group is harmed, or "violated" where it is not.

In every world the harm of each group is known. "Violated" is wrong where it is at most the margin, and "satisfied"
where it is more. A wrong answer about any group, learned or named, counts once for the world.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh import audit
from research.guarantees.proof import LOGNORMAL, WHERE, Weights, few_heavy, where_discordant
from research.guarantees.worlds import TIE, draw_outcomes

N_TOWNS = 10
# Rounded to few different values: with hundreds of them, an audit takes seconds.
ROUNDED = replace(LOGNORMAL, name="lognormal weights", draw=lambda rng, n: np.ceil(5 * rng.lognormal(size=n)) / 5)


class AuditedRows(NamedTuple):
    """Rows of one world, with what is true about its groups."""

    group: NDArray[np.intp]
    lost: NDArray[np.bool_]
    """Rows that only the own classifier gets wrong; `won`: that only the pooled classifier does."""
    won: NDArray[np.bool_]
    harm: NDArray[np.float64]
    """Harm of each learned group against the pooled classifier."""
    town_harm: float
    """Harm of every named group: of every town."""
    weight: NDArray[np.float64] | None = None

    def wrong(self, margin: float) -> tuple[bool, bool]:
        """Whether any answer "satisfied", and any answer "violated", is wrong."""
        # Other groups' classifiers are copies of the pooled one, so that envy is the same harm.
        predictions = np.repeat(self.won[:, None].astype(int), len(self.harm), axis=1)
        predictions[np.arange(len(self.group)), self.group] = self.lost
        towns = np.repeat(np.arange(N_TOWNS), len(self.group) // N_TOWNS).astype(str)
        result = audit(
            np.zeros(len(self.group), int),
            predictions,
            self.group,
            pooled=self.won.astype(int),
            sensitive_features=pd.DataFrame({"town": towns}),
            sample_weight=self.weight,
            margin=margin,
            depth=1,
        )
        learned = self.harm[result.questions["group"].to_numpy(np.intp)]
        harmed = np.concatenate([learned, np.full(len(result.named), self.town_harm)]) > margin
        verdict = np.concatenate([result.questions["verdict"], result.named["verdict"]])
        return bool((harmed & (verdict == "satisfied")).any()), bool((~harmed & (verdict == "violated")).any())


Draw = Callable[[np.random.Generator], AuditedRows]


def unseen_harm(rng: np.random.Generator) -> AuditedRows:
    """Named groups harmed by 1.5 percentage points on members that the sample happens not to hold.

    The classifier of group 1 is like the pooled one. Of every town 3 % belong to group 0, which harms half of its rows;
    the sample has 40 rows of each, and by chance often none of those.
    """
    group = np.where(rng.random(40 * N_TOWNS) < 0.03, 0, 1)
    lost, won = draw_outcomes(np.where(group == 0, 0.5, 0.0), np.where(group == 0, 0.5, 0.0), rng)
    return AuditedRows(group, lost, won, np.array([0.5, 0.0]), 0.015)


def around_margin(margin: float, sign: float, discordance: float = 0.2, rows: int = 250) -> Draw:
    """Harm of all groups is the margin, but for almost nothing."""

    def draw(rng: np.random.Generator) -> AuditedRows:
        group, harm = rng.integers(0, 4, N_TOWNS * rows), margin + sign * TIE
        lost, won = draw_outcomes(np.full(len(group), harm), discordance, rng)
        return AuditedRows(group, lost, won, np.full(4, harm), harm)

    return draw


def weighted(weights: Weights, where: str, sign: float) -> Draw:
    """Weights, with harm of almost nothing in either direction."""

    def draw(rng: np.random.Generator) -> AuditedRows:
        group = rng.integers(0, 4, N_TOWNS * 400)
        weight = weights.draw(rng, len(group))
        lost, won = draw_outcomes(*where_discordant(weights, weight, where, sign * TIE), rng)
        return AuditedRows(group, lost, won, np.full(4, sign * TIE), sign * TIE, weight)

    return draw


@dataclass(frozen=True)
class AuditScenario:
    """Worlds of one kind that are audited with a margin."""

    name: str
    draw: Draw
    margin: float = 0.0

    def wrong_shares(self, n_worlds: int, seed: int = 0) -> tuple[float, float]:
        """Share of worlds with a wrong "satisfied", and with a wrong "violated"."""
        rng = np.random.default_rng(seed)
        wrong = np.array([self.draw(rng).wrong(self.margin) for _ in range(n_worlds)])
        return float(wrong[:, 0].mean()), float(wrong[:, 1].mean())


def audit_scenarios() -> list[AuditScenario]:
    """All of them."""
    sides = {"above": 1.0, "below": -1.0}
    scenarios = [AuditScenario("named groups harmed by 1.5 points, all of it in 3% of their rows", unseen_harm)]
    for margin, (word, sign) in itertools.product((0.0, 0.01, 0.02, 0.05), sides.items()):
        name = f"harm just {word} a margin of {100 * margin:g} points"
        scenarios.append(AuditScenario(name, around_margin(margin, sign), margin))
    for word, sign in sides.items():
        name = f"the same at 5 points, 95% discordant, towns of 20 rows, {word}"
        scenarios.append(AuditScenario(name, around_margin(0.05, sign, 0.95, 20), 0.05))
    kinds = (ROUNDED, few_heavy(0.02, 20.0), few_heavy(0.001, 100.0))
    for weights, where, (word, sign) in itertools.product(kinds, WHERE[:2], {"harm": 1.0, "gain": -1.0}.items()):
        name = f"{weights.name}, {where}, {word} of almost nothing"
        scenarios.append(AuditScenario(name, weighted(weights, where, sign)))
    return scenarios


def audit_table(n_worlds: int = 500, seed: int = 0) -> pd.DataFrame:
    """Shares of worlds with wrong answers, for every scenario."""
    shares = [(scenario.name, *scenario.wrong_shares(n_worlds, seed)) for scenario in audit_scenarios()]
    return pd.DataFrame(shares, columns=["worlds", "wrong satisfied", "wrong violated"])
