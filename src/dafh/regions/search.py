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
        inside = np.ones(len(codes), bool)
        for column, allowed in self.bins.items():
            inside &= allowed[codes[:, column]]
        return inside

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
        self.first = np.concatenate([[0], np.cumsum(binning.n_bins)]).astype(np.intp)
        self.rows = np.arange(len(codes))
        """Positions of the rows that are left."""
        self._codes = np.asfortranarray(codes)
        # The first value counts rows, whatever they weigh.
        self._values = np.column_stack([np.ones(len(codes), values.dtype), values])
        places = (codes + self.first[:-1]).astype(np.int32)
        ends = np.arange(0, places.size + 1, codes.shape[1])
        ones = np.ones(places.size, values.dtype)
        self._one_hot = csr_array((ones, places.ravel(), ends), (len(codes), int(self.first[-1])))
        self._sums = self._histogram(None)
        self._lines, self._lists = _Lines(binning, self.first, intervals=intervals), _Lists(binning, self.first)

    @property
    def total(self) -> NDArray[np.float64]:
        """Number of the rows that are left, and sums of their values."""
        return self._sums[: self.first[1]].sum(axis=0)

    def inside(self, candidate: Candidate) -> NDArray[np.bool_]:
        """Whether each row that is left lies in a region."""
        return candidate.rows(self._codes)

    def wordiness(self, candidate: Candidate) -> tuple[int, float]:
        """Number of categories to name, "is not" naming more than any list; and then of rows: what to say in short."""
        n_named = sum(
            int(bins.sum()) for column, bins in candidate.bins.items() if self.binning.columns[column].is_category
        )
        return n_named, candidate.n_rows

    def leave_out(self, gone: NDArray[np.bool_]) -> None:
        """Take some of the rows that are left out of the search; a copy made before keeps them."""
        self._sums = self._without(self._sums, self._histogram(gone))
        self.rows, self._values, self._one_hot = (one[~gone] for one in (self.rows, self._values, self._one_hot))
        self._codes = np.asfortranarray(self._codes[~gone])

    def use_values(self, columns: NDArray[np.intp]) -> None:
        """Go on with some of the values only; a copy made before keeps all."""
        counted = np.append(0, columns + 1)
        self._values, self._sums = self._values[:, counted], self._sums[:, counted]

    def best(self, depth: int = 2, n_best: int = 12, beam: int = BEAM) -> list[Candidate]:
        """Return the best candidates of each depth, the best first: at most so many with one, two, … conditions."""
        everybody = Candidate(-np.inf, float(len(self.rows)), {})
        nodes, total, found = [(everybody, self._sums)], self.total, []
        for level in range(depth):
            children: dict[Any, Candidate] = {}
            for parent, sums in nodes:
                for child in self._children(parent, sums, total, max(n_best, beam)):
                    key = tuple(sorted((column, bins.tobytes()) for column, bins in child.bins.items()))
                    children.setdefault(key, child)
            ranked = sorted(children.values(), key=lambda one: -one.score)
            found += ranked[:n_best]
            if level + 1 < depth:
                nodes = [(one, self._histogram_of(one)) for one in ranked[:beam] if one.n_rows > self.smallest]
        return sorted(found, key=lambda one: -one.score)

    def refined(self, candidate: Candidate) -> Candidate:
        """Move the ends of each interval of numbers to the best cuts, all other conditions staying as they are."""
        for column in [column for column in candidate.bins if not self.binning.columns[column].is_category]:
            others = {other: bins for other, bins in candidate.bins.items() if other != column}
            rest = replace(candidate, n_rows=float(len(self.rows)), bins=others)
            rows = self._histogram(self.inside(rest) if others else None)
            sums = rows[self.first[column] : self.first[column + 1]]
            below = np.vstack([np.zeros_like(sums[:1]), np.cumsum(sums[:-1], axis=0)])
            first, last = np.triu_indices(len(below), 1)
            # An end that is open stays open.
            before = np.flatnonzero(candidate.bins[column][:-1])
            if not len(before):
                continue
            kept = ((first == 0) | (before[0] > 0)) & ((last == len(below) - 1) | (before[-1] < len(below) - 2))
            first, last = first[kept], last[kept]
            candidates = below[last] - below[first] + candidate.bins[column][-1] * sums[-1]
            scores = self._scores(candidates, rest, self.total)
            best = int(scores.argmax())
            if scores[best] > candidate.score * (1 + 1e-9):
                place = np.arange(len(sums) - 1)
                inside = (place >= first[best]) & (place < last[best])
                bins = {**candidate.bins, column: np.append(inside, candidate.bins[column][-1])}
                candidate = Candidate(float(scores[best]), float(candidates[best, 0]), bins)
        return candidate

    def _histogram_of(self, candidate: Candidate) -> NDArray[np.float64]:
        """Histogram of the rows in a region; that of a large one by subtraction."""
        inside = self.inside(candidate)
        if 2 * candidate.n_rows > len(self.rows):
            return self._without(self._sums, self._histogram(~inside))
        return self._histogram(inside)

    def _histogram(self, rows: NDArray[np.bool_] | None) -> NDArray[np.float64]:
        """Number of rows and sums of values by column and bin, (bins of all columns, 1 + v)."""
        if rows is None:
            return np.asarray(self._one_hot.T @ self._values, np.float64)
        members = np.flatnonzero(rows)
        return np.asarray(self._one_hot[members].T @ self._values[members], np.float64)

    @staticmethod
    def _without(sums: NDArray[np.float64], gone: NDArray[np.float64]) -> NDArray[np.float64]:
        """Subtract sums; nothing is left in empty bins, not even rounding."""
        left = sums - gone
        left[left[:, 0] < 0.5] = 0.0
        return left

    def _children(
        self, parent: Candidate, sums: NDArray[np.float64], total: NDArray[np.float64], n_best: int
    ) -> Iterator[Candidate]:
        """The best candidates of each kind of condition, at most one for a column, among the rows of a node."""
        for kind in (self._lines, self._lists):
            for column, score, allowed in kind.best(sums, lambda one: self._scores(one, parent, total), n_best):
                n_rows = float(sums[self.first[column] : self.first[column + 1]][allowed, 0].sum())
                before = parent.bins.get(column)
                bins = allowed if before is None else allowed & before
                yield Candidate(score, n_rows, {**parent.bins, column: bins})

    def _scores(self, sums: NDArray[np.float64], parent: Candidate, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of candidates within a region; −∞ where they have too few or too many rows, or all of the region."""
        n_rows = sums[:, 0]
        allowed = (n_rows >= self.smallest) & (n_rows <= self.largest_share * len(self.rows))
        allowed &= n_rows <= parent.n_rows - 1
        scores = np.full(len(sums), -np.inf)
        scores[allowed] = self.score(sums[allowed, 1:], (total - sums[allowed])[:, 1:])
        return scores


Best = Iterator[tuple[int, float, NDArray[np.bool_]]]
"""Position of the column, score, and allowed bins of the best candidates."""
ScoreSums = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class _Lines:
    """Half-lines of all columns of numbers and dates, by running sums over their bins."""

    def __init__(self, binning: Binning, first: NDArray[np.intp], *, intervals: bool) -> None:
        self.columns = [column for column, about in enumerate(binning.columns) if not about.is_category]
        widths = [binning.columns[column].n_bins - 1 for column in self.columns]
        self.bins = _ranges(first[self.columns], widths)
        self.start = np.concatenate([[0], np.cumsum(widths)]).astype(np.intp)
        self.of = np.repeat(np.arange(len(self.columns)), widths)
        self.gap = np.array([first[column + 1] - 1 for column in self.columns], np.intp)
        # Bins at both ends of intervals, between a few cuts of each column.
        pairs = [list(combinations(_spread(width - 1 if intervals else 0), 2)) for width in widths]
        self.pairs = np.array([(self.start[i] + a, self.start[i] + b) for i, one in enumerate(pairs) for a, b in one])
        self.pairs = self.pairs.reshape(-1, 2).astype(np.intp)
        self.start_of_pairs = np.concatenate([[0], np.cumsum([len(one) for one in pairs])]).astype(np.intp)

    def best(self, sums: NDArray[np.float64], score: ScoreSums, n_best: int) -> Best:
        if not self.columns:
            return
        inside, gaps = sums[self.bins], sums[self.gap]
        running = np.cumsum(inside, axis=0)
        begin = self.start[:-1][self.of]
        below = running - (running[begin] - inside[begin])
        above = below[self.start[1:] - 1][self.of] - below
        kinds = [(below, True, False), (above, False, False)]
        has_gaps = gaps[:, 0] > 0
        if has_gaps.any():
            # Rows without a value may go with either side.
            kinds += [(below + gaps[self.of], True, True), (above + gaps[self.of], False, True)]
        for candidates, is_below, with_gap in kinds:
            scores = score(candidates)
            if with_gap:
                scores[~has_gaps[self.of]] = -np.inf
            for number, best, highest in _best_by_column(scores, self.start, n_best):
                place = np.arange(self.start[number + 1] - self.start[number])
                yield self.columns[number], highest, np.append(place <= best if is_below else place > best, with_gap)
        if not len(self.pairs):
            return
        low, high = self.pairs.T
        scores = score(below[high] - below[low])
        for number, best, highest in _best_by_column(scores, self.start_of_pairs, n_best):
            first, last = self.pairs[self.start_of_pairs[number] + best] - self.start[number]
            place = np.arange(self.start[number + 1] - self.start[number])
            yield self.columns[number], highest, np.append((place > first) & (place <= last), False)


class _Lists:
    """Lists of one to three categories, and all but one category."""

    def __init__(self, binning: Binning, first: NDArray[np.intp]) -> None:
        self.columns = [
            column for column, about in enumerate(binning.columns) if about.is_category and about.categories
        ]
        self.widths = [len(binning.columns[column].categories) for column in self.columns]
        self.n_bins = [binning.columns[column].n_bins for column in self.columns]
        self.bins = _ranges(first[self.columns], self.widths)
        self.start = np.concatenate([[0], np.cumsum(self.widths)]).astype(np.intp)
        # All bins of the columns, those of rare and of unseen categories included.
        self.every = _ranges(first[self.columns], self.n_bins)
        self.ends = np.concatenate([[0], np.cumsum(self.n_bins)]).astype(np.intp)[:-1]
        self.of = np.repeat(np.arange(len(self.columns)), self.widths)
        self.lists = [one for size in (2, 3) for one in combinations(range(_CATEGORIES_IN_LISTS), size)]
        self.member = np.zeros((len(self.lists), _CATEGORIES_IN_LISTS))
        for number, one in enumerate(self.lists):
            self.member[number, list(one)] = 1.0

    def best(self, sums: NDArray[np.float64], score: ScoreSums, n_best: int) -> Best:
        if not self.columns:
            return
        alone = sums[self.bins]
        scores = score(alone)
        whole = np.add.reduceat(sums[self.every], self.ends, axis=0)
        others = score(whole[self.of] - alone)
        for number, best, highest in _best_by_column(scores, self.start, n_best):
            yield self.columns[number], highest, self._allowed(number, [best])
        for number, best, highest in _best_by_column(others, self.start, n_best):
            yield self.columns[number], highest, ~self._allowed(number, [best])
        # Lists are of the categories that are best by themselves. A zero at the end fills up short columns.
        padded = np.vstack([alone, np.zeros_like(alone[:1])])
        strongest = np.full((len(self.columns), _CATEGORIES_IN_LISTS), len(alone))
        for number in range(len(self.columns)):
            mine = np.arange(self.start[number], self.start[number + 1])
            some = alone[mine, 0] > 0
            ranked = mine[some][np.argsort(-_or_lowest(scores[mine[some]]), kind="stable")][:_CATEGORIES_IN_LISTS]
            strongest[number, : len(ranked)] = ranked
        together = np.einsum("lc,kcv->klv", self.member, padded[strongest])
        of_lists = score(together.reshape(-1, sums.shape[1]))
        starts = np.arange(len(self.columns) + 1) * len(self.lists)
        for number, best, highest in _best_by_column(of_lists, starts, n_best):
            members = strongest[number][self.member[best] > 0]
            if (members < len(alone)).all():
                yield self.columns[number], highest, self._allowed(number, members - self.start[number])

    def _allowed(self, number: int, members: Any) -> NDArray[np.bool_]:
        allowed = np.zeros(self.n_bins[number], bool)
        allowed[members] = True
        return allowed


def _spread(n_cuts: int) -> list[int]:
    """Positions of a few cuts, evenly spread."""
    return np.unique(np.linspace(0, n_cuts - 1, _CUTS_OF_INTERVALS).round().astype(int)).tolist() if n_cuts > 0 else []


def _or_lowest(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores to rank by, where candidates that are too small by themselves come last."""
    return np.where(np.isfinite(scores), scores, -1e300)


def _best_by_column(
    scores: NDArray[np.float64], start: NDArray[np.intp], n_best: int
) -> Iterator[tuple[int, int, float]]:
    """Number of a column, place of its highest score, and the score, of the columns with the highest ones."""
    filled = np.flatnonzero(np.diff(start))
    if not len(filled):
        return
    highest = np.maximum.reduceat(scores, start[filled])
    for rank in np.argsort(-highest, kind="stable")[:n_best]:
        if np.isfinite(highest[rank]):
            number = int(filled[rank])
            yield number, int(scores[start[number] : start[number + 1]].argmax()), float(highest[rank])


def _ranges(first: NDArray[np.intp], widths: list[int]) -> NDArray[np.intp]:
    """Consecutive numbers from each first one on, one range after the other."""
    parts = [np.arange(begin, begin + width) for begin, width in zip(first, widths, strict=True)]
    return np.concatenate(parts) if parts else np.zeros(0, np.intp)
