"""The guard: decide on rows of its own which classifier serves which group, and certify the result.

There are three settings, the most careful first:

- ``"proof"``: a group keeps its own classifier only if its rows show, at `level` divided by the number of groups, that
  it is not worse than the pooled one by more than `margin`. Whatever happened in training, the probability that any
  group is served worse than that is then at most `level`, for new rows from the population of the guard's rows.
- ``"veto"``: a group loses its own classifier if a one-sided mid-p McNemar test at 0.4 finds it worse than the pooled
  one, or if the two are never told apart. In doubt the pooled classifier serves, but a likely small gain is not thrown
  away for lack of proof. This prevents much harm and proves nothing.
- None: the guard is off.

Envy is repaired in the same way: a group that is shown to do better with another group's classifier gets that one.
Every group has a *certificate*: the largest harm against the pooled classifier that its rows do not exclude. The
certificates of all groups hold together with probability 1 − level.

With unequal row weights, tests and certificates use effective numbers of rows, and all promises are approximate.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.equality import EqualByValue
from dafh.evaluation.paired import PairedCounts
from dafh.exceptions import InputError
from dafh.stats import excluded_harm, mcnemar_p, paired_interval
from dafh.text import listed, percent, points, render_html, render_text

GuardKind = Literal["veto", "proof"]
# Level of the veto. At 0.5 any excess of losses would be enough, and chance alone would take away half of the harmless
# classifiers; the usual 0.05 would let through nearly all that are slightly worse.
VETO_LEVEL = 0.4


@dataclass(frozen=True, eq=False)
class GuardReport(EqualByValue):
    """What the guard decided for each group; prints as a table, in a terminal and in a notebook.

    Examples
    --------
    In group 0 the own classifier wins 40 rows against the pooled one and loses 5; in group 1 it wins 10 and loses 20.

    >>> import numpy as np
    >>> beats = np.array([[[0, 30, 40], [8, 0, 20], [5, 7, 0]], [[0, 12, 12], [9, 0, 10], [12, 20, 0]]])
    >>> counts = PairedCounts(beats, n_rows=np.array([500, 400]), n_wrong=np.array([[50, 72, 85], [80, 80, 70]]))
    >>> print(choose_servers(counts))
    Guard "veto" on 900 calibration rows: group 1 is served by the pooled classifier.
    <BLANKLINE>
     group  rows  own error  pooled error  gain, points   95% interval  served by  harm vs pooled, points
         0   500      10.0%         17.0%         +7.00  +4.38 to +9.84    its own        none, gain ≥ 4.03
         1   400      20.0%         17.5%         -2.50  -5.46 to +0.36     pooled          none, is pooled
    """

    kind: GuardKind
    """The setting: "veto" or "proof"."""
    level: float
    """Probability of a wrong promise that was accepted."""
    margin: float
    """Harm that was tolerated, as a share of rows."""
    serves: NDArray[np.intp]
    """Classifier that serves each group, (K,); K is the pooled one."""
    table: pd.DataFrame
    """One row per group: rows, own and pooled error, gain with the interval low to high, own_worse (b) and own_better
    (c), the exact tests p_worse ("not worse") and p_better ("not better"), served_by, excluded_harm (the certificate as
    a number, for all groups together at `level`), and certificate (the same in words)."""
    cross_fitted: bool = False
    """Whether the counts come from models of the same kind that were trained without the rows, not from this one."""

    @property
    def n_rows(self) -> float:
        """Number of rows that the guard had; the effective number if they were weighted."""
        return float(self.table["rows"].sum())

    def to_frame(self) -> pd.DataFrame:
        """Return the table, one row per group."""
        return self.table.copy()

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
        return f'Guard "{self.kind}" on {self.n_rows:,.0f} calibration rows{how}: {decision}.'

    def _display(self) -> pd.DataFrame:
        table = self.table
        limits = zip(table["low"], table["high"], strict=True)
        return pd.DataFrame(
            {
                "group": table.index,
                "rows": [f"{n:,.0f}" for n in table["rows"]],
                "own error": [percent(e) for e in table["own_error"]],
                "pooled error": [percent(e) for e in table["pooled_error"]],
                "gain, points": [points(g) for g in table["gain"]],
                f"{100 * (1 - self.level):g}% interval": [f"{points(low)} to {points(high)}" for low, high in limits],
                "served by": table["served_by"].to_numpy(),
                "harm vs pooled, points": table["certificate"].to_numpy(),
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
    """Choose which of K classifiers and a pooled one serves each of K groups.

    Parameters
    ----------
    counts : PairedCounts
        From rows that were used for nothing else; group k's own classifier is column k.
    kind : {"veto", "proof"}, default="veto"
        See the module.
    level : float, default=0.05
        Accepted probability that any group is served worse all the same ("proof"), and that any certificate is wrong.
    margin : float, default=0
        Tolerated harm: 0.01 is one percentage point of error.
    cross_fitted : bool, default=False
        Noted in the report.

    Returns
    -------
    GuardReport

    Examples
    --------
    The own classifier of a single group wins 8 rows and loses 3. That is too little for a proof.

    >>> import numpy as np
    >>> counts = PairedCounts(np.array([[[0, 8], [3, 0]]]), n_rows=np.array([200]), n_wrong=np.array([[20, 25]]))
    >>> choose_servers(counts).serves, choose_servers(counts, kind="proof").serves
    (array([0]), array([1]))
    """
    if kind not in ("veto", "proof"):
        raise InputError(f"There is no guard {kind!r}: choose 'veto' or 'proof'.")
    n_groups = len(counts.n_rows)
    own, pooled = np.arange(n_groups), np.full(n_groups, n_groups)
    worse, better, n_rows = counts.pair(own, pooled)
    if kind == "proof":
        keeps = np.asarray(excluded_harm(worse, better, n_rows, level=level / n_groups)) <= margin
    else:
        # A classifier that never differs from the pooled one brings nothing, and might differ tomorrow. But a group
        # without any rows has not been tested, and then the decision of training stands.
        told_apart = (worse + better > 0) | (n_rows == 0)
        keeps = told_apart & (np.asarray(mcnemar_p(worse, better, mid=True)) > VETO_LEVEL)
    serves = np.where(keeps, own, pooled)
    for group in range(n_groups):
        # Under "proof" the tests of one group come in a fixed order, each at the full level of the group, and stop at
        # the first that fails. A group whose own classifier failed is therefore not offered another.
        if kind == "veto" or keeps[group]:
            serves[group] = _repair_envy(counts, group, int(serves[group]), level, margin)
    harm = _certificates(counts, serves, level)
    if kind == "proof":  # What was proved is certified, even where half of the level would not have been enough.
        harm = np.minimum(harm, margin)
    return GuardReport(kind, level, margin, serves, _table(counts, serves, harm, level), cross_fitted)


def _repair_envy(counts: PairedCounts, group: int, served_by: int, level: float, margin: float) -> int:
    """Return the classifier that serves a group once it may switch to another group's.

    A rival must be shown better than the classifier in place, and not worse than the pooled one by more than the
    margin. Both are tested at the group's share of the level, divided among its K − 1 rivals.
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
    """Harm against the pooled classifier that the rows of each group exclude, for all groups together at `level`.

    The same rows have chosen the classifier. Each group's share of the level is therefore divided in advance among all
    that could have been chosen: one half for its own classifier, which is chosen most often, the rest for its rivals.
    """
    n_groups = len(serves)
    pooled = np.full(n_groups, n_groups)
    pair = counts.pair(serves, pooled)
    share = level / n_groups
    as_own = excluded_harm(*pair, level=share / 2 if n_groups > 1 else share)
    as_rival = excluded_harm(*pair, level=share / 2 / max(n_groups - 1, 1))
    harm = np.where(serves == np.arange(n_groups), as_own, as_rival)
    return np.where(serves == n_groups, 0.0, harm)


def _table(counts: PairedCounts, serves: NDArray[np.intp], harm: NDArray[np.float64], level: float) -> pd.DataFrame:
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
            "certificate": [_in_words(h, int(s) == n_groups) for h, s in zip(harm, serves, strict=True)],
        },
        index=pd.RangeIndex(n_groups, name="group"),
    )


def _server(group: int, serves: int, n_groups: int) -> str:
    if serves == group:
        return "its own"
    return "pooled" if serves == n_groups else f"classifier {serves}"


def _in_words(harm: float, is_pooled: bool) -> str:
    """Put a certificate into words, in percentage points."""
    if is_pooled:
        return "none, is pooled"
    if harm <= 0:
        return f"none, gain ≥ {-100 * harm:.2f}" if harm < -5e-5 else "none"
    # Two decimals would turn a tiny harm into "at most 0.00", which reads like a proof of none.
    return f"at most {100 * harm:.2f}" if harm >= 5e-5 else f"at most {100 * harm:.1g}"
