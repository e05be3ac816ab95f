"""Tables to train on: read whole, or in passes over rows of which no more than a sample is in memory."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from dafh import large
from dafh.checks.rows import absolute_times, check_persons, check_times
from dafh.classifiers.pipelines import split_pipeline
from dafh.estimators.dafh import DAFHClassifier
from dafh.exceptions import InputError
from dafh.explanation.words import worth_of_groups
from dafh.large import DECLARED, LABEL, PERSON, TIME, WEIGHT, Blocks, Roles, Split
from dafh.persistence.files import card_of, file_content
from dafh.progress import status
from dafh.rows.held_out import set_rows_aside
from dafh.scoring import fingerprint, hash_sums, held_out_path, labelled_hashes, split_names
from dafh.storage import replacing
from dafh.tables.encoder import TableReader, tabular_pipeline
from dafh.tables.labels import labelled_rows, match_labels, no_target, read_labels
from dafh.tables.read import STDIN, DataFile, with_columns
from dafh.tables.schema import TableSchema, check_columns, persons_of
from dafh.tables.values import guess_kind, with_gaps
from dafh.tables.write import TableWriter
from dafh.text import clipped, quoted
from dafh.watch.inputs import Reference

_FEWEST_ROWS = 20
_ROWS_TO_GUESS_BY = 10_000
_LISTS = ("drop", "sensitive", "categories", "protect")
"""What a user says about columns by lists of names."""
_ROLES = {"persons": PERSON, "time": TIME, "sample_weight": WEIGHT}
"""Names that `fit` has for what is known about rows, and those of columns of typed rows."""


def read_table(data: DataFile, target: str, *, on_cluster: bool = False, **said: Any) -> "Table":
    """Read a table to train on: a file, a folder, or all files behind a pattern such as ``rows/*.parquet``.

    What the user says about columns and test rows is `said`, as in `TrainingTable.read`. With `on_cluster`, the workers
    of a Dask cluster read the rows of a large table.
    """
    if str(data.path) == STDIN:
        return TrainingTable.read(data, target, **said)
    files = data.files()
    if sum(file.count_rows() for file in files) <= large.SAMPLE_SIZE:
        return TrainingTable.read(data, target, **said)
    names = list(next(files[0].pieces(rows=100)).columns)
    said |= {name: split_names(said.get(name, ()), names) for name in _LISTS}
    return LargeTable.read(files, target, on_cluster=on_cluster, **said)


@dataclass(frozen=True, eq=False)
class Table(ABC):
    """A table to train on, what its columns hold, and what was guessed about them."""

    name: str
    schema: TableSchema
    notes: tuple[str, ...]
    labels: Counter[Any]
    """Of the training rows."""
    sums: NDArray[np.uint64]
    """Sums of the hashes of all rows with a target."""
    training_sums: NDArray[np.uint64]

    @abstractmethod
    def fit(self, model: DAFHClassifier) -> Pipeline:
        """Fit a pipeline that reads tables and ends in a DAFHClassifier."""

    @abstractmethod
    def test_pieces(self) -> Iterable[pd.DataFrame]:
        """Rows set aside: not used in training, nor in anything learned from values."""

    def headline(self) -> str:
        """Say how many rows there are to train on, and the share of each label."""
        n_rows = self.labels.total()
        shares = [f"{clipped(value, 30)} in {number / n_rows:.0%}" for value, number in sorted(self.labels.items())]
        more = ", …" if len(shares) > 5 else ""
        return (
            f"Training on {n_rows:,} rows. Values of {clipped(self.schema.target, 40)}: {', '.join(shares[:5])}{more}."
        )

    def details(self, model: Pipeline) -> dict[str, Any]:
        """What is written about the table into the file of a model that was fitted on it."""
        return {
            "data": self.name,
            "rows": self.labels.total(),
            "schema": self.schema.to_dict(),
            "fingerprints": list(dict.fromkeys(fingerprint(sums) for sums in (self.sums, self.training_sums))),
            "guesses": list(self.notes),
            "worth": worth_of_groups(model),
        }

    def save(self, model: Pipeline, path: Path) -> tuple[dict[str, Any], Path | None]:
        """Write a model that was fitted on the table, and the test rows beside it; return its card, and where they are.

        Both are written before either takes its place, so that a full disk leaves the files of an earlier fit as they
        were. Test rows go first. If the process is killed between the two, the earlier model finds that they are not
        its own: a new model could not know that it was trained on the rows of an earlier file that has their name.
        """
        sums = self.sums - self.training_sums
        n_rows = int(sums[0])
        known = {"test_fingerprint": fingerprint(sums)} if n_rows else {}
        content = file_content(model, details={**self.details(model), "rows_kept_back": n_rows, **known})
        with replacing(path) as temporary:
            temporary.write_bytes(content)
            if n_rows:
                with TableWriter(held_out_path(path)) as writer:
                    for rows in self.test_pieces():
                        writer.write(rows)
        return card_of(content), held_out_path(path) if n_rows else None


def _about_rows(known: pd.DataFrame, schema: TableSchema) -> dict[str, Any]:
    """Attributes for the guard, persons, time and weights, under the names that `fit` has for them."""
    found = {
        "guard_features": schema.attributes_of(known, schema.protected) if schema.protected else None,
        "persons": persons_of(known, schema.person) if schema.person is not None else None,
        "time": schema.times_of(known),
        "sample_weight": schema.weights_of(known),
    }
    return {name: values for name, values in found.items() if values is not None}


# ---- in memory ----


@dataclass(frozen=True, eq=False)
class TrainingTable(Table):
    """A table in memory."""

    y: NDArray[Any]
    features: pd.DataFrame
    """Features of the training rows, typed."""
    about: dict[str, Any]
    """What `fit` is told about the training rows beside their features: attributes for the guard, persons, time."""
    test_rows: pd.DataFrame

    @classmethod
    def read(
        cls,
        data: DataFile,
        target: str,
        *,
        drop: Iterable[str] = (),
        sensitive: Iterable[str] = (),
        categories: Iterable[str] = (),
        protect: Iterable[str] = (),
        test_size: float = 0.0,
        seed: int = 0,
        **roles: str | None,
    ) -> "TrainingTable":
        """Read a file and guess what its columns hold.

        Parameters
        ----------
        data : DataFile
        target : str
        drop, sensitive, categories, protect : names of columns
            See `TableSchema.guess`; names may be joined by commas.
        test_size : float
            Share of the rows that are held out: the last ones where time counts, else drawn with `seed`. All rows of a
            person are on the same side.
        **roles
            Columns that say which rows belong to one person (person), when a row was observed (time) and how much it
            counts (weight), and those that the pooled classifier is read from (score, decision).
        """
        table = _read_all(data)
        check_columns(table.columns, [target], "the target")
        said = {
            name: split_names(names, table.columns)
            for name, names in zip(_LISTS, (drop, sensitive, categories, protect), strict=True)
        }
        known = labelled_rows(table, target)
        if len(known) < _FEWEST_ROWS:
            raise InputError(f"{data.name} has {len(known)} rows with a target: at least {_FEWEST_ROWS} are needed.")
        y = read_labels(known[target])
        # From all rows, held-out ones too: whether a column holds numbers must not depend on where the one word among
        # them was drawn. Kinds and columns to leave out are all that held-out rows decide; every statistic (medians,
        # categories, leakage) comes from training rows alone.
        decimal = data.layout.decimal if data.layout else "."
        schema = TableSchema.guess(known, target, **said, **roles, decimal=decimal)  # type: ignore[arg-type]
        about = _about_rows(known, schema)
        features = schema.features_of(known)
        hashes = labelled_hashes(features, y)
        test = _held_out(y, target, about, test_size, seed)
        return cls(
            Path(data.name).name,
            schema,
            (*data.notes, *no_target(len(table) - len(known)), *schema.notes, *schema.leakage_notes(known[~test])),
            Counter(y[~test].tolist()),
            hash_sums(hashes),
            hash_sums(hashes[~test]),
            y[~test],
            features[~test],
            {name: values[~test] for name, values in about.items()},
            schema.stored(known)[test].reset_index(drop=True),
        )

    def fit(self, model: DAFHClassifier) -> Pipeline:
        """Fit a pipeline that reads tables and ends in a DAFHClassifier."""
        options = {f"model__{name}": values for name, values in self.about.items()}
        return tabular_pipeline(model, self.schema.columns).fit(self.features, self.y, **options)

    def test_pieces(self) -> Iterable[pd.DataFrame]:
        """All test rows."""
        return [self.test_rows]

    def details(self, model: Pipeline) -> dict[str, Any]:
        """Also what training rows look like, for a monitor that compares later ones with them."""
        final, X = split_pipeline(model, self.features)
        groups, kinds = final.predict_group(X), self.schema.columns
        reference = Reference.of(self.features, groups, int(final.n_groups_), kinds=kinds)
        return super().details(model) | {"reference": reference.to_dict()}


def _read_all(data: DataFile) -> pd.DataFrame:
    """Read a file, or all files behind a pattern or in a folder, which must have the same columns."""
    first, *others = data.files()
    tables = [first.read(text=None)]
    data.layout = first.layout
    tables += [with_columns(file.read(text=None), list(tables[0].columns), file.name) for file in others]
    return tables[0] if not others else pd.concat(tables, ignore_index=True)


def _held_out(y: NDArray[Any], target: str, known: Mapping[str, Any], test_size: float, seed: int) -> NDArray[np.bool_]:
    """Which rows are set aside."""
    label = np.unique(y, return_inverse=True)[1]
    person, time = check_persons(known.get("persons"), len(y)), check_times(known.get("time"), len(y))
    # A stream of its own: which rows are held out has nothing to do with the random numbers of training.
    rng = np.random.default_rng([seed, len(y)])
    _, apart = set_rows_aside(label, test_size, rng, person=person, time=time)
    n_units = len(y) if person is None else int(person.max()) + 1
    if not len(apart) and round(test_size * n_units):
        raise InputError(f"The rows left to train on have one value of {quoted(target)} only.")
    return np.isin(np.arange(len(y)), apart)


# ---- larger than memory ----


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
        about = _about_rows(known, schema)
        declared = about.pop("guard_features", {})
        others: dict[str, Any] = {LABEL: match_labels(known[schema.target], self.classes) if len(known) else []}
        others |= {_ROLES[name]: values for name, values in about.items()}
        return parts.assign(**others, **{f"{DECLARED} {name}": values for name, values in declared.items()})

    def training(self, block: pd.DataFrame) -> pd.DataFrame:
        """Typed rows to train on."""
        typed = self.typed(self.known(block))
        return typed[self.split(typed)[0]]

    def test(self, block: pd.DataFrame) -> pd.DataFrame:
        """Test rows, as a typed file is to hold them."""
        known = self.known(block)
        return self.schema.stored(known)[~self.split(self.typed(known))[0]]

    def counted(self, block: pd.DataFrame) -> tuple[int, Counter[Any], NDArray[np.uint64], NDArray[np.uint64]]:
        """Rows, labels of training rows, and sums of the hashes of rows with a target and of training rows."""
        typed = self.typed(self.known(block))
        trains, _ = self.split(typed)
        hashes = labelled_hashes(typed[list(self.schema.columns)], typed[LABEL])
        return len(block), Counter(typed[LABEL][trains].tolist()), hash_sums(hashes), hash_sums(hashes[trains])


@dataclass(frozen=True, eq=False)
class LargeTable(Table):
    """Files to train on, of which no more than a sample is in memory."""

    raw: Blocks[pd.DataFrame]
    rows: _TypedRows

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
        n_rows, labels = 0, Counter[Any]()
        sums, training_sums = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
        for n_block, of_block, hashes, training_hashes in raw.map(rows.counted):
            n_rows, labels = n_rows + n_block, labels + of_block
            sums, training_sums = sums + hashes, training_sums + training_hashes
        if len(labels) < 2:
            raise InputError("The rows left to train on have one value of the target only.")
        left = no_target(n_rows - int(sums[0]))
        sampled = f"Columns, bins and groups are chosen by {len(sample):,} of {n_rows:,} rows."
        notes = (*files[0].notes, *left, sampled, *schema.notes, *schema.leakage_notes(sample))
        return cls(Path(files[0].name).name, schema, notes, labels, sums, training_sums, raw, rows)

    def fit(self, model: DAFHClassifier) -> Pipeline:
        """Fit a pipeline that reads tables and ends in a DAFHClassifier."""
        roles, n_rows = self.rows.split.roles, self.labels.total()
        known = {"persons": roles.person, "time": roles.time, "sample_weight": roles.weight}
        others = [name for name in (*known.values(), *roles.declared) if name is not None]
        blocks: Any = self.raw.through(self.rows.training, columns=(*roles.features, LABEL, *others), n_rows=n_rows)
        # A network has a bar of its own.
        with status(f"fitting {n_rows:,} rows") if model.verbose else nullcontext():
            model.fit(blocks, LABEL, **known, guard_features=roles.declared or None)  # type: ignore[arg-type]
        return Pipeline([("encoder", self.rows.reader), ("model", model)])

    def test_pieces(self) -> Iterator[pd.DataFrame]:
        """Test rows of one block after the other."""
        return (rows.reset_index(drop=True) for rows in self.raw.map(self.rows.test) if len(rows))


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
