"""Which rows are held out of training, in which fold, and what for."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dafh.classifiers.fitting import FEWEST_ROWS_TO_SPLIT

# Rows held out over all folds that are enough to choose by and to calibrate on; more folds only cost time.
_ENOUGH_ROWS_HELD_OUT = 2000


@dataclass(frozen=True)
class HeldOut:
    """Which rows are held out in which fold, and what for."""

    fold: NDArray[np.int32]
    """Fold of each row; −1 for rows that always train."""
    calibrates: NDArray[np.bool_]
    """Whether a row that is held out judges the guard; the others choose replica and epoch."""
    n_folds: int

    @classmethod
    def none(cls, n_rows: int) -> "HeldOut":
        """Hold nothing out: every row trains, and selects."""
        return cls(np.full(n_rows, -1, np.int32), np.zeros(n_rows, bool), 0)

    @classmethod
    def draw(
        cls,
        label: NDArray[np.intp],
        selection_size: float,
        calibration_size: float,
        n_folds: int | str,
        rng: np.random.Generator,
    ) -> "HeldOut":
        """Hold out a share of the rows in each fold, class by class; a class too rare for that always trains."""
        share = selection_size + calibration_size
        n_rows = len(label)
        if n_rows < FEWEST_ROWS_TO_SPLIT:
            return cls.none(n_rows)
        most = max(int(1 / share + 1e-9), 1)
        if n_folds == "auto":
            n_folds = int(np.ceil(_ENOUGH_ROWS_HELD_OUT / (share * n_rows)))
        n_folds = min(int(n_folds), most)
        drawn = cls.none(n_rows)
        fold, calibrates = drawn.fold, drawn.calibrates
        for rows in shuffled_classes(label, rng):
            if len(rows) * min(share, selection_size) < 1:
                continue
            first = (np.arange(n_folds + 1) * share * len(rows)).astype(int)
            for number in range(n_folds):
                members = rows[first[number] : first[number + 1]]
                fold[members] = number
                calibrates[members[int(np.ceil(len(members) * selection_size / share)) :]] = True
        selected = np.bincount(fold[(fold >= 0) & ~calibrates], minlength=n_folds)
        return cls(fold, calibrates, n_folds) if selected.all() else cls.none(n_rows)

    @property
    def selection(self) -> NDArray[np.intp]:
        """Rows that choose replica and epoch: all, if none is held out."""
        return np.flatnonzero((self.fold >= 0) & ~self.calibrates) if self.n_folds else np.arange(len(self.fold))

    def calibration(self, fold: int) -> NDArray[np.intp]:
        """Rows that judge the guard in one fold."""
        return np.flatnonzero((self.fold == fold) & self.calibrates)


def set_rows_aside(
    label: NDArray[Any], share: float, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to keep for training, and rows to set aside: a simple random sample.

    Not class by class: what is promised for the population holds only if every row has the same chance to be asked, and
    rounding would leave rare classes out. Where too little is left to train on, nothing is set aside.
    """
    order = rng.permutation(len(label))
    n_apart = round(len(label) * share)
    apart, kept = np.sort(order[:n_apart]), np.sort(order[n_apart:])
    if len(np.unique(label[kept])) < 2:
        return np.arange(len(label)), apart[:0]
    return kept, apart


def shuffled_classes(label: NDArray[np.intp], rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Rows of each class, in random order."""
    shuffled = rng.permutation(len(label))
    return [shuffled[label[shuffled] == c] for c in np.unique(label)]
