"""Distributionally robust optimisation over a chi-square ball (Hashimoto et al., ICML 2018)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from research.rivals.training import Floats, Plan, RivalClassifier, TrainingRows, Weighting, train


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

    def _train(self, rows: TrainingRows, plan: Plan, rng: np.random.Generator) -> Floats:
        return train(rows, ChiSquareBall(rows.share, self.alpha), plan, rng)


class WorstCase(NamedTuple):
    """The largest mean loss over a chi-square ball."""

    value: float
    eta: float
    """Rows with a smaller loss do not count."""
    weights: NDArray[np.float64]
    """What each row counts; they sum to 1."""


class ChiSquareBall(Weighting):
    """The worst weights of a chi-square ball."""

    def __init__(self, share: NDArray[np.float64], alpha: float) -> None:
        super().__init__(share)
        self._factor = float(np.sqrt(2 * (1 / alpha - 1) ** 2 + 1))

    def worst(self, losses: Floats) -> tuple[float, NDArray[np.float64]]:
        """Risk of the row losses, and what each row counts."""
        worst = worst_in_ball(losses, self.share, self._factor)
        return worst.value, worst.weights

    def move(self, losses: Floats) -> bool:
        """Find the threshold of the next epoch, and what an excess of 1 over it counts."""
        worst = worst_in_ball(losses, self.share, self._factor)
        excess = self.share * np.maximum(losses - worst.eta, 0)
        self._eta, self._scale = worst.eta, 1 / max(float(excess.sum()), 1e-12)
        return True

    def of_batch(self, rows: NDArray[np.intp], losses: Floats) -> NDArray[np.float64]:
        """Weights by the losses that these rows have now, above the threshold of the epoch."""
        if self._factor == 1:
            return self.share[rows]
        return self.share[rows] * np.maximum(losses - self._eta, 0) * self._scale


def worst_in_ball(losses: Floats, share: NDArray[np.float64], factor: float) -> WorstCase:
    """Minimise ``factor * sqrt(mean(max(loss - eta, 0)**2)) + eta`` over eta, exactly.

    The derivative by eta changes its sign once, so that the losses on either side of the best eta are found in sorted
    order, and eta is then the root of a quadratic equation.

    Examples
    --------
    >>> found = worst_in_ball(np.array([0.0, 1.0, 2.0, 3.0]), np.full(4, 0.25), np.sqrt(2))
    >>> round(found.value, 4), found.weights.round(4)
    (2.5774, array([0.    , 0.0447, 0.3333, 0.622 ]))
    """
    losses = np.asarray(losses, np.float64)
    if factor == 1:
        return WorstCase(float(share @ losses), float("-inf"), share)
    highest = float(losses.max())
    order = np.argsort(-losses)  # In no order among equals: a stable sort takes twice as long.
    gap, sorted_share = highest - losses[order], share[order]
    # Sums over the rows with the highest losses; depth is how far eta lies below the highest loss of all.
    mass, first, second = np.cumsum(sorted_share), np.cumsum(sorted_share * gap), np.cumsum(sorted_share * gap**2)
    depth = np.append(gap[1:], np.inf)
    with np.errstate(invalid="ignore"):
        mean, square = mass * depth - first, mass * depth * depth - 2 * first * depth + second
        last = int(np.argmax((factor * mean >= np.sqrt(np.maximum(square, 0))) & (depth > gap) | np.isinf(depth)))
    spread = max(mass[last] * second[last] - first[last] ** 2, 0.0)
    curvature = factor**2 * mass[last] - 1
    below = first[last] / mass[last] + np.sqrt(spread / curvature) / mass[last] if curvature > 0 else 0.0
    excess = share * np.maximum(losses - (highest - below), 0)
    if excess.sum() <= 1e-300:
        # All losses are the same, or the highest ones make up enough rows to be the worst group on their own.
        excess = share * (losses >= highest)
    weights = excess / excess.sum()
    return WorstCase(float(weights @ losses), highest - below, weights)
