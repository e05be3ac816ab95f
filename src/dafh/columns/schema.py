"""What the columns of a table are: features, target, sensitive attributes, or nothing to learn from.

Guesses are cautious, and reported in `TableSchema.notes`. A schema is plain data: a model file keeps it, and the next
table is read the same way.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, cast

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.kinds import (
    Reading,
    as_categories,
    date_words,
    distinct,
    guess_kind,
    is_ordered,
    kind_of,
    read_as,
    typed_kind,
    with_gaps,
)
from dafh.columns.labels import find_labels, read_labels
from dafh.columns.unexpected import UnexpectedValues
from dafh.exceptions import InputError
from dafh.text import clipped, listed, quoted

_DROPPED = "as you said"
SHARED = "an identifier that several rows share"
# Text with so many different values is a name, a number plate, a sentence: nothing to learn from, and often personal.
_UNIQUE_SHARE = 0.3
_MANY_VALUES = 200
# Fewer rows than this say little about how often values repeat.
_ROWS_TO_JUDGE_BY = 30
# Identifiers have at least so many values for each row; codes of shops and products have fewer.
_SHARED_SHARE = 0.1
# Rows that are enough to see leakage: a fit on more would only take longer.
_ROWS_TO_COMPARE = 4000
_LEAST_ACCURACY = 0.95
# Of the errors that the most frequent value makes. Where 96% of the rows have one value, 95% accuracy shows nothing.
_LARGEST_SHARE_OF_ERRORS = 0.2
# Last words of names of columns that hold codes more often than amounts.
_CALLED_CODE = {"code", "codes", "zip", "zipcode", "postcode", "postal", "plz", "category", "type", "class", "region"}
_MOST_NAMES = 6
_MOST_NAMES_IN_NOTES = 40


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
    person: str | None = None
    """Column that says which rows belong to one person."""
    time: dict[str, str] = field(default_factory=dict)
    """Column that says when a row was observed, with its kind; at most one."""
    pooled: dict[str, str] = field(default_factory=dict)
    """Columns that the pooled classifier is read from, with their kind: a score is a number, a decision is not."""
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
        person: str | None = None,
        time: str | None = None,
        pooled: str | None = None,
        weight: str | None = None,
        decimal: str = ".",
    ) -> "TableSchema":
        """Guess what the columns of a table are; what the user says of a column is not guessed.

        Parameters
        ----------
        table : data frame
        target : str
        drop, sensitive, categories : names of columns, one by one or joined by commas
            To leave out; to keep out of training and to audit by; to read as categories although they hold numbers.
        person, time : str, optional
            Columns that say which rows belong to one person, and when a row was observed; kept out of training.
        pooled : str, optional
            Column with the scores or the decisions of a model in use, as the pooled classifier.
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
        drop, sensitive, categories = (split_names(names, table.columns) for names in (drop, sensitive, categories))
        row_columns = [name for name in (person, time, pooled, weight) if name is not None]
        check_columns(table.columns, [target], "the target")
        if pooled is not None:
            check_columns(table.columns, [pooled], "for the pooled classifier (which scorecard and linear do without)")
        check_columns(table.columns, [*drop, *sensitive, *categories, *row_columns])
        if target in (*drop, *sensitive, *row_columns):
            raise InputError(
                f"The target {quoted(target)} cannot have a second role: it cannot be left out, sensitive, a person, a "
                "time, a weight, nor the score or decision of the pooled classifier."
            )
        kept_out = {*sensitive, *row_columns}
        kinds = {
            name: "category" if name in categories else guess_kind(table[name], decimal)
            for name in table.columns
            if name != target and (name not in drop or name in kept_out)
        }
        left_out = dict.fromkeys(drop, _DROPPED)
        features: dict[str, str] = {}
        gap_words: dict[str, list[str]] = {}
        for name, kind in kinds.items():
            if name in kept_out:
                continue
            values, unread = _finite(read_as(table[name], kind, decimal))
            reason = None if name in categories else nothing_to_learn(values, name, kind)
            if reason is not None:
                left_out[name] = reason
                continue
            features[name] = kind
            if len(unread):
                gap_words[name] = sorted({str(value) for value in unread})
        if not features:
            raise InputError("No column is left to learn from: all are the target, kept out of training or left out.")
        if time is not None and not is_ordered(kinds[time]):
            raise InputError(
                f"The column {quoted(time)}, which says when rows were observed, holds neither dates nor numbers."
            )
        schema = cls(
            target,
            features,
            {name: kinds[name] for name in sensitive},
            left_out,
            (),
            decimal,
            gap_words,
            person,
            {} if time is None else {time: kinds[time]},
            {} if pooled is None else {pooled: _incumbent_kind(table[pooled], table[target], decimal)},
            weight,
        )
        codes = [name for name, kind in features.items() if kind == "number" and _may_be_code(table[name], name)]
        return replace(schema, notes=(*_sentences(schema), *_about_codes(codes)))

    def leakage_notes(self, table: pd.DataFrame) -> list[str]:
        """Warn of features that give away the target, or a sensitive attribute that is kept out of training."""
        rows = table.iloc[:: max(len(table) // _ROWS_TO_COMPARE, 1)]
        if len(rows) < 2 * _ROWS_TO_JUDGE_BY:
            return []
        table_of = replace(self, pooled={})  # A score is meant to tell the target.
        features = {str(name): _ranks(values) for name, values in table_of.features_of(rows).items()}
        notes = []
        for outcome in (self.target, *self.sensitive):
            ranks = _ranks(with_gaps(rows[outcome]))
            leaks = [name for name, values in features.items() if predicts(values, ranks)]
            if not leaks:
                continue
            columns = _named(leaks) if len(leaks) == 1 else f"each of {_named(leaks)}"
            if outcome == self.target:
                in_time = f"{'Is it' if len(leaks) == 1 else 'Are they'} available at prediction time?"
                notes.append(f"Possible leakage: {columns} alone predicts the target almost perfectly. {in_time}")
            else:
                notes.append(f"Possible leakage: {columns} alone predicts {clipped(outcome, 40)} almost perfectly.")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a model file."""
        return cast(dict[str, Any], msgspec.to_builtins(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TableSchema":
        """Take what `to_dict` gave; a ValueError says that it is something else."""
        return msgspec.convert(values, cls)

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

    def features_of(self, table: pd.DataFrame, unexpected: UnexpectedValues | None = None) -> pd.DataFrame:
        """Take what a model needs from a table with columns in any order, as numbers, dates and text.

        Parameters
        ----------
        table : data frame
            As a file gives it, typed or read as strings; categories of categorical columns come out as such.
        unexpected : UnexpectedValues, optional
            Counts what cannot be read and becomes a gap; one for all pieces of a file.
        """
        check_columns(table.columns, self.features, "which the model was fitted with")
        check_columns(table.columns, self.pooled, "which its pooled classifier is read from")
        return self._read(table, self.columns, unexpected or UnexpectedValues())

    def attributes_of(self, table: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
        """Take sensitive attributes from a table; kinds that training did not settle are guessed."""
        check_columns(table.columns, names, "to audit by")
        settled = {**self.features, **self.sensitive}
        kinds = {name: settled.get(name) or guess_kind(table[name], self.decimal) for name in names}
        attributes = self._read(table, kinds, UnexpectedValues())
        # Features count flags as 1 and 0; people who read about groups want them as they were.
        flags = [name for name, kind in kinds.items() if kind == "flag"]
        return attributes.assign(**{name: attributes[name].map({1.0: "True", 0.0: "False"}) for name in flags})

    def times_of(self, table: pd.DataFrame) -> "pd.Series[Any] | None":
        """When each row was observed; every row needs a time to be before or after the others."""
        for name, kind in self.time.items():
            values, _ = read_as(table[name], kind, self.decimal)
            gaps = int(values.isna().sum())
            if gaps:
                raise InputError(
                    f"The column {quoted(name)}, which says when rows were observed, has no readable value in {gaps:,} "
                    f"row{'s' * (gaps > 1)}: every row needs a time."
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

    def fit_options(self, table: pd.DataFrame) -> dict[str, "pd.Series[Any]"]:
        """Persons, times and weights of rows, as keyword arguments of `fit`; those that the table has columns for."""
        columns = {
            "persons": None if self.person is None else persons_of(table, self.person),
            "time": self.times_of(table),
            "sample_weight": self.weights_of(table),
        }
        return {name: values for name, values in columns.items() if values is not None}

    def _read(self, table: pd.DataFrame, kinds: Mapping[str, str], unexpected: UnexpectedValues) -> pd.DataFrame:
        columns = {}
        for name, kind in kinds.items():
            columns[name], unread = _finite(read_as(table[name], kind, self.decimal))
            # Words that were gaps in training still are, however many of them a file has.
            unread = unread[~unread.isin(self.gap_words.get(name, ()))] if len(unread) else unread
            unexpected.add_unread(name, kind, int(columns[name].notna().sum()) + len(unread), unread)
        return pd.DataFrame(columns, index=table.index)

    def stored(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return rows as a typed file is to hold them: whole numbers whole, other numbers floats, the rest as it is."""
        kinds = {**self.columns, **self.sensitive, **self.time}
        kinds |= {} if self.weight is None else {self.weight: "number"}
        typed = {}
        for name in [str(name) for name in table if typed_kind(table[name]) is None]:
            values = with_gaps(table[name].where(~table[name].isin(self.gap_words.get(name, ()))))
            whole = _whole_numbers(values if kinds.get(name) == "number" else table[name])
            if whole is not None:
                typed[name] = whole
            elif kinds.get(name) == "number":
                typed[name] = read_as(values, "number", self.decimal).values
        return table.assign(**typed)


def _finite(reading: Reading) -> Reading:
    """Count infinite numbers among what cannot be read: they are mistakes of a division."""
    values, unread = reading
    if values.dtype != np.float64:
        return reading
    infinite = np.isinf(values)
    return (
        Reading(values.mask(infinite), pd.concat([unread, values[infinite].astype(object)]))
        if infinite.any()
        else reading
    )


def persons_of(table: pd.DataFrame, name: str) -> "pd.Series[Any]":
    """Identifier of each row's person, by its words: 7 and 7.0 are the same person in a text and in a typed file."""
    return as_categories(with_gaps(table[name]))


def check_columns(columns: Iterable[str], names: Iterable[str], role: str = "") -> None:
    """Refuse names that a table does not have, with the most similar ones that it has."""
    columns = list(columns)
    missing = [name for name in names if name not in columns]
    if missing:
        like = get_close_matches(missing[0], columns, n=1)
        hint = f"did you mean {quoted(like[0])}?" if like else f"its columns are {_named(columns)}."
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        role = f", {role}" if role else ""
        raise InputError(f"The table has no column {quoted(missing[0])}{more}{role}; {hint}")


def _whole_numbers(column: "pd.Series[Any]") -> "pd.Series[Any] | None":
    """Text as whole numbers, if that loses nothing (``007`` would lose its zeros); None if it does."""
    codes, values = distinct(column)
    if not all(re.fullmatch(r"0|-?[1-9]\d{0,18}", str(value), flags=re.ASCII) for value in values):
        return None
    whole = [int(value) for value in values]
    if not whole or max(map(abs, whole)) >= 2**63:
        return None
    return pd.Series(pd.array([*whole, None], dtype="Int64")[codes], column.index, name=column.name)


def split_names(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Different names of columns, given one by one or joined by commas; a name that itself has a comma is one name.

    Examples
    --------
    >>> split_names(["age,sex", "born, where"], ["age", "sex", "born, where"])
    ['age', 'sex', 'born, where']
    """
    existing = set(columns)
    split = ([entry] if entry in existing else [name.strip() for name in entry.split(",")] for entry in names)
    return [name for name in dict.fromkeys(itertools.chain(*split)) if name]


def _incumbent_kind(column: "pd.Series[Any]", target: "pd.Series[Any]", decimal: str) -> str:
    """Kind of the column of a model in use: decisions are labels of the target, scores numbers from 0 to 1."""
    classes = np.unique(read_labels(target))
    if find_labels(column, classes)[1] is None:
        return "flag" if guess_kind(column, decimal) == "flag" else "category"
    scores, unread = read_as(column, "number", decimal)
    wrong = pd.concat([unread.astype(object), scores[scores.notna() & ~scores.between(0, 1)].astype(object)])
    if len(wrong):
        raise InputError(
            f"The column {quoted(column.name)} holds {quoted(wrong.iloc[0], 30)}: decisions of a model in use are "
            f"labels of the target ({listed([quoted(label) for label in classes[:5]])}), its scores numbers from 0 to "
            "1."
        )
    return "number"


# ---- columns that say nothing ----


def nothing_to_learn(column: "pd.Series[Any]", name: str, kind: str) -> str | None:
    """Why a column is left out of training: it says nothing, or which row or person it is; None if it is kept."""
    values = column.dropna()
    n_values = values.nunique()
    if n_values < 2:
        return "only one value" if len(values) else "no values"
    if len(values) < _ROWS_TO_JUDGE_BY:
        return None
    is_whole = kind == "category" or (kind == "number" and bool((values == np.floor(values)).all()))
    # A model that knows who a person is recognises them in the test rows, and learns numbers instead of what people do.
    # Only columns that are called an id: whole numbers of a price index repeat as well. And a shop with 40 numbers in
    # 1,000 rows is a category; 200 customers in 1,000 rows are customers.
    words = _words(name)
    # customer_id, customerId, Customer ID, id_customer.
    is_called_id = "id" in (*words[:1], *words[-1:]) or words[-1:] in (["uuid"], ["guid"])
    is_shared = max(_ROWS_TO_JUDGE_BY, _SHARED_SHARE * len(values)) <= n_values < len(values)
    if is_whole and is_shared and is_called_id:
        return SHARED
    if n_values == len(values) and is_whole:
        is_called_key = words[-1:] in (["key"], ["index"], ["number"], ["nr"], ["no"])
        # Whole numbers, all different, may be amounts: they only count the rows if they are ascending, or called so.
        if kind == "category" or is_called_id or is_called_key or values.is_monotonic_increasing:
            return "a different value in every row"
    if kind != "category" or n_values <= _UNIQUE_SHARE * len(values):
        return None
    return "too many different values" if n_values >= min(_MANY_VALUES, 0.9 * len(values)) else None


def _may_be_code(column: "pd.Series[Any]", name: str) -> bool:
    """Whether numbers may be codes, of places or kinds, say, whose order means nothing: by their name, or by zeros."""
    if _CALLED_CODE.intersection(_words(name)):
        return True
    return typed_kind(column) is None and bool(column.dropna().astype(str).str.fullmatch(r"\s*0\d+\s*").any())


def _about_codes(names: list[str]) -> list[str]:
    if not names:
        return []
    codes = "These numbers may be codes" if len(names) > 1 else "The numbers of this column may be codes"
    return [f"{codes}: {_named(names)}. If their order means nothing, declare them as categories."]


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


# ---- columns that give another away ----


def _ranks(column: "pd.Series[Any]") -> NDArray[np.intp]:
    """Number the values of a column in their order; a gap is −1."""
    codes, values = distinct(column)
    keys = np.asarray(values) if is_ordered(kind_of(column)) else np.array([str(value) for value in values])
    return np.append(np.argsort(np.argsort(keys)), -1)[codes]


def predicts(feature: NDArray[np.intp], outcome: NDArray[np.intp]) -> bool:
    """Whether a small tree on one column predicts another almost perfectly, on rows that it was not fitted on."""
    from sklearn.tree import DecisionTreeClassifier

    training, test = slice(0, None, 2), slice(1, None, 2)
    if len(np.unique(outcome[training])) < 2:
        return False
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(feature[training, None], outcome[training])
    accuracy = (tree.predict(feature[test, None]) == outcome[test]).mean()
    majority = np.unique(outcome[test], return_counts=True)[1].max() / len(outcome[test])
    return bool(accuracy >= _LEAST_ACCURACY and 1 - accuracy <= _LARGEST_SHARE_OF_ERRORS * (1 - majority))


# ---- in words ----


def _sentences(schema: TableSchema) -> list[str]:
    """Say what was guessed about columns, and what roles mean."""
    sentences = []
    guessed = {name: reason for name, reason in schema.left_out.items() if reason != _DROPPED}
    for reason in dict.fromkeys(guessed.values()):
        names = [name for name, why in guessed.items() if why == reason]
        sentences.append(f"Left out, {reason}: {_named(names, _MOST_NAMES_IN_NOTES)}.")
    headings = {"number": "Numbers", "flag": "True or false", "category": "Categories"}
    for kind in dict.fromkeys([*headings, *schema.features.values()]):
        names = [name for name, of_kind in schema.features.items() if of_kind == kind]
        if names:
            heading = headings.get(kind) or f"Dates ({date_words(kind)})"
            sentences.append(f"{heading}: {_named(names, _MOST_NAMES_IN_NOTES)}.")
    for name, words in schema.gap_words.items():
        sentences.append(f"Counted as missing in {clipped(name, 40)}: {' and '.join(quoted(w, 30) for w in words)}.")
    if schema.sensitive:
        sentences.append(f"Kept out of training, used in the audit: {_named(list(schema.sensitive))}.")
    if schema.person is not None:
        sentences.append(
            f"Kept out of training: {clipped(schema.person, 40)}. Rows that share its value belong to one person and "
            "stay together."
        )
    for name, kind in schema.time.items():
        how = "number" if kind == "number" else date_words(kind)
        sentences.append(f"Kept out of training: {clipped(name, 40)} ({how}). The latest rows are held out.")
    if schema.pooled:
        sentences.append(
            f"The pooled classifier is read from {_named(list(schema.pooled))}: tables to be scored need the same."
        )
    if schema.weight is not None:
        sentences.append(f"Kept out of training: {clipped(schema.weight, 40)}, which says how much each row counts.")
    return sentences


def _named(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """List of names, cut where it gets long."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(clipped(name, 40) for name in names[:most]) + more
