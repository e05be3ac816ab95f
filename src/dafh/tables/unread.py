"""Values of a later table that are not of the kind their column had in training."""

from dataclasses import dataclass, field

import pandas as pd

from dafh.tables.values import DATE, refuse_values
from dafh.text import clipped, quoted

# With more than this share of values that cannot be read, a column is another one than in training.
_MOST_UNREAD = 0.5


@dataclass
class UnreadValues:
    """Counts values that cannot be read, and refuses a column where they are more than a few.

    A single "unknown" among a million numbers must not stop the scoring of all rows: it counts as a gap, and is
    reported. A column where most values fail is refused. So is a single date in another format (31/12/2020 where
    12/31/2020 is expected), because half of the other dates would then be read with day and month exchanged, unnoticed.
    The counts run over all pieces of a file: a small last piece must not be judged by itself.
    """

    known: dict[str, int] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, kind: str, n_known: int, unread: pd.Series) -> None:
        """Count the values of one column of one piece: rows with a value, and those of them that cannot be read."""
        self.known[name] = self.known.get(name, 0) + n_known
        if not len(unread):
            return
        self.unread[name] = self.unread.get(name, 0) + len(unread)
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
