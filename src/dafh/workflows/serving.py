"""From a model file and a table to scores, an audit or words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.classifiers.logits import rows_at_once
from dafh.classifiers.pipelines import final_classifier, split_pipeline
from dafh.estimators.prediction import GroupPrediction, ServedRows
from dafh.exceptions import InputError
from dafh.persistence.files import ModelFile, open_model
from dafh.tables.labels import match_labels, no_target
from dafh.tables.read import ROWS_PER_PIECE, DataFile
from dafh.tables.schema import TableSchema, check_columns, persons_of
from dafh.tables.strange import UnreadValues, UnseenCategories
from dafh.tables.values import with_gaps
from dafh.text import quoted
from dafh.workflows.fingerprints import fingerprint, hash_sums, labelled_hashes
from dafh.workflows.names import names_beside, split_names
from dafh.workflows.python_models import schema_of_model
from dafh.workflows.set_aside import check_test_rows

if TYPE_CHECKING:
    from dafh.evaluation.losses import Costs, Loss
    from dafh.evaluation.result import AuditResult
    from dafh.explanation.words import Explanation

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
    """As the model takes them; without rows if nobody needs them."""


@dataclass(frozen=True)
class FileModel:
    """A model file, with the schema of the tables it takes."""

    file: ModelFile
    schema: TableSchema
    path: Path

    @classmethod
    def open(cls, path: Path, target: str | None = None) -> "FileModel":
        """Read a model file.

        Parameters
        ----------
        path : Path
        target : str, optional
            Target column. A model that was saved from Python knows what its columns hold, but not the name of the
            target, nor sensitive attributes, persons or weights.
        """
        file = open_model(path)
        schema = file.card.get("schema")
        if schema is None:
            return cls(file, schema_of_model(file.model, target or ""), path)
        try:
            return cls(file, TableSchema.from_dict(schema), path)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{path} has a malformed schema: it does not say what its columns hold.") from error

    @property
    def model(self) -> Any:
        """The fitted estimator, most often at the end of a pipeline that reads tables."""
        return self.file.model

    def _target(self, target: str | None) -> str:
        if not (target or self.schema.target):
            raise InputError("This model was saved from Python and does not know its target: name the target column.")
        return target or self.schema.target

    def read(
        self,
        data: DataFile,
        sensitive: Sequence[str] = (),
        target: str | None = None,
        person: str | None = None,
        weight: str | None = None,
        *,
        with_features: bool = True,
    ) -> LabelledRows:
        """Read rows with their target piece by piece, and decide about them.

        Parameters
        ----------
        data : DataFile
        sensitive : names of columns
            Without any, those that were named in training, protected ones too, as far as the file has them.
        target : str, optional
            Target column, if it has another name than in training.
        person : str, optional
            Column with the person of each row; without it, that of the training, if the file has it.
        weight : str, optional
            Column that says how much each row counts; the same holds for it.
        with_features : bool
            Whether features are kept, too. Without them about 60 bytes of every row are: the file may be large.
        """
        from dafh.evaluation.served import ServedPredictions

        target = self._target(target)
        data, unread, unseen = self._as_trained(data), UnreadValues(), UnseenCategories()
        served: list[Any] = []
        kept: dict[str, list[Any]] = {"features": [], "y": [], "codes": [], "about": []}
        sums, n_read = np.zeros(4, np.uint64), 0
        # All columns as strings, as in training: numbers come out the same to the last digit, and so do fingerprints.
        for table in data.pieces(rows=rows_at_once(final_classifier(self.model), ROWS_PER_PIECE), text=None):
            check_columns(table.columns, [target], "the target")
            n_read += len(table)
            known = table[with_gaps(table[target]).notna()]
            if not len(known):
                continue
            features = self._schema_of(data).features_of(known, unread)
            y = match_labels(known[target], self.model.classes_)
            sums = sums + hash_sums(labelled_hashes(features, y))
            unseen.add(_find_unseen(self.model, features))
            names = split_names(sensitive, table.columns)
            names = names or [name for name in self.schema.attributes if name in table.columns]
            attributes = self._schema_of(data).attributes_of(known, names) if names else None
            found = ServedPredictions.of(self.model, features, attributes)
            served.append((found.groups.astype(np.int16), found.own, found.classifiers))
            asked = (*names, person, self.schema.person, weight, self.schema.weight)
            kept["features"].append(features if with_features else features[:0])
            kept["y"].append(y)
            kept["codes"].append(_as_codes(self.model.classes_, y, found))
            kept["about"].append(known[list(dict.fromkeys(name for name in asked if name in known.columns))])
        if not served:
            raise InputError(f"The target {quoted(target)} has no values.")
        about = pd.concat(kept["about"], ignore_index=True)
        persons, unknown = self._persons(about, person)
        weights, uncounted = self._weights(about, weight)
        left = no_target(n_read - len(about))
        notes = [*data.notes, *left, *unread.notes(), *unseen.notes(len(about)), *unknown, *uncounted]
        return LabelledRows(
            np.concatenate(kept["y"]),
            np.concatenate(kept["codes"]),
            np.concatenate([groups for groups, _, _ in served]),
            max((own for _, own, _ in served), key=len),
            served[0][2],
            # Once more, of all rows: what an attribute holds that training did not have is guessed.
            self._schema_of(data).attributes_of(about, names) if names else None,
            persons,
            weights,
            (*notes, *self._about_rows(data, target, sums)),
            pd.concat(kept["features"], ignore_index=True),
        )

    def _weights(self, known: pd.DataFrame, weight: str | None) -> tuple["pd.Series[Any] | None", list[str]]:
        """What each row counts, and a note where the training knew weights and the file does not."""
        if weight is not None:
            check_columns(known.columns, [weight], "with the weight of each row")
        name = weight or self.schema.weight
        if name is None or name in known.columns:
            return replace(self.schema, weight=name).weights_of(known), []
        return None, [f"The table has no column {quoted(name)}, which says how much rows count: each counts once."]

    def _persons(self, known: pd.DataFrame, person: str | None) -> tuple["pd.Series[Any] | None", list[str]]:
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

    def _as_trained(self, data: DataFile) -> DataFile:
        """Read a file as the training table was read, but for what the user says about it."""
        return replace(data, leave_out=tuple(self.schema.left_out), decimal=data.decimal or self.schema.decimal)

    def _schema_of(self, data: DataFile) -> TableSchema:
        """Schema with the decimal mark of a file that was read: users may say that it has another one."""
        return replace(self.schema, decimal=data.layout.decimal) if data.layout else self.schema

    def audit(
        self,
        rows: LabelledRows,
        *,
        losses: Sequence[str] = (),
        costs: Mapping[str, float] | None = None,
        **options: Any,
    ) -> "AuditResult":
        """Test whether any group would do better with the pooled classifier, or with another group's.

        Parameters
        ----------
        rows : LabelledRows
        losses : names of losses
            Without any, those that the model's guard was asked to protect.
        costs : mapping, optional
            Without them, the costs that the model was fitted with. Given without losses, they are what is asked about.
        **options
            As in `AuditResult.of`.
        """
        # Here and below, so that scoring, which needs none of it, does not wait for it.
        from dafh.evaluation.paired import ComparedRows
        from dafh.evaluation.result import AuditResult

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
        groups, rivals = range(len(rows.own)), [*rows.classifiers, "pooled"]
        asked = self._losses(losses, costs)
        return AuditResult.from_rows(compared, groups, rivals, rows.sensitive, losses=asked, **options)

    def _about_rows(self, data: DataFile, target: str, sums: NDArray[np.uint64]) -> list[str]:
        """Refuse rows of another fit, and say so if the model was trained on these."""
        found = fingerprint(sums)
        if target == self.schema.target:  # With other labels, they are other rows.
            check_test_rows(self.path, self.file.card, data.path, found)
        return [SAME_ROWS] if found in self.file.card.get("fingerprints", []) else []

    def _losses(self, names: Sequence[str], costs: "Mapping[str, float] | Costs | None") -> "tuple[Loss, ...]":
        from dafh.evaluation.losses import check_losses

        final = final_classifier(self.model)
        protected = {loss.name: loss for loss in final.losses_}
        if not names:
            names = list(protected) if costs is None or "cost" in protected else ["cost"]
        if costs is None:
            costs = protected["cost"].costs if "cost" in protected else final.costs
        return check_losses(names, costs)

    def explain(self, rows: LabelledRows, n_fits: int | None = 0) -> "Explanation":
        """Describe the groups in words; `n_fits` copies that are fitted on the rows show how much the groups change.

        Copies of a model with rules differ in the rows they are fitted on, those of a network in their seeds. None is
        as many copies as can be fitted in half a minute, and none where there is one group.
        """
        from dafh.explanation.explain import explain
        from dafh.explanation.stability import stability, stability_in_time

        words = explain(self.model, rows.features, sensitive_features=rows.sensitive)
        final = final_classifier(self.model)
        if n_fits == 0 or (n_fits is None and final.n_groups_ == 1):
            return words
        by_rows = getattr(final, "rules_", None) is not None
        known: dict[str, Any] = {"sensitive_features": rows.sensitive}
        if rows.persons is not None:
            known["model__persons"] = rows.persons
        if n_fits is None:
            try:
                agreement, n_fits = stability_in_time(self.model, rows.features, rows.y, **known)
            except (TypeError, ValueError):
                # Too few rows to fit on, or a classifier that cannot be copied. Nobody asked for it, so that this is no
                # reason to stop.
                return words
        else:
            known |= {"resamples": n_fits} if by_rows else {"seeds": range(n_fits)}
            agreement = stability(self.model, rows.features, rows.y, **known)
        return replace(words, stability=agreement, resampled=by_rows, n_fits=n_fits)

    def score(self, data: DataFile, keep: Sequence[str] = (), rows: int | None = None) -> Iterator[pd.DataFrame]:
        """Predict the rows of a file piece by piece: label, its probability, and the group.

        Parameters
        ----------
        data : DataFile
        keep : names of columns
            To carry over from the file; "all" is every column.
        rows : int, optional
            Rows at a time; as many as there is room for without it.

        What was guessed about the file, and values that could not be read, are in its `notes` at the end.
        """
        done = 0
        data = self._as_trained(data)
        unread, unseen = UnreadValues(), UnseenCategories()
        # Kept columns are read as strings: an account number must come out as it went in.
        as_text = None if list(keep) == ["all"] else {*self.schema.text_columns, *split_names(keep, ())}
        rows = rows or rows_at_once(final_classifier(self.model), ROWS_PER_PIECE)
        for piece in data.pieces(rows, text=as_text):
            names = list(piece.columns) if as_text is None else split_names(keep, piece.columns)
            check_columns(piece.columns, names, "to carry over")
            scored = _scored(self.model, self._schema_of(data).features_of(piece, unread), unseen)
            scored.insert(0, "row", np.arange(done + 1, done + 1 + len(piece)))
            done += len(piece)
            given = piece[names].reset_index(drop=True)
            yield pd.concat([given.rename(columns=names_beside(names, list(scored.columns))), scored], axis=1)
        data.notes.extend([*unread.notes(), *unseen.notes(done)])

    def score_frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Predict the rows of a data frame: label, its probability, and the group."""
        return _scored(self.model, self.schema.features_of(frame.reset_index(drop=True)))


def _scored(model: Any, features: pd.DataFrame, unseen: UnseenCategories | None = None) -> pd.DataFrame:
    """Label, its probability, and the group of each row; counts unseen categories on the way."""
    model, rows = split_pipeline(model, features)
    if isinstance(model, GroupPrediction):
        served = model.serve(rows)
    else:
        served = ServedRows(model.predict(rows), model.predict_proba(rows), model.predict_group(rows), {})
    if unseen is not None:
        unseen.add(served.unseen)
    shown = range(1, 2) if len(model.classes_) == 2 else range(len(model.classes_))
    return pd.DataFrame(
        {
            "prediction": served.label,
            **{f"probability_{model.classes_[k]}": served.probability[:, k].round(6) for k in shown},
            "group": served.group,
        }
    )


def _find_unseen(model: Any, features: pd.DataFrame) -> dict[str, tuple[int, Any]]:
    """Categories that were not seen in training: by column, the number of rows and an example."""
    model, rows = split_pipeline(model, features)
    return model.find_unseen(rows) if isinstance(model, GroupPrediction) else {}


def _as_codes(classes: NDArray[Any], y: NDArray[Any], served: Any) -> NDArray[np.int16]:
    """True label and predictions as positions of classes: two bytes each, as a model may have 10,000 labels."""
    labels = np.column_stack([y, served.pooled, served.predictions])
    return pd.Index(classes).get_indexer(labels.ravel()).reshape(labels.shape).astype(np.int16)
