"""Questions to groups: exact test, interval, verdict and rows needed, one row each.

Two kinds of question are asked of every group: *rationality*, is it served worse than by the pooled classifier, and
*envy*, is it served worse than another group's classifier would serve it. Named groups (sex, race, and their
intersections) are asked the first one.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.named_groups import NamedGroups
from dafh.evaluation.paired import ComparedRows, PairedCounts
from dafh.stats import excluded_harm, holm, mcnemar_p, paired_interval, rows_needed


def ask_groups(
    counts: PairedCounts, own: NDArray[np.intp], labels: list[Any], rivals: list[Any], level: float, margin: float
) -> pd.DataFrame:
    """Ask every group about the pooled classifier, then about every other group's."""
    pooled = counts.beats.shape[1] - 1
    pairs = [(g, r) for g in range(len(own)) for r in [pooled, *range(pooled)] if r == pooled or r != own[g]]
    group, rival = np.array(pairs).T
    mine = own[group]
    errors = counts.errors
    return _answer(
        {
            "group": [labels[g] for g in group],
            "kind": np.where(rival == pooled, "rationality", "envy"),
            "rival": [rivals[r] for r in rival],
            "n": counts.n_rows[group],
            "own_error": errors[group, mine],
            "rival_error": errors[group, rival],
            "own_worse": counts.beats[group, rival, mine],
            "own_better": counts.beats[group, mine, rival],
        },
        (mine == rival) & (counts.n_rows[group] > 0),
        level,
        margin,
    )


def ask_named_groups(rows: ComparedRows, groups: NamedGroups, depth: int, level: float, margin: float) -> pd.DataFrame:
    """Ask every named group whether the classifiers that serve its people are worse for it than the pooled one."""
    by_pooled = rows.own[rows.group] == rows.right.shape[1] - 1
    outcome = 4 * by_pooled + 2 * rows.own_right.astype(np.intp) + rows.right[:, -1]
    table = groups.tabulate(outcome, 8, rows.weight, depth)
    weight = table.total.sum(axis=1)
    n_rows = weight**2 / table.squares
    shares = table.total.reshape(-1, 2, 4) / weight[:, None, None]
    both_wrong, worse, better, _ = shares.sum(axis=1).T
    return _answer(
        {
            "group": table.names,
            "kind": "rationality",
            "rival": "pooled",
            "n": n_rows,
            "own_error": both_wrong + worse,
            "rival_error": both_wrong + better,
            "own_worse": worse * n_rows,
            "own_better": better * n_rows,
        },
        shares[:, 0].sum(axis=1) == 0,  # Served by the pooled classifier, all of them.
        level,
        margin,
    )


def compose(rows: ComparedRows, groups: NamedGroups, labels: list[Any]) -> pd.DataFrame:
    """For each value of each attribute: its rows, and the share of them that belongs to each group."""
    table = groups.tabulate(rows.group, len(labels), rows.weight, depth=1)
    frame = pd.DataFrame({"named_group": table.names, "weight": table.total.sum(axis=1)})
    shares = table.total / table.total.sum(axis=1, keepdims=True)
    return frame.join(pd.DataFrame(shares, columns=[f"in_{label}" for label in labels]))


def _answer(question: dict[str, Any], copies: NDArray[np.bool_], level: float, margin: float) -> pd.DataFrame:
    """Test, interval, verdict and rows needed for questions with their counts.

    `copies` are questions about one and the same classifier, which cannot harm. They, and questions without rows, are
    not tested, so the others are not corrected for them.
    """
    b, c, n = (np.asarray(question[name], np.float64) for name in ("own_worse", "own_better", "n"))
    asked = (n > 0) & ~copies
    share = level / max(int(asked.sum()), 1)
    p = np.asarray(mcnemar_p(b, c), np.float64)
    corrected = np.ones_like(p)
    corrected[asked] = holm(p[asked])
    low, high = paired_interval(b, c, n, confidence=1 - level)
    low, high = np.where(copies, 0.0, low), np.where(copies, 0.0, high)
    gap = question["rival_error"] - question["own_error"]
    # Also the interval must be clear of zero, or of the margin: verdict and interval never contradict each other.
    satisfied = copies | (asked & (excluded_harm(b, c, n, level=share) <= margin) & (low >= -margin))
    violated = asked & (corrected <= level) & (high < 0) & ~satisfied
    with np.errstate(invalid="ignore"):
        needed = rows_needed(np.maximum(gap + margin, -gap), (b + c) / n, level=min(share, level / 2))
    frame = pd.DataFrame(question)
    frame["n"], frame["own_worse"], frame["own_better"] = (_whole(counts) for counts in (n, b, c))
    frame.insert(6, "gap", gap)
    frame.insert(7, "low", low)
    frame.insert(8, "high", high)
    frame["p"], frame["p_corrected"] = p, corrected
    frame["verdict"] = np.select([violated, satisfied], ["violated", "satisfied"], "undecided")
    frame["rows_needed"] = np.where(asked & ~violated & ~satisfied, needed, np.nan)
    return frame


def _whole(counts: NDArray[np.float64]) -> NDArray[Any]:
    """Counts of rows as whole numbers, unless weights have made them effective numbers."""
    rounded = np.rint(counts)
    return rounded.astype(np.int64) if np.allclose(counts, rounded, rtol=0, atol=1e-6) else counts
