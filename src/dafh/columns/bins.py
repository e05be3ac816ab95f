"""Tables divided into bins, column by column: what scorecards give points to, and what rules are made of."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.column import MOST_BINS, Column
from dafh.frames import Table, to_pandas

# Cuts of a larger table are learned from this many of its rows, evenly spread: they would not move by much.
_MOST_ROWS = 200_000


@dataclass(frozen=True)
class Binning:
    """The bins of all columns of a table, learned from training rows.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 30, 30, None], "job": ["cook", "clerk", "cook", "cook"]})
    >>> binning = Binning.learn(table)
    >>> binning.codes(pd.DataFrame({"age": [25, 99, None], "job": ["clerk", "cook", "pilot"]}))
    array([[1, 0],
           [1, 1],
           [2, 2]], dtype=uint8)
    """

    columns: tuple[Column, ...]

    @classmethod
    def learn(
        cls,
        X: Table,
        weight: NDArray[np.float64] | None = None,
        most: int = MOST_BINS,
        most_rows: int = _MOST_ROWS,
        *,
        readable: bool = False,
    ) -> "Binning":
        """Divide every column into bins of about the same number of rows; a value that many rows share has its own."""
        table = named_table(X)
        sample = slice(None, None, max(len(table) // most_rows, 1))
        table, weight = table.iloc[sample], None if weight is None else weight[sample]
        positions = range(table.shape[1])
        return cls(
            tuple(Column.learn(table.iloc[:, i], weight=weight, most=most, readable=readable) for i in positions)
        )

    @property
    def n_bins(self) -> list[int]:
        """Number of bins of each column."""
        return [column.n_bins for column in self.columns]

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each column by its name."""
        return {column.name: column.kind for column in self.columns}

    def codes(self, X: Table) -> NDArray[np.uint8]:
        """Bin of each row in each column, (n, d), stored column by column."""
        table = named_table(X)
        codes = np.empty((len(table), len(self.columns)), np.uint8, order="F")
        for position, column in enumerate(self.columns):
            codes[:, position] = column.codes(table.iloc[:, position])
        return codes

    def unseen_categories(self, codes: NDArray[np.uint8]) -> dict[int, NDArray[np.intp]]:
        """Rows with a category that training rows did not have, by position of the column; codes are bins of rows.

        Where rare categories share a bin, unseen ones go there too and cannot be told apart: such columns are left out.

        Examples
        --------
        >>> binning = Binning.learn(pd.DataFrame({"job": ["cook", "clerk"]}))
        >>> binning.unseen_categories(binning.codes(pd.DataFrame({"job": ["cook", "pilot", None]})))
        {0: array([1, 2])}
        """
        unseen = {}
        for position, column in enumerate(self.columns):
            if column.is_category and not column.has_other:
                rows = np.flatnonzero(codes[:, position] == column.n_bins - 1)
                if len(rows):
                    unseen[position] = rows
        return unseen

    def needs_encoding(self, X: Table) -> bool:
        """Whether rows hold anything but numbers without gaps, so that most classifiers could not take them."""
        if not {column.kind for column in self.columns} <= {"number", "flag"}:
            return True
        table = to_pandas(X)
        # Infinite numbers are gaps too.
        return any(np.isnan(column.floats(table.iloc[:, i])).any() for i, column in enumerate(self.columns))


def named_table(X: Table) -> pd.DataFrame:
    """Turn any table into a pandas frame with text column names; those of an array are x0, x1, ..."""
    table = to_pandas(X)
    return table.set_axis([f"x{name}" if isinstance(name, int) else str(name) for name in table.columns], axis=1)
