"""Train a population of group networks on checked rows, and keep the best of it."""

from dataclasses import dataclass
from typing import Any

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
from dafh.groups.recipe import check_hidden, replica_grid
from dafh.groups.serving import CorrectionModel, Standardization
from dafh.progress import epoch_reporter
from dafh.rows.checked import TrainingRows
from dafh.rows.held_out import HeldOut

# Varied first, so that even a small population has several values of them.
_VARIED = (
    "anchor",
    "classifier_learning_rate",
    "envy_weight",
    "group_learning_rate",
    "temperature",
    "noise",
    "penalty",
    "shrinkage",
)
# Rows on which the groups of two models are compared: enough to know which is which.
_ROWS_TO_MATCH = 20_000
# A row has as many classifiers to envy as there are groups: those of the other groups, and the pooled one.
_PR_WEIGHT_PER_RIVAL = 0.02
# Cuts are filled up to a multiple of this with zeros, so that data of one width share a compiled program.
_CUTS_AT_A_TIME = 16


@dataclass(frozen=True)
class Recipe:
    """How a population is trained: what the parameters of the estimator say, checked."""

    n_groups: int
    n_replicas: int
    max_epochs: int | str
    patience: int | str
    batch_size: int
    group_hidden: tuple[int, ...]
    group_cuts: int
    classifier_hidden: tuple[int, ...]
    final_rate: float
    average_steps: int
    surrogate: Any
    start: str
    optimizer: Any
    momentum: float
    pr_weight: float | str
    verbose: int
    grid: dict[str, NDArray[np.float64]]
    """Settings of each of the replicas."""

    @classmethod
    def of(cls, estimator: Any) -> "Recipe":
        """Take an estimator's parameters of the same names; the varied ones are spread over the replicas."""
        owner = type(estimator).__name__
        values: dict[str, Any] = {n: getattr(estimator, n) for n in cls.__dataclass_fields__ if n != "grid"}
        for name in ("group_hidden", "classifier_hidden"):
            values[name] = check_hidden(owner, name, values[name])
        varied = {name: getattr(estimator, name) for name in _VARIED}
        return cls(**values, grid=replica_grid(owner, estimator.n_replicas, **varied))

    def schedule(self, n_rows: int) -> tuple[int, int]:
        """Epochs at most, and epochs to wait for an improvement; counted in steps, because small data have few."""
        steps_per_epoch = -(-n_rows // self.batch_size)
        max_epochs = np.clip(2000 // steps_per_epoch, 8, 200) if self.max_epochs == "auto" else self.max_epochs
        patience = max(6, 400 // steps_per_epoch) if self.patience == "auto" else self.patience
        return int(max_epochs), int(patience)


@dataclass(frozen=True)
class FittedPopulation:
    """The model chosen, the models of its folds, and how they came about."""

    model: CorrectionModel
    folds: tuple[CorrectionModel, ...]
    """The same start trained without each fold; none where nothing was held out."""
    history: pd.DataFrame
    population: pd.DataFrame
    best_epoch: int
    """Counted from 1."""

    def cross_fitted_counts(
        self, data: TrainingRows, base: NDArray[np.float64], held_out: HeldOut, *, warm: bool
    ) -> PairedCounts:
        """What calibration rows say about models that were trained without them.

        The groups of a fold's model are numbered as in the final one, by the rows that they share.
        """
        n_groups = self.model.n_groups
        total = PairedCounts.zero(n_groups, n_groups)
        for fold, model in enumerate(self.folds):
            rows = held_out.calibration(fold)
            if not len(rows):
                continue
            place = _matched_groups(model, self.model, data.X)
            corrections = model.logits(data.X[rows])[:, np.argsort(place)]
            labels = decide(corrections + (base[rows][:, None] if warm else 0.0))
            label, pooled = data.label[rows], decide(base[rows])
            right = np.column_stack([labels == label[:, None], pooled == label])
            group = place[model.group_logits(data.X[rows]).argmax(axis=1)]
            compared = ComparedRows(right, labels != pooled[:, None], group, np.arange(n_groups), data.weight[rows])
            total = total.plus(compared.paired_counts())
        return total


def _matched_groups(model: CorrectionModel, other: CorrectionModel, X: NDArray[Any]) -> NDArray[np.intp]:
    """For each group of one model, the group of the other that it shares most rows with, one to one."""
    rows = X[:: max(len(X) // _ROWS_TO_MATCH, 1)]
    groups = (one.group_logits(rows).argmax(axis=1) for one in (model, other))
    shared = np.zeros((model.n_groups, model.n_groups))
    np.add.at(shared, tuple(groups), 1)
    return linear_sum_assignment(shared, maximize=True)[1]


def fit_population(
    recipe: Recipe,
    data: TrainingRows,
    base: NDArray[np.float64],
    held_out: HeldOut,
    linear_base: Any,
    start_seed: np.random.SeedSequence,
    batch_seed: np.random.SeedSequence,
) -> FittedPopulation:
    """Train every start on all rows and, beside that, without each fold; choose by the rows of the folds.

    Parameters
    ----------
    base : array of shape (n, m)
        Logits of the pooled classifier, which the classifiers correct.
    linear_base : linear classifier or None
        The pooled classifier, where serving can take it into the same matrix product.
    """
    # JAX is needed from here on; imported here, the rest of the package does without it.
    from dafh.engine.population import Plan, init_population, train_population
    from dafh.engine.selection import Selection

    view = _View.of(data, base, recipe.group_cuts)
    warm = recipe.start == "warm"
    rows = _engine_rows(data, base if warm else np.zeros_like(base), base, view, held_out)
    plan = Plan(
        group_sizes=(rows.x.shape[1], *recipe.group_hidden, recipe.n_groups),
        classifier_sizes=(data.X.shape[1], *recipe.classifier_hidden, base.shape[1]),
        surrogate=recipe.surrogate,
        optimizer=recipe.optimizer,
        momentum=recipe.momentum,
    )
    # Noise is relative to the pooled logit's spread; where that classifier knows nothing, to a spread of 1.
    spread = max(float(base.std(axis=0).mean()), 1.0) if warm else 1.0
    max_epochs, patience = recipe.schedule(len(data.label))
    pr_weight = _PR_WEIGHT_PER_RIVAL * recipe.n_groups if recipe.pr_weight == "auto" else recipe.pr_weight
    rule = Selection(held_out.n_folds, float(pr_weight), patience)
    with epoch_reporter(max_epochs, recipe.verbose, rule) as report:
        record = train_population(
            rows,
            type(rows)(*(field[held_out.selection] for field in rows)),
            init_population(plan, recipe.grid["noise"] * spread, start_seed, n_blocks=held_out.n_folds + 1),
            _engine_settings(recipe.grid, held_out.n_folds),
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
    return _keep_best(record, rule, recipe, view, linear_base)


@dataclass(frozen=True)
class _View:
    """How the networks see the rows: standardised columns for all, and cuts through them for the group network."""

    scaler: StandardScaler
    cuts: Cuts
    above: Standardization

    @classmethod
    def of(cls, data: TrainingRows, base: NDArray[np.float64], most_cuts: int) -> "_View":
        scaler = StandardScaler().fit(data.X, sample_weight=data.weight)
        enough = len(data.X) >= FEWEST_ROWS_TO_SPLIT
        cuts = find_cuts(data.X, residual(base, data.label), data.weight, most_cuts if enough else 0)
        share = np.average(cuts.above(data.X), axis=0, weights=data.weight)
        return cls(scaler, cuts, Standardization(share, np.sqrt(share * (1 - share))))

    def __call__(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Columns, cuts, and zeros up to a round number: programs are compiled for few widths."""
        n_columns, n_cuts = X.shape[1], len(self.cuts)
        seen = np.zeros((len(X), n_columns + -(-n_cuts // _CUTS_AT_A_TIME) * _CUTS_AT_A_TIME), np.float32)
        seen[:, :n_columns] = self.scaler.transform(X)
        seen[:, n_columns : n_columns + n_cuts] = (self.cuts.above(X) - self.above.center) / self.above.scale
        return seen


def _engine_settings(grid: dict[str, NDArray[np.float64]], n_folds: int) -> Any:
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


def _engine_rows(data: TrainingRows, start: NDArray[Any], base: NDArray[Any], view: _View, held_out: HeldOut) -> Any:
    from dafh.engine.objective import Rows

    return Rows(
        x=view(data.X),
        label=data.label.astype(np.int32),
        base=start.astype(np.float32),
        pooled_right=(decide(base) == data.label).astype(np.float32),
        weight=(data.weight / data.weight.mean()).astype(np.float32),
        fold=held_out.fold,
    )


def _keep_best(record: Any, rule: Any, recipe: Recipe, view: _View, linear_base: Any) -> FittedPopulation:
    values = rule.criterion(record.curves)
    if not np.isfinite(values).any():
        raise InputError(
            "Training diverged in every replica: bring the columns of X to ordinary scales, or lower the "
            "learning rates."
        )
    choice = rule.choose(record.curves)
    judged = rule.judged(record.curves)

    def model(block: int, linear: Any) -> CorrectionModel:
        parameters = record.parameters(block * recipe.n_replicas + choice.replica, choice.epoch)
        columns = Standardization(view.scaler.mean_, view.scaler.scale_)
        return CorrectionModel.from_parameters(parameters, columns, view.cuts, view.above, linear)

    epochs = pd.RangeIndex(1, len(record.checkpoints) + 1, name="epoch")
    best, replicas = values.argmin(axis=0), np.arange(recipe.n_replicas)
    population = pd.DataFrame(recipe.grid, index=pd.RangeIndex(recipe.n_replicas, name="replica")).assign(
        best_epoch=best + 1,
        **{name: judged[name][best, replicas] for name in judged if name.startswith("selection_")},
        chosen=replicas == choice.replica,
    )
    return FittedPopulation(
        model=model(rule.n_folds, linear_base),
        folds=tuple(model(fold, None) for fold in range(rule.n_folds)),
        history=pd.DataFrame({name: curve[:, choice.replica] for name, curve in judged.items()}, epochs),
        population=population,
        best_epoch=choice.epoch + 1,
    )
