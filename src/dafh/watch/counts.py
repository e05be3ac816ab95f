"""Labelled rows, counted for all questions together: one pass for each way of dividing the groups.

Questions differ in group, part and loss, but all losses need the same numbers: how many rows of a part have which
label, and who was wrong on them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dafh.evaluation.losses import Loss
from dafh.watch.bets import Bets, JudgedRows, Ranked

# Weights are put together between neighbours of this list, relative to the largest: their ratio is 1.05.
WEIGHT_EDGES = np.concatenate([[0.0], np.geomspace(1e-3, 1 - 1e-9, 142), [1.0]])
N_KINDS = 5
"""Kinds of rows: no difference; own classifier worse on a negative and on a positive row; better on either."""


def relative_stakes(loss: Loss) -> tuple[float, float]:
    """What a wrong decision on a negative and on a positive row costs, relative to the largest loss."""
    if loss.costs is not None:
        return loss.costs.fp / loss.worst, loss.costs.fn / loss.worst
    return 1.0, 1.0  # Rows that do not count are left out by `counted_labels`.


def counted_labels(loss: Loss) -> tuple[bool, bool]:
    """Whether negative rows count for a loss, and whether positive ones do."""
    return loss.name != "fnr", loss.name != "fpr"


class Counted(NamedTuple):
    """What a batch adds to the books."""

    counts: NDArray[np.float64]
    """Rows of each kind and weight, (Q, 5, W)."""
    sums: NDArray[np.float64]
    """Weight, own loss and pooled loss, (Q, 3)."""
    bets: Bets


@dataclass(frozen=True)
class Counter:
    """Counts rows for all questions: groups × parts × losses, in this order."""

    n_groups: int
    n_parts: int
    losses: Sequence[Loss]
    weighted: bool

    @property
    def n_questions(self) -> int:
        """Number of questions."""
        return self.n_groups * self.n_parts * len(self.losses)

    @property
    def n_weights(self) -> int:
        """Number of classes of weights."""
        return len(WEIGHT_EDGES) if self.weighted else 1

    @property
    def n_codes(self) -> int:
        """All parts of all groups; the first code of a group stands for rows of no declared part."""
        return self.n_groups * (self.n_parts + 1)

    def count(self, rows: JudgedRows) -> Counted:
        """Add up rows with a weight above 0, and place bets on the discordant ones."""
        number = np.flatnonzero(rows.weight > 0)
        if len(number) < len(rows):
            rows = rows.take(number)
        outcome = 2 * rows.own_wrong.astype(np.uint8) + rows.pooled_wrong
        if rows.positive is not None:
            outcome += 4 * rows.positive.astype(np.uint8)
        weight_class = np.searchsorted(WEIGHT_EDGES, rows.weight) if self.weighted else 0
        discordant, counted_for = rows.own_wrong != rows.pooled_wrong, list(self._rows_by_label(rows))
        # By group, part, positive label, own and pooled classifier wrong, and class of weights.
        n_rows = np.zeros((self.n_groups, self.n_parts + 1, 2, 2, 2, self.n_weights))
        mass, bets = np.zeros(n_rows.shape[:-1]), []
        for code in self._codes(rows):
            cell = code.astype(np.intp) * 8 + outcome
            if self.weighted:
                mass += np.bincount(cell, rows.weight, mass.size).reshape(mass.shape)
                cell = cell * self.n_weights + weight_class
            n_rows += np.bincount(cell, minlength=n_rows.size).reshape(n_rows.shape)
            del cell  # Eight bytes for every row.
            for some, losses in counted_for:
                ranked = Ranked.of(code[some], discordant[some], self.n_codes)
                place = ranked.place if isinstance(some, slice) else some[ranked.place]
                bets += [self._placed(loss, ranked, rows.take(place), number[place]) for loss in losses]
        mass = mass if self.weighted else n_rows[..., 0]
        return Counted(*self._by_question(n_rows[:, 1:], mass[:, 1:]), Bets.joined(bets))

    def _rows_by_label(self, rows: JudgedRows) -> Iterator[tuple[Any, list[int]]]:
        """Yield rows that count, and the losses that they count for."""
        losses_of: dict[tuple[bool, bool], list[int]] = {}
        for number, loss in enumerate(self.losses):
            losses_of.setdefault(counted_labels(loss), []).append(number)
        for (negative, positive), losses in losses_of.items():
            if negative and positive:
                yield slice(None), losses  # A view: copies would double the memory of an update.
            else:
                assert rows.positive is not None
                yield np.flatnonzero(rows.positive == positive), losses

    def _codes(self, rows: JudgedRows) -> Iterator[NDArray[Any]]:
        """Yield group and part of each row as one number: all rows of a group first, then parts by each attribute."""
        # Short numbers are sorted by their digits, ten times as fast.
        kind = np.uint16 if self.n_codes <= 2**16 else np.intp
        everybody = (rows.group * (self.n_parts + 1) + 1).astype(kind)
        yield everybody
        for column in rows.parts.T:
            # NOT_DECLARED is −1: as a short number it is the largest one, and the sum wraps around to one less.
            yield everybody + column.astype(kind)

    def _placed(self, loss: int, ranked: Ranked, rows: JudgedRows, number: NDArray[np.intp]) -> Bets:
        """Bets of one loss on discordant rows."""
        group, part = np.divmod(np.arange(self.n_codes), self.n_parts + 1)
        question = (group * self.n_parts + part - 1) * len(self.losses) + loss
        declared = (part > 0)[ranked.code]
        on_negative, on_positive = relative_stakes(self.losses[loss])
        stake = on_negative if rows.positive is None else np.where(rows.positive, on_positive, on_negative)
        x = rows.weight * stake * np.where(rows.pooled_wrong, -1.0, 1.0)
        waiting = np.zeros(self.n_questions)
        waiting[question[part > 0]] = ranked.waiting[part > 0]
        return Bets(question[ranked.code][declared], number[declared], x[declared], ranked.since[declared], waiting)

    def _by_question(
        self, n_rows: NDArray[np.float64], mass: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Counts and sums of each loss, from rows by outcome."""
        counts = np.zeros((self.n_groups, self.n_parts, len(self.losses), N_KINDS, self.n_weights))
        sums = np.zeros((*counts.shape[:3], 3))
        for number, loss in enumerate(self.losses):
            for label, (counts_for_it, stake) in enumerate(
                zip(counted_labels(loss), relative_stakes(loss), strict=True)
            ):
                if not counts_for_it:
                    continue
                some, weight = n_rows[:, :, label], mass[:, :, label]
                counts[:, :, number, 0] += some[:, :, 0, 0] + some[:, :, 1, 1]
                counts[:, :, number, 1 + label] = some[:, :, 1, 0]
                counts[:, :, number, 3 + label] = some[:, :, 0, 1]
                sums[:, :, number, 0] += weight.sum(axis=(2, 3))
                sums[:, :, number, 1] += stake * weight[:, :, 1].sum(axis=2)
                sums[:, :, number, 2] += stake * weight[:, :, :, 1].sum(axis=2)
        return counts.reshape(self.n_questions, N_KINDS, -1), sums.reshape(self.n_questions, 3)
