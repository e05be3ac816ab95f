"""Drift of the input: shares of rows against the training data.

Compared are shares of the groups, of missing values, of unseen categories, and of each bin of a number. A change may
begin with any batch, so evidence is gathered from each batch on: the mean of all these, weighted 1/2, 1/6, 1/12 and
so on, is evidence in the same sense, and a change after a hundred good batches is still shown by a few hundred rows.
"""

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.columns.bins import named_table
from dafh.columns.column import Column
from dafh.columns.kinds import category_codes, kind_of
from dafh.exceptions import InputError
from dafh.frames import Table
from dafh.stats import drift_evidence
from dafh.text import clipped, percent, quoted

# A column with more categories than this is a name or a number plate, of which new ones come with every row.
_MOST_CATEGORIES = 2_000
# Numbers are cut here: the tails tell a change of scale.
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Batches with which a change may begin: the first, and so many last ones. Leaving out starts lowers the mean of the
# evidence, so that the level holds, and memory does not grow with the number of batches.
_STARTS = 30


class Bins(NamedTuple):
    """How the numbers of a column were distributed."""

    cuts: tuple[float, ...]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Self:
        """Cut numbers at some of their quantiles; one that occurs often is a single cut."""
        finite = values[np.isfinite(values)]
        if not len(finite):
            return cls((), ())
        # "lower": a cut is a number that occurs, and reads as it does. The largest number has nothing above it.
        cuts = np.unique(np.quantile(finite, _QUANTILES, method="lower"))
        cuts = cuts[cuts < finite.max()]
        return cls(tuple(cuts.tolist()), tuple(_rows_in_bins(values, cuts).tolist()))

    def names(self) -> list[str]:
        """Each bin in words."""
        texts = [f"{cut:,.6g}" for cut in self.cuts]
        between = [f"{low} to {high}" for low, high in itertools.pairwise(texts)]
        return [f"up to {texts[0]}", *between, f"above {texts[-1]}"] if texts else []


def _rows_in_bins(values: NDArray[np.float64], cuts: ArrayLike) -> NDArray[np.int64]:
    """Rows in each bin, without gaps; none where there is no cut."""
    edges = np.asarray(cuts, np.float64)
    if not len(edges):
        return np.zeros(0, np.int64)
    return np.bincount(np.searchsorted(edges, values[~np.isnan(values)]), minlength=len(edges) + 1)


@dataclass(frozen=True)
class Reference:
    """What rows looked like in training: how many there were, and how many had which property.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30.0, None, 41.0], "job": ["cook", "clerk", "cook"]})
    >>> reference = Reference.of(table, group=np.array([0, 1, 0]), n_groups=2)
    >>> reference.shares()
    {'rows of group 0': 2, 'rows of group 1': 1, 'age missing': 1, 'job missing': 0, 'job never seen': 0, \
'age up to 30': 1, 'age above 30': 1}
    >>> later = pd.DataFrame({"age": [25.0], "job": ["pilot"]})
    >>> reference.count(later, group=np.array([1]))
    array([0, 1, 0, 0, 1, 1, 0])
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
    numbers: dict[str, Bins] = field(default_factory=dict)
    """Cuts of each column of numbers, and the rows in each bin."""
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
        missing, categories, numbers = {}, {}, {}
        for name, column in table.items():
            kind = (kinds or {}).get(str(name)) or kind_of(column)
            missing[str(name)], hashes, _ = _gaps_and_categories(column, kind)
            if kind == "category" and len(hashes) <= _MOST_CATEGORIES:
                categories[str(name)] = tuple(hashes.tolist())
            if kind == "number":
                numbers[str(name)] = Bins.of(Column(str(name), kind).floats(column))
        counts = np.bincount(group, minlength=n_groups + 1)
        groups = tuple(counts[:n_groups].tolist()) if n_groups > 1 else ()
        return cls(len(table), groups, missing, categories, None if divides_all else int(counts[n_groups]), numbers)

    def shares(self) -> dict[str, int]:
        """Name of each property, and the number of reference rows that have it."""
        bins = {
            f"{clipped(name, 40)} {words}": rows
            for name, of_column in self.numbers.items()
            for words, rows in zip(of_column.names(), of_column.rows, strict=True)
        }
        return {
            **{f"rows of group {g}": rows for g, rows in enumerate(self.groups)},
            **({} if self.no_group is None else {"rows of no group": self.no_group}),
            **{f"{clipped(name, 40)} missing": rows for name, rows in self.missing.items()},
            **{f"{clipped(name, 40)} never seen": 0 for name in self.categories},
            **bins,
        }

    def count(self, X: Table, group: NDArray[np.intp]) -> NDArray[np.int64]:
        """Rows that have each property, in the order of `shares`."""
        table = named_table(X)
        absent = [name for name in self.missing if name not in table.columns]
        if absent:
            raise InputError(f"The reference rows had a column {quoted(absent[0])}, which these rows do not have.")
        missing, unseen, binned = [], [], []
        for name in self.missing:
            kind = "category" if name in self.categories else kind_of(table[name])
            gaps, hashes, rows_of_category = _gaps_and_categories(table[name], kind)
            missing.append(gaps)
            if name in self.categories:
                is_unseen = ~np.isin(hashes, np.array(self.categories[name], np.uint64))
                unseen.append(int(rows_of_category[is_unseen].sum()))
            if name in self.numbers:
                values = Column(name, "number").floats(table[name])
                binned.append(_rows_in_bins(values, self.numbers[name].cuts))
        rows = np.bincount(group, minlength=len(self.groups) + 1)
        # A model of one group has no shares of groups, but may have rows of none.
        groups = rows[: len(self.groups)]
        without = [] if self.no_group is None else [len(group) - rows[: max(len(self.groups), 1)].sum()]
        return np.concatenate([groups, without, missing, unseen, *binned]).astype(np.int64)

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
    # Gaps have the code −1, and are counted first.
    rows = np.bincount(codes + 1, minlength=len(names) + 1)
    hashes = pd.util.hash_array(np.array(names, object), categorize=False) if names else np.zeros(0, np.uint64)
    return int(rows[0]), hashes, rows[1:]


class InputDrift:
    """Shares of rows since the start, and the evidence that they are not those of the reference.

    All P shares are tested together at `level`: one half is for the intervals of the reference shares, one half for the
    evidence of the rows, which must reach 2P/level. Changes of up to `margin` are tolerated.
    """

    def __init__(self, reference: Reference, level: float, margin: float) -> None:
        self.reference, self.level, self.margin = reference, level, margin
        shares = reference.shares()
        self.names = list(shares)
        self.reference_hits = np.array(list(shares.values()), np.int64)
        self.n_rows = 0
        # Rows with each property so far, and the row at which its change was shown, or 0, (P,).
        self.hits, self.drifted = np.zeros(len(shares), np.int64), np.zeros(len(shares), np.int64)
        # Of each batch with which a change may begin: its number, rows before it, rows with each property before it.
        self.starts = np.zeros((0, 2 + len(shares)), np.int64)

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
        changed = (self.drifted == 0) & (evidence >= 2 * len(self.names) / self.level)
        self.drifted[changed] = self.n_rows
        # Of a column of numbers, the bin with most evidence: others have fewer rows because it has more.
        columns = [name for name, bins in self.reference.numbers.items() for _ in bins.rows]
        subjects = [*self.names[: len(self.names) - len(columns)], *(f"bins of {name}" for name in columns)]
        notices = {subjects[i]: i for i in sorted(np.flatnonzero(changed), key=lambda i: evidence[i])}
        # Shares are those since the batch with which the change most likely began.
        since = self._counts_by_start()[np.argmax(by_start, axis=0)]
        return [
            f"{self.names[i]}: {_share_in_words(since[i, i + 1] / since[i, 0])} of rows, "
            f"{_share_in_words(self.reference_hits[i] / max(self.reference.n_rows, 1))} in the reference rows."
            for i in sorted(notices.values())
        ]

    def _counts_by_start(self) -> NDArray[np.int64]:
        """Rows since each start, and those of them with each property, (S, 1 + P)."""
        return np.asarray(np.append(self.n_rows, self.hits) - self.starts[:, 1:])

    def _evidence_by_start(self) -> NDArray[np.float64]:
        """Weighted evidence of a change that began with each start, (S, P)."""
        counts, n_properties = self._counts_by_start(), max(len(self.names), 1)
        reference = self.reference_hits, self.reference.n_rows, self.level / 2 / n_properties, self.margin
        evidence = drift_evidence(counts[:, 1:], counts[:, :1], *reference)
        # The weights 1/(b (b + 1)) of all batches b add up to 1.
        number = self.starts[:, :1].astype(np.float64)
        return evidence / number / (number + 1)

    def table(self) -> pd.DataFrame:
        """One row per property."""
        evidence = self._evidence_by_start().sum(axis=0) if len(self.starts) else np.ones(len(self.names))
        return pd.DataFrame(
            {
                "name": self.names,
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
