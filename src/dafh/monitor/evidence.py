"""What labelled rows say about every question: is a group, or a declared subgroup, worse off in one of the losses.

The classifier that is watched in a group is the one that serves it, or its own where the pooled one does. All Q
questions about harm share the level equally (an alarm needs a capital of Q/level), and so do the K proofs of benefit. A
*term* begins when a classifier is put into service or taken out of it: evidence about that group then starts anew, with
a part of the capital that is left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2

from dafh.evaluation.losses import Loss
from dafh.monitor.notices import Notice
from dafh.stats import Bettors, WeightedCounts

# Capital of the first term; each later one has one half of what is left. Alarms are mostly about the first; proofs are
# also about classifiers that were taken out of service.
FIRST_ALARMS, FIRST_PROOFS = 0.99, 0.8
# Capital for a proof is kept to this multiple of what a proof needs, so that it is lost soon when a gain ends.
_MOST_FOR_PROOF = 10.0
# The bet that fits harm of 2 percentage points where 10% of rows are discordant.
_TYPICAL_BET = 0.2
# Weights are put together between neighbours of this list, relative to the largest: their ratio is 1.05.
_WEIGHT_EDGES = np.concatenate([[0.0], np.geomspace(1e-3, 1 - 1e-9, 142), [1.0]])
# Kinds of rows: no difference; own classifier worse on a negative and on a positive row; better on either.
_N_KINDS = 5
# Shared shocks are looked for where a batch has so many discordant rows, after each pair of batches at this level.
_FEWEST_TO_COMPARE, _SHOCK_LEVEL = 10, 0.001


def capital_of_term(term: int, first: float = FIRST_ALARMS) -> float:
    """Capital at the start of a term: those of all terms add up to 1, so that the level holds for all of them together.

    Examples
    --------
    >>> [round(capital_of_term(term, first=0.8), 3) for term in range(3)]
    [0.8, 0.1, 0.05]
    """
    return first if term == 0 else (1 - first) * 0.5**term


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Labelled rows: who was right on them."""

    group: NDArray[np.intp]
    own_wrong: NDArray[np.bool_]
    pooled_wrong: NDArray[np.bool_]
    positive: NDArray[np.bool_] | None
    """None where there are not two classes."""
    parts: NDArray[np.int16]
    """Subgroups of each row, (n, A); negative for none that was declared."""
    weight: NDArray[np.float64]
    """Relative to the largest that was declared."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.group)


@dataclass(eq=False)
class Evidence:
    """Evidence on Q = groups × parts × losses questions.

    `serving` says which groups have their watched classifier in service: only they can be harmed by it.
    """

    n_groups: int
    parts: list[str]
    losses: Sequence[Loss]
    level: float
    weighted: bool
    serving: NDArray[np.bool_]
    by_batch: bool = False
    """Whether all rows of a batch are one bet, on who is ahead in it: rows of a batch may then share a shock."""
    n_rows: int = 0
    """Rows so far."""
    harm: Bettors = field(init=False)
    benefit: Bettors = field(init=False)
    counts: NDArray[np.float64] = field(init=False)
    """Rows of each kind and weight, (Q, 5, W)."""
    sums: NDArray[np.float64] = field(init=False)
    """Weight, own loss and pooled loss of each question, (Q, 3)."""
    limits: NDArray[np.float64] = field(init=False)
    """Lower and upper limit of the gain, (Q, 2), relative to the largest loss."""
    alarmed: NDArray[np.int64] = field(init=False)
    """Row at which an alarm was raised in this term, (Q,); 0 for none."""
    proved: NDArray[np.int64] = field(init=False)
    """Row at which a group's classifier was shown to be better in this term, (K,); 0 for none."""
    terms: NDArray[np.int64] = field(init=False)
    """Terms of each group before this one, (K,)."""
    served: NDArray[np.int64] = field(init=False)
    """Terms of each group in which its watched classifier was in service, this one included, (K,)."""
    spread: NDArray[np.float64] = field(init=False)
    """Discordant rows of the last batch and their mean, pairs of batches, their squared distance, told before (1)."""
    climb: NDArray[np.float64] = field(init=False)
    """How far the evidence has climbed since its lowest point, in logarithms, (Q,)."""
    onset: NDArray[np.int64] = field(init=False)
    """Row of that point, (Q,): where harm has begun, if it has."""

    def __post_init__(self) -> None:
        """Begin without rows."""
        q, k = self.n_questions, self.n_groups
        self.harm, self.benefit = Bettors.start(q, FIRST_ALARMS), Bettors.start(q, FIRST_PROOFS)
        self.counts = np.zeros((q, _N_KINDS, len(_WEIGHT_EDGES) if self.weighted else 1))
        self.sums = np.zeros((q, 3))
        self.limits = np.tile([-1.0, 1.0], (q, 1))
        self.alarmed, self.proved, self.terms = (np.zeros(n, np.int64) for n in (q, k, k))
        self.spread = np.zeros(5)
        self.climb, self.onset = np.zeros(q), np.zeros(q, np.int64)
        self.served = self.serving.astype(np.int64)

    # ---- questions ----

    @property
    def n_questions(self) -> int:
        """Number of questions."""
        return self.n_groups * len(self.parts) * len(self.losses)

    @property
    def group(self) -> NDArray[np.intp]:
        """Group of each question, (Q,)."""
        return np.arange(self.n_questions) // (len(self.parts) * len(self.losses))

    @property
    def part(self) -> NDArray[np.intp]:
        """Part of each question, (Q,); 0 is all rows of the group."""
        return np.arange(self.n_questions) // len(self.losses) % len(self.parts)

    @property
    def loss(self) -> NDArray[np.intp]:
        """Loss of each question, (Q,)."""
        return np.arange(self.n_questions) % len(self.losses)

    @property
    def at_risk(self) -> NDArray[np.bool_]:
        """Questions about classifiers in service that have no alarm yet, (Q,)."""
        return self.serving[self.group] & (self.alarmed == 0)

    def needed(self) -> NDArray[np.float64]:
        """Capital that an alarm needs, (Q,); missing where there can be none."""
        return np.where(self.at_risk, self.n_questions / self.level, np.nan)

    def better_now(self) -> NDArray[np.bool_]:
        """Groups whose classifier is shown to be better, in every loss and in every subgroup that has rows, (K,).

        By the evidence as it stands: a gain that has ended is no reason to put a classifier into service.
        """
        asked = np.where(self.sums[:, 0] > 0, self.benefit.capital, np.inf).reshape(self.n_groups, -1)
        capital = np.where(np.isinf(asked).all(axis=1), 0.0, asked.min(axis=1))
        return np.asarray(capital >= self.n_groups / self.level)

    # ---- rows ----

    def add(
        self, rows: JudgedRows, best: JudgedRows | None = None, worst: JudgedRows | None = None, *, batch: int = 0
    ) -> list[Notice]:
        """Take the labelled rows of a batch in their order; return what they show.

        Where labels are missing for good, `best` and `worst` are all rows of the batch, with the labels that are best
        and worst for the own classifier: harm must be shown by the first, benefit by the second.
        """
        best, worst = best or rows, worst or rows
        self._count(rows)
        self._compare_batches(rows)
        notices = self._settle(best, worst, batch)
        self.n_rows += len(best)
        self._tighten(np.flatnonzero(np.isin(self.group, rows.group)))
        return notices

    def _count(self, rows: JudgedRows) -> None:
        """Count rows with a weight above 0 for every question they belong to."""
        difference = rows.own_wrong.astype(np.float64) - rows.pooled_wrong
        label = np.zeros(len(rows), np.intp) if rows.positive is None else rows.positive.astype(np.intp)
        kind = np.choose(np.sign(difference).astype(np.intp) + 1, [3 + label, 0, 1 + label])
        n_weights = self.counts.shape[2]
        cell = kind * n_weights + (np.searchsorted(_WEIGHT_EDGES, rows.weight) if self.weighted else 0)
        for q, members, worth in self._asked(rows):
            self.counts[q] += np.bincount(cell[members], minlength=_N_KINDS * n_weights).reshape(_N_KINDS, -1)
            losses = worth @ rows.own_wrong[members], worth @ rows.pooled_wrong[members]
            self.sums[q] += rows.weight[members].sum(), *losses

    def _bets(self, rows: JudgedRows) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.float64]]]:
        """Yield each question with its discordant rows, counted from the first ever, which is 1, and what is bet on.

        That is own loss minus pooled loss, −1 to 1 and never 0.
        """
        difference = rows.own_wrong.astype(np.float64) - rows.pooled_wrong
        for q, members, worth in self._asked(rows):
            x = worth * difference[members]
            if self.by_batch:
                ahead, n = np.sign(x.sum().round(9)), len(x)
                x = np.append(np.zeros(n - 1), ahead)
            at = np.flatnonzero(x)
            if len(at):
                yield q, members[at] + self.n_rows + 1, x[at]

    def _asked(self, rows: JudgedRows) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.float64]]]:
        """Yield each question with the places of its rows, and what is at stake on each, relative to the largest."""
        stakes = [loss.stakes(rows.positive, len(rows)) for loss in self.losses]
        for first, members in self._divided(rows):
            for number, (loss, (stake, counted)) in enumerate(zip(self.losses, stakes, strict=True)):
                asked = members[counted[members]]
                if len(asked):
                    yield first + number, asked, rows.weight[asked] * (stake[asked] / loss.worst)

    def _divided(self, rows: JudgedRows) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield the first question of each group and part, and the places of its rows."""
        for part in (np.zeros(len(rows), np.intp), *rows.parts.T):
            asked = np.where((part >= 0) & (rows.weight > 0), rows.group * len(self.parts) + part, -1)
            for number in np.unique(asked[asked >= 0]):
                yield int(number) * len(self.losses), np.flatnonzero(asked == number)

    def _settle(self, best: JudgedRows, worst: JudgedRows, batch: int) -> list[Notice]:
        """Settle all bets, question by question, and see what they show."""
        needed, at_risk = self.n_questions / self.level, self.at_risk
        alarms: dict[int, int] = {}
        for q, row, x in self._bets(best):
            self._follow(q, x, row)
            # What is decided stays so: evidence on it would only fade or grow without a meaning.
            if not self.alarmed[q]:
                path = self.harm.bet(q, x, needed if at_risk[q] else np.inf)
                # A capped bet ends at what it needs but for rounding.
                reached = np.flatnonzero(path >= needed * (1 - 1e-9))
                if at_risk[q] and len(reached):
                    self.alarmed[q] = alarms[q] = int(row[reached[0]])
        for q, _, x in self._bets(worst):
            self.benefit.bet(q, -x)
        self.benefit.cap(np.full(self.n_questions, _MOST_FOR_PROOF * self.n_groups / self.level))
        new = np.flatnonzero((self.proved == 0) & self.better_now())
        self.proved[new] = self.n_rows + len(best)
        return [
            *(self._alarm(q, row, batch) for q, row in sorted(alarms.items(), key=itemgetter(1))),
            *(
                Notice("benefit", int(g), "", None, int(self.proved[g]), batch, in_service=bool(self.serving[g]))
                for g in new
            ),
        ]

    def _alarm(self, q: int, row: int, batch: int) -> Notice:
        """Say that harm was shown at a row."""
        loss = self.losses[self.loss[q]]
        weight, own, pooled = self.sums[q]
        about = (int(self.group[q]), self.parts[self.part[q]], loss.name, row, batch)
        # Rows after the alarm may have moved the estimate of its beginning beyond it.
        return Notice("harm", *about, min(int(self.onset[q]), row), float(loss.worst * (pooled - own) / weight))

    def _follow(self, q: int, x: NDArray[np.float64], row: NDArray[np.intp]) -> None:
        """Note from where on the evidence has climbed: the usual estimate of when a change began (Page 1954)."""
        height = self.climb[q] + np.cumsum(np.log1p(_TYPICAL_BET * x))
        lowest = np.minimum.accumulate(np.minimum(height, 0.0))
        new = np.flatnonzero(np.diff(lowest, prepend=0.0) < 0)
        if len(new):
            self.onset[q] = row[new[-1]]
        self.climb[q] = height[-1] - lowest[-1]

    def _tighten(self, questions: NDArray[np.intp]) -> None:
        """Narrow the limits of the gain; those of all questions hold together.

        Rows that share a shock say less than so many rows, so that there are no limits then.
        """
        if self.by_batch:
            return
        share = self.level / 2 / self.n_questions
        for number, loss in enumerate(self.losses):
            some = questions[self.loss[questions] == number]
            if not len(some):
                continue
            found = self._weighed(loss, some)
            self.limits[some, 0] = np.maximum(self.limits[some, 0], -found.upper(share))
            self.limits[some, 1] = np.minimum(self.limits[some, 1], -found.lower(share))

    def _weighed(self, loss: Loss, some: NDArray[np.intp]) -> WeightedCounts:
        negative, positive = (loss.costs.fp, loss.costs.fn) if loss.costs else (1.0, 1.0)
        x = np.array([0.0, negative, positive, -negative, -positive]) / loss.worst
        low, high = (np.append(0.0, _WEIGHT_EDGES[:-1]), _WEIGHT_EDGES) if self.weighted else (np.ones(1), np.ones(1))
        counts = self.counts[some].reshape(len(some), -1)
        return WeightedCounts(np.repeat(x, len(low)), np.tile(low, _N_KINDS), np.tile(high, _N_KINDS), counts)

    def _compare_batches(self, rows: JudgedRows) -> None:
        """Pair this batch with the one before: do their differences vary more than those of rows by themselves."""
        difference = rows.own_wrong.astype(np.float64) - rows.pooled_wrong
        n, before, mean_before = float(np.count_nonzero(difference)), *self.spread[:2]
        if n < _FEWEST_TO_COMPARE:
            return
        mean = difference.sum() / n
        if before:  # Each batch is in one pair, so that pairs are independent. No variance is above 1/n.
            self.spread[2:4] += 1, (mean - mean_before) ** 2 / (1 / n + 1 / before)
        self.spread[:2] = (0.0 if before else n), mean

    def shows_shocks(self) -> bool:
        """Whether rows of a batch are now shown to share a shock; once, and not where batches are counted."""
        pairs, squares, told = self.spread[2:]
        if told or self.by_batch or not pairs or chi2.sf(squares, pairs) > _SHOCK_LEVEL:
            return False
        self.spread[4] = 1
        return True

    # ---- service ----

    def begin_term(self, groups: NDArray[np.intp], serving: NDArray[np.bool_]) -> None:
        """Let evidence on some groups start anew, because their classifier was put into service or taken out of it."""
        self.serving = serving
        self.terms[groups] += 1
        self.proved[groups] = 0
        for g in groups:
            questions = np.flatnonzero(self.group == g)
            # Out of service, evidence of harm is shown, but nothing depends on it.
            self.harm.restart(questions, capital_of_term(int(self.served[g]) if serving[g] else 0))
            self.benefit.restart(questions, capital_of_term(int(self.terms[g]), FIRST_PROOFS))
            self.served[g] += serving[g]
            self.alarmed[questions] = 0
            self.climb[questions], self.onset[questions] = 0.0, self.n_rows

    # ---- results ----

    def table(self) -> pd.DataFrame:
        """One row per question, with losses in their own units."""
        worst = np.array([self.losses[i].worst for i in self.loss])
        weight = np.where(self.sums[:, 0] > 0, self.sums[:, 0], np.nan)
        own, pooled = (worst * self.sums[:, i] / weight for i in (1, 2))
        kinds = self.counts.sum(axis=2)
        low, high = (worst * self.limits[:, i] for i in (0, 1))
        return pd.DataFrame(
            {
                "group": self.group,
                "part": [self.parts[i] for i in self.part],
                "loss": [self.losses[i].name for i in self.loss],
                "rows": kinds.sum(axis=1).astype(np.int64),
                "own_worse": kinds[:, 1:3].sum(axis=1).astype(np.int64),
                "own_better": kinds[:, 3:].sum(axis=1).astype(np.int64),
                "weight": self.sums[:, 0],
                "own_loss": own,
                "pooled_loss": pooled,
                "gain": pooled - own,
                "low": low,
                "high": high,
                "harm_evidence": self.harm.capital,
                "harm_needed": self.needed(),
                "benefit_evidence": self.benefit.capital,
                "in_service": self.serving[self.group],
                "alarm_row": self.alarmed,
            }
        )
