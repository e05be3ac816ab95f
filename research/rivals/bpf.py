"""Blind Pareto fairness (Martinez et al., ICML 2021)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from dafh.exceptions import InputError
from research.rivals.training import Floats, RivalClassifier, TrainingRows, Weighting, train


@dataclass(eq=False, repr=False)
class BlindParetoClassifier(RivalClassifier):
    """Classifier for the worst rows that make up a given share, without giving up on the others for nothing.

    Row weights lie between `floor` and 1, and their mean is `alpha`. The model minimises the weighted loss, and the
    weights maximise it. A floor above zero makes the solution Pareto-optimal: nobody loses where nobody gains.

    Parameters
    ----------
    alpha : float, default=0.8
        Share of the smallest group to protect; 1 is plain training. With labels that the columns do not determine,
        there is a share below which the answer is one half for everybody, as the authors prove.
    floor : float, default=0.01
        Smallest weight of a row, where 1 is the largest; at most `alpha`.

    Attributes
    ----------
    gap_ : float
        What the worst weights for the losses at the end would add to the weighted loss; 0 is a saddle point.
    """

    # The authors show a range of sizes; they fix the floor.
    RANGES: ClassVar[Mapping[str, tuple[float, ...]]] = {"alpha": (0.2, 0.4, 0.6, 0.7, 0.8, 0.9)}

    alpha: float = 0.8
    floor: float = field(default=0.01, kw_only=True)

    def _train(self, rows: TrainingRows) -> Floats:
        if self.floor > self.alpha:
            raise InputError(
                f"A floor of {self.floor:g} is above the mean weight, alpha = {self.alpha:g}: choose a smaller floor."
            )
        weighting = CappedWeights(rows.share, self.alpha, self.floor)
        theta = train(rows, weighting, self.l2)
        self.gap_ = weighting.gap
        return theta


class CappedWeights(Weighting):
    """Row weights between a floor and 1 with a given mean, which move towards rows with high losses.

    The model minimises the largest weighted loss less the squared distance from the weights of the last round:
    its gradient is that of weights after one projected step, and unlike the largest loss itself it has no kinks, at
    which L-BFGS would get stuck. When the weights come to rest, both are the same.
    """

    # Short rounds and long steps: on Adult, rounds to convergence with a step of 5 took six times as long.
    rounds, round_iter = 40, 30
    _STEP, _ENOUGH = 20.0, 1e-4

    def __init__(self, share: Floats, alpha: float, floor: float) -> None:
        super().__init__(share)
        self._alpha, self._floor = alpha, floor
        self.row_weights = np.full(len(share), alpha)
        self.gap = np.inf

    def worst(self, losses: Floats) -> tuple[float, Floats]:
        """Weighted loss after a projected step, less half the squared distance over its size, and the weights."""
        moved = self._stepped(losses)
        step = moved - self.row_weights
        value = self.share @ (moved * losses - step * step / (2 * self._STEP))
        return float(value) / self._alpha, self.share * moved / self._alpha

    def move(self, losses: Floats) -> bool:
        """Take a projected step, and say whether the best weights are no better."""
        self.row_weights = self._stepped(losses)
        best = worst_weights(losses, self.share, self._alpha, self._floor)
        self.gap = float(self.share @ ((best - self.row_weights) * losses)) / self._alpha
        return self.gap < self._ENOUGH

    def _stepped(self, losses: Floats) -> Floats:
        return project(self.row_weights + self._STEP * losses, self.share, self._alpha, self._floor)


def project(point: Floats, share: Floats, mean: float, floor: float) -> Floats:
    """Find the nearest weights between a floor and 1 with a given mean, by the shift after which clipping has it.

    Examples
    --------
    >>> project(np.array([0.0, 0.5, 2.0]), np.full(3, 1 / 3), 0.5, 0.1).round(4)
    array([0.1, 0.4, 1. ])
    """

    def excess(shift: float) -> float:
        return float(share @ np.clip(point - shift, floor, 1)) - mean

    lowest, highest = float(point.min()) - 1, float(point.max()) - floor
    if excess(lowest) <= 0:  # A mean of 1, which only weights of 1 have.
        return np.ones(len(point))
    if excess(highest) >= 0:  # A mean at the floor.
        return np.full(len(point), floor)
    shift = brentq(excess, lowest, highest, xtol=1e-15, rtol=8.9e-16)
    return np.clip(point - shift, floor, 1)


def worst_weights(losses: Floats, share: Floats, mean: float, floor: float) -> Floats:
    """Weights between a floor and 1 with a given mean that maximise the weighted loss: rows in order of their losses.

    Examples
    --------
    >>> worst_weights(np.array([0.1, 3.0, 2.0, 0.2]), np.full(4, 0.25), 0.4, 0.0)
    array([0. , 1. , 0.6, 0. ])
    """
    order = np.argsort(-np.asarray(losses), kind="stable")
    sorted_share = share[order]
    # The weight above the floor that remains, once all rows with higher losses have got as much of it as they can.
    remainder = (mean - floor) - (1 - floor) * (np.cumsum(sorted_share) - sorted_share)
    weights = np.empty(len(losses))
    weights[order] = floor + np.clip(remainder / sorted_share, 0, 1 - floor)
    return weights
