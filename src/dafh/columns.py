"""What the columns of a table are: features, target, sensitive attributes, or nothing to learn from.

The guesses are cautious, and said aloud: what nobody said about a column is in `TableSchema.notes`. A schema is plain
data, so that it can be kept in a model file and read the next table the same way.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh._text import clipped, listed, quoted
from dafh.datafiles import MISSING_WORDS
from dafh.exceptions import InputError

DATE_FORMATS = ("ISO8601", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
"""How dates are written; a column is one of dates if one of these reads all of it."""
_DATE = "date "
"""A kind of column that begins like this goes on with the format of its dates."""
_FLAGS = {"true": 1.0, "false": 0.0}

# Text with so many different values is a name, a number plate, a sentence: nothing to learn from, and often personal.
_UNIQUE_SHARE = 0.3
_MANY_VALUES = 200
# Fewer rows than this say little about how often values repeat.
_ROWS_TO_JUDGE_BY = 30
_MOST_CLASSES = 50
_MOST_NAMES = 6
_MOST_NAMES_IN_NOTES = 40
# Rows that are enough to see that one column tells another, and how well it must do that.
_ROWS_TO_COMPARE = 4000
_TELLS = 0.95


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
            kind = "category" if name in categories else _kind(table[name])
            reason = None if name in categories else _nothing_to_learn(_as_kind(table[name], kind), name, kind)
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
                heading = headings.get(kind) or f"Dates ({_date_words(kind)})"
                sentences.append(f"{heading}: {_named(names, _MOST_NAMES_IN_NOTES)}.")
        if self.sensitive:
            sentences.append(f"Kept out of training, used in the audit: {_named(self.sensitive)}.")
        return sentences

    def _suspicions(self, table: pd.DataFrame) -> list[str]:
        """Features that nearly tell the target, or a sensitive attribute that was to be kept out."""
        rows = table.iloc[:: max(len(table) // _ROWS_TO_COMPARE, 1)]
        if len(rows) < 2 * _ROWS_TO_JUDGE_BY:
            return []
        features = {name: _positions(_as_kind(rows[name], kind)) for name, kind in self.features.items()}
        found = []
        for outcome in (self.target, *self.sensitive):
            told = _positions(with_gaps(rows[outcome]))
            telling = [name for name, values in features.items() if _tells(values, told)]
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
        names += [name for name in self.sensitive if _kind(table[name]) == "number"]
        return table.assign(**{name: _as_kind(table[name], "number") for name in names})

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
    known = with_gaps(table[target]).notna()
    if not known.any():
        raise InputError(f"The target {quoted(target)} has no values.")
    return table[known] if not known.all() else table


def with_gaps(column: pd.Series) -> pd.Series:
    """Take the words that stand for an unknown value in a text file for what they mean."""
    if pd.api.types.is_numeric_dtype(column.dtype) or _is_date(column):
        return column
    return column.where(~column.isin(MISSING_WORDS))


def read_labels(column: pd.Series) -> NDArray[Any]:
    """Take the target of a training table as class labels: whole numbers, flags or text."""
    name, (codes, values) = quoted(column.name), pd.factorize(column)
    if len(values) > _MOST_CLASSES:
        raise InputError(f"The target {name} has {len(values):,} different values; a class label has few.")
    if pd.api.types.is_bool_dtype(column.dtype):
        labels: list[Any] = [bool(value) for value in values]
    else:
        texts = [_label_text(value) for value in values]
        whole = all(_WHOLE.fullmatch(text) for text in texts) and len(set(texts)) == len(texts)  # "1" is not "01".
        labels = [int(text) for text in texts] if whole else [str(value) for value in values]
        if pd.api.types.is_float_dtype(column.dtype) and isinstance(labels[0], str):
            raise InputError(f"The target {name} holds fractions like {texts[0]}; a class label is text or whole.")
    if len(set(labels)) < 2:
        raise InputError(f"The target {name} has one value only ({quoted(values[0])}): there is nothing to learn.")
    kind = object if isinstance(labels[0], str) else bool if isinstance(labels[0], bool) else np.int64
    return np.array(labels, dtype=kind)[codes]


def match_labels(column: pd.Series, classes: NDArray[Any]) -> NDArray[Any]:
    """Take the target of another table as labels that a model knows, whichever type the file forces on them."""
    fold = str.lower if classes.dtype == bool else str
    known = {fold(_label_text(label)): position for position, label in enumerate(classes)}
    known |= {str(label): position for position, label in enumerate(classes)}
    codes, values = pd.factorize(column)
    places = [known.get(str(value), known.get(fold(_label_text(value)), -1)) for value in values]
    if -1 in places:
        strange = values[places.index(-1)]
        raise InputError(
            f"The target {quoted(column.name)} holds {quoted(strange)}, which the model was not fitted with; it "
            f"knows {listed([quoted(label) for label in classes[:5]])}."
        )
    return classes[np.array(places)[codes]]


_WHOLE = re.compile(r"-?\d{1,18}")


def _label_text(value: Any) -> str:
    """Write a label the same way, whether it was read as text, as a whole number or as a fraction."""
    text = str(value)
    if re.fullmatch(r"-?\d{1,18}(\.0*)?", text):
        return str(int(text.split(".")[0]))
    return text


def _positions(column: pd.Series) -> NDArray[Any]:
    """Number the values of a column in their order; a gap is −1."""
    codes, values = pd.factorize(column)
    ordered = pd.api.types.is_numeric_dtype(column.dtype) or _is_date(column)
    keys = np.asarray(values) if ordered else np.array([str(value) for value in values])
    place = np.append(np.argsort(np.argsort(keys)), -1)
    return place[codes]


def _tells(feature: NDArray[Any], outcome: NDArray[Any]) -> bool:
    """Whether a small tree on one column gets another one right, on rows that did not make the tree."""
    from sklearn.tree import DecisionTreeClassifier

    made, asked = slice(0, None, 2), slice(1, None, 2)
    if len(np.unique(outcome[made])) < 2:
        return False
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(feature[made, None], outcome[made])
    right = (tree.predict(feature[asked, None]) == outcome[asked]).mean()
    usual = np.unique(outcome[asked], return_counts=True)[1].max() / len(outcome[asked])
    return bool(right >= _TELLS and 1 - right <= 0.2 * (1 - usual))


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


def _kind(column: pd.Series) -> str:
    """Guess the kind of a column, typed by its file or read letter by letter."""
    if _is_date(column):
        return _DATE + DATE_FORMATS[0]
    if pd.api.types.is_bool_dtype(column.dtype):
        return "flag"
    if pd.api.types.is_numeric_dtype(column.dtype):
        return "number"
    known = pd.Series(with_gaps(column).dropna().unique()).astype(str)
    if not len(known):
        return "category"
    if _numbers(known).notna().all():
        return "number"
    if known.str.lower().isin(list(_FLAGS)).all():
        return "flag"
    dates = (_DATE + form for form in DATE_FORMATS if _dates(known.head(1000), form).notna().all())
    return next((kind for kind in dates if _dates(known, kind.removeprefix(_DATE)).notna().all()), "category")


def _as_kind(column: pd.Series, kind: str) -> pd.Series:
    """Take a column for what it is; what cannot be that is refused."""
    known = with_gaps(column)
    if kind == "category":
        return _by_value(known, _category)
    if _is_date(known):
        return known.dt.tz_convert("UTC").dt.tz_localize(None) if known.dt.tz is not None else known
    if kind.startswith(_DATE):
        known = known.where(~_by_value(known, _is_no_day).eq(True))
        values = _dates(known, kind.removeprefix(_DATE))
    elif kind == "flag":
        values = _by_value(known, lambda text: _FLAGS.get(text.lower())).astype(float)
    else:
        values = _numbers(known)
    strange = known[values.isna() & known.notna()]
    if len(strange):
        what = f"{kind.split(' ')[0]}s" + (f" like {_date_words(kind)}" if kind.startswith(_DATE) else "")
        raise InputError(f"Column {quoted(column.name)} held {what} in fit and holds {quoted(strange.iloc[0])} now.")
    return values


def _by_value(column: pd.Series, function: Callable[[str], Any]) -> pd.Series:
    """Apply a function to the text of every value, once for each different one; a gap stays a gap."""
    codes, values = pd.factorize(column)
    found = np.array([*(function(str(value)) for value in values), np.nan], dtype=object)
    return pd.Series(found[codes], column.index, name=column.name, dtype=object)


def _category(text: str) -> str:
    """Name a category: a code is the same with the ".0" that a gap in its column brings; "01" is not "1"."""
    return text.split(".")[0] if re.fullmatch(r"-?\d+\.0+", text) else text


def _is_no_day(text: str) -> bool:
    """Whether a date is one that only fills its place: 0000-00-00."""
    return not set(text) - set("0-/.: T")


def _is_date(column: pd.Series) -> bool:
    return pd.api.types.is_datetime64_any_dtype(column.dtype)


def _numbers(column: pd.Series) -> pd.Series:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.astype(float)
    try:
        numbers = pd.to_numeric(column, errors="coerce").astype(float)
        if numbers.isna().equals(column.isna()):
            return numbers
        grouped = column.astype(object).where(column.astype(str).str.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d*)?"))
        return numbers.fillna(pd.to_numeric(grouped.str.replace(",", ""), errors="coerce").astype(float))
    except (OverflowError, TypeError):  # Numbers of hundreds of digits; things that are no text.
        return column.astype(object).map(_number, na_action="ignore").astype(float)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _dates(column: pd.Series, form: str) -> pd.Series:
    """Text as dates; what is none is missing."""
    return pd.to_datetime(_by_value(column, str), errors="coerce", format=form, utc=True).dt.tz_localize(None)


def _date_words(kind: str) -> str:
    words = {"%Y": "year", "%m": "month", "%d": "day"}
    form = kind.removeprefix(_DATE)
    for code, word in words.items():
        form = form.replace(code, word)
    return "year-month-day" if form == DATE_FORMATS[0] else form
