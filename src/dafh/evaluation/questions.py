"""Questions about groups: test, interval, verdict and rows needed, one row of a table for each question.

Two kinds of question are asked about every group and loss. *Rationality*: is it served worse than by the pooled
classifier? *Envy*: is it served worse than by the classifier of another group? Named groups (sex, race and their
intersections) are asked about rationality only, because no classifier belongs to them. At the end are the figures
without a question: totals, levels with the pooled classifier, and how often each group is flagged.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.compared import ComparedRows, LossUnits, mean_loss
from dafh.evaluation.losses import Loss
from dafh.evaluation.named_groups import NamedGroups
from dafh.stats import Differences, holm, rows_needed

COLUMNS = (
    "group", "loss", "kind", "rival", "n", "own_loss", "rival_loss", "gap", "low", "high", "own_worse", "own_better",
    "robust_radius", "p", "p_corrected", "verdict", "rows_needed",
)  # fmt: skip
"""Columns of every table of questions; `AuditResult.to_frame` says what they mean."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions about one loss, with what the rows say, before they are answered."""

    table: pd.DataFrame
    """Group, loss, kind, rival, n, own_loss and rival_loss."""
    differences: Differences
    same: NDArray[np.bool_]
    """Questions that compare a classifier with itself, which cannot do harm."""


def ask_groups(rows: ComparedRows, loss: Loss, labels: Sequence[object], rivals: Sequence[object]) -> Asked:
    """Compare every group's classifier with the pooled one, then with every other classifier."""
    pooled, n_groups = rows.right.shape[1] - 1, len(rows.own)
    pairs = [(g, r) for g in range(n_groups) for r in [pooled, *range(pooled)] if r == pooled or r != rows.own[g]]
    group, rival = np.array(pairs).T
    mine = rows.own[group]
    losses = np.column_stack([mean_loss(rows, loss, ~right, rows.group, n_groups) for right in rows.right.T])
    counted = loss.stakes(rows.positive, len(rows.group))[1] & (rows.weight > 0)
    n_rows = np.bincount(rows.group[counted], minlength=n_groups)
    table = pd.DataFrame(
        {
            "group": [labels[g] for g in group],
            "loss": loss.name,
            "kind": np.where(rival == pooled, "rationality", "envy"),
            "rival": [rivals[r] for r in rival],
            "n": n_rows[group],
            "own_loss": losses[group, mine],
            "rival_loss": losses[group, rival],
        }
    )
    found = rows.compare(loss, list(zip(group.tolist(), mine.tolist(), rival.tolist(), strict=True)))
    return Asked(table, found, (mine == rival) & (n_rows[group] > 0))


def ask_named_groups(rows: ComparedRows, loss: Loss, groups: NamedGroups, depth: int) -> Asked:
    """Compare, on every named group, the classifiers that serve its rows with the pooled one."""
    units = LossUnits.of(rows, loss)
    own_wrong, rival_wrong = ~rows.own_right, ~rows.right[:, -1]
    # One number per row says all that is needed of it: what is at stake, and who is wrong. One pass over the rows then
    # counts all named groups of a combination, however many there are.
    kinds, kind = np.unique(units.stake + 1j * units.size, return_inverse=True)
    table = groups.tabulate(4 * kind + 2 * own_wrong + rival_wrong, 4 * len(kinds), (units.size > 0) * 1.0, depth)
    stake, size = np.repeat(kinds.real, 4), np.repeat(kinds.imag, 4)
    wrong = [np.tile(column, len(kinds)) for column in ([0, 0, 1, 1], [0, 1, 0, 1])]
    found = Differences(stake * (wrong[0] - wrong[1]), size, table.total, loss.worst, units.largest)
    own, rival = (table.total @ (stake * side) / found.total for side in wrong)
    if rows.person is not None:
        found = _by_person(rows, units, groups, depth, table.names)
    asked = pd.DataFrame(
        {
            "group": table.names,
            "loss": loss.name,
            "kind": "rationality",
            "rival": "pooled",
            "n": table.total.sum(axis=1).astype(np.int64),
            "own_loss": own,
            "rival_loss": rival,
        }
    )
    # Only where the pooled classifier serves all groups is nobody compared. A named group whose rows *here* all fall
    # into groups that it serves may have rows elsewhere that do not.
    unchanged = bool((rows.own == rows.right.shape[1] - 1).all())
    return Asked(asked, found, np.full(len(asked), unchanged))


def _by_person(
    rows: ComparedRows, units: LossUnits, groups: NamedGroups, depth: int, wanted: Sequence[str]
) -> Differences:
    """Differences of named groups where a unit is a person: the rows a person has in the group count together."""
    own_right, found = rows.own_right, {}
    for names, cell in groups.cells(depth):
        order = np.argsort(cell, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(cell, minlength=len(names)))[:-1])
        for name, members in zip(names, parts, strict=True):
            found[name] = units.tally(members, own_right[members], rows.right[members, -1])
    return units.differences([found[name] for name in wanted])


def compose(rows: ComparedRows, groups: NamedGroups, labels: Sequence[object]) -> pd.DataFrame:
    """For each value of each attribute: the weight of its rows, and the share of them in each group."""
    table = groups.tabulate(rows.group, len(labels), rows.weight, depth=1)
    frame = pd.DataFrame({"named_group": table.names, "weight": table.total.sum(axis=1)})
    shares = table.total / table.total.sum(axis=1, keepdims=True)
    return frame.join(pd.DataFrame(shares, columns=[f"in_{label}" for label in labels]))


def answer(asked: Sequence[Asked], level: float, margin: float, n_families: int) -> pd.DataFrame:
    """Answer all questions of one family: test, interval, verdict and rows needed.

    Parameters
    ----------
    asked : sequence of Asked
        One for each loss.
    level : float
        Probability of any wrong "violated" in all families together, and of any wrong "satisfied".
    margin : float
        Harm up to this size is tolerated: "violated" means more than that, "satisfied" at most that.
    n_families : int
        Families that share the level. Learned and named groups get one half each, because in one family hundreds of
        named groups would leave nothing for the few that the model has learned.
    """
    tables = [_with_tests(one, level, margin) for one in asked]
    table = pd.concat(tables, ignore_index=True)
    # Questions that cannot do harm, and groups without rows, make the correction no stricter for the others.
    tested = table["tested"].to_numpy(bool)
    corrected, within = np.ones(len(table)), np.ones(len(table))
    corrected[tested] = np.minimum(holm(table["p"][tested]) * n_families, 1.0)
    within[tested] = np.minimum(holm(table["p_within"][tested]) * n_families, 1.0)
    # The interval, which is for one question only but has two sides, must agree: nobody should read "satisfied" beside
    # an interval that includes harm.
    violated = tested & (corrected <= level) & (table["high"] < -margin)
    satisfied = table["same"] | (tested & (within <= level) & (table["low"] >= -margin))
    # More rows decide a question either way: no harm beyond the margin if the gap stays as it is, or harm.
    share = min(level / n_families / max(int(tested.sum()), 1), level / 2)
    needed = rows_needed(table["gap"] + margin, table["spread"], level=share)
    answered = table.assign(
        p_corrected=corrected,
        verdict=np.select([violated, satisfied], ["violated", "satisfied"], "undecided"),
        rows_needed=np.where(tested & ~violated & ~satisfied, needed, np.nan),
    )
    return answered[list(COLUMNS)]


def _with_tests(asked: Asked, level: float, margin: float) -> pd.DataFrame:
    """Add test and interval to the questions about one loss."""
    found, same = asked.differences, asked.same
    # Intersections of many attributes are thousands of small groups with the same few counts. Each is tested once: for
    # 12 attributes of 40 values each (106,000 groups) an audit took 103 s, and takes 5.
    distinct, place = found.distinct()
    low, high = distinct.gain_limits(level / 2)
    return asked.table.assign(
        gap=found.gain,
        low=np.where(same, 0.0, low[place]),
        high=np.where(same, 0.0, high[place]),
        own_worse=found.own_worse.astype(np.int64),
        own_better=found.own_better.astype(np.int64),
        robust_radius=found.robust_radius(level),
        p=distinct.p_beyond(margin)[place],
        p_within=distinct.p_within(margin)[place],
        spread=found.spread,
        same=same,
        tested=(found.total > 0) & ~same,
    )


ALL_ROWS = "all rows"


def decision_rates(rows: ComparedRows, labels: Sequence[object], named: NamedGroups | None) -> pd.DataFrame | None:
    """One row for all rows together, each group and each value of an attribute; None without two classes.

    Columns: group, rows, and flagged, fpr and fnr, each followed by the same with the pooled classifier.
    """
    if rows.positive is None:
        return None
    parts = [([ALL_ROWS], np.zeros(len(rows.group), np.int64)), ([str(label) for label in labels], rows.group)]
    parts += [] if named is None else list(named.cells(depth=1))
    return pd.concat([_rates(rows, names, cell) for names, cell in parts], ignore_index=True)


def _rates(rows: ComparedRows, names: list[str], cell: NDArray[np.integer]) -> pd.DataFrame:
    flagged = rows.flagged
    assert flagged is not None
    every = np.arange(len(cell))
    own = rows.own[rows.group]
    total = np.bincount(cell, rows.weight, minlength=len(names))
    columns: dict[str, object] = {"group": names, "rows": np.bincount(cell[rows.weight > 0], minlength=len(names))}
    with np.errstate(invalid="ignore"):
        for name, chosen in (("flagged", flagged[every, own]), ("flagged_pooled", flagged[:, -1])):
            columns[name] = np.bincount(cell, rows.weight * chosen, minlength=len(names)) / total
    for kind in ("fpr", "fnr"):
        columns[kind] = mean_loss(rows, Loss(kind), ~rows.own_right, cell, len(names))
        columns[f"{kind}_pooled"] = mean_loss(rows, Loss(kind), ~rows.right[:, -1], cell, len(names))
    return pd.DataFrame(columns)


def total_losses(rows: ComparedRows, losses: Sequence[Loss], level: float) -> pd.DataFrame:
    """One row per loss, over all rows: own_loss, pooled_loss, gain with its interval low to high, and p of no gain."""
    every, everybody = np.arange(len(rows.group)), np.zeros(len(rows.group), np.intp)
    table = []
    for loss in losses:
        units = LossUnits.of(rows, loss)
        found = units.differences([units.tally(every, rows.own_right, rows.right[:, -1])])
        own, pooled = (mean_loss(rows, loss, ~right, everybody, 1)[0] for right in (rows.own_right, rows.right[:, -1]))
        low, high = found.gain_limits(level / 2)
        table.append((loss.name, own, pooled, found.gain[0], low[0], high[0], found.p_within(0.0)[0]))
    return pd.DataFrame(table, columns=["loss", "own_loss", "pooled_loss", "gain", "low", "high", "p_no_gain"])


def pooled_levels(
    rows: ComparedRows, loss: Loss, labels: Sequence[object], named: NamedGroups | None, level: float
) -> pd.DataFrame:
    """Loss with the pooled classifier for all rows, each group and each value of an attribute, with its limits.

    Columns: group, rows, those that count for the loss, pooled_loss, low and high; lines as in `decision_rates`.
    """
    units = LossUnits.of(rows, loss)
    parts = [([ALL_ROWS], np.zeros(len(rows.group), np.int64)), ([str(label) for label in labels], rows.group)]
    parts += [] if named is None else list(named.cells(depth=1))
    members = [np.flatnonzero(cell == k) for names, cell in parts for k in range(len(names))]
    # Beside a rival that is never wrong, the harm is the loss.
    right, never_wrong = rows.right[:, -1:], np.ones((len(rows.group), 1), bool)
    found = units.differences([units.tally_all(m, right[m], never_wrong[m]) for m in members])
    if loss.name == "cost":
        low = found.lower(level / 2)
    else:  # Of a share, the upper limit of the opposite is exact.
        opposite = units.differences([units.tally_all(m, ~right[m], never_wrong[m]) for m in members])
        low = 1 - opposite.upper(level / 2)
    return pd.DataFrame(
        {
            "group": [name for names, _ in parts for name in names],
            "rows": [int((units.size[m] > 0).sum()) for m in members],
            "pooled_loss": np.concatenate([mean_loss(rows, loss, ~right[:, 0], cell, len(n)) for n, cell in parts]),
            "low": low,
            "high": found.upper(level / 2),
        }
    )
