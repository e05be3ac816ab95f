"""The guard: on rows of its own, decide which classifier serves which group, and certify the result.

Three levels, from most to least careful:

- ``"proof"``: a group keeps its own classifier only if the rows show, at `level` divided by the number of groups, that
  it is not worse than the pooled one by more than `margin`. Whatever the training did, the probability that any group
  is served worse than that is then at most `level`, for fresh rows of the population that the guard's rows come from.
- ``"veto"``: a group keeps its own classifier only if some rows tell it from the pooled one, and they do not speak
  against it: if it lost more rows than it won, by more than a classifier as good as the pooled one does in two of five
  cases, or if nothing was won or lost, the pooled one serves. The doubt goes to the pooled classifier, the chance of a
  small gain is not thrown away, and nothing is proved.
- None: the guard is off.

Envy is repaired the same way: a group that is shown to prefer another group's classifier gets that one (with "proof",
if it keeps its own in the first place). Every group has a *certificate*, the largest harm against the pooled classifier
that its rows do not exclude; the certificates of all groups hold together with probability 1 − level.

With unequal row weights, tests and certificates rest on effective numbers of rows, and all promises are approximate.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.paired import PairedCounts
from dafh.exceptions import InputError
from dafh.stats import excluded_harm, mcnemar_p, paired_interval
from dafh.text import listed, percent, points, render_html, render_text

GuardKind = Literal["veto", "proof"]
VETO_LEVEL = 0.4
"""A group loses its own classifier under "veto" if the mid-p of "not worse" is at most this."""


@dataclass(frozen=True)
class GuardReport:
    """What the guard did, group by group; prints as a table in a terminal and in a notebook.

    Examples
    --------
    Group 0 gains 40 rows by its own classifier and loses 5; group 1 gains 10 and loses 20.

    >>> import numpy as np
    >>> beats = np.array([[[0, 30, 40], [8, 0, 20], [5, 7, 0]], [[0, 12, 12], [9, 0, 10], [12, 20, 0]]])
    >>> counts = PairedCounts(beats, n_rows=np.array([500, 400]), n_wrong=np.array([[50, 72, 85], [80, 80, 70]]))
    >>> report = choose_servers(counts)
    >>> report.serves
    array([0, 2])
    >>> print(report)
    Guard "veto" on 900 rows: group 1 is served by the pooled classifier.
    <BLANKLINE>
     group  rows  own error  pooled error   gain   95 % interval  served by  harm against pooled
         0   500      10.0%         17.0%  +7.00  +4.38 to +9.84    its own    none: 4.03 better
         1   400      20.0%         17.5%  -2.50  -5.46 to +0.36     pooled   none: it is pooled
    """

    kind: GuardKind
    level: float
    margin: float
    serves: NDArray[np.intp]
    """Which classifier serves each group, (K,); K is the pooled one."""
    table: pd.DataFrame
    """One row per group: rows, error rates, gain over pooled with its interval, b and c, the exact tests of "not worse"
    and "not better", who serves it, and the harm that is excluded, for all groups together at `level`."""
    cross_fitted: bool = False
    """Whether the rows judged models trained without them in the same way as the final one, not that one itself."""

    @property
    def n_rows(self) -> float:
        """Number of rows that the guard had, effective ones if they were weighted."""
        return float(self.table["rows"].sum())

    def to_frame(self) -> pd.DataFrame:
        """Return the table, one row per group."""
        return self.table.copy()

    def sentence(self) -> str:
        """Say in one sentence what the guard did."""
        names = [f"group {k}" for k in self.table.index]
        moved = [n for n, s, k in zip(names, self.serves, self.table.index, strict=True) if s not in (k, len(names))]
        vetoed = [n for n, s in zip(names, self.serves, strict=True) if s == len(names)]
        parts = []
        if vetoed:
            everyone = len(vetoed) == len(names)
            who = "every group" if everyone else listed(vetoed)
            parts.append(f"{who} {'is' if everyone or len(vetoed) == 1 else 'are'} served by the pooled classifier")
        if moved:
            parts.append(f"{listed(moved)} {'gets' if len(moved) == 1 else 'get'} another group's classifier")
        deed = "; ".join(parts) or "every group keeps its own classifier"
        if not self.n_rows:
            return f'Guard "{self.kind}" had no rows to judge by: {deed}.'
        how = ", by models trained without them" if self.cross_fitted else ""
        return f'Guard "{self.kind}" on {self.n_rows:,.0f} rows{how}: {deed}.'

    def _display(self) -> pd.DataFrame:
        table = self.table
        return pd.DataFrame(
            {
                "group": table.index,
                "rows": [f"{n:,.0f}" for n in table["rows"]],
                "own error": [percent(e) for e in table["own_error"]],
                "pooled error": [percent(e) for e in table["pooled_error"]],
                "gain": [points(g) for g in table["gain"]],
                f"{100 * (1 - self.level):g} % interval": [
                    f"{points(low)} to {points(high)}" for low, high in zip(table["low"], table["high"], strict=True)
                ],
                "served by": table["served_by"].to_numpy(),
                "harm against pooled": table["certificate"].to_numpy(),
            }
        )

    def __str__(self) -> str:
        """Render for a terminal."""
        return f"{self.sentence()}\n\n{render_text(self._display())}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html(self.sentence(), self._display())


def choose_servers(
    counts: PairedCounts,
    *,
    kind: GuardKind = "veto",
    level: float = 0.05,
    margin: float = 0.0,
    cross_fitted: bool = False,
) -> GuardReport:
    """Decide who serves whom from what rows say about K groups, their K classifiers and the pooled one.

    Parameters
    ----------
    counts : PairedCounts
        From rows used for nothing else; group k's own classifier is column k.
    kind, level, margin
        See the module.
    cross_fitted : bool
        Noted in the report.
    """
    if kind not in ("veto", "proof"):
        raise InputError(f"There is no guard {kind!r}: it is 'veto' or 'proof'.")
    n_groups = len(counts.n_rows)
    own, pooled = np.arange(n_groups), np.full(n_groups, n_groups)
    worse, better, n_rows = counts.pair(own, pooled)
    if kind == "proof":
        keeps = np.asarray(excluded_harm(worse, better, n_rows, level=level / n_groups)) <= margin
    else:
        told_apart = (worse + better > 0) | (n_rows == 0)  # Without any rows there is nothing to act on.
        keeps = told_apart & (np.asarray(mcnemar_p(worse, better, mid=True)) > VETO_LEVEL)
    serves = np.where(keeps, own, pooled)
    for group in range(n_groups):
        if kind == "veto" or keeps[group]:
            serves[group] = _repair_envy(counts, group, int(serves[group]), level, margin)
    harm = _certificates(counts, serves, level)
    if kind == "proof":  # What was proved is certified, also where half of the level would not have been enough.
        harm = np.minimum(harm, margin)
    return GuardReport(kind, level, margin, serves, _table(counts, serves, harm, level), cross_fitted)


def _repair_envy(counts: PairedCounts, group: int, served_by: int, level: float, margin: float) -> int:
    """Classifier for a group after it was asked whether it prefers another group's.

    A rival must be shown better than the classifier in place, and not worse than the pooled one by more than the
    margin. With "proof" this is asked only of a group that keeps its own classifier: tests in a fixed order may use the
    level of the group again, shared by its K − 1 rivals.
    """
    n_groups = len(counts.n_rows)
    share = level / n_groups / max(n_groups - 1, 1)
    best = served_by
    for rival in range(n_groups):
        p = mcnemar_p(counts.beats[group, rival, served_by], counts.beats[group, served_by, rival])
        if rival == served_by or p > share:
            continue
        pair = counts.beats[group, n_groups, rival], counts.beats[group, rival, n_groups], counts.n_rows[group]
        proved = excluded_harm(*pair, level=share) <= margin
        if proved and counts.n_wrong[group, rival] < counts.n_wrong[group, best]:
            best = rival
    return best


def _certificates(counts: PairedCounts, serves: NDArray[np.intp], level: float) -> NDArray[np.float64]:
    """Harm against the pooled classifier that is excluded for each group, for all of them together at `level`.

    Which classifier serves a group was chosen by the same rows. So each group's share of the level is divided in
    advance among all candidates: one half for its own, the other for its rivals.
    """
    n_groups = len(serves)
    pooled = np.full(n_groups, n_groups)
    pair = counts.pair(serves, pooled)
    share = level / n_groups
    as_own = excluded_harm(*pair, level=share / 2 if n_groups > 1 else share)
    as_rival = excluded_harm(*pair, level=share / 2 / max(n_groups - 1, 1))
    harm = np.where(serves == np.arange(n_groups), as_own, as_rival)
    return np.where(serves == n_groups, 0.0, harm)


def _table(counts: PairedCounts, serves: NDArray[np.intp], harm: NDArray[Any], level: float) -> pd.DataFrame:
    n_groups = len(serves)
    own, pooled = np.arange(n_groups), np.full(n_groups, n_groups)
    worse, better, n_rows = counts.pair(own, pooled)
    low, high = paired_interval(worse, better, n_rows, confidence=1 - level)
    errors = counts.errors
    return pd.DataFrame(
        {
            "rows": n_rows,
            "own_error": errors[own, own],
            "pooled_error": errors[:, -1],
            "gain": errors[:, -1] - errors[own, own],
            "low": low,
            "high": high,
            "own_worse": worse,
            "own_better": better,
            "p_worse": mcnemar_p(worse, better),
            "p_better": mcnemar_p(better, worse),
            "served_by": [_server(k, int(s), n_groups) for k, s in enumerate(serves)],
            "excluded_harm": harm,
            "certificate": [_certificate(h, int(s) == n_groups) for h, s in zip(harm, serves, strict=True)],
        },
        index=pd.RangeIndex(n_groups, name="group"),
    )


def _server(group: int, serves: int, n_groups: int) -> str:
    if serves == group:
        return "its own"
    return "pooled" if serves == n_groups else f"classifier {serves}"


def _certificate(harm: float, is_pooled: bool) -> str:
    if is_pooled:
        return "none: it is pooled"
    if harm <= 0:
        return f"none: {-100 * harm:.2f} better" if harm < -5e-5 else "none"
    return f"at most {100 * harm:.2f}" if harm >= 5e-5 else f"at most {100 * harm:.1g}"
