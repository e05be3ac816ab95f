"""Tests for two classifiers on the same rows."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom


def mcnemar_p(own_worse: ArrayLike, own_better: ArrayLike) -> NDArray[np.float64] | Any:
    """Exact one-sided McNemar test of "the own classifier is not worse than the other".

    Only rows on which exactly one of the two is right say anything. If neither classifier is better, each of those is
    as likely to speak for one as for the other, so ``p = P[Bin(b + c, ½) ≤ c]``.

    Parameters
    ----------
    own_worse : int or array
        b, rows that the own classifier gets wrong and the other right.
    own_better : int or array
        c, rows that the own classifier gets right and the other wrong.

    Returns
    -------
    float or array
        Small where the own classifier is worse; 1 where no row tells them apart.

    Examples
    --------
    >>> float(mcnemar_p(own_worse=5, own_better=0)), float(mcnemar_p(0, 0))
    (0.03125, 1.0)
    """
    own_worse, own_better = np.asarray(own_worse), np.asarray(own_better)
    return binom.cdf(own_better, own_worse + own_better, 0.5)[()]
