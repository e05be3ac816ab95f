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


def criterion(curves: Curves, pr_weight: float) -> NDArray[np.float64]:
    """Value to minimise on the selection rows: Brier score of the routed prediction − pr_weight · Pr without harm.

    Not accuracy or Pr alone: those are counts over few rows, and the largest of many noisy counts is mostly noise.
    Not log-loss: rows near the border of two groups are served by one or the other with confidence, and the unbounded
    price of those few rows would rule out the sharpest, and best, classifiers. A diverged replica counts as infinite.

    Where the groups are hardly more than the predicted label, the group network has become the predictor; such a
    checkpoint has to be clearly better than one with groups of people.
    """
    values = curves["selection_brier"] - pr_weight * curves["selection_pr"]
    values = values + _PRICE_OF_LABEL_LIKE * (curves["selection_label_information"] > LABEL_LIKE)
    return np.where(np.isfinite(values), values, np.inf)


def select(curves: Curves, pr_weight: float) -> Choice:
    """Checkpoint with the smallest criterion; the earliest epoch and first replica win a tie."""
    values = criterion(curves, pr_weight)
    epoch, replica = np.unravel_index(values.argmin(), values.shape)
    return Choice(int(replica), int(epoch))


class Patience:
    """Stop when the best criterion of the whole population has not improved for `n_epochs` epochs."""

    def __init__(self, n_epochs: int, pr_weight: float) -> None:
        self.n_epochs = n_epochs
        self.pr_weight = pr_weight

    def __call__(self, curves: Curves) -> bool:
        """Decide after an epoch."""
        best_of_epoch = criterion(curves, self.pr_weight).min(axis=1)
        return len(best_of_epoch) - 1 - int(best_of_epoch.argmin()) >= self.n_epochs
