"""Drift of the input: shares of the groups, of missing values and of unseen categories, against the training data."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.stats import drift_evidence, thresholds
from dafh.tables.bins import named_table
from dafh.tables.column import Column
from dafh.tables.values import category_codes, kind_of
from dafh.text import clipped, percent, quoted

# A column with more categories than this is a name or a number plate, of which new ones come with every row.
_MOST_CATEGORIES = 2_000


@dataclass(frozen=True)
class Reference:
    """What rows looked like in training: how many there were, and how many had which property.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30.0, None, 41.0], "job": ["cook", "clerk", "cook"]})
    >>> reference = Reference.of(table, group=np.array([0, 1, 0]), n_groups=2)
    >>> reference.shares()
    {'rows of group 0': 2, 'rows of group 1': 1, 'age missing': 1, 'job missing': 0, 'job never seen': 0}
    >>> later = pd.DataFrame({"age": [25.0], "job": ["pilot"]})
    >>> reference.count(later, group=np.array([1]))
    array([0, 1, 0, 0, 1])
    """

    n_rows: int
    groups: tuple[int, ...]
    """Rows of each group; empty where there is one group only."""
    missing: dict[str, int]
    """Gaps of each column."""
    categories: dict[str, tuple[int, ...]]
    """Known categories of each column that has a list of them, as hashes: rare ones are nobody's business."""
    no_group: int | None = None
    """Rows of none of the groups; None where all rows belong to one, as with rules and networks."""

    @classmethod
    def of(
        cls,
        X: Table,
        group: NDArray[np.intp],
        n_groups: int,
        *,
        divides_all: bool = True,
        kinds: Mapping[str, str] | None = None,
    ) -> Self:
        """Look at training rows, or at others to compare with.

        Unless the model divides all rows, `group` is n_groups for rows of no group. Kinds of columns that are not told
        are those of their types.
        """
        table = named_table(X)
        missing, categories = {}, {}
        for name, column in table.items():
            kind = (kinds or {}).get(str(name)) or kind_of(column)
            missing[str(name)], hashes, _ = _gaps_and_categories(column, kind)
            if kind == "category" and len(hashes) <= _MOST_CATEGORIES:
                categories[str(name)] = tuple(hashes.tolist())
        counts = np.bincount(group, minlength=n_groups + 1)
        groups = tuple(counts[:n_groups].tolist()) if n_groups > 1 else ()
        return cls(len(table), groups, missing, categories, None if divides_all else int(counts[n_groups]))

    def shares(self) -> dict[str, int]:
        """Name of each property, and the number of reference rows that have it."""
        groups = [f"rows of group {k}" for k in range(len(self.groups))]
        return {
            **dict(zip(groups, self.groups, strict=True)),
            **({} if self.no_group is None else {"rows of no group": self.no_group}),
            **{f"{clipped(name, 40)} missing": hits for name, hits in self.missing.items()},
            **{f"{clipped(name, 40)} never seen": 0 for name in self.categories},
        }

    def count(self, X: Table, group: NDArray[np.intp]) -> NDArray[np.int64]:
        """Rows that have each property, in the order of `shares`."""
        table = named_table(X)
        absent = [name for name in self.missing if name not in table.columns]
        if absent:
            raise InputError(f"The reference rows had a column {quoted(absent[0])}, which these rows do not have.")
        missing, unseen = [], []
        for name in self.missing:
            kind = "category" if name in self.categories else kind_of(table[name])
            gaps, hashes, rows_of = _gaps_and_categories(table[name], kind)
            missing.append(gaps)
            if name in self.categories:
                known = np.array(self.categories[name], np.uint64)
                unseen.append(int(rows_of[~np.isin(hashes, known)].sum()))
        rows = np.bincount(group, minlength=len(self.groups) + 1)
        groups = rows[: len(self.groups)]
        without = [] if self.no_group is None else [len(group) - rows[: max(len(self.groups), 1)].sum()]
        return np.concatenate([groups, without, missing, unseen]).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a model file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Take what `to_dict` gave; a ValueError for anything else."""
        return msgspec.convert(values, cls)


def _gaps_and_categories(column: "pd.Series[Any]", kind: str) -> tuple[int, NDArray[np.uint64], NDArray[np.int64]]:
    """Gaps of a column; of categories, the hash of each and its number of rows."""
    if kind != "category":
        values = Column(str(column.name), kind).floats(column)
        return int(np.isnan(values).sum()), np.zeros(0, np.uint64), np.zeros(0, np.int64)
    codes, names = category_codes(column)
    rows = np.bincount(codes + 1, minlength=len(names) + 1)
    hashes = pd.util.hash_array(np.array(names, object), categorize=False) if names else np.zeros(0, np.uint64)
    return int(rows[0]), hashes, rows[1:]


@dataclass(eq=False)
class InputDrift:
    """Shares of rows since the start, and the evidence that they are not those of the reference.

    All shares are tested together at `level`: one half is for the intervals of the reference shares, one half for the
    evidence of the rows.
    """

    reference: Reference
    level: float
    margin: float
    n_rows: int = 0
    hits: NDArray[np.int64] = field(init=False)
    drifted: NDArray[np.int64] = field(init=False)
    """Row at which a change was shown; 0 for none."""

    def __post_init__(self) -> None:
        """Begin without rows."""
        self.hits, self.drifted = (np.zeros(len(self.names), np.int64) for _ in range(2))

    @property
    def names(self) -> Sequence[str]:
        """Name of each property."""
        return list(self.reference.shares())

    def add(self, X: Table, group: NDArray[np.intp]) -> list[str]:
        """Take rows, with or without labels; say what they show to have changed."""
        self.n_rows += len(group)
        self.hits = self.hits + self.reference.count(X, group)
        undecided = self.drifted == 0
        evidence = self.evidence()
        new = undecided & (evidence >= thresholds(evidence, undecided, self.level / 2))
        self.drifted[new] = self.n_rows
        return [
            f"{row.name}: {_in_words(row.share)} of rows, {_in_words(row.reference_share)} in the reference rows."
            for row in self.table()[new].itertuples(index=False)
        ]

    def evidence(self) -> NDArray[np.float64]:
        """Evidence of a change of each share."""
        before, n = np.array(list(self.reference.shares().values()), np.int64), self.reference.n_rows
        level = self.level / 2 / max(len(before), 1)
        return drift_evidence(self.hits, self.n_rows, before, n, level, self.margin)

    def table(self) -> pd.DataFrame:
        """One row per property."""
        before = np.array(list(self.reference.shares().values()), np.float64)
        return pd.DataFrame(
            {
                "name": self.names,
                "hits": self.hits,
                "rows": self.n_rows,
                "share": self.hits / max(self.n_rows, 1),
                "reference_share": before / max(self.reference.n_rows, 1),
                "evidence": self.evidence(),
                "drift_row": self.drifted,
            }
        )


def _in_words(share: float) -> str:
    return "less than 0.1%" if 0 < share < 0.0005 else percent(share)
