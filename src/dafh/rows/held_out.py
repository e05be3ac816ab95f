"""Which rows are held out of training, in which fold, and what for."""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from dafh.classifiers.fitting import FEWEST_ROWS_TO_SPLIT
from dafh.exceptions import InputError

# Rows held out over all folds that are enough to choose by and to calibrate on; more folds only cost time.
_ENOUGH_ROWS_HELD_OUT = 2000
_MOST_FOLDS = 5


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Which rows are held out in which fold, and what for."""

    fold: NDArray[np.int32]
    """Fold of each row; −1 for rows that always train."""
    calibrates: NDArray[np.bool_]
    """Whether a held-out row is for the guard; the others choose replica and epoch."""
    n_folds: int
    all_choose: bool = False
    """Whether the rows for the guard choose as well. What a fold judges is then what the other folds choose."""

    @classmethod
    def none(cls, n_rows: int) -> Self:
        """Hold nothing out: every row trains."""
        return cls(np.full(n_rows, -1, np.int32), np.zeros(n_rows, bool), 0)

    @classmethod
    def draw(
        cls,
        label: NDArray[np.intp],
        selection_size: float,
        calibration_size: float,
        n_folds: int | Literal["auto"],
        rng: np.random.Generator,
        *,
        person: NDArray[np.intp] | None = None,
        time: NDArray[np.float64] | None = None,
    ) -> Self:
        """Hold out a share of the rows in each fold, class by class; the only row of a class always trains.

        Parameters
        ----------
        label : array of shape (n,)
            Position of each row's class.
        selection_size, calibration_size : float
            Shares of the rows that choose the model, and that the guard is calibrated on, in each fold; either may be
            0, and together they must leave rows to train on.
        n_folds : int or "auto"
            No more than the shares allow: a row is held out once at most.
        person : array of shape (n,), optional
            Rows of one person are always held out together, for the same purpose.
        time : array of shape (n,), optional
            There is one fold, and it holds the last rows.
        """
        share = selection_size + calibration_size
        if share >= 1:
            raise InputError(
                f"selection_size ({selection_size:g}) and calibration_size ({calibration_size:g}) leave no rows to "
                "train on: together they must be less than 1."
            )
        if person is not None:
            first, unit = np.unique(person, return_index=True, return_inverse=True)[1:]
            latest = None if time is None else _latest(unit, time)
            drawn = cls.draw(label[first], selection_size, calibration_size, n_folds, rng, time=latest)
            return cls(drawn.fold[unit], drawn.calibrates[unit], drawn.n_folds)
        n_rows = len(label)
        drawn = cls.none(n_rows)
        if n_rows < FEWEST_ROWS_TO_SPLIT or not share:
            return drawn
        fold, calibrates = drawn.fold, drawn.calibrates
        if time is None:
            enough = min(int(np.ceil(_ENOUGH_ROWS_HELD_OUT / (share * n_rows))), _MOST_FOLDS)
            n_drawn = min(enough if n_folds == "auto" else n_folds, int(1 / share + 1e-9))
            # Class by class, so that a rare class is in every fold as often as in the data.
            shuffled = rng.permutation(n_rows)
            classes = [shuffled[label[shuffled] == c] for c in np.unique(label)]
            parts = [rows for rows in classes if len(rows) > 1]
        else:
            n_drawn, last = 1, np.argsort(time, kind="stable")[n_rows - round(n_rows * share) :]
            parts, share = [rng.permutation(last)], 1.0
        for rows in parts:
            first = (np.arange(n_drawn + 1) * share * len(rows) + 1e-9).astype(int)
            # Of the rows held out, the first, third, sixth ... calibrate, say, from a random place on. Rounding in each
            # fold would leave rare classes to selection alone, and then no row could speak for them.
            ahead = rng.random() + np.arange(len(rows) + 1) * calibration_size / (selection_size + calibration_size)
            for number in range(n_drawn):
                fold[rows[first[number] : first[number + 1]]] = number
            calibrates[rows] = np.diff(np.floor(ahead)) > 0
        calibrates &= fold >= 0
        # A fold without any row to choose by cannot judge its models.
        selecting = fold[(fold >= 0) & ~calibrates] if selection_size else fold[fold >= 0]
        return cls(fold, calibrates, n_drawn) if len(np.unique(selecting)) == n_drawn else cls.none(n_rows)

    def shared(self) -> Self:
        """Let every row that is held out choose, and judge what the other folds choose."""
        return replace(self, calibrates=self.fold >= 0, all_choose=True)

    @property
    def selection(self) -> NDArray[np.intp]:
        """Rows that choose replica and epoch; all rows, where none is held out for that."""
        selecting = np.flatnonzero((self.fold >= 0) & (self.all_choose | ~self.calibrates))
        return selecting if len(selecting) else np.arange(len(self.fold))

    def calibration(self, fold: int) -> NDArray[np.intp]:
        """Rows for the guard in one fold."""
        return np.flatnonzero((self.fold == fold) & self.calibrates)


def set_rows_aside(
    label: NDArray[np.intp],
    share: float,
    rng: np.random.Generator,
    *,
    person: NDArray[np.intp] | None = None,
    time: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on, and rows to hold out of everything: a simple random sample, or the last ones where time counts.

    Not class by class: what is promised for the population holds only if every row has the same chance to be in the
    sample, and rounding would leave rare classes out. All rows of a person are on the same side. Where one class only
    would be left to train on, no row is set aside.
    """
    unit = np.arange(len(label)) if person is None else np.unique(person, return_inverse=True)[1]
    n_units = int(unit.max(initial=-1)) + 1
    order = rng.permutation(n_units)
    if time is not None:
        order = np.argsort(-_latest(unit, time), kind="stable")
    is_apart = np.zeros(n_units, bool)
    is_apart[order[: round(n_units * share)]] = True
    apart, kept = np.flatnonzero(is_apart[unit]), np.flatnonzero(~is_apart[unit])
    if len(np.unique(label[kept])) < 2:
        return np.arange(len(label)), apart[:0]
    return kept, apart


def _latest(unit: NDArray[np.intp], time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time of the last row of each unit."""
    latest = np.full(int(unit.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(latest, unit, time)
    return latest
