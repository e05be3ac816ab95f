"""The exceptions of a fitted model, with what is known about each group, as people read them."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

from dafh.evaluation.guard import GuardReport
from dafh.evaluation.losses import TITLES, LossName
from dafh.regions.conditions import Region
from dafh.text import percent, points, render_html, render_text

EVERYBODY_ELSE = "everybody else"


@dataclass(frozen=True, eq=False)
class ExceptionSummary:
    """The groups of a model as a short list: who is excepted, what it gains, and who serves it.

    Prints as a table, in a terminal and in a notebook. `to_frame` has the same as numbers.
    """

    regions: tuple[Region, ...]
    """The exceptions in the order in which they are asked; the first that holds decides."""
    serves: NDArray[np.intp]
    """Classifier that serves each group, everybody else last; the number of groups stands for the pooled one."""
    share: NDArray[np.float64]
    """Share of the training rows in each group."""
    shift: NDArray[np.float64]
    """What the own classifier adds to the pooled logit, where it adds the same for all rows of its group; else NaN."""
    threshold: float = 0.5
    """Probability above which the second of two classes is predicted."""
    gain: NDArray[np.float64] | None = None
    """Gain of each group's own classifier that fresh rows will show; None without a guard."""
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    loss: LossName = "error"
    """What the gain is a gain in."""
    replacement: str | None = None
    """What giving up the user's own model would bring, in one sentence."""

    def judged(self, serves: NDArray[np.intp], report: GuardReport | None) -> "ExceptionSummary":
        """The same list after the guard has decided."""
        if report is None:
            return replace(self, serves=serves, gain=None, low=None, high=None)
        gain, low, high = (report.table[name].to_numpy() for name in ("gain", "low", "high"))
        return replace(self, serves=serves, gain=gain, low=low, high=high, loss=report.losses[0])

    @property
    def n_groups(self) -> int:
        """Number of groups, everybody else included."""
        return len(self.regions) + 1

    @property
    def rules(self) -> list[str]:
        """The rule of each group in words."""
        return [*map(str, self.regions), EVERYBODY_ELSE if self.regions else "everybody"]

    def to_frame(self) -> pd.DataFrame:
        """One row per group in the order of the list: rule, share of rows, gain with interval, and who serves it."""
        unknown = np.full(self.n_groups, np.nan)
        return pd.DataFrame(
            {
                "rule": self.rules,
                "rows": self.share,
                "gain": unknown if self.gain is None else self.gain,
                "low": unknown if self.low is None else self.low,
                "high": unknown if self.high is None else self.high,
                "served_by": self.serves,
            },
            index=pd.RangeIndex(self.n_groups, name="group"),
        )

    def server(self, group: int) -> str:
        """Say who serves a group."""
        server = int(self.serves[group])
        if server == self.n_groups:
            return "the pooled classifier"
        if server != group:
            return f"the classifier of group {server}"
        if np.isnan(self.shift[group]):
            return "its own classifier"
        cutoff = float(expit(logit(self.threshold) - self.shift[group]))
        return f"its own classifier (about another cut-off of the pooled one, {cutoff:.2f})"

    def sentence(self) -> str:
        """Say in one sentence what groups are worth."""
        n_own = int((self.serves < self.n_groups).sum())
        if self.n_groups == 1:
            if n_own:
                return "No exceptions: one correction of the pooled classifier serves everybody."
            return "No exceptions: groups add nothing to the pooled classifier, which serves everybody."
        several = len(self.regions) > 1
        exceptions = f"{len(self.regions)} exception{'s' if several else ''}"
        if not n_own:
            # Not "none gains": under "proof" a group may gain much and still lack the rows to show it.
            return f"{exceptions} found, but the guard let no group keep its own classifier: the pooled one serves all."
        served = f"{n_own} of {self.n_groups} groups {'has its' if n_own == 1 else 'have their'} own classifier"
        order = ", asked in this order; the first that holds decides. " if several else ", and everybody else: "
        return f"{exceptions}{order}{served}."

    def _display(self) -> pd.DataFrame:
        unit = "points" if self.loss != "cost" else "per 100 rows"
        title = "gain" if self.loss == "error" else f"gain in {TITLES[self.loss]}"
        table = pd.DataFrame(
            {
                "group": range(self.n_groups),
                "rule": self.rules,
                "rows": [percent(share) for share in self.share],
            }
        )
        if self.gain is not None and self.low is not None and self.high is not None:
            table[f"{title}, {unit}"] = [points(gain) for gain in self.gain]
            limits = zip(self.low, self.high, strict=True)
            table["95% interval"] = [
                "–" if np.isnan(low) else f"{points(low)} to {points(high)}" for low, high in limits
            ]
        return table.assign(**{"served by": [self.server(group) for group in range(self.n_groups)]})

    def __str__(self) -> str:
        """Render for a terminal."""
        table = [] if self.n_groups == 1 else [render_text(self._display(), left=("rule", "served by"))]
        return "\n\n".join([self.sentence(), *table, *self._notes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html(self.sentence(), *([] if self.n_groups == 1 else [self._display()]), *self._notes())

    def _notes(self) -> list[str]:
        return [] if self.replacement is None else [self.replacement]
