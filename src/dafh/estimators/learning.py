"""Learn groups on checked rows: as a list of exceptions, or by a network that starts at one."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from dafh.classifiers import class_probabilities, decide, logits
from dafh.columns.bins import Binning
from dafh.estimators.pooled import PooledFit, choose_n_folds, observe_decisions, out_of_fold_pooled_logits
from dafh.evaluation.compared import ComparedRows
from dafh.exceptions import InputError
from dafh.frames import take_rows
from dafh.groups.corrections import CorrectionDesign, LinearCorrections
from dafh.groups.exceptions import ExceptionList, ExceptionRows, FittedExceptions, fit_exceptions, fit_list, paired_mean
from dafh.groups.judging import Decisions, FoldVerdict, cross_fitted_rows
from dafh.groups.recipe import Recipe
from dafh.groups.trained import ExceptionModel, TrainedGroups
from dafh.linear.designs import Standardization
from dafh.linear.newton import fit_penalized, row_losses
from dafh.linear.scorecard import Scorecard
from dafh.regions.conditions import Region
from dafh.rows import EncodedRows, HeldOut, LabelledRows
from dafh.text import percent

if TYPE_CHECKING:  # It imports JAX, which only training needs.
    from dafh.groups.network import FittedPopulation

_SHARE_OF_ONE_FOLD = 0.2
_FOLDS_OF_OTHERS = 4
# Bins by column in which regions are searched for, cut at readable numbers. With 24, an effect that turned round at 5
# left a sliver on the wrong side of the cut, which became a group of its own.
_REGION_BINS = 64
# Penalty of the corrections that a network starts from, where exceptions have not chosen one.
_STRENGTH_TO_START = 50.0


@dataclass(frozen=True, eq=False)
class LearnedGroups:
    """The groups of a fit, and what held-out rows say about them."""

    model: TrainedGroups
    candidates: pd.DataFrame
    judged: Callable[[], ComparedRows]
    """Rows for the guard, each with classifiers that were trained without it."""
    decisions: Decisions
    """How logits become labels."""
    population: "FittedPopulation | None"
    """How a network was trained, if one was."""
    exceptions: "LearnedExceptions"

    def replacement(self) -> str:
        """Say what giving up a model that the user brought would bring: a scorecard of the same rows, held out."""
        learned = self.exceptions
        rows, fold, base = learned.rows, learned.problem.fold, learned.problem.base
        held_out = np.flatnonzero(fold == 0)
        training = rows.take(np.flatnonzero(fold != 0))
        label, weight = rows.label[held_out], rows.weight[held_out]
        features = learned.seen.features
        scorecard = Scorecard(threshold=self.decisions.cutoff)
        scorecard.fit(take_rows(features, np.flatnonzero(fold != 0)), training.y, training.fit_weight)
        new = logits(class_probabilities(scorecard, take_rows(features, held_out), rows.classes))
        errors = [
            float(np.average(decided != label, weights=weight))
            for decided in (decide(new, self.decisions.cutoff), self.decisions.of_pooled(held_out, base[held_out]))
        ]
        losses = [float(np.average(row_losses(one, label), weights=weight)) for one in (new, base[held_out])]
        return (
            f"A new scorecard instead of the model in use: error rate {percent(errors[0])} instead of "
            f"{percent(errors[1])}, log-loss {losses[0]:.3f} instead of {losses[1]:.3f} "
            f"({len(held_out):,} held-out rows)."
        )


def learn_groups(
    rows: LabelledRows,
    unfitted: Any,
    pooled: PooledFit,
    *,
    method: Literal["exceptions", "network"],
    n_groups: int | None,
    recipe: Recipe,
    calibration: float,
    threshold: float | None,
    rng: np.random.Generator,
    seeds: tuple[np.random.SeedSequence, np.random.SeedSequence],
    verbose: int = 0,
) -> LearnedGroups:
    """Learn groups and their classifiers; without `n_groups`, their number is chosen.

    Parameters
    ----------
    unfitted : classifier
        The pooled classifier as the user passed it, to be fitted again without each fold.
    calibration : float
        Share of each fold for the guard, where its rows cannot both choose and judge.
    threshold : float or None
        Cut-off of own classifiers; None: that of the pooled one.
    rng : Generator
        Draws the folds.
    seeds : two seed sequences
        For the start of a network, and for its batches.
    """
    seen = pooled.encoding.encode(rows.X, None if pooled.sums is None else pooled.sums.design.codes)
    decisions = observe_decisions(unfitted, pooled, rows, seen, threshold)
    held_out = _draw_folds(rows, unfitted, recipe, calibration, rng)
    fold = _all_folds(held_out, rows, rng)
    base = out_of_fold_pooled_logits(unfitted, pooled, rows, seen, fold)
    design = CorrectionDesign(pooled.kind, seen, rows.weight, base)
    binning = Binning.learn(seen.features, rows.weight, _REGION_BINS, readable=True)
    problem = ExceptionRows(
        binning=binning,
        codes=binning.codes(seen.features),
        label=rows.label,
        weight=rows.weight,
        base=base,
        design=design.design,
        fold=fold,
        selects=_choosing_rows(held_out),
        may_correct_all=pooled.kind == "logits",
        person=rows.person,
    )
    # A network that starts at random needs no exceptions.
    needed = method == "exceptions" or recipe.start == "exceptions"
    fitted = fit_exceptions(problem, n_groups if needed else 1)
    exceptions = LearnedExceptions(fitted, problem, design, held_out, seen, rows, decisions)
    if method == "exceptions":
        return LearnedGroups(exceptions.model, fitted.candidates, exceptions.judged, decisions, None, exceptions)
    return learn_network(exceptions, replace(rows, numbers=seen.numbers), n_groups or 2, recipe, seeds, verbose)


def _choosing_rows(held_out: HeldOut) -> NDArray[np.bool_]:
    """Whether a row chooses the list, when its fold is held out: all do, but where there is one fold only.

    That one is divided between choice and guard.
    """
    held = held_out.fold >= 0
    return held if held_out.n_folds > 1 else held & ~held_out.calibrates


def _draw_folds(
    rows: LabelledRows, unfitted: Any, recipe: Recipe, calibration: float, rng: np.random.Generator
) -> HeldOut:
    """Divide the rows into folds; of each, one part selects and the other is kept for the guard.

    Two folds or more hold out every row once. A single one holds out a fifth of the rows.
    """
    n_folds = choose_n_folds(unfitted, len(rows)) if recipe.n_folds == "auto" else int(recipe.n_folds)
    # Where time counts there is one fold: the last rows.
    share = 1 / n_folds if n_folds > 1 and rows.time is None else _SHARE_OF_ONE_FOLD
    # A recipe that takes the last epoch holds out no row to choose by.
    selection = share * (1 - calibration) if recipe.select == "best" else 0.0
    return HeldOut.draw(rows.label, selection, share * calibration, n_folds, rng, person=rows.person, time=rows.time)


def _all_folds(held_out: HeldOut, rows: LabelledRows, rng: np.random.Generator) -> NDArray[np.intp]:
    """Fold of every row: those that never judge need one as well, so that their logits can be out of fold.

    Beside several folds these rows are few, left over by rounding or of a rare class, and are spread over the folds.
    Beside a single fold they are most rows, and are divided, a person's rows together.
    """
    n_folds = max(held_out.n_folds, 1)
    person = np.arange(len(rows)) if rows.person is None else rows.person
    order = rng.permutation(int(person.max()) + 1)[person]
    others = order % n_folds if n_folds > 1 else held_out.n_folds + order % _FOLDS_OF_OTHERS
    return np.unique(np.where(held_out.fold < 0, others, held_out.fold), return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class LearnedExceptions:
    """A fitted list with the rows it was learned from."""

    fitted: FittedExceptions
    problem: ExceptionRows
    design: CorrectionDesign
    held_out: HeldOut
    seen: EncodedRows
    rows: LabelledRows
    decisions: Decisions

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """The exceptions in conditions that hold for any table."""
        return self.fitted.chosen.regions(self.problem.binning)

    @cached_property
    def model(self) -> ExceptionModel:
        """The list as it is served."""
        return ExceptionModel(self.regions, self.design.served(self.fitted.chosen.corrections))

    def judged(self) -> ComparedRows:
        """Judge exactly the regions that are printed, with coefficients fitted without each fold.

        The regions have seen all rows, and look better on them than they are. By how much, lists say that were grown
        without each fold: the share of the log-loss gain that is left with those is the share that counts.
        """
        fitted, problem = self.fitted, self.problem
        n_groups = len(fitted.chosen.exceptions) + 1
        if fitted.settings is None or not problem.n_folds:
            verdicts = [self._verdict(block, fitted.chosen) for block in range(problem.n_folds)]
            return cross_fitted_rows(verdicts, n_groups, self.rows, self.decisions)
        verdicts, gains, weights = [], [], []
        for block in range(problem.n_folds):
            without = fit_list(problem, block, fitted.chosen, fitted.settings)
            verdicts.append(self._verdict(block, without))
            selecting = problem.judging(block)
            group, offset, label = without.assign(problem.codes[selecting]), problem.base[selecting], self.rows.label
            served = offset + problem.design.take(selecting).grouped_logits(without.corrections, group)
            gains.append(row_losses(offset, label[selecting]) - row_losses(served, label[selecting]))
            weights.append(problem.weight[selecting])
        in_fixed_regions = paired_mean(np.concatenate(gains), np.concatenate(weights))[0]
        share = fitted.held_out_gain / in_fixed_regions if in_fixed_regions > 0 else 0.0
        compared = cross_fitted_rows(verdicts, n_groups, self.rows, self.decisions)
        return replace(compared, honest_share=float(np.clip(share, 0.0, 1.0)))

    def _verdict(self, block: int, fitted: ExceptionList) -> FoldVerdict:
        """What the classifiers of a fold say about its rows."""
        held = self.held_out.fold == block
        members = np.flatnonzero(held if self.held_out.n_folds > 1 else held & self.held_out.calibrates)
        offset, design = self.problem.base[members], self.problem.design.take(members)
        logits = [offset + design.logits(correction) for correction in fitted.corrections]
        group = fitted.assign(self.problem.codes[members])
        return FoldVerdict(members, group, np.stack(logits, axis=1), offset, np.arange(len(logits)))


# ---- a network ----


def check_jax_is_installed() -> None:
    """Refuse to train a network without JAX, before anything is fitted; prediction does without."""
    if importlib.util.find_spec("jax") is None or importlib.util.find_spec("optax") is None:
        raise InputError("Networks are trained with JAX, which is not installed: pip install 'dafh[network]'.")


def learn_network(
    exceptions: LearnedExceptions,
    rows: LabelledRows,
    n_groups: int,
    recipe: Recipe,
    seeds: tuple[np.random.SeedSequence, np.random.SeedSequence],
    verbose: int,
) -> LearnedGroups:
    """Train the paper's group network jointly with its classifiers, from the start that the recipe asks for."""
    from dafh.groups.network import Start, fit_population  # It imports JAX, which the rest of the package does without.

    fitted, base, decisions = exceptions.fitted, exceptions.problem.base, exceptions.decisions
    held_out = _held_out_of_network(exceptions.held_out, recipe)
    group, start = _groups_to_start_from(exceptions, n_groups, recipe, rows), None
    if group is not None:
        n_groups = int(group.max()) + 1
        start = Start(group, *_first_corrections(exceptions, group, recipe, rows))
    population = fit_population(
        recipe,
        n_groups,
        rows,
        base,
        held_out,
        start=start,
        seeds=seeds,
        verbose=verbose,
    )
    return LearnedGroups(
        population.model,
        fitted.candidates,
        lambda: population.cross_fitted_rows(rows, base, held_out, decisions),
        decisions,
        population,
        exceptions,
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


def _groups_to_start_from(
    exceptions: LearnedExceptions, n_groups: int, recipe: Recipe, rows: LabelledRows
) -> NDArray[np.intp] | None:
    """Group of each row; None where groups start at random."""
    problem, chosen = exceptions.problem, exceptions.fitted.chosen
    if recipe.start == "exceptions" and chosen.exceptions:
        return chosen.assign(problem.codes)
    if recipe.start == "clusters":
        # GEORGE clusters what a network has made of the columns; a linear classifier leaves them as they are.
        standardized = Standardization.of(rows.numbers, rows.weight).of_rows(rows.numbers)
        clusters = KMeans(n_groups, n_init=4, random_state=0).fit(standardized, sample_weight=rows.weight)
        return clusters.labels_.astype(np.intp)
    if recipe.start == "errors":
        if n_groups != 2:
            raise InputError(f'start="errors" makes two groups, right and wrong: n_groups must be 2, got {n_groups}.')
        return (decide(problem.base) != rows.label).astype(np.intp)
    return None


def _first_corrections(
    exceptions: LearnedExceptions, group: NDArray[np.intp], recipe: Recipe, rows: LabelledRows
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Linear corrections of the pooled logits in each group, fitted without each fold and on all rows."""
    problem, held_out = exceptions.problem, exceptions.held_out
    design = CorrectionDesign("columns", exceptions.seen, rows.weight, problem.base)
    n_groups, n_outputs = int(group.max()) + 1, problem.base.shape[1]
    weight = np.zeros((held_out.n_folds + 1, n_groups, rows.numbers.shape[1], n_outputs))
    bias = np.zeros((held_out.n_folds + 1, n_groups, n_outputs))
    # Rows that the pooled classifier gets wrong have the opposite of it as their best correction, which harms most rows
    # that only look like them.
    if not design.has_columns or recipe.start == "errors":
        return weight, bias
    regression, settings = replace(problem, design=design.design).regression, exceptions.fitted.settings
    penalty = np.full(design.design.n_coefficients, _STRENGTH_TO_START if settings is None else settings.strength)
    for block in range(held_out.n_folds + 1):
        trains = (held_out.fold != block) | (block == held_out.n_folds)
        parts = [regression.take(np.flatnonzero(trains & (group == k))) for k in range(n_groups)]
        solved = [fit_penalized(part, penalty, free_intercept=False, tolerance=1e-6).coefficients for part in parts]
        served = design.served(np.stack(solved))
        assert isinstance(served, LinearCorrections)
        weight[block], bias[block] = served.weight, served.intercept
    return weight, bias
