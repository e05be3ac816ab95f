"""Rows until an alarm, from the start and after a change."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.monitor.evidence import capital_of_term
from dafh.stats import Bettors
from research.guarantees.evidence import kept_chance

DISCORDANCE = 0.1


def rows_until_alarm(
    harm: float, n_questions: int, n_worlds: int, seed: int, *, most: int, level: float = 0.05
) -> NDArray[np.float64]:
    """Rows of a group until an alarm about it, which is one of several questions; infinite for none."""
    rng = np.random.default_rng(seed)
    bettors = Bettors.start(n_worlds, capital_of_term(0))
    needed = n_questions / level
    rows, found = np.zeros(n_worlds), np.full(n_worlds, np.inf)
    for _ in range(most):
        rows += rng.geometric(DISCORDANCE, n_worlds)
        loses = rng.random(n_worlds) < 0.5 + harm / DISCORDANCE / 2
        bettors.bet_once(np.where(loses, 1.0, -1.0), needed)
        decided = (bettors.capital >= needed * (1 - 1e-9)) & np.isinf(found)
        found[decided] = rows[decided]
        if np.isfinite(found).all():
            break
    return found


def fixed_sample_rows(harm: float, power: float, level: float = 0.05) -> int:
    """Smallest number of rows with which the exact McNemar test at `level` finds this harm with this power."""
    low, high = 1, 2**20
    while low < high:
        middle = (low + high) // 2
        # Own classifiers that lose as often as others win: the same test, with the roles exchanged.
        if kept_chance(middle, harm, DISCORDANCE, level) >= power:
            high = middle
        else:
            low = middle + 1
    return low


def delay_table(n_worlds: int = 10_000) -> pd.DataFrame:
    """Rows until an alarm, beside a test that knows the size of the harm and looks once."""
    rows = []
    for number, (harm, most) in enumerate([(0.01, 8000), (0.02, 2500), (0.05, 400)]):
        for n_questions in (1, 4, 12):
            found = rows_until_alarm(harm, n_questions, n_worlds, seed=number, most=most)
            line: dict[str, object] = {"harm, points": 100 * harm, "questions": n_questions}
            line |= {"median": np.quantile(found, 0.5).round(), "90%": np.quantile(found, 0.9).round()}
            level = 0.05 / n_questions
            line |= {
                "one look, power 50%": fixed_sample_rows(harm, 0.5, level),
                "one look, power 90%": fixed_sample_rows(harm, 0.9, level),
            }
            rows.append(line)
    return pd.DataFrame(rows)


def change_delays(
    gain: float, harm: float, n_worlds: int, seed: int, good_rows: int = 10_000, most: int = 60_000
) -> dict[str, float]:
    """Delay of an alarm in rows after a change, and how often one was raised before it."""
    rng = np.random.default_rng(seed)
    delays: list[float] = []
    for _ in range(n_worlds):
        row = np.flatnonzero(rng.random(good_rows + most) < DISCORDANCE)
        tilt = np.where(row < good_rows, -gain, harm) / DISCORDANCE / 2
        x = np.where(rng.random(len(row)) < 0.5 + tilt, 1.0, -1.0)
        raised = Bettors.start(1, capital_of_term(0)).bet(0, x, 20.0) >= 20.0 * (1 - 1e-9)
        delays.append(float(row[np.argmax(raised)] - good_rows) if raised.any() else np.inf)
    after = [delay for delay in delays if delay >= 0]
    return {
        "alarm before, %": 100 * (1 - len(after) / n_worlds),
        "alarm, median": float(np.quantile(after, 0.5).round()),
        "alarm, 90%": float(np.quantile(after, 0.9).round()),
    }


def change_table(n_worlds: int = 1000) -> pd.DataFrame:
    """Delay of alarms after 10,000 good rows."""
    rows = []
    for number, (gain, harm) in enumerate([(0.0, 0.02), (0.02, 0.02), (0.0, 0.05), (0.02, 0.05)]):
        line = {"gain before, points": 100 * gain, "harm after, points": 100 * harm}
        rows.append(line | change_delays(gain, harm, n_worlds, seed=number))
    return pd.DataFrame(rows)
