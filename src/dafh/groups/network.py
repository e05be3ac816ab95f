"""Train a population of group networks on checked rows, and keep the best of it: the way into `dafh.engine`.

Replicas come in blocks: those of block f hold out fold f, and those of the last block train on all rows. What was
learned from labels before (pooled logits, the tree whose questions the group network sees, the corrections it starts
from) is made once for each block, without the rows that the block holds out. So no row judges what it has taught.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from dafh.classifiers.logits import decide
from dafh.evaluation.paired import ComparedRows
from dafh.exceptions import InputError
from dafh.groups.judging import ROWS_TO_MATCH, Decisions, FoldVerdict, cross_fitted_rows, matched_groups
from dafh.groups.recipe import Recipe
from dafh.groups.trained import CorrectionModel
from dafh.linear.designs import Standardization
from dafh.progress import epoch_reporter
from dafh.rows.checked import CheckedRows
from dafh.rows.held_out import HeldOut

if TYPE_CHECKING:  # The engine imports JAX, which only training needs.
    from dafh.engine.networks import Parameters
    from dafh.engine.objective import Rows, Settings
    from dafh.engine.population import Plan, TrainingRecord
    from dafh.engine.selection import Choice, Selection

# Answers are filled up to a multiple of this with zeros, so that trees of similar size share a compiled program.
_ANSWERS_AT_A_TIME = 16


@dataclass(frozen=True, eq=False)
class NetworkStart:
    """What the network of one block sees beside the columns, and the groups and classifiers it starts from."""

    answers: NDArray[np.bool_]
    """Answers of every row to the questions (splits) of the block's tree, (n, s); s may be 0."""
    leaves: tuple[tuple[tuple[int, bool], ...], ...]
    """For each leaf the questions on its path, with the answers that lead to it; none: the groups start at random."""
    group: NDArray[np.intp]
    """Group of each leaf."""
    weight: NDArray[np.float64]
    """Corrections of the pooled logits in the units of the columns, (K, d, m)."""
    bias: NDArray[np.float64]
    """(K, m)."""
    elsewhere: float = 0.0
    """What a row counts for the classifiers of other groups; they are held near the pooled one there."""


@dataclass(frozen=True, eq=False)
class FittedPopulation:
    """The model chosen, the models of its folds, and how they came about."""

    model: CorrectionModel
    folds: tuple[CorrectionModel, ...]
    """The same start trained without each fold; none where nothing was held out."""
    history: pd.DataFrame
    population: pd.DataFrame
    best_epoch: int
    """Counted from 1."""

    def cross_fitted_rows(
        self,
        rows: CheckedRows,
        base: NDArray[np.float64],
        held_out: HeldOut,
        starts: Sequence[NetworkStart] | None,
        decisions: Decisions,
    ) -> ComparedRows:
        """Compare, on calibration rows, models that were trained without them.

        The models of two folds number their groups in any order. Those of each fold get the numbers of the final model
        here, by the rows that they share; without that, rows of different groups would be put together.

        Parameters
        ----------
        rows, base, held_out, starts
            As `fit_population` was given them.
        """
        n_groups = self.model.n_groups
        # Every so many rows, not the first ones: files are often sorted.
        sample = np.arange(0, len(rows), max(len(rows) // ROWS_TO_MATCH, 1))
        final = self.model.group_logits(rows.X[sample], _answers(starts, -1, sample)).argmax(axis=1)
        verdicts = []
        for fold, model in enumerate(self.folds):
            members = held_out.calibration(fold)
            here = model.group_logits(rows.X[sample], _answers(starts, fold, sample)).argmax(axis=1)
            pooled = base[fold, members]
            if not len(members):
                continue
            verdicts.append(
                FoldVerdict(
                    members,
                    model.group_logits(rows.X[members], _answers(starts, fold, members)).argmax(axis=1),
                    model.logits(rows.X[members]) + (pooled[:, None] if model.contains_pooled else 0.0),
                    pooled,
                    matched_groups(here, final, n_groups),
                )
            )
        return cross_fitted_rows(verdicts, n_groups, rows, decisions)


def check_jax_is_installed() -> None:
    """Refuse to train a network without JAX, before anything is fitted; prediction does without."""
    if importlib.util.find_spec("jax") is None or importlib.util.find_spec("optax") is None:
        raise InputError("Networks are trained with JAX, which is not installed: pip install 'dafh[network]'.")


def fit_population(
    recipe: Recipe,
    n_groups: int,
    rows: CheckedRows,
    base: NDArray[np.float64],
    held_out: HeldOut,
    *,
    starts: Sequence[NetworkStart] | None,
    start_seed: np.random.SeedSequence,
    batch_seed: np.random.SeedSequence,
    verbose: int = 0,
) -> FittedPopulation:
    """Train every start on all rows and, beside that, without each fold; choose by the rows of the folds.

    Parameters
    ----------
    base : array of shape (n_folds + 1, n, m)
        Logits of the pooled classifier, which the own classifiers correct, for each block. Those of block f come from
        classifiers that never saw the rows of fold f; the last block is for the models trained on all rows.
    starts : sequence of n_folds + 1 NetworkStart, or None
        What each block starts from. None, or a recipe that starts cold: at random, and without answers.
    """
    # JAX is needed from here on; imported here, the rest of the package does without it.
    from dafh.engine.population import train_population
    from dafh.engine.selection import Selection

    warm = recipe.start != "cold"
    starts = starts if recipe.start == "exceptions" else None
    scaler = StandardScaler().fit(rows.X, sample_weight=rows.weight)
    columns = Standardization(scaler.mean_, scaler.scale_)
    seen = _engine_rows(rows, base, starts, scaler.transform(rows.X), held_out, warm=warm)
    plan = _plan(recipe, n_groups, seen, n_outputs=base.shape[-1])
    grid = recipe.grid()
    max_epochs, patience = recipe.schedule(len(rows), from_exceptions=starts is not None)
    last, weight_of_pr = recipe.select == "last", recipe.weight_of_pr(n_groups)
    rule = Selection(held_out.n_folds, weight_of_pr, patience, last=last, all_choose=held_out.all_choose)
    elsewhere = [0.0] * len(base) if starts is None else [start.elsewhere for start in starts]
    settings = _engine_settings(grid, held_out.n_folds, elsewhere)
    with epoch_reporter(max_epochs, verbose, rule) as report:
        record = train_population(
            seen,
            type(seen)(*(field[held_out.selection] for field in seen)),
            _first_parameters(plan, grid["noise"], base, starts, columns, start_seed, warm=warm),
            settings,
            plan,
            batch_size=recipe.batch_size,
            max_epochs=max_epochs,
            rng=np.random.default_rng(batch_seed),
            final_rate=recipe.final_rate,
            average_steps=recipe.average_steps,
            should_stop=rule.should_stop,
            on_epoch=report,
            keep=rule.epochs_in_use,
        )
    choices = _choose(record, rule)

    def served(block: int) -> CorrectionModel:
        replica, epoch = choices[block]
        parameters = record.parameters(block * recipe.n_replicas + replica, epoch)
        n_answers = 0 if starts is None else starts[block].answers.shape[1]
        return CorrectionModel.from_parameters(parameters, columns, n_answers, contains_pooled=warm)

    return FittedPopulation(
        model=served(held_out.n_folds),
        folds=tuple(served(block) for block in range(held_out.n_folds)),
        history=_history(record, rule, choices[-1]),
        population=_population(record, rule, choices[-1], grid),
        best_epoch=choices[-1].epoch + 1,
    )


# ---- what goes into the engine ----


def _answers(starts: Sequence[NetworkStart] | None, block: int, rows: NDArray[np.intp]) -> NDArray[np.bool_] | None:
    return None if starts is None else starts[block].answers[rows]


def _plan(recipe: Recipe, n_groups: int, rows: "Rows", n_outputs: int) -> "Plan":
    from dafh.engine.population import Plan

    n_columns = rows.x.shape[1]
    return Plan(
        group_sizes=(n_columns + rows.answers.shape[-1], *recipe.group_hidden, n_groups),
        classifier_sizes=(n_columns, *recipe.classifier_hidden, n_outputs),
        surrogate=recipe.surrogate,
        optimizer=recipe.optimizer,
        momentum=recipe.momentum,
        alternate=recipe.alternate,
        anchor_moves_groups=recipe.anchor_moves_groups,
    )


def _engine_rows(
    rows: CheckedRows,
    base: NDArray[np.float64],
    starts: Sequence[NetworkStart] | None,
    standardized: NDArray[Any],
    held_out: HeldOut,
    *,
    warm: bool,
) -> "Rows":
    from dafh.engine.objective import Rows

    widest = max((start.answers.shape[1] for start in starts or ()), default=0)
    width = -(-widest // _ANSWERS_AT_A_TIME) * _ANSWERS_AT_A_TIME
    answers = np.zeros((len(rows), len(base), width), np.int8)
    for block, start in enumerate(starts or ()):
        answers[:, block, : start.answers.shape[1]] = start.answers
    return Rows(
        x=standardized.astype(np.float32),
        answers=answers,
        label=rows.label.astype(np.int32),
        base=np.moveaxis(base if warm else np.zeros_like(base), 0, 1).astype(np.float32),
        pooled_right=(decide(base) == rows.label).T.astype(np.float32),
        # A mean weight of 1: the learning rates then mean the same whatever the unit of the weights.
        weight=(rows.weight / rows.weight.mean()).astype(np.float32),
        fold=held_out.fold,
    )


def _first_parameters(
    plan: "Plan",
    noise: NDArray[np.float64],
    base: NDArray[np.float64],
    starts: Sequence[NetworkStart] | None,
    columns: Standardization,
    seed: np.random.SeedSequence,
    *,
    warm: bool,
) -> "Parameters":
    from dafh.engine.networks import Start
    from dafh.engine.population import init_population

    # Noise is relative to the spread of the pooled logit. A pooled classifier that knows nothing has none, and noise
    # relative to that would break no symmetry: a spread of 1 then.
    spread = np.maximum(base.std(axis=1).mean(axis=1), 1.0) if warm else np.ones(len(base))
    scales = spread[:, None] * noise
    if starts is None:
        return init_population(plan, scales, seed, [None] * len(base))
    # The groups of a tree break the symmetry as they are: the first replica starts at the exact solution.
    scales[[bool(start.leaves) for start in starts], 0] = 0
    given = [
        Start(
            leaves=start.leaves,
            group=start.group,
            weight=start.weight * columns.scale[:, None],
            bias=start.bias + np.einsum("d,kdm->km", columns.center, start.weight),
        )
        for start in starts
    ]
    return init_population(plan, scales, seed, given)


def _engine_settings(grid: dict[str, NDArray[np.float64]], n_folds: int, elsewhere: Sequence[float]) -> "Settings":
    """Repeat the settings of the replicas for every fold, and once more for the models trained on all rows."""
    from dafh.engine.objective import Settings

    repeated = {name: np.tile(values, n_folds + 1) for name, values in grid.items()}
    return Settings(
        envy_weight=repeated["envy_weight"],
        penalty=repeated["penalty"],
        temperature=repeated["temperature"],
        anchor=repeated["anchor"],
        shrinkage=repeated["shrinkage"],
        group_rate=repeated["group_learning_rate"],
        classifier_rate=repeated["classifier_learning_rate"],
        held_out=np.repeat([*range(n_folds), -1], len(grid["penalty"])),
        elsewhere=np.repeat(elsewhere, len(grid["penalty"])),
    )


# ---- what comes out of it ----


def _choose(record: "TrainingRecord", rule: "Selection") -> "list[Choice]":
    # One replica that survives is enough; the others count as infinitely bad.
    if not np.isfinite(rule.criterion(record.curves)).any():
        raise InputError(
            "Training diverged in every replica: bring the columns of X to ordinary scales, or lower the "
            "learning rates."
        )
    return rule.choose_by_block(record.curves)


def _history(record: "TrainingRecord", rule: "Selection", choice: "Choice") -> pd.DataFrame:
    epochs = pd.RangeIndex(1, len(record.checkpoints) + 1, name="epoch")
    judged = rule.judged(record.curves)
    return pd.DataFrame({name: curve[:, choice.replica] for name, curve in judged.items()}, epochs)


def _population(
    record: "TrainingRecord", rule: "Selection", choice: "Choice", grid: dict[str, NDArray[np.float64]]
) -> pd.DataFrame:
    replicas = np.arange(len(grid["penalty"]))
    judged, best = rule.judged(record.curves), rule.criterion(record.curves).argmin(axis=0)
    return pd.DataFrame(grid, index=pd.RangeIndex(len(replicas), name="replica")).assign(
        best_epoch=best + 1,
        **{name: judged[name][best, replicas] for name in judged if name.startswith("selection_")},
        chosen=replicas == choice.replica,
    )
