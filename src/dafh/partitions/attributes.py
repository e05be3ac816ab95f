"""Groups by the values of sensitive attributes."""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.exceptions import InputError
from dafh.partitions.base import Attributes, Features, Labels, Partition, Weights, choose_columns, require_columns


class _CombinationPartition(Partition):
    """Groups by the combinations of values that some columns of `sensitive_features` take."""

    needs_sensitive_features: ClassVar[bool] = True

    def fit(self, X: Features, y: Labels, sensitive_features: Attributes = None, sample_weight: Weights = None) -> Self:
        """Collect the combinations that occur."""
        table = self._require(sensitive_features)
        names = self._columns(table)
        combinations = table[names].drop_duplicates()
        self.set_groups(names, [combinations[name].to_numpy() for name in names])
        return self

    def set_groups(self, names: list[str], values: list[NDArray[np.generic]]) -> None:
        """Set the attributes, and for each its value in every group."""
        self._names, self._values = names, values
        self.group_names_ = [
            ", ".join(f"{name}={value}" for name, value in zip(self._names, values, strict=True))
            for values in zip(*self._values, strict=True)
        ]

    def assign(self, X: Features, sensitive_features: Attributes = None) -> NDArray[np.intp]:
        """Look up the combination of each row; one that was not seen in training belongs to no group."""
        table = self._require(sensitive_features)
        require_columns(table, self._names)
        return pd.MultiIndex.from_arrays(self._values).get_indexer(pd.MultiIndex.from_frame(table[self._names]))

    def _columns(self, table: pd.DataFrame) -> list[str]:
        """Columns of the table to combine."""
        raise NotImplementedError


class IntersectionPartition(_CombinationPartition):
    """One group for every combination of attribute values seen in training.

    Parameters
    ----------
    attributes : sequence of str, or None, default=None
        Columns of `sensitive_features` to combine; None takes all of them.

    Examples
    --------
    >>> import pandas as pd
    >>> attributes = pd.DataFrame({"sex": ["f", "f", "m"], "born": ["here", "there", "here"]})
    >>> partition = IntersectionPartition().fit(None, None, attributes)
    >>> partition.group_names_
    ['sex=f, born=here', 'sex=f, born=there', 'sex=m, born=here']
    >>> partition.assign(None, pd.DataFrame({"sex": ["m", "m"], "born": ["here", "there"]}))
    array([ 2, -1])
    """

    def __init__(self, attributes: Sequence[str] | None = None) -> None:
        self.attributes = attributes

    def _columns(self, table: pd.DataFrame) -> list[str]:
        return choose_columns(table, self.attributes)


class AttributePartition(_CombinationPartition):
    """One group for every value of one attribute (the paper's *trivial partition*).

    Parameters
    ----------
    attribute : str or None, default=None
        Column of `sensitive_features`; None takes the only one there is.

    Examples
    --------
    >>> import pandas as pd
    >>> attributes = pd.DataFrame({"sex": ["f", "m", "f"]})
    >>> AttributePartition().fit(None, None, attributes).assign(None, attributes)
    array([0, 1, 0])
    """

    def __init__(self, attribute: str | None = None) -> None:
        self.attribute = attribute

    def _columns(self, table: pd.DataFrame) -> list[str]:
        available = list(table.columns)
        if self.attribute is None and len(available) > 1:
            raise InputError(f"Choose the attribute to divide by, AttributePartition(attribute=...), from {available}.")
        return choose_columns(table, None if self.attribute is None else [self.attribute])
