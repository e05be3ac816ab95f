"""Rows larger than memory, and clusters: a sample of the rows chooses, all of them fit.

Rows come in blocks: slices of a table in memory, pieces of files, partitions of Dask. A fit needs two things of them.
A *sample* of 200,000 rows chooses bins, groups and strengths of penalties, as it would if there were no other rows.
*Sums* over all rows then give the coefficients: the loss and its gradient are summed block by block, and every pass
over the rows is one step of Newton's method. On a cluster Dask applies the same functions to the same blocks, and
repeats what a lost worker has done.

Every row has a position: its number in the files, one after the other. A sample is drawn by position, so that it does
not depend on how rows are divided into blocks.
"""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
from joblib import cpu_count
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dafh.classifiers import final_classifier, is_fitted, residual
from dafh.columns.bins import named_table
from dafh.columns.hashes import uniform, value_hashes
from dafh.columns.read import DataFile, arrow_to_pandas, find_files, with_columns
from dafh.columns.schema import check_columns
from dafh.exceptions import FittedOnSampleWarning, InputError
from dafh.frames import is_frame, to_pandas
from dafh.groups.corrections import with_logit_codes
from dafh.groups.trained import ExceptionModel, assign_first
from dafh.linear.designs import BinnedDesign, DenseDesign, Design, Standardization, sum_points
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.newton import Regression
from dafh.linear.scorecard import Scorecard
from dafh.rows import EncodedRows, LabelledRows
from dafh.text import quoted
from dafh.validation import absolute_times

SAMPLE_SIZE = 200_000
"""Bins, groups, and all that is chosen about them, come from about this many rows at most; coefficients from all."""
# Of so many rows, intervals are about 0.1 percentage points wide: more would show nothing new.
_MOST_HELD_OUT = 1_000_000
# Enough for NumPy to be busy, and few enough for temporary arrays to stay small.
_ROWS_PER_BLOCK = 2**16
# Of 20,000,000 rows with 20 columns, bins take 0.45 GB.
_MOST_BYTES_KEPT = 2**30
# Results that Dask holds at a time: one may be as large as a block.
_RESULTS_AT_ONCE = 16

# Pooled classifiers that get coefficients from all rows after a sample has chosen the rest.
_FITTED_ON_ALL_ROWS = (Scorecard, StandardizedLogisticRegression)

Block = TypeVar("Block")
Result = TypeVar("Result")
Arrays = dict[str, NDArray[Any]]
"""What is stored of a block: arrays by name."""


# ---- blocks: a function applied to all of them, sums, and what is stored ----


class Blocks(Generic[Block]):
    """Rows in blocks, to which functions are applied by one thread for each core.

    Parameters
    ----------
    read : function
        Yields the blocks, anew in every pass. Those that are data frames have the positions of their rows as index.
    columns : tuple of str
        Names of the columns, where blocks are data frames.
    n_rows : int, optional
        Number of all rows, where it is known; about that of text files.

    Examples
    --------
    >>> blocks = Blocks(lambda: [np.arange(3), np.arange(4), np.arange(2)])
    >>> list(blocks.map(len))
    [3, 4, 2]
    >>> blocks.total(lambda block: (block.sum(), len(block)))
    (np.int64(10), np.int64(9))
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Any]],
        columns: tuple[str, ...] = (),
        n_rows: int | None = None,
    ) -> None:
        self.read, self.columns, self.n_rows = read, columns, n_rows

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """Yield what a function makes of every block, in the order of the blocks."""
        n_threads = cpu_count()
        with ThreadPoolExecutor(n_threads) as pool:
            pending: deque[Future[Result]] = deque()
            for block in self.read():
                pending.append(pool.submit(function, block))
                # A few blocks at a time: results must not pile up before a slow caller.
                if len(pending) > 2 * n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def through(self, function: Callable[[Block], Result], **described: Any) -> "Blocks[Result]":
        """Blocks of what a function makes of every block, made anew in every pass; columns as in the constructor."""
        return Blocks(lambda: self.map(function), **described)

    def total(self, function: Callable[[Block], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Add up what a function makes of every block."""
        return _sum(self.map(function))

    def keep(self, function: Callable[[Block], Arrays], most_bytes: int = _MOST_BYTES_KEPT) -> "Blocks[Arrays]":
        """Blocks of what a function makes of every block, in memory; where that is too much, made in every pass."""
        results, n_bytes = [], 0
        for arrays in self.map(function):
            n_bytes += sum(array.nbytes for array in arrays.values())
            if n_bytes > most_bytes:
                return self.through(function)
            results.append(arrays)
        return Blocks(lambda: results)

    def count(self) -> int:
        """Number of all rows."""
        return sum(self.map(len)) if self.n_rows is None else self.n_rows  # type: ignore[arg-type]


class DaskBlocks(Blocks[Block]):
    """Blocks that are tasks of Dask, on the cluster that a `Client` was opened for, or else in threads."""

    def __init__(self, tasks: Sequence[Any], columns: tuple[str, ...] = (), n_rows: int | None = None) -> None:
        super().__init__(list, columns, n_rows)
        self.tasks = tasks

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """Yield what a function makes of every block, in the order of the blocks."""
        tasks = self._applied(function)
        for first in range(0, len(tasks), _RESULTS_AT_ONCE):
            yield from _dask().compute(*tasks[first : first + _RESULTS_AT_ONCE])

    def through(self, function: Callable[[Block], Result], **described: Any) -> "Blocks[Result]":
        """Blocks of what a function makes of every block, made anew in every pass."""
        return DaskBlocks(self._applied(function), **described)

    def total(self, function: Callable[[Block], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Add up what a function makes of every block: in groups where the blocks are, and then here."""
        tasks, delayed = self._applied(function), _dask().delayed
        return _sum(_dask().compute(*(delayed(_sum)(tasks[first : first + 8]) for first in range(0, len(tasks), 8))))

    def keep(self, function: Callable[[Block], Arrays], most_bytes: int = _MOST_BYTES_KEPT) -> Blocks[Arrays]:
        """Blocks of what a function makes of every block, in the memory of the workers, who spill it to disk."""
        return DaskBlocks(_dask().persist(*self._applied(function)))

    def _applied(self, function: Callable[[Block], Any]) -> list[Any]:
        delayed = _dask().delayed
        # In a list of one, as data: the function is sent once then, and not with every task.
        shared = delayed([function], traverse=False)
        return [delayed(_apply, pure=False)(shared, task) for task in self.tasks]


def _apply(function: list[Callable[[Any], Any]], block: Any) -> Any:
    return function[0](block)


def _sum(results: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    return reduce(lambda total, result: tuple(map(np.add, total, result)), results)


# ---- where rows come from ----


def as_blocks(X: Any) -> Blocks[pd.DataFrame] | None:
    """Blocks of a path, a pattern, several of them, a data set of Arrow or a Dask data frame; else None."""
    if isinstance(X, Blocks):
        return X
    if isinstance(X, str | Path) or (isinstance(X, list | tuple) and X and all(isinstance(x, str | Path) for x in X)):
        return open_files([DataFile(path) for path in find_files(X)])
    library = type(X).__module__.split(".")[0]
    if library == "pyarrow" and hasattr(X, "get_fragments"):
        return Blocks(partial(_read_data_set, X), tuple(X.schema.names), X.count_rows())
    if library in ("dask", "dask_expr") and hasattr(X, "to_delayed") and hasattr(X, "columns"):
        partitions = DaskBlocks[pd.DataFrame](X.to_delayed())
        first = [0, *np.cumsum(list(partitions.map(len)), dtype=np.int64).tolist()]
        delayed = _dask().delayed
        tasks = [delayed(_with_positions)(*task) for task in zip(partitions.tasks, first, strict=False)]
        return DaskBlocks(tasks, tuple(str(name) for name in X.columns), first[-1])
    return None


def open_files(files: Sequence[DataFile], text: tuple[str, ...] | None = ()) -> Blocks[pd.DataFrame]:
    """Blocks of files of which each has the columns of the first; `text` as in `DataFile.pieces`."""
    columns = tuple(str(name) for name in next(files[0].pieces(rows=100)).columns)
    n_rows = sum(file.count_rows() for file in files)
    return Blocks(partial(_read_files, files, columns, text), columns, n_rows)


def _read_files(
    files: Sequence[DataFile], columns: Sequence[str], text: tuple[str, ...] | None
) -> Iterator[pd.DataFrame]:
    first = 0
    for file in files:
        for block in file.pieces(rows=_ROWS_PER_BLOCK, text=text):
            yield _with_positions(with_columns(block, columns, file.name), first)
            first += len(block)


def _read_data_set(data_set: Any) -> Iterator[pd.DataFrame]:
    first = 0
    for batch in data_set.to_batches(batch_size=_ROWS_PER_BLOCK):
        if batch.num_rows:
            yield _with_positions(arrow_to_pandas(batch), first)
            first += batch.num_rows


def _with_positions(block: pd.DataFrame, first: int) -> pd.DataFrame:
    return block.set_axis(pd.RangeIndex(first, first + len(block)))


def _dask() -> Any:
    try:
        import dask
        import distributed  # noqa: F401
    except ImportError as error:
        raise InputError("Dask data frames need Dask: pip install 'dafh[dask]'.") from error
    return dask


# ---- what columns are for, and which rows are drawn ----

LABEL, WEIGHT, PERSON, TIME, DECLARED = (f"\0{name}" for name in ("label", "weight", "person", "time", "declared"))
"""Names for columns with a role, which no column of a file has."""


@dataclass(frozen=True)
class Roles:
    """Names of columns: the target, what is known about a row beside its features, and the features."""

    label: str
    weight: str | None = None
    person: str | None = None
    time: str | None = None
    declared: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @classmethod
    def named(
        cls, columns: Sequence[str], y: Any, *, sample_weight: Any, guard_features: Any, persons: Any, time: Any = None
    ) -> "Roles":
        """Take names from a user; all columns without a role are features."""
        if not isinstance(y, str):
            raise InputError("Where X is files or a collection, y is the name of its target column.")
        for role, name in {"sample_weight": sample_weight, "persons": persons, "time": time}.items():
            if not (name is None or isinstance(name, str)):
                raise InputError(f"Where X is files or a collection, {role} is the name of one of its columns.")
        declared = (guard_features,) if isinstance(guard_features, str) else tuple(guard_features or ())
        if not all(isinstance(name, str) for name in declared):
            raise InputError("Where X is files or a collection, guard_features are names of its columns.")
        about_rows = [name for name in (sample_weight, persons, time, *declared) if name is not None]
        check_columns(columns, [y], "the target")
        check_columns(columns, about_rows)
        features = tuple(name for name in columns if name not in (y, *about_rows))
        if not features:
            raise InputError("No column is left to learn from: all have another role.")
        return cls(y, sample_weight, persons, time, declared, features)

    def weights(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """Weight of each row."""
        return np.ones(len(table)) if self.weight is None else table[self.weight].to_numpy(np.float64)

    def counted(self, table: pd.DataFrame) -> pd.DataFrame:
        """Leave out rows of weight 0."""
        weight = self.weights(table)
        if not (weight >= 0).all():  # Written so that a gap fails, too.
            raise InputError(f"Weights must be numbers from 0 on: the column {quoted(self.weight)} has others.")
        return table[weight > 0]

    def arguments(self, table: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[Any], dict[str, Any]]:
        """Features, labels, and keyword arguments, as `fit` takes them."""
        options = {
            "sample_weight": None if self.weight is None else self.weights(table),
            "guard_features": table[list(self.declared)] if self.declared else None,
            "persons": None if self.person is None else table[self.person],
            "time": None if self.time is None else table[self.time],
        }
        return table[list(self.features)], table[self.label].to_numpy(), options


@dataclass(frozen=True, eq=False)
class Split:
    """Which rows are held out of everything, and a random number for each row; both are the same in every pass."""

    roles: Roles
    seed: int
    held_out: float = 0.0
    """Share of the rows; those of a person stay together."""
    cut: float | None = None
    """Rows from this time on are held out, instead of random ones."""

    def __call__(self, block: pd.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Whether each row trains, and a number that is uniform from 0 to 1 among those that do, and among the rest."""
        if self.roles.person is not None:
            number = uniform(value_hashes(block[self.roles.person]), self.seed)
        else:
            number = uniform(block.index.to_numpy(np.uint64), self.seed)
        if self.cut is not None:
            return absolute_times(block[str(self.roles.time)]) < self.cut, number
        if not self.held_out:
            return np.ones(len(block), bool), number
        end = 1 - self.held_out
        trains = number < end
        return trains, np.where(trains, number / end, (number - end) / self.held_out)

    def cut_by_time(self, blocks: Blocks[pd.DataFrame], n_rows: int) -> "Split":
        """Hold out the last rows, where rows have a time."""
        if self.roles.time is None or not self.held_out:
            return self
        sample, _ = draw_rows(blocks, replace(self, held_out=0.0), n_rows, SAMPLE_SIZE)
        return replace(self, cut=float(np.quantile(absolute_times(sample[self.roles.time]), 1 - self.held_out)))


def draw_rows(
    blocks: Blocks[pd.DataFrame], split: Split, n_rows: int, most: int, most_held_out: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw about so many of the rows that train, and of those that are held out, in one pass."""
    n_held_out = n_rows * split.held_out
    shares = most / max(n_rows - n_held_out, 1), most_held_out / max(n_held_out, 1)

    def draw(block: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        trains, number = split(block)
        return block[trains & (number < shares[0])], block[~trains & (number < shares[1])]

    sample, held_out = zip(*blocks.map(draw), strict=True)
    return _joined(sample), _joined(held_out)


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    # Columns without any values would change the types of others.
    return pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)


# ---- the rows of a fit ----

Check = Callable[[Any, NDArray[Any], dict[str, Any]], LabelledRows]
"""Makes checked rows of features, labels, and keyword arguments of `fit`."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What a fit learns from: all rows, or a sample of them to choose by and all of them in blocks to fit."""

    few: LabelledRows
    """All rows, or a sample of them."""
    judges: LabelledRows | None = None
    """Rows that are held out of everything, where there are more than a sample of the others."""
    blocks: Blocks[pd.DataFrame] | None = None
    """All rows, where they are more than the sample."""
    split: Split | None = None
    """Which of these are held out."""
    whole: Callable[[], LabelledRows] | None = None
    """All rows that train at once, where they are in memory."""

    def warn_if_sampled(self, pooled: Any, groups: str) -> None:
        """Warn the caller of `fit` if something was fitted on a sample of the rows only."""
        if self.blocks is None:
            return
        if groups == "network":
            who, instead = "The network was", "Groups by rules learn their coefficients from all rows."
        elif self.whole is None and not (isinstance(pooled, _FITTED_ON_ALL_ROWS) or is_fitted(pooled)):
            who, instead = f"{type(pooled).__name__} was", "Bring it fitted if it should know more."
        else:
            return
        message = f"{who} fitted on a sample of {len(self.few):,} of the rows. {instead}"
        warnings.warn(message, FittedOnSampleWarning, stacklevel=3)


def gather_rows(check: Check, X: Any, y: Any, *, held_out: float, seed: int, **options: Any) -> TrainingRows:
    """Rows of a fit, wherever they are; X, y and the options are as in `DAFHClassifier.fit`.

    Where there are more than a sample, the share `held_out` of them is held out of everything.
    """
    blocks = as_blocks(X)
    if blocks is not None:
        roles = Roles.named(blocks.columns, y, **options)
        if roles.weight is not None:  # How many rows count is known only by looking at them.
            blocks = blocks.through(roles.counted, columns=blocks.columns)
        return _from_blocks(blocks, Split(roles, seed, held_out), check)
    rows = check(X, y, options)
    if len(rows) <= SAMPLE_SIZE:
        return TrainingRows(rows)
    weight, persons = options["sample_weight"], options["persons"]
    # Positions are those of the rows as they came, with the rows of weight 0 that the check leaves out.
    positions = np.arange(len(rows)) if weight is None else np.flatnonzero(np.asarray(weight, float) > 0)
    table, roles = _as_table(rows, None if persons is None else to_pandas(persons).iloc[positions, 0].to_numpy())
    table.index = pd.Index(positions)
    starts = range(0, len(table), _ROWS_PER_BLOCK)
    slices = Blocks[pd.DataFrame](
        lambda: (table.iloc[first : first + _ROWS_PER_BLOCK] for first in starts), n_rows=len(table)
    )

    def check_slice(features: pd.DataFrame, *others: Any) -> LabelledRows:
        return check(features if is_frame(X) else features.to_numpy(), *others)

    training = _from_blocks(slices, Split(roles, seed, held_out), check_slice)
    split = training.split
    assert split is not None
    return replace(training, whole=lambda: rows.take(np.flatnonzero(split(table)[0])))


def _from_blocks(blocks: Blocks[pd.DataFrame], split: Split, check: Check) -> TrainingRows:
    n_rows = blocks.count()
    if n_rows <= SAMPLE_SIZE:
        return TrainingRows(check(*split.roles.arguments(_joined(list(blocks.map(lambda block: block))))))
    split = split.cut_by_time(blocks, n_rows)
    sample, held_out = draw_rows(blocks, split, n_rows, SAMPLE_SIZE, _MOST_HELD_OUT if split.held_out else 0)
    # The sample last: the estimator remembers the classes of the rows it checked last.
    judges = check(*split.roles.arguments(held_out)) if split.held_out else None
    return TrainingRows(check(*split.roles.arguments(sample)), judges, blocks, split)


def fresh_rows(
    blocks: Blocks[pd.DataFrame], y: Any, **options: Any
) -> tuple[pd.DataFrame, NDArray[Any], dict[str, Any]]:
    """Rows for the guard out of blocks, a million at most: features, labels, and what else is known."""
    roles = Roles.named(blocks.columns, y, **options)
    table, _ = draw_rows(blocks, Split(roles, 0), blocks.count(), _MOST_HELD_OUT)
    features, labels, options = roles.arguments(table)
    del options["time"]
    return features, labels, options


def _as_table(rows: LabelledRows, persons: NDArray[Any] | None) -> tuple[pd.DataFrame, Roles]:
    """Put rows into one table, with all that `fit` was told about them; `persons` as the user gave them."""
    features = named_table(rows.X)
    columns = {WEIGHT: rows.fit_weight, PERSON: persons, TIME: rows.time}
    columns = {name: values for name, values in columns.items() if values is not None}
    attributes = {} if rows.declared is None else dict(rows.declared.items())
    declared = {f"{DECLARED} {name}": values.to_numpy() for name, values in attributes.items()}
    weight, person, time = (name if name in columns else None for name in (WEIGHT, PERSON, TIME))
    roles = Roles(LABEL, weight, person, time, tuple(declared), tuple(features.columns))
    return features.assign(**{LABEL: rows.y}, **columns, **declared), roles


# ---- coefficients by sums over blocks ----


def fit_in_passes(
    stored: Blocks[Arrays],
    design_of: Callable[[Arrays], Design],
    sample: Regression,
    start: NDArray[np.float64],
    penalty: NDArray[np.float64],
    *,
    offset_of: Callable[[Arrays], NDArray[np.float64]] | None = None,
    group: NDArray[np.integer] | None = None,
    tolerance: float = 1e-10,
) -> NDArray[np.float64]:
    """Minimise the penalised loss of all rows: the sum of weight × loss + Σ penalty × coefficient² / 2.

    The sample gives all that no pass is needed for: where to start, and the curvature of the loss. A pass sums the loss
    and its gradient. The curvature of the sample differs from that of all rows by a few per cent, so that every step of
    Newton's method with it leaves a few per cent of the way. Summing the curvature over all rows would save one or two
    passes, and make each of them take ten times as long.

    Parameters
    ----------
    stored : Blocks
        Arrays "label", and where they are needed "weight", "group" and what `design_of` and `offset_of` read.
    design_of : function
        Makes the design of a block.
    sample : Regression
        Rows of the sample, with the same design.
    start : array of shape (K, p, m)
        Coefficients of the sample: for K groups, p coefficients of a design, and m outputs.
    penalty : array that broadcasts to the shape of `start`
    offset_of : function, optional
        Makes the logits of a block that are there already, (n, m); 0 by default.
    group : array, optional
        Groups of the sample; by default all rows, of the blocks too, are in one.
    tolerance : float
        Stop when a step promises less than this, per unit of weight.
    """
    n_groups, _, n_outputs = start.shape
    penalty = np.broadcast_to(penalty, start.shape)
    # A function takes along what it mentions, and a cluster must not be sent the sample.
    grouped = group is not None
    group_of_sample = np.zeros(len(sample.label), np.intp) if group is None else group.astype(np.intp)

    def sums_of_block(coefficients: NDArray[np.float64], block: Arrays) -> tuple[float, NDArray[np.float64], float]:
        n_rows = len(block["label"])
        offset = np.zeros((n_rows, n_outputs)) if offset_of is None else offset_of(block)
        weight = block["weight"] if "weight" in block else np.ones(n_rows)
        rows = Regression(design_of(block), block["label"].astype(np.intp), weight, offset)
        number = block["group"].astype(np.intp) if grouped else np.zeros(n_rows, np.intp)
        logits = rows.offset + rows.design.grouped_logits(coefficients, number)
        weighted = rows.weight[:, None] * residual(logits, rows.label)
        return rows.loss(logits), -rows.design.gradients(weighted, number, n_groups), rows.weight.sum()

    def sums(coefficients: NDArray[np.float64]) -> tuple[float, NDArray[np.float64], float]:
        loss, gradient, weight = stored.total(partial(sums_of_block, coefficients))
        penalised = float(loss) + float((penalty * coefficients**2).sum()) / 2
        return penalised, gradient + penalty * coefficients, float(weight)

    def factors(coefficients: NDArray[np.float64]) -> list[Any]:
        logits = sample.offset + sample.design.grouped_logits(coefficients, group_of_sample)
        curvatures = sample.joint_curvatures(logits, group_of_sample, n_groups) / sample.weight.sum()
        pairs = zip(weight * curvatures, _flat(penalty), strict=True)
        return [cho_factor(of_loss + np.diag(of_penalty), lower=True) for of_loss, of_penalty in pairs]

    coefficients = start
    value, gradient, weight = sums(coefficients)
    factored = factors(coefficients)
    for step in range(1, 60):
        solved = [cho_solve(factor, slope) for factor, slope in zip(factored, _flat(gradient), strict=True)]
        direction = np.stack(solved).reshape(len(start), start.shape[2], -1).swapaxes(1, 2)
        promised, damping = float((gradient * direction).sum()), 1.0
        if promised <= tolerance * weight:
            # The full step is small enough to accept without a line search; its passes are done already.
            return coefficients - direction
        while True:
            moved = coefficients - damping * direction
            moved_value, moved_gradient, _ = sums(moved)
            if moved_value <= value - 1e-4 * damping * promised:  # Armijo's condition.
                break
            if damping <= 2.0**-20:  # Nothing is left to gain but rounding.
                return coefficients
            damping /= 2
        coefficients, value, gradient = moved, moved_value, moved_gradient
        # More than four steps are needed only where the curvature at the start misleads.
        if damping < 1 or step % 4 == 0:
            factored = factors(coefficients)
    return coefficients


def _flat(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients (K, p, m) as (K, pm): those of one output after those of the one before."""
    return coefficients.swapaxes(1, 2).reshape(len(coefficients), -1)


# ---- the pooled classifier and the groups' own, fitted on all rows ----


def refit_on_all_rows(
    training: TrainingRows,
    pooled: Any,
    exceptions: Any,
    foreign: Callable[[EncodedRows], NDArray[np.float64]],
    classes: NDArray[Any],
    *,
    as_frame: bool,
) -> ExceptionModel | None:
    """Fit the pooled classifier and the groups' own classifiers anew, on all rows; return the groups, if there are any.

    A pooled classifier that was fitted here is changed in place. One that the user brings is taken as it is.
    `pooled` and `exceptions` are what the sample has chosen, a `PooledFit` and `LearnedGroups` of
    `dafh.estimators`; `foreign` gives the logits of a pooled classifier that is neither a scorecard nor linear.
    """
    blocks, split = training.blocks, training.split
    assert blocks is not None
    assert split is not None
    # Bound here: a cluster must not be sent the sample, which `pooled` and `exceptions` hold.
    encoding, kind, regions, logits = pooled.encoding, pooled.kind, exceptions.model.regions, exceptions.design.logits
    roles, foreign_logits = split.roles, foreign if kind == "logits" else None

    def encode(block: pd.DataFrame) -> Arrays:
        """What is stored of a block of rows: bins or numbers, labels, weights, groups, and logits of `foreign`."""
        block = block[split(block)[0]]
        labels = block[roles.label].to_numpy()
        label = pd.Index(classes).get_indexer(labels)
        if (label < 0).any():
            raise InputError(
                f"y holds {quoted(labels[label < 0][0])} in so few rows that the sample has none, by which groups are "
                "chosen: leave those rows out, or put rare classes together."
            )
        features = block[list(roles.features)].reset_index(drop=True)
        encoded = encoding.encode(features if as_frame else features.to_numpy())
        arrays: Arrays = {
            "label": label.astype(np.uint8 if len(classes) < 256 else np.uint16),
            "group": assign_first(regions, encoded).astype(np.uint8),
        }
        if roles.weight is not None:
            arrays["weight"] = roles.weights(block)
        if foreign_logits is not None:
            arrays["base"] = foreign_logits(encoded)
        if kind == "columns":
            arrays["numbers"] = encoded.numbers
        elif kind == "points" or logits:
            arrays["codes"] = with_logit_codes(encoded.codes, logits, arrays["base"]) if logits else encoded.codes
        return arrays

    stored = blocks.keep(encode)
    last = final_classifier(pooled.model)
    if isinstance(last, Scorecard) and pooled.sums is not None:
        _refit_scorecard(last, pooled.sums, stored)
    elif isinstance(last, StandardizedLogisticRegression) and pooled.fitted_here:
        _refit_regression(last, exceptions, stored)
    if exceptions.fitted.settings is None:
        return None
    return _refit_corrections(exceptions, _pooled_logits(kind, last), stored)


def _refit_scorecard(model: Scorecard, fit: Any, stored: Blocks[Arrays]) -> None:
    """Fit a scorecard on all rows, from the `ScorecardFit` of a sample."""
    if model.monotonic:
        raise InputError(
            "A monotonic scorecard is fitted in memory only: fit it on a sample, and bring it as the pooled classifier."
        )
    tables, start = fit.design.tables, fit.solution.coefficients[None]
    penalty = fit.solution.penalty[:, None]
    coefficients = fit_in_passes(stored, lambda block: BinnedDesign(block["codes"], tables), fit.rows, start, penalty)
    model.keep(fit, replace(fit.solution, coefficients=coefficients[0]))


def _refit_regression(model: StandardizedLogisticRegression, exceptions: Any, stored: Blocks[Arrays]) -> None:
    """Fit a logistic regression on all rows, with the strength that the sample has chosen."""
    X, sample = exceptions.encoded.numbers, exceptions.problem.regression
    standard = Standardization.of(X, sample.weight)
    start = standard.stacked(model.intercept_, model.coef_)[None]
    sample = replace(sample, design=DenseDesign(standard.of_rows(X)), offset=np.zeros((len(X), start.shape[2])))
    strength = np.full(start.shape[1], 1 / float(model.C_))
    strength[0] = 1e-6  # Not penalised, but for the last digits.

    def design_of(block: Arrays) -> Design:
        return DenseDesign(standard.of_rows(block["numbers"]))

    coefficients = fit_in_passes(stored, design_of, sample, start, strength[:, None])
    model.intercept_, model.coef_ = standard.unstacked(coefficients[0])


def _pooled_logits(kind: str, model: Any) -> Callable[[Arrays], NDArray[np.float64]]:
    """Logits of a fitted pooled classifier for stored blocks, (n, m), with no more of it than they need."""
    if kind == "points":
        points, intercept = tuple(model.points_), model.intercept_
        return lambda block: sum_points(block["codes"], points, intercept)
    if kind == "columns":
        weight, intercept = model.coef_.T, model.intercept_
        return lambda block: np.asarray(block["numbers"] @ weight + intercept)
    return lambda block: block["base"]


def _refit_corrections(
    exceptions: Any, logits_of: Callable[[Arrays], NDArray[np.float64]], stored: Blocks[Arrays]
) -> ExceptionModel:
    """Corrections of the pooled logits, with the strength that the sample has chosen.

    With so many rows, a pooled classifier is hardly more sure of the rows it was fitted on than of others: there is no
    need to cross-fit its logits, as in a sample.
    """
    settings, chosen, design = exceptions.fitted.settings, exceptions.fitted.chosen, exceptions.design
    sample, start = exceptions.problem.regression, chosen.corrections
    penalty = np.full(start.shape, float(settings.strength))
    if not settings.corrects_rest:
        # All rows without an exception are served by the pooled classifier: nothing moves these coefficients from 0.
        penalty[-1] *= 1e12
    tables, has_columns = design.tables, design.has_columns
    standard = Standardization(design.center, design.scale) if len(design.center) else None

    def design_of(block: Arrays) -> Design:
        if tables is not None:
            return BinnedDesign(block["codes"], tables)
        columns = [] if standard is None else [standard.of_rows(block["numbers"])]
        return DenseDesign(np.hstack(columns if has_columns else [*columns, logits_of(block)]))

    group = chosen.assign(exceptions.problem.codes)
    coefficients = fit_in_passes(stored, design_of, sample, start, penalty, offset_of=logits_of, group=group)
    if not settings.corrects_rest:
        coefficients[-1] = 0.0
    return ExceptionModel(exceptions.model.regions, design.served(coefficients))
