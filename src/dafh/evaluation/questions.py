"""Questions about groups: test, interval, verdict and rows needed, one row of a table for each question.

Two kinds of question are asked about every group. *Rationality*: is it served worse than by the pooled classifier?
*Envy*: is it served worse than by the classifier of another group? Named groups (sex, race and their intersections)
are asked about rationality only, because no classifier belongs to them.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.named_groups import NamedGroups
from dafh.evaluation.paired import ComparedRows, PairedCounts
from dafh.stats import excluded_harm, holm, mcnemar_p, paired_interval, rows_needed

COLUMNS = (
    "group", "kind", "rival", "n", "own_error", "rival_error", "gap", "low", "high", "own_worse", "own_better",
    "p", "p_corrected", "verdict", "rows_needed",
)  # fmt: skip
"""Columns of every table of questions; `AuditResult.to_frame` says what they mean."""


def ask_groups(
    counts: PairedCounts,
    own: NDArray[np.intp],
    labels: Sequence[object],
    rivals: Sequence[object],
    level: float,
    margin: float,
) -> pd.DataFrame:
    """Compare every group's classifier with the pooled one, then with every other classifier."""
    pooled = counts.beats.shape[1] - 1
    pairs = [(g, r) for g in range(len(own)) for r in [pooled, *range(pooled)] if r == pooled or r != own[g]]
    group, rival = np.array(pairs).T
    mine = own[group]
    errors = counts.errors
    asked = pd.DataFrame(
        {
            "group": [labels[g] for g in group],
            "kind": np.where(rival == pooled, "rationality", "envy"),
            "rival": [rivals[r] for r in rival],
            "n": counts.n_rows[group],
            "own_error": errors[group, mine],
            "rival_error": errors[group, rival],
            "own_worse": counts.beats[group, rival, mine],
            "own_better": counts.beats[group, mine, rival],
        }
    )
    return _answer(asked, (mine == rival) & (counts.n_rows[group] > 0), level, margin)


def ask_named_groups(rows: ComparedRows, groups: NamedGroups, depth: int, level: float, margin: float) -> pd.DataFrame:
    """Compare, on every named group, the classifiers that serve its rows with the pooled one."""
    # One number per row says all that is needed of it: served by the pooled classifier (4), served right (2), right by
    # the pooled classifier (1). One pass over the rows then counts all named groups, however many there are.
    by_pooled = rows.own[rows.group] == rows.right.shape[1] - 1
    outcome = 4 * by_pooled + 2 * rows.own_right.astype(np.intp) + rows.right[:, -1]
    table = groups.tabulate(outcome, 8, rows.weight, depth)
    weight = table.total.sum(axis=1)
    n_rows = weight**2 / table.squares  # Kish's effective number of rows
    shares = table.total.reshape(-1, 2, 4) / weight[:, None, None]
    both_wrong, worse, better, _ = shares.sum(axis=1).T
    asked = pd.DataFrame(
        {
            "group": table.names,
            "kind": "rationality",
            "rival": "pooled",
            "n": n_rows,
            "own_error": both_wrong + worse,
            "rival_error": both_wrong + better,
            "own_worse": worse * n_rows,
            "own_better": better * n_rows,
        }
    )
    only_pooled = shares[:, 0].sum(axis=1) == 0
    return _answer(asked, only_pooled, level, margin)


def compose(rows: ComparedRows, groups: NamedGroups, labels: Sequence[object]) -> pd.DataFrame:
    """For each value of each attribute: the weight of its rows, and the share of them in each group."""
    table = groups.tabulate(rows.group, len(labels), rows.weight, depth=1)
    frame = pd.DataFrame({"named_group": table.names, "weight": table.total.sum(axis=1)})
    shares = table.total / table.total.sum(axis=1, keepdims=True)
    return frame.join(pd.DataFrame(shares, columns=[f"in_{label}" for label in labels]))


def _answer(asked: pd.DataFrame, same: NDArray[np.bool_], level: float, margin: float) -> pd.DataFrame:
    """Add test, interval, verdict and rows needed to questions with their counts.

    `same` marks questions that compare a classifier with itself, which cannot do harm. They are not tested, and neither
    are groups without rows, so the correction for the number of questions does not become stricter because of them.
    """
    b, c, n = (asked[name].to_numpy(np.float64) for name in ("own_worse", "own_better", "n"))
    tested = (n > 0) & ~same
    share = level / max(int(tested.sum()), 1)
    p = np.asarray(mcnemar_p(b, c), np.float64)
    corrected = np.ones_like(p)
    corrected[tested] = holm(p[tested])
    low, high = paired_interval(b, c, n, confidence=1 - level)
    low, high = np.where(same, 0.0, low), np.where(same, 0.0, high)
    gap = (asked["rival_error"] - asked["own_error"]).to_numpy()
    # "Violated" is decided by Holm's method, which finds more than Bonferroni's. "Satisfied" needs a confidence limit,
    # and simultaneous limits exist for Bonferroni's shares of the level only. The interval must agree as well, so that
    # nobody reads "satisfied" beside an interval that includes harm.
    satisfied = same | (tested & (excluded_harm(b, c, n, level=share) <= margin) & (low >= -margin))
    violated = tested & (corrected <= level) & (high < 0) & ~satisfied
    # More rows decide a question either way: no harm beyond the margin if the gap stays as it is, or harm. The verdict
    # also needs one limit of the two-sided interval, which is a test at half of the level, hence the minimum.
    with np.errstate(invalid="ignore"):
        needed = rows_needed(np.maximum(gap + margin, -gap), (b + c) / n, level=min(share, level / 2))
    answered = asked.assign(
        n=_whole(n),
        gap=gap,
        low=low,
        high=high,
        own_worse=_whole(b),
        own_better=_whole(c),
        p=p,
        p_corrected=corrected,
        verdict=np.select([violated, satisfied], ["violated", "satisfied"], "undecided"),
        rows_needed=np.where(tested & ~violated & ~satisfied, needed, np.nan),
    )
    return answered[list(COLUMNS)]


def _whole(counts: NDArray[np.float64]) -> NDArray[np.float64] | NDArray[np.int64]:
    """Return counts as whole numbers, unless weights have turned them into effective numbers."""
    rounded = np.rint(counts)
    return rounded.astype(np.int64) if np.allclose(counts, rounded, rtol=0, atol=1e-6) else counts
