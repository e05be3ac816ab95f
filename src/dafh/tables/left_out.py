"""Why a column is left out of training: it says nothing, or it says which row or person it is."""

import re

import numpy as np
import pandas as pd

# Text with so many different values is a name, a number plate, a sentence: nothing to learn from, and often personal.
_UNIQUE_SHARE = 0.3
_MANY_VALUES = 200
# Fewer rows than this say little about how often values repeat.
ROWS_TO_JUDGE_BY = 30
# Identifiers have at least so many values for each row; codes of shops and products have fewer.
_SHARED_SHARE = 0.1
SHARED = "an identifier that several rows share"


def nothing_to_learn(column: pd.Series, name: str, kind: str) -> str | None:
    """Why a column is left out of training; None if it is not."""
    known = column.dropna()
    n_values = known.nunique()
    if n_values < 2:
        return "only one value" if len(known) else "no values"
    if len(known) < ROWS_TO_JUDGE_BY:
        return None
    if _is_shared_identifier(known, name, kind):
        return SHARED
    if kind == "number":
        return "a different value in every row" if _counts_rows(known, name) else None
    if kind != "category" or n_values <= _UNIQUE_SHARE * len(known):
        return None
    if n_values == len(known):
        return "a different value in every row"
    return "too many different values" if n_values >= min(_MANY_VALUES, 0.9 * len(known)) else None


def _counts_rows(known: pd.Series, name: str) -> bool:
    """Whether whole numbers only identify the rows: all different, and ascending or called an id."""
    if not known.is_unique or not (known == np.floor(known)).all():
        return False
    words = _words(name)
    called = bool(words) and words[-1] in ("key", "index", "number", "nr", "no")
    return called or _is_called_id(words) or bool(known.is_monotonic_increasing)


def _is_shared_identifier(known: pd.Series, name: str, kind: str) -> bool:
    """Whether a column identifies persons with several rows: called an id, with many values, of which some repeat.

    A model that knows them recognises persons in the test rows, and learns their numbers instead of what they do. Only
    columns that are called an id: whole numbers of a price index repeat as well.
    """
    if not _is_called_id(_words(name)) or kind not in ("number", "category"):
        return False
    whole = kind == "category" or bool((known == np.floor(known)).all())
    n_values = known.nunique()
    # A shop with 40 numbers in 1,000 rows is a category; 200 customers in 1,000 rows are customers.
    return whole and max(ROWS_TO_JUDGE_BY, _SHARED_SHARE * len(known)) <= n_values < len(known)


def _is_called_id(words: list[str]) -> bool:
    """Whether a name is one of customer_id, customerId, Customer ID or id_customer."""
    return bool(words) and ("id" in (words[0], words[-1]) or words[-1] in ("uuid", "guid"))


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]
