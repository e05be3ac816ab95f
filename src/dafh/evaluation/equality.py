"""Comparison of records that hold arrays and tables."""

from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd


class EqualByValue:
    """Mixin for data classes: two records are equal if all their fields hold the same values.

    Arrays and tables are compared by content, and NaN equals NaN. The comparison that `dataclass` would generate
    raises as soon as one field is an array, and comparing identities would call a record and its copy read back from
    a file different. Records that are equal by content cannot be hashed, as usual in Python. Declare the class with
    ``@dataclass(frozen=True, eq=False)``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Rates(EqualByValue):
    ...     errors: np.ndarray
    >>> Rates(np.array([0.1, np.nan])) == Rates(np.array([0.1, np.nan]))
    True
    """

    def __eq__(self, other: object) -> bool:
        """Compare field by field."""
        if type(self) is not type(other) or not is_dataclass(self):
            return NotImplemented
        return all(_same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))

    __hash__ = None  # type: ignore[assignment]


def _same(one: object, other: object) -> bool:
    for kind in (np.ndarray, pd.DataFrame):
        # An array or a table beside None is a difference, and not one for every element.
        if isinstance(one, kind) != isinstance(other, kind):
            return False
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        # NumPy looks for NaN only if asked to, and cannot look for it among strings.
        return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc" and other.dtype.kind in "fc")
    if isinstance(one, pd.DataFrame) and isinstance(other, pd.DataFrame):
        return one.equals(other)
    return bool(one == other)
