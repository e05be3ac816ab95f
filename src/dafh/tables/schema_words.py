"""What was guessed about the columns of a table, in sentences."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dafh.tables.values import date_words
from dafh.text import clipped, quoted

if TYPE_CHECKING:
    from dafh.tables.schema import TableSchema

_MOST_NAMES = 6
_MOST_NAMES_IN_NOTES = 40


def sentences_of(schema: "TableSchema", said: set[str]) -> list[str]:
    """Say what was guessed about columns, and what roles mean; columns of `said` need no reason to be left out."""
    sentences = []
    guessed = {name: reason for name, reason in schema.left_out.items() if name not in said}
    for reason in dict.fromkeys(guessed.values()):
        names = [name for name, why in guessed.items() if why == reason]
        sentences.append(f"Left out, {reason}: {named(names, _MOST_NAMES_IN_NOTES)}.")
    headings = {"number": "Numbers", "flag": "True or false", "category": "Categories"}
    for kind in dict.fromkeys([*headings, *schema.features.values()]):
        names = [name for name, of_kind in schema.features.items() if of_kind == kind]
        if names:
            heading = headings.get(kind) or f"Dates ({date_words(kind)})"
            sentences.append(f"{heading}: {named(names, _MOST_NAMES_IN_NOTES)}.")
    for name, words in schema.gap_words.items():
        shown = " and ".join(quoted(word, 30) for word in words)
        sentences.append(f"Counted as missing in {clipped(name, 40)}: {shown}.")
    if schema.sensitive:
        sentences.append(f"Kept out of training, used in the audit: {named(list(schema.sensitive))}.")
    if schema.protected:
        sentences.append(f"Kept out of training, shown to the guard: {named(list(schema.protected))}.")
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
            f"The pooled classifier is read from {named(list(schema.pooled))}: tables to be scored need the same."
        )
    if schema.weight is not None:
        sentences.append(f"Kept out of training: {clipped(schema.weight, 40)}, which says how much each row counts.")
    return sentences


def named(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """List of names, cut where it gets long."""
    shown = [clipped(name, 40) for name in names[:most]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
