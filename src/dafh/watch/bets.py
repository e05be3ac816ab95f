"""Labelled rows, and the discordant ones among them as bets on questions."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Labelled rows: who was right on them."""

    group: NDArray[np.intp]
    own_wrong: NDArray[np.bool_]
    pooled_wrong: NDArray[np.bool_]
    positive: NDArray[np.bool_] | None
    parts: NDArray[np.int16]
    """Subgroups of each row, (n, A)."""
    weight: NDArray[np.float64]
    """Relative to the largest that was declared."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.group)

    def take(self, rows: NDArray[Any]) -> "JudgedRows":
        """Return some of the rows."""
        positive = None if self.positive is None else self.positive[rows]
        return JudgedRows(
            self.group[rows],
            self.own_wrong[rows],
            self.pooled_wrong[rows],
            positive,
            self.parts[rows],
            self.weight[rows],
        )


class Ranked(NamedTuple):
    """Discordant rows, sorted by code and then by row, and how many rows of the same code came before each."""

    place: NDArray[np.intp]
    """Place of the row among those that were given."""
    code: NDArray[Any]
    since: NDArray[np.float64]
    """Rows of the code since the discordant one before, this one included."""
    waiting: NDArray[np.float64]
    """Rows of each code after its last discordant one, (C,)."""

    @classmethod
    def of(cls, code: NDArray[Any], discordant: NDArray[np.bool_], n_codes: int) -> "Ranked":
        """Rank rows with codes from 0 to n_codes − 1."""
        order = np.argsort(code, kind="stable")
        total = np.bincount(code, minlength=n_codes)
        sorted_place = np.flatnonzero(discordant[order])
        place = order[sorted_place]
        found = code[place]
        rank = sorted_place + 1 - (np.cumsum(total) - total)[found]
        new = np.ones(len(found), bool)
        new[1:] = found[1:] != found[:-1]
        since = np.where(new, rank, np.diff(rank, prepend=0))
        last = np.zeros(n_codes, np.int64)
        last[found] = rank  # Of several values for a code, the last one stays.
        return cls(place, found, since.astype(np.float64), (total - last).astype(np.float64))


class Bets(NamedTuple):
    """Discordant rows as bets, sorted by question and then by row."""

    question: NDArray[np.intp]
    row: NDArray[np.intp]
    x: NDArray[np.float64]
    """Own loss minus pooled loss, −1 to 1 and never 0."""
    since: NDArray[np.float64]
    """Rows of the question since the bet before, this one included."""
    waiting: NDArray[np.float64]
    """Rows of each question after its last bet, (Q,)."""

    @classmethod
    def joined(cls, parts: "Sequence[Bets]") -> "Bets":
        """Put bets on different questions together."""
        question, row, x, since = (np.concatenate([part[i] for part in parts]) for i in range(4))
        waiting = np.sum([part.waiting for part in parts], axis=0)
        # Short numbers are sorted by their digits, ten times as fast.
        order = np.argsort(question.astype(np.uint16) if len(waiting) <= 2**16 else question, kind="stable")
        return cls(question[order], row[order], x[order], since[order], waiting)

    def after(self, n_rows: int) -> "Bets":
        """Count rows from the first one ever, which is 1, where so many came before."""
        return self._replace(row=self.row + n_rows + 1)

    def by_question(self) -> "Iterator[tuple[int, slice]]":
        """Yield each question with the place of its bets."""
        ends = np.append(np.flatnonzero(np.diff(self.question, prepend=-1)), len(self.question))
        for start, end in itertools.pairwise(ends):
            yield int(self.question[start]), slice(int(start), int(end))
