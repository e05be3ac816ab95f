"""Groups by rules with exact classifiers, chosen by rows that touched nothing of what they judge.

For every fold there is a tree, a merger of its leaves into groups, and a correction of the pooled logits for each
group, all made without the rows of that fold; so were the pooled logits themselves. The rows that select compare what
is made under different settings: criterion of the tree, number of leaves, number of groups, strength of the penalty.
What they choose is then made once more on all rows.

The guard judges by the same rows: what it is shown of a fold is made with the settings that the *other* folds choose.
So all rows choose and all rows judge, and none judges what it has chosen. Rows of its own for each of the two left the
guard so few that it threw away a third of the gains on Arrest.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.classifiers.logits import residual
from dafh.groups.growing import Criterion, grow_tree, standardized_scores
from dafh.groups.merging import LeafRows, fit_corrections, harmed_rows, prefer, refine, served_losses
from dafh.groups.rules import RuleTree
from dafh.linear.designs import Design
from dafh.linear.newton import Regression, class_shares, row_losses
from dafh.linear.threads import in_threads
from dafh.tables.bins import Binning

CRITERIA: tuple[Criterion, ...] = ("mean", "score")
MOST_GROUPS = 16
# Numbers of groups to choose from, where the number is to be chosen.
_NUMBERS = (2, 3, 4, 8, 16)
_MOST_LEAVES = 16
# A tree has a leaf for so many rows at most: smaller leaves could not be judged.
_ROWS_PER_LEAF = 100
# Leaves for each group, as far as there may be so many. With one leaf a group, Arrest gained 0.3 points less with two
# and three groups, and Violent 0.2 with two. Four are enough but on Adult, which gains 0.5 more from eight with two.
_LEAVES_PER_GROUP = (4, 8)
# Strengths of the penalty on corrections, in rows: a coefficient that fewer rows speak for stays small.
_STRENGTHS = (50.0, 250.0, 1000.0)
# What a row counts for the classifiers of other groups, which are held near the pooled one there. At 0 they decide
# about such rows as it happens: on Adult with three and four groups, Pr without harm was 4 points lower, for at most
# 0.1 points of accuracy.
_ELSEWHERE = (0.04, 0.1, 0.3)
# These compare trees; all penalties are tried on the best of them. A strength of 250 instead of 50 held strong effects
# back, and took four groups where two are right (1,500 rows, an effect that turns round).
_FIRST_STRENGTH, _FIRST_ELSEWHERE = 50.0, 0.1
_FINALISTS = 2
_MOST_TURNS = 4
# The best of many candidates looks better than it is. With two standard errors, groups were added to the scorecard on
# 18 of 90 development splits of German, Arrest and Violent, where they lose 0.00 to 0.05 points; with three, on 2. Bank
# is at 12 and more.
_ERRORS_TO_LEAVE_POOLED = 3.0
_ERRORS_TO_LOOSEN = 3.0


def _no_weight(n_groups: int) -> float:  # noqa: ARG001
    return 0.0


class Candidate(NamedTuple):
    """Settings that held-out rows choose from."""

    criterion: Criterion
    n_leaves: int
    n_groups: int
    strength: float
    """Of the penalty on all coefficients."""
    elsewhere: float
    """Of the pull to the pooled classifier on rows of other groups."""


@dataclass(frozen=True, eq=False)
class RuleRows:
    """Rows to learn rules from, and what belongs to each block: one for each fold, and the last for all rows."""

    binning: Binning
    codes: NDArray[Any]
    label: NDArray[np.intp]
    weight: NDArray[np.float64]
    base: NDArray[np.float64]
    """Nested pooled logits, (folds + 1, n, m)."""
    design: Callable[[int], Design]
    """What corrections are linear in, for each block."""
    fold: NDArray[np.integer]
    selects: NDArray[np.bool_]
    """Whether a row chooses between candidates, when its fold is held out."""
    cutoff: float = 0.5
    """Probability above which own classifiers predict the second of two classes."""

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.base) - 1

    def regression(self, block: int) -> Regression:
        """All rows, as the corrections of a block see them."""
        return Regression(self.design(block), self.label, self.weight, self.base[block])

    def training(self, block: int) -> NDArray[np.intp]:
        """Rows that a block may be trained on; the last one on all."""
        return np.arange(len(self.fold)) if block == self.n_folds else np.flatnonzero(self.fold != block)

    def judging(self, block: int) -> NDArray[np.intp]:
        """Rows that choose between candidates trained for a block."""
        return np.flatnonzero((self.fold == block) & self.selects)


@dataclass(frozen=True, eq=False)
class RuleGroups:
    """A tree with the group of each leaf, and the correction of each group, (K, p, m)."""

    tree: RuleTree
    corrections: NDArray[np.float64]
    settings: Candidate | None = None
    """What they were made with; None for all rows in one group."""


@dataclass(frozen=True, eq=False)
class FittedRules:
    """The groups chosen, the same made without each fold, and what they were chosen from."""

    groups: RuleGroups
    folds: tuple[RuleGroups, ...]
    chosen: Candidate | None
    """None where the pooled classifier alone is best, or no question could be asked."""
    candidates: pd.DataFrame
    """Settings, log-loss on rows that select, its difference to the pooled classifier with the standard error."""


def fit_rules(rows: RuleRows, n_groups: int | None, weight_of_pr: Callable[[int], float] = _no_weight) -> FittedRules:
    """Choose and fit groups by rules.

    Parameters
    ----------
    rows : RuleRows
    n_groups : int or None
        None: chosen, 1 to 16, the smallest number whose loss is within one standard error of the best; for more than 1,
        the best must be better than the pooled classifier by three.
    weight_of_pr : function of the number of groups
        What a row that another classifier would serve better adds to the loss in the choice.
    """
    if n_groups == 1:
        return _one_group(rows)
    search = _Search(rows, _NUMBERS if n_groups is None else (n_groups,), weight_of_pr)
    losses = search.losses()
    table = _comparison(losses, search.pooled_losses, search.judge_weight)
    chosen = choose_candidate(losses, search.pooled_losses, search.judge_weight, may_be_none=n_groups is None)
    if chosen is None:
        return replace(_one_group(rows), candidates=table)
    settings = [*search.choose_without_each_fold(losses, chosen), chosen]
    made = in_threads(lambda block: search.make(block, settings[block]), range(rows.n_folds + 1), len(rows.label))
    # Leaves have a smallest size: without some rows there may be more of them, and then groups that match none here.
    most = made[-1].tree.n_groups
    folds = [
        one if one.tree.n_groups <= most else search.make(block, settings[block]._replace(n_groups=most))
        for block, one in enumerate(made[:-1])
    ]
    return FittedRules(made[-1], tuple(folds), chosen, table)


def _one_group(rows: RuleRows) -> FittedRules:
    """All rows in one group, which the pooled classifier serves."""
    nothing = np.zeros((1, rows.design(rows.n_folds).n_coefficients, rows.base.shape[2]))
    everybody = RuleGroups(RuleTree(rows.binning, (), np.zeros(1, np.intp)), nothing)
    table = pd.DataFrame(columns=[*Candidate._fields, "log_loss", "difference", "standard_error"], dtype=np.float64)
    return FittedRules(everybody, (everybody,) * rows.n_folds, None, table)


class _Search:
    """Trees and sums of every fold, and the losses of candidates on the rows that select."""

    def __init__(
        self, rows: RuleRows, numbers: Sequence[int], weight_of_pr: Callable[[int], float] = _no_weight
    ) -> None:
        self.rows, self.weight_of_pr = rows, weight_of_pr
        self.most_leaves = max(min(_MOST_LEAVES, len(rows.label) // _ROWS_PER_LEAF), *numbers[:1], 1)
        self.numbers = [number for number in numbers if number <= self.most_leaves]
        self._trees: dict[tuple[int, Criterion], _BlockTree] = {}
        self.judging = [rows.judging(block) for block in range(rows.n_folds)]
        parts = [row_losses(rows.base[block][judges], rows.label[judges]) for block, judges in enumerate(self.judging)]
        self.order = np.argsort(np.concatenate(self.judging)) if rows.n_folds else np.zeros(0, np.intp)
        self.pooled_losses = np.concatenate(parts)[self.order] if parts else np.zeros(0)
        self.judge_weight = rows.weight[np.concatenate(self.judging)[self.order]] if parts else np.zeros(0)

    def losses(self) -> dict[Candidate, NDArray[np.float64]]:
        """Log-loss by row of every candidate: all trees with one pair of penalties, the best of them with all."""
        first_pair = (_FIRST_STRENGTH, _FIRST_ELSEWHERE)
        if not self.rows.n_folds:
            # Nothing can be compared; the first criterion and few leaves are the cautious choice.
            return {Candidate("mean", number, number, *first_pair): np.zeros(0) for number in self.numbers}
        found = self._judge([Candidate(c, *shape, *first_pair) for c in CRITERIA for shape in self._shapes()])
        best = sorted(found, key=lambda candidate: self._mean(found[candidate]))[:_FINALISTS]
        penalties = [(strength, elsewhere) for strength in _STRENGTHS for elsewhere in _ELSEWHERE]
        others = [Candidate(*one[:3], *penalty) for one in best for penalty in penalties if penalty != first_pair]
        return found | self._judge(others)

    def _judge(self, candidates: Sequence[Candidate]) -> dict[Candidate, NDArray[np.float64]]:
        """Log-loss by row of some candidates, fold by fold and tree by tree."""

        def judge(task: tuple[int, Criterion]) -> dict[Candidate, NDArray[np.float64]]:
            block, criterion = task
            if task not in self._trees:
                self._trees[task] = _BlockTree.grow(self.rows, block, criterion, self.most_leaves)
            mine = [candidate for candidate in candidates if candidate.criterion == criterion]
            tree, judges = self._trees[task], self.judging[block]
            regression, leaf = self.rows.regression(block).take(judges), tree.tree.leaves(self.rows.codes[judges])
            return tree.judge(regression, leaf, mine, self.weight_of_pr)

        asked = [c for c in CRITERIA if any(candidate.criterion == c for candidate in candidates)]
        tasks = [(block, criterion) for criterion in asked for block in range(self.rows.n_folds)]
        results = dict(zip(tasks, in_threads(judge, tasks, len(self.rows.label)), strict=True))
        blocks = range(self.rows.n_folds)
        return {c: np.concatenate([results[block, c.criterion][c] for block in blocks])[self.order] for c in candidates}

    def _mean(self, losses: NDArray[np.float64]) -> float:
        return float(np.average(losses, weights=self.judge_weight))

    def choose_without_each_fold(
        self, losses: dict[Candidate, NDArray[np.float64]], chosen: Candidate
    ) -> list[Candidate]:
        """What the rows of the other folds choose for each fold, with as many groups as all rows have chosen."""
        fold = np.repeat(np.arange(self.rows.n_folds), [len(judges) for judges in self.judging])[self.order]
        alike = [candidate for candidate in losses if candidate.n_groups == chosen.n_groups]
        settings = []
        for block in range(self.rows.n_folds):
            others = fold != block
            seen = {candidate: losses[candidate][others] for candidate in alike}
            found = choose_candidate(seen, self.pooled_losses[others], self.judge_weight[others], may_be_none=False)
            settings.append(found if others.any() and found is not None else chosen)
        return settings

    def _shapes(self) -> list[tuple[int, int]]:
        """Numbers of leaves and groups to try.

        Where the number of groups is open, a leaf for each group competes instead of eight: more groups do what more
        leaves would. It competes as well where rows are too few for four.
        """
        few = self.most_leaves < _LEAVES_PER_GROUP[0] * max(self.numbers, default=1)
        multiples = (1, 4) if len(self.numbers) > 1 else (1, *_LEAVES_PER_GROUP) if few else _LEAVES_PER_GROUP
        shapes = [(min(number * times, self.most_leaves), number) for number in self.numbers for times in multiples]
        return list(dict.fromkeys(shapes))

    def make(self, block: int, candidate: Candidate) -> RuleGroups:
        """Fit a candidate exactly on the rows of a block."""
        tree = self._trees.get((block, candidate.criterion))
        tree = tree or _BlockTree.grow(self.rows, block, candidate.criterion, self.most_leaves)
        return tree.make(candidate)


@dataclass(frozen=True, eq=False)
class _BlockTree:
    """The tree of one block and criterion at its largest, and the rows of its leaves."""

    rows: RuleRows
    block: int
    tree: RuleTree
    leaves: LeafRows

    @classmethod
    def grow(cls, rows: RuleRows, block: int, criterion: Criterion, most_leaves: int) -> "_BlockTree":
        trains = rows.training(block)
        training = rows.regression(block).take(trains)
        shares = class_shares(training.offset)
        columns = training.design.dense() if criterion == "score" else np.ones((len(trains), 1))
        scores = standardized_scores(
            criterion, residual(training.offset, training.label), shares * (1 - shares), columns, training.weight
        )
        tree = grow_tree(rows.binning, rows.codes[trains], scores, training.weight, most_leaves)
        leaf = tree.leaves(rows.codes[trains])
        return cls(rows, block, tree, LeafRows.of(training, leaf, tree.n_leaves))

    def judge(
        self,
        judges: Regression,
        leaf: NDArray[np.intp],
        candidates: Sequence[Candidate],
        weight_of_pr: Callable[[int], float] = _no_weight,
    ) -> dict[Candidate, NDArray[np.float64]]:
        """Log-loss of each row that selects, by candidate, and more where another classifier would do better.

        Parameters
        ----------
        judges : Regression
            The rows that select.
        leaf : array of shape (n,)
            Leaf of each of them, in the tree at its largest.
        """
        # Candidates that differ in the number of groups only share the sums of their leaves, and one merger of them.
        alike = defaultdict(list)
        for candidate in candidates:
            alike[min(candidate.n_leaves, self.tree.n_leaves), *candidate[3:]].append(candidate)
        parents = {n_leaves: self.tree.parents(n_leaves) for n_leaves, *_ in alike}
        leaves = {n_leaves: self.leaves.joined(parent) for n_leaves, parent in parents.items()}
        losses = {}
        for (n_leaves, _, elsewhere), some in alike.items():
            parent, joined, penalty = parents[n_leaves], leaves[n_leaves], self._penalty(some[0])
            merged = joined.sums(elsewhere).merge_each([candidate.n_groups for candidate in some], penalty)
            for candidate, (group, start) in zip(some, merged, strict=True):
                corrections, groups = refine(joined, group, start, penalty, elsewhere), group[parent[leaf]]
                losses[candidate] = served_losses(judges, groups, corrections)
                # Not asked for by default: every classifier has to decide about every row.
                if weight := weight_of_pr(candidate.n_groups):
                    losses[candidate] += weight * harmed_rows(judges, groups, corrections, self.rows.cutoff)
        return losses

    def make(self, candidate: Candidate) -> RuleGroups:
        """Fit exactly: corrections and preferences of the leaves take turns until no leaf moves."""
        n_leaves = min(candidate.n_leaves, self.tree.n_leaves)
        n_groups, penalty = min(candidate.n_groups, n_leaves), self._penalty(candidate)
        leaves = self.leaves.joined(self.tree.parents(n_leaves))
        group, _ = leaves.sums(candidate.elsewhere).merge(n_groups, penalty)
        corrections = fit_corrections(leaves, group, penalty, candidate.elsewhere)
        for _ in range(_MOST_TURNS if n_groups < n_leaves else 0):
            preferred = prefer(leaves, group, corrections)
            if (preferred == group).all():
                break
            group = preferred
            corrections = fit_corrections(leaves, group, penalty, candidate.elsewhere)
        return RuleGroups(self.tree.cut_back(n_leaves, group), corrections, candidate)

    def _penalty(self, candidate: Candidate) -> NDArray[np.float64]:
        return np.full(self.rows.design(self.block).n_coefficients, candidate.strength)


def _comparison(
    losses: dict[Candidate, NDArray[np.float64]], pooled: NDArray[np.float64], weight: NDArray[np.float64]
) -> pd.DataFrame:
    """Candidates with their mean loss and the difference to the pooled classifier."""
    lines = []
    for candidate, loss in losses.items():
        mean, error = paired_mean(loss - pooled, weight)
        lines.append((*candidate, float(np.average(loss, weights=weight)) if len(loss) else np.nan, mean, error))
    columns = [*Candidate._fields, "log_loss", "difference", "standard_error"]
    return pd.DataFrame(lines, columns=columns).sort_values("log_loss", ignore_index=True)


def paired_mean(difference: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float]:
    """Weighted mean of differences by row, and its standard error."""
    if not len(difference):
        return 0.0, 0.0
    mean = float(np.average(difference, weights=weight))
    return mean, float(np.sqrt((weight**2) @ (difference - mean) ** 2) / weight.sum())


def choose_candidate(
    losses: dict[Candidate, NDArray[np.float64]],
    pooled: NDArray[np.float64],
    weight: NDArray[np.float64],
    *,
    may_be_none: bool,
) -> Candidate | None:
    """Return the simplest tree within one standard error of the lowest loss, with the strongest penalties within three.

    Simpler are, in this order: fewer groups, where their number is open, down to none; fewer leaves; a tree on the mean
    residual, which has less to overfit. Strong penalties keep the classifiers close to the pooled one and to each
    other. Held-out loss can hardly tell them apart, but Pr without harm can: with three standard errors instead of one,
    Arrest had a Pr of 95 instead of 92 % and gained as much (12 splits).
    """
    if not losses:
        return None
    best = _lowest(losses, weight)
    if may_be_none and _near(pooled, losses[best], weight, _ERRORS_TO_LEAVE_POOLED):
        return None
    close = [candidate for candidate in losses if _near(losses[candidate], losses[best], weight, 1.0)]
    tree = min(close, key=lambda c: (c.n_groups, c.n_leaves, CRITERIA.index(c.criterion)))[:3]
    of_tree = {candidate: loss for candidate, loss in losses.items() if candidate[:3] == tree}
    best = _lowest(of_tree, weight)
    close = [candidate for candidate in of_tree if _near(losses[candidate], losses[best], weight, _ERRORS_TO_LOOSEN)]
    return max(close, key=lambda c: (c.strength, c.elsewhere))


def _lowest(losses: dict[Candidate, NDArray[np.float64]], weight: NDArray[np.float64]) -> Candidate:
    return min(losses, key=lambda candidate: paired_mean(losses[candidate], weight)[0])


def _near(loss: NDArray[np.float64], best: NDArray[np.float64], weight: NDArray[np.float64], n_errors: float) -> bool:
    """Whether a loss is above the best one by no more than so many standard errors of the difference."""
    mean, error = paired_mean(loss - best, weight)
    return mean <= n_errors * error
