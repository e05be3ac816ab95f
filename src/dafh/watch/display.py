"""The table of a monitor: as figures, and for readers."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dafh.evaluation.losses import TITLES
from dafh.text import percent, points

if TYPE_CHECKING:
    from dafh.watch.evidence import Evidence


def display(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """One line per question, as text; columns that say the same in every line are left out."""
    is_cost = table["loss"] == "cost"
    limits = [limits_in_words(*line) for line in zip(table["gain"], table["low"], table["high"], strict=True)]
    shown = pd.DataFrame(
        {
            "group": table["group"],
            "subgroup": table["part"].replace("", "all rows"),
            "loss": table["loss"].map(TITLES),
            "rows": [f"{n:,}" for n in table["rows"]],
            "own": _levels(table["own_loss"], is_cost),
            "pooled": _levels(table["pooled_loss"], is_cost),
            "gain, per 100 rows" if is_cost.all() else "gain, points": [points(value) for value in table["gain"]],
            f"{100 * (1 - level):g}% limits": limits,
            "evidence of harm": [evidence_in_words(value) for value in table["harm_evidence"]],
            "of benefit": [evidence_in_words(value) for value in table["benefit_evidence"]],
            "in service": ["yes" if value else "no" for value in table["in_service"]],
            "alarm": [f"row {row:,}" if row else "–" for row in table["alarm_row"]],
        }
    )
    same = {"subgroup": "all rows", "loss": TITLES["error"]}
    return shown[[name for name in shown if name not in same or not (shown[name] == same[name]).all()]]


def has_changed(gain: float, low: float, high: float) -> bool:
    """Whether limits and gain contradict each other: then the gain has not been the same at all times."""
    return bool(low > high or gain < low or gain > high)


def limits_in_words(gain: float, low: float, high: float) -> str:
    """Write limits, unless they hold for no gain that has stayed the same.

    Examples
    --------
    >>> limits_in_words(0.02, -0.01, 0.05), limits_in_words(-0.01, 0.03, 0.05)
    ('-1.00 to +5.00', 'it has changed')
    """
    return "it has changed" if has_changed(gain, low, high) else f"{points(low)} to {points(high)}"


def _levels(values: "pd.Series[float]", is_cost: "pd.Series[bool]") -> list[str]:
    return [points(value).lstrip("+") if cost else percent(value) for value, cost in zip(values, is_cost, strict=True)]


def evidence_in_words(value: float | None) -> str:
    """Write a capital: two digits are enough, and beyond a million none.

    Examples
    --------
    >>> [evidence_in_words(value) for value in (0.0123, 1.0, 47.81, 5e8)]
    ['0.012', '1.0', '48', 'over 1,000,000']
    """
    if value is None or value > 1e6:  # None is what a file has for infinity.
        return "over 1,000,000"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def table_of(evidence: "Evidence") -> pd.DataFrame:
    """Return one row per question, with losses in their own units."""
    worst = np.array([evidence.losses[i].worst for i in evidence.loss])
    weight = np.where(evidence.sums[:, 0] > 0, evidence.sums[:, 0], np.nan)
    own, pooled = (worst * evidence.sums[:, i] / weight for i in (1, 2))
    kinds = evidence.counts.sum(axis=2)
    low, high = (worst * evidence.limits[:, i] for i in (0, 1))
    return pd.DataFrame(
        {
            "group": evidence.group,
            "part": [evidence.parts[i] for i in evidence.part],
            "loss": [evidence.losses[i].name for i in evidence.loss],
            "rows": kinds.sum(axis=1).astype(np.int64),
            "own_worse": kinds[:, 1:3].sum(axis=1).astype(np.int64),
            "own_better": kinds[:, 3:].sum(axis=1).astype(np.int64),
            "weight": evidence.sums[:, 0],
            "own_loss": own,
            "pooled_loss": pooled,
            "gain": pooled - own,
            "low": low,
            "high": high,
            "harm_evidence": evidence.harm.capital,
            "harm_needed": evidence.needed(),
            "benefit_evidence": evidence.benefit.capital,
            "change_evidence": evidence.detectors.evidence,
            "in_service": evidence.serving[evidence.group],
            "alarm_row": evidence.alarmed,
        }
    )
