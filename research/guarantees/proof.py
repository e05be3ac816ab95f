"""How often "proof" harms a group in simulated worlds, and how often it keeps classifiers that are truly better.

In most worlds here every own classifier is truly worse than the pooled one in a loss that the guard tests, so that
keeping any of them is harm. Most are worse by almost nothing, where a test errs most often.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from dafh.evaluation.compared import ComparedRows
from dafh.evaluation.guard import check_servers, choose_servers, proved
from dafh.evaluation.losses import Loss
from dafh.stats import robust_radius
from research.guarantees.worlds import TIE, World, compare_own, draw_outcomes, harmful_world

LEVEL = 0.05
ERROR = Loss("error")
Draw = Callable[[np.random.Generator], ComparedRows]


@dataclass(frozen=True)
class Scenario:
    """Worlds of one kind, in which keeping any own classifier is harm."""

    name: str
    draw: Draw
    losses: Sequence[Loss] = (ERROR,)
    margin: float = 0.0

    def harmed_share(self, n_worlds: int, seed: int = 0) -> float:
        """Share of worlds in which the guard keeps any own classifier."""
        rng, worlds = np.random.default_rng(seed), range(n_worlds)
        return float(np.mean([kept_by_proof(self.draw(rng), self.losses, self.margin).any() for _ in worlds]))


def kept_by_proof(rows: ComparedRows, losses: Sequence[Loss] = (ERROR,), margin: float = 0.0) -> NDArray[np.bool_]:
    """Groups that keep their own classifier: the decision of `choose_servers`, without its tables and limits."""
    n_groups = len(rows.own)
    return proved(check_servers(rows, losses, np.arange(n_groups), margin), n_groups, LEVEL)


# ---- the grid of groups ----


def grid_scenario(n_groups: int, kind: str, margin: float = 0.0) -> Scenario:
    """Worlds of one kind with a number of groups, worse by more than the margin."""
    name = f"{n_groups} groups, {kind}, margin {100 * margin:g} points"
    return Scenario(name, lambda rng: harmful_world(rng, n_groups, kind, margin).draw_own(rng), margin=margin)


def open_gate_share(n_groups: int, n_worlds: int, seed: int = 0) -> float:
    """Share of worlds harmed by the repair of envy, which the whole guard is needed for."""
    rng, worlds = np.random.default_rng(seed), range(n_worlds)
    drawn = (harmful_world(rng, n_groups, "open gate") for _ in worlds)
    return float(np.mean([world.is_harmed(choose_servers(world.draw(rng), kind="proof")) for world in drawn]))


def kept_share(n_groups: int, n_worlds: int, seed: int, *, gain: float = 0.03) -> float:
    """Share of own classifiers that the guard keeps where they are better: 2,000 rows, of which 10% are discordant."""
    rng = np.random.default_rng(seed)
    world = World(np.full(n_groups, 2000), -gain * np.eye(n_groups), 0.1)
    return float(np.mean([kept_by_proof(world.draw_own(rng)).mean() for _ in range(n_worlds)]))


def guard_table(n_worlds: int = 200, seed: int = 0) -> pd.DataFrame:
    """Shares of worlds harmed behind an open gate, and of own classifiers kept, for each number of groups."""
    return pd.DataFrame(
        [
            {
                "groups": n_groups,
                "harmed, open gate": open_gate_share(n_groups, n_worlds, seed),
                "kept, 3 percentage points better": kept_share(n_groups, n_worlds, seed),
            }
            for n_groups in (2, 4, 8)
        ]
    )


# ---- losses, declared subgroups, weights, persons, small groups ----


def losses_scenario(shift: float, error_gain: float) -> Scenario:
    """Own classifiers have more false negatives by `shift`, and errors lower by `error_gain` all the same."""

    def draw(rng: np.random.Generator) -> ComparedRows:
        group = np.repeat(np.arange(4), 1500)
        positive = rng.random(len(group)) < 0.3
        fewer = (error_gain + 0.3 * shift) / 0.7  # What false positives must fall by: 30% of the rows are positive.
        lost, won = draw_outcomes(np.where(positive, shift, -fewer), 0.2, rng)
        return compare_own(group, lost, won, 4, positive=positive)

    losses = tuple(Loss(name) for name in ("error", "fpr", "fnr"))
    return Scenario(
        f"false negatives up by {100 * shift:.2g}, errors down by {100 * error_gain:g} points", draw, losses
    )


def declared_scenario(rows: int, gain: float) -> Scenario:
    """In each of 4 groups 11 of 12 declared subgroups gain, and one loses almost nothing."""

    def draw(rng: np.random.Generator) -> ComparedRows:
        group = np.repeat(np.arange(4), 12 * rows)
        part = np.tile(np.arange(12), 4 * rows)
        harm = np.where(part == 2 * group, TIE, -gain)
        lost, won = draw_outcomes(harm, 0.3, rng)
        return compare_own(group, lost, won, 4, attributes=pd.DataFrame({"part": part.astype(str)}))

    return Scenario(f"4 × 12 declared subgroups of {rows} rows, 11 of 12 gain {100 * gain:g} points", draw)


@dataclass(frozen=True)
class Weights:
    """A distribution of weights, part of which are heavy."""

    name: str
    draw: Callable[[np.random.Generator, int], NDArray[np.float64]]
    border: float
    """Smallest heavy weight."""
    heavy: float
    """Share of all weight that is on heavy rows."""


def few_heavy(share: float, weight: float) -> Weights:
    """Rows of weight 1, and a share of rows with another."""
    total = share * weight + 1 - share
    return Weights(
        f"{100 * share:g}% of rows weigh {weight:g}",
        lambda rng, n: np.where(rng.random(n) < share, weight, 1.0),
        weight,
        share * weight / total,
    )


# The logarithm of a lognormal weight, drawn by weight, is normal with mean 1: a fifth of all weight is above this.
LOGNORMAL = Weights("lognormal weights", lambda rng, n: rng.lognormal(size=n), float(np.exp(1 + ndtri(0.8))), 0.2)
WHERE = ("discordant anywhere", "discordant if heavy", "light rows win, heavy lose")


def where_discordant(
    weights: Weights, weight: NDArray[np.float64], where: str, harm: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Harm and discordance of each row, with this harm in total, for one of the words in `WHERE`."""
    heavy, every = weight >= weights.border, np.ones(len(weight))
    if where == "discordant if heavy":
        return np.where(heavy, harm, 0.0), np.where(heavy, 0.5, 0.0)
    if where == "light rows win, heavy lose":
        # Weighted, light rows win what heavy rows lose, but for the harm.
        spread = np.where(heavy, 0.2 + harm, -0.2 * weights.heavy / (1 - weights.heavy))
        return spread, np.abs(spread)
    return harm * every, 0.2 * every


def weight_scenario(weights: Weights, where: str, rows: int = 2000) -> Scenario:
    """Rows with weights, in total worse by almost nothing."""

    def draw(rng: np.random.Generator) -> ComparedRows:
        group = np.repeat(np.arange(4), rows)
        weight = weights.draw(rng, len(group))
        lost, won = draw_outcomes(*where_discordant(weights, weight, where, TIE), rng)
        return compare_own(group, lost, won, 4, weight=weight)

    return Scenario(f"{weights.name}, {where}", draw)


def missing_scenario(largest: float | None, rows: int = 100) -> Scenario:
    """1% of rows weigh 100 and lose: a sample may have no heavy row, and `largest` says what a row may weigh."""
    weights = few_heavy(0.01, 100.0)

    def draw(rng: np.random.Generator) -> ComparedRows:
        weight = weights.draw(rng, rows)
        lost, won = draw_outcomes(*where_discordant(weights, weight, WHERE[2], TIE), rng)
        compared = compare_own(np.zeros(rows, np.intp), lost, won, 1, weight=weight)
        return replace(compared, weight_unit=float(weight.max()), largest_weight=largest or 0.0)

    return Scenario(f"largest weight {largest or 'unknown'}, {rows:,} rows", draw)


def radius_table(n_worlds: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """How often a shift as strong as the radius allows would be harm, by discordant rows and by the share won."""
    rng, lines = np.random.default_rng(seed), []
    for discordant in (10, 40, 200, 1000):
        for won in (0.5, 0.75, 0.95):
            better = rng.binomial(discordant, won, n_worlds)
            # In a population in which lost rows are Γ times as frequent, own wins where won > Γ · lost.
            harmed = robust_radius(discordant - better, better) * (1 - won) > won
            lines.append({"discordant rows": discordant, "won": won, "missed": float(np.mean(harmed))})
    return pd.DataFrame(lines)


def person_scenario(rows_each: tuple[int, int], correlation: float) -> Scenario:
    """Persons with several rows: with a probability, a row repeats what happened on the person's first one."""

    def draw(rng: np.random.Generator) -> ComparedRows:
        persons = 400
        each = rng.integers(rows_each[0], rows_each[1] + 1, 4 * persons)
        person = np.repeat(np.arange(4 * persons), each)
        group = person // persons
        lost, won = draw_outcomes(np.full(len(person), TIE), 0.2, rng)
        first = np.concatenate([[0], np.cumsum(each)[:-1]])[person]
        source = np.where(rng.random(len(person)) < correlation, first, np.arange(len(person)))
        return compare_own(group, lost[source], won[source], 4, person=person)

    number = f"{rows_each[0]}" if rows_each[0] == rows_each[1] else f"{rows_each[0]} to {rows_each[1]}"
    return Scenario(f"{number} rows a person, correlation {correlation:g}", draw)


def small_scenario(discordance: float, margin: float) -> Scenario:
    """Groups of 5 to 60 rows whose classifiers disagree often; worse by almost nothing more than the margin."""

    def draw(rng: np.random.Generator) -> ComparedRows:
        group = np.repeat(np.arange(4), rng.integers(5, 61, 4))
        lost, won = draw_outcomes(np.full(len(group), margin + TIE), discordance, rng)
        return compare_own(group, lost, won, 4)

    name = f"groups of 5 to 60 rows, {100 * discordance:g}% discordant, margin {100 * margin:g} points"
    return Scenario(name, draw, margin=margin)


def scenarios() -> list[Scenario]:
    """All of them but the open gate and the fits."""
    cases = [("varied", 0.0), ("imbalanced", 0.0), ("ties", 0.0), ("ties", 0.01)]
    grid = [grid_scenario(n_groups, *case) for n_groups in (2, 4, 8) for case in cases]
    losses = [losses_scenario(TIE, 0.05), losses_scenario(0.01, 0.0), losses_scenario(0.03, 0.0)]
    declared = [declared_scenario(200, 0.2), declared_scenario(50, 0.2), declared_scenario(20, 0.05)]
    persons = [
        person_scenario(each, correlation)
        for each in ((1, 1), (5, 5), (20, 20), (1, 20))
        for correlation in (0.0, 0.5, 1.0)
    ]
    kinds = (LOGNORMAL, few_heavy(0.02, 20.0), few_heavy(0.001, 100.0))
    weights = [weight_scenario(kind, where) for kind in kinds for where in WHERE]
    small = [small_scenario(psi, margin) for psi in (0.5, 0.8, 0.95) for margin in (0.0, 0.01, 0.05, 0.2)]
    return [*grid, *losses, *declared, *weights, *persons, *small]


def scenario_table(n_worlds: int = 1000) -> pd.DataFrame:
    """Share of harmed worlds of every scenario, and of those in which heavy rows may be missing from the sample."""
    missing = [missing_scenario(largest, rows) for largest in (None, 100.0) for rows in (100, 300, 1000)]
    shares = [(scenario.name, scenario.harmed_share(n_worlds)) for scenario in (*scenarios(), *missing)]
    return pd.DataFrame(shares, columns=["worlds", "harmed"])
