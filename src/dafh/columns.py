"""What the columns of a table are: features, target, sensitive attributes, or nothing to learn from.

The guesses are cautious, and said aloud: what nobody said about a column is in `TableSchema.notes`. A schema is plain
data, so that it can be kept in a model file and read the next table the same way.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh._text import clipped, listed, quoted
from dafh.exceptions import InputError

Kind = Literal["number", "date", "category"]

# Text of which nearly every row has its own value is a name, a number plate, a sentence: nothing that repeats.
_UNIQUE_SHARE = 0.9
# Fewer rows than this say little about how often values repeat.
_ROWS_TO_JUDGE_BY = 30
_MOST_CLASSES = 50
_DATE = r"^\d{4}-\d{1,2}-\d{1,2}([T ]\d{1,2}:\d{2}.*)?$|^\d{1,2}[./]\d{1,2}[./]\d{4}$|^\d{4}/\d{1,2}/\d{1,2}$"
_MOST_NAMES = 6


@dataclass(frozen=True)
class TableSchema:
    """Which columns are features and of which kind, which is the target, which are kept out of training and why."""

    target: str
    features: dict[str, Kind]
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
        features: dict[str, Kind] = {}
        for name in table.columns:
            if name == target or name in left_out or name in sensitive:
                continue
            reason = None if name in categories else _nothing_to_learn(table[name], name)
            if reason is None:
                features[name] = "category" if name in categories else _kind(table[name])
            else:
                left_out[name] = reason
        if not features:
            raise InputError("No column is left to learn from: all are the target, sensitive or left out.")
        schema = cls(target, features, sensitive, left_out)
        return replace(schema, notes=tuple(schema._sentences(set(drop))))

    def _sentences(self, said: set[str]) -> list[str]:
        sentences = []
        guessed = {name: reason for name, reason in self.left_out.items() if name not in said}
        for reason in dict.fromkeys(guessed.values()):
            names = [name for name, why in guessed.items() if why == reason]
            sentences.append(f"Left out, {reason}: {_named(names)}.")
        for kind, heading in {"number": "Numbers", "date": "Dates", "category": "Categories"}.items():
            names = [name for name, of_kind in self.features.items() if of_kind == kind]
            if names:
                sentences.append(f"{heading}: {_named(names)}.")
        if self.sensitive:
            sentences.append(f"Kept out of training, used in the audit: {_named(self.sensitive)}.")
        return sentences

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
        """Columns to read as text from a CSV file: what looks like a number in the next file is still a category."""
        return [name for name, kind in self.features.items() if kind != "number"]

    def features_of(self, table: pd.DataFrame) -> pd.DataFrame:
        """Take the features from a table with columns in any order, as numbers, dates and text."""
        check_columns(table.columns, self.features, "which the model was fitted with")
        parts = {name: _as_kind(table[name], kind) for name, kind in self.features.items()}
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


def labelled_rows(table: pd.DataFrame, target: str) -> pd.DataFrame:
    """Rows whose target is known."""
    known = table[target].notna()
    if not known.any():
        raise InputError(f"The target {quoted(target)} has no values.")
    return table[known] if not known.all() else table


def read_labels(column: pd.Series) -> NDArray[Any]:
    """Take the target of a training table as class labels: whole numbers, flags or text."""
    name = quoted(column.name)
    values = column.unique()
    if len(values) < 2:
        raise InputError(f"The target {name} has one value only ({quoted(values[0])}): there is nothing to learn.")
    if len(values) > _MOST_CLASSES:
        raise InputError(f"The target {name} has {len(values):,} different values; a class label has few.")
    if pd.api.types.is_bool_dtype(column.dtype):
        return column.to_numpy(bool)
    if pd.api.types.is_numeric_dtype(column.dtype):
        numbers = column.to_numpy(float)
        if (numbers == np.floor(numbers)).all():
            return numbers.astype(np.int64)
        raise InputError(
            f"The target {name} holds fractions like {values[0]:g}; a class label is a text or whole number."
        )
    return column.map(str).to_numpy(object)


def match_labels(column: pd.Series, classes: NDArray[Any]) -> NDArray[Any]:
    """Take the target of another table as labels that a model knows, whichever type the file forces on them."""
    known = {_label_text(label): position for position, label in enumerate(classes)}
    codes, values = pd.factorize(column)
    places = [known.get(_label_text(value), -1) for value in values]
    if -1 in places:
        strange = values[places.index(-1)]
        raise InputError(
            f"The target {quoted(column.name)} holds {quoted(strange)}, which the model was not fitted with; it "
            f"knows {listed([quoted(label) for label in classes[:5]])}."
        )
    return classes[np.array(places)[codes]]


def _label_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float | np.floating) and value == int(value) else str(value)


def _named(names: Sequence[str]) -> str:
    """List of names, cut where it gets long."""
    shown = [clipped(name, 40) for name in names[:_MOST_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _nothing_to_learn(column: pd.Series, name: str) -> str | None:
    """Why a column is left out of training; None if it is not."""
    known = column.dropna()
    n_values = known.nunique()
    if n_values < 2:
        return "it has one value only" if len(known) == len(column) else "it has no more than one value"
    if len(known) < _ROWS_TO_JUDGE_BY or _kind(column) == "date":
        return None
    if pd.api.types.is_numeric_dtype(column.dtype):
        return "every row has a value of its own" if _counts_rows(known, name) else None
    return "nearly every row has a value of its own" if n_values > _UNIQUE_SHARE * len(known) else None


def _counts_rows(known: pd.Series, name: str) -> bool:
    """Whether whole numbers only number the rows: all different, and in order or called an id."""
    if pd.api.types.is_float_dtype(known.dtype) or not known.is_unique:
        return False
    called_id = name.lower().replace("-", "_").split("_")[-1] in ("id", "uuid", "key", "index", "number", "nr", "no")
    return called_id or bool(known.is_monotonic_increasing)


def _kind(column: pd.Series) -> Kind:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return "date"
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return "number"
    known = column.dropna()
    sample = known.head(1000).astype(str)
    return "date" if len(sample) and sample.str.match(_DATE).all() and _dates(known).notna().all() else "category"


def _as_kind(column: pd.Series, kind: Kind) -> pd.Series:
    if kind == "date":
        return column if pd.api.types.is_datetime64_any_dtype(column.dtype) else _dates(column)
    if kind == "category":
        return column.astype(object)
    if column.dtype == object:  # Flags with gaps; anything else is refused by the encoder, by name.
        return (
            column.map({"True": True, "False": False, True: True, False: False}).astype(float)
            if _flags(column)
            else column
        )
    return column


def _flags(column: pd.Series) -> bool:
    return bool(column.dropna().isin(["True", "False", True, False]).all())


def _dates(column: pd.Series) -> pd.Series:
    """Text as dates; what is none is missing."""
    text = column.astype(str).where(column.notna())
    day_first = bool(text.dropna().head(1000).str.match(r"^\d{1,2}\.").any())  # 24.12.2026 is not written by Americans.
    return pd.to_datetime(text, errors="coerce", format="mixed", dayfirst=day_first, utc=True).dt.tz_localize(None)
