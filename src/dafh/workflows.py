"""From files to files: fit a model on a table, score another, audit it, report on it. What the command line calls."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh._text import clipped, quoted
from dafh.auditing import AuditResult
from dafh.classifier import DAFHClassifier
from dafh.columns import TableSchema, check_columns, labelled_rows, match_labels, read_labels, with_gaps
from dafh.datafiles import ROWS_PER_CHUNK, DataFile, TableWriter
from dafh.exceptions import InputError
from dafh.explaining import Explanation, explain, stability
from dafh.guard import GuardKind
from dafh.persistence import ModelFile, open_model, save
from dafh.tabular import tabular_pipeline

SAME_ROWS = (
    "These are rows that the model was trained on: all figures are too good. Ask people it has not seen, or fit with "
    "--test-size to keep some back."
)
_FEWEST_ROWS = 20


@dataclass(frozen=True)
class TrainingTable:
    """A table to train on, what its columns are, and what was guessed about them."""

    name: str
    training: pd.DataFrame
    y: NDArray[Any]
    schema: TableSchema
    notes: tuple[str, ...]
    test_rows: pd.DataFrame | None
    """Rows kept from everything."""
    fingerprints: tuple[str, ...]
    features: pd.DataFrame

    @classmethod
    def read(
        cls,
        data: DataFile,
        target: str,
        *,
        drop: Iterable[str] = (),
        sensitive: Iterable[str] = (),
        categories: Iterable[str] = (),
        test_size: float = 0.0,
        seed: int = 0,
    ) -> "TrainingTable":
        """Read a file and guess what its columns are.

        Parameters
        ----------
        data : DataFile
        target : str
        drop, sensitive, categories : names of columns
            See `TableSchema.guess`; names may be joined by commas.
        test_size : float
            Share of the rows that are kept from everything; `seed` draws them.
        """
        data = replace(data, leave_out=split_names(drop, ()))
        table = data.read(text=None)
        check_columns(table.columns, [target], "the target")
        said = {
            name: split_names(names, table.columns)
            for name, names in {"drop": drop, "sensitive": sensitive, "categories": categories}.items()
        }
        said["drop"] = [name for name in said["drop"] if name in table.columns or name not in data.left_out]
        known, notes = _with_target(table, target, data)
        if len(known) < _FEWEST_ROWS:
            raise InputError(f"{data.name} has {len(known)} rows with a target: at least {_FEWEST_ROWS} are needed.")
        y = read_labels(known[target])
        test = _kept_back(len(known), test_size, seed)
        if len(np.unique(y[~test])) < 2:
            raise InputError(f"The rows left to train on have one value of {quoted(target)} only.")
        training = known[~test]
        schema = TableSchema.guess(training, target, **said)
        schema = replace(schema, left_out={**schema.left_out, **dict.fromkeys(data.left_out, "as you said")})
        features = schema.features_of(known)
        hashes = row_hashes(features, known[target])
        return cls(
            Path(data.name).name,
            training,
            y[~test],
            schema,
            (*notes, *schema.notes),
            schema.with_numbers(known[test]).reset_index(drop=True) if test.any() else None,
            tuple(dict.fromkeys(fingerprint(part) for part in (hashes, hashes[~test]))),
            features[~test],
        )

    def headline(self) -> str:
        """Say how many rows there are, and of which labels."""
        values, counts = np.unique(self.y, return_counts=True)
        shares = [f"{clipped(v, 30)} {n / len(self.y):.0%}" for v, n in zip(values, counts, strict=True)]
        more = ", …" if len(shares) > 5 else ""
        target = clipped(self.schema.target, 40)
        return f"{len(self.y):,} rows to train on; target {target} ({', '.join(shares[:5])}{more})."

    def fit(
        self,
        *,
        n_groups: int = 2,
        guard: GuardKind | None = "veto",
        pooled: str = "lr",
        seed: int = 0,
        verbose: int = 0,
        **settings: Any,
    ) -> Any:
        """Fit a pipeline of encoder and DAFHClassifier; `pooled` is "lr" or "boosting"."""
        model = DAFHClassifier(
            n_groups, pooled=_pooled(pooled), guard=guard, random_state=seed, verbose=verbose, **settings
        )
        return tabular_pipeline(model).fit(self.features, self.y)

    def save(self, model: Any, path: Path) -> Path | None:
        """Write a model that was fitted on the table, and the rows kept back beside it; returns where those are."""
        details = {
            "data": self.name,
            "rows": len(self.y),
            "rows_kept_back": 0 if self.test_rows is None else len(self.test_rows),
            "schema": self.schema.to_dict(),
            "fingerprints": list(self.fingerprints),
            "guesses": list(self.notes),
        }
        save(model, path, details=details)
        if self.test_rows is None:
            return None
        beside = path.with_suffix(".test.parquet")
        with TableWriter(beside) as writer:
            writer.write(self.test_rows)
        return beside


def _with_target(table: pd.DataFrame, target: str, data: DataFile) -> tuple[pd.DataFrame, list[str]]:
    """Rows whose target is known, and what there is to say about the file."""
    known = labelled_rows(table, target)
    left_out = len(table) - len(known)
    return known, [*data.notes, *([f"Left out, without a target: {left_out:,} rows."] if left_out else [])]


def split_names(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Names of columns, given one by one or joined by commas; a name that itself has a comma is one name.

    Examples
    --------
    >>> split_names(["age,sex", "born, where"], ["age", "sex", "born, where"])
    ['age', 'sex', 'born, where']
    """
    known = set(columns)
    parts = ([entry] if entry in known else [part.strip() for part in entry.split(",")] for entry in names)
    return [name for name in itertools.chain(*parts) if name]


def _kept_back(n_rows: int, test_size: float, seed: int) -> NDArray[np.bool_]:
    chosen = np.zeros(n_rows, bool)
    # A seed of its own: which rows are kept back has nothing to do with how training starts.
    order = np.random.default_rng([seed, n_rows]).permutation(n_rows)
    chosen[order[: round(test_size * n_rows)]] = True
    return chosen


def _pooled(name: str) -> Any:
    if name == "lr":
        return None
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier()


def row_hashes(features: pd.DataFrame, target: pd.Series) -> NDArray[np.uint64]:
    """One number for each row, the same in whatever file the row stands."""
    rows = features.assign(**{"the target": target.map(str)})
    return np.asarray(pd.util.hash_pandas_object(rows, index=False), np.uint64)


def fingerprint(hashes: NDArray[np.uint64]) -> str:
    """Checksum of a table, whatever the order of its rows: tells which table it is, and nothing about it."""
    return hashlib.sha256(np.sort(hashes).tobytes()).hexdigest()


def _names_beside(names: Sequence[str], taken: Sequence[str]) -> dict[str, str]:
    """Other names for columns whose own are taken."""
    found: dict[str, str] = {}
    for name in names:
        new = name
        while new in taken or new in found.values() or (new != name and new in names):
            new = f"{new} (given)"
        found[name] = new
    return found


@dataclass(frozen=True)
class AskedRows:
    """Rows of a file, ready to be asked how a model serves them."""

    features: pd.DataFrame
    y: NDArray[Any]
    sensitive: pd.DataFrame | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class FileModel:
    """A model file that was written by the command line, with the schema of the tables it takes."""

    file: ModelFile
    schema: TableSchema

    @classmethod
    def open(cls, path: Path) -> "FileModel":
        """Read a model file."""
        file = open_model(path)
        schema = file.card.get("schema")
        if schema is None:
            raise InputError(f"{path} was saved from Python, not by dafh fit: it does not say which columns are what.")
        try:
            return cls(file, TableSchema.from_dict(schema))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{path} does not say which columns are what.") from error

    @property
    def model(self) -> Any:
        """The pipeline."""
        return self.file.model

    def read(self, data: DataFile, sensitive: Sequence[str] = (), target: str | None = None) -> AskedRows:
        """Read rows with their target, and with the attributes that are known about them.

        Parameters
        ----------
        data : DataFile
        sensitive : names of columns
            Without any, those that were named in training, as far as the file has them.
        target : str, optional
            Where it is called something else than in training.
        """
        target = target or self.schema.target
        data = replace(data, leave_out=tuple(self.schema.left_out))
        table = data.read(text=[*self.schema.text_columns, target])
        check_columns(table.columns, [target], "the target")
        known, notes = _with_target(table, target, data)
        features = self.schema.features_of(known)
        attributes = self._attributes(known, sensitive)
        y = match_labels(known[target], self.model.classes_)
        if fingerprint(row_hashes(features, known[target])) in self.file.card.get("fingerprints", []):
            notes.append(SAME_ROWS)
        return AskedRows(features, y, attributes, tuple(notes))

    def _attributes(self, table: pd.DataFrame, sensitive: Sequence[str]) -> pd.DataFrame | None:
        names = split_names(sensitive, table.columns)
        check_columns(table.columns, names, "to audit by")
        names = names or [name for name in self.schema.sensitive if name in table.columns]
        return table[names].apply(with_gaps) if names else None

    def audit(self, rows: AskedRows, **options: Any) -> AuditResult:
        """Ask whether any group is served worse than it could be."""
        return AuditResult.of(self.model, rows.features, rows.y, sensitive_features=rows.sensitive, **options)

    def explain(self, rows: AskedRows, n_seeds: int = 0) -> Explanation:
        """Put the groups into words; `n_seeds` copies are fitted on the rows to see how far the groups depend on it."""
        words = explain(self.model, rows.features, sensitive_features=rows.sensitive)
        if not n_seeds:
            return words
        agreement = stability(self.model, rows.features, rows.y, seeds=range(n_seeds))
        return Explanation(words.groups, agreement)

    def score(self, data: DataFile, keep: Sequence[str] = (), rows: int = ROWS_PER_CHUNK) -> Iterator[pd.DataFrame]:
        """Predict the rows of a file piece by piece: label, its probability, and the group.

        Parameters
        ----------
        data : DataFile
        keep : names of columns
            To carry over from the file; "all" is every column.
        rows : int
            Rows at a time.
        """
        done = 0
        data = replace(data, leave_out=tuple(self.schema.left_out))
        # Kept columns are read letter by letter: an account number must come out as it went in.
        as_text = None if list(keep) == ["all"] else {*self.schema.text_columns, *keep, *split_names(keep, ())}
        for chunk in data.chunks(rows=rows, text=as_text):
            names = list(chunk.columns) if as_text is None else split_names(keep, chunk.columns)
            check_columns(chunk.columns, names, "to carry over")
            scored = self._scored(self.schema.features_of(chunk))
            scored.insert(0, "row", np.arange(done + 1, done + 1 + len(chunk)))
            done += len(chunk)
            kept = chunk[names].reset_index(drop=True).rename(columns=_names_beside(names, list(scored.columns)))
            yield pd.concat([kept, scored], axis=1)

    def _scored(self, features: pd.DataFrame) -> pd.DataFrame:
        encoder, model = self.model[:-1], self.model[-1]
        encoded = encoder.transform(features)
        probabilities = model.predict_proba(encoded)
        shown = range(1, 2) if len(model.classes_) == 2 else range(len(model.classes_))
        return pd.DataFrame(
            {
                "prediction": model.predict(encoded),
                **{f"probability_{model.classes_[k]}": probabilities[:, k].round(6) for k in shown},
                "group": model.predict_group(encoded),
            }
        )
