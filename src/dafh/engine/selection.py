"""Which replica, and which of its epochs, becomes the model."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dafh.engine.population import Curves

# Normalised mutual information of group and predicted label above which the groups are hardly more than the label.
LABEL_LIKE = 0.5
# What such groups cost in the choice, in units of the Brier score: about two points of accuracy.
_PRICE_OF_LABEL_LIKE = 0.02


class Choice(NamedTuple):
    """One checkpoint of one replica; both count from 0."""

    replica: int
    epoch: int


class Selection:
    """The rule by which replica and epoch are chosen, and by which training ends.

    A population holds F + 1 blocks of S replicas, with the same S starts and settings in each. The replicas of the
    first F blocks hold out a fold each; those of the last train on all rows, and one of them becomes the model. Without
    folds (F = 0) the last block is judged by the rows it was trained on.

    Parameters
    ----------
    n_folds : int
        F.
    pr_weight : float
        Weight of Pr without harm in the criterion.
    patience : int
        Epochs without improvement after which training ends.
    """

    def __init__(self, n_folds: int, pr_weight: float, patience: int = 0) -> None:
        self.n_folds = n_folds
        self.pr_weight = pr_weight
        self.patience = patience

    def judged(self, curves: Curves) -> Curves:
        """Average each curve of each start over the folds, (epochs, S)."""
        return {name: self._blocks(curve)[:, : self.n_folds or 1].mean(axis=1) for name, curve in curves.items()}

    def criterion(self, curves: Curves) -> NDArray[np.float64]:
        """Value to minimise, (epochs, S): Brier score of the routed prediction − pr_weight · Pr, on rows held out.

        Not accuracy or Pr alone: those are counts over few rows, and the largest of many noisy counts is mostly noise.
        Not log-loss: rows near the border of two groups are served by one or the other with confidence, and the
        unbounded price of those few rows would rule out the sharpest, and best, classifiers. A diverged replica counts
        as infinite.

        Where the groups are hardly more than the predicted label, the group network has become the predictor; such a
        checkpoint has to be clearly better than one with groups of people.

        A replica that was trained on all rows and serves them worse than its folds serve rows that they never saw has
        gone astray, whatever its folds say: the larger of the two values counts.
        """
        values = curves["selection_brier"] - self.pr_weight * curves["selection_pr"]
        values = values + _PRICE_OF_LABEL_LIKE * (curves["selection_label_information"] > LABEL_LIKE)
        blocks = self._blocks(values)
        worst = np.maximum(blocks[:, : self.n_folds or 1].mean(axis=1), blocks[:, -1])
        return np.where(np.isfinite(worst), worst, np.inf)

    def choose(self, curves: Curves) -> Choice:
        """Checkpoint with the smallest criterion; the earliest epoch and first replica win a tie."""
        values = self.criterion(curves)
        epoch, replica = np.unravel_index(values.argmin(), values.shape)
        return Choice(int(replica), int(epoch))

    def should_stop(self, curves: Curves) -> bool:
        """Whether the best criterion of the whole population has not improved for `patience` epochs."""
        best_of_epoch = self.criterion(curves).min(axis=1)
        return len(best_of_epoch) - 1 - int(best_of_epoch.argmin()) >= self.patience

    def is_newest_best(self, curves: Curves) -> bool:
        """Whether the last epoch is the one to keep."""
        return self.choose(curves).epoch == len(curves["selection_pr"]) - 1

    def _blocks(self, curve: NDArray[np.float64]) -> NDArray[np.float64]:
        return curve.reshape(len(curve), self.n_folds + 1, -1)
