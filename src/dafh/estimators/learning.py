"""Learn groups on checked rows: as a list of exceptions, or by a network that starts at one."""

import importlib.util
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from dafh.classifiers import class_probabilities, decide, logits
from dafh.columns.bins import Binning
from dafh.estimators.pooled import PooledFit, choose_n_folds, observe_decisions, out_of_fold_pooled_logits
from dafh.evaluation.compared import ComparedRows
from dafh.exceptions import InputError
from dafh.frames import take_rows
from dafh.groups.corrections import CorrectionDesign, LinearCorrections
from dafh.groups.exceptions import ExceptionRows, FittedExceptions, fit_exceptions, fit_list, paired_mean
from dafh.groups.judging import compare_rows
from dafh.groups.recipe import Recipe
from dafh.groups.trained import ExceptionModel, TrainedGroups
from dafh.linear.designs import Standardization
from dafh.linear.newton import fit_penalized, row_losses
from dafh.linear.scorecard import Scorecard
from dafh.rows import EncodedRows, HeldOut, LabelledRows
from dafh.text import percent

if TYPE_CHECKING:  # It imports JAX, which only training needs.
    from dafh.groups.network import FittedPopulation

# One fold of several is divided between choice and guard only where its rows cannot do both. Rows that choose decide
# more than rows that judge: of 0.3 and 0.5 for the guard, 0.3 gained 0.1 points more on Arrest.
_SHARE_OF_GUARD = 0.3
_SHARE_OF_ONE_FOLD = 0.2
# Beside a single fold, all other rows are divided into so many, for logits out of fold.
_TRAINING_FOLDS = 4
# Bins by column in which regions are searched for, cut at readable numbers. With 24, an effect that turned round at 5
# left a sliver on the wrong side of the cut, which became a group of its own.
_REGION_BINS = 64
# Penalty of the corrections that a network starts from, where exceptions have not chosen one.
_STRENGTH_TO_START = 50.0


@dataclass(frozen=True, eq=False)
class LearnedGroups:
    """The groups of a fit, and the rows they were learned from."""

    model: TrainedGroups
    """Exceptions or a network, as they are served."""
    fitted: FittedExceptions
    """The list that was chosen, also where a network started from it."""
    problem: ExceptionRows
    design: CorrectionDesign
    held_out: HeldOut
    encoded: EncodedRows
    rows: LabelledRows
    cutoff: float
    """Probability above which own classifiers predict the second of two classes."""
    pooled_label: NDArray[np.intp]
    """What the pooled classifier predicts for each row, where it is judged."""
    population: "FittedPopulation | None" = None
    """How a network was trained, if one was."""

    def judged(self) -> ComparedRows:
        """Rows for the guard, each with classifiers that were fitted without it.

        Exactly the regions that are printed are judged, with coefficients fitted without each fold. The regions have
        seen all rows, and look better on them than they are. By how much, lists say that were grown without each fold:
        the share of the log-loss gain that is left with those is the share that counts.
        """
        problem, n_groups = self.problem, self.model.n_groups
        if self.population is not None:
            judging, group, own_logits = self.population.cross_fitted(self.rows, problem.base, self.held_out)
            return compare_rows(self.rows, judging, group, own_logits, problem.base, self.pooled_label, self.cutoff)
        chosen, settings = self.fitted.chosen, self.fitted.settings
        group = np.zeros(len(self.rows), np.intp)
        own_logits = np.repeat(problem.base[:, None], n_groups, axis=1)
        served = problem.base.copy()
        for block in range(problem.n_folds):
            without = chosen if settings is None else fit_list(problem, block, chosen, settings)
            members = np.flatnonzero(problem.fold == block)
            group[members] = without.assign(problem.codes[members])
            design = problem.design.take(members)
            own_logits[members] += np.stack([design.logits(part) for part in without.corrections], axis=1)
            served[members] += design.grouped_logits(without.corrections, group[members])
        # A fold that chooses nothing has no list to judge.
        judges = (self.held_out.fold >= 0) & (problem.n_folds > 0)
        judging = np.flatnonzero(judges if self.held_out.n_folds > 1 else judges & self.held_out.calibrates)
        compared = compare_rows(self.rows, judging, group, own_logits, problem.base, self.pooled_label, self.cutoff)
        if settings is None or not problem.n_folds:
            return compared
        choosing = np.flatnonzero(problem.selects)
        losses, served_losses = (row_losses(values, problem.label)[choosing] for values in (problem.base, served))
        gain_in_regions = paired_mean(losses - served_losses, problem.weight[choosing])[0]
        share = self.fitted.held_out_gain / gain_in_regions if gain_in_regions > 0 else 0.0
        return replace(compared, honest_share=float(np.clip(share, 0.0, 1.0)))

    def replacement(self) -> str:
        """Say what giving up a model that the user brought would bring: a scorecard of the same rows, held out."""
        held_out, training = (np.flatnonzero(side) for side in (self.problem.fold == 0, self.problem.fold != 0))
        rows, features, base = self.rows.take(training), self.encoded.features, self.problem.base[held_out]
        label, weight = self.rows.label[held_out], self.rows.weight[held_out]
        scorecard = Scorecard(threshold=self.cutoff)
        scorecard.fit(take_rows(features, training), rows.y, rows.fit_weight)
        new = logits(class_probabilities(scorecard, take_rows(features, held_out), rows.classes))
        decided = decide(new, self.cutoff), self.pooled_label[held_out]
        errors = [float(np.average(labels != label, weights=weight)) for labels in decided]
        losses = [float(np.average(row_losses(values, label), weights=weight)) for values in (new, base)]
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
    calibrates: bool,
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
    calibrates : bool
        Whether the rows of the folds are needed by the guard as well.
    threshold : float or None
        Cut-off of own classifiers; None: that of the pooled one.
    rng : Generator
        Draws the folds.
    seeds : two seed sequences
        For the start of a network, and for its batches.
    """
    encoded = pooled.encoding.encode(rows.X, None if pooled.sums is None else pooled.sums.design.codes)
    held_out = _draw_folds(rows, unfitted, recipe, _SHARE_OF_GUARD if calibrates else 0.0, rng)
    fold = _all_folds(held_out, rows, rng)
    base = out_of_fold_pooled_logits(unfitted, pooled, rows, encoded, fold)
    cutoff, pooled_label = observe_decisions(unfitted, pooled, rows, encoded, base, threshold)
    design = CorrectionDesign(pooled.kind, encoded, rows.weight, base)
    binning = Binning.learn(encoded.features, rows.weight, _REGION_BINS, readable=True)
    in_folds = held_out.fold >= 0
    problem = ExceptionRows(
        binning=binning,
        codes=binning.codes(encoded.features),
        label=rows.label,
        weight=rows.weight,
        base=base,
        design=design.design,
        fold=fold,
        # Every held-out row chooses the list, but where there is one fold only: that is divided.
        selects=in_folds if held_out.n_folds > 1 else in_folds & ~held_out.calibrates,
        may_correct_all=pooled.kind == "logits",
        person=rows.person,
    )
    # A network that starts at random needs no exceptions.
    needed = method == "exceptions" or recipe.start == "exceptions"
    fitted = fit_exceptions(problem, n_groups if needed else 1)
    model = ExceptionModel(fitted.chosen.regions(binning), design.served(fitted.chosen.corrections))
    learned = LearnedGroups(model, fitted, problem, design, held_out, encoded, rows, cutoff, pooled_label)
    return learned if method == "exceptions" else learn_network(learned, n_groups or 2, recipe, seeds, verbose)


def _draw_folds(
    rows: LabelledRows, unfitted: Any, recipe: Recipe, calibration: float, rng: np.random.Generator
) -> HeldOut:
    """Divide the rows into folds; of each, one part chooses and the share `calibration` is kept for the guard.

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
    spread = order % n_folds if n_folds > 1 else held_out.n_folds + order % _TRAINING_FOLDS
    return np.unique(np.where(held_out.fold < 0, spread, held_out.fold), return_inverse=True)[1]


# ---- a network ----


def check_jax_is_installed() -> None:
    """Refuse to train a network without JAX, before anything is fitted; prediction does without."""
    if importlib.util.find_spec("jax") is None or importlib.util.find_spec("optax") is None:
        raise InputError("Networks are trained with JAX, which is not installed: pip install 'dafh[network]'.")


def learn_network(
    learned: LearnedGroups,
    n_groups: int,
    recipe: Recipe,
    seeds: tuple[np.random.SeedSequence, np.random.SeedSequence],
    verbose: int,
) -> LearnedGroups:
    """Train the paper's group network jointly with its classifiers, from the start that the recipe asks for."""
    from dafh.groups.network import Start, fit_population  # It imports JAX, which the rest of the package does without.

    rows, held_out = replace(learned.rows, numbers=learned.encoded.numbers), learned.held_out
    # Where one replica has several folds, all held-out rows choose its epoch and judge it, each fold with the epoch
    # that the other folds choose. With 30% of each fold for the guard alone, it gave 0.4 of 0.9 points of gain back on
    # Arrest (two groups, twelve development splits). Several replicas may have quite different groups, and folds that
    # choose different ones would judge groups that the model does not have: there the rows of each fold are divided.
    if held_out.n_folds > 1 and recipe.n_replicas == 1 and recipe.select == "best":
        held_out = held_out.shared()
    learned = replace(learned, rows=rows, held_out=held_out)
    group, start = _groups_to_start_from(learned, n_groups, recipe), None
    if group is not None:
        n_groups = int(group.max()) + 1
        start = Start(group, *_first_corrections(learned, group, recipe))
    population = fit_population(
        recipe, n_groups, rows, learned.problem.base, held_out, start=start, seeds=seeds, verbose=verbose
    )
    return replace(learned, model=population.model, population=population)


def _groups_to_start_from(learned: LearnedGroups, n_groups: int, recipe: Recipe) -> NDArray[np.intp] | None:
    """Group of each row; None where groups start at random."""
    problem, chosen, rows = learned.problem, learned.fitted.chosen, learned.rows
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
    learned: LearnedGroups, group: NDArray[np.intp], recipe: Recipe
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Linear corrections of the pooled logits in each group, fitted without each fold and on all rows."""
    problem, held_out, rows = learned.problem, learned.held_out, learned.rows
    design = CorrectionDesign("columns", learned.encoded, rows.weight, problem.base)
    n_groups, n_outputs = int(group.max()) + 1, problem.base.shape[1]
    weight = np.zeros((held_out.n_folds + 1, n_groups, rows.numbers.shape[1], n_outputs))
    bias = np.zeros((held_out.n_folds + 1, n_groups, n_outputs))
    # Rows that the pooled classifier gets wrong have the opposite of it as their best correction, which harms most rows
    # that only look like them.
    if not design.has_columns or recipe.start == "errors":
        return weight, bias
    regression, settings = replace(problem, design=design.design).regression, learned.fitted.settings
    penalty = np.full(design.design.n_coefficients, _STRENGTH_TO_START if settings is None else settings.strength)
    for block in range(held_out.n_folds + 1):
        trains = (held_out.fold != block) | (block == held_out.n_folds)
        regressions = [regression.take(np.flatnonzero(trains & (group == k))) for k in range(n_groups)]
        solved = [fit_penalized(rows, penalty, free_intercept=False, tolerance=1e-6) for rows in regressions]
        served = design.served(np.stack([solution.coefficients for solution in solved]))
        assert isinstance(served, LinearCorrections)
        weight[block], bias[block] = served.weight, served.intercept
    return weight, bias
