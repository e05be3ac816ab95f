"""Drift of the input: shares of rows against the training data.

Compared are shares of the groups, of missing values, of unseen categories, and of each bin of a number. A change may
begin with any batch, so evidence is gathered from each batch on: the mean of all these, weighted 1/2, 1/6, 1/12 and
so on, is evidence in the same sense, and a change after a hundred good batches is still shown by a few hundred rows.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.bins import named_table
from dafh.columns.column import Column
from dafh.columns.kinds import kind_of
from dafh.exceptions import InputError
from dafh.frames import MISSING, Table
from dafh.stats import drift_evidence
from dafh.text import clipped, percent, quoted

# Numbers are cut here: the tails tell a change of scale.
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Batches with which a change may begin: the first, and so many last ones. Leaving out starts lowers the mean of the
# evidence, so that the level holds, and memory does not grow with the number of batches.
_STARTS = 30


class Share(NamedTuple):
    """A property that rows have or have not."""

    name: str
    subject: str
    """Shares of the same subject change together: one has more because another has less."""
    n_rows: int
    """Reference rows that have it."""


@dataclass(frozen=True)
class Reference:
    """What rows looked like in training: how many there were, and how many had which property.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30.0, None, 41.0], "job": ["cook", "clerk", "cook"]})
    >>> reference = Reference.of(table, group=np.array([0, 1, 0]), n_groups=2)
    >>> {share.name: share.n_rows for share in reference.shares()}
    {'rows of group 0': 2, 'rows of group 1': 1, 'age missing': 1, 'age up to 30': 1, 'age above 30': 1, \
'job missing': 0, 'job never seen': 0}
    >>> later = pd.DataFrame({"age": [25.0], "job": ["pilot"]})
    >>> reference.count(later, group=np.array([1]))
    array([0, 1, 0, 1, 0, 0, 1])
    """

    n_rows: int
    groups: tuple[int, ...]
    """Rows of each group; empty where there is one group only."""
    columns: tuple[Column, ...]
    counts: tuple[tuple[int, ...], ...]
    """Rows in each bin of each column."""
    no_group: int | None = None
    """Rows of none of the groups; None where all rows belong to one, as with rules and networks."""
    judged: tuple[int, ...] = ()
    """Labelled rows: all of them, and those of each group; empty where no labels are known."""
    errors: tuple[int, ...] = ()
    """Those on which the model in use was wrong."""

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
        """Count training rows, or others to compare with.

        Unless the model divides all rows, `group` is n_groups for rows of no group. Kinds of columns that are not given
        are those of their types.
        """
        table = named_table(X)
        columns = tuple(_column_of(table[name], (kinds or {}).get(str(name))) for name in table)
        counts = tuple(tuple(_rows_in_bins(column, table).tolist()) for column in columns)
        of_groups = np.bincount(group, minlength=n_groups + 1).tolist()
        groups = tuple(of_groups[:n_groups]) if n_groups > 1 else ()
        return cls(len(table), groups, columns, counts, None if divides_all else of_groups[n_groups])

    def shares(self) -> list[Share]:
        """Properties that are compared, and the reference rows that have them."""
        names = [f"rows of group {g}" for g in range(len(self.groups))]
        shares = [Share(name, name, rows) for name, rows in zip(names, self.groups, strict=True)]
        if self.no_group is not None:
            shares.append(Share("rows of no group", "rows of no group", self.no_group))
        for column, counts in zip(self.columns, self.counts, strict=True):
            for code in _watched_bins(column):
                name = f"{clipped(column.name, 40)} {column.words(code)}"
                is_number = bool(column.cuts) and code != column.gap
                shares.append(Share(name, f"bins of {column.name}" if is_number else name, counts[code]))
        return shares

    def count(self, X: Table, group: NDArray[np.intp]) -> NDArray[np.int64]:
        """Rows that have each property, in the order of `shares`."""
        table = named_table(X)
        absent = [column.name for column in self.columns if column.name not in table.columns]
        if absent:
            raise InputError(f"The reference rows had a column {quoted(absent[0])}, which these rows do not have.")
        of_groups = np.bincount(group, minlength=len(self.groups) + 1)
        # A model of one group has no shares of groups, but may have rows of none.
        without = [] if self.no_group is None else [len(group) - of_groups[: max(len(self.groups), 1)].sum()]
        bins = [_rows_in_bins(column, table)[_watched_bins(column)] for column in self.columns]
        return np.concatenate([of_groups[: len(self.groups)], without, *bins]).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a model file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Take what `to_dict` gave; a ValueError for anything else."""
        return msgspec.convert(values, cls)


def _column_of(values: "pd.Series[Any]", kind: str | None) -> Column:
    """Bins of a column: numbers between some of their quantiles, and all other kinds as one bin beside gaps."""
    name, kind = str(values.name), kind or kind_of(values)
    if kind == "category":
        column = Column.learn(values, kind)
        # Gaps have a bin of their own, even if there are none yet.
        return replace(column, categories=tuple(sorted({*column.categories, MISSING})))
    numbers = Column(name, kind).floats(values)
    numbers, cuts = numbers[~np.isnan(numbers)], np.zeros(0)
    if kind == "number" and len(numbers):
        # Six digits are enough to read. "lower": a value that many rows share is a single cut.
        cuts = np.array([float(f"{cut:.6g}") for cut in np.quantile(numbers, _QUANTILES, method="lower")])
        cuts = np.unique(cuts[cuts < numbers.max()])
    return Column(name, kind, tuple(cuts.tolist()), centers=(0.0,) * (len(cuts) + 1))


def _rows_in_bins(column: Column, table: pd.DataFrame) -> NDArray[np.int64]:
    return np.bincount(column.codes(table[column.name]), minlength=column.n_bins)


def _watched_bins(column: Column) -> list[int]:
    """Bins whose shares are compared: gaps, and of numbers all, of categories that of rare and unseen ones."""
    assert column.gap is not None
    if column.is_category:
        return [column.gap, len(column.categories)]
    return [column.gap, *range(len(column.cuts) + 1 if column.cuts else 0)]


class InputDrift:
    """Shares of rows since the start, and the evidence that they are not those of the reference.

    All P shares are tested together at `level`: one half is for the intervals of the reference shares, one half for the
    evidence of the rows, which must reach 2P/level. Changes of up to `margin` are tolerated.
    """

    def __init__(self, reference: Reference, level: float, margin: float) -> None:
        self.reference, self.level, self.margin = reference, level, margin
        self.shares = reference.shares()
        self.reference_hits = np.array([share.n_rows for share in self.shares], np.int64)
        self.n_rows = 0
        # Rows with each property so far, and the row at which its change was shown, or 0, (P,).
        self.hits, self.drifted = np.zeros(len(self.shares), np.int64), np.zeros(len(self.shares), np.int64)
        # Of each batch with which a change may begin: its number, rows before it, rows with each property before it.
        self.starts = np.zeros((0, 2 + len(self.shares)), np.int64)

    def add(self, X: Table, group: NDArray[np.intp]) -> list[str]:
        """Take rows, with or without labels; return the changes that they show, as sentences."""
        number = 1 + (self.starts[-1, 0] if len(self.starts) else 0)
        # Before the rows of this batch are counted: a change may begin with them.
        starts = np.vstack([self.starts, [number, self.n_rows, *self.hits]])
        self.starts = np.vstack([starts[:1], starts[1:][-_STARTS:]])
        self.n_rows += len(group)
        self.hits = self.hits + self.reference.count(X, group)
        by_start = self._evidence_by_start()
        evidence = by_start.sum(axis=0)
        changed = (self.drifted == 0) & (evidence >= 2 * len(self.shares) / self.level)
        self.drifted[changed] = self.n_rows
        # Of each subject, the share with most evidence.
        notices = {self.shares[i].subject: i for i in sorted(np.flatnonzero(changed), key=lambda i: evidence[i])}
        # Shares are those since the batch with which the change most likely began.
        since = self._counts_by_start()[np.argmax(by_start, axis=0)]
        return [
            f"{self.shares[i].name}: {_share_in_words(since[i, i + 1] / since[i, 0])} of rows, "
            f"{_share_in_words(self.reference_hits[i] / max(self.reference.n_rows, 1))} in the reference rows."
            for i in sorted(notices.values())
        ]

    def _counts_by_start(self) -> NDArray[np.int64]:
        """Rows since each start, and those of them with each property, (S, 1 + P)."""
        return np.asarray(np.append(self.n_rows, self.hits) - self.starts[:, 1:])

    def _evidence_by_start(self) -> NDArray[np.float64]:
        """Weighted evidence of a change that began with each start, (S, P)."""
        counts, n_shares = self._counts_by_start(), max(len(self.shares), 1)
        reference = self.reference_hits, self.reference.n_rows, self.level / 2 / n_shares, self.margin
        evidence = drift_evidence(counts[:, 1:], counts[:, :1], *reference)
        # The weights 1/(b (b + 1)) of all batches b add up to 1.
        number = self.starts[:, :1].astype(np.float64)
        return evidence / number / (number + 1)

    def table(self) -> pd.DataFrame:
        """One row per property."""
        evidence = self._evidence_by_start().sum(axis=0) if len(self.starts) else np.ones(len(self.shares))
        return pd.DataFrame(
            {
                "name": [share.name for share in self.shares],
                "hits": self.hits,
                "rows": self.n_rows,
                "share": self.hits / max(self.n_rows, 1),
                "reference_share": self.reference_hits / max(self.reference.n_rows, 1),
                "evidence": evidence,
                "drift_row": self.drifted,
            }
        )


def _share_in_words(share: float) -> str:
    return "less than 0.1%" if 0 < share < 0.0005 else percent(share)
