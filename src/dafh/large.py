"""Rows larger than memory, and clusters: a sample of the rows chooses, all of them fit.

Rows come in blocks: slices of a table in memory, pieces of files, partitions of Dask. A fit needs two things of them.
A *sample* of 200,000 rows chooses bins, groups and strengths of penalties, as it would if there were no other rows.
*Sums* over all rows then give the coefficients: the loss and its gradient are summed block by block, and every pass
over the rows is one step of Newton's method. On a cluster Dask applies the same functions to the same blocks, and does
again what a lost worker has done.

Every row has a position: its number in the files, one after the other. A sample is drawn by position, so that it does
not depend on how rows are divided into blocks.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from dafh.columns.column import Column
from dafh.columns.hashes import uniform, value_hashes
from dafh.columns.read import DataFile, arrow_to_pandas, find_files, with_columns
from dafh.columns.schema import check_columns
from dafh.exceptions import FittedOnSampleWarning, InputError
from dafh.frames import is_frame, to_pandas
from dafh.groups.corrections import Kind, with_logit_codes
from dafh.groups.trained import ExceptionModel, assign_first
from dafh.linear.designs import BinnedDesign, DenseDesign, Design, Standardization, sum_points
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.newton import Regression
from dafh.linear.scorecard import Scorecard, ScorecardFit
from dafh.regions.conditions import Region
from dafh.rows import EncodedRows, LabelledRows, TableEncoding
from dafh.text import quoted
from dafh.validation import absolute_times

SAMPLE_SIZE = 200_000
"""Bins, groups, and all that is chosen about them, come from about this many rows at most; coefficients from all."""
# Of so many rows, intervals are about 0.1 percentage points wide: more would show nothing new.
_MOST_JUDGES = 1_000_000
# Enough for NumPy to be busy, and few enough for temporary arrays to stay small.
_ROWS_PER_BLOCK = 2**16
# Of 20,000,000 rows with 20 columns, bins take 0.45 GB.
_MOST_BYTES_KEPT = 2**30

# Pooled classifiers that get coefficients from all rows after a sample has chosen the rest.
_FITTED_ON_ALL_ROWS = (Scorecard, StandardizedLogisticRegression)

Block = TypeVar("Block")
Result = TypeVar("Result")
Arrays = dict[str, NDArray[Any]]
"""What is kept of a block: arrays by name."""


# ---- blocks: a function applied to all of them, sums, and what is kept ----


class Blocks(Generic[Block]):
    """Rows in pieces, to which functions are applied by one thread for each core.

    Parameters
    ----------
    pieces : sequence of functions
        Each reads some rows, and gives one block of them after the other. Blocks that are data frames have the
        positions of their rows as index.
    columns : tuple of str
        Names of the columns, where blocks are data frames.
    n_rows : int, optional
        Number of all rows, where it is known.

    Examples
    --------
    >>> blocks = Blocks([lambda: [np.arange(3)], lambda: [np.arange(4), np.arange(2)]])
    >>> list(blocks.map(len))
    [3, 4, 2]
    >>> blocks.total(lambda block: (block.sum(), len(block)))
    (np.int64(10), np.int64(9))
    """

    def __init__(self, pieces: Sequence[Any], columns: tuple[str, ...] = (), n_rows: int | None = None) -> None:
        self.pieces, self.columns, self.n_rows = pieces, columns, n_rows

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """Yield what a function makes of every block, in the order of the blocks."""

        def results(piece: Callable[[], Iterable[Block]]) -> list[Result]:
            return [function(block) for block in piece()]

        for found in _in_order(results, self.pieces):
            yield from found

    def through(self, function: Callable[[Block], Result], **about: Any) -> "Blocks[Result]":
        """Blocks of what a function makes of every block, made anew in every pass; `about` as in the constructor."""
        return Blocks([lambda piece=piece: map(function, piece()) for piece in self.pieces], **about)

    def total(self, function: Callable[[Block], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Add up what a function makes of every block."""
        return _sum(self.map(function))

    def keep(self, function: Callable[[Block], Arrays], most_bytes: int = _MOST_BYTES_KEPT) -> "Blocks[Arrays]":
        """Blocks of what a function makes of every block, in memory; where that is too much, made in every pass."""
        kept, n_bytes = [], 0
        for arrays in self.map(function):
            n_bytes += sum(array.nbytes for array in arrays.values())
            if n_bytes > most_bytes:
                return self.through(function)
            kept.append(arrays)
        return Blocks([partial(iter, [arrays]) for arrays in kept])


class DaskBlocks(Blocks[Block]):
    """Blocks that are tasks of Dask, on the cluster that a `Client` was opened for, or else in threads.

    What is kept lies in the memory of the workers.
    """

    # Not all at once: results may be as large as blocks.
    _results_at_once = 16

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """Yield what a function makes of every block, in the order of the blocks."""
        tasks = self._applied(function)
        for first in range(0, len(tasks), self._results_at_once):
            yield from _dask().compute(*tasks[first : first + self._results_at_once])

    def through(self, function: Callable[[Block], Result], **about: Any) -> "Blocks[Result]":
        """Blocks of what a function makes of every block, made anew in every pass."""
        return DaskBlocks(self._applied(function), **about)

    def total(self, function: Callable[[Block], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Add up what a function makes of every block: in groups where the blocks are, and then here."""
        tasks, delayed = self._applied(function), _dask().delayed
        sums = [delayed(_sum)(tasks[first : first + 8]) for first in range(0, len(tasks), 8)]
        return _sum(_dask().compute(*sums))

    def keep(self, function: Callable[[Block], Arrays], most_bytes: int = _MOST_BYTES_KEPT) -> Blocks[Arrays]:
        """Blocks of what a function makes of every block, kept by the workers, who put on disk what is too much."""
        return DaskBlocks(_dask().persist(*self._applied(function)))

    def _applied(self, function: Callable[[Block], Any]) -> list[Any]:
        delayed = _dask().delayed
        # In a list of one, as data: the function is sent once then, and not with every task.
        shared = delayed([function], traverse=False)
        return [delayed(_apply, pure=False)(shared, task) for task in self.pieces]


def _apply(function: list[Callable[[Any], Any]], block: Any) -> Any:
    return function[0](block)


def _sum(results: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    return reduce(lambda one, other: tuple(map(np.add, one, other)), results)


def _in_order(function: Callable[[Any], Result], tasks: Sequence[Any]) -> Iterator[Result]:
    """Apply a function to tasks in threads, never far ahead of whoever takes the results."""
    n_threads = cpu_count()
    with ThreadPoolExecutor(n_threads) as pool:
        for first in range(0, len(tasks), 2 * n_threads):
            yield from pool.map(function, tasks[first : first + 2 * n_threads])


# ---- where rows come from ----


def as_blocks(X: Any) -> Blocks[pd.DataFrame] | None:
    """Blocks of a path, a pattern, several of them, a data set of Arrow or a Dask data frame; None for the rest."""
    if isinstance(X, Blocks):
        return X
    if isinstance(X, str | Path) or (isinstance(X, list | tuple) and X and all(isinstance(x, str | Path) for x in X)):
        return open_files([DataFile(path) for path in find_files(X)])
    library = type(X).__module__.split(".")[0]
    if library == "pyarrow" and hasattr(X, "get_fragments"):
        fragments = list(X.get_fragments())
        first = _firsts([fragment.count_rows() for fragment in fragments])
        pieces = [partial(_read_fragment, one, X.schema, start) for one, start in zip(fragments, first, strict=False)]
        return Blocks(pieces, tuple(X.schema.names), first[-1])
    if library in ("dask", "dask_expr") and hasattr(X, "to_delayed") and hasattr(X, "columns"):
        partitions = DaskBlocks[pd.DataFrame](X.to_delayed())
        first, delayed = _firsts(list(partitions.map(len))), _dask().delayed
        tasks = [delayed(_at)(task, start) for task, start in zip(partitions.pieces, first, strict=False)]
        return DaskBlocks(tasks, tuple(str(name) for name in X.columns), first[-1])
    return None


@dataclass(frozen=True, eq=False)
class FilePiece:
    """A part of a file that is read by itself: a row group of a Parquet file, or a whole text file, in blocks."""

    file: DataFile
    columns: tuple[str, ...]
    first: int
    """Position of its first row."""
    text: tuple[str, ...] | None = ()
    """Columns of a text file to be read as strings; None for all."""

    def __call__(self) -> Iterator[pd.DataFrame]:
        """Read the rows, block by block."""
        first = self.first
        for block in self.file.pieces(rows=_ROWS_PER_BLOCK, text=self.text):
            yield _at(with_columns(block, self.columns, self.file.name), first)
            first += len(block)


def open_files(files: Sequence[DataFile], text: tuple[str, ...] | None = ()) -> Blocks[pd.DataFrame]:
    """Blocks of files of which each has the columns of the first; `text` as in `FilePiece`."""
    columns = tuple(str(name) for name in next(files[0].pieces(rows=100)).columns)
    parts = [part for file in files for part in file.parts()]
    first = _firsts([part.count_rows() for part in parts])
    pieces = [FilePiece(part, columns, start, text) for part, start in zip(parts, first, strict=False)]
    return Blocks(pieces, columns, first[-1])


def read_by_workers(files: Blocks[pd.DataFrame]) -> DaskBlocks[pd.DataFrame]:
    """Let the workers of a cluster read files, which must lie where they can see them."""
    delayed = _dask().delayed
    # Workers have working folders of their own.
    pieces = [replace(one, file=replace(one.file, path=Path(one.file.path).absolute())) for one in files.pieces]
    return DaskBlocks([delayed(_read_piece)(delayed([piece], traverse=False)) for piece in pieces], files.columns)


def _firsts(lengths: Sequence[int]) -> list[int]:
    """Position of the first row of each piece, and the number of all rows."""
    return [0, *np.cumsum(lengths, dtype=np.int64).tolist()]


def _at(block: pd.DataFrame, first: int) -> pd.DataFrame:
    return block.set_axis(pd.RangeIndex(first, first + len(block)))


def _read_fragment(fragment: Any, schema: Any, first: int) -> Iterator[pd.DataFrame]:
    for batch in fragment.to_batches(schema=schema, batch_size=_ROWS_PER_BLOCK):
        if batch.num_rows:
            yield _at(arrow_to_pandas(batch), first)
            first += batch.num_rows


def _read_piece(piece: list[FilePiece]) -> pd.DataFrame:
    return pd.concat(list(piece[0]()))


# ---- clusters ----


def _dask() -> Any:
    try:
        import dask
        import distributed  # noqa: F401
    except ImportError as error:
        raise InputError("Clusters need Dask: pip install 'dafh[dask]'.") from error
    return dask


@contextmanager
def connected(address: str | None, timeout: float = 10) -> Iterator[int]:
    """Let everything inside run on the cluster whose scheduler is at an address; yield its threads, 0 without one."""
    if address is None:
        yield 0
        return
    _dask()
    from distributed import Client

    try:
        client = Client(address, timeout=timeout)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"No Dask scheduler answers at {address}: is it running, and is this its address?") from error
    with client:
        n_threads = sum(client.nthreads().values())
        if not n_threads:
            raise InputError(f"The Dask scheduler at {address} has no workers: start some.")
        yield n_threads


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
        others = [name for name in (sample_weight, persons, time, *declared) if name is not None]
        check_columns(columns, [y], "the target")
        check_columns(columns, others)
        features = tuple(name for name in columns if name not in (y, *others))
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

    def taken(self, table: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[Any], dict[str, Any]]:
        """Features, labels, and what else is known, as `fit` takes them."""
        known = {
            "sample_weight": None if self.weight is None else self.weights(table),
            "guard_features": table[list(self.declared)] if self.declared else None,
            "persons": None if self.person is None else table[self.person],
            "time": None if self.time is None else table[self.time],
        }
        return table[list(self.features)], table[self.label].to_numpy(), known


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
        """Whether each row trains, and a number that is uniform from 0 to 1 both among those that do and the others."""
        if self.roles.person is not None:
            number = uniform(value_hashes(block[self.roles.person]), self.seed)
        else:
            number = random_by_position(block.index.to_numpy(), self.seed)
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
        draw = partial(_draw, split=replace(self, held_out=0.0), share=SAMPLE_SIZE / n_rows)
        times = [absolute_times(trains[self.roles.time]) for trains, _ in blocks.map(draw)]
        return replace(self, cut=float(np.quantile(np.concatenate(times), 1 - self.held_out)))


def random_by_position(positions: NDArray[np.integer], seed: int) -> NDArray[np.float64]:
    """Random numbers from 0 to 1: a stream of them, of which each row has the one at its position."""
    if not len(positions):
        return np.zeros(0)
    first = int(positions[0])
    stream = np.random.Generator(np.random.PCG64(seed).advance(first))
    return stream.random(int(positions[-1]) - first + 1)[positions - first]


def _draw(
    block: pd.DataFrame, split: Split, share: float, share_of_judges: float = 0.0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A share of the rows that train, and a share of those that are held out."""
    trains, number = split(block)
    return block[trains & (number < share)], block[~trains & (number < share_of_judges)]


def draw_rows(
    blocks: Blocks[pd.DataFrame], split: Split, n_rows: int, most: int, most_judges: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw about so many of the rows that train, and of those that are held out, in one pass."""
    n_held_out = n_rows * split.held_out
    share, share_of_judges = most / max(n_rows - n_held_out, 1), most_judges / max(n_held_out, 1)
    draw = partial(_draw, split=split, share=share, share_of_judges=share_of_judges)
    few, judges = zip(*blocks.map(draw), strict=True)
    return _joined(few), _joined(judges)


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    # Columns without any values would change the types of others.
    return pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)


# ---- the rows of a fit ----

Check = Callable[[pd.DataFrame, NDArray[Any], dict[str, Any]], LabelledRows]
"""Makes checked rows of features, labels, and what else is known."""


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
        """Warn the caller of `fit` if something has seen a sample of the rows only."""
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


def gather_rows(check: Check, X: Any, y: Any, *, held_out: float, seed: int, **known: Any) -> TrainingRows:
    """Rows of a fit, wherever they are; X, y and what is known are as in `DAFHClassifier.fit`.

    Where there are more than a sample, the share `held_out` of them is held out of everything.
    """
    blocks = as_blocks(X)
    if blocks is not None:
        roles = Roles.named(blocks.columns, y, **known)
        if roles.weight is not None:  # How many rows count is known only by looking at them.
            blocks = blocks.through(roles.counted, columns=blocks.columns)
        return _from_blocks(blocks, Split(roles, seed, held_out), check)
    rows = check(X, y, known)
    if len(rows) <= SAMPLE_SIZE:
        return TrainingRows(rows)
    weight, persons = known["sample_weight"], known["persons"]
    counted = np.arange(len(rows)) if weight is None else np.flatnonzero(np.asarray(weight, float) > 0)
    table, roles = _as_table(rows, None if persons is None else to_pandas(persons).iloc[counted, 0].to_numpy())
    table.index = pd.Index(counted)
    found = _from_blocks(
        _slices(table),
        Split(roles, seed, held_out),
        lambda features, *rest: check(features if is_frame(X) else features.to_numpy(), *rest),
    )
    assert found.split is not None
    split = found.split
    return replace(found, whole=lambda: rows.take(np.flatnonzero(split(table)[0])))


def _from_blocks(blocks: Blocks[pd.DataFrame], split: Split, check: Check) -> TrainingRows:
    n_rows = sum(blocks.map(len)) if blocks.n_rows is None else blocks.n_rows
    if n_rows <= SAMPLE_SIZE:
        table = _joined(list(blocks.map(lambda block: block)))
        return TrainingRows(check(*split.roles.taken(table)))
    split = split.cut_by_time(blocks, n_rows)
    few, judges = draw_rows(blocks, split, n_rows, SAMPLE_SIZE, _MOST_JUDGES if split.held_out else 0)
    # The sample last: whoever checks remembers its classes.
    checked = check(*split.roles.taken(judges)) if split.held_out else None
    return TrainingRows(check(*split.roles.taken(few)), checked, blocks, split)


def fresh_rows(blocks: Blocks[pd.DataFrame], y: Any, **known: Any) -> tuple[pd.DataFrame, NDArray[Any], dict[str, Any]]:
    """Rows for the guard out of blocks, a million at most: features, labels, and what else is known."""
    roles = Roles.named(blocks.columns, y, **known)
    n_rows = sum(blocks.map(len)) if blocks.n_rows is None else blocks.n_rows
    table, _ = draw_rows(blocks, Split(roles, 0), n_rows, _MOST_JUDGES)
    features, labels, known = roles.taken(table)
    del known["time"]
    return features, labels, known


def _slices(table: pd.DataFrame) -> Blocks[pd.DataFrame]:
    """Blocks of a table in memory."""
    starts = range(0, len(table), _ROWS_PER_BLOCK)
    pieces = [lambda first=first: iter([table.iloc[first : first + _ROWS_PER_BLOCK]]) for first in starts]
    return Blocks(pieces, tuple(table.columns), len(table))


def _as_table(rows: LabelledRows, persons: NDArray[Any] | None) -> tuple[pd.DataFrame, Roles]:
    """Put rows into one table, with what is known about them; `persons` as the user gave them."""
    table = named_table(rows.X)
    roles = Roles(LABEL, features=tuple(table.columns))
    others: dict[str, Any] = {LABEL: rows.y}
    if rows.fit_weight is not None:
        others[WEIGHT], roles = rows.weight, replace(roles, weight=WEIGHT)
    if persons is not None:
        others[PERSON], roles = persons, replace(roles, person=PERSON)
    if rows.time is not None:
        others[TIME], roles = rows.time, replace(roles, time=TIME)
    if rows.declared is not None:
        declared = {f"{DECLARED} {name}": values.to_numpy() for name, values in rows.declared.items()}
        others, roles = others | declared, replace(roles, declared=tuple(declared))
    return table.assign(**others), roles


# ---- coefficients by sums over blocks ----


@dataclass(frozen=True, eq=False)
class Problem:
    """What is fitted to the rows of a block: the pooled classifier, or corrections of it for each group."""

    n_outputs: int
    tables: tuple[NDArray[np.float64], ...] | None = None
    """What bins count for each coefficient; None where coefficients are of columns."""
    standard: Standardization | None = None
    base: "PooledLogits | None" = None
    """What is corrected, group by group; None for a pooled classifier."""
    with_base: bool = False
    """Whether corrections have a coefficient for it."""

    def rows(self, block: Arrays) -> tuple[Regression, NDArray[np.intp]]:
        """Return the rows with the logits that are there already, and the part each of them belongs to."""
        n_rows = len(block["label"])
        if self.base is None:
            offset, part = np.zeros((n_rows, self.n_outputs)), np.zeros(n_rows, np.intp)
        else:
            offset, part = self.base(block), block["group"].astype(np.intp)
        design: Design
        if self.tables is not None:
            design = BinnedDesign(block["codes"], self.tables)
        else:
            columns = [] if self.standard is None else [self.standard.of_rows(block["numbers"])]
            design = DenseDesign(np.hstack([*columns, offset] if self.with_base else columns))
        return Regression(design, block["label"].astype(np.intp), _weight(block), offset), part

    def loss_and_gradient(self, block: Arrays, coefficients: NDArray[np.float64]) -> tuple[Any, ...]:
        """The sums that a pass takes: loss, gradient (parts, p, m) and weight."""
        rows, part = self.rows(block)
        logits = rows.offset + rows.design.grouped_logits(coefficients, part)
        pull = rows.weight[:, None] * residual(logits, rows.label)
        return rows.loss(logits), -rows.design.gradients(pull, part, len(coefficients)), rows.weight.sum()


def _weight(block: Arrays) -> NDArray[np.float64]:
    return block["weight"] if "weight" in block else np.ones(len(block["label"]))


def penalty_matrices(strength: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Curvature of penalties on coefficients of a shape (parts, p, m), for all outputs together, (parts, pm, pm).

    Half of the sum of strength (p,) × coefficient².
    """
    return np.stack([np.diag(np.tile(strength, shape[2]))] * shape[0])


def fit_in_passes(
    blocks: Blocks[Arrays],
    problem: Problem,
    penalty: NDArray[np.float64],
    curvature: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    start: NDArray[np.float64],
    tolerance: float = 1e-10,
) -> NDArray[np.float64]:
    """Minimise the penalised loss of all rows.

    A sample has been fitted before, and gives all that no pass is needed for: where to start, how strong the penalty
    is, and the curvature of the loss. A pass sums the loss and its gradient, and every step of Newton's method with
    the curvature of the sample leaves a few per cent of the way.

    Parameters
    ----------
    blocks : Blocks
    problem : Problem
    penalty : array of shape (parts, pm, pm)
    curvature : function
        Curvature of the loss at coefficients, (parts, pm, pm), per unit of weight: as a sample tells it.
    start : array of shape (parts, p, m)
    tolerance : float
        Stop when a step promises less than this, per unit of weight.
    """

    def sums(coefficients: NDArray[np.float64]) -> tuple[float, NDArray[np.float64], float]:
        loss, slope, weight = blocks.total(partial(problem.loss_and_gradient, coefficients=coefficients))
        flat = _flat(coefficients)
        pulls = np.einsum("kpq,kq->kp", penalty, flat)
        return float(loss) + float((flat * pulls).sum()) / 2, _flat(slope) + pulls, float(weight)

    def factors(coefficients: NDArray[np.float64]) -> list[Any]:
        return [cho_factor(one, lower=True) for one in weight * curvature(coefficients) + penalty]

    coefficients = start
    value, gradient, weight = sums(coefficients)
    factored = factors(coefficients)
    for step in range(1, 60):
        direction = np.stack([cho_solve(factor, one) for factor, one in zip(factored, gradient, strict=True)])
        promised, damping = float((gradient * direction).sum()), 1.0
        if promised <= tolerance * weight:
            return coefficients - _folded(direction, start)  # So short a step needs no damping, and is paid for.
        while True:
            moved = coefficients - damping * _folded(direction, start)
            moved_value, moved_gradient, _ = sums(moved)
            if moved_value <= value - 1e-4 * damping * promised:
                break
            if damping <= 2.0**-20:  # Nothing is left to gain but rounding.
                return coefficients
            damping /= 2
        coefficients, value, gradient = moved, moved_value, moved_gradient
        # The way is longer than four steps only where the sample misled it.
        if damping < 1 or step % 4 == 0:
            factored = factors(coefficients)
    return coefficients


def _flat(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients (parts, p, m) as (parts, pm): those of one output after those of the other."""
    return coefficients.swapaxes(1, 2).reshape(len(coefficients), -1)


def _folded(flat: NDArray[np.float64], like: NDArray[np.float64]) -> NDArray[np.float64]:
    n_parts, p, m = like.shape
    return flat.reshape(n_parts, m, p).swapaxes(1, 2)


# ---- the pooled classifier and the groups' own, fitted on all rows ----


@dataclass(frozen=True, eq=False)
class PooledLogits:
    """Logits of the pooled classifier: points of bins, a sum over columns, or what is kept of a foreign one."""

    points: tuple[NDArray[np.float64], ...] | None
    weight: NDArray[np.float64] | None
    intercept: NDArray[np.float64]

    @classmethod
    def of(cls, pooled: Any) -> "PooledLogits":
        """Take what is needed of a classifier."""
        last: Any = final_classifier(pooled.model)
        if pooled.kind == "points":
            return cls(tuple(last.points_), None, last.intercept_)
        if pooled.kind == "columns":
            return cls(None, last.coef_.T, last.intercept_)
        return cls(None, None, np.zeros(0))

    def __call__(self, block: Arrays) -> NDArray[np.float64]:
        """Logits of the rows of a block, (n, m)."""
        if self.points is not None:
            return sum_points(block["codes"], self.points, self.intercept)
        if self.weight is not None:
            return np.asarray(block["numbers"] @ self.weight + self.intercept)
        return block["base"]


@dataclass(frozen=True, eq=False)
class _Encode:
    """What is kept of a block of rows: bins or numbers, labels, weights, groups, and logits of a foreign classifier."""

    split: Split
    classes: NDArray[Any]
    as_frame: bool
    encoding: TableEncoding
    kind: Kind
    regions: tuple[Region, ...]
    logits: tuple[Column, ...]
    foreign: Callable[[EncodedRows], NDArray[np.float64]] | None

    def __call__(self, block: pd.DataFrame) -> Arrays:
        block, roles = block[self.split(block)[0]], self.split.roles
        labels = block[roles.label].to_numpy()
        label = pd.Index(self.classes).get_indexer(labels)
        if (label < 0).any():
            raise InputError(
                f"y holds {quoted(labels[label < 0][0])} in so few rows that the sample has none, by which groups are "
                "chosen: leave those rows out, or put rare classes together."
            )
        features = block[list(roles.features)].reset_index(drop=True)
        seen = self.encoding.encode(features if self.as_frame else features.to_numpy())
        kept: Arrays = {
            "label": label.astype(np.uint8 if len(self.classes) < 256 else np.uint16),
            "group": assign_first(self.regions, seen).astype(np.uint8),
        }
        if roles.weight is not None:
            kept["weight"] = roles.weights(block)
        if self.foreign is not None:
            kept["base"] = self.foreign(seen)
        if self.kind == "columns":
            kept["numbers"] = seen.numbers
        elif self.kind == "points" or self.logits:
            kept["codes"] = with_logit_codes(seen.codes, self.logits, kept["base"]) if self.logits else seen.codes
        return kept


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
    `pooled` and `exceptions` are what the sample has chosen, a `PooledFit` and `LearnedExceptions` of
    `dafh.estimators`; `foreign` gives the logits of a pooled classifier that is neither a scorecard nor linear.
    """
    assert training.blocks is not None
    assert training.split is not None
    by_itself = foreign if pooled.kind == "logits" else None
    encode = _Encode(
        training.split,
        classes,
        as_frame,
        pooled.encoding,
        pooled.kind,
        exceptions.regions,
        exceptions.design.logits,
        by_itself,
    )
    kept = training.blocks.keep(encode)
    last = final_classifier(pooled.model)
    if isinstance(last, Scorecard) and pooled.sums is not None:
        _refit_scorecard(last, pooled.sums, kept)
    elif isinstance(last, StandardizedLogisticRegression) and pooled.fitted_here:
        _refit_regression(last, exceptions, kept)
    if exceptions.fitted.settings is None:
        return None
    return _refit_corrections(exceptions, PooledLogits.of(pooled), kept)


def _refit_scorecard(model: Scorecard, fit: ScorecardFit, kept: Blocks[Arrays]) -> None:
    if model.monotonic:
        raise InputError(
            "A monotonic scorecard is fitted in memory only: fit it on a sample, and bring it as the pooled classifier."
        )
    start, problem = fit.solution.coefficients[None], Problem(fit.rows.offset.shape[1], tuple(fit.design.tables))
    penalty = penalty_matrices(fit.solution.penalty, start.shape)
    found = fit_in_passes(kept, problem, penalty, _curvature(fit.rows), start)
    model.keep(fit, replace(fit.solution, coefficients=found[0]))


def _refit_regression(model: StandardizedLogisticRegression, exceptions: Any, kept: Blocks[Arrays]) -> None:
    X, sample = exceptions.seen.numbers, exceptions.problem.regression
    standard = Standardization.of(X, sample.weight)
    start = standard.stacked(model.intercept_, model.coef_)[None]
    n_outputs = start.shape[2]
    sample = replace(sample, design=DenseDesign(standard.of_rows(X)), offset=np.zeros((len(X), n_outputs)))
    strength = np.full(start.shape[1], 1 / float(model.C_))
    strength[0] = 1e-6  # Not penalised, but for the last digits.
    penalty = penalty_matrices(strength, start.shape)
    found = fit_in_passes(kept, Problem(n_outputs, standard=standard), penalty, _curvature(sample), start)
    model.intercept_, model.coef_ = standard.unstacked(found[0])


def _refit_corrections(exceptions: Any, base: PooledLogits, kept: Blocks[Arrays]) -> ExceptionModel:
    """Corrections of the pooled logits, with the strength that the sample has chosen.

    With so many rows, a pooled classifier that has seen them is hardly more sure of them than one that has not.
    """
    settings, chosen, design = exceptions.fitted.settings, exceptions.fitted.chosen, exceptions.design
    sample, n_groups = exceptions.problem.regression, len(chosen.corrections)
    strength = np.full(sample.design.n_coefficients, settings.strength)
    penalty = penalty_matrices(strength, chosen.corrections.shape)
    if not settings.corrects_rest:
        # Everybody else is served by the pooled classifier: nothing moves these coefficients from 0.
        penalty[-1] *= 1e12
    if design.tables is not None:
        problem = Problem(sample.offset.shape[1], tuple(design.tables), base=base)
    else:
        standard = Standardization(design.center, design.scale) if len(design.center) else None
        problem = Problem(sample.offset.shape[1], None, standard, base, not design.has_columns)
    group = chosen.assign(exceptions.problem.codes)
    fitted = fit_in_passes(kept, problem, penalty, _curvature(sample, group, n_groups), chosen.corrections)
    if not settings.corrects_rest:
        fitted[-1] = 0.0
    return ExceptionModel(exceptions.regions, design.served(fitted))


def _curvature(
    sample: Regression, group: NDArray[Any] | None = None, n_groups: int = 1
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Curvature of the loss per unit of weight, as a sample tells it."""
    part = np.zeros(len(sample.label), np.intp) if group is None else group

    def curvature(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        logits = sample.offset + sample.design.grouped_logits(coefficients, part)
        return sample.joint_curvatures_by(logits, part, n_groups) / sample.weight.sum()

    return curvature
