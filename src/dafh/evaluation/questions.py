"""Questions about groups: test, interval, verdict and rows needed, one row of a table for each question.

Two kinds of question are asked about every group and loss. *Rationality*: is it served worse than by the pooled
classifier? *Envy*: is it served worse than by the classifier of another group? Named groups (sex, race and their
intersections) are asked about rationality only, because no classifier belongs to them. At the end are the figures
without a question: totals, levels with the pooled classifier, and how often each group is flagged.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.compared import ComparedRows
from dafh.evaluation.losses import Loss, tolerated
from dafh.evaluation.named_groups import NamedGroups
from dafh.exceptions import InputError
from dafh.stats import Differences, holm, rows_needed
from dafh.text import shown
from dafh.validation import is_real

COLUMNS = [
    "group", "loss", "kind", "rival", "n", "own_loss", "rival_loss", "gap", "low", "high", "own_worse", "own_better",
    "robust_radius", "p", "p_corrected", "verdict", "rows_needed",
]  # fmt: skip
"""Columns of every table of questions; `AuditResult.to_frame` says what they mean."""
ALL_ROWS = "all rows"
Division = tuple[list[str], NDArray[np.integer]]
"""Names of groups, and the number of each row's group among them."""


def check_options(level: float, margin: float = 0.0) -> None:
    """Refuse what cannot be an error probability, or a tolerated harm."""
    if not is_real(level) or not 0 < level < 0.5:
        raise InputError(f"level must lie between 0 and 0.5, got {shown(level)}: 0.05 accepts one error in twenty.")
    if not is_real(margin) or not 0 <= margin < 1:
        raise InputError(f"margin must be at least 0 and below 1, got {shown(margin)}: 0.01 is one percentage point.")


def ask_groups(
    rows: ComparedRows, loss: Loss, labels: Sequence[object], rivals: Sequence[object], level: float, margin: float
) -> pd.DataFrame:
    """Compare every group's classifier with the pooled one, then with every other classifier."""
    pooled, n_groups, own_right = rows.right.shape[1] - 1, len(rows.own), rows.own_right
    pairs = [(g, r) for g in range(n_groups) for r in [pooled, *range(pooled)] if r == pooled or r != rows.own[g]]
    group, rival = np.array(pairs).T
    # Every classifier as the rival of all groups at once: rival by rival, group by group.
    against = [rows.harm(loss, own_right, right).by_group(rows.group, n_groups) for right in rows.right.T]
    figures = pd.concat([rows.losses_by_group(loss, own_right, right, rows.group, n_groups) for right in rows.right.T])
    lines = rival * n_groups + group
    table = figures.iloc[lines].assign(
        group=[labels[g] for g in group],
        loss=loss.name,
        kind=np.where(rival == pooled, "rationality", "envy"),
        rival=[rivals[r] for r in rival],
    )
    differences = Differences.joined(against, against[0].worst, against[0].largest).take(lines)
    is_same = (rows.own[group] == rival) & (table["n"].to_numpy() > 0)
    answered = _tested(table.reset_index(drop=True), differences, is_same, level, margin)
    p_small_loss = against[pooled].p_within(tolerated(loss.name, margin))
    return answered.assign(p_small_loss=np.where(rival == pooled, p_small_loss[group], np.nan))


def ask_named_groups(
    rows: ComparedRows, loss: Loss, groups: NamedGroups, depth: int, level: float, margin: float
) -> pd.DataFrame:
    """Compare, on every named group, the classifiers that serve its rows with the pooled one."""
    own_right, pooled_right = rows.own_right, rows.right[:, -1]
    harm = rows.harm(loss, own_right, pooled_right)
    tables, differences = [], []
    for names, group in groups.divisions(depth):
        figures = rows.losses_by_group(loss, own_right, pooled_right, group, len(names))
        tables.append(figures.assign(group=names, loss=loss.name, kind="rationality", rival="pooled"))
        differences.append(harm.by_group(group, len(names)))
    table = pd.concat(tables, ignore_index=True)
    counted = np.flatnonzero(table["n"] > 0)
    every = Differences.joined(differences, harm.worst, harm.largest).take(counted)
    # Only where the pooled classifier serves all groups is nobody compared. A named group whose rows *here* all fall
    # into groups that it serves may have rows elsewhere that do not.
    unchanged = bool((rows.own == rows.right.shape[1] - 1).all())
    return _tested(table.iloc[counted].reset_index(drop=True), every, np.full(len(counted), unchanged), level, margin)


def _tested(
    table: pd.DataFrame, differences: Differences, is_same: NDArray[np.bool_], level: float, margin: float
) -> pd.DataFrame:
    """Add test and interval to questions; `is_same` are those that compare a classifier with itself."""
    # Intersections of many attributes are thousands of small groups with the same few counts. Each is tested once: for
    # 12 attributes of 40 values each (106,000 groups) an audit took 103 s, and takes 5.
    distinct, position = differences.distinct()
    low, high = distinct.gain_limits(level / 2)
    return table.assign(
        gap=differences.gain,
        low=np.where(is_same, 0.0, low[position]),
        high=np.where(is_same, 0.0, high[position]),
        own_worse=differences.own_worse.astype(np.int64),
        own_better=differences.own_better.astype(np.int64),
        robust_radius=differences.robust_radius(level),
        p=distinct.p_beyond(margin)[position],
        p_within=distinct.p_within(margin)[position],
        p_no_gain=distinct.p_within(0.0)[position],
        spread=differences.spread,
        is_same=is_same,
        is_tested=(differences.total > 0) & ~is_same,
    )


def answer(asked: Sequence[pd.DataFrame], level: float, margin: float, n_families: int) -> pd.DataFrame:
    """Answer all questions of one family: corrected p-value, verdict and rows needed.

    Parameters
    ----------
    asked : sequence of data frames
        One for each loss.
    level : float
        Probability of any wrong "violated" in all families together, and of any wrong "satisfied".
    margin : float
        Harm up to this size is tolerated: "violated" means more than that, "satisfied" at most that.
    n_families : int
        Families that share the level. Learned and named groups get one half each, because in one family hundreds of
        named groups would leave nothing for the few that the model has learned.
    """
    table = pd.concat(asked, ignore_index=True)
    # Questions that cannot do harm, and groups without rows, make the correction no stricter for the others.
    tested = table["is_tested"].to_numpy(bool)
    corrected, within = np.ones(len(table)), np.ones(len(table))
    corrected[tested] = np.minimum(holm(table["p"][tested]) * n_families, 1.0)
    within[tested] = np.minimum(holm(table["p_within"][tested]) * n_families, 1.0)
    # The interval, which is for one question only but has two sides, must agree: nobody should read "satisfied" beside
    # an interval that includes harm.
    violated = tested & (corrected <= level) & (table["high"] < -margin)
    satisfied = table["is_same"] | (tested & (within <= level) & (table["low"] >= -margin))
    # More rows decide a question either way: no harm beyond the margin if the gap stays as it is, or harm.
    share = min(level / n_families / max(int(tested.sum()), 1), level / 2)
    needed = rows_needed(table["gap"] + margin, table["spread"], level=share)
    return table.assign(
        p_corrected=corrected,
        verdict=np.select([violated, satisfied], ["violated", "satisfied"], "undecided"),
        rows_needed=np.where(tested & ~violated & ~satisfied, needed, np.nan),
    )


def compose(rows: ComparedRows, groups: NamedGroups, labels: Sequence[object]) -> pd.DataFrame:
    """For each value of each attribute: the weight of its rows, and the share of them in each group."""
    tables = []
    for names, group in groups.divisions(depth=1):
        cell = group * len(labels) + rows.group
        weight = np.bincount(cell, rows.weight, minlength=len(names) * len(labels)).reshape(len(names), -1)
        total = weight.sum(axis=1)
        with np.errstate(invalid="ignore"):
            shares = pd.DataFrame(weight / total[:, None], columns=[f"in_{label}" for label in labels])
        tables.append(pd.DataFrame({"named_group": names, "weight": total}).join(shares)[total > 0])
    return pd.concat(tables, ignore_index=True)


def divisions(rows: ComparedRows, labels: Sequence[object], named: NamedGroups | None) -> list[Division]:
    """All rows in one, then by group, then by each attribute."""
    all_rows: Division = ([ALL_ROWS], np.zeros(len(rows.group), np.int64))
    learned: Division = ([str(label) for label in labels], rows.group)
    return [all_rows, learned, *(() if named is None else named.divisions(depth=1))]


def decision_rates(rows: ComparedRows, divided: Sequence[Division]) -> pd.DataFrame | None:
    """One row for each group of each division of the rows; None without two classes.

    Columns: group, rows, and flagged, fpr and fnr, each followed by the same with the pooled classifier.
    """
    if rows.positive is None:
        return None
    tables = []
    for names, group in divided:
        n_groups = len(names)
        total = np.bincount(group, rows.weight, minlength=n_groups)
        columns: dict[str, object] = {"group": names, "rows": np.bincount(group[rows.weight > 0], minlength=n_groups)}
        for side, right in (("", rows.own_right), ("_pooled", rows.right[:, -1])):
            # Who is right about a positive row, or wrong about another one, predicts the positive class.
            flagged = np.bincount(group, rows.weight * (right == rows.positive), minlength=n_groups)
            with np.errstate(invalid="ignore"):
                columns[f"flagged{side}"] = flagged / total
            for kind in ("fpr", "fnr"):
                columns[f"{kind}{side}"] = rows.mean_loss(Loss(kind), right, group, n_groups)
        tables.append(pd.DataFrame(columns))
    names = [f"{rate}{side}" for rate in ("flagged", "fpr", "fnr") for side in ("", "_pooled")]
    return pd.concat(tables, ignore_index=True)[["group", "rows", *names]]


def total_losses(rows: ComparedRows, losses: Sequence[Loss], level: float) -> pd.DataFrame:
    """One row per loss, over all rows: own_loss, pooled_loss, gain with its interval low to high, and p of no gain."""
    one_group, own_right, pooled_right = np.zeros(len(rows.group), np.intp), rows.own_right, rows.right[:, -1]
    tables = []
    for loss in losses:
        differences = rows.harm(loss, own_right, pooled_right).by_group(one_group, 1)
        low, high = differences.gain_limits(level / 2)
        tables.append(
            rows.losses_by_group(loss, own_right, pooled_right, one_group, 1).assign(
                loss=loss.name, gain=differences.gain, low=low, high=high, p_no_gain=differences.p_within(0.0)
            )
        )
    table = pd.concat(tables, ignore_index=True).rename(columns={"rival_loss": "pooled_loss"})
    return table[["loss", "own_loss", "pooled_loss", "gain", "low", "high", "p_no_gain"]]


def pooled_levels(rows: ComparedRows, loss: Loss, divided: Sequence[Division], level: float) -> pd.DataFrame:
    """Loss with the pooled classifier for each group of each division of the rows, with its limits.

    Columns: group, rows, those that count for the loss, pooled_loss, low and high.
    """
    pooled_right = rows.right[:, -1]
    harm, opposite = rows.harm(loss, pooled_right), rows.harm(loss, ~pooled_right)
    tables = []
    for names, group in divided:
        n_groups = len(names)
        differences = harm.by_group(group, n_groups)
        if loss.name == "cost":
            low = differences.lower(level / 2)
        else:  # Of a share, the upper limit of the opposite is exact.
            low = 1 - opposite.by_group(group, n_groups).upper(level / 2)
        figures = rows.losses_by_group(loss, pooled_right, pooled_right, group, n_groups)
        tables.append(
            pd.DataFrame(
                {
                    "group": names,
                    "rows": figures["n"],
                    "pooled_loss": figures["own_loss"],
                    "low": low,
                    "high": differences.upper(level / 2),
                }
            )
        )
    return pd.concat(tables, ignore_index=True)
