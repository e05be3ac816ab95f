"""What the columns of a table are: features, target, sensitive attributes, or nothing to learn from.

Guesses are cautious, and reported in `TableSchema.notes`. A schema is plain data: a model file keeps it, and the next
table is read the same way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from dafh.exceptions import InputError
from dafh.tables.leakage import ROWS_TO_COMPARE, positions, predicts
from dafh.tables.left_out import ROWS_TO_JUDGE_BY, SHARED, nothing_to_learn
from dafh.tables.schema_words import named, sentences_of
from dafh.tables.unread import UnreadValues
from dafh.tables.values import as_categories, checked_kinds, guess_kind, read_as, typed_kind, whole_numbers, with_gaps
from dafh.text import clipped, quoted

_DROPPED = "as you said"


@dataclass(frozen=True)
class TableSchema:
    """Which columns are features and of which kind, which is the target, which are kept out of training and why."""

    target: str
    features: dict[str, str]
    """Column and kind: number, flag, category, or date with its format."""
    sensitive: dict[str, str] = field(default_factory=dict)
    """Attributes that are kept out of training, with their kind."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Column and reason."""
    notes: tuple[str, ...] = ()
    """What was guessed, in sentences."""
    decimal: str = "."
    """Decimal mark of numbers in text files."""
    gap_words: dict[str, list[str]] = field(default_factory=dict)
    """Column, and words that stand for a gap in it: "unknown" among numbers."""
    protected: dict[str, str] = field(default_factory=dict)
    """Attributes that the guard is shown and training is not, with their kind."""
    person: str | None = None
    """Column that says which rows belong to one person."""
    time: dict[str, str] = field(default_factory=dict)
    """Column that says when a row was observed, with its kind; at most one."""
    pooled: dict[str, str] = field(default_factory=dict)
    """Columns that the pooled classifier is read from, its score and its decision, with their kind."""
    weight: str | None = None
    """Column that says how much each row counts."""

    @classmethod
    def guess(
        cls,
        table: pd.DataFrame,
        target: str,
        *,
        drop: Iterable[str] = (),
        sensitive: Iterable[str] = (),
        categories: Iterable[str] = (),
        protect: Iterable[str] = (),
        person: str | None = None,
        time: str | None = None,
        score: str | None = None,
        decision: str | None = None,
        weight: str | None = None,
        decimal: str = ".",
    ) -> "TableSchema":
        """Guess what the columns of a table are; what the user says of a column is not guessed.

        Parameters
        ----------
        table : data frame
        target : str
        drop, sensitive, categories : names of columns
            To leave out; to keep out of training and to audit by; to read as categories although they hold numbers.
        protect : names of columns
            To keep out of training and to show to the guard; they may be sensitive as well.
        person, time : str, optional
            Columns that say which rows belong to one person, and when a row was observed; kept out of training.
        score, decision : str, optional
            Columns with the score and the decision of a model in use, or of a person, as the pooled classifier.
        weight : str, optional
            Column that says how much each row counts; kept out of training.
        decimal : {".", ","}
            Decimal mark of numbers that were read as strings.

        Examples
        --------
        >>> table = pd.DataFrame({"id": range(40), "age": [20, 30] * 20, "job": ["cook", "clerk"] * 20})
        >>> schema = TableSchema.guess(table.assign(y=[0, 1] * 20), "y")
        >>> schema.features, schema.left_out
        ({'age': 'number', 'job': 'category'}, {'id': 'a different value in every row'})
        """
        said = (drop, sensitive, categories, protect)
        drop, sensitive, categories, protect = (tuple(dict.fromkeys(names)) for names in said)
        about_rows = [name for name in (person, time, score, decision, weight) if name is not None]
        check_columns(table.columns, [target], "the target")
        for names in (drop, sensitive, categories, protect, about_rows):
            check_columns(table.columns, names)
        if target in (*drop, *sensitive, *protect, *about_rows):
            raise InputError(
                f"The target {quoted(target)} cannot have a second role: it cannot be left out, sensitive or "
                "protected, a person, a time, a weight, nor the score or decision of the pooled classifier."
            )
        left_out = dict.fromkeys(drop, _DROPPED)
        features: dict[str, str] = {}
        gap_words: dict[str, list[str]] = {}
        for name in table.columns:
            if name == target or name in left_out or name in (*sensitive, *protect, *about_rows):
                continue
            kind = "category" if name in categories else guess_kind(table[name], decimal)
            values, unread = read_as(table[name], kind, decimal)
            reason = None if name in categories else nothing_to_learn(values, name, kind)
            if reason is not None:
                left_out[name] = reason
                continue
            features[name] = kind
            if len(unread):
                gap_words[name] = sorted({str(value) for value in unread})
        if not features:
            raise InputError("No column is left to learn from: all are the target, kept out of training or left out.")
        kinds = {
            name: "category" if name in categories else guess_kind(table[name], decimal)
            for name in dict.fromkeys([*sensitive, *protect])
        }
        schema = cls(
            target,
            features,
            {name: kinds[name] for name in sensitive},
            left_out,
            (),
            decimal,
            gap_words,
            {name: kinds[name] for name in protect},
            person,
            {} if time is None else {time: _kind_of_time(table[time], decimal)},
            _kinds_of_incumbent(table, score, decision, decimal),
            weight,
        )
        return replace(schema, notes=tuple(sentences_of(schema, set(drop))))

    def leakage_notes(self, table: pd.DataFrame) -> list[str]:
        """Warn of features that give away the target, or a sensitive attribute that is kept out of training."""
        rows = table.iloc[:: max(len(table) // ROWS_TO_COMPARE, 1)]
        if len(rows) < 2 * ROWS_TO_JUDGE_BY:
            return []
        table_of = replace(self, pooled={})  # A score is meant to tell the target.
        features = {str(name): positions(values) for name, values in table_of.features_of(rows).items()}
        found = []
        for outcome in dict.fromkeys([self.target, *self.sensitive, *self.protected]):
            told = positions(with_gaps(rows[outcome]))
            telling = [name for name, values in features.items() if predicts(values, told)]
            if telling:
                what = "the target" if outcome == self.target else clipped(outcome, 40)
                one = len(telling) == 1
                each = f"{named(telling)} alone predicts" if one else f"each of {named(telling)} alone predicts"
                in_time = f" {'Is it' if one else 'Are they'} available at prediction time?"
                found.append(
                    f"Possible leakage: {each} {what} almost perfectly.{in_time if outcome == self.target else ''}"
                )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a model file."""
        return {**asdict(self), "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TableSchema":
        """Take what `to_dict` gave; a ValueError, or the like, says that it is something else."""
        if values["decimal"] not in (".", ","):
            raise ValueError("a decimal mark is a point or a comma")
        return cls(
            str(values["target"]),
            checked_kinds(values["features"]),
            checked_kinds(values["sensitive"]),
            {str(name): str(reason) for name, reason in values["left_out"].items()},
            tuple(values["notes"]),
            str(values["decimal"]),
            {str(name): [str(word) for word in words] for name, words in values["gap_words"].items()},
            checked_kinds(values["protected"]),
            None if values["person"] is None else str(values["person"]),
            checked_kinds(values["time"]),
            checked_kinds(values.get("pooled", {})),
            None if values.get("weight") is None else str(values["weight"]),
        )

    @property
    def attributes(self) -> list[str]:
        """Columns that define named groups: sensitive ones, then those that are protected only."""
        return list(dict.fromkeys([*self.sensitive, *self.protected]))

    @property
    def columns(self) -> dict[str, str]:
        """Columns that a model needs, with their kind: features, and those that its pooled classifier is read from."""
        return {**self.features, **self.pooled}

    @property
    def shared_identifiers(self) -> list[str]:
        """Columns that were left out because they look like the identifier of persons with several rows."""
        return [name for name, reason in self.left_out.items() if reason == SHARED]

    @property
    def text_columns(self) -> list[str]:
        """Columns to read as strings from a CSV file: what looks like a number may be a category."""
        return [name for name, kind in self.columns.items() if kind != "number"]

    @property
    def number_columns(self) -> list[str]:
        """Columns to read as numbers from a CSV file."""
        return [name for name, kind in self.columns.items() if kind == "number"]

    def features_of(self, table: pd.DataFrame, unread: UnreadValues | None = None) -> pd.DataFrame:
        """Take what a model needs from a table with columns in any order, as numbers, dates and text.

        Parameters
        ----------
        table : data frame
            As a file gives it, typed or read as strings; categories of categorical columns come out as such.
        unread : UnreadValues, optional
            Counts what cannot be read and becomes a gap; one for all pieces of a file.
        """
        check_columns(table.columns, self.features, "which the model was fitted with")
        check_columns(table.columns, self.pooled, "which its pooled classifier is read from")
        return self._read(table, self.columns, unread or UnreadValues())

    def attributes_of(self, table: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
        """Take sensitive attributes from a table; kinds that training did not settle are guessed."""
        check_columns(table.columns, names, "to audit by")
        settled = {**self.features, **self.protected, **self.sensitive}
        kinds = {name: settled.get(name) or guess_kind(table[name], self.decimal) for name in names}
        found = self._read(table, kinds, UnreadValues())
        # Features count flags as 1 and 0; people who read about groups want them as they were.
        flags = [name for name, kind in kinds.items() if kind == "flag"]
        return found.assign(**{name: found[name].map({1.0: "True", 0.0: "False"}) for name in flags})

    def times_of(self, table: pd.DataFrame) -> "pd.Series[Any] | None":
        """When each row was observed; every row needs a time to be before or after the others."""
        for name, kind in self.time.items():
            values, unread = read_as(table[name], kind, self.decimal)
            gaps = int(values.isna().sum())
            if gaps:
                such = f", such as {quoted(unread.iloc[0], 30)}" if len(unread) else ""
                raise InputError(
                    f"The column {quoted(name)}, which says when rows were observed, has no readable value in {gaps:,} "
                    f"row{'s' * (gaps > 1)}{such}: every row needs a time."
                )
            return values
        return None

    def weights_of(self, table: pd.DataFrame) -> "pd.Series[Any] | None":
        """What each row counts; every row needs a number from 0 on."""
        if self.weight is None:
            return None
        values, _ = read_as(table[self.weight], "number", self.decimal)
        if not ((values >= 0) & (values < np.inf)).all():  # Written so that a gap fails, too.
            raise InputError(
                f"The column {quoted(self.weight)}, which says how much rows count, needs a number from 0 on in every "
                "row."
            )
        return values

    def _read(self, table: pd.DataFrame, kinds: Mapping[str, str], unread: UnreadValues) -> pd.DataFrame:
        parts = {}
        for name, kind in kinds.items():
            values, strange = read_as(table[name], kind, self.decimal)
            # Words that were gaps in training still are, however many of them a file has.
            strange = strange[~strange.isin(self.gap_words.get(name, ()))] if len(strange) else strange
            unread.add(name, kind, int(values.notna().sum()) + len(strange), strange)
            parts[name] = values
        return pd.DataFrame(parts, index=table.index)

    def stored(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return rows as a typed file is to hold them.

        Whole numbers are whole, whatever they are for. Other numbers are floats if they are features or sensitive; all
        other text stays as it is.
        """
        kinds = {**self.columns, **self.protected, **self.sensitive, **self.time}
        kinds |= {} if self.weight is None else {self.weight: "number"}
        parts = {}
        for name, column in table.items():
            number = kinds.get(str(name)) == "number"
            parts[name] = column
            if typed_kind(column) is None:
                words = self.gap_words.get(str(name), ())
                whole = whole_numbers(with_gaps(column.where(~column.isin(words))) if number else column)
                if whole is not None:
                    parts[name] = whole
                elif number:
                    parts[name] = read_as(column, "number", self.decimal).values
        return pd.DataFrame(parts, index=table.index)


def persons_of(table: pd.DataFrame, name: str) -> "pd.Series[Any]":
    """Identifier of each row's person, by its words: 7 and 7.0 are the same person in a text and in a typed file."""
    return as_categories(with_gaps(table[name]))


def _kind_of_time(column: "pd.Series[Any]", decimal: str) -> str:
    kind = guess_kind(column, decimal)
    if kind in ("category", "flag"):
        raise InputError(
            f"The column {quoted(column.name)}, which says when rows were observed, holds neither dates nor numbers."
        )
    return kind


def _kinds_of_incumbent(table: pd.DataFrame, score: str | None, decision: str | None, decimal: str) -> dict[str, str]:
    """Kinds of the columns of a score, which is a number, and of a decision, which is a label."""
    found: dict[str, str] = {}
    if decision is not None:
        found[decision] = "flag" if guess_kind(table[decision], decimal) == "flag" else "category"
    if score is not None:
        if score == decision:
            raise InputError(f"The column {quoted(score)} is either a score or a decision: name it once.")
        _, unread = read_as(table[score], "number", decimal)
        if len(unread):
            raise InputError(f"The column {quoted(score)} holds {quoted(unread.iloc[0], 30)}: a score is a number.")
        found = {score: "number", **found}
    return found


def check_columns(there: Iterable[str], names: Iterable[str], what: str = "") -> None:
    """Refuse names that a table does not have, with the most similar ones that it has."""
    there = list(there)
    missing = [name for name in names if name not in there]
    if missing:
        like = get_close_matches(missing[0], there, n=1)
        hint = f"did you mean {quoted(like[0])}?" if like else f"its columns are {named(there)}."
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        role = f", {what}" if what else ""
        raise InputError(f"The table has no column {quoted(missing[0])}{more}{role}; {hint}")
