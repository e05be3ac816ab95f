"""Learn groups on checked rows: by rules, or by a network that starts at the rules."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.estimators.pooled import PooledFit, choose_n_folds, observe_decisions
from dafh.evaluation.paired import ComparedRows
from dafh.groups.corrections import CorrectionDesign, LinearCorrections
from dafh.groups.exact import Candidate, FittedRules, RuleGroups, RuleRows, fit_rules
from dafh.groups.judging import ROWS_TO_MATCH, Decisions, FoldVerdict, cross_fitted_rows, matched_groups
from dafh.groups.merging import LeafRows, fit_corrections
from dafh.groups.network import FittedPopulation, NetworkStart, fit_population
from dafh.groups.recipe import Recipe
from dafh.groups.rules import RuleTree
from dafh.groups.trained import NetworkModel, RuleModel, TrainedGroups
from dafh.linear.newton import Regression
from dafh.rows.checked import CheckedRows
from dafh.rows.held_out import HeldOut
from dafh.rows.seen import SeenRows

_SHARE_OF_ONE_FOLD = 0.2
_FOLDS_OF_OTHERS = 4


@dataclass(frozen=True, eq=False)
class LearnedGroups:
    """The groups of a fit, and what held-out rows say about them."""

    model: TrainedGroups
    candidates: pd.DataFrame
    compared: Callable[[], ComparedRows]
    """Calibration rows for the guard, each with classifiers that were trained without it."""
    decisions: Decisions
    """How logits become labels."""
    population: FittedPopulation | None
    """How a network was trained, if one was."""
    rules: "FittedGroupRules"
    """The rules that were found, with those of every fold."""


def learn_groups(
    rows: CheckedRows,
    unfitted: Any,
    pooled: PooledFit,
    *,
    kind: Literal["rules", "network"],
    n_groups: int | None,
    recipe: Recipe,
    calibration: float,
    threshold: float | None,
    rng: np.random.Generator,
    seeds: tuple[np.random.SeedSequence, np.random.SeedSequence],
    verbose: int = 0,
) -> LearnedGroups:
    """Learn groups and their classifiers.

    Parameters
    ----------
    rows : CheckedRows
    unfitted : classifier
        The pooled classifier as the user passed it, to be fitted again without each fold.
    pooled : PooledFit
    kind : {"rules", "network"}
    n_groups : int or None
        None: chosen.
    calibration : float
        Share of each fold for the guard, where its rows cannot both choose and judge.
    threshold : float or None
        Cut-off of own classifiers; None: that of the pooled one.
    rng : Generator
        Draws the folds.
    seeds : two seed sequences
        For the start of a network, and for its batches.
    """
    seen = pooled.view.see(rows.given, None if pooled.sums is None else pooled.sums.design.codes)
    decisions = observe_decisions(unfitted, pooled, rows, seen, threshold)
    held_out = _draw_folds(rows, unfitted, recipe, calibration, rng)
    fold = _nested_folds(held_out, rows, rng)
    base = nested_pooled_logits(unfitted, pooled, rows, seen, fold, held_out.n_folds)
    design = CorrectionDesign(pooled.kind, seen, rows.weight)
    problem = RuleRows(
        binning=_binning(seen),
        codes=seen.codes,
        label=rows.label,
        weight=rows.weight,
        base=base,
        design=lambda block: design.block(base[block]),
        fold=fold,
        selects=_choosing_rules(held_out),
        cutoff=decisions.cutoff,
    )
    # A network that starts at random needs no rules.
    needed = kind != "network" or recipe.start == "rules"
    rules = fit_rules(problem, n_groups if needed else 1, recipe.weight_of_pr)
    by_rules = FittedGroupRules(rules, problem, design, held_out, seen, rows, decisions)
    candidates = by_rules.fitted.candidates
    if kind == "rules":
        return LearnedGroups(by_rules.model(), candidates, by_rules.compared, decisions, None, by_rules)
    network = learn_network(by_rules, replace(rows, X=seen.numbers), n_groups or 2, recipe, seeds, verbose)
    return LearnedGroups(network.model, candidates, network.compared, decisions, network.population, by_rules)


def _binning(seen: SeenRows) -> Any:
    assert seen.view.binning is not None
    return seen.view.binning


def _choosing_rules(held_out: HeldOut) -> NDArray[np.bool_]:
    """Whether a row chooses rules, when its fold is held out.

    All that are held out do; `dafh.groups.exact` says why they may judge the rules, too. A single fold has no others to
    choose for it, and is divided between choice and guard.
    """
    held = held_out.fold >= 0
    return held if held_out.n_folds > 1 else held & ~held_out.calibrates


def _draw_folds(
    rows: CheckedRows, unfitted: Any, recipe: Recipe, calibration: float, rng: np.random.Generator
) -> HeldOut:
    """Divide the rows into folds; of each, one part selects and the other is kept for the guard.

    Two folds or more hold out every row once. A single one holds out a fifth of the rows.
    """
    n_folds = choose_n_folds(unfitted, len(rows)) if recipe.n_folds == "auto" else int(recipe.n_folds)
    # Where time counts there is one fold: the last rows.
    share = 1 / n_folds if n_folds > 1 and rows.context.time is None else _SHARE_OF_ONE_FOLD
    # A recipe that takes the last epoch holds out no row to choose by.
    selection = share * (1 - calibration) if recipe.select == "best" else 0.0
    context = rows.context
    return HeldOut.draw(
        rows.label, selection, share * calibration, n_folds, rng, person=context.person, time=context.time
    )


def _nested_folds(held_out: HeldOut, rows: CheckedRows, rng: np.random.Generator) -> NDArray[np.intp]:
    """Folds for nested logits: rows that never judge need some as well, so that their logits can be out of fold.

    Beside several folds these rows are few, left over by rounding or of a rare class, and are spread over the folds: in
    a fold of their own they cost a sixth of all fits. Beside a single fold they are most rows, and are divided, a
    person's rows together.
    """
    n_folds = max(held_out.n_folds, 1)
    person = np.arange(len(rows)) if rows.context.person is None else rows.context.person
    order = rng.permutation(int(person.max()) + 1)[person]
    others = order % n_folds if n_folds > 1 else held_out.n_folds + order % _FOLDS_OF_OTHERS
    return np.unique(np.where(held_out.fold < 0, others, held_out.fold), return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class FittedGroupRules:
    """Fitted rules with the rows they were learned from."""

    fitted: FittedRules
    problem: RuleRows
    design: CorrectionDesign
    held_out: HeldOut
    seen: SeenRows
    rows: CheckedRows
    decisions: Decisions

    def model(self) -> RuleModel:
        """The final rules, as they are served."""
        return self.served(self.fitted.groups)

    def served(self, groups: RuleGroups) -> RuleModel:
        """Rules of a fold, or the final ones, as they are served."""
        return RuleModel(groups.tree, self.design.served(groups.corrections))

    def compared(self) -> ComparedRows:
        """Calibration rows for the guard."""
        return cross_fitted_rows(self._verdicts(), self.fitted.groups.tree.n_groups, self.rows, self.decisions)

    def _verdicts(self) -> list[FoldVerdict]:
        final, verdicts = self.fitted.groups.tree, []
        spread = slice(None, None, max(len(self.problem.label) // ROWS_TO_MATCH, 1))
        for block, groups in enumerate(self.fitted.folds):
            judges = self.held_out.fold == block
            members = np.flatnonzero(judges if self.held_out.n_folds > 1 else judges & self.held_out.calibrates)
            asked, pooled = self.seen.take(members), self.problem.base[block][members]
            model = self.served(groups)
            codes = self.problem.codes[spread]
            place = matched_groups(groups.tree.assign(codes), final.assign(codes), final.n_groups)
            verdicts.append(
                FoldVerdict(
                    members,
                    model.assign(asked),
                    _padded(model.every(asked, pooled), final.n_groups),
                    pooled,
                    place,
                )
            )
        return verdicts


def _padded(logits: NDArray[np.float64], n_groups: int) -> NDArray[np.float64]:
    """Logits for as many groups as the final model has: a fold may have found fewer, and its last one stands in."""
    missing = n_groups - logits.shape[1]
    return np.concatenate([logits, np.repeat(logits[:, -1:], missing, axis=1)], axis=1) if missing > 0 else logits


@dataclass(frozen=True, eq=False)
class _Network:
    """A trained network, and what held-out rows say about it."""

    model: NetworkModel
    population: FittedPopulation
    compared: Callable[[], ComparedRows]


def learn_network(
    rules: FittedGroupRules,
    rows: CheckedRows,
    n_groups: int,
    recipe: Recipe,
    seeds: tuple[np.random.SeedSequence, np.random.SeedSequence],
    verbose: int,
) -> _Network:
    """Train the paper's group network, from the rules of each block where there are some."""
    from_rules = recipe.start == "rules" and rules.fitted.chosen is not None
    starts = _network_starts(rules, rows) if from_rules else None
    n_groups = n_groups if starts is None else rules.fitted.groups.tree.n_groups
    base, held_out = rules.problem.base, _held_out_of_network(rules.held_out, recipe)
    population = fit_population(
        recipe,
        n_groups,
        rows,
        base,
        held_out,
        starts=starts,
        start_seed=seeds[0],
        batch_seed=seeds[1],
        verbose=verbose,
    )
    tree = rules.fitted.groups.tree if starts is not None else None
    return _Network(
        NetworkModel(population.model, tree),
        population,
        lambda: population.cross_fitted_rows(rows, base, held_out, starts, rules.decisions),
    )


def _held_out_of_network(held_out: HeldOut, recipe: Recipe) -> HeldOut:
    """Rows that choose the epoch of a network, and that judge it.

    Where one replica has several folds, all held-out rows do both, each fold with the epoch that the other folds
    choose. With 30% of each fold for the guard alone, it gave 0.4 of 0.9 points of gain back on Arrest (two groups,
    twelve development splits). Several replicas may have quite different groups, and folds that choose different ones
    would judge groups that the model does not have: there the rows of each fold are divided.
    """
    shares = held_out.n_folds > 1 and recipe.n_replicas == 1 and recipe.select == "best"
    return held_out.shared() if shares else held_out


def _network_starts(rules: FittedGroupRules, rows: CheckedRows) -> list[NetworkStart]:
    """What the network of each block starts from: the block's tree, and linear corrections for its groups."""
    design = CorrectionDesign("columns", rules.seen, rows.weight)
    starts = []
    for block, groups in enumerate([*rules.fitted.folds, rules.fitted.groups]):
        assert groups.settings is not None
        tree = _same_number_of_groups(groups.tree, rules.fitted.groups.tree.n_groups)
        weight, bias = _linear_start(rules, rows, design, block, tree, groups.settings)
        answers, paths = tree.answers(rules.problem.codes), tuple(tree.paths())
        starts.append(NetworkStart(answers, paths, tree.group, weight, bias, groups.settings.elsewhere))
    return starts


def _same_number_of_groups(tree: RuleTree, n_groups: int) -> RuleTree:
    """Number the groups of a fold's tree within those of the final one; a fold may have found fewer."""
    return replace(tree, group=np.minimum(tree.group, n_groups - 1))


def _linear_start(
    rules: FittedGroupRules,
    rows: CheckedRows,
    design: CorrectionDesign,
    block: int,
    tree: RuleTree,
    settings: Candidate,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Corrections of a block's groups that are linear in the columns, as the network's classifiers are."""
    n_groups, problem = rules.fitted.groups.tree.n_groups, rules.problem
    weight, bias = (
        np.zeros((n_groups, rows.X.shape[1], problem.base.shape[2])),
        np.zeros((n_groups, problem.base.shape[2])),
    )
    if not design.has_columns:
        return weight, bias
    trains = problem.training(block)
    base = problem.base[block]
    regression = Regression(design.block(base), problem.label, problem.weight, base).take(trains)
    # A group may have no rows in a fold.
    present, position = np.unique(tree.assign(problem.codes[trains]), return_inverse=True)
    leaves = LeafRows.of(regression, position, len(present))
    penalty = np.full(regression.design.n_coefficients, settings.strength)
    served = design.served(fit_corrections(leaves, np.arange(len(present)), penalty, settings.elsewhere))
    assert isinstance(served, LinearCorrections)
    weight[present], bias[present] = served.weight, served.intercept
    return weight, bias
