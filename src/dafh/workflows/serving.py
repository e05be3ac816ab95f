"""From a model file and a table to scores, an audit or words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.evaluation.result import AuditResult
from dafh.exceptions import InputError
from dafh.explanation.explain import explain
from dafh.explanation.stability import stability
from dafh.explanation.words import Explanation
from dafh.models.files import ModelFile, open_model
from dafh.tables.files import ROWS_PER_CHUNK, DataFile
from dafh.tables.labels import match_labels
from dafh.tables.schema import TableSchema, check_columns
from dafh.tables.values import with_gaps
from dafh.workflows.tables import fingerprint, row_hashes, split_names, with_target

SAME_ROWS = (
    "These are rows that the model was trained on: all figures are too good. Ask people it has not seen, or fit with "
    "--test-size to keep some back."
)


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
        known, notes = with_target(table, target, data)
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
