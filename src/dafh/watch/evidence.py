"""What labelled rows say about every question: is a group, or a declared subgroup, worse off in one of the losses.

The classifier that is watched in a group is the one that serves it, or its own where the pooled one does. All questions
about harm share the level, and so do all proofs of benefit. A *term* begins when a classifier is put into service or
taken out of it: evidence about that group then starts anew.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.losses import Loss
from dafh.stats import Bettors, Detectors, WeighedCounts, first_alarms, thresholds

# Capital of the first term; each later one has one half of what is left. Alarms are mostly about the first: with 0.8
# instead of 0.99, they came 7% of rows later. Proofs are also about classifiers that were taken out of service.
FIRST_ALARMS, FIRST_PROOFS = 0.99, 0.8
# The bet that fits harm of 2 percentage points where 10% of rows are discordant.
_TYPICAL_BET = 0.2
# Weights are put together between neighbours of this list, relative to the largest: their ratio is 1.05.
_WEIGHT_EDGES = np.concatenate([[0.0], np.geomspace(1e-3, 1 - 1e-9, 142), [1.0]])
# Kinds of rows: no difference; own classifier worse on a negative and on a positive row; better on either.
_N_KINDS = 5


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


class Bets(NamedTuple):
    """Discordant rows of a question as bets, in their order."""

    question: int
    row: NDArray[np.intp]
    """Counted from the first row ever, which is 1."""
    x: NDArray[np.float64]
    """Own loss minus pooled loss, −1 to 1 and never 0."""
    since: NDArray[np.float64]
    """Rows of the question since the bet before, this one included."""


@dataclass(frozen=True)
class Raised:
    """An alarm, a warning or a proof: which question or group, and at which row."""

    place: int
    row: int


@dataclass(frozen=True)
class Found:
    """What a batch of rows has shown."""

    alarms: list[Raised]
    warnings: list[Raised]
    proofs: list[Raised]


@dataclass(eq=False)
class Evidence:
    """Evidence on Q = groups × parts × losses questions.

    `serving` says which groups have their watched classifier in service: only they can be harmed by it.
    """

    n_groups: int
    parts: list[str]
    losses: Sequence[Loss]
    level: float
    run_length: float
    weighted: bool
    serving: NDArray[np.bool_]
    n_rows: int = 0
    """Labelled rows so far."""
    harm: Bettors = field(init=False)
    benefit: Bettors = field(init=False)
    change: Detectors = field(init=False)
    counts: NDArray[np.float64] = field(init=False)
    """Rows of each kind and weight, (Q, 5, W)."""
    sums: NDArray[np.float64] = field(init=False)
    """Weight, own loss and pooled loss of each question, (Q, 3)."""
    limits: NDArray[np.float64] = field(init=False)
    """Lower and upper limit of the gain, (Q, 2), relative to the largest loss."""
    alarmed: NDArray[np.int64] = field(init=False)
    """Row at which an alarm was raised in this term, (Q,); 0 for none."""
    warned: NDArray[np.int64] = field(init=False)
    """Row of the first warning in this term, (Q,); 0 for none."""
    proved: NDArray[np.int64] = field(init=False)
    """Row at which a group's classifier was shown to be better in this term, (K,); 0 for none."""
    terms: NDArray[np.int64] = field(init=False)
    """Terms of each group before this one, (K,)."""
    served: NDArray[np.int64] = field(init=False)
    """Terms of each group in which its watched classifier was in service, this one included, (K,)."""
    retired: NDArray[np.bool_] = field(init=False)
    """Questions whose group left its first term in service before they had an alarm, (Q,)."""
    unproved: NDArray[np.bool_] = field(init=False)
    """Groups whose first term ended before a proof, (K,)."""
    climb: NDArray[np.float64] = field(init=False)
    """How far the evidence has climbed since its lowest point, in logarithms, (Q,)."""
    onset: NDArray[np.int64] = field(init=False)
    """Row of that point, (Q,): where harm has begun, if it has."""

    def __post_init__(self) -> None:
        """Begin without rows."""
        q, k = self.n_questions, self.n_groups
        self.harm, self.benefit = Bettors.start(q, FIRST_ALARMS), Bettors.start(q, FIRST_PROOFS)
        self.change = Detectors.start(q)
        self.counts = np.zeros((q, _N_KINDS, len(_WEIGHT_EDGES) if self.weighted else 1))
        self.sums = np.zeros((q, 3))
        self.limits = np.tile([-1.0, 1.0], (q, 1))
        self.alarmed, self.warned, self.proved, self.terms = (np.zeros(n, np.int64) for n in (q, q, k, k))
        self.retired, self.unproved = np.zeros(q, bool), np.zeros(k, bool)
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

    def family(self) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Capital of questions, which may have an alarm by closed testing, and which share the level for it, (Q,) each.

        These are the questions of each group's first term in service, also where it is still to come: their capital is
        then untouched. Those that left it without an alarm still count, with nothing: others must not need less
        because of questions that were not decided. Questions of later terms have a capital of their own from the start,
        so that they may need the most that any could: the number of all questions over the level.
        """
        to_come = (self.served == 0)[self.group]
        first = to_come | (self.at_risk & (self.served == 1)[self.group])
        capital = np.where(to_come, FIRST_ALARMS, self.harm.capital)
        return np.where(first, capital, 0.0), first, first | self.retired

    def needed(self) -> NDArray[np.float64]:
        """Capital that an alarm needs, (Q,); missing where there can be none."""
        capital, first, sharing = self.family()
        bars = np.where(first, thresholds(capital, sharing, self.level), self.n_questions / self.level)
        return np.where(self.at_risk, bars, np.nan)

    @property
    def run_length_needed(self) -> float:
        """What a detector needs for a warning: a row counts for one part of each attribute, and for some losses."""
        # False positives and false negatives are never on the same row.
        rates = {loss.name for loss in self.losses} >= {"fpr", "fnr"}
        n_attributes = len({name.split(" = ")[0] for name in self.parts[1:]})
        return self.run_length * (1 + n_attributes) * (len(self.losses) - rates)

    # ---- rows ----

    def add(self, rows: JudgedRows) -> Found:
        """Take labelled rows in their order."""
        bets, waiting = self._count(rows)
        self.n_rows += len(rows)
        found = self._settle(bets, waiting)
        changed = np.isin(self.group, rows.group)
        self._tighten(np.flatnonzero(changed))
        return found

    def _count(self, rows: JudgedRows) -> tuple[list[Bets], NDArray[np.float64]]:
        """Count rows with a weight above 0 for every question they belong to.

        Returns
        -------
        list of Bets
            Of the questions that have any, in their order.
        array of shape (Q,)
            Rows of each question after its last bet.
        """
        difference = rows.own_wrong.astype(np.float64) - rows.pooled_wrong
        label = np.zeros(len(rows), np.intp) if rows.positive is None else rows.positive.astype(np.intp)
        kind = np.choose(np.sign(difference).astype(np.intp) + 1, [3 + label, 0, 1 + label])
        n_weights = self.counts.shape[2]
        cell = kind * n_weights + (np.searchsorted(_WEIGHT_EDGES, rows.weight) if self.weighted else 0)
        stakes = [loss.stakes(rows.positive, len(rows)) for loss in self.losses]
        bets, waiting = [], np.zeros(self.n_questions)
        for first, members in self._divided(rows):
            for q, loss, (stake, counted) in zip(itertools.count(first), self.losses, stakes, strict=False):
                some = members[counted[members]]
                self.counts[q] += np.bincount(cell[some], minlength=_N_KINDS * n_weights).reshape(_N_KINDS, -1)
                worth = rows.weight[some] * (stake[some] / loss.worst)
                self.sums[q] += rows.weight[some].sum(), worth @ rows.own_wrong[some], worth @ rows.pooled_wrong[some]
                x = worth * difference[some]
                at = np.flatnonzero(x)
                waiting[q] = len(some) - (at[-1] + 1 if len(at) else 0)
                if len(at):
                    since = np.diff(at, prepend=-1).astype(np.float64)
                    bets.append(Bets(q, some[at] + self.n_rows + 1, x[at], since))
        return sorted(bets, key=lambda one: one.question), waiting

    def _divided(self, rows: JudgedRows) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield the first question of each group and part, and the places of its rows."""
        for part in (np.zeros(len(rows), np.intp), *rows.parts.T):
            asked = np.where((part >= 0) & (rows.weight > 0), rows.group * len(self.parts) + part, -1)
            for number in np.unique(asked[asked >= 0]):
                yield int(number) * len(self.losses), np.flatnonzero(asked == number)

    def _settle(self, bets: Sequence[Bets], waiting: NDArray[np.float64]) -> Found:
        """Settle all bets, question by question, and see what they show."""
        _, first, sharing = family = self.family()
        before, at_risk = self.harm.capital, self.at_risk
        alarm_at = np.where(first, max(int(sharing.sum()), 1), self.n_questions) / self.level
        open_proofs = int((self.proved == 0)[self.terms == 0].sum() + self.unproved.sum())
        proof_at = np.where(self.terms == 0, max(open_proofs, 1), self.n_groups)[self.group] / self.level
        group, run_length = self.group, self.run_length_needed
        capital, warnings = [], []
        for q, row, x, since in bets:
            self._follow(q, x, row)
            # What is decided stays so: evidence on it would only fade or grow without a meaning.
            target = alarm_at[q] if at_risk[q] else np.inf
            capital.append(np.full(len(x), before[q]) if self.alarmed[q] else self.harm.bet(q, x, target))
            if not self.proved[group[q]]:
                self.benefit.bet(q, -x, proof_at[q])
            signs = self.change.watch(q, x, since) >= run_length
            if self.serving[group[q]] and signs.any():
                warnings.append(Raised(q, int(row[int(np.argmax(signs))])))
        self.change.waiting += waiting
        self.change.restart(np.array([warning.place for warning in warnings], np.intp))
        alarms = self._alarms(family, bets, capital)
        for q, at in alarms.items():
            self.alarmed[q] = at
        # After an alarm, a warning says nothing new.
        warnings = [one for one in warnings if not self.alarmed[one.place]]
        for warning in warnings:
            self.warned[warning.place] = self.warned[warning.place] or warning.row
        return Found([Raised(q, row) for q, row in sorted(alarms.items())], warnings, self._prove())

    def _alarms(
        self,
        family: tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]],
        bets: Sequence[Bets],
        capital_of_bets: Sequence[NDArray[np.float64]],
    ) -> dict[int, int]:
        """Questions for which harm is now shown, and the row at which."""
        if not bets:
            return {}
        before, first, sharing = family
        question = np.repeat([one.question for one in bets], [len(one.x) for one in bets])
        row, capital = np.concatenate([one.row for one in bets]), np.concatenate(capital_of_bets)
        serving = self.serving[self.group][question]
        some = serving & first[question]
        alarms = first_alarms(before, sharing, row[some], question[some], capital[some], self.level)
        later = serving & (self.at_risk & ~first)[question]
        for i in np.flatnonzero(later & (capital >= self.n_questions / self.level * (1 - 1e-9))):
            alarms.setdefault(int(question[i]), int(row[i]))
        return alarms

    def _follow(self, q: int, x: NDArray[np.float64], row: NDArray[np.intp]) -> None:
        """Note from where on the evidence has climbed: the usual estimate of when a change began (Page 1954)."""
        height = self.climb[q] + np.cumsum(np.log1p(_TYPICAL_BET * x))
        lowest = np.minimum.accumulate(np.minimum(height, 0.0))
        new = np.flatnonzero(np.diff(lowest, prepend=0.0) < 0)
        if len(new):
            self.onset[q] = row[new[-1]]
        self.climb[q] = height[-1] - lowest[-1]

    def _prove(self) -> list[Raised]:
        """Groups whose classifier is now shown to be better: in every loss, and in every subgroup that has rows."""
        asked = np.where(self.sums[:, 0] > 0, self.benefit.capital, np.inf).reshape(self.n_groups, -1)
        capital = np.where(np.isinf(asked).all(axis=1), 0.0, asked.min(axis=1))
        first = (self.proved == 0) & (self.terms == 0)
        # As with alarms: closed testing for first terms, and the most that any could need for later ones.
        shared = np.where(first, capital, 0.0), first | self.unproved
        bars = np.where(first, thresholds(*shared, self.level), self.n_groups / self.level)
        new = np.flatnonzero((self.proved == 0) & (capital >= bars * (1 - 1e-9)))
        self.proved[new] = self.n_rows
        return [Raised(int(g), self.n_rows) for g in new]

    def _tighten(self, questions: NDArray[np.intp]) -> None:
        """Narrow the limits of the gain; those of all questions hold together."""
        share = self.level / 2 / self.n_questions
        for number, loss in enumerate(self.losses):
            some = questions[self.loss[questions] == number]
            if not len(some):
                continue
            found = self._weighed(loss, some)
            self.limits[some, 0] = np.maximum(self.limits[some, 0], -found.upper(share))
            self.limits[some, 1] = np.minimum(self.limits[some, 1], -found.lower(share))

    def _weighed(self, loss: Loss, some: NDArray[np.intp]) -> WeighedCounts:
        negative, positive = (loss.costs.fp, loss.costs.fn) if loss.costs else (1.0, 1.0)
        x = np.array([0.0, negative, positive, -negative, -positive]) / loss.worst
        low, high = (np.append(0.0, _WEIGHT_EDGES[:-1]), _WEIGHT_EDGES) if self.weighted else (np.ones(1), np.ones(1))
        counts = self.counts[some].reshape(len(some), -1)
        return WeighedCounts(np.repeat(x, len(low)), np.tile(low, _N_KINDS), np.tile(high, _N_KINDS), counts)

    # ---- service ----

    def begin_term(self, groups: NDArray[np.intp], serving: NDArray[np.bool_]) -> None:
        """Let evidence on some groups start anew, because their classifier was put into service or taken out of it."""
        ended = np.isin(self.group, groups) & (self.served == 1)[self.group]
        self.retired |= ended & self.at_risk
        self.unproved[groups] |= (self.terms[groups] == 0) & (self.proved[groups] == 0)
        self.serving = serving
        self.terms[groups] += 1
        self.proved[groups] = 0
        for g in groups:
            questions = np.flatnonzero(self.group == g)
            # Out of service, evidence of harm is shown, but nothing depends on it.
            self.harm.restart(questions, capital_of_term(int(self.served[g]) if serving[g] else 0))
            self.benefit.restart(questions, capital_of_term(int(self.terms[g]), FIRST_PROOFS))
            self.change.restart(questions)
            self.served[g] += serving[g]
            self.alarmed[questions] = self.warned[questions] = 0
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
                "change_evidence": self.change.evidence,
                "in_service": self.serving[self.group],
                "alarm_row": self.alarmed,
            }
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that is known, as arrays, for `restore`."""
        found: dict[str, NDArray[Any]] = {"n_labelled": np.array(self.n_rows)}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, np.ndarray):
                found[part.name] = value
            elif isinstance(value, Bettors | Detectors):
                found |= {f"{part.name}_{name}": array for name, array in vars(value).items()}
        return found

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take what `arrays` gave."""
        self.n_rows = int(arrays["n_labelled"])
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, np.ndarray):
                setattr(self, part.name, arrays[part.name])
            elif isinstance(value, Bettors | Detectors):
                setattr(self, part.name, type(value)(**{name: arrays[f"{part.name}_{name}"] for name in vars(value)}))
