"""How groups and their classifiers are trained."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dafh.exceptions import InputError


def replica_grid(owner: str, n_replicas: int, **choices: float | Sequence[float]) -> dict[str, NDArray[np.float64]]:
    """Spread settings over replicas: every parameter is one number or several, and combinations are cycled.

    The first parameter changes fastest, so that a population smaller than the grid still has all its values.

    Examples
    --------
    >>> replica_grid("X", 4, envy_weight=(0, 1), noise=0.5)
    {'envy_weight': array([0., 1., 0., 1.]), 'noise': array([0.5, 0.5, 0.5, 0.5])}
    """
    grid, stride = {}, 1
    for name, choice in choices.items():
        values = np.atleast_1d(np.asarray(choice, dtype=object))
        if values.ndim != 1 or not len(values) or not all(_is_setting(value) for value in values):
            raise InputError(
                f"The {name!r} parameter of {owner} must be a non-negative number, or a list of such numbers to vary "
                f"over the replicas. Got {choice!r} instead."
            )
        grid[name] = values.astype(np.float64)[np.arange(n_replicas) // stride % len(values)]
        stride *= len(values)
    return grid


def check_hidden(owner: str, name: str, sizes: Any) -> tuple[int, ...]:
    """Validate the widths of hidden layers."""
    sizes = tuple(sizes)
    if not all(isinstance(size, Integral) and not isinstance(size, bool) and int(size) > 0 for size in sizes):
        raise InputError(
            f"The {name!r} parameter of {owner} must be a sequence of positive ints. Got {sizes!r} instead."
        )
    return tuple(int(size) for size in sizes)


def _is_setting(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf
