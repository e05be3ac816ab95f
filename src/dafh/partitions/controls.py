"""Partitions that mean nothing, as controls: everybody in one group, and groups by chance."""

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.partitions.base import Partition


class PooledPartition(Partition):
    """Everybody in one group: the base of the pooled classifier and of the capacity controls."""

    def fit(self, X: Any, y: Any, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Name the one group."""
        self.group_names_ = ["everybody"]
        return self

    def assign(self, X: Any, sensitive_features: Any = None) -> NDArray[np.intp]:
        """All rows to group 0."""
        return np.zeros(len(X), np.intp)


class RandomPartition(Partition):
    """Groups of equal size that mean nothing: shows what more parameters alone are worth.

    A row's group is a hash of its features, so that the same row is always in the same group.

    Parameters
    ----------
    n_groups : int, default=2
    random_state : int, RandomState or None, default=None
    """

    def __init__(self, n_groups: int = 2, *, random_state: Any = None) -> None:
        self.n_groups = n_groups
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Draw the hash."""
        self._salt = draw_salt(self.random_state)
        self.group_names_ = [f"random {k}" for k in range(self.n_groups)]
        return self

    def assign(self, X: Any, sensitive_features: Any = None) -> NDArray[np.intp]:
        """Group of each row, by chance but for good."""
        return hashed_group(X, self._salt, self.n_groups_)


def draw_salt(random_state: Any) -> int:
    """Number that makes one hash differ from another."""
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def hashed_group(X: Any, salt: int, n_groups: int) -> NDArray[np.intp]:
    """Group of each row by a hash of its features and the salt."""
    hashes: Any = pd.util.hash_pandas_object(pd.DataFrame(np.asarray(X)), index=False)
    # One more round of mixing (SplitMix64): merely added, a salt would turn all last bits alike, and two groups into
    # the same two groups.
    mixed = hashes.to_numpy() + np.uint64(salt) * np.uint64(0x9E3779B9)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(n_groups)).astype(np.intp)
