"""Partitions without anything to learn: everybody, at random, by a rule."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.exceptions import InputError
from dafh.partitions.base import NOBODY, Partition


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
        return hashed_group(X, self._salt, self.n_groups)


class RulePartition(Partition):
    """Groups by rules that somebody wrote down.

    Parameters
    ----------
    rules : mapping of str to function
        Name of each group, and a function of `sensitive_features` that gives a boolean per row. The first rule that
        holds decides.
    rest : {"pooled", "random"}, default="pooled"
        Rows that no rule holds for: served by the pooled classifier, or spread over the groups at random, as in the
        paper's manual partition.
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> people = pd.DataFrame({"age": [20, 30, 70]})
    >>> partition = RulePartition({"young": lambda t: t.age < 25, "old": lambda t: t.age > 65})
    >>> partition.fit(np.zeros((3, 1)), None, people).assign(np.zeros((3, 1)), people)
    array([ 0, -1,  1])
    """

    needs_sensitive_features = True

    def __init__(
        self,
        rules: Mapping[str, Callable[[pd.DataFrame], Any]],
        *,
        rest: Literal["pooled", "random"] = "pooled",
        random_state: Any = None,
    ) -> None:
        self.rules = rules
        self.rest = rest
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Check the rules."""
        self._require(sensitive_features)
        if not self.rules or self.rest not in ("pooled", "random"):
            raise InputError("RulePartition needs at least one rule, and rest='pooled' or rest='random'.")
        self._salt = draw_salt(self.random_state)
        self.group_names_ = list(self.rules)
        return self

    def assign(self, X: Any, sensitive_features: Any = None) -> NDArray[np.intp]:
        """Group of the first rule that holds."""
        table = self._require(sensitive_features)
        groups = np.full(len(table), NOBODY, np.intp)
        if self.rest == "random":
            groups = hashed_group(X, self._salt, len(self.rules))
        for k, rule in reversed(list(enumerate(self.rules.values()))):
            groups[np.asarray(rule(table), dtype=bool)] = k
        return groups


def paper_manual_partition(*, random_state: Any = None) -> RulePartition:
    """Return the paper's manual partition of Arrest.

    Non-white men under 45 are one group, non-white women from 25 to 45 the other, and the rest is spread over both.
    """
    return RulePartition(_MANUAL_RULES, rest="random", random_state=random_state)


def _young_men(table: pd.DataFrame) -> pd.Series:
    young = table.age_group.isin(["less than 25", "25 - 45"])
    return (table.race_group != "Caucasian") & (table.sex == "Male") & young


def _middle_aged_women(table: pd.DataFrame) -> pd.Series:
    return (table.race_group != "Caucasian") & (table.sex == "Female") & (table.age_group == "25 - 45")


_MANUAL_RULES = {"non-white men under 45": _young_men, "non-white women 25 to 45": _middle_aged_women}


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
