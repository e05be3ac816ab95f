"""Rows that wait for their labels: what was decided about them, until it is known whether it was right."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.checks.rows import as_array, check_known_labels
from dafh.exceptions import InputError
from dafh.frames import to_pandas
from dafh.tables.hashes import value_hashes


def hashed(values: ArrayLike, n_rows: int, name: str) -> NDArray[np.uint64]:
    """Identifiers as numbers: 7, 7.0 and "7" are the same one."""
    table = to_pandas(values)
    if table.shape[1] != 1:
        raise InputError(f"{name} has {table.shape[1]} columns: give one identifier for each row.")
    column = table.iloc[:, 0].reset_index(drop=True)
    if len(column) != n_rows:
        raise InputError(f"{name} has {len(column)} entries, the data have {n_rows} rows: give one for each.")
    try:
        if column.isna().any():
            raise InputError(f"{name} has missing values: every row needs one.")
        return value_hashes(column)
    except TypeError as error:
        raise InputError(f"{name} holds lists or records: an identifier is text or a number.") from error


@dataclass(frozen=True, eq=False)
class DecidedRows:
    """What was decided about rows, and what else their labels will be counted with."""

    id: NDArray[np.uint64]
    person: NDArray[np.uint64]
    """0 where every row is a person of its own."""
    group: NDArray[np.int32]
    own: NDArray[np.int16]
    """Label by the watched classifier, as a position among the classes."""
    pooled: NDArray[np.int16]
    parts: NDArray[np.int16]
    """(n, A)"""
    weight: NDArray[np.float64]

    @classmethod
    def none(cls, n_attributes: int) -> Self:
        """No rows."""
        nothing = np.zeros(0)
        return cls(
            nothing.astype(np.uint64),
            nothing.astype(np.uint64),
            nothing.astype(np.int32),
            nothing.astype(np.int16),
            nothing.astype(np.int16),
            np.zeros((0, n_attributes), np.int16),
            nothing,
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.group)

    def take(self, rows: NDArray[Any]) -> Self:
        """Return some of the rows."""
        return type(self)(*(values[rows] for values in self._values()))

    def and_more(self, other: "DecidedRows") -> Self:
        """Return these rows and then others."""
        pairs = zip(self._values(), other._values(), strict=True)
        return type(self)(*(np.concatenate(pair) for pair in pairs))

    def without(self, places: NDArray[np.intp]) -> Self:
        """Return all but some of the rows."""
        kept = np.ones(len(self), bool)
        kept[places] = False
        return self.take(kept)

    def replaced(self, rows: NDArray[np.intp], other: "DecidedRows") -> Self:
        """Return the rows with what is known of some of them from another place."""
        copies = [values.copy() for values in self._values()]
        for mine, theirs in zip(copies, other._values(), strict=True):
            mine[rows] = theirs
        return type(self)(*copies)

    def _values(self) -> list[NDArray[Any]]:
        return [getattr(self, part.name) for part in fields(self)]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it by name."""
        return {f"pending_{part.name}": getattr(self, part.name) for part in fields(self)}

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Take what `arrays` gave."""
        return cls(*(arrays[f"pending_{part.name}"] for part in fields(cls)))


def match(waiting: NDArray[np.uint64], ids: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Place of each id among those that wait, −1 for none; where an id occurs several times, each is matched once.

    Examples
    --------
    >>> match(np.array([5, 7, 7], np.uint64), np.array([7, 9, 7, 7], np.uint64))
    array([ 1, -1,  2, -1])
    """
    if not len(waiting):
        return np.full(len(ids), -1, np.intp)
    there, asked = (pd.MultiIndex.from_arrays([values, _occurrence(values)]) for values in (waiting, ids))
    return np.asarray(there.get_indexer(asked), np.intp)


def _occurrence(ids: NDArray[np.uint64]) -> NDArray[Any]:
    """How many equal ids stand before each."""
    return pd.Series(ids).groupby(ids).cumcount().to_numpy()


def read_labels(y: ArrayLike | None, classes: NDArray[Any], n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Labels as positions of classes, and which are known."""
    if y is None:
        return np.zeros(n_rows, np.intp), np.zeros(n_rows, bool)
    values = as_array(y, "y")
    if values.shape != (n_rows,):
        raise InputError(f"y has the shape {values.shape}, X has {n_rows} rows: give one label for each.")
    try:
        known = ~pd.isna(values)
        # As objects: pandas has no index of some types, and one of texts refuses halves of letters.
        codes = pd.Index(classes, dtype=object).get_indexer(pd.Index(values.astype(object), dtype=object))
    except TypeError as error:
        raise InputError("y holds lists or records: a label is text or a number.") from error
    if (codes[known] < 0).any():
        check_known_labels(values[known], classes, int(known.sum()))
    return codes.astype(np.intp), known
