"""What the columns of a table are: features, target, sensitive attributes, or nothing to learn from.

The guesses are cautious, and said aloud: what nobody said about a column is in `TableSchema.notes`. A schema is plain
data, so that it can be kept in a model file and read the next table the same way.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from dafh.exceptions import InputError
from dafh.tables.leakage import ROWS_TO_COMPARE, positions, predicts
from dafh.tables.values import as_kind, date_words, guess_kind, with_gaps
from dafh.text import clipped, quoted

# Text with so many different values is a name, a number plate, a sentence: nothing to learn from, and often personal.
_UNIQUE_SHARE = 0.3
_MANY_VALUES = 200
# Fewer rows than this say little about how often values repeat.
_ROWS_TO_JUDGE_BY = 30
_MOST_NAMES = 6
_MOST_NAMES_IN_NOTES = 40


@dataclass(frozen=True)
class TableSchema:
    """Which columns are features and of which kind, which is the target, which are kept out of training and why."""

    target: str
    features: dict[str, str]
    """Column and kind: number, flag, category, or date with its format."""
    sensitive: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    """Column and reason."""
    notes: tuple[str, ...] = ()
    """What was guessed, in sentences."""

    @classmethod
    def guess(
        cls,
        table: pd.DataFrame,
        target: str,
        *,
        drop: Iterable[str] = (),
        sensitive: Iterable[str] = (),
        categories: Iterable[str] = (),
    ) -> "TableSchema":
        """Guess what the columns of a table are; what the user says of a column is not guessed.

        Parameters
        ----------
        table : data frame
        target : str
        drop, sensitive, categories : names of columns
            To leave out; to keep out of training and to audit by; to read as categories although they hold numbers.

        Examples
        --------
        >>> table = pd.DataFrame({"id": range(40), "age": [20, 30] * 20, "job": ["cook", "clerk"] * 20})
        >>> schema = TableSchema.guess(table.assign(y=[0, 1] * 20), "y")
        >>> schema.features, schema.left_out
        ({'age': 'number', 'job': 'category'}, {'id': 'every row has a value of its own'})
        """
        drop, sensitive, categories = (tuple(dict.fromkeys(names)) for names in (drop, sensitive, categories))
        check_columns(table.columns, [target], "the target")
        for names in (drop, sensitive, categories):
            check_columns(table.columns, names)
        if target in (*drop, *sensitive):
            raise InputError(f"The target {quoted(target)} cannot also be left out or sensitive.")
        left_out = dict.fromkeys(drop, "as you said")
        features: dict[str, str] = {}
        for name in table.columns:
            if name == target or name in left_out or name in sensitive:
                continue
            kind = "category" if name in categories else guess_kind(table[name])
            reason = None if name in categories else _nothing_to_learn(as_kind(table[name], kind), name, kind)
            if reason is None:
                features[name] = kind
            else:
                left_out[name] = reason
        if not features:
            raise InputError("No column is left to learn from: all are the target, sensitive or left out.")
        schema = cls(target, features, sensitive, left_out)
        return replace(schema, notes=(*schema._sentences(set(drop)), *schema._suspicions(table)))

    def _sentences(self, said: set[str]) -> list[str]:
        sentences = []
        guessed = {name: reason for name, reason in self.left_out.items() if name not in said}
        for reason in dict.fromkeys(guessed.values()):
            names = [name for name, why in guessed.items() if why == reason]
            sentences.append(f"Left out, {reason}: {_named(names, _MOST_NAMES_IN_NOTES)}.")
        headings = {"number": "Numbers", "flag": "True or false", "category": "Categories"}
        for kind in dict.fromkeys([*headings, *self.features.values()]):
            names = [name for name, of_kind in self.features.items() if of_kind == kind]
            if names:
                heading = headings.get(kind) or f"Dates ({date_words(kind)})"
                sentences.append(f"{heading}: {_named(names, _MOST_NAMES_IN_NOTES)}.")
        if self.sensitive:
            sentences.append(f"Kept out of training, used in the audit: {_named(self.sensitive)}.")
        return sentences

    def _suspicions(self, table: pd.DataFrame) -> list[str]:
        """Features that nearly tell the target, or a sensitive attribute that was to be kept out."""
        rows = table.iloc[:: max(len(table) // ROWS_TO_COMPARE, 1)]
        if len(rows) < 2 * _ROWS_TO_JUDGE_BY:
            return []
        features = {name: positions(as_kind(rows[name], kind)) for name, kind in self.features.items()}
        found = []
        for outcome in (self.target, *self.sensitive):
            told = positions(with_gaps(rows[outcome]))
            telling = [name for name, values in features.items() if predicts(values, told)]
            if telling and outcome == self.target:
                found.append(f"Look twice, each alone nearly tells the target: {_named(telling)}. Is it known in time?")
            elif telling:
                found.append(f"Look twice, each alone nearly tells {clipped(outcome, 40)}: {_named(telling)}.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a model file."""
        return {**asdict(self), "sensitive": list(self.sensitive), "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TableSchema":
        """Take what `to_dict` gave."""
        return cls(
            str(values["target"]),
            dict(values["features"]),
            tuple(values["sensitive"]),
            dict(values["left_out"]),
            tuple(values["notes"]),
        )

    @property
    def text_columns(self) -> list[str]:
        """Columns to read letter by letter from a CSV file: what looks like a number may be a category."""
        return [self.target, *(name for name, kind in self.features.items() if kind != "number")]

    def with_numbers(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table that was read letter by letter with those columns as numbers that are numbers to the model.

        Those that are neither feature nor sensitive stay as they are: account numbers, say.
        """
        names = [name for name, kind in self.features.items() if kind == "number"]
        names += [name for name in self.sensitive if guess_kind(table[name]) == "number"]
        return table.assign(**{name: as_kind(table[name], "number") for name in names})

    def features_of(self, table: pd.DataFrame) -> pd.DataFrame:
        """Take the features from a table with columns in any order, as numbers, dates and text."""
        check_columns(table.columns, self.features, "which the model was fitted with")
        parts = {name: as_kind(table[name], kind) for name, kind in self.features.items()}
        return pd.DataFrame(parts, index=table.index)


def check_columns(there: Iterable[str], names: Iterable[str], what: str = "") -> None:
    """Refuse names that a table does not have, with the most similar ones that it has."""
    there = list(there)
    missing = [name for name in names if name not in there]
    if missing:
        like = get_close_matches(missing[0], there, n=1)
        hint = f"did you mean {quoted(like[0])}?" if like else f"its columns are {_named(there)}."
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        role = f", {what}" if what else ""
        raise InputError(f"The table has no column {quoted(missing[0])}{more}{role}; {hint}")


def _named(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """List of names, cut where it gets long."""
    shown = [clipped(name, 40) for name in names[:most]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _nothing_to_learn(column: pd.Series, name: str, kind: str) -> str | None:
    """Why a column is left out of training; None if it is not."""
    known = column.dropna()
    n_values = known.nunique()
    if n_values < 2:
        return "it has one value only" if len(known) else "it is empty"
    if len(known) < _ROWS_TO_JUDGE_BY:
        return None
    if kind == "number":
        return "every row has a value of its own" if _counts_rows(known, name) else None
    if kind != "category" or n_values <= _UNIQUE_SHARE * len(known):
        return None
    if n_values == len(known):
        return "every row has a value of its own"
    return "it has too many different values" if n_values >= min(_MANY_VALUES, 0.9 * len(known)) else None


def _counts_rows(known: pd.Series, name: str) -> bool:
    """Whether whole numbers only number the rows: all different, and in order or called an id."""
    if not known.is_unique or not (known == np.floor(known)).all():
        return False
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)  # customer_id, customerId, Customer ID
    called_id = bool(words) and words[-1].lower() in ("id", "uuid", "key", "index", "number", "nr", "no")
    return called_id or bool(known.is_monotonic_increasing)
