"""Partitions as controls: all rows in one group, and random groups."""

from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from dafh.checks.parameters import RandomState
from dafh.partitions.base import Attributes, Features, Labels, Partition, Weights


class PooledPartition(Partition):
    """All rows in one group, for the pooled classifier and the capacity controls.

    Examples
    --------
    >>> PooledPartition().fit(None, None).assign(np.zeros((3, 1)))
    array([0, 0, 0])
    """

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Name the only group."""
        self.group_names_ = ["everybody"]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Assign all rows to group 0."""
        return np.zeros(len(X), np.intp)


class RandomPartition(Partition):
    """Random groups of about equal size, which show what more parameters alone are worth.

    The group of a row is a hash of its features, so that equal rows are always in the same group.

    Parameters
    ----------
    n_groups : int, default=2
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(1000.0)[:, None]
    >>> partition = RandomPartition(4, random_state=0).fit(X, None)
    >>> np.bincount(partition.assign(X)).min() > 200, (partition.assign(X[:5]) == partition.assign(X)[:5]).all()
    (np.True_, np.True_)
    """

    def __init__(self, n_groups: int = 2, *, random_state: RandomState = None) -> None:
        self.n_groups = n_groups
        self.random_state = random_state

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Draw the salt of the hash."""
        self._check_n_groups(self.n_groups)
        self._salt = draw_salt(self.random_state)
        self.group_names_ = [f"random {k}" for k in range(self.n_groups)]
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Random group of each row, the same in every call."""
        return hashed_group(X, self._salt, self.n_groups_)


def draw_salt(random_state: RandomState) -> int:
    """Draw the number that makes one hash differ from another."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def hashed_group(X: Features, salt: int, n_groups: int) -> NDArray[np.intp]:
    """Group of each row by a hash of its features and the salt."""
    # The hash is one of bits. In single precision, or as −0 instead of 0, equal numbers have different bits, and adding
    # 0 turns −0 into 0.
    values = np.asarray(X, np.float64) + 0.0
    hashes = pd.util.hash_pandas_object(pd.DataFrame(values), index=False)
    # Mixed again (SplitMix64): a salt that is only added would flip the last bit of all hashes or of none, and two
    # groups would stay the same two groups for every salt.
    mixed = hashes.to_numpy() + np.uint64(salt) * np.uint64(0x9E3779B9)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(n_groups)).astype(np.intp)
