"""The rules of a fitted model, with what is known about each group, as people read them."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.guard_report import GuardReport
from dafh.evaluation.losses import TITLES, Loss, LossName
from dafh.groups.rules import RuleTree
from dafh.text import percent, points, render_html


@dataclass(frozen=True, eq=False)
class RulesInUse:
    """The groups of a model as rules: size, rule, gain over the pooled classifier, and who serves them.

    Prints as a table, in a terminal and in a notebook. `to_frame` has the same as numbers.
    """

    tree: RuleTree
    serves: NDArray[np.intp]
    """Classifier that serves each group; the number of groups stands for the pooled one."""
    gain: NDArray[np.float64] | None
    """Gain of each group's own classifier on the guard's rows; None without a guard."""
    share: NDArray[np.float64] | None = None
    """Share of the training rows in each group."""
    loss: LossName = "error"
    """What the gain is a gain in."""

    @classmethod
    def of(
        cls, tree: RuleTree, serves: NDArray[np.intp], report: GuardReport | None, before: "RulesInUse | None" = None
    ) -> "RulesInUse":
        """Put together what is known; shares of the groups do not change when the guard decides anew."""
        gain = None if report is None else report.table["gain"].to_numpy()
        loss = "error" if report is None else report.losses[0]
        return cls(tree, serves, gain, None if before is None else before.share, loss)

    def with_shares(self, share: NDArray[np.float64]) -> "RulesInUse":
        """Add the share of the training rows in each group."""
        return replace(self, share=share)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.serves)

    def to_frame(self) -> pd.DataFrame:
        """One row per group: share of rows, rule, gain, and the number of the classifier that serves it."""
        nothing = np.full(self.n_groups, np.nan)
        return pd.DataFrame(
            {
                "rows": nothing if self.share is None else self.share,
                "gain": nothing if self.gain is None else self.gain,
                "served_by": self.serves,
                "rule": [self.tree.rule(k) for k in range(self.n_groups)],
            },
            index=pd.RangeIndex(self.n_groups, name="group"),
        )

    def sentence(self) -> str:
        """Say in one sentence what groups are worth."""
        own = int((self.serves < self.n_groups).sum())
        if self.n_groups == 1:
            return "Groups add nothing to the pooled classifier, which serves all rows."
        if not own:
            # Not "none gains": under "proof" a group may gain much and still lack the rows to show it.
            none = "but the guard let none keep its own classifier: the pooled one serves all rows"
            return f"{self.n_groups} groups were found, {none}."
        have = "has" if own == 1 else "have"
        return f"{self.n_groups} groups were found; {own} of them {have} a classifier other than the pooled one."

    @property
    def _of_loss(self) -> str:
        """Words that name the loss, unless it is the error rate, which everybody expects."""
        return "" if self.loss == "error" else f" in {TITLES[self.loss]}"

    def _display(self) -> pd.DataFrame:
        table = self.to_frame()
        pooled, names = self.n_groups, []
        for k, server in enumerate(self.serves):
            own = "its own classifier" if server == k else f"the classifier of group {server}"
            names.append("the pooled classifier" if server == pooled else own)
        return pd.DataFrame(
            {
                "group": table.index,
                "rows": ["–" if np.isnan(share) else percent(share) for share in table["rows"]],
                f"gain{self._of_loss}, {Loss(self.loss).unit}": [
                    "–" if np.isnan(gain) else points(gain) for gain in table["gain"]
                ],
                "served by": names,
            }
        )

    def __str__(self) -> str:
        """Render for a terminal: a line for each group, and its conditions below it."""
        if self.n_groups == 1:
            return self.sentence()
        lines = [self.sentence()]
        for row in self._display().itertuples(index=False):
            gain = "" if self.gain is None else f" gain{self._of_loss} {row[2]} {Loss(self.loss).unit},"
            lines.append(f"\ngroup {row[0]}: {row[1]} of rows,{gain} served by {row[3]}")
            *first, last = self.tree.conditions(int(row[0]))
            conditions = [*(f"{condition}, or" for condition in first), last]
            lines += [f"  {'   ' if number else 'if '}{text}" for number, text in enumerate(conditions)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html(self.sentence(), self._display().assign(rule=self.to_frame()["rule"].to_numpy()))
