"""Search for the region with the best score, where a score is a function of sums over the region's rows.

All that a candidate needs is the sums of some values over its rows, and these come from one histogram by column and
bin: half-lines and intervals of numbers are running sums, lists of categories are sums of a few bins. The best
candidates of one condition are then divided once more, each with a histogram of its own rows (a beam search). What is
found in this way is refined: each of its intervals is moved to the best cuts there are, while all else stays.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dafh.columns.bins import Binning
from dafh.regions.conditions import Condition, Region

Score = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
"""From sums of the values over the rows inside and outside of each candidate, (candidates, values) each, to scores."""

BEAM = 8
"""Candidates of each depth that are divided further."""
# Categories with the best scores of their own, among which lists of two and three are tried.
_CATEGORIES_IN_LISTS = 5
# Cuts of a column of numbers between which intervals are tried; a further condition on the column narrows them.
_CUTS_OF_INTERVALS = 12


@dataclass(frozen=True, eq=False)
class Candidate:
    """A region by the bins it allows."""

    score: float
    n_rows: float
    bins: dict[int, NDArray[np.bool_]]
    """Allowed bins of the columns that conditions are about, by position of the column."""

    def rows(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each row lies in the region, by the bins of its columns, (n, d)."""
        in_region = np.ones(len(codes), bool)
        for column, allowed in self.bins.items():
            in_region &= allowed[codes[:, column]]
        return in_region

    def region(self, binning: Binning) -> Region:
        """The region in conditions that hold for any table."""
        return Region.of([Condition.of_bins(binning.columns[column], bins) for column, bins in self.bins.items()])


class RegionSearch:
    """Rows to search in, with their values.

    Parameters
    ----------
    binning : Binning
        Conditions are about its columns, and cut them where it does.
    codes : array of shape (n, d)
        Bin of each row in each column.
    values : array of shape (n, v)
        What scores are computed from, by row.
    score : function
        Scores of candidates, from the sums of the values over the rows inside and outside of them, (candidates, v).
    smallest : float
        Fewest rows in a region.
    largest_share : float
        Most rows in a region, as a share of those that are searched.
    intervals : bool
        Whether an interval with two ends counts as one condition; otherwise each end is one.

    Examples
    --------
    Rows above 5 have a mean of 1, all others of 0. The score of a region is its sum over the root of its size.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"x": np.arange(10.0), "job": ["cook", "clerk"] * 5})
    >>> binning = Binning.learn(table, readable=True)
    >>> values = np.column_stack([np.ones(10), table["x"] > 5])
    >>> def score(inside, outside):
    ...     return inside[:, 1] / np.sqrt(inside[:, 0])
    >>> search = RegionSearch(binning, binning.codes(table), values, score, 2)
    >>> search.best()[0].region(binning)
    x is above 5
    """

    def __init__(
        self,
        binning: Binning,
        codes: NDArray[Any],
        values: NDArray[Any],
        score: Score,
        smallest: float,
        largest_share: float = 1.0,
        *,
        intervals: bool = True,
    ) -> None:
        self.binning, self.score = binning, score
        self.smallest, self.largest_share = smallest, largest_share
        self.first_bins = np.concatenate([[0], np.cumsum(binning.n_bins)]).astype(np.intp)
        """Where the bins of each column begin, of the bins of all columns."""
        self.rows = np.arange(len(codes))
        """Positions of the remaining rows."""
        self._codes = np.asfortranarray(codes)
        # The first value counts rows, whatever they weigh.
        self._values = np.column_stack([np.ones(len(codes), values.dtype), values])
        # One sparse row per row of the table, with a 1 for its bin in each column: a histogram of all columns is then
        # one matrix product, several times as fast as a bincount for each column and value.
        bins = (codes + self.first_bins[:-1]).astype(np.int32)
        row_ends = np.arange(0, bins.size + 1, codes.shape[1])
        ones = np.ones(bins.size, values.dtype)
        self._one_hot = csr_array((ones, bins.ravel(), row_ends), (len(codes), int(self.first_bins[-1])))
        self._sums = self._histogram(None)
        self._families = (
            _Ranges(binning, self.first_bins, intervals=intervals),
            _CategoryLists(binning, self.first_bins),
        )

    @property
    def total(self) -> NDArray[np.float64]:
        """Number of the remaining rows, and sums of their values."""
        return self._sums[: self.first_bins[1]].sum(axis=0)

    def inside(self, candidate: Candidate) -> NDArray[np.bool_]:
        """Whether each remaining row lies in a region."""
        return candidate.rows(self._codes)

    def wordiness(self, candidate: Candidate) -> tuple[int, float]:
        """Number of categories to name, "is not" naming more than any list; and then of rows: what to say in short."""
        n_named = sum(
            int(bins.sum()) for column, bins in candidate.bins.items() if self.binning.columns[column].is_category
        )
        return n_named, candidate.n_rows

    def leave_out(self, removed: NDArray[np.bool_]) -> None:
        """Take some of the remaining rows out of the search; a copy made before keeps them."""
        self._sums = _subtract(self._sums, self._histogram(removed))
        self.rows, self._values = self.rows[~removed], self._values[~removed]
        self._one_hot, self._codes = self._one_hot[~removed], np.asfortranarray(self._codes[~removed])

    def use_values(self, columns: NDArray[np.intp]) -> None:
        """Go on with some of the values only; a copy made before keeps all."""
        columns = np.append(0, columns + 1)
        self._values, self._sums = self._values[:, columns], self._sums[:, columns]

    def best(self, depth: int = 2, n_best: int = 12, beam: int = BEAM) -> list[Candidate]:
        """Return the best candidates of each depth, the best first: at most so many with one, two, … conditions."""
        all_rows = Candidate(-np.inf, float(len(self.rows)), {})
        nodes, total, candidates = [(all_rows, self._sums)], self.total, []
        for level in range(depth):
            children: dict[Any, Candidate] = {}
            for parent, sums in nodes:
                for child in self._children(parent, sums, total, max(n_best, beam)):
                    # "a and b" is also reached as "b and a", and counts once.
                    key = tuple(sorted((column, bins.tobytes()) for column, bins in child.bins.items()))
                    children.setdefault(key, child)
            ranked = sorted(children.values(), key=lambda child: -child.score)
            candidates += ranked[:n_best]
            if level + 1 < depth:
                nodes = [(node, self._histogram_of(node)) for node in ranked[:beam] if node.n_rows > self.smallest]
        return sorted(candidates, key=lambda candidate: -candidate.score)

    def refined(self, candidate: Candidate) -> Candidate:
        """Move the ends of each interval of numbers to the best cuts, all other conditions staying as they are."""
        for column in [column for column in candidate.bins if not self.binning.columns[column].is_category]:
            allowed = candidate.bins[column]
            conditions = {number: bins for number, bins in candidate.bins.items() if number != column}
            parent = replace(candidate, n_rows=float(len(self.rows)), bins=conditions)
            histogram = self._histogram(self.inside(parent) if conditions else None)
            sums = histogram[self.first_bins[column] : self.first_bins[column + 1]]
            # All intervals of bins [start, end), from running sums; the last bin is for gaps.
            running = np.vstack([np.zeros_like(sums[:1]), np.cumsum(sums[:-1], axis=0)])
            start, end = np.triu_indices(len(running), 1)
            numbers = np.flatnonzero(allowed[:-1])
            if not len(numbers):
                continue
            # An end that is open stays open.
            is_tried = ((start == 0) | (numbers[0] > 0)) & ((end == len(sums) - 1) | (numbers[-1] < len(sums) - 2))
            start, end = start[is_tried], end[is_tried]
            candidates = running[end] - running[start] + allowed[-1] * sums[-1]
            scores = self._scores(candidates, parent, self.total)
            best = int(scores.argmax())
            if scores[best] > candidate.score * (
                1 + 1e-9
            ):  # Not for rounding: cuts would change from machine to machine.
                bins = _bins(len(sums), slice(start[best], end[best]), with_gap=allowed[-1])
                candidate = Candidate(float(scores[best]), float(candidates[best, 0]), {**candidate.bins, column: bins})
        return candidate

    def _histogram_of(self, candidate: Candidate) -> NDArray[np.float64]:
        """Histogram of the rows in a region; that of a large one by subtraction."""
        # Whatever has more rows, the region or all others, its histogram takes longer.
        in_region = self.inside(candidate)
        if 2 * candidate.n_rows > len(self.rows):
            return _subtract(self._sums, self._histogram(~in_region))
        return self._histogram(in_region)

    def _histogram(self, rows: NDArray[np.bool_] | None) -> NDArray[np.float64]:
        """Number of rows and sums of values by column and bin, (bins of all columns, 1 + v)."""
        if rows is None:
            return np.asarray(self._one_hot.T @ self._values, np.float64)
        members = np.flatnonzero(rows)
        return np.asarray(self._one_hot[members].T @ self._values[members], np.float64)

    def _children(
        self, parent: Candidate, sums: NDArray[np.float64], total: NDArray[np.float64], n_best: int
    ) -> Iterator[Candidate]:
        """The best candidates of each kind of condition, at most one for a column, among the rows of a node."""
        for family in self._families:
            best = family.best(sums, lambda candidates: self._scores(candidates, parent, total), n_best)
            for column, score, allowed in best:
                n_rows = float(sums[self.first_bins[column] : self.first_bins[column + 1]][allowed, 0].sum())
                bins = allowed & parent.bins.get(column, True)
                yield Candidate(score, n_rows, {**parent.bins, column: bins})

    def _scores(self, sums: NDArray[np.float64], parent: Candidate, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of candidates within a region; −∞ where they have too few or too many rows, or all of the region."""
        n_rows = sums[:, 0]
        allowed = (n_rows >= self.smallest) & (n_rows <= self.largest_share * len(self.rows))
        allowed &= n_rows <= parent.n_rows - 1  # A condition that all rows of the parent satisfy is none.
        scores = np.full(len(sums), -np.inf)
        scores[allowed] = self.score(sums[allowed, 1:], (total - sums[allowed])[:, 1:])
        return scores


Best = Iterator[tuple[int, float, NDArray[np.bool_]]]
"""Position of the column, score, and allowed bins of the best candidates."""
ScoreSums = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class _Ranges:
    """Half-lines and intervals of columns of numbers and dates: neighbouring bins, whose sums are running sums."""

    def __init__(self, binning: Binning, first_bins: NDArray[np.intp], *, intervals: bool) -> None:
        self.columns = [number for number, column in enumerate(binning.columns) if not column.is_category]
        self.first, self.gap = first_bins[self.columns], first_bins[1:][self.columns] - 1
        # Bins [start, end) of each candidate, column by column, for each kind of condition.
        below, above, between = [], [], []
        for first, gap in zip(self.first, self.gap, strict=True):
            bins = np.arange(first, gap)
            below.append(np.column_stack([np.full(len(bins), first), bins + 1]))
            above.append(np.column_stack([bins + 1, np.full(len(bins), gap)]))
            # Intervals end at a few cuts only: their number grows with the square of that of the cuts.
            n_cuts = len(bins) - 1 if intervals else 0
            spread = np.linspace(0, n_cuts - 1, _CUTS_OF_INTERVALS if n_cuts > 0 else 0)
            ends = first + 1 + np.unique(spread.round().astype(np.intp))
            between.append(np.array(list(combinations(ends, 2)), np.intp).reshape(-1, 2))
        self.half_lines, self.intervals = (below, above), between

    def best(self, sums: NDArray[np.float64], score: ScoreSums, n_best: int) -> Best:
        if not self.columns:
            return
        running = np.vstack([np.zeros_like(sums[:1]), np.cumsum(sums, axis=0)])
        gaps = sums[self.gap]
        kinds = [(ranges, False) for ranges in self.half_lines]
        if (gaps[:, 0] > 0).any():  # Rows without a value may go with either side.
            kinds += [(ranges, True) for ranges in self.half_lines]
        for ranges, with_gap in [*kinds, (self.intervals, False)]:
            start, end = np.concatenate(ranges).T
            offsets = _offsets([len(candidates) for candidates in ranges])
            candidates = running[end] - running[start]
            if with_gap:
                column = np.repeat(np.arange(len(ranges)), np.diff(offsets))
                candidates += gaps[column]
            scores = score(candidates)
            if with_gap:
                scores[gaps[column, 0] == 0] = -np.inf
            for number, best, highest in _best_by_column(scores, offsets, n_best):
                first, n_bins = self.first[number], self.gap[number] + 1 - self.first[number]
                bins = slice(start[best] - first, end[best] - first)
                yield self.columns[number], highest, _bins(n_bins, bins, with_gap=with_gap)


class _CategoryLists:
    """Lists of one to three categories, and all but one category."""

    def __init__(self, binning: Binning, first_bins: NDArray[np.intp]) -> None:
        self.columns = [
            number for number, column in enumerate(binning.columns) if column.is_category and column.categories
        ]
        n_categories = [len(binning.columns[column].categories) for column in self.columns]
        self.n_bins = [binning.columns[column].n_bins for column in self.columns]
        self.first_bins, self.offsets = first_bins, _offsets(n_categories)
        # Bins of all categories: those of rare and of unseen ones come after them in each column, and are left out.
        ranges = zip(first_bins[self.columns], n_categories, strict=True)
        self.bins = np.concatenate([np.zeros(0, np.intp), *(np.arange(first, first + n) for first, n in ranges)])
        lists = [members for size in (2, 3) for members in combinations(range(_CATEGORIES_IN_LISTS), size)]
        self.is_member = np.array([np.isin(range(_CATEGORIES_IN_LISTS), members) for members in lists])

    def best(self, sums: NDArray[np.float64], score: ScoreSums, n_best: int) -> Best:
        if not self.columns:
            return
        singles = sums[self.bins]
        scores = score(singles)
        # Sums are in single precision, and those over all bins differ a little from column to column.
        in_column = np.add.reduceat(sums, self.first_bins[:-1], axis=0)[self.columns]
        complements = score(np.repeat(in_column, np.diff(self.offsets), axis=0) - singles)
        for number, best, highest in _best_by_column(scores, self.offsets, n_best):
            yield self.columns[number], highest, self._bins_of(number, [best])
        for number, best, highest in _best_by_column(complements, self.offsets, n_best):
            yield self.columns[number], highest, ~self._bins_of(number, [best])
        # Lists are of the categories that are best by themselves; those too small by themselves come last. A column
        # with fewer categories is filled up with a zero after the last of all categories.
        strongest = np.full((len(self.columns), _CATEGORIES_IN_LISTS), len(singles))
        for number in range(len(self.columns)):
            candidates = np.arange(*self.offsets[number : number + 2])
            candidates = candidates[singles[candidates, 0] > 0]
            ranks = np.where(np.isfinite(scores[candidates]), scores[candidates], -1e300)
            ranked = candidates[np.argsort(-ranks, kind="stable")][:_CATEGORIES_IN_LISTS]
            strongest[number, : len(ranked)] = ranked
        padded = np.vstack([singles, np.zeros_like(singles[:1])])
        # Sums of each list are a product of who is in it with the sums of single categories, for all columns at once.
        lists = np.einsum("lc,kcv->klv", self.is_member.astype(float), padded[strongest])
        of_lists = score(lists.reshape(-1, sums.shape[1]))
        offsets = np.arange(len(self.columns) + 1) * len(self.is_member)
        for number, best, highest in _best_by_column(of_lists, offsets, n_best):
            members = strongest[number][self.is_member[best - offsets[number]]]
            if (members < len(singles)).all():
                yield self.columns[number], highest, self._bins_of(number, members)

    def _bins_of(self, number: int, members: Any) -> NDArray[np.bool_]:
        """Allowed bins of a column, from positions of its categories among all categories."""
        allowed = np.zeros(self.n_bins[number], bool)
        allowed[np.asarray(members) - self.offsets[number]] = True
        return allowed


def _subtract(sums: NDArray[np.float64], removed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Subtract histograms; nothing remains in empty bins, not even rounding."""
    remaining = sums - removed
    remaining[remaining[:, 0] < 0.5] = 0.0
    return remaining


def _bins(n_bins: int, neighbours: slice, *, with_gap: bool | np.bool_) -> NDArray[np.bool_]:
    """Allowed bins of a column of numbers, of which the last is for gaps."""
    allowed = np.zeros(n_bins, bool)
    allowed[neighbours] = True
    allowed[-1] = with_gap
    return allowed


def _offsets(sizes: list[int]) -> NDArray[np.intp]:
    """Where the candidates of each column begin, and where the last ones end."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def _best_by_column(
    scores: NDArray[np.float64], offsets: NDArray[np.intp], n_best: int
) -> Iterator[tuple[int, int, float]]:
    """Number of a column, position of its highest score, and the score, of the columns with the highest ones."""
    filled = np.flatnonzero(np.diff(offsets))
    if not len(filled):
        return
    highest = np.maximum.reduceat(scores, offsets[filled])
    for rank in np.argsort(-highest, kind="stable")[:n_best]:
        if np.isfinite(highest[rank]):
            number = int(filled[rank])
            first = offsets[number]
            best = int(first + scores[first : offsets[number + 1]].argmax())
            yield number, best, float(highest[rank])
