"""Which way a table is read to train on: whole, or in passes over rows of which no more than a sample is in memory."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from dafh import large
from dafh.checks.rows import absolute_times
from dafh.estimators.dafh import DAFHClassifier
from dafh.exceptions import InputError
from dafh.large import DECLARED, LABEL, PERSON, TIME, WEIGHT, Blocks, Roles, Split
from dafh.progress import status
from dafh.tables.encoder import TableReader
from dafh.tables.labels import labelled_rows, match_labels, no_target, read_labels
from dafh.tables.read import STDIN, DataFile
from dafh.tables.schema import TableSchema, check_columns, persons_of
from dafh.tables.values import guess_kind, with_gaps
from dafh.tables.write import TableWriter
from dafh.workflows.fingerprints import fingerprint, hash_sums, labelled_hashes
from dafh.workflows.names import split_names
from dafh.workflows.set_aside import Saved, save_with_test_rows
from dafh.workflows.training import TrainingTable, class_shares_in_words, details_of

_LISTS = ("drop", "sensitive", "categories", "protect")
_ROWS_TO_GUESS_BY = 10_000


def read_table(
    data: DataFile, target: str, *, seed: int = 0, on_cluster: bool = False, **said: Any
) -> "TrainingTable | LargeTable":
    """Read a table to train on.

    Parameters
    ----------
    data : DataFile
        Its path may also be a pattern such as ``rows/*.parquet``, or a folder.
    target : str
    seed : int
        Draws the rows that are held out.
    on_cluster : bool
        Whether the workers of a Dask cluster read the rows of a large table.
    said : what the user says about columns, as in `TrainingTable.read`
    """
    if str(data.path) == STDIN:
        return TrainingTable.read(data, target, seed=seed, **said)
    files = replace(data, leave_out=split_names(said.get("drop", ()), ())).files()
    if sum(file.count_rows() for file in files) <= large.SAMPLE_SIZE:
        return TrainingTable.read(data, target, seed=seed, **said)
    names = list(next(files[0].pieces(rows=100)).columns)
    said |= {name: split_names(said.get(name, ()), names) for name in _LISTS}
    return LargeTable.read(files, target, seed=seed, on_cluster=on_cluster, **said)


@dataclass(frozen=True, eq=False)
class _TypedRows:
    """Makes typed rows of rows as a file has them: features, label, and what the guard and the splits need."""

    schema: TableSchema
    reader: TableReader
    classes: NDArray[Any]
    split: Split
    """Which rows are set aside as test rows."""

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
        times, weights = schema.times_of(known), schema.weights_of(known)
        if times is not None:
            others[TIME] = times
        if weights is not None:
            others[WEIGHT] = weights
        for name in schema.protected:
            others[f"{DECLARED} {name}"] = schema.attributes_of(known, [name])[name]
        return parts.assign(**others)

    def training(self, block: pd.DataFrame) -> pd.DataFrame:
        """Typed rows to train on."""
        typed = self.typed(self.known(block))
        return typed[self.split(typed)[0]]

    def test(self, block: pd.DataFrame) -> pd.DataFrame:
        """Test rows, as a typed file is to hold them."""
        known = self.known(block)
        return self.schema.stored(known)[~self.split(self.typed(known))[0]]

    def counted(self, block: pd.DataFrame) -> "_Counted":
        """Rows, labels and hashes."""
        known = self.known(block)
        typed = self.typed(known)
        trains, _ = self.split(typed)
        hashes = labelled_hashes(typed[list(self.schema.columns)], typed[LABEL])
        labels = Counter(typed[LABEL][trains].tolist())
        return _Counted(len(block), len(known), labels, hash_sums(hashes), hash_sums(hashes[trains]))


@dataclass(frozen=True)
class _Counted:
    """Rows, rows with a target, labels of training rows, and sums of hashes of all rows and of training rows."""

    n_rows: int
    n_known: int
    labels: Counter[Any]
    sums: NDArray[np.uint64]
    training_sums: NDArray[np.uint64]

    def __add__(self, other: "_Counted") -> "_Counted":
        return _Counted(
            self.n_rows + other.n_rows,
            self.n_known + other.n_known,
            self.labels + other.labels,
            self.sums + other.sums,
            self.training_sums + other.training_sums,
        )


@dataclass(frozen=True, eq=False)
class LargeTable:
    """Files to train on, of which no more than a sample is in memory; has what `TrainingTable` has for a command."""

    name: str
    raw: Blocks[pd.DataFrame]
    rows: _TypedRows
    found: _Counted
    notes: tuple[str, ...]

    @classmethod
    def read(
        cls,
        files: Sequence[DataFile],
        target: str,
        *,
        seed: int = 0,
        test_size: float = 0.0,
        on_cluster: bool = False,
        **said: Any,
    ) -> "LargeTable":
        """Look at files: a pass over their rows for a sample, which tells what columns hold, and one to count."""
        head = next(files[0].pieces(rows=_ROWS_TO_GUESS_BY, text=None))
        check_columns(head.columns, [target], "the target")
        decimal = files[0].layout.decimal if files[0].layout else "."
        # Only what looks like a number is read as one: a zip code keeps its zeros.
        text = tuple(str(name) for name in head if guess_kind(head[name], decimal) != "number" or name == target)
        opened = large.open_files(files, text)
        assert opened.n_rows is not None
        raw = large.read_by_workers(opened) if on_cluster else opened
        sample, _ = large.draw_rows(raw, Split(Roles(target), seed), opened.n_rows, large.SAMPLE_SIZE)
        sample = labelled_rows(sample, target)
        schema = TableSchema.guess(sample, target, **said, decimal=decimal)
        reader = TableReader(schema.columns).fit(schema.features_of(sample))
        times = schema.times_of(sample) if test_size else None
        cut = None if times is None else float(np.quantile(absolute_times(times), 1 - test_size))
        classes = np.unique(read_labels(sample[target]))
        rows = _TypedRows(schema, reader, classes, Split(_roles(schema), seed, test_size, cut))
        found = reduce(add, raw.map(rows.counted))
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
        roles, n_rows = self.rows.split.roles, self.found.labels.total()
        known = [name for name in (LABEL, roles.weight, roles.person, roles.time, *roles.declared) if name is not None]
        blocks: Any = self.raw.through(self.rows.training, columns=(*roles.features, *known), n_rows=n_rows)
        # A network has a bar of its own.
        shown: AbstractContextManager[Any] = status(f"fitting {n_rows:,} rows") if model.verbose else nullcontext()
        with shown:
            model.fit(
                blocks,
                LABEL,
                persons=roles.person,
                time=roles.time,
                sample_weight=roles.weight,
                guard_features=roles.declared or None,
            )
        return Pipeline([("encoder", self.rows.reader), ("model", model)])

    def about_cutoff(self, _: Pipeline) -> str | None:
        """Say nothing about cut-offs, which would take another pass over the rows."""
        return None

    def save(self, model: Pipeline, path: Path) -> Saved:
        """Write a model that was fitted on the table, and the held-out rows beside it."""
        prints = dict.fromkeys(fingerprint(sums) for sums in (self.found.sums, self.found.training_sums))
        details = details_of(self, model, self.found.labels.total(), tuple(prints))
        return save_with_test_rows(model, path, details, self.found.sums - self.found.training_sums, self._write_test)

    def _write_test(self, writer: TableWriter) -> None:
        for rows in self.raw.map(self.rows.test):
            if len(rows):
                writer.write(rows.reset_index(drop=True))


def _roles(schema: TableSchema) -> Roles:
    """Roles of the columns of typed rows."""
    return Roles(
        LABEL,
        WEIGHT if schema.weight is not None else None,
        PERSON if schema.person is not None else None,
        TIME if schema.time else None,
        tuple(f"{DECLARED} {name}" for name in schema.protected),
        tuple(schema.columns),
    )
