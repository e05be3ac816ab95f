"""Groups by rules that the user writes, such as the paper's manual partition."""

from collections.abc import Callable, Mapping
from typing import Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.checks.parameters import RandomState
from dafh.exceptions import InputError
from dafh.partitions.base import NOBODY, Attributes, Features, Labels, Partition, Weights
from dafh.partitions.controls import draw_salt, hashed_group


class RulePartition(Partition):
    """Groups by rules that the user writes.

    Parameters
    ----------
    rules : mapping of str to function
        Name of each group, and a function of `sensitive_features` that returns a boolean for each row. The first rule
        that holds decides.
    rest : {"pooled", "random"}, default="pooled"
        What happens to rows for which no rule holds: the pooled classifier serves them, or they are spread over the
        groups at random, as in the paper's manual partition.
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> attributes = pd.DataFrame({"age": [20, 30, 70]})
    >>> partition = RulePartition({"young": lambda t: t.age < 25, "old": lambda t: t.age > 65})
    >>> partition.fit(np.zeros((3, 1)), None, attributes).assign(np.zeros((3, 1)), attributes)
    array([ 0, -1,  1])
    """

    needs_sensitive_features = True

    def __init__(
        self,
        rules: Mapping[str, Callable[[pd.DataFrame], ArrayLike]],
        *,
        rest: Literal["pooled", "random"] = "pooled",
        random_state: RandomState = None,
    ) -> None:
        self.rules = rules
        self.rest = rest
        self.random_state = random_state

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Check the rules."""
        self._require(sensitive_features)
        if not self.rules or self.rest not in ("pooled", "random"):
            raise InputError("RulePartition needs at least one rule, and rest='pooled' or rest='random'.")
        self._salt = draw_salt(self.random_state)
        self.group_names_ = list(self.rules)
        return self

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Group of the first rule that holds."""
        table = self._require(sensitive_features)
        groups = np.full(len(table), NOBODY, np.intp)
        if self.rest == "random":
            groups = hashed_group(X, self._salt, len(self.rules))
        # The first rule that holds decides, so it is applied last.
        for k, (name, rule) in reversed(list(enumerate(self.rules.items()))):
            holds = np.asarray(rule(table), dtype=bool)
            if holds.shape not in ((len(table),), ()):
                raise InputError(
                    f"The rule {name!r} must return one boolean for each of the {len(table)} rows, "
                    f"and returns an array of shape {holds.shape}."
                )
            groups[holds] = k
        return groups


def paper_manual_partition(*, random_state: RandomState = None) -> RulePartition:
    """Return the paper's manual partition of Arrest.

    Non-white men up to 45 are one group and non-white women from 25 to 45 the other; all other rows are spread over
    both at random.

    Examples
    --------
    >>> list(paper_manual_partition().rules)
    ['non-white men under 45', 'non-white women 25 to 45']
    """
    return RulePartition(_MANUAL_RULES, rest="random", random_state=random_state)


def _young_men(table: pd.DataFrame) -> pd.Series:
    young = table.age_group.isin(["less than 25", "25 - 45"])
    return (table.race_group != "Caucasian") & (table.sex == "Male") & young


def _middle_aged_women(table: pd.DataFrame) -> pd.Series:
    return (table.race_group != "Caucasian") & (table.sex == "Female") & (table.age_group == "25 - 45")


_MANUAL_RULES = {"non-white men under 45": _young_men, "non-white women 25 to 45": _middle_aged_women}
