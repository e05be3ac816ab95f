"""What the bins of a column count for its coefficients: the shapes that points may take.

A smooth basis has, for a column of numbers, one coefficient for the line through the middles of its bins and one for
each step from bin to bin. Steps are small where neighbours are alike, so that a strong penalty leads to a straight line
and not to a constant, and finer bins cost nothing. A plain basis has the line only. Categories have one coefficient
each, and so have gaps.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dafh.tables.bins import Binning
from dafh.tables.column import Column


class Basis(NamedTuple):
    """Tables of a `BinnedDesign`, and the block of each coefficient, by which strengths are chosen."""

    tables: list[NDArray[np.float64]]
    block: NDArray[np.intp]
    """−1 for the intercept."""


def make_basis(binning: Binning, codes: NDArray[Any], weight: NDArray[np.float64], *, smooth: bool) -> Basis:
    """Make the basis for bins that training rows fall into.

    Parameters
    ----------
    binning : Binning
    codes : array of shape (n, d)
        Bins of the training rows.
    weight : array of shape (n,)
    smooth : bool
        Whether a column of numbers has steps beside its line.

    Examples
    --------
    >>> import pandas as pd
    >>> binning = Binning.learn(pd.DataFrame({"age": [20.0, 30.0, 40.0]}))
    >>> basis = make_basis(binning, np.array([[0], [1], [2]]), np.ones(3), smooth=True)
    >>> basis.tables[0].round(2)
    array([[-1.22,  0.  ,  0.  ],
           [ 0.  ,  1.  ,  0.  ],
           [ 1.22,  1.  ,  1.  ],
           [ 0.  ,  0.  ,  0.  ]])
    >>> basis.block
    array([-1,  0,  1,  1])
    """
    tables, block = [], [-1]
    n_blocks = 0
    for position, column in enumerate(binning.columns):
        mass = np.bincount(codes[:, position], weight, column.n_bins).astype(np.float64)
        parts = _parts(column, mass, smooth=smooth)
        for part in parts:
            block += [n_blocks] * part.shape[1]
            n_blocks += 1
        tables.append(np.hstack(parts) if parts else np.zeros((column.n_bins, 0)))
    return Basis(tables, np.array(block, np.intp))


def _parts(column: Column, mass: NDArray[np.float64], *, smooth: bool) -> Sequence[NDArray[np.float64]]:
    """Tables of one column, one for each block of its coefficients."""
    n_bins = column.n_bins
    if column.is_category:
        return [np.eye(n_bins)[:, :-1]]
    parts = []
    if n_bins > 2:
        parts.append(_line(column.centers, mass))
    if smooth and n_bins > 3:  # Two bins differ by one number, and the line has it.
        steps = np.tri(n_bins, n_bins - 2, -1)
        steps[-1] = 0.0  # Gaps lie on neither side of a cut.
        parts.append(steps)
    if column.has_gaps:
        parts.append(np.eye(n_bins)[:, -1:])
    return parts


def _line(centers: Sequence[float], mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Middles of the bins, standardised; gaps are at the mean."""
    values, share = np.array(centers), mass[:-1] / max(mass[:-1].sum(), 1e-300)
    middle = share @ values
    spread = np.sqrt(share @ (values - middle) ** 2)
    return np.append((values - middle) / (spread or 1.0), 0.0)[:, None]
