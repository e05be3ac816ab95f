"""A model file and the tables it takes: rows to score, rows to audit, and which rows it was trained on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from dafh.classifiers import final_classifier, rows_at_once, split_pipeline
from dafh.cli.options import test_rows_path
from dafh.columns.hashes import fingerprint, hash_total, labelled_hashes
from dafh.columns.kinds import with_gaps
from dafh.columns.labels import match_labels, no_target
from dafh.columns.read import ROWS_PER_PIECE, DataFile
from dafh.columns.schema import TableSchema, check_columns, persons_of, split_names
from dafh.columns.unexpected import UnexpectedValues
from dafh.estimators.dafh import DAFHClassifier
from dafh.evaluation.compared import ComparedRows, ServedPredictions
from dafh.evaluation.losses import check_losses
from dafh.exceptions import InputError
from dafh.incumbents import IncumbentColumns
from dafh.linear.scorecard import Scorecard
from dafh.persistence import open_model
from dafh.text import quoted

if TYPE_CHECKING:
    from dafh.evaluation.audit import AuditResult

SAME_ROWS = "These results are optimistic: the model was trained on these rows. Use rows that it has not seen."


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """Rows of a file with their target, and what a model decides about them."""

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
    notes: tuple[str, ...]
    features: pd.DataFrame
    """As the model takes them; of very many rows, those at the positions `with_features`."""
    with_features: NDArray[np.intp] | None
    """None where all rows have their features."""


@dataclass(frozen=True)
class ModelFile:
    """A model file, with the schema of the tables it takes."""

    model: Any
    """The fitted estimator, most often at the end of a pipeline that reads tables."""
    card: dict[str, Any]
    """What the file says of it."""
    schema: TableSchema
    path: Path

    @classmethod
    def open(cls, path: Path, target: str | None = None) -> "ModelFile":
        """Read a model file.

        A model that was saved from Python knows what its columns hold, but not the name of the target, nor sensitive
        attributes, persons or weights.
        """
        model, card = open_model(path)
        return cls(model, card, schema_of_card(card, path) or _schema_of_model(model, card, target or ""), path)

    def schema_of(self, data: DataFile) -> TableSchema:
        """Schema with the decimal mark of a file that was read, which may be another one than in training."""
        return replace(self.schema, decimal=data.decimal)

    def read(
        self,
        data: DataFile,
        sensitive: Sequence[str] = (),
        target: str | None = None,
        person: str | None = None,
        weight: str | None = None,
        *,
        most_features: float = np.inf,
    ) -> AuditedRows:
        """Read rows with their target piece by piece, and decide about them: the file may be larger than memory.

        Columns that are not named are those of the training, as far as the file has them. Of every row about 60 bytes
        are stored, and of `most_features` rows at most, evenly spread, the features.
        """
        target = target or self.schema.target
        if not target:
            raise InputError("This model was saved from Python and does not know its target: name the target column.")
        unexpected, total, n_read, n_rows, step = UnexpectedValues(), 0, 0, 0, 1
        decided: list[tuple[Any, ...]] = []
        features: list[pd.DataFrame] = []
        # All columns as strings, as in training: numbers come out the same to the last digit, and so do fingerprints.
        for table in data.pieces(rows=rows_at_once(final_classifier(self.model), ROWS_PER_PIECE), text=None):
            check_columns(table.columns, [target], "the target")
            n_read += len(table)
            rows = table[with_gaps(table[target]).notna()]
            if not len(rows):
                continue
            schema = self.schema_of(data)
            typed = schema.features_of(rows, unexpected)
            labels = match_labels(rows[target], self.model.classes_)
            total += hash_total(labelled_hashes(typed, labels))
            final, encoded = split_pipeline(self.model, typed)
            unexpected.add_unseen(final.unseen_categories(encoded) if isinstance(final, DAFHClassifier) else {})
            names = split_names(sensitive, table.columns)
            names = names or [name for name in schema.sensitive if name in table.columns]
            attributes = schema.attributes_of(rows, names) if names else None
            served = ServedPredictions.of(self.model, typed, attributes)
            roles = dict.fromkeys((*names, person, schema.person, weight, schema.weight))
            role_columns = rows[[name for name in roles if name in rows.columns]]
            codes = _as_codes(self.model.classes_, labels, served)
            decided.append((codes, served.groups.astype(np.int16), served.own, role_columns))
            positions = np.arange(n_rows, n_rows + len(rows))
            n_rows += len(rows)
            # Every second, fourth, … row once there are too many.
            features.append(typed.set_axis(positions)[positions % step == 0])
            while sum(map(len, features)) > most_features:
                step *= 2
                features = [piece[piece.index % step == 0] for piece in features]
        if not decided:
            raise InputError(f"The target {quoted(target)} has no values.")
        all_codes, groups, servers, tables = zip(*decided, strict=True)
        role_columns = pd.concat(tables, ignore_index=True)
        persons, without_persons = self.persons(role_columns, person)
        weights, without_weights = self.weights(role_columns, weight)
        notes = [*data.notes, *no_target(n_read - n_rows), *unexpected.notes(n_rows)]
        if target == self.schema.target:  # With other labels, they are other rows.
            check_test_rows(self.path, self.card, data.path, fingerprint(total))
        same_rows = fingerprint(total) in self.card.get("fingerprints", [])
        with_features = pd.concat(features)
        return AuditedRows(
            np.concatenate(all_codes),
            np.concatenate(groups),
            max(servers, key=len),
            served.classifiers,
            # Once more, of all rows: what an attribute holds that training did not have is guessed.
            schema.attributes_of(role_columns, names) if names else None,
            persons,
            weights,
            (*notes, *without_persons, *without_weights, *([SAME_ROWS] if same_rows else [])),
            with_features.reset_index(drop=True),
            None if step == 1 else with_features.index.to_numpy(np.intp),
        )

    def weights(self, rows: pd.DataFrame, weight: str | None) -> tuple["pd.Series[Any] | None", list[str]]:
        """Weight of each row, and a note where the training had weights and the file has none."""
        if weight is not None:
            check_columns(rows.columns, [weight], "with the weight of each row")
        name = weight or self.schema.weight
        if name is None or name in rows.columns:
            return replace(self.schema, weight=name).weights_of(rows), []
        return None, [f"The table has no column {quoted(name)}, which says how much rows count: each counts once."]

    def persons(self, rows: pd.DataFrame, person: str | None) -> tuple["pd.Series[Any] | None", list[str]]:
        """Person of each row, and a note where the training had persons and the file has none."""
        if person is not None:
            check_columns(rows.columns, [person], "with the person of each row")
        name = person or self.schema.person
        if name is None or name in rows.columns:
            return None if name is None else persons_of(rows, name), []
        missing = f"The table has no column {quoted(name)}, which says which rows belong to one person"
        return None, [f"{missing}: each row counts as a person of its own."]

    def audit(
        self,
        rows: AuditedRows,
        *,
        losses: Sequence[str] | None = None,
        costs: Mapping[str, float] | None = None,
        **options: Any,
    ) -> "AuditResult":
        """Audit the model on rows; options are those of `AuditResult.of`.

        Without losses, those are tested that the model's guard was asked to protect, or the costs if these are given.
        Without costs, they are those that the model was fitted with.
        """
        from dafh.evaluation.audit import AuditResult, rules_of  # Scoring does without.

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
        guarded = {loss.name: loss for loss in final.losses_}
        if not losses:
            losses = list(guarded) if costs is None or "cost" in guarded else ["cost"]
        if costs is None:
            costs = guarded["cost"].costs if "cost" in guarded else final.costs
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

    def score(self, data: DataFile, keep: Sequence[str] = (), rows: int | None = None) -> Iterator[pd.DataFrame]:
        """Predict the rows of a file piece by piece: label, its probability, and the group.

        Columns of the file are carried over if `keep` names them; "all" is every column. What was guessed about the
        file, and values that could not be read, are in its `notes` at the end.
        """
        n_scored, unexpected = 0, UnexpectedValues()
        # Columns to carry over are read as strings: an account number must come out as it went in.
        as_text = None if list(keep) == ["all"] else {*self.schema.text_columns, *split_names(keep, ())}
        rows = rows or rows_at_once(final_classifier(self.model), ROWS_PER_PIECE)
        for piece in data.pieces(rows, text=as_text):
            names = list(piece.columns) if as_text is None else split_names(keep, piece.columns)
            check_columns(piece.columns, names, "to carry over")
            scores = scored(self.model, self.schema_of(data).features_of(piece, unexpected), unexpected)
            scores.insert(0, "row", np.arange(n_scored + 1, n_scored + 1 + len(piece)))
            n_scored += len(piece)
            new_names = {name: f"{name} (given)" for name in scores.columns}
            yield pd.concat([piece[names].reset_index(drop=True).rename(columns=new_names), scores], axis=1)
        data.notes.extend(unexpected.notes(n_scored))


def scored(model: Any, features: pd.DataFrame, unexpected: UnexpectedValues | None = None) -> pd.DataFrame:
    """Label, its probability, and the group of each row; counts unseen categories on the way."""
    model, rows = split_pipeline(model, features)
    if isinstance(model, DAFHClassifier):
        label, probability, group, categories = model.serve(rows)
    else:
        label, probability, group = model.predict(rows), model.predict_proba(rows), model.predict_group(rows)
        categories = {}
    if unexpected is not None:
        unexpected.add_unseen(categories)
    # Of two labels, the probability of the second says that of the first.
    positions = range(1, 2) if len(model.classes_) == 2 else range(len(model.classes_))
    probabilities = {f"probability_{model.classes_[k]}": probability[:, k].round(6) for k in positions}
    return pd.DataFrame({"prediction": label, **probabilities, "group": group})


def _as_codes(classes: NDArray[Any], labels: NDArray[Any], served: ServedPredictions) -> NDArray[np.int16]:
    """True label and predictions as positions of classes: two bytes each, as a model may have 10,000 labels."""
    columns = np.column_stack([labels, served.pooled, served.predictions])
    return pd.Index(classes).get_indexer(columns.ravel()).reshape(columns.shape).astype(np.int16)


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
    of_pooled = getattr(final, "_pooled_columns", None) or ()  # Columns that only the pooled classifier sees.
    unknown = [name for name in of_pooled if name not in kinds]
    if unknown and not isinstance(final.pooled_, IncumbentColumns):
        raise InputError(
            f"This model does not say what the column {quoted(unknown[0])} of its pooled classifier holds: fit it "
            "behind tabular_pipeline, which keeps that."
        )
    kinds |= {name: "number" if name == final.pooled_.score else "category" for name in unknown}
    return TableSchema(target, kinds, pooled={name: kinds.pop(name) for name in of_pooled})


# ---- test rows ----


def check_test_rows(model: Path, card: Mapping[str, Any], table: str | Path, mark: str) -> None:
    """Refuse a table that has the name of the model's test rows, and rows of another fingerprint than those."""
    # A model that was saved from Python has no test rows.
    named_so = Path(table).resolve() in (test_rows_path(model).resolve(), test_rows_path(model.resolve()))
    if named_so and "rows_kept_back" in card and card.get("test_fingerprint") != mark:
        raise InputError(
            f"{table} does not hold the test rows of {model.name}: another fit has written it, and the model may have "
            "been trained on these rows. Fit again, or give the table another name if you know that the model has not "
            "seen them."
        )
