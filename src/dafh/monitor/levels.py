"""Is the model in use as good as it was: its error against a reference, and its probabilities against what happens.

Comparing two classifiers says nothing where both fail together, or where there is one group. So, of all rows and of
each group, three means are watched, with bets as in `dafh.monitor.evidence`:

- error: wrong decisions, against the upper limit of the reference error (Clopper and Pearson);
- positive labels beyond what was predicted (calibration in the large), and
- predicted beyond positive labels.

A tolerance is added to each. All questions share the level; where the reference is an estimate, one half of it goes to
its limits. If no mean exceeds what is tolerated, the probability of any alarm, ever, is at most `level`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.stats import Bettors, WeightedCounts, share_interval
from dafh.text import percent, points

KINDS = ("error", "too low", "too high")
"""What is asked: more errors than in the reference, probabilities that are too low, and those that are too high."""

# Part of the capital for the time until others serve.
_FIRST_TERM = 0.9


class UsedRows(NamedTuple):
    """What the model in use said about rows, and what is true."""

    group: NDArray[np.intp]
    """The number of groups stands for rows of none."""
    wrong: NDArray[np.float64]
    """1, 0, or missing where the label is."""
    positive: NDArray[np.float64]
    """The same for the positive label; missing where there are not two classes."""
    probability: NDArray[np.float64]
    """Of the positive label; missing where the model has none."""


@dataclass(eq=False)
class Levels:
    """Evidence on all rows and on each of K groups; with one group (K = 0 here), on all rows."""

    level: float
    margin: float
    by_batch: bool
    judged: NDArray[np.int64]
    """Reference rows: all of them, and those of each group, (1 + K,); 0 where nothing is known."""
    errors: NDArray[np.int64]
    """Those on which the model was wrong."""
    bettors: Bettors = field(init=False)
    """Of 3 questions about all rows, 3 about group 0, and so on."""
    sums: NDArray[np.float64] = field(init=False)
    """Labelled rows, errors, rows with a probability, positive labels of them and sum of probabilities, (1 + K, 5)."""
    alarmed: NDArray[np.int64] = field(init=False)
    """Row at which an alarm was raised, (3 + 3K,); 0 for none."""
    terms: NDArray[np.int64] = field(init=False)
    """Changes of who serves whom so far, (1,)."""
    n_rows: int = 0

    def __post_init__(self) -> None:
        """Begin without rows."""
        parts = len(self.judged)
        self.terms = np.zeros(1, np.int64)
        self.bettors, self.sums = Bettors.start(len(KINDS) * parts, _FIRST_TERM), np.zeros((parts, 5))
        self.alarmed = np.zeros(len(KINDS) * parts, np.int64)

    def begin_term(self) -> None:
        """Begin anew with a part of the capital that is left, because others serve now."""
        self.terms += 1
        mass = (1 - _FIRST_TERM) * 0.5 ** int(self.terms[0])
        self.bettors = Bettors.start(len(self.alarmed), mass)
        self.sums[:], self.alarmed[:] = 0.0, 0

    @property
    def needed(self) -> float:
        """Capital that an alarm needs: one half of the level is for the limits of the reference."""
        return 2 * len(self.alarmed) / self.level

    @property
    def tolerated(self) -> NDArray[np.float64]:
        """Largest error that is tolerated, (1 + K,); 1 where there is no reference."""
        high = share_interval(self.errors, self.judged, self.level / len(self.judged))[1]
        return np.where(self.judged > 0, np.minimum(high + self.margin, 1.0), 1.0)

    def add(self, rows: UsedRows) -> list[str]:
        """Take the rows of a batch in their order, missing labels included; say what they show."""
        told = []
        if not self.judged.any():  # The first rows that come are the reference then.
            known = ~np.isnan(rows.wrong)
            for part, members in self._parts(rows):
                self.judged[part] = known[members].sum()
                self.errors[part] = np.nansum(rows.wrong[members])
        for part, members in self._parts(rows):
            before = self.sums[part].copy()
            self._count(part, rows, members)
            for kind, x in enumerate(self._differences(part, rows, members)):
                q = part * len(KINDS) + kind
                x = np.array([np.sign(x.sum())]) if self.by_batch and len(x) else x
                x = x[x != 0]
                if len(x) and not self.alarmed[q]:
                    path = self.bettors.bet(q, x, self.needed)
                    if path.max() >= self.needed * (1 - 1e-9):
                        self.alarmed[q] = self.n_rows + len(rows.group)
                        told.append(self._sentence(part, kind, self.sums[part] - before))
        self.n_rows += len(rows.group)
        return told

    def _parts(self, rows: UsedRows) -> Iterator[tuple[int, NDArray[np.intp]]]:
        yield 0, np.arange(len(rows.group))
        for g in range(len(self.judged) - 1):
            yield 1 + g, np.flatnonzero(rows.group == g)

    def _count(self, part: int, rows: UsedRows, members: NDArray[np.intp]) -> None:
        wrong, positive, predicted = (values[members] for values in rows[1:])
        known, judged = ~np.isnan(wrong), ~np.isnan(positive + predicted)
        self.sums[part] += (
            known.sum(),
            wrong[known].sum(),
            judged.sum(),
            positive[judged].sum(),
            predicted[judged].sum(),
        )

    def _differences(self, part: int, rows: UsedRows, members: NDArray[np.intp]) -> list[NDArray[np.float64]]:
        """What is bet on for each kind, from −1 to 1; a missing label is the one that speaks for the model."""
        wrong, positive, predicted = (values[members] for values in rows[1:])
        gap, tolerated = np.isnan(wrong), self.tolerated[part]
        error = np.where(gap, 0.0, wrong) - tolerated
        has = ~np.isnan(predicted) & (gap | ~np.isnan(positive))
        low = np.where(gap, 0.0, positive)[has] - predicted[has] - self.margin
        high = predicted[has] - np.where(gap, 1.0, positive)[has] - self.margin
        # An error is never above 1, so that nothing can be shown without a reference.
        return [error if tolerated < 1 else error[:0], *(x / (1 + self.margin) for x in (low, high))]

    def _sentence(self, part: int, kind: int, batch: NDArray[np.float64]) -> str:
        n, errors, judged, positive, predicted = batch
        who = f"group {part - 1}" if part else "all rows"
        if KINDS[kind] == "error":
            reference = self.errors[part] / self.judged[part]
            return (
                f"The model in use makes more errors than in the reference rows, in {who}: {percent(errors / n)} in "
                f"this batch, {percent(reference)} there."
            )
        return (
            f"The probabilities of the model in use are {KINDS[kind]}, in {who}: {percent(predicted / judged)} "
            f"predicted in this batch, {percent(positive / judged)} observed."
        )

    def table(self) -> pd.DataFrame:
        """One row for all rows, and one for each group."""
        n, errors, judged, positive, predicted = self.sums.T
        found = WeightedCounts.of_counts(errors, np.zeros(len(n)), n)
        share = self.level / 2 / len(n)
        low, high = np.maximum(found.lower(share), 0.0), found.upper(share)
        if self.by_batch:  # Rows that share a shock say less than so many rows.
            low, high = np.zeros(len(n)), np.ones(len(n))
        with np.errstate(invalid="ignore"):
            table = pd.DataFrame(
                {
                    "group": pd.Series([None, *range(len(n) - 1)], dtype=object),
                    "rows": n.astype(np.int64),
                    "error": errors / n,
                    "low": low,
                    "high": high,
                    "reference_error": self.errors / np.where(self.judged > 0, self.judged, np.nan),
                    "tolerated": self.tolerated,
                    "predicted": predicted / judged,
                    "observed": positive / judged,
                }
            )
        capital, alarmed = (v.reshape(-1, len(KINDS)) for v in (self.bettors.capital, self.alarmed))
        for number, kind in enumerate(KINDS):
            table[f"{kind.replace(' ', '_')}_evidence"] = capital[:, number]
        table["alarm_row"] = alarmed.max(axis=1)
        return table

    def display(self) -> pd.DataFrame:
        """The same for readers."""
        table, none = self.table(), "–"
        return pd.DataFrame(
            {
                "model in use": ["all rows" if g is None else f"group {g}" for g in table["group"]],
                "rows": [f"{n:,}" for n in table["rows"]],
                "error": [percent(value) for value in table["error"]],
                f"{100 * (1 - self.level):g}% limits, points": [
                    none if self.by_batch else f"{points(low).lstrip('+')} to {points(high).lstrip('+')}"
                    for low, high in zip(table["low"], table["high"], strict=True)
                ],
                "reference": [percent(value) for value in table["reference_error"]],
                "predicted": [percent(value) for value in table["predicted"]],
                "observed": [percent(value) for value in table["observed"]],
                "alarm": [f"row {row:,}" if row else none for row in table["alarm_row"]],
            }
        )
