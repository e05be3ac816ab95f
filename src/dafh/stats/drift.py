"""Shares of rows that should be what they were in training: evidence of a change that may be looked at at any time.

The share in training is itself an estimate, from so many rows. So two things must happen before a change is claimed:
the training share is known to lie in an interval (Clopper and Pearson), at one half of the level, and rows since then
are evidence against every share in that interval, at the other half. The evidence against a share p is the capital of
bettors whose bets follow the shares seen so far: a mixture of likelihood ratios over beta distributions around the
training share, an e-process.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, betaln, logsumexp, xlog1py, xlogy

# How much the beta distributions trust the training share, in rows: small ones find large changes first.
_TRUST = np.array([10.0, 100.0, 1000.0, 10_000.0])


def known_share(hits: ArrayLike, n_rows: ArrayLike, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interval for shares of which `hits` of `n_rows` were seen, by Clopper and Pearson; 0 to 1 without rows.

    Examples
    --------
    >>> low, high = known_share([0, 50], [100, 100], level=0.05)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.398]), array([0.036, 0.602]))
    """
    k, n = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(n_rows, np.float64))
    low = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), n - k + 1, level / 2), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1e-9), 1 - level / 2), 1.0)
    return low, high


def drift_evidence(
    hits: ArrayLike,
    n_rows: ArrayLike,
    reference_hits: ArrayLike,
    reference_rows: ArrayLike,
    level: float,
    margin: float = 0.0,
) -> NDArray[np.float64]:
    """Evidence that a share differs from every share that the reference rows allow.

    At all times together, the probability that it reaches 1/a where the share is what it was is at most a + level.

    Parameters
    ----------
    hits, n_rows : numbers or arrays
        Rows since the start that have the property, of how many.
    reference_hits, reference_rows : numbers or arrays
        The same in the reference rows.
    level : float
        Error probability of the interval of the reference share.
    margin : float, default=0
        Change that is tolerated.

    Returns
    -------
    array
        1 where nothing has been seen.

    Examples
    --------
    A share of 10% in 5,000 training rows; then 100 and 150 of 1,000 rows.

    >>> drift_evidence([100, 150], 1000, 500, 5000, level=0.025).round(1)
    array([ 0.5, 72.8])
    """
    k, n, k0, n0 = np.broadcast_arrays(
        *(np.asarray(v, np.float64) for v in (hits, n_rows, reference_hits, reference_rows))
    )
    low, high = known_share(k0, n0, level)
    low, high = np.maximum(low - margin, 0.0), np.minimum(high + margin, 1.0)
    share = np.where(n > 0, k / np.maximum(n, 1.0), low)
    # The likelihood ratio is smallest for the share in the interval that is nearest to the one observed.
    p = np.clip(share, low, high)
    center = (k0 + 0.5) / (n0 + 1.0)
    a, b = center[..., None] * _TRUST, (1 - center[..., None]) * _TRUST
    mixed = betaln(a + k[..., None], b + (n - k)[..., None]) - betaln(a, b)
    log_ratio = logsumexp(mixed - np.log(len(_TRUST)), axis=-1) - xlogy(k, p) - xlog1py(n - k, -p)
    return np.exp(np.clip(log_ratio, -700, 700))
