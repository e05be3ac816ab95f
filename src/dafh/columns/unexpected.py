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
class UnexpectedValues:
    """Counts values that are not of the kind their column had, and categories that were not seen in training.

    A single "unknown" among a million numbers must not stop the scoring of all rows: it counts as a gap, and is
    reported. A column where most values fail is refused. So is a single date in another format (31/12/2020 where
    12/31/2020 is expected), because half of the other dates would then be read with day and month exchanged, unnoticed.

    Unseen categories are served like any other: they have points of their own, and a side in every rule.
    """

    n_values: Counter[str] = field(default_factory=Counter)
    """By column, the number of values; so are the following."""
    unread: Counter[str] = field(default_factory=Counter)
    unseen: Counter[str] = field(default_factory=Counter)
    examples: dict[tuple[str, str], str] = field(default_factory=dict)

    def add_unread(self, name: str, kind: str, n_values: int, unread: "pd.Series[Any]") -> None:
        """Count the values of one column of one piece, and those of them that cannot be read."""
        self.n_values[name] += n_values
        if not len(unread):
            return
        self.unread[name] += len(unread)
        self.examples.setdefault(("unread", name), clipped(unread.iloc[0], 40))
        if kind.startswith(DATE):
            dates = unread[unread.astype(str).str.contains(r"\d")]
            if len(dates):
                refuse_values(name, kind, dates.iloc[0])
        if self.unread[name] > _MOST_UNREAD * self.n_values[name]:
            refuse_values(name, kind, unread.iloc[0])

    def add_unseen(self, categories: Mapping[str, tuple[int, Any]]) -> None:
        """Count unseen categories of a piece: by column, the number of rows and one of the categories."""
        for name, (n_rows, example) in categories.items():
            self.unseen[name] += n_rows
            self.examples.setdefault(("unseen", name), clipped(example, 40))

    def notes(self, n_rows: int) -> list[str]:
        """Say what counted as a gap, and how many of all rows have unseen categories."""
        unread = [
            f"Column {quoted(name)}: {n:,} of {self.n_values[name]:,} values could not be read, such as "
            f"{self.examples['unread', name]!r}; they count as missing."
            for name, n in self.unread.items()
        ]
        unseen = [
            f"Column {quoted(name)}: {n:,} of {n_rows:,} row{'s have' if n_rows > 1 else ' has'} a category that was "
            f"not seen in training, such as {self.examples['unseen', name]!r}."
            for name, n in self.unseen.items()
        ]
        return unread + unseen
