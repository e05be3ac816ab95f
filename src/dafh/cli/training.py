"""Tables to train on: read whole, or in passes over rows of which no more than a sample is in memory."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from dafh import large
from dafh.classifiers import split_pipeline
from dafh.cli.model_file import fingerprint, hash_sums, held_out_path, labelled_hashes, split_names
from dafh.columns.encoder import TableReader, tabular_pipeline
from dafh.columns.kinds import guess_kind, read_as, with_gaps
from dafh.columns.labels import find_labels, labelled_rows, match_labels, no_target, read_labels
from dafh.columns.read import STDIN, DataFile, with_columns
from dafh.columns.schema import TableSchema, check_columns, persons_of
from dafh.columns.write import TableWriter
from dafh.estimators.dafh import DAFHClassifier
from dafh.exceptions import InputError
from dafh.explanation import worth_of_groups
from dafh.incumbents import IncumbentColumns
from dafh.large import LABEL, PERSON, TIME, WEIGHT, Blocks, Roles, Split
from dafh.monitor.inputs import Reference
from dafh.persistence import file_content
from dafh.progress import status
from dafh.rows import set_rows_aside
from dafh.storage import replacing
from dafh.text import clipped, listed, quoted
from dafh.validation import absolute_times, check_persons, check_times

_FEWEST_ROWS = 20
_ROWS_TO_GUESS_BY = 10_000
_LISTS = ("drop", "sensitive", "categories")
"""What a user says about columns by lists of names."""
_ROLES = {"persons": PERSON, "time": TIME, "sample_weight": WEIGHT}
"""Names that `fit` has for what is known about rows, and those of columns of typed rows."""


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table to train on, what its columns hold, and what was guessed about them.

    Its rows are in memory, or in blocks of files of which no more than a sample is.
    """

    name: str
    schema: TableSchema
    notes: tuple[str, ...]
    labels: Counter[Any]
    """Of the training rows."""
    sums: NDArray[np.uint64]
    """Sums of the hashes of all rows with a target."""
    training_sums: NDArray[np.uint64]
    features: Any
    """Features of the training rows, typed; or blocks of such rows, with all else that is known of them."""
    y: Any
    """Their labels; or the name of that column of the blocks."""
    about: dict[str, Any]
    """What `fit` is told beside them: persons, time, weights and sensitive features, or names of columns."""
    test_rows: pd.DataFrame | Blocks[pd.DataFrame]
    """Rows set aside: not used in training, nor in anything learned from values."""
    reader: TableReader | None = None
    """What has made the blocks."""

    @classmethod
    def read(
        cls,
        data: DataFile,
        target: str,
        *,
        in_use: str | None = None,
        test_size: float = 0.0,
        seed: int = 0,
        **roles: Any,
    ) -> "TrainingTable":
        """Read a file, a folder, or all files behind a pattern, and guess what the columns hold.

        Parameters
        ----------
        data : DataFile
        target : str
        in_use : str, optional
            Column with the decisions or the scores of a model in use, as the pooled classifier.
        test_size : float
            Share of the rows that are held out: the last ones where time counts, else drawn with `seed`. All rows of a
            person are on the same side.
        **roles
            What the user says about columns, see `TableSchema.guess`; names may be joined by commas.
        """
        files = data.files()
        is_large = str(data.path) != STDIN and sum(file.count_rows() for file in files) > large.SAMPLE_SIZE
        read = cls._in_blocks if is_large else cls._in_memory
        return read(Path(data.name).name, files, target, {"in_use": in_use, **roles}, test_size, seed)

    @classmethod
    def _in_memory(
        cls, name: str, files: Sequence[DataFile], target: str, roles: dict[str, Any], test_size: float, seed: int
    ) -> "TrainingTable":
        """Read all rows."""
        first, *others = files
        table = first.read(text=None)
        if others:
            tables = [with_columns(file.read(text=None), list(table.columns), file.name) for file in others]
            table = pd.concat([table, *tables], ignore_index=True)
        check_columns(table.columns, [target], "the target")
        rows = labelled_rows(table, target)
        if len(rows) < _FEWEST_ROWS:
            raise InputError(f"The table has {len(rows)} rows with a target: at least {_FEWEST_ROWS} are needed.")
        y = read_labels(rows[target])
        # From all rows, held-out ones too: whether a column holds numbers must not depend on where the one word among
        # them was drawn. Kinds and columns to leave out are all that held-out rows decide; every statistic (medians,
        # categories, leakage) comes from training rows alone.
        schema = _guess_schema(rows, target, roles, first.decimal)
        about = _about_rows(rows, schema)
        features = schema.features_of(rows)
        hashes = labelled_hashes(features, y)
        test = _held_out(y, target, about, test_size, seed)
        return cls(
            name,
            schema,
            (*first.notes, *no_target(len(table) - len(rows)), *schema.notes, *schema.leakage_notes(rows[~test])),
            Counter(y[~test].tolist()),
            hash_sums(hashes),
            hash_sums(hashes[~test]),
            features[~test],
            y[~test],
            {name: values[~test] for name, values in about.items()},
            schema.stored(rows)[test].reset_index(drop=True),
        )

    @classmethod
    def _in_blocks(
        cls, name: str, files: Sequence[DataFile], target: str, roles: dict[str, Any], test_size: float, seed: int
    ) -> "TrainingTable":
        """Look at files: a pass over their rows for a sample, which tells what columns hold, and one to count."""
        head = next(files[0].pieces(rows=_ROWS_TO_GUESS_BY, text=None))
        check_columns(head.columns, [target], "the target")
        decimal = files[0].decimal
        # Only what looks like a number is read as one: a zip code keeps its zeros.
        text = tuple(str(name) for name in head if guess_kind(head[name], decimal) != "number" or name == target)
        raw = large.open_files(files, text)
        assert raw.n_rows is not None
        sample, _ = large.draw_rows(raw, Split(Roles(target), seed), raw.n_rows, large.SAMPLE_SIZE)
        sample = labelled_rows(sample, target)
        schema = _guess_schema(sample, target, roles, decimal)
        reader = TableReader(schema.columns).fit(schema.features_of(sample))
        times = schema.times_of(sample) if test_size else None
        cut = None if times is None else float(np.quantile(absolute_times(times), 1 - test_size))
        classes = np.unique(read_labels(sample[target]))
        about: dict[str, Any] = {
            "persons": PERSON if schema.person is not None else None,
            "time": TIME if schema.time else None,
            "sample_weight": WEIGHT if schema.weight is not None else None,
        }
        sensitive = list(schema.sensitive)
        names = Roles(LABEL, about["sample_weight"], about["persons"], about["time"], features=tuple(schema.columns))
        rows = _TypedRows(schema, reader, classes, Split(names, seed, test_size, cut))
        n_rows, labels = 0, Counter[Any]()
        sums, training_sums = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
        for n_block, of_block, hashes, training_hashes in raw.map(rows.counted):
            n_rows, labels = n_rows + n_block, labels + of_block
            sums, training_sums = sums + hashes, training_sums + training_hashes
        if len(labels) < 2:
            raise InputError("The rows left to train on have one value of the target only.")
        sampled = f"Columns, bins and groups are chosen by {len(sample):,} of {n_rows:,} rows."
        unlabelled = no_target(n_rows - int(sums[0]))
        notes = (*files[0].notes, *unlabelled, sampled, *schema.notes, *schema.leakage_notes(sample))
        columns = (*names.features, LABEL, *filter(None, about.values()), *sensitive)
        about |= {"sensitive_features": sensitive} if sensitive else {}
        blocks = raw.through(rows.training, columns=columns, n_rows=labels.total())
        test_rows = raw.through(rows.test)
        return cls(name, schema, notes, labels, sums, training_sums, blocks, LABEL, about, test_rows, reader)

    def model_in_use(self, costs: Mapping[str, float] | None) -> IncumbentColumns:
        """Return the pooled classifier that is read from a column: scores are cut where costs imply, else at 0.5."""
        ((name, kind),) = self.schema.pooled.items()
        if kind != "number":
            return IncumbentColumns(decision=name)
        return IncumbentColumns(name, threshold=None if costs is None else costs["fp"] / (costs["fp"] + costs["fn"]))

    def fit(self, model: DAFHClassifier) -> Pipeline:
        """Fit a pipeline that reads tables and ends in a DAFHClassifier."""
        if self.reader is None:
            options = {f"model__{name}": values for name, values in self.about.items()}
            return tabular_pipeline(model, self.schema.columns).fit(self.features, self.y, **options)
        # A network has a bar of its own.
        with status(f"fitting {self.labels.total():,} rows") if model.verbose else nullcontext():
            model.fit(self.features, self.y, **self.about)
        return Pipeline([("encoder", self.reader), ("model", model)])

    def test_pieces(self) -> Iterable[pd.DataFrame]:
        """Rows set aside, all at once or of one block after the other."""
        if isinstance(self.test_rows, pd.DataFrame):
            return [self.test_rows]
        return (rows.reset_index(drop=True) for rows in self.test_rows.map(lambda rows: rows) if len(rows))

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
        about = {
            "data": self.name,
            "rows": self.labels.total(),
            "schema": self.schema.to_dict(),
            "fingerprints": list(dict.fromkeys(fingerprint(sums) for sums in (self.sums, self.training_sums))),
            "guesses": list(self.notes),
            "worth": worth_of_groups(model),
        }
        if self.reader is not None:
            return about
        # What training rows look like, for a monitor that compares later ones with them.
        final, X = split_pipeline(model, self.features)
        groups, kinds = final.predict_group(X), self.schema.columns
        reference = Reference.of(self.features, groups, int(final.n_groups_), kinds=kinds)
        return about | {"reference": reference.to_dict()}

    def save(self, model: Pipeline, path: Path) -> Path | None:
        """Write a model that was fitted on the table, and the test rows beside it; return where they are.

        Both are written before either takes its place, so that a full disk leaves the files of an earlier fit as they
        were. Test rows go first. If the process is killed between the two, the earlier model finds that they are not
        its own: a new model could not know that it was trained on the rows of an earlier file that has their name.
        """
        sums = self.sums - self.training_sums
        n_rows = int(sums[0])
        about_test = {"test_fingerprint": fingerprint(sums)} if n_rows else {}
        content = file_content(model, details={**self.details(model), "rows_kept_back": n_rows, **about_test})
        with replacing(path) as temporary:
            temporary.write_bytes(content)
            if n_rows:
                with TableWriter(held_out_path(path)) as writer:
                    for rows in self.test_pieces():
                        writer.write(rows)
        return held_out_path(path) if n_rows else None


def _guess_schema(rows: pd.DataFrame, target: str, roles: Mapping[str, Any], decimal: str) -> TableSchema:
    """Guess what columns hold; `in_use` among the roles is a column with decisions or scores of a model in use."""
    given: dict[str, Any] = {
        name: split_names(of, rows.columns) if name in _LISTS else of for name, of in roles.items()
    }
    name: str | None = given.pop("in_use", None)
    if name is not None and name != target:
        check_columns(rows.columns, [name], "for the pooled classifier (which scorecard and linear do without)")
        classes = np.unique(read_labels(rows[target]))
        if find_labels(rows[name], classes)[1] is None:
            return TableSchema.guess(rows, target, **given, decision=name, decimal=decimal)
        scores, unread = read_as(rows[name], "number", decimal)
        if len(unread) or not scores.dropna().between(0, 1).all():
            example = unread.iloc[0] if len(unread) else scores[~scores.between(0, 1) & scores.notna()].iloc[0]
            raise InputError(
                f"The column {quoted(name)} holds {quoted(example, 30)}: decisions of a model in use are labels of the "
                f"target ({listed([quoted(label) for label in classes[:5]])}), its scores numbers from 0 to 1."
            )
    return TableSchema.guess(rows, target, **given, score=name, decimal=decimal)


def _about_rows(rows: pd.DataFrame, schema: TableSchema) -> dict[str, Any]:
    """Persons, time, weights and sensitive features, under the names that `fit` has for them."""
    values = {
        "persons": persons_of(rows, schema.person) if schema.person is not None else None,
        "time": schema.times_of(rows),
        "sample_weight": schema.weights_of(rows),
        "sensitive_features": schema.attributes_of(rows, schema.sensitive) if schema.sensitive else None,
    }
    return {name: column for name, column in values.items() if column is not None}


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
        about = _about_rows(known, schema)
        others |= about.pop("sensitive_features", {})
        others |= {_ROLES[name]: values for name, values in about.items()}
        return parts.assign(**others)

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
