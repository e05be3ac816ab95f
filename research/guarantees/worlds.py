"""Simulated populations in which it is known how much worse every own classifier is than the pooled one."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.compared import ComparedRows
from dafh.evaluation.guard import GuardReport

TIE = 1e-6
"""Harm of almost nothing: enough to be counted as harm, and where a test errs most often."""


@dataclass(frozen=True)
class World:
    """A population in which the error of every classifier in every group is known."""

    sizes: NDArray[np.intp]
    """Calibration rows of each group, (K,)."""
    harm: NDArray[np.float64]
    """Error of classifier j in group k minus that of the pooled classifier, (K, K)."""
    discordance: float
    """Share of rows on which either a classifier or the pooled one is right, but not both."""
    pooled_error: float = 0.25

    def draw(self, rng: np.random.Generator) -> ComparedRows:
        """Draw calibration rows; given the pooled classifier, the errors of the others are independent."""
        group = np.repeat(np.arange(len(self.sizes)), self.sizes)
        pooled = rng.random(len(group)) >= self.pooled_error
        worse, better = (self.discordance + self.harm) / 2, (self.discordance - self.harm) / 2
        # Rows that the pooled classifier gets right can only be spoiled, the others only mended. Divided by the share
        # of such rows, so that discordance and harm are right over all rows.
        spoiled = rng.random((len(group), len(self.sizes))) < (worse / (1 - self.pooled_error))[group]
        mended = rng.random(spoiled.shape) < (better / self.pooled_error)[group]
        right = np.column_stack([np.where(pooled[:, None], ~spoiled, mended), pooled])
        return ComparedRows(
            right, right[:, :-1] != pooled[:, None], group, np.arange(len(self.sizes)), np.ones(len(group))
        )

    def draw_own(self, rng: np.random.Generator) -> ComparedRows:
        """Draw calibration rows in which every classifier but a group's own predicts like the pooled one."""
        group = np.repeat(np.arange(len(self.sizes)), self.sizes)
        harm = np.diag(self.harm)[group]
        lost, won = draw_outcomes(harm, self.discordance, rng)
        return compare_own(group, lost, won, len(self.sizes))

    def is_harmed(self, report: GuardReport) -> bool:
        """Whether any group is served worse than by the pooled classifier, by more than the margin."""
        harm = np.column_stack([self.harm, np.zeros(len(self.sizes))])
        return bool((harm[np.arange(len(self.sizes)), report.serves] > report.margin + 1e-12).any())


def harmful_world(rng: np.random.Generator, n_groups: int, kind: str = "varied", margin: float = 0.0) -> World:
    """Make a world of one kind, in which the guard can do harm.

    "varied": own classifiers are worse than the pooled one by 0.2 to 5 percentage points, in groups of 50 to 5,000
    rows. "imbalanced": the same, with one group of 5,000 rows and the others of 50. "ties": own classifiers are worse
    by almost nothing, where a test errs most often. "open gate": own classifiers are better, and those of other groups
    are worse than the pooled one by almost nothing, so that the guard gets to its second step (repair of envy) and
    must not replace anything there. The margin is added to all of these.
    """
    discordance = float(rng.uniform(0.06, 0.3))
    sizes = np.exp(rng.uniform(np.log(50), np.log(5000), n_groups)).astype(np.intp)
    harm = rng.uniform(0.002, 0.05, (n_groups, n_groups))
    if kind == "imbalanced":
        sizes = np.full(n_groups, 50)
        sizes[0] = 5000
    if kind == "ties":
        harm = np.full((n_groups, n_groups), TIE)
        discordance = float(rng.choice([0.01, 0.05, 0.2]))
    if kind == "open gate":
        harm = np.where(np.eye(n_groups, dtype=bool), -0.02, TIE)
    return World(sizes, harm + margin, max(discordance, margin + 0.06))


# ---- rows from what happens on them ----


def draw_outcomes(
    harm: NDArray[np.float64], discordance: NDArray[np.float64] | float, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Draw on which rows the own classifier loses against the pooled one, and on which it wins."""
    chance = rng.random(harm.shape)
    lost = chance < (discordance + harm) / 2
    return lost, ~lost & (chance < discordance)


def compare_own(
    group: NDArray[np.intp],
    lost: NDArray[np.bool_],
    won: NDArray[np.bool_],
    n_groups: int,
    *,
    weight: NDArray[np.float64] | None = None,
    positive: NDArray[np.bool_] | None = None,
    person: NDArray[np.intp] | None = None,
    attributes: pd.DataFrame | None = None,
) -> ComparedRows:
    """Rows on which a group's own classifier loses or wins against the pooled one; other classifiers are like it."""
    right = np.repeat(~won[:, None], n_groups + 1, axis=1)
    right[np.arange(len(group)), group] = ~lost
    weight = np.ones(len(group)) if weight is None else weight / weight.max()
    differ = right[:, :-1] != right[:, -1:]
    return ComparedRows(right, differ, group, np.arange(n_groups), weight, positive, person, attributes)
