"""Two years of monthly batches: `recalibrate` every month against `Monitor.apply`."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.guard import EVIDENCE_LEVEL
from dafh.evaluation.losses import check_losses
from dafh.monitor.evidence import Evidence, JudgedRows
from dafh.monitor.service import changes_needed
from dafh.stats import holm, mcnemar_p

N_GROUPS, MONTHS, ROWS, DISCORDANCE = 4, 24, 500, 0.1


@dataclass(frozen=True)
class Scenario:
    """Gain of the own classifiers in each month, and whether they are in service at the start."""

    name: str
    gain: tuple[float, ...]
    starts_in_service: bool


SCENARIOS = (
    Scenario("equal to the pooled one", (0.0,) * MONTHS, False),
    Scenario("worse by 1 point", (-0.01,) * MONTHS, False),
    Scenario("better by 2 points", (0.02,) * MONTHS, False),
    Scenario("better by 2, worse by 2 after a year", (0.02,) * 12 + (-0.02,) * 12, True),
    Scenario("better by 2, worse by 5 after a year", (0.02,) * 12 + (-0.05,) * 12, True),
)


def outcomes(scenario: Scenario, rng: np.random.Generator) -> NDArray[np.int8]:
    """Own loss minus pooled loss of every row, (months, groups, rows)."""
    shape = (MONTHS, N_GROUPS, ROWS)
    tilt = -np.array(scenario.gain)[:, None, None] / DISCORDANCE / 2
    loses = np.where(rng.random(shape) < 0.5 + tilt, 1, -1)
    return np.where(rng.random(shape) < DISCORDANCE, loses, 0).astype(np.int8)


def by_recalibration(found: NDArray[np.int8], guard: str) -> NDArray[np.bool_]:
    """Which classifiers serve after each month, (months, groups), if the guard decides anew on its rows."""
    worse, better = (found > 0).sum(axis=2), (found < 0).sum(axis=2)
    if guard == "evidence":
        return mcnemar_p(better, worse) <= EVIDENCE_LEVEL
    return np.stack([holm(mcnemar_p(b, c)) <= 0.05 for b, c in zip(better, worse, strict=True)])


def by_monitor(scenario: Scenario, found: NDArray[np.int8]) -> NDArray[np.bool_]:
    """The same by `Monitor.apply` after each month."""
    serving = np.full(N_GROUPS, scenario.starts_in_service)
    evidence = Evidence(N_GROUPS, [""], check_losses("error"), 0.05, False, serving)
    group = np.repeat(np.arange(N_GROUPS), ROWS)
    parts, weight = np.zeros((len(group), 0), np.int16), np.ones(len(group))
    served = []
    for x in found.reshape(len(found), -1):
        evidence.add(JudgedRows(group, x > 0, x < 0, None, parts, weight))
        wanted = changes_needed(evidence)
        if wanted:
            serving = evidence.serving.copy()
            for number, (puts_in, _) in wanted.items():
                serving[number] = puts_in
            evidence.begin_term(np.array(sorted(wanted)), serving)
        served.append(evidence.serving.copy())
    return np.array(served)


def service_table(n_worlds: int = 1000) -> pd.DataFrame:
    """How often a classifier that is no better is ever in service, and what is gained; a decision serves next month."""
    rows = []
    for number, scenario in enumerate(SCENARIOS):
        gain = np.array(scenario.gain)[:, None]
        kept_by: dict[str, list[tuple[bool, float, float]]] = {}
        for world in range(n_worlds):
            found = outcomes(scenario, np.random.default_rng([number, world]))
            ways = {f"recalibrate, {guard}": by_recalibration(found, guard) for guard in ("evidence", "proof")}
            ways["monitor"] = by_monitor(scenario, found)
            for way, after in ways.items():
                start = np.full((1, N_GROUPS), scenario.starts_in_service)
                serves = np.vstack([start, after[:-1]])
                bad = serves & (gain <= 0)
                kept_by.setdefault(way, []).append(
                    (bool(bad.any()), float((serves * gain).mean()), float(bad.sum() / N_GROUPS))
                )
        for way, kept in kept_by.items():
            ever, gained, months = np.mean(kept, axis=0)
            line = {"own classifiers are": scenario.name, "way": way, "ever, %": 100 * ever}
            rows.append(line | {"months": months, "gain": 100 * gained})
    return pd.DataFrame(rows)
