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
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.monitor.evidence import REACHED, capital_of_term
from dafh.stats import Bettors, WeightedCounts, share_interval
from dafh.text import percent, points

KINDS = ("error", "too low", "too high")
"""More errors than in the reference, probabilities that are too low, and probabilities that are too high."""
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


class Levels:
    """Evidence on S sets of rows: all of them, and those of each group if there are several.

    Parameters
    ----------
    level, margin : float
    by_batch : bool
        Whether a batch is one bet.
    reference_rows, reference_errors : arrays of shape (S,)
        Labelled reference rows, and those on which the model was wrong; the first batch replaces them if all are 0.
    """

    def __init__(
        self,
        level: float,
        margin: float,
        by_batch: bool,
        reference_rows: NDArray[np.int64],
        reference_errors: NDArray[np.int64],
    ) -> None:
        self.level, self.margin, self.by_batch = level, margin, by_batch
        self.reference_rows, self.reference_errors = reference_rows, reference_errors
        # Of 3 questions about all rows, 3 about group 0, and so on: capital, and the row of an alarm or 0.
        n_questions = len(KINDS) * len(reference_rows)
        self.bettors = Bettors.start(n_questions, _FIRST_TERM)
        self.alarmed = np.zeros(n_questions, np.int64)
        # Labelled rows, errors, rows with a probability, positive labels of them and sum of probabilities, (S, 5).
        self.sums = np.zeros((len(reference_rows), 5))
        self.n_terms = self.n_rows = 0

    def begin_term(self) -> None:
        """Begin anew with a part of the capital that is left, because others serve now."""
        self.n_terms += 1
        self.bettors = Bettors.start(len(self.alarmed), capital_of_term(self.n_terms, _FIRST_TERM))
        self.sums[:], self.alarmed[:] = 0.0, 0

    @property
    def tolerated(self) -> NDArray[np.float64]:
        """Largest error that is tolerated, (S,); 1 where there is no reference."""
        # Two-sided at level/S, so that each upper limit is missed with probability level/2S: together, one half of it.
        n_sets = len(self.reference_rows)
        upper = share_interval(self.reference_errors, self.reference_rows, self.level / n_sets)[1]
        return np.where(self.reference_rows > 0, np.minimum(upper + self.margin, 1.0), 1.0)

    def add(self, rows: UsedRows) -> list[str]:
        """Take the rows of a batch in their order, missing labels included; return what they show, as sentences."""
        if not self.reference_rows.any():
            for s, members in self._sets(rows):
                self.reference_rows[s] = (~np.isnan(rows.wrong[members])).sum()
                self.reference_errors[s] = np.nansum(rows.wrong[members])
        # One half of the level is for the limits of the reference.
        needed, sentences = 2 * len(self.alarmed) / self.level, []
        for s, members in self._sets(rows):
            batch = self._summed(rows, members)
            self.sums[s] += batch
            for kind, differences in enumerate(self._differences(s, rows, members)):
                q = s * len(KINDS) + kind
                x = np.sign(differences.sum(keepdims=True)) if self.by_batch else differences
                x = x[x != 0]
                # Once alarmed, it is decided until others serve.
                if len(x) and not self.alarmed[q] and self.bettors.bet(q, x, needed).max() >= needed * REACHED:
                    self.alarmed[q] = self.n_rows + len(rows.group)
                    sentences.append(self._sentence(s, kind, batch))
        self.n_rows += len(rows.group)
        return sentences

    def _sets(self, rows: UsedRows) -> Iterator[tuple[int, NDArray[np.intp]]]:
        yield 0, np.arange(len(rows.group))
        for g in range(len(self.reference_rows) - 1):
            yield 1 + g, np.flatnonzero(rows.group == g)

    def _summed(self, rows: UsedRows, members: NDArray[np.intp]) -> NDArray[np.float64]:
        """What `sums` has, of some rows."""
        wrong, positive, predicted = (values[members] for values in rows[1:])
        # Probabilities are compared with what happens on rows that have both.
        labelled, scored = ~np.isnan(wrong), ~np.isnan(positive + predicted)
        of_scored = scored.sum(), positive[scored].sum(), predicted[scored].sum()
        return np.array([labelled.sum(), wrong[labelled].sum(), *of_scored])

    def _differences(self, s: int, rows: UsedRows, members: NDArray[np.intp]) -> list[NDArray[np.float64]]:
        """What is bet on for each kind, from −1 to 1; a missing label is the one that speaks for the model."""
        wrong, positive, predicted = (values[members] for values in rows[1:])
        unlabelled, tolerated = np.isnan(wrong), self.tolerated[s]
        # Of mean at most 0 where the error is tolerated: whoever bets on more than that wins nothing on average.
        error = np.where(unlabelled, 0.0, wrong) - tolerated
        scored = ~np.isnan(predicted) & (unlabelled | ~np.isnan(positive))
        low = np.where(unlabelled, 0.0, positive)[scored] - predicted[scored] - self.margin
        high = predicted[scored] - np.where(unlabelled, 1.0, positive)[scored] - self.margin
        # Divided so that no bet is about more than 1. An error is never above 1: without a reference nothing is shown.
        return [error if tolerated < 1 else error[:0], *(x / (1 + self.margin) for x in (low, high))]

    def _sentence(self, s: int, kind: int, batch: NDArray[np.float64]) -> str:
        n, errors, scored, positive, predicted = batch
        who = f"group {s - 1}" if s else "all rows"
        if KINDS[kind] == "error":
            reference = self.reference_errors[s] / self.reference_rows[s]
            return (
                f"The model in use makes more errors than in the reference rows, in {who}: {percent(errors / n)} in "
                f"this batch, {percent(reference)} there."
            )
        return (
            f"The probabilities of the model in use are {KINDS[kind]}, in {who}: {percent(predicted / scored)} "
            f"predicted in this batch, {percent(positive / scored)} observed."
        )

    def table(self) -> pd.DataFrame:
        """One row for all rows, and one for each group."""
        n, errors, scored, positive, predicted = self.sums.T
        n_sets = len(n)
        low, high = np.zeros(n_sets), np.ones(n_sets)
        if not self.by_batch:  # Rows that share a shock say less than so many rows.
            counts, share = WeightedCounts.of_counts(errors, np.zeros(n_sets), n), self.level / 2 / n_sets
            low, high = np.maximum(counts.lower(share), 0.0), counts.upper(share)
        with np.errstate(invalid="ignore"):
            table = pd.DataFrame(
                {
                    "group": pd.Series([None, *range(n_sets - 1)], dtype=object),
                    "rows": n.astype(np.int64),
                    "error": errors / n,
                    "low": low,
                    "high": high,
                    "reference_error": self.reference_errors / self.reference_rows,
                    "tolerated": self.tolerated,
                    "predicted": predicted / scored,
                    "observed": positive / scored,
                }
            )
        for kind, capital in zip(KINDS, self.bettors.capital.reshape(n_sets, -1).T, strict=True):
            table[f"{kind.replace(' ', '_')}_evidence"] = capital
        return table.assign(alarm_row=self.alarmed.reshape(n_sets, -1).max(axis=1))

    def display(self) -> pd.DataFrame:
        """The same for readers."""
        table, none = self.table(), "–"
        limits = zip(table["low"], table["high"], strict=True)
        return pd.DataFrame(
            {
                "model in use": ["all rows" if g is None else f"group {g}" for g in table["group"]],
                "rows": [f"{n:,}" for n in table["rows"]],
                "error": [percent(value) for value in table["error"]],
                f"{100 * (1 - self.level):g}% limits, points": [
                    none if self.by_batch else f"{points(low).lstrip('+')} to {points(high).lstrip('+')}"
                    for low, high in limits
                ],
                "reference": [percent(value) for value in table["reference_error"]],
                "predicted": [percent(value) for value in table["predicted"]],
                "observed": [percent(value) for value in table["observed"]],
                "alarm": [f"row {row:,}" if row else none for row in table["alarm_row"]],
            }
        )
