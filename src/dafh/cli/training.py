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
from dafh.cli.options import test_rows_path
from dafh.columns.encoder import TableReader, tabular_pipeline
from dafh.columns.hashes import fingerprint, hash_total, labelled_hashes
from dafh.columns.kinds import guess_kind, with_gaps
from dafh.columns.labels import labelled_rows, match_labels, no_target, read_labels
from dafh.columns.read import STDIN, DataFile, with_columns
from dafh.columns.schema import TableSchema, check_columns
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
from dafh.text import clipped, quoted
from dafh.validation import absolute_times, check_persons, check_times

_FEWEST_ROWS = 20
_ROWS_TO_GUESS_BY = 10_000
# Names of keyword arguments of `fit`, and of columns of typed blocks.
_ROLES = {"persons": PERSON, "time": TIME, "sample_weight": WEIGHT}


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
    n_test: int
    hash_total: int
    """Of all rows with a target."""
    training_hash_total: int
    features: Any
    """Features of the training rows, typed; or blocks of typed rows, with label, person, time and weight."""
    y: Any
    """Their labels; or the name of that column of the blocks."""
    fit_options: dict[str, Any]
    """Keyword arguments of `fit`: persons, time, weights and sensitive features, or names of columns."""
    test_rows: pd.DataFrame | Blocks[pd.DataFrame]
    """Rows set aside: not used in training, nor in anything learned from values."""
    reader: TableReader | None = None
    """What has made the blocks."""

    @classmethod
    def read(
        cls, data: DataFile, target: str, *, test_size: float = 0.0, seed: int = 0, **roles: Any
    ) -> "TrainingTable":
        """Read a file, a folder, or all files behind a pattern, and guess what the columns hold.

        Parameters
        ----------
        data : DataFile
        target : str
        test_size : float
            Share of the rows that are held out: the last ones where time counts, else drawn with `seed`. All rows of a
            person are on the same side.
        **roles
            What the user says about columns, see `TableSchema.guess`.
        """
        files = data.files()
        is_large = str(data.path) != STDIN and sum(file.count_rows() for file in files) > large.SAMPLE_SIZE
        read = cls._in_blocks if is_large else cls._in_memory
        return read(Path(data.name).name, files, target, roles, test_size, seed)

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
        schema = TableSchema.guess(rows, target, decimal=first.decimal, **roles)
        options = schema.fit_options(rows)
        attributes = {"sensitive_features": schema.attributes_of(rows, schema.sensitive)} if schema.sensitive else {}
        features = schema.features_of(rows)
        hashes = labelled_hashes(features, y)
        test = _held_out(y, target, options, test_size, seed)
        return cls(
            name,
            schema,
            (*first.notes, *no_target(len(table) - len(rows)), *schema.notes, *schema.leakage_notes(rows[~test])),
            Counter(y[~test].tolist()),
            int(test.sum()),
            hash_total(hashes),
            hash_total(hashes[~test]),
            features[~test],
            y[~test],
            {name: values[~test] for name, values in (options | attributes).items()},
            schema.stored(rows[test]).reset_index(drop=True) if test.any() else rows[test],
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
        sample, _ = large.draw_rows(raw, Split(Roles(target), seed), raw.count(), large.SAMPLE_SIZE)
        sample = labelled_rows(sample, target)
        schema = TableSchema.guess(sample, target, decimal=decimal, **roles)
        classes = np.unique(read_labels(sample[target]))
        reader = TableReader(schema.columns).fit(schema.features_of(sample))
        options = {option: _ROLES[option] for option in schema.fit_options(sample)}
        sensitive = list(schema.sensitive)
        weight, person, time = (options.get(option) for option in ("sample_weight", "persons", "time"))
        times = schema.times_of(sample) if test_size else None
        cut = None if times is None else float(np.quantile(absolute_times(times), 1 - test_size))
        names = Roles(LABEL, weight, person, time, features=tuple(schema.columns))
        split = Split(names, seed, test_size, cut)

        def read(block: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, NDArray[np.bool_]]:
            """Rows with a target as the file has them, the same typed, and whether they train."""
            rows = block[with_gaps(block[target]).notna()]
            typed = reader.transform(schema.features_of(rows)) if len(rows) else rows[list(schema.columns)]
            columns = {_ROLES[option]: values for option, values in schema.fit_options(rows).items()}
            if sensitive:
                columns |= schema.attributes_of(rows, sensitive)
            typed = typed.assign(**{LABEL: match_labels(rows[target], classes) if len(rows) else []}, **columns)
            return rows, typed, split(typed)[0]

        def count(block: pd.DataFrame) -> tuple[int, Counter[Any], int, int, int]:
            _, typed, trains = read(block)
            hashes = labelled_hashes(typed[list(schema.columns)], typed[LABEL])
            labels = Counter(typed[LABEL][trains].tolist())
            return len(block), labels, len(typed), hash_total(hashes), hash_total(hashes[trains])

        def training_rows(block: pd.DataFrame) -> pd.DataFrame:
            _, typed, trains = read(block)
            return typed[trains]

        def test_rows(block: pd.DataFrame) -> pd.DataFrame:
            rows, _, trains = read(block)
            return schema.stored(rows[~trains])

        n_rows, labels, n_labelled, total, training_total = map(_sum, zip(*raw.map(count), strict=True))
        if len(labels) < 2:
            raise InputError("The rows left to train on have one value of the target only.")
        sampled = f"Columns, bins and groups are chosen by {len(sample):,} of {n_rows:,} rows."
        return cls(
            name,
            schema,
            (*files[0].notes, *no_target(n_rows - n_labelled), sampled, *schema.notes, *schema.leakage_notes(sample)),
            labels,
            n_labelled - labels.total(),
            total,
            training_total,
            raw.through(
                training_rows, columns=(*names.features, LABEL, *options.values(), *sensitive), n_rows=labels.total()
            ),
            LABEL,
            options | ({"sensitive_features": sensitive} if sensitive else {}),
            raw.through(test_rows),
            reader,
        )

    def model_in_use(self, costs: Mapping[str, float] | None) -> IncumbentColumns:
        """Return the pooled classifier that is read from a column: scores are cut where costs imply, else at 0.5."""
        ((name, kind),) = self.schema.pooled.items()
        if kind != "number":
            return IncumbentColumns(decision=name)
        return IncumbentColumns(name, threshold=None if costs is None else costs["fp"] / (costs["fp"] + costs["fn"]))

    def fit(self, model: DAFHClassifier) -> Pipeline:
        """Fit a pipeline that reads tables and ends in a DAFHClassifier."""
        if self.reader is None:
            options = {f"model__{name}": values for name, values in self.fit_options.items()}
            return tabular_pipeline(model, self.schema.columns).fit(self.features, self.y, **options)
        # A network has a bar of its own.
        with status(f"fitting {self.labels.total():,} rows") if model.verbose else nullcontext():
            model.fit(self.features, self.y, **self.fit_options)
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
        details = {
            "data": self.name,
            "rows": self.labels.total(),
            "schema": self.schema.to_dict(),
            "fingerprints": [fingerprint(self.hash_total), fingerprint(self.training_hash_total)],
            "guesses": list(self.notes),
            "worth": worth_of_groups(model),
            "rows_kept_back": self.n_test,
        }
        if self.n_test:
            details["test_fingerprint"] = fingerprint(self.hash_total - self.training_hash_total)
        if self.reader is None:
            # What training rows look like, for a monitor that compares later ones with them.
            final, X = split_pipeline(model, self.features)
            groups, kinds = final.predict_group(X), self.schema.columns
            reference = Reference.of(self.features, groups, int(final.n_groups_), kinds=kinds)
            details["reference"] = reference.to_dict()
        return details

    def save(self, model: Pipeline, path: Path) -> Path | None:
        """Write a model that was fitted on the table, and the test rows beside it; return where they are.

        Both are written before either takes its place, so that a full disk leaves the files of an earlier fit as they
        were. Test rows go first. If the process is killed between the two, the earlier model finds that they are not
        its own: a new model could not know that it was trained on the rows of an earlier file that has their name.
        """
        content = file_content(model, details=self.details(model))
        with replacing(path) as temporary:
            temporary.write_bytes(content)
            if not self.n_test:
                return None
            with TableWriter(test_rows_path(path)) as writer:
                for rows in self.test_pieces():
                    writer.write(rows)
        return test_rows_path(path)


def _held_out(y: NDArray[Any], target: str, options: Mapping[str, Any], share: float, seed: int) -> NDArray[np.bool_]:
    """Which rows are set aside."""
    label = np.unique(y, return_inverse=True)[1]
    person, time = check_persons(options.get("persons"), len(y)), check_times(options.get("time"), len(y))
    # A stream of its own: which rows are held out has nothing to do with the random numbers of training.
    rng = np.random.default_rng([seed, len(y)])
    _, held_out = set_rows_aside(label, share, rng, person=person, time=time)
    n_units = len(y) if person is None else int(person.max()) + 1
    if not len(held_out) and round(share * n_units):
        raise InputError(f"The rows left to train on have one value of {quoted(target)} only.")
    return np.isin(np.arange(len(y)), held_out)


def _sum(values: Iterable[Any]) -> Any:
    """Sum of numbers or of counters."""
    first, *others = values
    return sum(others, start=first)
