"""Grow a tree on the errors of the pooled classifier: where they lean one way, or where the effect of a column changes.

Two criteria compete. "mean" looks at the residual alone, and finds rows for which the pooled classifier is too high or
too low. "score" looks at the residual times every column, and finds rows for which coefficients should be others: an
additive pooled classifier leaves no mean residual in any column, and only this one can divide its rows.

Both are one thing to the tree: numbers by row with mean 0 and variance 1 under a pooled classifier that is right. A
leaf is worth the squared length of their sum, divided by its weight; the best leaf is divided first.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dafh.groups.rules import Question, RuleTree
from dafh.tables.bins import Binning

Criterion = Literal["mean", "score"]

# Smallest leaf, in rows and as a share of all: a group of fewer people cannot be judged later.
_FEWEST_ROWS = 30
_SMALLEST_SHARE = 0.005
# Rows that a direction must have behind it to count for half: rare categories are not followed.
_SHRINKAGE = 100.0
# Smallest gain of a question, so that rounding does not ask one.
_LEAST_GAIN = 1e-9


def standardized_scores(
    criterion: Criterion,
    residual: NDArray[np.float64],
    curvature: NDArray[np.float64],
    columns: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Numbers by row that a tree is grown on, (n, q).

    Parameters
    ----------
    criterion : {"mean", "score"}
    residual, curvature : arrays of shape (n, m)
        Label minus probability, and its variance under the pooled classifier.
    columns : array of shape (n, p)
        What coefficients belong to, the intercept included; for "score".
    weight : array of shape (n,)
    """
    total = weight.sum()
    if criterion == "mean":
        return residual / np.sqrt(np.maximum(weight @ curvature / total, 1e-12))
    parts = []
    for output in range(residual.shape[1]):
        spread = (columns * (weight * curvature[:, output])[:, None]).T @ columns / total
        sizes, directions = np.linalg.eigh(spread)
        parts.append(residual[:, [output]] * (columns @ (directions / np.sqrt(sizes.clip(0) + _SHRINKAGE / total))))
    return np.hstack(parts)


def grow_tree(
    binning: Binning, codes: NDArray[Any], scores: NDArray[np.float64], weight: NDArray[np.float64], most_leaves: int
) -> RuleTree:
    """Divide the best leaf until there are `most_leaves`, or until no question is worth asking."""
    total = float(weight.sum())
    grower = _Grower(binning, codes, scores * weight[:, None], weight, max(_FEWEST_ROWS, _SMALLEST_SHARE * total))
    rows = [np.arange(len(codes))]
    sums = [grower.sums(rows[0])]
    best = [grower.best_question(sums[0])]
    questions: list[Question] = []
    while len(rows) < most_leaves:
        leaf = int(np.argmax([found.gain for found in best]))
        if best[leaf].gain <= _LEAST_GAIN:
            break
        question = Question(leaf, best[leaf].column, tuple(np.flatnonzero(best[leaf].yes).tolist()))
        yes = best[leaf].yes[codes[rows[leaf], question.column]]
        questions.append(question)
        rows.append(rows[leaf][~yes])
        rows[leaf] = rows[leaf][yes]
        if len(rows) == most_leaves:
            break  # The last leaves need no further question.
        sums[leaf], last = grower.divided_sums(sums[leaf], rows[leaf], rows[-1])
        sums.append(last)
        best[leaf] = grower.best_question(sums[leaf])
        best.append(grower.best_question(last))
    return RuleTree(binning, tuple(questions), np.arange(len(rows)))


@dataclass(frozen=True, eq=False)
class _Found:
    gain: float
    column: int
    yes: NDArray[np.bool_]


_NOTHING = _Found(0.0, -1, np.zeros(0, bool))


class _Grower:
    """Sums by column and bin, and the best question they allow."""

    def __init__(
        self,
        binning: Binning,
        codes: NDArray[Any],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64],
        smallest: float,
    ) -> None:
        self.columns = binning.columns
        self.first = np.concatenate([[0], np.cumsum(binning.n_bins)])
        places = (codes + self.first[:-1]).astype(np.int32)
        n_rows, n_columns = codes.shape
        starts = np.arange(0, n_rows * n_columns + 1, n_columns)
        self.one_hot = csr_array((np.ones(places.size), places.ravel(), starts), (n_rows, int(self.first[-1])))
        # The first of them counts rows: differences of sums then still tell which bins are empty.
        self.sums_of = np.column_stack([np.ones(n_rows), weight, scores])
        self.smallest = smallest
        self.column_of = np.repeat(np.arange(n_columns), binning.n_bins)
        self.of_number = np.array([not column.is_category for column in binning.columns], bool)[self.column_of]
        self.is_gap = np.zeros(len(self.column_of), bool)
        self.is_gap[self.first[1:] - 1] = True
        self.is_gap &= self.of_number

    def sums(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Number of rows, weight and scores by column and bin, (bins of all columns, 2 + q)."""
        return self.one_hot[rows].T @ self.sums_of[rows]

    def divided_sums(
        self, whole: NDArray[np.float64], one: NDArray[np.intp], other: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sums of the two parts of a leaf: those of the larger one are what is left, without a pass over its rows."""
        smaller = self.sums(min(one, other, key=len))
        larger = whole - smaller
        larger[larger[:, 0] == 0] = 0.0  # Empty bins hold nothing, not even rounding: cuts among them are equal.
        return (smaller, larger) if len(one) <= len(other) else (larger, smaller)

    def best_question(self, sums: NDArray[np.float64]) -> _Found:
        """Find the question that gains most, over all columns; of equal ones the first."""
        order = self._order(sums)
        # Sums over the first bins of each column: over all columns up to here, without the columns before.
        ordered = sums[order, 1:]
        below = np.cumsum(ordered, axis=0)
        start = self.first[:-1][self.column_of]
        below -= below[start] - ordered[start]
        whole = below[self.first[1] - 1]
        # Gaps come after all numbers, and where there are some, once more before them.
        gains = [self._gains(below, whole)]
        gaps = np.where(self.is_gap, sums[:, 1:].T, 0.0).T[self.first[1:] - 1]
        if gaps[:, 0].any():
            gains.append(np.where(self.is_gap, -np.inf, self._gains(below + gaps[self.column_of], whole)))
        highest = np.array([np.maximum.reduceat(each, self.first[:-1]) for each in gains]).T
        best, found = 0.0, (-1, 0)
        for place, gain in enumerate(highest.ravel().tolist()):
            if gain > best * (1 + 1e-12) + 1e-12:
                best, found = gain, divmod(place, len(gains))
        return _NOTHING if found[0] < 0 else self._found(best, found, sums, order, gains[found[1]])

    def _order(self, sums: NDArray[np.float64]) -> NDArray[np.intp]:
        """Order of the bins of each column.

        Numbers have theirs. Categories are ordered by their mean score: no other division into two sets is better, for
        one score; for several, by the direction in which they differ most. Those without rows come last.
        """
        along = np.arange(len(sums), dtype=np.float64)
        present = (sums[:, 0] > 0) & (sums[:, 1] > 0)
        along[~self.of_number] = np.inf
        chosen = np.flatnonzero(present & ~self.of_number)
        means = sums[chosen, 2:] / sums[chosen, 1:2]
        if means.shape[1] == 1:
            along[chosen] = means[:, 0]
        else:
            ends = np.searchsorted(chosen, self.first)
            for begin, end in pairwise(ends[np.append(np.diff(ends) > 0, True)].tolist()):
                along[chosen[begin:end]] = _main_direction(means[begin:end], sums[chosen[begin:end], 1])
        return np.lexsort((along, self.column_of))

    def _gains(self, below: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gain of dividing rows with these sums from all others; −∞ where one side is too small."""
        above = whole - below
        allowed = (below[:, 0] >= self.smallest) & (above[:, 0] >= self.smallest)
        return np.where(allowed, _worth(below) + _worth(above) - _worth(whole[None]), -np.inf)

    def _found(
        self,
        gain: float,
        found: tuple[int, int],
        sums: NDArray[np.float64],
        order: NDArray[np.intp],
        gains: NDArray[np.float64],
    ) -> _Found:
        """Answer of every bin of the column found; those without rows go by their order, or with the larger side."""
        column, gap_is_below = found
        inside = slice(self.first[column], self.first[column + 1])
        weight = sums[inside, 1]
        is_below = np.zeros(len(weight), bool)
        is_below[order[inside][: int(gains[inside].argmax()) + 1] - inside.start] = True
        numbers = not self.columns[column].is_category
        if numbers:
            is_below[-1] = bool(gap_is_below)
        larger = bool(weight[is_below].sum() >= weight[~is_below].sum())
        # Numbers without rows follow the cut already; gaps and categories without rows do not.
        unknown = weight <= 0
        if numbers:
            unknown[:-1] = False
        return _Found(gain, column, np.where(unknown, larger, is_below))


def _main_direction(means: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Place of some means (n, q) along the direction in which they differ most."""
    if len(means) < 3:  # Two differ in one direction only.
        return np.arange(len(means), dtype=np.float64)
    root = np.sqrt(weight)
    centered = (means - weight @ means / weight.sum()) * root[:, None]
    # Of n × n products, and not of n × q numbers: there are few categories and many scores.
    direction: NDArray[np.float64] = np.linalg.eigh(centered @ centered.T)[1][:, -1]
    return direction / root


def _worth(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared length of the sum of scores over the weight of the rows."""
    scores = sums[:, 1:]
    return np.einsum("nq,nq->n", scores, scores) / np.maximum(sums[:, 0], 1e-300)
