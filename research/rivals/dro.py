"""Distributionally robust optimisation over a chi-square ball (Hashimoto et al., ICML 2018)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from research.rivals.training import Floats, RivalClassifier, TrainingRows, Weighting, train


@dataclass(eq=False, repr=False)
class DROClassifier(RivalClassifier):
    r"""Classifier for the worst group of at least a given size, whichever rows it consists of.

    It minimises the largest mean loss over all reweightings of the rows within a chi-square ball, whose radius is such
    that every group with a share of `alpha` lies inside: the minimum over :math:`\eta` of

    .. math::

        C \sqrt{\operatorname{mean}\,\max(\mathrm{loss} - \eta, 0)^2} + \eta,
        \qquad C = \sqrt{2 (1 / \alpha - 1)^2 + 1}.

    Rows with a loss below :math:`\eta` do not count.

    Parameters
    ----------
    alpha : float, default=0.8
        Share of the smallest group to protect; 1 is the plain mean. The authors set it to 0.2 and do not tune it. With
        labels that the columns do not determine, values up to about a half make the answer one half for everybody:
        some group of that size then has mostly the other label, and no answer serves it better than a coin.
    """

    # The authors fix alpha, and Lahoti et al. tune the threshold eta: alpha is the same dial, as the size of a group.
    RANGES: ClassVar[Mapping[str, tuple[float, ...]]] = {"alpha": (0.2, 0.4, 0.6, 0.7, 0.8, 0.9)}

    alpha: float = 0.8

    def _train(self, rows: TrainingRows) -> Floats:
        return train(rows, ChiSquareBall(rows.share, self.alpha), self.l2)


class ChiSquareBall(Weighting):
    """The worst weights of a chi-square ball."""

    def __init__(self, share: Floats, alpha: float) -> None:
        super().__init__(share)
        self._factor = float(np.sqrt(2 * (1 / alpha - 1) ** 2 + 1))

    def worst(self, losses: Floats) -> tuple[float, Floats]:
        """Risk of the row losses, and what each row counts."""
        return worst_in_ball(losses, self.share, self._factor)


def worst_in_ball(losses: Floats, share: Floats, factor: float) -> tuple[float, Floats]:
    """Minimise ``factor * sqrt(mean(max(loss - eta, 0)**2)) + eta`` over eta: the value, and what each row counts.

    Examples
    --------
    >>> value, weights = worst_in_ball(np.array([0.0, 1.0, 2.0, 3.0]), np.full(4, 0.25), np.sqrt(2))
    >>> round(value, 4), weights.round(4)
    (2.5774, array([0.    , 0.0447, 0.3333, 0.622 ]))
    """
    lowest, highest = float(losses.min()), float(losses.max())
    if factor == 1 or highest - lowest < 1e-12:
        return float(share @ losses), share

    def slope(eta: float) -> float:
        """Minus the derivative by eta, times the root of the mean square: it changes its sign once."""
        excess = np.maximum(losses - eta, 0)
        return factor * float(share @ excess) - float(np.sqrt(share @ (excess * excess)))

    # Below the lowest loss, eta shifts the mean and not the spread: far enough below, the slope is positive.
    spread = float(np.sqrt(share @ (losses - share @ losses) ** 2))
    below = lowest - spread / np.sqrt(factor**2 - 1) - 1e-9
    almost = highest - 1e-9 * (highest - lowest)
    if slope(almost) < 0:
        eta = brentq(slope, below, almost, xtol=1e-15, rtol=1e-15)
        excess = share * np.maximum(losses - eta, 0)
    else:  # The highest losses make up enough rows to be the worst group on their own.
        excess = share * (losses >= highest)
    weights = excess / excess.sum()
    return float(weights @ losses), weights
