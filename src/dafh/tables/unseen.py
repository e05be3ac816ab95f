"""Categories of a later table that training rows did not have: counted, so that somebody can be told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dafh.text import clipped, quoted


@dataclass
class UnseenCategories:
    """Counts rows with unseen categories over all pieces of a file.

    They are served like any other row: an unseen category has points of its own, and a side in every rule. But whoever
    scores a file in which every third job is new should know.
    """

    rows: dict[str, int] = field(default_factory=dict)
    """By column, the number of rows."""
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, found: Mapping[str, tuple[int, Any]]) -> None:
        """Count what was found in a piece: by column, the number of rows and one of the values."""
        for name, (n_rows, example) in found.items():
            self.rows[name] = self.rows.get(name, 0) + n_rows
            self.examples.setdefault(name, clipped(example, 40))

    def notes(self, n_rows: int) -> list[str]:
        """Say how many of some rows have categories that were never seen in training.

        Examples
        --------
        >>> unseen = UnseenCategories()
        >>> unseen.add({"job": (3, "baker")})
        >>> unseen.notes(1000)
        ["Column 'job': 3 of 1,000 rows have a category that was not seen in training, such as 'baker'."]
        """
        return [
            f"Column {quoted(name)}: {n:,} of {n_rows:,} row{'s have' if n_rows > 1 else ' has'} a category that was "
            f"not seen in training, such as {self.examples[name]!r}."
            for name, n in self.rows.items()
        ]
