"""The guard: decide on rows of its own which classifier serves which group, and certify the result.

There are three settings, the most careful first:

- ``"proof"``: a group keeps its own classifier only if its rows show that it is not worse than the pooled one by more
  than `margin`: for every loss asked about, and for every declared subgroup in the group. Holm's method corrects for
  the number of groups. Whatever happened in training, the probability that any group, or any declared subgroup with
  calibration rows in it, is served worse than that is at most `level`, for new rows from the population of these rows.
- ``"evidence"``: a group keeps its own classifier only if these rows favour it: the first loss is lower with p ≤ 0.2,
  or it is not higher and the log-loss is lower with p ≤ 0.05; no other loss asked about is higher; and no declared
  subgroup shows signs of harm. This prevents most harm, but proves nothing.
- None: the guard is off.

Groups that were found on the same rows look better there than they are. `ComparedRows.honest_share` says which share of
the gain fresh rows will show; gains, limits and tests are then about that share, here and in the report.

Envy is repaired in the same way: a group that is shown to do better with another group's classifier gets that one.
Every group has a *certificate*: the largest harm against the pooled classifier that its rows do not rule out. The
certificates of all groups hold together with probability 1 − level.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtr

from dafh.evaluation.compared import ComparedRows
from dafh.evaluation.losses import ERROR, TITLES, Loss, LossName
from dafh.evaluation.named_groups import NamedGroups
from dafh.exceptions import InputError
from dafh.frames import PlainTable
from dafh.stats import Differences, holm
from dafh.text import Readable, Section, listed, percent, points

GuardKind = Literal["evidence", "proof"]
_LOSSES = ("own_loss", "pooled_loss")


@dataclass(frozen=True, eq=False, repr=False)
class GuardReport(Readable):
    """What the guard decided for each group; prints as a table, in a terminal and in a notebook.

    Examples
    --------
    Group 0's own classifier is always right, the pooled one in half of the rows; in group 1 it is the other way round.

    >>> import numpy as np
    >>> from dafh.evaluation.compared import ComparedRows
    >>> from dafh.evaluation.guard import choose_servers
    >>> y, group = np.tile([0, 1], 100), np.repeat([0, 1], 100)
    >>> coin = np.tile([0, 0, 1, 1], 50)
    >>> pooled = np.where(group == 0, coin, y)
    >>> rows = ComparedRows.check(y, np.column_stack([y, coin]), group, pooled)
    >>> print(choose_servers(rows))
    Guard "evidence" on 200 calibration rows: group 1 is served by the pooled classifier.
    <BLANKLINE>
     group  rows  own error  pooled error  gain, points      95% interval  served by  harm vs pooled, points
     0       100       0.0%         50.0%        +50.00  +38.39 to +60.17  its own        none, gain ≥ 36.93
     1       100      50.0%          0.0%        -50.00  -60.17 to -38.39  pooled              none (pooled)
    <BLANKLINE>
    Group 1: the error rate is not shown to be below that of the pooled classifier (50.00% instead of 0.00%, 100 rows).
    """

    kind: GuardKind
    """The setting: "evidence" or "proof"."""
    level: float
    """Probability of a wrong promise that was accepted."""
    margin: float
    """Harm that was tolerated, as a share of rows."""
    serves: NDArray[np.intp]
    """Classifier that serves each group, (K,); K is the pooled one."""
    per_group: PlainTable
    """What `table` shows."""
    per_check: PlainTable
    """What `checks` shows."""
    losses: tuple[LossName, ...] = ("error",)
    """Losses that were asked about, the main one first."""
    cross_fitted: bool = False
    """Whether the rows judged models of the same kind that were trained without them, not this one."""
    notes: tuple[str, ...] = ()
    """Sentences about the cost that a cut-off implies, and about false positive and false negative rates that rise."""

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per group, about the first loss.

        Columns: rows; own_loss and pooled_loss; gain with the interval low to high, as fresh rows will show them;
        own_worse (b) and own_better (c); the tests p_worse ("not worse") and p_better ("not better"); served_by;
        robust_radius (see `dafh.stats.robust_radius`; missing where rows do not count alike) and excluded_harm (the
        certificate as a number), both for all groups together at `level`; certificate (the same in words); and reason
        (why the group kept or lost its own classifier).
        """
        return self.per_group.to_frame()

    @cached_property
    def checks(self) -> pd.DataFrame:
        """One row per group, part and loss: everything that its own classifier was asked.

        Columns: group; part (empty for all rows of the group, or a declared subgroup); loss; rows; own_loss,
        pooled_loss and gain; p_better and p_worse, as in `table` but with the margin; and passed.
        """
        return self.per_check.to_frame()

    @property
    def n_rows(self) -> int:
        """Number of rows that the guard had."""
        return int(self.table["rows"].sum())

    def sentence(self) -> str:
        """Say in one sentence what the guard decided."""
        names = [f"group {k}" for k in self.table.index]
        pooled = [name for name, s in zip(names, self.serves, strict=True) if s == len(names)]
        moved = [name for k, (name, s) in enumerate(zip(names, self.serves, strict=True)) if s not in (k, len(names))]
        decisions = []
        if pooled:
            who = "every group" if len(pooled) == len(names) else listed(pooled)
            verb = "are" if 1 < len(pooled) < len(names) else "is"
            decisions.append(f"{who} {verb} served by the pooled classifier")
        if moved:
            decisions.append(f"{listed(moved)} {'gets' if len(moved) == 1 else 'get'} another group's classifier")
        decision = "; ".join(decisions) or "every group keeps its own classifier"
        if not self.n_rows:
            return f'Guard "{self.kind}" had no rows to decide by: {decision}.'
        how = ", scored by models trained without them" if self.cross_fitted else ""
        return f'Guard "{self.kind}" on {self.n_rows:,} calibration rows{how}: {decision}.'

    def reasons(self) -> list[str]:
        """One sentence for each group that is not served by its own classifier, saying why."""
        return [self.sentence_of(k) for k, s in enumerate(self.serves) if s != k]

    def brief(self) -> str:
        """Say what the guard decided and why, without the table; for whoever has seen gains and servers elsewhere."""
        # A group that keeps its own classifier without a gain needs a reason, too.
        keeping = [k for k, s in enumerate(self.serves) if s == k and not self.table["gain"].iloc[k] > 0]
        return "\n".join([self.sentence(), *self.reasons(), *map(self.sentence_of, keeping), *self.notes])

    def sentence_of(self, group: int) -> str:
        """Say why a group kept or lost its own classifier, with the two figures that decide."""
        keeps = " keeps its own classifier" if self.serves[group] == group else ""
        return f"Group {group}{keeps}: {self.table['reason'].iloc[group]}{self._figures(group)}."

    def _figures(self, group: int) -> str:
        """Loss with its own classifier and with the pooled one, where it failed first or else in the main check."""
        checks = self.checks[self.checks["group"] == group]
        failed = checks[~checks["passed"]]
        first = failed if len(failed) else checks
        if not len(first) or not int(first["rows"].iloc[0]) or self.serves[group] not in (group, len(self.serves)):
            return ""
        check = first.iloc[0]
        # In the main check the same figures as in the table, which are what fresh rows will show.
        is_main = not check["part"] and check["loss"] == self.losses[0]
        compared = self.table.iloc[group] if is_main else check
        # Two digits: groups are often decided by less than a tenth of a percentage point.
        now, pooled = (f"{100 * compared[name]:.2f}{'' if check['loss'] == 'cost' else '%'}" for name in _LOSSES)
        unit = " per 100 rows" if check["loss"] == "cost" else ""
        both = f"{now}{unit} with both" if now == pooled else f"{now} instead of {pooled}{unit}"
        return f" ({both}, {check['rows']:,} {'row' if check['rows'] == 1 else 'rows'})"

    def display(self) -> pd.DataFrame:
        """The table for readers: texts, one row per group."""
        table, name = self.table, TITLES[self.losses[0]].removesuffix(" rate")
        limits = zip(table["low"], table["high"], strict=True)
        unit = "per 100 rows" if self.losses[0] == "cost" else "points"
        written = points if self.losses[0] == "cost" else percent
        return pd.DataFrame(
            {
                "group": table.index,
                "rows": [f"{n:,.0f}" for n in table["rows"]],
                f"own {name}": [written(e).lstrip("+") for e in table["own_loss"]],
                f"pooled {name}": [written(e).lstrip("+") for e in table["pooled_loss"]],
                f"gain, {unit}": [points(g) for g in table["gain"]],
                f"{100 * (1 - self.level):g}% interval": [f"{points(low)} to {points(high)}" for low, high in limits],
                "served by": table["served_by"].to_numpy(),
                f"harm vs pooled, {unit}": table["certificate"].to_numpy(),
            }
        )

    def sections(self) -> list[Section]:
        """What was decided, the table of groups, and why groups lost their own classifiers."""
        sentences = [*self.reasons(), *self.notes]
        closing = [Section(sentences=sentences)] if sentences else []
        return [Section(sentences=[self.sentence()]), Section(table=self.display()), *closing]


def server_in_words(group: int, serves: int, n_groups: int) -> str:
    """Name the classifier that serves a group."""
    if serves == group:
        return "its own"
    return "pooled" if serves == n_groups else f"classifier {serves}"


def certificate_in_words(harm: float, is_pooled: bool) -> str:
    """Put a certificate into words, in percentage points."""
    if is_pooled:
        return "none (pooled)"
    if harm <= 0:
        return f"none, gain ≥ {-100 * harm:.2f}" if harm < -5e-5 else "none"
    # Two decimals would turn a tiny harm into "at most 0.00", which reads like a proof of none.
    return f"at most {100 * harm:.2f}" if harm >= 5e-5 else f"at most {100 * harm:.1g}"


# Under "evidence", the own classifier must be better with at most this p-value. A declared subgroup shows signs of harm
# if the test of "not worse" has one of at most this: of a dozen subgroups some always lose a row.
EVIDENCE_LEVEL = 0.2
# Where decisions hardly differ, the log-loss must speak for the own classifier more clearly than errors would.
_LOG_LOSS_LEVEL = 0.05
# False positive and false negative rates that rise by more than this are named.
_NOTED_RISE = 0.01
_ROUNDING = 1e-12
ALL_ROWS = ""
"""Name of the part of a group that is all of it."""


def choose_servers(
    rows: ComparedRows,
    *,
    kind: GuardKind = "evidence",
    level: float = 0.05,
    margin: float = 0.0,
    losses: Sequence[Loss] = (ERROR,),
    cross_fitted: bool = False,
) -> GuardReport:
    """Choose which of K classifiers and a pooled one serves each of K groups.

    Parameters
    ----------
    rows : ComparedRows
        Used for nothing else; group k's own classifier is column k. Their `attributes` define declared subgroups.
    kind : {"evidence", "proof"}, default="evidence"
        See the module.
    level : float, default=0.05
        Accepted probability that any group is served worse all the same ("proof"), and that any certificate is wrong.
    margin : float, default=0
        Tolerated harm: 0.01 is one percentage point of error.
    losses : sequence of Loss
        Losses that must not get worse; certificates are about the first.
    cross_fitted : bool, default=False
        Noted in the report.

    Returns
    -------
    GuardReport

    Examples
    --------
    The own classifier of a single group wins 8 rows and loses 3. That is too little for a proof.

    >>> import numpy as np
    >>> own = np.repeat([1, 0, 1], [8, 3, 189])[:, None]
    >>> rows = ComparedRows.check(np.ones(200), own, np.zeros(200, int), pooled=np.repeat([0, 1, 1], [8, 3, 189]))
    >>> choose_servers(rows).serves, choose_servers(rows, kind="proof").serves
    (array([0]), array([1]))
    """
    if kind not in ("evidence", "proof"):
        raise InputError(f"There is no guard {kind!r}: choose 'evidence' or 'proof'.")
    n_groups = len(rows.own)
    own = np.arange(n_groups)
    checks = check_servers(rows, losses, own, margin)
    against_pooled = _against(rows, losses[0], own, n_groups)
    optimism = _owed_to_search(rows, against_pooled)
    p_better = against_pooled.p_within(-optimism)
    if kind == "proof":
        keeps = proved(checks, n_groups, level)
        checks["passed"] = checks["p_better"] <= level
    else:
        checks["passed"] = _spoken_for(checks, losses[0], p_better, p_of_log_loss(rows))
        keeps = np.isin(own, checks["group"]) & ~np.isin(own, checks["group"][~checks["passed"]])
    serves = np.where(keeps, own, n_groups)
    # Under "proof" the level passes on to other groups' classifiers only when every own classifier is proved; before,
    # it is better spent on the groups that are still in question.
    if kind == "evidence" or keeps.all():
        serves = np.array(
            [_repair_envy(rows, losses, g, int(serves[g]), level, margin) for g in range(n_groups)], np.intp
        )
    low, high = against_pooled.gain_limits(level / 2)
    figures = rows.losses_by_group(losses[0], _right(rows, own), rows.right[:, n_groups], rows.group, n_groups)
    harm = _certificates(_against(rows, losses[0], serves, n_groups), serves, kind, level, margin, optimism)
    table = pd.DataFrame(
        {
            "rows": figures["n"],
            "own_loss": figures["own_loss"] + optimism,
            "pooled_loss": figures["rival_loss"],
            "gain": against_pooled.gain - optimism,
            "low": low - optimism,
            "high": high - optimism,
            "own_worse": against_pooled.own_worse,
            "own_better": against_pooled.own_better,
            "p_worse": against_pooled.p_beyond(0.0),
            "p_better": p_better,
            "served_by": [server_in_words(k, int(s), n_groups) for k, s in enumerate(serves)],
            "excluded_harm": harm,
            # Rows that the search has seen say too much.
            "robust_radius": against_pooled.robust_radius(level / n_groups) if rows.honest_share == 1 else np.nan,
            "certificate": [certificate_in_words(h, int(s) == n_groups) for h, s in zip(harm, serves, strict=True)],
            "reason": [_reason(checks[checks["group"] == g], kind, int(serves[g]), n_groups) for g in own],
        },
        index=pd.RangeIndex(n_groups, name="group"),
    )
    notes = list(_rising_rates(rows, serves))
    if kind == "proof":
        notes += [
            f"Group {g} stays no worse off than with the pooled classifier as long as rows that its own classifier "
            f"loses do not become {radius:.2f} times as frequent, compared with rows that it wins."
            for g, radius in enumerate(table["robust_radius"])
            if serves[g] == g and radius > 1
        ]
    names, tables = tuple(loss.name for loss in losses), (PlainTable.of(table), PlainTable.of(checks))
    return GuardReport(kind, level, margin, serves, *tables, names, cross_fitted, tuple(notes))


def _right(rows: ComparedRows, serves: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether the classifier that serves a row is right on it, if `serves` says which one serves each group, (n,)."""
    return rows.right[np.arange(len(rows.group)), serves[rows.group]]


def _against(rows: ComparedRows, loss: Loss, serves: NDArray[np.intp], rival: int) -> Differences:
    """Compare the classifier that would serve each group with a rival, one question for each group."""
    return rows.harm(loss, _right(rows, serves), rows.right[:, rival]).by_group(rows.group, len(serves))


def check_servers(rows: ComparedRows, losses: Sequence[Loss], serves: NDArray[np.intp], margin: float) -> pd.DataFrame:
    """Compare the classifier that would serve each group with the pooled one, for every loss and part of the group."""
    right, pooled_right = _right(rows, serves), rows.right[:, len(rows.own)]
    divided = [([ALL_ROWS], np.zeros(len(rows.group), np.int64))]
    if rows.attributes is not None and len(rows.attributes):
        divided += NamedGroups.of(rows.attributes, len(rows.group)).divisions(depth=1)
    tables = []
    for loss in losses:
        harm = rows.harm(loss, right, pooled_right)
        for names, part in divided:
            # Parts without any row are left out: nothing can be said about them, and most do not exist.
            present, cell = np.unique(rows.group * len(names) + part, return_inverse=True)
            differences = harm.by_group(cell, len(present))
            figures = rows.losses_by_group(loss, right, pooled_right, cell, len(present))
            figures.insert(0, "group", present // len(names))
            figures.insert(1, "part", [names[i] for i in present % len(names)])
            figures.insert(2, "loss", loss.name)
            tables.append(
                figures.rename(columns={"n": "rows", "rival_loss": "pooled_loss"}).assign(
                    gain=differences.gain, p_better=differences.p_within(margin), p_worse=differences.p_beyond(margin)
                )
            )
    return pd.concat(tables, ignore_index=True)


def proved(checks: pd.DataFrame, n_groups: int, level: float) -> NDArray[np.bool_]:
    """Groups whose own classifier is shown not to be worse, all of them together at `level`, (K,).

    All that is asked about a group must be shown, so that the largest p-value is one of a test of "anything is worse"
    (an intersection-union test). Only the number of groups needs a correction.
    """
    p = np.ones(n_groups)
    largest_p = checks.groupby("group")["p_better"].max()
    p[largest_p.index] = largest_p
    return holm(p) <= level


def _owed_to_search(rows: ComparedRows, differences: Differences) -> NDArray[np.float64]:
    """Part of each gain that is owed to the search, which has seen these rows."""
    return (1 - rows.honest_share) * np.maximum(np.nan_to_num(differences.gain), 0.0)


def _spoken_for(
    checks: pd.DataFrame, loss: Loss, p_better: NDArray[np.float64], p_log_loss: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether the rows speak for the own classifier, or at least not against it, by "evidence"."""
    is_whole_group = (checks["part"] == ALL_ROWS).to_numpy()
    main = is_whole_group & (checks["loss"] == loss.name).to_numpy()
    group, gain = checks["group"].to_numpy(), checks["gain"].to_numpy()
    # A gap in "gain" means that no row of the group counts for this loss: then nothing speaks for it. Sums of weights
    # are rounded, and rows that balance exactly must not win by that.
    with np.errstate(invalid="ignore"):
        holds = gain >= -_ROUNDING
    by_log_loss = holds & (p_log_loss[group] <= _LOG_LOSS_LEVEL)
    wins = (p_better[group] <= EVIDENCE_LEVEL) | by_log_loss
    return np.where(main, wins, np.where(is_whole_group, holds, checks["p_worse"] > EVIDENCE_LEVEL))


def p_of_log_loss(rows: ComparedRows) -> NDArray[np.float64]:
    """One-sided p-value of "the log-loss of each group's own classifier is not lower", (K,); 1 where it is unknown."""
    n_groups = len(rows.own)
    p = np.ones(n_groups)
    if rows.log_gain is None:
        return p
    for g in range(n_groups):
        members = np.flatnonzero(rows.group == g)
        # Rows of one person are one unit.
        unit = members if rows.person is None else rows.person[members]
        unit = np.unique(unit, return_inverse=True)[1]
        weight = np.bincount(unit, rows.weight[members])
        gain = np.bincount(unit, rows.log_gain[members] * rows.weight[members])[weight > 0]
        weight = weight[weight > 0]
        n_units = len(weight)
        if n_units > 1:  # One alone says nothing about how much they differ.
            mean = gain.sum() / weight.sum()
            squares = ((gain - mean * weight) ** 2).sum() * n_units / (n_units - 1)
            error = np.sqrt(squares) / weight.sum()
            p[g] = stdtr(n_units - 1, -rows.honest_share * mean / error) if error > _ROUNDING else 1.0
    return p


def _rising_rates(rows: ComparedRows, serves: NDArray[np.intp]) -> Iterator[str]:
    """Name groups whose false positive or false negative rate rises by more than a point."""
    if rows.positive is None:
        return
    n_groups = len(serves)
    for loss in (Loss("fpr"), Loss("fnr")):
        rights = (_right(rows, serves), rows.right[:, n_groups])
        rates = zip(*(rows.mean_loss(loss, right, rows.group, n_groups) for right in rights), strict=True)
        for group, (own, pooled) in enumerate(rates):
            if own - pooled > _NOTED_RISE:
                change = f"from {percent(pooled)} to {percent(own)}"
                yield f"Group {group}: the {loss.title} rises {change}, with the classifier that serves it."


def _repair_envy(
    rows: ComparedRows, losses: Sequence[Loss], group: int, served_by: int, level: float, margin: float
) -> int:
    """Return the classifier that serves a group once it may switch to another group's.

    A rival must be shown better than the classifier in place, and not worse than the pooled one by more than the
    margin, in everything that is asked about. Both are tested at the group's share of the level, divided among its
    K − 1 rivals. A group's own classifier is none of them: where it does not serve, it has been refused.
    """
    n_groups = len(rows.own)
    share = level / n_groups / max(n_groups - 1, 1)
    better = []
    for rival in range(n_groups):
        if rival != group:
            difference = _against(rows, losses[0], np.full(n_groups, rival), served_by).take(np.array([group]))
            if difference.p_within(-_owed_to_search(rows, difference))[0] <= share:
                better.append((difference.harm[0], rival))
    for _, rival in sorted(better):
        checks = check_servers(rows, losses, np.full(n_groups, rival), margin)
        if (checks["p_better"][checks["group"] == group] <= share).all():
            return rival
    return served_by


def _certificates(
    against_pooled: Differences,
    serves: NDArray[np.intp],
    kind: GuardKind,
    level: float,
    margin: float,
    optimism: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Harm of who serves each group that its rows exclude, for all groups together at `level`."""
    n_groups = len(serves)
    own = np.arange(n_groups)
    share = level / n_groups
    if kind == "proof":
        # Limits that agree with Holm's method (Strassburger and Bretz 2008): the margin for groups that passed, and
        # less only where all groups did, because nothing of the level is left before.
        all_passed = bool((serves == own).all())
        harm = np.minimum(against_pooled.upper(share), margin) if all_passed else np.full(n_groups, margin)
        return np.where(serves == n_groups, 0.0, harm)
    # The same rows have chosen the classifier. Each group's share of the level is therefore divided in advance among
    # all that could have been chosen: one half for its own classifier, which is chosen most often, the rest for rivals.
    shares = np.where(serves == own, share / 2 if n_groups > 1 else share, share / 2 / max(n_groups - 1, 1))
    # The pooled classifier harms nobody compared with itself, which needs no limit.
    harm, served = np.zeros(n_groups), np.flatnonzero(serves < n_groups)
    harm[served] = np.minimum(
        against_pooled.take(served).upper(shares[served]) + optimism[served], against_pooled.worst
    )
    return harm


def _reason(checks: pd.DataFrame, kind: GuardKind, served_by: int, n_groups: int) -> str:
    """Why a group is served as it is."""
    if served_by < n_groups:
        if not len(checks) or served_by != checks["group"].iloc[0]:
            return f"classifier {served_by} is shown to serve it better"
        if kind == "proof":
            return "it is shown not to be worse than the pooled classifier"
        lower = checks["gain"].iloc[0] > _ROUNDING
        quantity = TITLES[checks["loss"].iloc[0]] if lower else "log-loss"
        return f"the {quantity} is lower than with the pooled classifier"
    if not len(checks):
        return "it has no calibration rows, so the pooled classifier serves it"
    failed = checks[~checks["passed"]]
    if not len(failed):  # Each test passed by itself, but not all groups together.
        return "its own classifier is not shown to be as good after correction for the number of groups"
    first = failed.iloc[0]
    quantity = TITLES[first["loss"]] + (f" of {first['part']}" if first["part"] else "")
    if not first["rows"]:
        return f"there are no calibration rows to measure the {quantity} on"
    if kind == "proof":
        return f"the {quantity} is not shown to be as low as with the pooled classifier"
    is_main = not first["part"] and first["loss"] == checks["loss"].iloc[0]
    return (
        f"the {quantity} is {'not shown to be below that of' if is_main else 'higher than with'} the pooled classifier"
    )
