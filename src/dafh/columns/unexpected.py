"""Values of a later table that training did not have, counted over all pieces of a file for somebody to be told."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from dafh.columns.kinds import DATE, refuse_values
from dafh.text import clipped, quoted

# With more than this share of values that cannot be read, a column is another one than in training.
_MOST_UNREAD = 0.5


@dataclass
class UnreadValues:
    """Counts values that are not of the kind their column had, and refuses a column where they are more than a few.

    A single "unknown" among a million numbers must not stop the scoring of all rows: it counts as a gap, and is
    reported. A column where most values fail is refused. So is a single date in another format (31/12/2020 where
    12/31/2020 is expected), because half of the other dates would then be read with day and month exchanged, unnoticed.
    """

    known: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, kind: str, n_known: int, unread: pd.Series) -> None:
        """Count the values of one column of one piece: rows with a value, and those of them that cannot be read."""
        self.known[name] += n_known
        if not len(unread):
            return
        self.unread[name] += len(unread)
        self.examples.setdefault(name, clipped(unread.iloc[0], 40))
        if kind.startswith(DATE):
            dates = unread[unread.astype(str).str.contains(r"\d")]
            if len(dates):
                refuse_values(name, kind, dates.iloc[0])
        if self.unread[name] > _MOST_UNREAD * self.known[name]:
            refuse_values(name, kind, unread.iloc[0])

    def notes(self) -> list[str]:
        """Say what counted as a gap."""
        return [
            f"Column {quoted(name)}: {n:,} of {self.known[name]:,} values could not be read, such as "
            f"{self.examples[name]!r}; they count as missing."
            for name, n in self.unread.items()
        ]


@dataclass
class UnseenCategories:
    """Counts rows with unseen categories.

    They are served like any other row: an unseen category has points of its own, and a side in every rule. But whoever
    scores a file in which every third job is new should know.
    """

    rows: Counter[str] = field(default_factory=Counter)
    """By column, the number of rows."""
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, found: Mapping[str, tuple[int, Any]]) -> None:
        """Count what was found in a piece: by column, the number of rows and one of the values."""
        for name, (n_rows, example) in found.items():
            self.rows[name] += n_rows
            self.examples.setdefault(name, clipped(example, 40))

    def notes(self, n_rows: int) -> list[str]:
        """Say how many of some rows have categories that were never seen in training."""
        return [
            f"Column {quoted(name)}: {n:,} of {n_rows:,} row{'s have' if n_rows > 1 else ' has'} a category that was "
            f"not seen in training, such as {self.examples[name]!r}."
            for name, n in self.rows.items()
        ]
