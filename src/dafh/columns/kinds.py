"""Kinds of columns, and values read as one kind: the only place where either is decided.

A column has a kind: ``number``, ``flag``, ``category``, or ``date`` followed by the format of its dates. A typed column
says itself what it holds (`typed_kind`); of text it is guessed (`guess_kind`). `read_as` and `as_kind` then read every
later table in the same way, and `to_floats` turns numbers, flags and dates into floats.
"""

import datetime as dt
import re
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.exceptions import InputError, SuspiciousInputWarning
from dafh.text import clipped, quoted

MISSING_WORDS = frozenset(
    ("", "?", "#N/A", "#N/A N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan",
     "null")
)  # fmt: skip
"""What a text file writes for a value that is not known."""
LARGEST_NUMBER = 1e100
"""Numbers from here on, infinity included, count as missing: their squares no longer fit into a float."""
DATE_FORMATS = ("ISO8601", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
"""How dates are written; a column holds dates if one of these reads all of it. The first also reads 2020/1/31."""
DATE = "date "
"""The kind of a column of dates: this, then their format."""
FLAGS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
# A few words among numbers ("unknown", "refused") are gaps. More of them, or words with digits ("V27", "12 b"), mean
# that the column is not one of numbers: codes of illnesses are nearly all numbers, and must stay categories.
_LEAST_READ = 0.95
_MOST_WORDS = 5
MOST_VALUES = 12
"""Numbers and dates with more values are no categories; to name subgroups, they are cut into quarters."""
# A number that begins with zeros is a code: 00501 is a place.
_CODE = re.compile(r"0\d+", flags=re.ASCII)
# In front of an amount or behind it.
_CURRENCY = r"[$€£¥₹%]"
_DIGIT_FIRST = re.compile(r"\s*\d")


class Reading(NamedTuple):
    """A column read as one kind."""

    values: pd.Series
    unread: pd.Series
    """What is neither a gap nor of this kind; `values` has a gap in its place."""


def is_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell of a text file is a number.

    Narrower than `float`, which also takes ``1_000`` and the digits of other scripts; the same as pandas takes.

    Examples
    --------
    >>> [is_number(cell) for cell in ("1e5", " -.5 ", "1_000", "0x10", "7,5")]
    [True, True, False, False, False]
    >>> is_number("7,5", decimal=",")
    True
    """
    point = re.escape(decimal)
    pattern = rf"\s*[+-]?((\d+({point}\d*)?|{point}\d+)(e[+-]?\d+)?|inf|infinity)\s*"
    return re.fullmatch(pattern, cell, flags=re.ASCII | re.IGNORECASE) is not None


def is_date(column: pd.Series) -> bool:
    """Whether the type of a column is one of dates."""
    return pd.api.types.is_datetime64_any_dtype(column.dtype)


def typed_kind(column: pd.Series) -> str | None:
    """Kind of a column by the type of its values; None for text, which may hold anything."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "category"
    if is_date(column):
        return DATE + DATE_FORMATS[0]
    if pd.api.types.is_bool_dtype(column.dtype):
        return "flag"
    if pd.api.types.is_numeric_dtype(column.dtype):
        return "number"
    if column.dtype != object:
        return None
    # Columns of objects hold whatever a gap, or a file format, forced into them.
    value_type = pd.api.types.infer_dtype(column, skipna=True)
    if value_type in ("integer", "floating", "mixed-integer-float", "decimal"):
        return "number"
    if value_type in ("date", "datetime", "datetime64"):
        return DATE + DATE_FORMATS[0]
    return "flag" if value_type == "boolean" else None


def kind_of(column: pd.Series) -> str:
    """Kind of a column of a data frame: by its type, and text is categories, whatever it looks like."""
    return typed_kind(column) or "category"


def is_ordered(kind: str) -> bool:
    """Whether a kind is that of numbers or dates, and not of flags or categories."""
    return kind == "number" or kind.startswith(DATE)


def with_gaps(column: pd.Series) -> pd.Series:
    """Replace the words that stand for an unknown value in a text file by gaps."""
    if typed_kind(column) not in (None, "category"):
        return column
    codes, values = distinct(column)
    gap = np.array([*(str(value).strip() in MISSING_WORDS for value in values), True])
    return column.where(~gap[codes]) if gap[:-1].any() else column


def guess_kind(column: pd.Series, decimal: str = ".") -> str:
    """Guess the kind of a column, typed by its file or read as strings.

    Examples
    --------
    >>> guess_kind(pd.Series(["7,5", "8", "?"]), decimal=",")
    'number'
    >>> guess_kind(pd.Series(["13.2.2020", "1.3.2020"]))
    'date %d.%m.%Y'
    """
    typed = typed_kind(column)
    if typed is not None:
        return typed
    codes, values = distinct(with_gaps(column))
    texts, counts = _texts(values), np.bincount(codes[codes >= 0], minlength=len(values))
    if not len(texts):
        return "category"
    if _nearly_all(parse_numbers(texts, decimal).notna(), texts, counts):
        return "number"
    if _nearly_all(texts.str.lower().isin(["true", "false"]), texts, counts):
        return "flag"
    days = ~texts.map(_is_no_day).to_numpy(bool)
    texts, counts = texts[days], counts[days]
    # Dates begin with a digit. Without this look, pandas reads "today" as one, and a table of thousands of columns of
    # words takes twice as long to guess.
    if not any(_DIGIT_FIRST.match(text) for text in texts.head(100)):
        return "category"
    for form in DATE_FORMATS:
        if _nearly_all(_parse_dates(texts, form).notna(), texts, counts):
            return DATE + form
    return "category"


def warn_of_numbers_as_text(table: pd.DataFrame) -> None:
    """Warn of text that holds many different numbers or dates: as categories, they say much less than as numbers."""
    names = []
    for position, name in enumerate(table.columns):
        column = table.iloc[:, position]
        # A typed categorical column was declared so.
        if typed_kind(column) is None:
            texts = _texts(distinct(column)[1])
            if len(texts) > MOST_VALUES and is_ordered(guess_kind(texts)) and not texts.str.fullmatch(_CODE).any():
                names.append(str(name))
    if names:
        which = (
            f"Column {quoted(names[0])} holds" if len(names) == 1 else f"Columns {clipped(', '.join(names), 200)} hold"
        )
        warnings.warn(
            f"{which} numbers or dates as text, which are read as categories: convert them (pandas.to_numeric, "
            "pandas.to_datetime), or, if they are codes, to the type category.",
            SuspiciousInputWarning,
            stacklevel=3,
        )


def _nearly_all(read: pd.Series, texts: pd.Series, counts: NDArray[np.intp]) -> bool:
    """Whether all values were read, but for a few words that stand for gaps."""
    unread = texts[~read.to_numpy(bool)]
    if not len(unread):
        return True
    share = counts[read.to_numpy(bool)].sum() / counts.sum()
    return bool(share >= _LEAST_READ and len(unread) <= _MOST_WORDS and not unread.str.contains(r"\d").any())


def read_as(column: pd.Series, kind: str, decimal: str = ".") -> Reading:
    """Read a column as one kind; typed columns are taken as they are where the kinds agree."""
    if kind == "category":
        return Reading(as_categories(with_gaps(column)), column.iloc[:0])
    if kind == "number" and column.dtype == np.float64:
        return Reading(column, column.iloc[:0])  # As it is, and once more for a model that was read from a file.
    if kind.startswith(DATE):
        values = _read_dates(column, kind.removeprefix(DATE))
    elif kind == "flag":
        values = _read_flags(column)
    else:
        values = _read_numbers(column, decimal)
    # No word for a gap reads as a number, a flag or a date: it is enough to look at what could not be read.
    unread = with_gaps(column[values.isna() & column.notna()]).dropna()
    unread = unread.astype(object) if isinstance(unread.dtype, pd.CategoricalDtype) else unread
    if kind.startswith(DATE) and len(unread):
        unread = unread[~unread.map(_is_no_day).astype(bool)]
    return Reading(values, unread)


def as_kind(column: pd.Series, kind: str, decimal: str = ".") -> pd.Series:
    """Read a column as one kind; refuse a column with a value that is not of this kind."""
    values, unread = read_as(column, kind, decimal)
    if len(unread):
        refuse_values(str(column.name), kind, unread.iloc[0])
    return values


def refuse_values(name: str, kind: str, value: object) -> None:
    """Raise the error for a column that no longer holds what it held in training."""
    values = f"{kind.split(' ')[0]}s" + (f" like {date_words(kind)}" if kind.startswith(DATE) else "")
    raise InputError(f"Column {quoted(name)} held {values} in fit and holds {quoted(value)} now.")


def as_categories(column: pd.Series) -> pd.Series:
    """Read every value as the name of a category; only a gap is a gap, whatever the words say."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return _by_value(column, category_name)
    # A categorical column stays one: a million rows hold a handful of categories.
    names = np.array([category_name(value) for value in column.cat.categories], dtype=object)
    name_codes, categories = pd.factorize(names)
    codes = np.append(name_codes, -1)[column.cat.codes]
    return pd.Series(
        pd.Categorical.from_codes(codes, pd.Index(categories, dtype=object)), column.index, name=column.name
    )


def category_codes(column: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    """Position of each row's category among the sorted names of all; a gap is −1."""
    codes, values = distinct(column)
    value_names = [category_name(value) for value in values]
    names = sorted(set(value_names))  # Not by pandas: a handful of names take it longer than the rows.
    position = {name: number for number, name in enumerate(names)}
    return np.array([*(position[name] for name in value_names), -1], np.intp)[codes], names


def category_name(value: object) -> str:
    """Name a category alike whether its file holds text, whole numbers or, for the sake of a gap, fractions.

    Examples
    --------
    >>> [category_name(value) for value in (1, 1.0, "1.0", "01", pd.Timestamp("2020-01-31"))]
    ['1', '1', '1', '01', '2020-01-31']
    """
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return str(value.date())
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value)
    return text.split(".")[0] if re.fullmatch(r"-?\d+\.0+", text) else text


def to_floats(column: pd.Series) -> NDArray[np.float64]:
    """Numbers and flags as floats, dates as days since 1970; gaps, and numbers too large to square, as NaN."""
    kind = typed_kind(column)
    if kind is not None and kind.startswith(DATE):
        # Whoever reads of a date in words expects the day on the calendar of its zone, not that in Greenwich.
        local = column.dt.tz_localize(None) if isinstance(column.dtype, pd.DatetimeTZDtype) else column
        # Whole seconds: they reach farther than the nanoseconds of pandas, and a float holds them exactly.
        seconds = _plain_dates(local).to_numpy("datetime64[s]")
        return np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64) / 86_400)
    numbers = _read_numbers(column, ".").to_numpy(np.float64)
    return np.where(np.abs(numbers) < LARGEST_NUMBER, numbers, np.nan)


def distinct(column: pd.Series) -> tuple[NDArray[np.intp], NDArray[np.object_]]:
    """Number the different values, a gap as −1: a million rows hold a handful of categories, each looked at once."""
    try:
        codes, values = pd.factorize(column)
        return codes, np.asarray(values, dtype=object)
    except (TypeError, NotImplementedError) as error:  # The second is what Arrow raises.
        raise InputError(
            f"Column {quoted(column.name)} holds lists or records: leave it out, or take it apart."
        ) from error


def _texts(values: NDArray[np.object_]) -> pd.Series:
    """Write values as texts; not by NumPy, which reads bytes as letters."""
    return pd.Series([str(value) for value in values], dtype=object)


def _by_value(column: pd.Series, function: Callable[[str], object]) -> pd.Series:
    """Apply a function to every different value; a gap stays a gap."""
    codes, values = distinct(column)
    results = np.empty(len(values) + 1, dtype=object)
    results[:-1] = [function(value) for value in values]
    results[-1] = np.nan  # Code −1 takes the last one.
    return pd.Series(results[codes], column.index, name=column.name, dtype=object)


def _read_numbers(column: pd.Series, decimal: str) -> pd.Series:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.astype(float)
    if is_date(column):
        return pd.Series(np.nan, column.index, name=column.name)
    if column.dtype == object and typed_kind(column) in ("number", "flag"):
        return column.map(float, na_action="ignore").astype(float)
    codes, values = distinct(column)
    numbers = parse_numbers(_texts(values), decimal).to_numpy(np.float64)
    return pd.Series(np.append(numbers, np.nan)[codes], column.index, name=column.name)


def parse_numbers(texts: pd.Series, decimal: str) -> pd.Series:
    """Texts as numbers, NaN where one is none; the other mark may part thousands, in groups of three digits."""
    separator = "," if decimal == "." else "."
    priced = texts.str.contains(_CURRENCY)
    if priced.any():
        texts = texts.mask(
            priced, texts[priced].str.replace(rf"^\s*([+-]?){_CURRENCY}\s*|\s*{_CURRENCY}\s*$", r"\1", regex=True)
        )
    # Most columns have no such groups, and the search for them takes longer than all the rest.
    separated = texts.str.contains(separator, regex=False)
    if separated.any():
        grouped = rf"\s*[+-]?\d{{1,3}}({re.escape(separator)}\d{{3}})+({re.escape(decimal)}\d*)?\s*"
        in_groups = texts[separated].where(texts[separated].str.fullmatch(grouped, flags=re.ASCII), "")
        texts = texts.mask(separated, in_groups.str.replace(separator, "", regex=False))
    if decimal != ".":
        texts = texts.str.replace(decimal, ".", regex=False)
    try:
        return pd.to_numeric(texts, errors="coerce").astype(float)
    except OverflowError:  # Whole numbers of hundreds of digits.
        return texts.map(lambda text: float(text) if is_number(text) else np.nan).astype(float)


def _read_flags(column: pd.Series) -> pd.Series:
    if pd.api.types.is_bool_dtype(column.dtype):
        return column.astype(float)
    return _by_value(column, lambda value: FLAGS.get(str(value).strip().lower())).astype(float)


def _read_dates(column: pd.Series, form: str) -> pd.Series:
    kind = typed_kind(column)
    if kind is not None and kind.startswith(DATE):
        return _plain_dates(column)
    codes, values = distinct(column)
    dates = _parse_dates(_texts(values), form).to_numpy("datetime64[us]")
    return pd.Series(np.append(dates, np.datetime64("NaT"))[codes], column.index, name=column.name)


def _parse_dates(texts: pd.Series, form: str) -> pd.Series:
    """Texts as dates, a gap where one is none."""
    return _plain_dates(pd.to_datetime(texts, errors="coerce", format=form, utc=True))


def _plain_dates(column: pd.Series) -> pd.Series:
    """Dates without a zone, in UTC and in microseconds: files differ in both, and mean the same instant."""
    try:
        if not is_date(column):
            column = pd.to_datetime(column, errors="coerce", utc=True)
        elif not isinstance(column.dtype, np.dtype | pd.DatetimeTZDtype):
            column = pd.Series(pd.DatetimeIndex(column), column.index, name=column.name)  # Types of Arrow.
        if column.dt.tz is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return column.astype("datetime64[us]")
    except (OverflowError, pd.errors.OutOfBoundsDatetime) as error:
        raise InputError(f"Column {quoted(column.name)} holds a date that is too far away to be counted.") from error


def _is_no_day(value: object) -> bool:
    """Whether a date only fills its place: 0000-00-00."""
    return not set(str(value)) - set("0-/.: T")


def date_words(kind: str) -> str:
    """Say how the dates of a column are written."""
    words = {"%Y": "year", "%m": "month", "%d": "day"}
    form = kind.removeprefix(DATE)
    for code, word in words.items():
        form = form.replace(code, word)
    return "year-month-day" if form == DATE_FORMATS[0] else form
