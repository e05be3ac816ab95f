"""Learn groups on checked rows: by rules, by a network that starts at the rules, or by whichever is better."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.estimators.pooled import PooledFit, choose_n_folds, nested_pooled_logits, pooled_logits
from dafh.evaluation.paired import PairedCounts
from dafh.groups.corrections import CorrectionDesign
from dafh.groups.exact import FittedRules, RuleGroups, RuleRows, fit_rules
from dafh.groups.judging import ROWS_TO_MATCH, FoldVerdict, cross_fitted_counts, matched_groups
from dafh.groups.merging import LeafRows, fit_corrections
from dafh.groups.recipe import Recipe
from dafh.groups.trained import RuleModel, TrainedGroups
from dafh.rows.checked import CheckedRows
from dafh.rows.held_out import HeldOut
from dafh.rows.seen import SeenRows

if TYPE_CHECKING:
    from dafh.groups.network import FittedPopulation

# Groups, and all that is chosen about them, are learned from this many rows at most; their classifiers from all rows.
_MOST_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class LearnedGroups:
    """The groups of a fit, and what held-out rows say about them."""

    model: TrainedGroups
    candidates: pd.DataFrame
    counts: Callable[[], PairedCounts]
    """Cross-fitted counts for the guard."""
    population: "FittedPopulation | None"
    """How a network was trained, if one was."""


def learn_groups(
    rows: CheckedRows,
    unfitted: Any,
    pooled: PooledFit,
    *,
    kind: Literal["auto", "rules", "network"],
    n_groups: int | None,
    recipe: Recipe,
    calibration: float,
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
    kind : {"auto", "rules", "network"}
    n_groups : int or None
        None: chosen.
    calibration : float
        Share of each fold that is kept for the guard.
    rng : Generator
        Draws the folds.
    seeds : two seed sequences
        For the start of a network, and for its batches.
    """
    sampled = rows
    if len(rows) > _MOST_ROWS:
        sampled = rows.take(np.sort(rng.choice(len(rows), _MOST_ROWS, replace=False)))
    seen = pooled.view.see(sampled.given)
    held_out = _draw_folds(sampled, unfitted, recipe, calibration, rng)
    # Rows of no fold never judge; what is nested still needs a fold for them.
    fold = np.where(held_out.fold < 0, held_out.n_folds, held_out.fold)
    base = nested_pooled_logits(unfitted, pooled, sampled, seen, fold, held_out.n_folds)
    design = CorrectionDesign(pooled.kind, seen, sampled.weight)
    problem = RuleRows(
        binning=_binning(seen),
        codes=seen.codes,
        label=sampled.label,
        weight=sampled.weight,
        base=base,
        design=lambda block: design.block(base[block]),
        fold=fold,
        selects=(held_out.fold >= 0) & ~held_out.calibrates,
    )
    by_rules = _Rules(fit_rules(problem, n_groups), problem, design, held_out, seen)
    if kind == "network" or (kind == "auto" and recipe.start == "warm"):
        from dafh.estimators.networks import learn_network

        network = learn_network(by_rules, sampled, pooled, n_groups, recipe, seeds, verbose)
        if network is not None and (kind == "network" or network.is_better_than(by_rules.fitted.selection_losses)):
            return LearnedGroups(network.model, by_rules.fitted.candidates, network.counts, network.population)
    model = by_rules.model()
    if len(rows) > len(sampled) and model.n_groups > 1:
        model = _with_all_rows(by_rules, model, rows, pooled)
    return LearnedGroups(model, by_rules.fitted.candidates, by_rules.counts, None)


def _binning(seen: SeenRows) -> Any:
    assert seen.view.binning is not None
    return seen.view.binning


def _draw_folds(
    rows: CheckedRows, unfitted: Any, recipe: Recipe, calibration: float, rng: np.random.Generator
) -> HeldOut:
    """Divide all rows into folds; of each, one part selects and the other is kept for the guard."""
    n_folds = choose_n_folds(unfitted, len(rows)) if recipe.n_folds == "auto" else int(recipe.n_folds)
    return HeldOut.draw(rows.label, (1 - calibration) / n_folds, calibration / n_folds, n_folds, rng)


@dataclass(frozen=True, eq=False)
class _Rules:
    """Fitted rules with the rows they were learned from."""

    fitted: FittedRules
    problem: RuleRows
    design: CorrectionDesign
    held_out: HeldOut
    seen: SeenRows

    def model(self) -> RuleModel:
        return self._served(self.fitted.groups)

    def _served(self, groups: RuleGroups) -> RuleModel:
        return RuleModel(groups.tree, self.design.served(groups.corrections))

    def counts(self) -> PairedCounts:
        """Cross-fitted counts for the guard."""
        return cross_fitted_counts(self._verdicts(), self.fitted.groups.tree.n_groups)

    def _verdicts(self) -> list[FoldVerdict]:
        final, verdicts = self.fitted.groups.tree, []
        spread = slice(None, None, max(len(self.problem.label) // ROWS_TO_MATCH, 1))
        for block, groups in enumerate(self.fitted.folds):
            members = self.held_out.calibration(block)
            asked, pooled = self.seen.take(members), self.problem.base[block][members]
            model = self._served(groups)
            codes = self.problem.codes[spread]
            place = matched_groups(groups.tree.assign(codes), final.assign(codes), final.n_groups)
            verdicts.append(
                FoldVerdict(
                    self.problem.label[members],
                    self.problem.weight[members],
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


def _with_all_rows(rules: _Rules, model: RuleModel, rows: CheckedRows, pooled: PooledFit) -> RuleModel:
    """Fit the classifiers of the groups on all rows.

    With so many of them, a pooled classifier that has seen the rows is hardly more sure of them than one that has not.
    """
    chosen = rules.fitted.chosen
    assert chosen is not None
    seen = pooled.view.see(rows.given)
    base = pooled_logits(pooled.model, seen, rows.classes)
    design = CorrectionDesign(pooled.kind, seen, rows.weight)
    penalty = np.full(design.block(base).n_coefficients, chosen.strength)
    group = model.assign(seen)
    leaves = LeafRows.of(design.block(base), rows.label, rows.weight, base, group, model.n_groups)
    corrections = fit_corrections(leaves.parts, np.arange(model.n_groups), model.n_groups, penalty)
    return RuleModel(model.tree, design.served(corrections))
