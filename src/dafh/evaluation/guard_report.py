"""GuardReport: what the guard decided for each group, and why."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.losses import TITLES, LossName
from dafh.frames import PlainTable
from dafh.text import listed, percent, points, render_html, render_text

GuardKind = Literal["evidence", "proof"]
_LOSSES = ("own_loss", "pooled_loss")


@dataclass(frozen=True, eq=False)
class GuardReport:
    """What the guard decided for each group; prints as a table, in a terminal and in a notebook.

    Examples
    --------
    Group 0's own classifier is always right, the pooled one in half of the rows; in group 1 it is the other way round.

    >>> import numpy as np
    >>> from dafh.evaluation import ComparedRows, choose_servers
    >>> y, group = np.tile([0, 1], 100), np.repeat([0, 1], 100)
    >>> coin = np.tile([0, 0, 1, 1], 50)
    >>> pooled = np.where(group == 0, coin, y)
    >>> rows = ComparedRows.check(y, np.column_stack([y, coin]), group, pooled)
    >>> print(choose_servers(rows))
    Guard "evidence" on 200 calibration rows: group 1 is served by the pooled classifier.
    <BLANKLINE>
     group  rows  own error  pooled error  gain, points      95% interval  served by  harm vs pooled, points
         0   100       0.0%         50.0%        +50.00  +38.39 to +60.17    its own      none, gain ≥ 36.93
         1   100      50.0%          0.0%        -50.00  -60.17 to -38.39     pooled           none (pooled)
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
        parts = []
        if pooled:
            who = "every group" if len(pooled) == len(names) else listed(pooled)
            verb = "are" if 1 < len(pooled) < len(names) else "is"
            parts.append(f"{who} {verb} served by the pooled classifier")
        if moved:
            parts.append(f"{listed(moved)} {'gets' if len(moved) == 1 else 'get'} another group's classifier")
        decision = "; ".join(parts) or "every group keeps its own classifier"
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
        kept = [k for k, s in enumerate(self.serves) if s == k and not self.table["gain"].iloc[k] > 0]
        return "\n".join([self.sentence(), *self.reasons(), *map(self.sentence_of, kept), *self.notes])

    def sentence_of(self, group: int) -> str:
        """Say why a group kept or lost its own classifier, with the two figures that decide."""
        keeps = " keeps its own classifier" if self.serves[group] == group else ""
        return f"Group {group}{keeps}: {self.table['reason'].iloc[group]}{self._figures(group)}."

    def _figures(self, group: int) -> str:
        """Loss with its own classifier and with the pooled one, where it failed first or else in the main check."""
        asked = self.checks[self.checks["group"] == group]
        failed = asked[~asked["passed"]]
        first = failed if len(failed) else asked
        if not len(first) or not int(first["rows"].iloc[0]) or self.serves[group] not in (group, len(self.serves)):
            return ""
        check = first.iloc[0]
        # In the main check the same figures as in the table, which are what fresh rows will show.
        is_main = not check["part"] and check["loss"] == self.losses[0]
        compared = self.table.iloc[group] if is_main else check
        # Two digits: groups are often decided by less than a tenth of a percentage point.
        own, pooled = (f"{100 * compared[name]:.2f}{'' if check['loss'] == 'cost' else '%'}" for name in _LOSSES)
        unit = " per 100 rows" if check["loss"] == "cost" else ""
        both = f"{own}{unit} with both" if own == pooled else f"{own} instead of {pooled}{unit}"
        return f" ({both}, {check['rows']:,} {'row' if check['rows'] == 1 else 'rows'})"

    def _display(self) -> pd.DataFrame:
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

    def __str__(self) -> str:
        """Render for a terminal."""
        parts = [self.sentence(), render_text(self._display())]
        sentences = [*self.reasons(), *self.notes]
        return "\n\n".join([*parts, "\n".join(sentences)] if sentences else parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html(self.sentence(), self._display(), *self.reasons(), *self.notes)


def robust_in_words(table: pd.DataFrame, serves: NDArray[np.intp]) -> list[str]:
    """Say how strong a shift of the population would have to be to turn "not worse" round, where it is shown."""
    return [
        f"Group {g} stays no worse off than with the pooled classifier as long as rows that its own classifier loses "
        f"do not become {radius:.2f} times as frequent, compared with rows that it wins."
        for g, radius in enumerate(table["robust_radius"])
        if serves[g] == g and radius > 1
    ]


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
