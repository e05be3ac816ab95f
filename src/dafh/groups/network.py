"""Train a population of group networks on checked rows, and keep the best of it: the way into `dafh.engine`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.preprocessing import StandardScaler

from dafh.classifiers.fitting import FEWEST_ROWS_TO_SPLIT
from dafh.classifiers.logits import decide, residual
from dafh.evaluation.paired import ComparedRows, PairedCounts
from dafh.exceptions import InputError
from dafh.groups.cuts import Cuts, find_cuts
from dafh.groups.recipe import Recipe
from dafh.groups.serving import CorrectionModel, Linear, Standardization
from dafh.progress import epoch_reporter
from dafh.rows.checked import CheckedRows
from dafh.rows.held_out import HeldOut

if TYPE_CHECKING:  # The engine imports JAX, which only training needs.
    from dafh.engine.objective import Rows, Settings
    from dafh.engine.population import TrainingRecord
    from dafh.engine.selection import Selection

# Rows on which the groups of two models are compared: enough to tell which group is which.
_ROWS_TO_MATCH = 20_000
# Cuts are filled up to a multiple of this with zeros, so that data of one width share a compiled program.
_CUTS_AT_A_TIME = 16


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

    def cross_fitted_counts(self, rows: CheckedRows, base: NDArray[np.float64], held_out: HeldOut) -> PairedCounts:
        """Count what calibration rows say about models that were trained without them.

        The models of two folds number their groups in any order. Those of each fold get the numbers of the final model
        here, by the rows that they share; without that, counts of different groups would be added up.
        """
        n_groups = self.model.n_groups
        total = PairedCounts.zero(n_groups, n_groups)
        for fold, model in enumerate(self.folds):
            members = held_out.calibration(fold)
            if not len(members):
                continue
            X, label, pooled_logits = rows.X[members], rows.label[members], base[members]
            place = matched_groups(model, self.model, rows.X)
            outputs = model.logits(X)[:, np.argsort(place)]
            labels = decide(outputs + (pooled_logits[:, None] if model.pooled == "added" else 0.0))
            pooled = decide(pooled_logits)
            compared = ComparedRows(
                right=np.column_stack([labels == label[:, None], pooled == label]),
                differ=labels != pooled[:, None],
                group=place[model.group_logits(X).argmax(axis=1)],
                own=np.arange(n_groups),
                weight=rows.weight[members],
            )
            total = total.plus(compared.paired_counts())
        return total


def matched_groups(model: CorrectionModel, other: CorrectionModel, X: NDArray[Any]) -> NDArray[np.intp]:
    """For each group of one model, the group of the other that it shares most rows with, one to one."""
    # Every so many rows, not the first ones: files are often sorted.
    sample = X[:: max(len(X) // _ROWS_TO_MATCH, 1)]
    groups = (one.group_logits(sample).argmax(axis=1) for one in (model, other))
    shared = np.zeros((model.n_groups, other.n_groups))
    np.add.at(shared, tuple(groups), 1)
    return linear_sum_assignment(shared, maximize=True)[1]


def fit_population(
    recipe: Recipe,
    n_groups: int,
    rows: CheckedRows,
    base: NDArray[np.float64],
    held_out: HeldOut,
    *,
    linear_base: Linear | None,
    start_seed: np.random.SeedSequence,
    batch_seed: np.random.SeedSequence,
    verbose: int = 0,
) -> FittedPopulation:
    """Train every start on all rows and, beside that, without each fold; choose by the rows of the folds.

    Parameters
    ----------
    base : array of shape (n, m)
        Logits of the pooled classifier, which the own classifiers correct.
    linear_base : linear classifier or None
        The pooled classifier, where serving can take it into the same matrix product.
    """
    # JAX is needed from here on; imported here, the rest of the package does without it.
    from dafh.engine.population import Plan, init_population, train_population
    from dafh.engine.selection import Selection

    view = _NetworkInput.learn(rows, base, recipe.group_cuts)
    warm = recipe.start == "warm"
    engine_rows = _engine_rows(rows, base, view, held_out, warm=warm)
    plan = Plan(
        group_sizes=(engine_rows.x.shape[1], *recipe.group_hidden, n_groups),
        classifier_sizes=(rows.X.shape[1], *recipe.classifier_hidden, base.shape[1]),
        surrogate=recipe.surrogate,
        optimizer=recipe.optimizer,
        momentum=recipe.momentum,
        alternate=recipe.alternate,
    )
    # Noise is relative to the spread of the pooled logit. A pooled classifier that knows nothing has none, and noise
    # relative to that would break no symmetry: a spread of 1 then.
    spread = max(float(base.std(axis=0).mean()), 1.0) if warm else 1.0
    grid = recipe.grid()
    max_epochs, patience = recipe.schedule(len(rows))
    rule = Selection(held_out.n_folds, recipe.weight_of_pr(n_groups), patience, last=recipe.select == "last")
    with epoch_reporter(max_epochs, verbose, rule) as report:
        record = train_population(
            engine_rows,
            type(engine_rows)(*(field[held_out.selection] for field in engine_rows)),
            init_population(plan, grid["noise"] * spread, start_seed, n_blocks=held_out.n_folds + 1),
            _engine_settings(grid, held_out.n_folds),
            plan,
            batch_size=recipe.batch_size,
            max_epochs=max_epochs,
            rng=np.random.default_rng(batch_seed),
            final_rate=recipe.final_rate,
            average_steps=recipe.average_steps,
            should_stop=rule.should_stop,
            on_epoch=report,
            keep=rule.is_newest_best,
        )
    return _keep_best(record, rule, grid, view, warm=warm, linear_base=linear_base)


@dataclass(frozen=True, eq=False)
class _NetworkInput:
    """How the networks see the rows: standardised columns for all, and cuts through them for the group network."""

    scaler: StandardScaler
    cuts: Cuts
    above: Standardization

    @classmethod
    def learn(cls, rows: CheckedRows, base: NDArray[np.float64], most_cuts: int) -> "_NetworkInput":
        scaler = StandardScaler().fit(rows.X, sample_weight=rows.weight)
        enough = len(rows) >= FEWEST_ROWS_TO_SPLIT  # Merged rows say nothing about where errors change.
        cuts = find_cuts(rows.X, residual(base, rows.label), rows.weight, most_cuts if enough else 0)
        share = np.average(cuts.above(rows.X), axis=0, weights=rows.weight)
        return cls(scaler, cuts, Standardization(share, np.sqrt(share * (1 - share))))

    def __call__(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Columns, cuts, and zeros up to a round number: programs are compiled for few widths."""
        n_columns, n_cuts = X.shape[1], len(self.cuts)
        seen = np.zeros((len(X), n_columns + -(-n_cuts // _CUTS_AT_A_TIME) * _CUTS_AT_A_TIME), np.float32)
        seen[:, :n_columns] = self.scaler.transform(X)
        seen[:, n_columns : n_columns + n_cuts] = (self.cuts.above(X) - self.above.center) / self.above.scale
        return seen


def _engine_settings(grid: dict[str, NDArray[np.float64]], n_folds: int) -> "Settings":
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
    )


def _engine_rows(
    rows: CheckedRows, base: NDArray[np.float64], view: _NetworkInput, held_out: HeldOut, *, warm: bool
) -> "Rows":
    from dafh.engine.objective import Rows

    return Rows(
        x=view(rows.X),
        label=rows.label.astype(np.int32),
        base=(base if warm else np.zeros_like(base)).astype(np.float32),
        pooled_right=(decide(base) == rows.label).astype(np.float32),
        # A mean weight of 1: the learning rates then mean the same whatever the unit of the weights.
        weight=(rows.weight / rows.weight.mean()).astype(np.float32),
        fold=held_out.fold,
    )


def _keep_best(
    record: "TrainingRecord",
    rule: "Selection",
    grid: dict[str, NDArray[np.float64]],
    view: _NetworkInput,
    *,
    warm: bool,
    linear_base: Linear | None,
) -> FittedPopulation:
    # One replica that survives is enough; the others count as infinitely bad.
    values = rule.criterion(record.curves)
    if not np.isfinite(values).any():
        raise InputError(
            "Training diverged in every replica: bring the columns of X to ordinary scales, or lower the "
            "learning rates."
        )
    choice = rule.choose(record.curves)
    judged = rule.judged(record.curves)
    replicas = np.arange(len(grid["penalty"]))

    def model(block: int, linear: Linear | None) -> CorrectionModel:
        parameters = record.parameters(block * len(replicas) + choice.replica, choice.epoch)
        columns = Standardization(view.scaler.mean_, view.scaler.scale_)
        return CorrectionModel.from_parameters(
            parameters, columns, view.cuts, view.above, warm=warm, linear_base=linear
        )

    best = values.argmin(axis=0)
    population = pd.DataFrame(grid, index=pd.RangeIndex(len(replicas), name="replica")).assign(
        best_epoch=best + 1,
        **{name: judged[name][best, replicas] for name in judged if name.startswith("selection_")},
        chosen=replicas == choice.replica,
    )
    epochs = pd.RangeIndex(1, len(record.checkpoints) + 1, name="epoch")
    return FittedPopulation(
        model=model(rule.n_folds, linear_base),
        # Cross-fitting brings the pooled logits of its own folds along: the linear base is of all rows.
        folds=tuple(model(fold, None) for fold in range(rule.n_folds)),
        history=pd.DataFrame({name: curve[:, choice.replica] for name, curve in judged.items()}, epochs),
        population=population,
        best_epoch=choice.epoch + 1,
    )
