"""What labelled rows say about every question: is a group, or a declared subgroup, worse off in one of the losses.

The classifier that is watched in a group is the one that serves it, or its own where the pooled one does. All Q
questions about harm share the level equally (an alarm needs a capital of Q/level), and so do the K proofs of benefit. A
*term* begins when a classifier is put into service or taken out of it: evidence about that group then starts anew, with
a part of the capital that is left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

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
# Capital for a proof is cut to this multiple of what a proof needs, so that it is lost soon when a gain ends.
_MOST_FOR_PROOF = 10.0
# The bet that fits harm of 2 percentage points where 10% of rows are discordant.
_TYPICAL_BET = 0.2
# Limits need counts of rows by weight. Weights, relative to the largest, are put together between neighbours of this
# list, whose ratio is 1.05: limits get at most that much wider, and state does not grow with the number of weights.
_WEIGHT_EDGES = np.concatenate([[0.0], np.geomspace(1e-3, 1 - 1e-9, 142), [1.0]])
# Kinds of rows: no difference; own classifier worse on a negative and on a positive row; better on either.
_N_KINDS = 5
# Shared shocks are looked for where a batch has so many discordant rows, after each pair of batches at this level.
_FEWEST_DISCORDANT, _SHOCK_LEVEL = 10, 0.001
# A capped bet ends at the capital that it needs, but for rounding.
REACHED = 1 - 1e-9


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
    subgroups: NDArray[np.int16]
    """Subgroup of each row by each attribute, (n, A); negative where none was declared."""
    weight: NDArray[np.float64]
    """Relative to the largest that was declared."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.group)

    @property
    def difference(self) -> NDArray[np.float64]:
        """1 where the own classifier alone is wrong, −1 where the pooled one alone is."""
        return self.own_wrong.astype(np.float64) - self.pooled_wrong


class Evidence:
    """Evidence on Q = groups × subgroups × losses questions.

    Parameters
    ----------
    n_groups : int
    subgroups : list of str
        Names; the first one stands for all rows of a group.
    losses : sequence of Loss
    level : float
    weighted : bool
        Whether weights differ.
    serving : array of shape (K,)
        Groups whose watched classifier is in service: only they can be harmed by it.
    by_batch : bool
        Whether all rows of a batch are one bet, on who is ahead in it: rows of a batch may then share a shock.
    """

    def __init__(
        self,
        n_groups: int,
        subgroups: list[str],
        losses: Sequence[Loss],
        level: float,
        weighted: bool,
        serving: NDArray[np.bool_],
        by_batch: bool = False,
    ) -> None:
        self.n_groups, self.subgroups, self.losses, self.level = n_groups, subgroups, losses, level
        self.weighted, self.serving, self.by_batch = weighted, serving, by_batch
        # Group, subgroup and loss of each question, (Q,).
        self.group, self.subgroup, self.loss = np.indices((n_groups, len(subgroups), len(losses))).reshape(3, -1)
        q = self.n_questions = len(self.group)
        self.harm, self.benefit = Bettors.start(q, FIRST_ALARMS), Bettors.start(q, FIRST_PROOFS)
        self.n_rows = 0
        # Rows of each kind and weight, (Q, 5, W); weight, own loss and pooled loss of each question, (Q, 3).
        self.counts = np.zeros((q, _N_KINDS, len(_WEIGHT_EDGES) if weighted else 1))
        self.sums = np.zeros((q, 3))
        # Lower and upper limit of the gain, (Q, 2), relative to the largest loss.
        self.limits = np.tile([-1.0, 1.0], (q, 1))
        # Row at which harm was shown in this term, (Q,), and a group's classifier to be better, (K,); 0 for none.
        self.alarmed, self.proved = np.zeros(q, np.int64), np.zeros(n_groups, np.int64)
        # Terms of each group before this one, and those in which its classifier served, this one included, (K,).
        self.terms, self.terms_in_service = np.zeros(n_groups, np.int64), serving.astype(np.int64)
        # How far log-evidence has climbed since its lowest point, and the row of that point, (Q,).
        self.climb, self.onset = np.zeros(q), np.zeros(q, np.int64)
        # Of the last batch that has no pair yet: discordant rows, and the mean of their differences.
        self.unpaired = np.zeros(2)
        # Pairs of batches, the sum of their squared standardised differences, and whether a shock was told.
        self.n_pairs, self.squares, self.shock_told = 0, np.zeros(1), 0

    # ---- questions ----

    def needed(self) -> NDArray[np.float64]:
        """Capital that an alarm needs, (Q,); missing where there is one already, or none can be harmed."""
        return np.where(self._at_risk(), self.n_questions / self.level, np.nan)

    def _at_risk(self) -> NDArray[np.bool_]:
        return self.serving[self.group] & (self.alarmed == 0)

    def better_now(self) -> NDArray[np.bool_]:
        """Groups whose classifier is shown to be better, in every loss and in every subgroup that has rows, (K,).

        By the evidence as it stands: a gain that has ended is no reason to put a classifier into service.
        """
        capital = np.where(self.sums[:, 0] > 0, self.benefit.capital, np.inf).reshape(self.n_groups, -1).min(axis=1)
        return np.isfinite(capital) & (capital >= self.n_groups / self.level)

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
        notices = [*self._bet_on_harm(best, batch), *self._bet_on_benefit(worst, batch)]
        self.n_rows += len(best)
        self._tighten(np.flatnonzero(np.isin(self.group, rows.group)))
        return notices

    def _rows_by_question(self, rows: JudgedRows) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.float64]]]:
        """Yield each question that has rows, their positions, and what each puts at stake, relative to the largest."""
        stakes = [loss.stakes(rows.positive, len(rows)) for loss in self.losses]
        for subgroup in (np.zeros(len(rows), np.intp), *rows.subgroups.T):
            counts = (subgroup >= 0) & (rows.weight > 0)
            cell = np.where(counts, rows.group * len(self.subgroups) + subgroup, -1)
            for number in np.unique(cell[counts]):
                for i, (loss, (stake, counted)) in enumerate(zip(self.losses, stakes, strict=True)):
                    members = np.flatnonzero((cell == number) & counted)
                    if len(members):
                        stake_of_rows = rows.weight[members] * (stake[members] / loss.worst)
                        yield int(number) * len(self.losses) + i, members, stake_of_rows

    def _count(self, rows: JudgedRows) -> None:
        """Count rows with a weight above 0 for every question they belong to."""
        label = np.zeros(len(rows), np.intp) if rows.positive is None else rows.positive.astype(np.intp)
        kind = np.choose(np.sign(rows.difference).astype(np.intp) + 1, [3 + label, 0, 1 + label])
        n_weights = self.counts.shape[2]
        cell = kind * n_weights + (np.searchsorted(_WEIGHT_EDGES, rows.weight) if self.weighted else 0)
        for q, members, stake in self._rows_by_question(rows):
            self.counts[q] += np.bincount(cell[members], minlength=_N_KINDS * n_weights).reshape(_N_KINDS, -1)
            losses = stake @ rows.own_wrong[members], stake @ rows.pooled_wrong[members]
            self.sums[q] += rows.weight[members].sum(), *losses

    def _bets(self, rows: JudgedRows) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.float64]]]:
        """Yield each question with the numbers of its discordant rows, the first row ever being 1, and what is bet on.

        That is own loss minus pooled loss, −1 to 1 and never 0: rows without a difference would change no capital.
        """
        for q, members, stake in self._rows_by_question(rows):
            x = stake * rows.difference[members]
            if self.by_batch:  # One bet on who is ahead; rounding must not decide about a tie.
                x = np.append(np.zeros(len(x) - 1), np.sign(x.sum().round(9)))
            discordant = np.flatnonzero(x)
            if len(discordant):
                yield q, members[discordant] + self.n_rows + 1, x[discordant]

    def _bet_on_harm(self, rows: JudgedRows, batch: int) -> list[Notice]:
        """Settle the bets on harm, question by question; return alarms in the order of their rows."""
        needed, at_risk = self.n_questions / self.level, self._at_risk()
        alarms = []
        for q, row, x in self._bets(rows):
            self._follow(q, x, row)
            if self.alarmed[q]:
                continue  # It is decided: further evidence would only fade or grow without a meaning.
            # Out of service, a classifier can harm nobody: its evidence is shown, and not capped at an alarm.
            path = self.harm.bet(q, x, needed if at_risk[q] else np.inf)
            reached = np.flatnonzero(path >= needed * REACHED)
            if at_risk[q] and len(reached):
                self.alarmed[q] = row[reached[0]]
                alarms.append(self._alarm(q, batch))
        return sorted(alarms, key=attrgetter("row"))

    def _bet_on_benefit(self, rows: JudgedRows, batch: int) -> list[Notice]:
        """Settle the bets on benefit, question by question; return proofs."""
        for q, _, x in self._bets(rows):
            self.benefit.bet(q, -x)
        self.benefit.cap(np.full(self.n_questions, _MOST_FOR_PROOF * self.n_groups / self.level))
        proofs = np.flatnonzero((self.proved == 0) & self.better_now())
        self.proved[proofs] = row = self.n_rows + len(rows)
        return [Notice("benefit", int(g), "", None, row, batch, in_service=bool(self.serving[g])) for g in proofs]

    def _alarm(self, q: int, batch: int) -> Notice:
        """Say that harm was shown."""
        loss, row = self.losses[self.loss[q]], int(self.alarmed[q])
        weight, own, pooled = self.sums[q]
        question = int(self.group[q]), self.subgroups[self.subgroup[q]], loss.name
        # Rows after the alarm may have moved the estimate of its beginning beyond it.
        onset, gain = min(int(self.onset[q]), row), float(loss.worst * (pooled - own) / weight)
        return Notice("harm", *question, row, batch, onset, gain)

    def _follow(self, q: int, x: NDArray[np.float64], row: NDArray[np.intp]) -> None:
        """Note from where on the evidence has climbed: the usual estimate of when a change began (Page 1954)."""
        height = self.climb[q] + np.cumsum(np.log1p(_TYPICAL_BET * x))
        lowest = np.minimum.accumulate(np.minimum(height, 0.0))
        falls = np.flatnonzero(np.diff(lowest, prepend=0.0) < 0)
        if len(falls):
            self.onset[q] = row[falls[-1]]
        self.climb[q] = height[-1] - lowest[-1]

    def _tighten(self, questions: NDArray[np.intp]) -> None:
        """Narrow the limits of the gain; those of all questions hold together.

        Rows that share a shock say less than so many rows, so that there are no limits then.
        """
        if self.by_batch:
            return
        # Two limits of each question.
        share = self.level / 2 / self.n_questions
        low, high = (np.append(0.0, _WEIGHT_EDGES[:-1]), _WEIGHT_EDGES) if self.weighted else (np.ones(1), np.ones(1))
        for number, loss in enumerate(self.losses):
            of_loss = questions[self.loss[questions] == number]
            if not len(of_loss):
                continue
            negative, positive = (loss.costs.fp, loss.costs.fn) if loss.costs else (1.0, 1.0)
            x = np.array([0.0, negative, positive, -negative, -positive]) / loss.worst
            counts = self.counts[of_loss].reshape(len(of_loss), -1)
            harm = WeightedCounts(np.repeat(x, len(low)), np.tile(low, _N_KINDS), np.tile(high, _N_KINDS), counts)
            # Limits hold at all times, so that the narrowest so far hold, too.
            self.limits[of_loss, 0] = np.maximum(self.limits[of_loss, 0], -harm.upper(share))
            self.limits[of_loss, 1] = np.minimum(self.limits[of_loss, 1], -harm.lower(share))

    def _compare_batches(self, rows: JudgedRows) -> None:
        """Pair this batch with the one before: do their differences vary more than those of rows by themselves."""
        n = float(np.count_nonzero(rows.difference))
        if n < _FEWEST_DISCORDANT:
            return
        mean = rows.difference.sum() / n
        previous_n, previous_mean = self.unpaired
        if not previous_n:
            self.unpaired = np.array([n, mean])
            return
        # No variance of a mean of n numbers from −1 to 1 is above 1/n. Each batch is in one pair, so that pairs are
        # independent, and the sum has at most the distribution chi2(pairs) where rows are independent.
        self.squares += (mean - previous_mean) ** 2 / (1 / n + 1 / previous_n)
        self.n_pairs += 1
        self.unpaired = np.zeros(2)

    def shows_shocks(self) -> bool:
        """Whether rows of a batch are now shown to share a shock; once, and not where batches are counted."""
        if (
            self.shock_told
            or self.by_batch
            or not self.n_pairs
            or chi2.sf(self.squares[0], self.n_pairs) > _SHOCK_LEVEL
        ):
            return False
        self.shock_told = 1
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
            self.harm.restart(questions, capital_of_term(int(self.terms_in_service[g]) if serving[g] else 0))
            self.benefit.restart(questions, capital_of_term(int(self.terms[g]), FIRST_PROOFS))
            self.terms_in_service[g] += serving[g]
            self.alarmed[questions] = 0
            self.climb[questions], self.onset[questions] = 0.0, self.n_rows

    # ---- results ----

    def table(self) -> pd.DataFrame:
        """One row per question, with losses in their own units."""
        worst = np.array([self.losses[i].worst for i in self.loss])
        weight = np.where(self.sums[:, 0] > 0, self.sums[:, 0], np.nan)
        own, pooled = (worst * self.sums[:, i] / weight for i in (1, 2))
        kinds = self.counts.sum(axis=2).astype(np.int64)
        return pd.DataFrame(
            {
                "group": self.group,
                "part": [self.subgroups[i] for i in self.subgroup],
                "loss": [self.losses[i].name for i in self.loss],
                "rows": kinds.sum(axis=1),
                "own_worse": kinds[:, 1:3].sum(axis=1),
                "own_better": kinds[:, 3:].sum(axis=1),
                "weight": self.sums[:, 0],
                "own_loss": own,
                "pooled_loss": pooled,
                "gain": pooled - own,
                "low": worst * self.limits[:, 0],
                "high": worst * self.limits[:, 1],
                "harm_evidence": self.harm.capital,
                "harm_needed": self.needed(),
                "benefit_evidence": self.benefit.capital,
                "in_service": self.serving[self.group],
                "alarm_row": self.alarmed,
            }
        )
