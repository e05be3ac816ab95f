"""From files that are too large to be read at once to a model file: everything in passes over their rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import cpu_count
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from dafh.blocks.base import Blocks
from dafh.blocks.cluster import DaskBlocks
from dafh.blocks.files import FileBlocks
from dafh.blocks.memory import ROWS_PER_BLOCK
from dafh.blocks.reporting import PassReport, ReportedBlocks
from dafh.blocks.sampling import EVERYTHING, Keys, Part, Wanted, draw_rows, random_places
from dafh.estimators import training_rows
from dafh.estimators.dafh import DAFHClassifier
from dafh.exceptions import InputError
from dafh.rows.roles import DECLARED, LABEL, PERSON, TIME, WEIGHT
from dafh.tables.hashes import mixed, row_hashes, value_hashes
from dafh.tables.labels import labelled_rows, match_labels, no_target, read_labels
from dafh.tables.read import DataFile
from dafh.tables.reader import TableReader
from dafh.tables.schema import TableSchema, check_columns, persons_of
from dafh.tables.values import guess_kind, to_floats, with_gaps
from dafh.tables.write import TableWriter
from dafh.workflows.fingerprints import fingerprint, hash_sums, labelled_hashes
from dafh.workflows.set_aside import Saved, save_with_test_rows
from dafh.workflows.training import class_shares_in_words, details_of

_ROWS_TO_GUESS_BY = 10_000
# Bytes: of Python and its libraries; of a value of the sample while groups are learned; of a value of a block.
_MEMORY_OF_LIBRARIES, _MEMORY_OF_SAMPLE, _MEMORY_OF_BLOCK = 0.3e9, 160, 400
_FEWEST_ROWS_PER_BLOCK = 2**12


@dataclass(frozen=True, eq=False)
class TypedRows:
    """Makes typed rows of rows as a file has them: features, label, and what the guard and the splits need."""

    schema: TableSchema
    reader: TableReader
    classes: NDArray[Any]
    test: Part | None
    """The part of the rows that is held out; by time where there is one, else at random."""

    def known(self, block: pd.DataFrame) -> pd.DataFrame:
        """Rows with a target."""
        return block[with_gaps(block[self.schema.target]).notna()]

    def typed(self, known: pd.DataFrame) -> pd.DataFrame:
        """Columns in their roles."""
        schema = self.schema
        parts = self.reader.transform(schema.features_of(known)) if len(known) else known[list(schema.columns)]
        others: dict[str, Any] = {LABEL: match_labels(known[schema.target], self.classes) if len(known) else []}
        if schema.person is not None:
            others[PERSON] = persons_of(known, schema.person)
        times = schema.times_of(known)
        if times is not None:
            others[TIME] = times
        weights = schema.weights_of(known)
        if weights is not None:
            others[WEIGHT] = weights
        for name in schema.protected:
            others[f"{DECLARED} {name}"] = schema.attributes_of(known, [name])[name]
        return parts.assign(**others)

    def is_test(self, typed: pd.DataFrame) -> NDArray[np.bool_]:
        """Whether typed rows are held out."""
        return np.zeros(len(typed), bool) if self.test is None else self.test.holds(self._keys(typed))

    def _keys(self, typed: pd.DataFrame) -> Keys:
        if PERSON in typed:
            hashes = mixed(value_hashes(typed[PERSON]), salt=4)
        else:
            hashes = row_hashes(typed[[*self.schema.columns, LABEL]])
            # Of equal rows, each goes its own way: a kind of row that is frequent must be on both sides.
            copy: NDArray[np.uint64] = pd.Series(hashes).groupby(hashes).cumcount().to_numpy().astype(np.uint64)
            hashes = mixed(hashes + copy, salt=4)
        return Keys(hashes, to_floats(typed[TIME]) if TIME in typed else random_places(hashes))

    def __call__(self, block: pd.DataFrame) -> pd.DataFrame:
        """Rows to train on."""
        typed = self.typed(self.known(block))
        return typed[~self.is_test(typed)].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class _Look:
    """Counts the rows, labels and hashes of a block."""

    rows: TypedRows

    def __call__(self, block: pd.DataFrame) -> "Found":
        known = self.rows.known(block)
        typed = self.rows.typed(known)
        test = self.rows.is_test(typed)
        hashes = labelled_hashes(typed[list(self.rows.schema.columns)], typed[LABEL])
        labels = Counter(typed[LABEL][~test].tolist())
        return Found(len(block), len(known), int(test.sum()), labels, hash_sums(hashes), hash_sums(hashes[~test]))


@dataclass(frozen=True)
class Found:
    """What a look at all rows has found."""

    n_rows: int
    n_known: int
    n_test: int
    labels: Counter[Any]
    sums: NDArray[np.uint64]
    training_sums: NDArray[np.uint64]

    def __add__(self, other: "Found") -> "Found":
        return Found(
            self.n_rows + other.n_rows,
            self.n_known + other.n_known,
            self.n_test + other.n_test,
            self.labels + other.labels,
            self.sums + other.sums,
            self.training_sums + other.training_sums,
        )


@dataclass(frozen=True, eq=False)
class _TestRows:
    """Held-out rows of a block, as a typed file is to hold them."""

    rows: TypedRows

    def __call__(self, block: pd.DataFrame) -> pd.DataFrame:
        known = self.rows.known(block)
        return self.rows.schema.stored(known)[self.rows.is_test(self.rows.typed(known))]


@dataclass(frozen=True, eq=False)
class LargeTable:
    """Files to train on, of which no more than a sample is in memory; has what `TrainingTable` has for a command."""

    name: str
    raw: Blocks[pd.DataFrame]
    rows: TypedRows
    found: Found
    notes: tuple[str, ...]

    @classmethod
    def read(
        cls,
        files: Sequence[DataFile],
        target: str,
        n_rows: int,
        *,
        test_size: float = 0.0,
        on_cluster: bool = False,
        memory: float | None = None,
        report: PassReport | None = None,
        **said: Any,
    ) -> "LargeTable":
        """Look at files: a pass over their rows for a sample, which tells what columns hold, and one to count.

        Parameters
        ----------
        files : sequence of DataFile
        target : str
        n_rows : int
            Rows of all files, as they are counted without reading them.
        test_size : float
        on_cluster : bool
            Whether the workers of a Dask cluster read the files.
        memory : float, optional
            Bytes that may be used; None: as many as it takes.
        report : function, optional
            Called after every pass.
        said : what the user says about columns
        """
        opened = FileBlocks.open(files)
        check_columns(opened.columns, [target], "the target")
        if memory is not None:
            opened = opened.with_rows_per_block(rows_per_block(memory, len(opened.columns)))
        head = next(files[0].pieces(rows=_ROWS_TO_GUESS_BY, text=None))
        decimal = files[0].layout.decimal if files[0].layout else "."
        # Only what looks like a number is read as one: a zip code keeps its zeros.
        text = tuple(str(name) for name in head if guess_kind(head[name], decimal) != "number" or name == target)
        opened = opened.reading_as_text(text)
        raw: Blocks[pd.DataFrame] = DaskBlocks.of_files(opened) if on_cluster else opened
        raw = raw if report is None else ReportedBlocks(raw, report)
        (sample,), _ = draw_rows(
            raw, _raw_keys, n_rows, [Wanted(EVERYTHING, training_rows.MOST_ROWS)], each_for_itself=False
        )
        sample = labelled_rows(sample, target)
        schema = TableSchema.guess(sample, target, **said, decimal=decimal)
        reader = TableReader(schema.columns).fit(schema.features_of(sample))
        classes = np.unique(read_labels(sample[target]))
        rows = TypedRows(schema, reader, classes, _test_part(schema, sample, test_size))
        found = reduce(add, raw.each(_Look(rows)))
        if len(found.labels) < 2:
            raise InputError("The rows left to train on have one value of the target only.")
        left = no_target(found.n_rows - found.n_known)
        sampled = f"Columns, bins and groups are chosen by {len(sample):,} of {found.n_rows:,} rows."
        notes = (*files[0].notes, *left, sampled, *schema.notes, *schema.leakage_notes(sample))
        return cls(Path(files[0].name).name, raw, rows, found, notes)

    @property
    def schema(self) -> TableSchema:
        """What the columns hold."""
        return self.rows.schema

    def headline(self) -> str:
        """Say how many rows there are, and the share of each label."""
        return class_shares_in_words(self.found.labels, self.schema.target)

    def fit(self, model: DAFHClassifier) -> Pipeline:
        """Fit a pipeline that reads tables and ends in a DAFHClassifier."""
        schema = self.schema
        declared = [f"{DECLARED} {name}" for name in schema.protected]
        person, time = PERSON if schema.person is not None else None, TIME if schema.time else None
        weight = WEIGHT if schema.weight is not None else None
        named = (*schema.columns, LABEL, person, time, weight, *declared)
        blocks: Any = self.raw.through(
            self.rows,
            columns=tuple(name for name in named if name is not None),
            n_rows=self.found.n_known - self.found.n_test,
        )
        model.fit(blocks, LABEL, persons=person, time=time, sample_weight=weight, guard_features=declared or None)
        return Pipeline([("encoder", self.rows.reader), ("model", model)])

    def about_cutoff(self, _: Pipeline) -> str | None:
        """Say nothing about cut-offs, which would take another pass over the rows."""
        return None

    def save(self, model: Pipeline, path: Path) -> Saved:
        """Write a model that was fitted on the table, and the held-out rows beside it."""
        prints = dict.fromkeys(fingerprint(sums) for sums in (self.found.sums, self.found.training_sums))
        n_rows = self.found.n_known - self.found.n_test
        details = details_of(self, model, n_rows, tuple(prints))
        return save_with_test_rows(model, path, details, self.found.sums - self.found.training_sums, self._write_test)

    def _write_test(self, writer: TableWriter) -> None:
        for rows in self.raw.each(_TestRows(self.rows)):
            if len(rows):
                writer.write(rows.reset_index(drop=True))


def rows_per_block(memory: float, n_columns: int, n_threads: int | None = None) -> int:
    """Rows of a block, so that no more memory is used than is allowed.

    Examples
    --------
    >>> rows_per_block(2e9, n_columns=20, n_threads=2), rows_per_block(2e9, n_columns=40, n_threads=2)
    (65536, 13125)
    """
    needed = _MEMORY_OF_LIBRARIES + _MEMORY_OF_SAMPLE * training_rows.MOST_ROWS * n_columns
    of_a_row = _MEMORY_OF_BLOCK * n_columns * (n_threads or cpu_count())
    if needed + _FEWEST_ROWS_PER_BLOCK * of_a_row > memory:
        least = (needed + _FEWEST_ROWS_PER_BLOCK * of_a_row) / 1e9
        raise InputError(
            f"A sample of {training_rows.MOST_ROWS:,} rows with {n_columns} columns needs about {least:.1f} GB of "
            "memory: allow more, or leave columns out."
        )
    return int(min(ROWS_PER_BLOCK, (memory - needed) / of_a_row))


def _raw_keys(block: pd.DataFrame) -> Keys:
    hashes = row_hashes(block)
    return Keys(hashes, random_places(hashes))


def _test_part(schema: TableSchema, sample: pd.DataFrame, test_size: float) -> Part | None:
    if not test_size:
        return None
    times = schema.times_of(sample)
    if times is None:
        return Part(high=test_size, size=test_size)
    return Part(low=float(np.quantile(to_floats(times), 1 - test_size)), size=test_size)
