"""The target of a table as class labels, in training and later."""

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.kinds import distinct, is_number, typed_kind, with_gaps
from dafh.exceptions import InputError
from dafh.text import clipped, listed, quoted
from dafh.validation import check_spelling

_MOST_CLASSES = 50


def labelled_rows(table: pd.DataFrame, target: str) -> pd.DataFrame:
    """Rows whose target is known."""
    has_label = with_gaps(table[target]).notna()
    if not has_label.any():
        raise InputError(f"The target {quoted(target)} has no values.")
    return table if has_label.all() else table[has_label]


def no_target(n_rows: int) -> list[str]:
    """Say how many rows were left out because their target is not known, if there are any."""
    return [f"Left out, no target: {n_rows:,} row{'s' * (n_rows > 1)}."] if n_rows else []


def read_labels(column: pd.Series) -> NDArray[Any]:
    """Take the target of a training table as class labels: whole numbers, flags or text."""
    name, (codes, values) = quoted(column.name), distinct(column)
    if len(values) > _MOST_CLASSES:
        raise InputError(f"The target {name} has {len(values):,} different values; class labels are few.")
    if typed_kind(column) == "flag":
        labels: list[Any] = [bool(value) for value in values]
    else:
        texts = [_label_text(value) for value in values]
        is_whole = all(_WHOLE.fullmatch(text) for text in texts) and len(set(texts)) == len(texts)  # "1" is not "01".
        labels = [int(text) for text in texts] if is_whole else [str(value) for value in values]
        fraction = next((text for text in texts if is_number(text) and not float(text).is_integer()), None)
        # The same in a text file, where a number is text, and in a typed one: numbers are measured, labels are given.
        if fraction is not None and all(is_number(text) for text in texts):
            raise InputError(
                f"The target {name} holds fractions like {clipped(fraction, 20)}; class labels are whole numbers or "
                "text."
            )
    if len(set(labels)) < 2:
        raise InputError(f"The target {name} has one value only ({quoted(values[0])}): there is nothing to learn.")
    check_spelling(np.array(labels, dtype=object), f"The target {name}")
    kind = object if isinstance(labels[0], str) else bool if isinstance(labels[0], bool) else np.int64
    return np.array(labels, dtype=kind)[codes]


def match_labels(column: pd.Series, classes: NDArray[Any]) -> NDArray[Any]:
    """Take the target of another table as labels that a model knows, whatever type its file gives them."""
    positions, strange = find_labels(column, classes)
    if strange is not None:
        raise InputError(
            f"The target {quoted(column.name)} holds {quoted(strange)}, which the model was not fitted with; it "
            f"knows {listed([quoted(label) for label in classes[:5]])}."
        )
    return classes[positions]


def find_labels(column: pd.Series, classes: NDArray[Any]) -> tuple[NDArray[np.intp], Any]:
    """Position of each value among some labels, by its words; and the first value that is none of them, or None.

    Examples
    --------
    >>> find_labels(pd.Series([1.0, 0.0]), np.array(["0", "1"]))
    (array([1, 0]), None)
    >>> find_labels(pd.Series(["yes", "maybe"]), np.array(["no", "yes"]))[1]
    'maybe'
    """
    # A flag is "true" in one file, "TRUE" in another and typed in a third; some libraries make it 1.
    flags = {str(label).lower() for label in classes} == {"true", "false"}
    fold = str.lower if flags else str
    position_of = {fold(_label_text(label)): position for position, label in enumerate(classes)}
    position_of |= {str(label): position for position, label in enumerate(classes)}
    codes, values = distinct(column)
    if typed_kind(column) == "flag" and {_label_text(label) for label in classes} == {"0", "1"}:
        values = values.astype(int)
    positions = [position_of.get(str(value), position_of.get(fold(_label_text(value)), -1)) for value in values]
    strange = values[positions.index(-1)] if -1 in positions else None
    return np.array(positions, np.intp)[codes], strange


_WHOLE = re.compile(r"-?\d{1,18}", flags=re.ASCII)


def _label_text(value: object) -> str:
    """Write a label the same way, whether it was read as text, as a whole number or as a fraction."""
    text = str(value)
    if re.fullmatch(r"-?\d{1,18}(\.0*)?", text):
        return str(int(text.split(".")[0]))
    return text
