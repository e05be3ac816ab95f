"""Select the replica and the epoch that become the model."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # Only for the annotations: the rule itself, and its tests, do without JAX.
    from dafh.engine.population import Curves

# Groups are called label-like if their normalised mutual information with the predicted label exceeds this.
LABEL_LIKE = 0.5
# Penalty for label-like groups, in units of the Brier score: worth about two percentage points of accuracy.
_PENALTY_FOR_LABEL_LIKE = 0.02


class Choice(NamedTuple):
    """One checkpoint of one replica; both numbers start at 0."""

    replica: int
    epoch: int


class Selection:
    """The rule that selects replica and epoch, and that ends training.

    A population has F + 1 blocks of S replicas, and every block has the same S starts and settings. In each of the
    first F blocks all replicas hold out one fold; those of the last block train on all rows, and one of them becomes
    the model. Without folds (F = 0) the replicas are evaluated on the rows they were trained on.

    Parameters
    ----------
    n_folds : int
        Number of folds, F.
    pr_weight : float
        Weight of Pr without harm in the criterion.
    patience : int
        Training ends after this many epochs without improvement.
    last : bool
        Train to the end and take the last epoch, as the paper does; only the replica is then selected.
    all_choose : bool
        The rows that choose also judge afterwards: for each fold, the other folds choose.
    """

    def __init__(
        self, n_folds: int, pr_weight: float, patience: int = 0, *, last: bool = False, all_choose: bool = False
    ) -> None:
        self.n_folds = n_folds
        self.pr_weight = pr_weight
        self.patience = patience
        self.last = last
        self.all_choose = all_choose

    def judged(self, curves: "Curves") -> "Curves":
        """Average each curve over the folds, (epochs, S)."""
        return {name: self._blocks(curve)[:, : self.n_folds or 1].mean(axis=1) for name, curve in curves.items()}

    def criterion(self, curves: "Curves") -> NDArray[np.float64]:
        """Return the value to minimise, (epochs, S): Brier score − pr_weight · Pr without harm, on held-out rows.

        Label-like groups cost a penalty, and a diverged replica counts as infinite.
        """
        blocks = self._blocks(self._values(curves))
        # The replica that trained on all rows must not do worse on them than its folds do on rows they never saw: it
        # has then ended in a worse optimum than its folds. So the larger of the two values counts.
        worst = np.maximum(blocks[:, : self.n_folds or 1].mean(axis=1), blocks[:, -1])
        return np.where(np.isfinite(worst), worst, np.inf)

    def _values(self, curves: "Curves") -> NDArray[np.float64]:
        """Return what each replica of each block adds to the criterion, (epochs, blocks · S)."""
        # Neither accuracy nor Pr alone: they are counts over few rows, and the largest of many noisy counts is mostly
        # noise. Nor log-loss: a row near the border of two groups gets a confident prediction from one or the other,
        # and the unbounded loss of those few rows would exclude the sharpest, and best, classifiers.
        values = curves["selection_brier"] - self.pr_weight * curves["selection_pr"]
        # If the groups are little more than the predicted label, the group network has become the predictor. Such a
        # checkpoint must be clearly better than one whose groups mean something else.
        return values + _PENALTY_FOR_LABEL_LIKE * (curves["selection_label_information"] > LABEL_LIKE)

    def choose(self, curves: "Curves") -> Choice:
        """Return the checkpoint with the smallest criterion; ties go to the earliest epoch, then the first replica."""
        return self._smallest(self.criterion(curves))

    def choose_by_block(self, curves: "Curves") -> list[Choice]:
        """Return the checkpoint of each block; the last is that of the model.

        Where the rows of a fold judge as well as choose, the model that holds the fold out is the one that the other
        folds choose: no row then judges what it has chosen. The block that was trained on all rows has no say, because
        it has seen the labels of the fold.
        """
        final = self.choose(curves)
        if not self.all_choose:
            return [final] * (self.n_folds + 1)
        folds = self._blocks(self._values(curves))[:, : self.n_folds]
        others = [np.delete(folds, fold, axis=1).mean(axis=1) for fold in range(self.n_folds)]
        return [*(self._smallest(np.where(np.isfinite(values), values, np.inf)) for values in others), final]

    def _smallest(self, values: NDArray[np.float64]) -> Choice:
        if self.last:
            return Choice(int(values[-1].argmin()), len(values) - 1)
        epoch, replica = np.unravel_index(values.argmin(), values.shape)
        return Choice(int(replica), int(epoch))

    def should_stop(self, curves: "Curves") -> bool:
        """Whether the best criterion in the population has not improved for `patience` epochs."""
        if self.last:
            return False
        best_of_epoch = self.criterion(curves).min(axis=1)
        return len(best_of_epoch) - 1 - int(best_of_epoch.argmin()) >= self.patience

    def epochs_in_use(self, curves: "Curves") -> set[int]:
        """Return the epochs that would be chosen now, for the model or for a fold."""
        return {choice.epoch for choice in self.choose_by_block(curves)}

    def _blocks(self, curve: NDArray[np.float64]) -> NDArray[np.float64]:
        return curve.reshape(len(curve), self.n_folds + 1, -1)
