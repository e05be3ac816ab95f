"""What labelled rows say about every question: is a group, or a declared subgroup, worse off in one of the losses.

The classifier that is watched in a group is the one that serves it, or its own where the pooled one does. All questions
about harm share the level, and so do all proofs of benefit. A *term* begins when a classifier is put into service or
taken out of it: evidence about that group then starts anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.losses import Loss
from dafh.stats import Bettors, Detectors, WeighedCounts, first_alarms, thresholds
from dafh.watch.bets import Bets, JudgedRows
from dafh.watch.counts import N_KINDS, WEIGHT_EDGES, Counter, relative_stakes
from dafh.watch.display import table_of

# Capital of the first term; each later one has one half of what is left. Alarms are mostly about the first: with 0.8
# instead of 0.99, they came 7% of rows later. Proofs are also about classifiers that were taken out of service.
FIRST_ALARMS, FIRST_PROOFS = 0.99, 0.8
# The bet that fits harm of 2 percentage points where 10% of rows are discordant.
_TYPICAL_BET = 0.2


def capital_of_term(term: int, first: float = FIRST_ALARMS) -> float:
    """Capital at the start of a term: those of all terms add up to 1, so that the level holds for all of them together.

    Examples
    --------
    >>> [round(capital_of_term(term, first=0.8), 3) for term in range(3)]
    [0.8, 0.1, 0.05]
    """
    return first if term == 0 else (1 - first) * 0.5**term


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
    detectors: Detectors = field(init=False)
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
        self.detectors = Detectors.start(q)
        self.counts = np.zeros((q, N_KINDS, len(WEIGHT_EDGES) if self.weighted else 1))
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
        counter = Counter(self.n_groups, len(self.parts), self.losses, self.weighted)
        counts, sums, bets = counter.count(rows)
        self.counts, self.sums = self.counts + counts, self.sums + sums
        bets = bets.after(self.n_rows)
        self.n_rows += len(rows)
        found = self._settle(bets)
        changed = np.isin(self.group, rows.group)
        self._tighten(np.flatnonzero(changed))
        return found

    def _settle(self, bets: Bets) -> Found:
        """Settle all bets, question by question, and see what they show."""
        _, first, sharing = family = self.family()
        before, at_risk = self.harm.capital, self.at_risk
        alarm_at = np.where(first, max(int(sharing.sum()), 1), self.n_questions) / self.level
        open_proofs = int((self.proved == 0)[self.terms == 0].sum() + self.unproved.sum())
        proof_at = np.where(self.terms == 0, max(open_proofs, 1), self.n_groups)[self.group] / self.level
        group, run_length = self.group, self.run_length_needed
        capital, warnings = np.empty(len(bets.x)), []
        for q, part in bets.by_question():
            x = bets.x[part]
            self._follow(q, x, bets.row[part])
            # What is decided stays so: evidence on it would only fade or grow without a meaning.
            target = alarm_at[q] if at_risk[q] else np.inf
            capital[part] = before[q] if self.alarmed[q] else self.harm.bet(q, x, target)
            if not self.proved[group[q]]:
                self.benefit.bet(q, -x, proof_at[q])
            signs = self.detectors.watch(q, x, bets.since[part]) >= run_length
            if self.serving[group[q]] and signs.any():
                warnings.append(Raised(q, int(bets.row[part][int(np.argmax(signs))])))
        self.detectors.waiting += bets.waiting
        self.detectors.restart(np.array([warning.place for warning in warnings], np.intp))
        alarms = self._alarms(family, bets, capital)
        for q, row in alarms.items():
            self.alarmed[q] = row
        # After an alarm, a warning says nothing new.
        warnings = [one for one in warnings if not self.alarmed[one.place]]
        for warning in warnings:
            self.warned[warning.place] = self.warned[warning.place] or warning.row
        return Found([Raised(q, row) for q, row in sorted(alarms.items())], warnings, self._prove())

    def _alarms(
        self,
        family: tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]],
        bets: Bets,
        capital: NDArray[np.float64],
    ) -> dict[int, int]:
        """Questions for which harm is now shown, and the row at which."""
        before, first, sharing = family
        serving = self.serving[self.group][bets.question]
        some = serving & first[bets.question]
        alarms = first_alarms(before, sharing, bets.row[some], bets.question[some], capital[some], self.level)
        later = serving & (self.at_risk & ~first)[bets.question]
        for i in np.flatnonzero(later & (capital >= self.n_questions / self.level * (1 - 1e-9))):
            alarms.setdefault(int(bets.question[i]), int(bets.row[i]))
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
        on_negative, on_positive = relative_stakes(loss)
        x = np.array([0.0, on_negative, on_positive, -on_negative, -on_positive])
        low, high = (np.append(0.0, WEIGHT_EDGES[:-1]), WEIGHT_EDGES) if self.weighted else (np.ones(1), np.ones(1))
        counts = self.counts[some].reshape(len(some), -1)
        return WeighedCounts(np.repeat(x, len(low)), np.tile(low, N_KINDS), np.tile(high, N_KINDS), counts)

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
            self.detectors.restart(questions)
            self.served[g] += serving[g]
            self.alarmed[questions] = self.warned[questions] = 0
            self.climb[questions], self.onset[questions] = 0.0, self.n_rows

    # ---- results ----

    def table(self) -> pd.DataFrame:
        """One row per question, with losses in their own units."""
        return table_of(self)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that is known, as arrays, for `restore`."""
        found: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in _ARRAYS}
        for name in ("harm", "benefit"):
            bettors = getattr(self, name)
            found |= {f"{name}_{part}": getattr(bettors, part) for part in ("accounts", "mass", "n_bets")}
        found |= {"change_accounts": self.detectors.accounts, "change_waiting": self.detectors.waiting}
        return found | {"n_labelled": np.array(self.n_rows)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take what `arrays` gave."""
        for name in _ARRAYS:
            setattr(self, name, arrays[name])
        self.harm, self.benefit = (
            Bettors(*(arrays[f"{name}_{part}"] for part in ("accounts", "mass", "n_bets")))
            for name in ("harm", "benefit")
        )
        self.detectors = Detectors(arrays["change_accounts"], arrays["change_waiting"])
        self.n_rows = int(arrays["n_labelled"])


_ARRAYS = (
    "counts",
    "sums",
    "limits",
    "alarmed",
    "warned",
    "proved",
    "terms",
    "served",
    "serving",
    "retired",
    "unproved",
    "climb",
    "onset",
)
