"""Numbers, dates, flags and gaps: how they are recognised and read, in one place."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dafh.exceptions import InputError
from dafh.text import quoted

MISSING_WORDS = (
    "", "?", "#N/A", "#N/A N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan",
    "null",
)  # fmt: skip
"""What a text file writes for a value that is not known."""


def is_number(cell: str) -> bool:
    """Whether a cell of a text file is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


DATE_FORMATS = ("ISO8601", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
"""How dates are written; a column is one of dates if one of these reads all of it."""
DATE = "date "
"""A kind of column that begins like this goes on with the format of its dates."""
_FLAGS = {"true": 1.0, "false": 0.0}


def with_gaps(column: pd.Series) -> pd.Series:
    """Take the words that stand for an unknown value in a text file for what they mean."""
    if pd.api.types.is_numeric_dtype(column.dtype) or is_date(column):
        return column
    return column.where(~column.isin(MISSING_WORDS))


def guess_kind(column: pd.Series) -> str:
    """Guess the kind of a column, typed by its file or read letter by letter."""
    if is_date(column):
        return DATE + DATE_FORMATS[0]
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
    dates = (DATE + form for form in DATE_FORMATS if _dates(known.head(1000), form).notna().all())
    return next((kind for kind in dates if _dates(known, kind.removeprefix(DATE)).notna().all()), "category")


def as_kind(column: pd.Series, kind: str) -> pd.Series:
    """Take a column for what it is; what cannot be that is refused."""
    known = with_gaps(column)
    if kind == "category":
        return _by_value(known, _category)
    if is_date(known):
        return known.dt.tz_convert("UTC").dt.tz_localize(None) if known.dt.tz is not None else known
    if kind.startswith(DATE):
        known = known.where(~_by_value(known, _is_no_day).eq(True))
        values = _dates(known, kind.removeprefix(DATE))
    elif kind == "flag":
        values = _by_value(known, lambda text: _FLAGS.get(text.lower())).astype(float)
    else:
        values = _numbers(known)
    strange = known[values.isna() & known.notna()]
    if len(strange):
        what = f"{kind.split(' ')[0]}s" + (f" like {date_words(kind)}" if kind.startswith(DATE) else "")
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


def is_date(column: pd.Series) -> bool:
    """Whether a column holds dates already, and not text."""
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


def date_words(kind: str) -> str:
    """Say how the dates of a column are written."""
    words = {"%Y": "year", "%m": "month", "%d": "day"}
    form = kind.removeprefix(DATE)
    for code, word in words.items():
        form = form.replace(code, word)
    return "year-month-day" if form == DATE_FORMATS[0] else form
