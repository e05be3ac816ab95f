"""From a model file and a table to scores, an audit or words.

`FileModel` is what commands work with: a model file, and the schema of the tables it takes.
"""

import hashlib
import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline

from dafh.classifiers import final_classifier, rows_at_once, split_pipeline
from dafh.columns.hashes import mixed, row_hashes, uniform
from dafh.columns.kinds import read_as, with_gaps
from dafh.columns.labels import find_labels, match_labels, no_target, read_labels
from dafh.columns.read import ROWS_PER_PIECE, DataFile
from dafh.columns.schema import TableSchema, check_columns, persons_of
from dafh.columns.unexpected import UnreadValues, UnseenCategories
from dafh.estimators.dafh import DAFHClassifier
from dafh.evaluation.audit import AuditResult, rules_of
from dafh.evaluation.compared import ComparedRows, ServedPredictions
from dafh.evaluation.losses import check_losses
from dafh.exceptions import InputError
from dafh.explanation import Explanation, explain, stability
from dafh.incumbents import IncumbentColumns
from dafh.large import as_blocks, open_files
from dafh.linear.scorecard import Scorecard
from dafh.persistence import open_model
from dafh.text import listed, quoted

# Enough to tell groups that barely change from groups that change a lot, however busy the machine is.
_REFITS, _REFITTED_ROWS = 3, 10_000
SAME_ROWS = "These results are optimistic: the model was trained on these rows. Use rows that it has not seen."


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of a file with their target, and what a model decides about them."""

    y: NDArray[Any]
    codes: NDArray[np.int16]
    """True label, label by the pooled classifier, and labels by each classifier that serves, as positions of classes,
    (n, 2 + M)."""
    groups: NDArray[np.int16]
    own: NDArray[np.intp]
    """Column that serves each group, as in `ServedPredictions`."""
    classifiers: list[int]
    sensitive: pd.DataFrame | None
    persons: "pd.Series[Any] | None"
    """Identifier of the person that each row belongs to, if persons have several rows."""
    weights: "pd.Series[Any] | None"
    """What each row counts."""
    notes: tuple[str, ...]
    features: pd.DataFrame
    """As the model takes them; of very many rows, those at the positions `with_features`."""
    with_features: NDArray[np.intp] | None = None
    """None where all rows have their features."""


class _EvenSample:
    """Rows of a table that comes in pieces, evenly spread: every second, fourth, … once there are too many."""

    def __init__(self, most: int | None) -> None:
        self.most, self.step, self.n_rows = most, 1, 0
        self.pieces: list[pd.DataFrame] = []

    def add(self, piece: pd.DataFrame) -> None:
        positions = np.arange(self.n_rows, self.n_rows + len(piece))
        self.n_rows += len(piece)
        self.pieces.append(piece.set_axis(positions)[positions % self.step == 0])
        while self.most is not None and sum(map(len, self.pieces)) > self.most:
            self.step *= 2
            self.pieces = [one[one.index % self.step == 0] for one in self.pieces]

    def rows(self) -> tuple[pd.DataFrame, NDArray[np.intp] | None]:
        """The rows, and their positions; None for all."""
        table = pd.concat(self.pieces)
        positions = table.index.to_numpy(np.intp)
        return table.reset_index(drop=True), None if self.step == 1 else positions


@dataclass(frozen=True)
class FileModel:
    """A model file, with the schema of the tables it takes."""

    model: Any
    """The fitted estimator, most often at the end of a pipeline that reads tables."""
    card: dict[str, Any]
    """What the file says of it."""
    schema: TableSchema
    path: Path

    @classmethod
    def open(cls, path: Path, target: str | None = None) -> "FileModel":
        """Read a model file.

        A model that was saved from Python knows what its columns hold, but not the name of the target, nor sensitive
        attributes, persons or weights.
        """
        model, card = open_model(path)
        return cls(model, card, schema_of_card(card, path) or _schema_of_model(model, card, target or ""), path)

    def read(
        self,
        data: DataFile,
        sensitive: Sequence[str] = (),
        target: str | None = None,
        person: str | None = None,
        weight: str | None = None,
        *,
        most_features: int | None = None,
    ) -> LabelledRows:
        """Read rows with their target piece by piece, and decide about them.

        Columns that are not named are those of the training, sensitive and protected ones, persons and weights as far
        as the file has them. Features are kept of about so many rows, evenly spread, and of every other row about 60
        bytes: the file may be large.
        """
        target = target or self.schema.target
        if not target:
            raise InputError("This model was saved from Python and does not know its target: name the target column.")
        data, unread, unseen = self.as_trained(data), UnreadValues(), UnseenCategories()
        sample = _EvenSample(most_features)
        kept: dict[str, list[Any]] = {"y": [], "codes": [], "groups": [], "own": [], "about": []}
        sums, n_read = np.zeros(4, np.uint64), 0
        # All columns as strings, as in training: numbers come out the same to the last digit, and so do fingerprints.
        for table in data.pieces(rows=rows_at_once(final_classifier(self.model), ROWS_PER_PIECE), text=None):
            check_columns(table.columns, [target], "the target")
            n_read += len(table)
            known = table[with_gaps(table[target]).notna()]
            if not len(known):
                continue
            schema = self.schema_of(data)
            features = schema.features_of(known, unread)
            y = match_labels(known[target], self.model.classes_)
            sums = sums + hash_sums(labelled_hashes(features, y))
            final, seen = split_pipeline(self.model, features)
            unseen.add(final.unseen_categories(seen) if isinstance(final, DAFHClassifier) else {})
            names = split_names(sensitive, table.columns)
            names = names or [name for name in schema.attributes if name in table.columns]
            attributes = schema.attributes_of(known, names) if names else None
            found = ServedPredictions.of(self.model, features, attributes)
            asked = (*names, person, schema.person, weight, schema.weight)
            sample.add(features)
            kept["y"].append(y)
            kept["codes"].append(_as_codes(self.model.classes_, y, found))
            kept["about"].append(known[list(dict.fromkeys(name for name in asked if name in known.columns))])
            kept["groups"].append(found.groups.astype(np.int16))
            kept["own"].append(found.own)
        if not kept["y"]:
            raise InputError(f"The target {quoted(target)} has no values.")
        about = pd.concat(kept["about"], ignore_index=True)
        persons, unknown = self.persons(about, person)
        weights, uncounted = self.weights(about, weight)
        left = no_target(n_read - len(about))
        notes = [*data.notes, *left, *unread.notes(), *unseen.notes(len(about)), *unknown, *uncounted]
        if target == self.schema.target:  # With other labels, they are other rows.
            check_test_rows(self.path, self.card, data.path, fingerprint(sums))
        if fingerprint(sums) in self.card.get("fingerprints", []):
            notes.append(SAME_ROWS)
        return LabelledRows(
            np.concatenate(kept["y"]),
            np.concatenate(kept["codes"]),
            np.concatenate(kept["groups"]),
            max(kept["own"], key=len),
            found.classifiers,
            # Once more, of all rows: what an attribute holds that training did not have is guessed.
            schema.attributes_of(about, names) if names else None,
            persons,
            weights,
            tuple(notes),
            *sample.rows(),
        )

    def weights(self, known: pd.DataFrame, weight: str | None) -> tuple["pd.Series[Any] | None", list[str]]:
        """What each row counts, and a note where the training knew weights and the file does not."""
        if weight is not None:
            check_columns(known.columns, [weight], "with the weight of each row")
        name = weight or self.schema.weight
        if name is None or name in known.columns:
            return replace(self.schema, weight=name).weights_of(known), []
        return None, [f"The table has no column {quoted(name)}, which says how much rows count: each counts once."]

    def persons(self, known: pd.DataFrame, person: str | None) -> tuple["pd.Series[Any] | None", list[str]]:
        """Person of each row, and a note where the training knew persons and the file does not."""
        if person is not None:
            check_columns(known.columns, [person], "with the person of each row")
        name = person or self.schema.person
        if name is None:
            return None, []
        if name not in known.columns:
            missing = f"The table has no column {quoted(name)}, which says which rows belong to one person"
            return None, [f"{missing}: each row counts as a person of its own."]
        return persons_of(known, name), []

    def as_trained(self, data: DataFile) -> DataFile:
        """Assume the decimal mark of the training table, where the numbers of a file do not show theirs."""
        return replace(data, decimal=self.schema.decimal)

    def schema_of(self, data: DataFile) -> TableSchema:
        """Schema with the decimal mark of a file that was read, which may be another one than in training."""
        return replace(self.schema, decimal=data.decimal)

    def audit(
        self,
        rows: LabelledRows,
        *,
        losses: Sequence[str] | None = None,
        costs: Mapping[str, float] | None = None,
        **options: Any,
    ) -> AuditResult:
        """Test whether any group would do better with the pooled classifier, or with another group's.

        Without losses, those are tested that the model's guard was asked to protect, or the costs if these are given.
        Without costs, they are those that the model was fitted with. Options are those of `AuditResult.of`.
        """
        compared = ComparedRows.check(
            rows.codes[:, 0],
            rows.codes[:, 2:],
            rows.groups,
            rows.codes[:, 1],
            rows.own,
            rows.weights,
            classes=np.arange(len(self.model.classes_)),
            persons=rows.persons,
        )
        final = final_classifier(self.model)
        protected = {loss.name: loss for loss in final.losses_}
        if not losses:
            losses = list(protected) if costs is None or "cost" in protected else ["cost"]
        if costs is None:
            costs = protected["cost"].costs if "cost" in protected else final.costs
        return AuditResult.from_rows(
            compared,
            groups=range(len(rows.own)),
            rivals=[*rows.classifiers, "pooled"],
            sensitive_features=rows.sensitive,
            losses=check_losses(losses, costs),
            rules=rules_of(final),
            X=rows.features,
            with_features=rows.with_features,
            **options,
        )

    def explain(self, rows: LabelledRows, *, refits: bool = False) -> Explanation:
        """Describe the groups in words; with `refits`, also how much they change in copies fitted on these rows.

        Copies of a model with exceptions differ in the rows they are fitted on, those of a network in their seeds.
        """
        words = explain(self.model, rows.features, sensitive_features=rows.sensitive)
        final = final_classifier(self.model)
        if not refits or final.n_groups_ == 1:
            return words
        by_rows = getattr(final, "exceptions_", None) is not None
        known: dict[str, Any] = {"resamples": _REFITS} if by_rows else {"seeds": range(_REFITS)}
        if rows.persons is not None:
            known["model__persons"] = rows.persons
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # The model's own fit has given them already, for all of its rows.
                agreement = stability(
                    self.model,
                    rows.features,
                    rows.y,
                    sensitive_features=rows.sensitive,
                    max_rows=_REFITTED_ROWS,
                    **known,
                )
        except (TypeError, ValueError):
            # Too few rows to fit on, or a classifier that cannot be copied: no reason to stop.
            return words
        return replace(words, stability=agreement, resampled=by_rows, n_fits=_REFITS)

    def score(self, data: DataFile, keep: Sequence[str] = (), rows: int | None = None) -> Iterator[pd.DataFrame]:
        """Predict the rows of a file piece by piece: label, its probability, and the group.

        Columns of the file are carried over if `keep` names them; "all" is every column. What was guessed about the
        file, and values that could not be read, are in its `notes` at the end.
        """
        done = 0
        data, unread, unseen = self.as_trained(data), UnreadValues(), UnseenCategories()
        # Kept columns are read as strings: an account number must come out as it went in.
        as_text = None if list(keep) == ["all"] else {*self.schema.text_columns, *split_names(keep, ())}
        rows = rows or rows_at_once(final_classifier(self.model), ROWS_PER_PIECE)
        for piece in data.pieces(rows, text=as_text):
            names = list(piece.columns) if as_text is None else split_names(keep, piece.columns)
            check_columns(piece.columns, names, "to carry over")
            scored = _scored(self.model, self.schema_of(data).features_of(piece, unread), unseen)
            scored.insert(0, "row", np.arange(done + 1, done + 1 + len(piece)))
            done += len(piece)
            given = piece[names].reset_index(drop=True)
            yield pd.concat([given.rename(columns=names_beside(names, list(scored.columns))), scored], axis=1)
        data.notes.extend([*unread.notes(), *unseen.notes(done)])


# ---- decisions of two models ----

_MOST_COMPARED = 1_000_000
_MOST_LOOKED_AT = 200_000


def read_decided(
    data: Any,
    old: str,
    new: str,
    *,
    target: str | None = None,
    sensitive: Sequence[str] = (),
    drop: Sequence[str] = (),
    person: str | None = None,
    time: str | None = None,
    weight: str | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Read what `compare` takes from files or a Dask data frame: labels, decisions, features, and what else is known.

    `old` and `new` are columns with decisions, or model files; `data` is a DataFile or anything that
    `dafh.large.as_blocks` takes. Rows without a target are left out. Of more than a million rows, a random million is
    compared. Returns arguments of `compare`, and notes for the reader.

    Examples
    --------
    >>> rows, _ = read_decided("rows/*.parquet", "old", "new", target="hired")         # doctest: +SKIP
    >>> dafh.compare(**rows)                                                           # doctest: +SKIP
    """
    tables = data.files() if isinstance(data, DataFile) else []
    blocks = open_files(tables, text=None) if tables else as_blocks(data)
    if blocks is None:
        raise InputError("Pass files or a Dask data frame; `dafh.compare` takes tables in memory itself.")
    n_rows = blocks.n_rows or sum(blocks.map(len))
    if not n_rows:
        raise InputError("There are no rows to compare decisions on.")
    thinned = partial(_thinned, share=min(_MOST_COMPARED / n_rows, 1.0), target=target)
    looked_at = pd.concat(list(blocks.map(partial(thinned, share=min(_MOST_LOOKED_AT / n_rows, 1.0)))))
    if not len(looked_at):
        raise InputError(f"The target {quoted(target)} has no values.")
    files = [name for name in (old, new) if name not in blocks.columns and Path(name).is_file()]
    decisions = [name for name in (old, new) if name not in files]
    check_columns(blocks.columns, decisions, "with decisions")
    attributes = split_names(sensitive, blocks.columns)
    unwanted = [*split_names(drop, blocks.columns), *decisions]
    anchor = target or next(iter(decisions), None)
    if anchor is None:
        raise InputError("Two model files need a target: name the column with the true label.")
    decimal = tables[0].decimal if tables else "."
    schema = TableSchema.guess(
        looked_at,
        anchor,
        drop=[name for name in dict.fromkeys(unwanted) if name != anchor],
        sensitive=attributes,
        person=person,
        time=time,
        weight=weight,
        decimal=decimal,
    )
    scorers = {name: FileModel.open(Path(name)) for name in files}
    about = [name for name in dict.fromkeys((target, *decisions, person, time, weight, *attributes)) if name]

    def convert(block: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, NDArray[Any]]]:
        rows = thinned(block).reset_index(drop=True)
        labels = {
            name: _scored(one.model, one.schema.features_of(rows))["prediction"].to_numpy()
            for name, one in scorers.items()
        }
        return schema.features_of(rows), rows[about], labels

    parts = [part for part in blocks.map(convert) if len(part[0])]
    features = pd.concat([part[0] for part in parts], ignore_index=True)
    known = pd.concat([part[1] for part in parts], ignore_index=True)
    decided = {name: np.concatenate([part[2][name] for part in parts]) for name in scorers}
    y = None if target is None else read_labels(known[target])
    given = {
        role: decided[name] if name in decided else _as_decisions(known[name], y, decimal)
        for role, name in (("old", old), ("new", new))
    }
    left_out = [name for name in schema.left_out if name not in unwanted]
    notes = [f"Rules are not about {listed([quoted(name) for name in left_out[:5]])}."] if left_out else []
    if n_rows > _MOST_COMPARED:
        notes.append(f"A random sample of {len(known):,} of {n_rows:,} rows is compared.")
    rows: dict[str, Any] = {"y": y, **given, "X": features if features.shape[1] else None}
    rows["sensitive_features"] = schema.attributes_of(known, attributes) if attributes else None
    rows["persons"] = None if person is None else persons_of(known, person)
    return rows | {"time": schema.times_of(known), "sample_weight": schema.weights_of(known)}, notes


def _thinned(block: pd.DataFrame, share: float, target: str | None) -> pd.DataFrame:
    """A share of the rows of a block, the same whatever the blocks are, without those that have no target."""
    if target is not None:
        check_columns(block.columns, [target], "the target")
        block = block[with_gaps(block[target]).notna()]
    return block if share >= 1 else block[uniform(block.index.to_numpy(np.uint64), 0) < share]


def _as_decisions(column: "pd.Series[Any]", y: NDArray[Any] | None, decimal: str) -> NDArray[Any]:
    """Decisions of a column as they are compared: labels, or scores as numbers."""
    if y is not None and find_labels(column, np.unique(y))[1] is None:
        return match_labels(column, np.unique(y))
    numbers = read_as(column, "number", decimal).values
    return (numbers if numbers.notna().all() else column).to_numpy()


def _scored(model: Any, features: pd.DataFrame, unseen: UnseenCategories | None = None) -> pd.DataFrame:
    """Label, its probability, and the group of each row; counts unseen categories on the way."""
    model, rows = split_pipeline(model, features)
    if isinstance(model, DAFHClassifier):
        label, probability, group, categories = model.serve(rows)
    else:
        label, probability, group = model.predict(rows), model.predict_proba(rows), model.predict_group(rows)
        categories = {}
    if unseen is not None:
        unseen.add(categories)
    shown = range(1, 2) if len(model.classes_) == 2 else range(len(model.classes_))
    return pd.DataFrame(
        {
            "prediction": label,
            **{f"probability_{model.classes_[k]}": probability[:, k].round(6) for k in shown},
            "group": group,
        }
    )


def _as_codes(classes: NDArray[Any], y: NDArray[Any], served: ServedPredictions) -> NDArray[np.int16]:
    """True label and predictions as positions of classes: two bytes each, as a model may have 10,000 labels."""
    labels = np.column_stack([y, served.pooled, served.predictions])
    return pd.Index(classes).get_indexer(labels.ravel()).reshape(labels.shape).astype(np.int16)


# ---- schemas ----


def schema_of_card(card: Mapping[str, Any], path: Path) -> TableSchema | None:
    """Read the schema that `dafh fit` has written into a model file; None for a model that was saved from Python."""
    described = card.get("schema")
    try:
        return None if described is None else TableSchema.from_dict(described)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path} has a malformed schema: it does not say what its columns hold.") from error


def _schema_of_model(model: Any, card: Mapping[str, Any], target: str) -> TableSchema:
    """Make a schema of what a model that was saved from Python has learned about its columns."""
    final = final_classifier(model)
    if isinstance(final, Scorecard):
        raise InputError("This file holds one scorecard, and commands work on groups: use it in Python, or export it.")
    first = model[0] if isinstance(model, Pipeline) else model
    if not hasattr(first, "columns_") and not hasattr(first, "feature_names_in_"):
        raise InputError(
            "This model was fitted on an array in Python and does not know its columns by name: fit it on a data frame."
        )
    kinds = {column["name"]: column["type"] for column in card["columns"]}
    aside = getattr(final, "_pooled_columns", None) or ()  # Columns that only the pooled classifier sees.
    unknown = [name for name in aside if name not in kinds]
    if unknown and not isinstance(final.pooled_, IncumbentColumns):
        raise InputError(
            f"This model does not say what the column {quoted(unknown[0])} of its pooled classifier holds: fit it "
            "behind tabular_pipeline, which keeps that."
        )
    kinds |= {name: "number" if name == final.pooled_.score else "category" for name in unknown}
    return TableSchema(target, kinds, pooled={name: kinds.pop(name) for name in aside})


# ---- fingerprints: which rows a model was trained on, and which were set aside ----


def labelled_hashes(features: pd.DataFrame, y: ArrayLike) -> NDArray[np.uint64]:
    """One number for each row, the same in whatever file the row stands.

    Features and labels come as the schema reads them, so that neither the type of a file nor its time zones matter.
    """
    label = pd.Series(np.asarray(y), features.index).map(str).astype(object)
    # A name that no column of a file has: `assign` would replace a feature.
    return row_hashes(pd.concat([features, label.rename("\0label")], axis=1))


def hash_sums(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sums of hashes: those of a table are the sums of those of its parts, whatever the order of its rows."""
    return np.array([len(hashes), *(mixed(hashes, salt).sum(dtype=np.uint64) for salt in range(3))], np.uint64)


def fingerprint(sums: NDArray[np.uint64]) -> str:
    """Checksum of a table from the sums of its hashes: tells which table it is, and nothing about it."""
    return hashlib.sha256(sums.tobytes()).hexdigest()


def held_out_path(model: Path) -> Path:
    """Where the test rows of a model are written."""
    return model.with_suffix(".test.parquet")


def check_test_rows(model: Path, card: Mapping[str, Any], table: str | Path, found: str) -> None:
    """Refuse a table that has the name of the model's test rows, and rows of another fingerprint than those."""
    # A model that was saved from Python has no test rows.
    named_so = Path(table).resolve() in (held_out_path(model).resolve(), held_out_path(model.resolve()))
    if named_so and "rows_kept_back" in card and card.get("test_fingerprint") != found:
        raise InputError(
            f"{table} does not hold the test rows of {model.name}: another fit has written it, and the model may have "
            "been trained on these rows. Fit again, or give the table another name if you know that the model has not "
            "seen them."
        )


# ---- names of columns ----


def split_names(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Different names of columns, given one by one or joined by commas; a name that itself has a comma is one name.

    Examples
    --------
    >>> split_names(["age,sex", "born, where"], ["age", "sex", "born, where"])
    ['age', 'sex', 'born, where']
    """
    known = set(columns)
    parts = ([entry] if entry in known else [part.strip() for part in entry.split(",")] for entry in names)
    return [name for name in dict.fromkeys(itertools.chain(*parts)) if name]


def names_beside(names: Sequence[str], taken: Sequence[str]) -> dict[str, str]:
    """Other names for columns whose own are taken.

    Examples
    --------
    >>> names_beside(["age", "row"], taken=["row", "prediction"])
    {'age': 'age', 'row': 'row (given)'}
    """
    found: dict[str, str] = {}
    for name in names:
        new = name
        # The new name may be taken as well, or be the name of a later column.
        while new in taken or new in found.values() or (new != name and new in names):
            new = f"{new} (given)"
        found[name] = new
    return found
