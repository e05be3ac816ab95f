"""Grow a tree on the errors of the pooled classifier: where they lean one way, or where the effect of a column changes.

Two criteria compete. "mean" looks at the residual alone, and finds rows for which the pooled classifier is too high or
too low. "score" looks at the residual times every column, and finds rows for which coefficients should be others: an
additive pooled classifier leaves no mean residual in any column, and only this one can divide its rows.

Both are one thing to the tree: numbers by row with mean 0 and variance 1 under a pooled classifier that is right. A
leaf is worth the squared length of their sum, divided by its weight; the best leaf is divided first.
"""

from dataclasses import dataclass
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
    best = [grower.best_question(rows[0])]
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
        # The last leaves need no further question.
        done = len(rows) == most_leaves
        best[leaf] = _NOTHING if done else grower.best_question(rows[leaf])
        best.append(_NOTHING if done else grower.best_question(rows[-1]))
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
        self.sums_of = np.column_stack([weight, scores])
        self.smallest = smallest

    def best_question(self, rows: NDArray[np.intp]) -> _Found:
        """Find the question that gains most, over all columns."""
        sums = self.one_hot[rows].T @ self.sums_of[rows]
        best = _NOTHING
        for column in range(len(self.columns)):
            part = sums[self.first[column] : self.first[column + 1]]
            for order in self._orders(column, part):
                found = self._best_cut(column, part, order)
                if found.gain > best.gain * (1 + 1e-12) + 1e-12:
                    best = found
        return best

    def _orders(self, column: int, part: NDArray[np.float64]) -> list[NDArray[np.intp]]:
        """Orders of the bins with rows that may be cut in two.

        Numbers have theirs, with gaps at either end. Categories are ordered by their mean score: no other division into
        two sets is better, for one score; for several, by the direction in which they differ most.
        """
        present = np.flatnonzero(part[:, 0] > 0)
        if self.columns[column].is_category:
            if len(present) < 2:
                return []
            means = part[present, 1:] / part[present, :1]
            if means.shape[1] > 1:
                centered = (means - np.average(means, axis=0, weights=part[present, 0])) * np.sqrt(part[present, :1])
                means = means @ np.linalg.svd(centered, full_matrices=False)[2][:1].T
            return [present[np.argsort(means[:, 0], kind="stable")]]
        gaps = len(part) - 1
        if present[-1:] == gaps:
            return [present, np.concatenate([[gaps], present[:-1]])]
        return [present]

    def _best_cut(self, column: int, part: NDArray[np.float64], order: NDArray[np.intp]) -> _Found:
        below = np.cumsum(part[order], axis=0)
        whole, below = below[-1], below[:-1]
        above = whole - below
        allowed = (below[:, 0] >= self.smallest) & (above[:, 0] >= self.smallest)
        if not allowed.any():
            return _NOTHING
        gains = np.where(allowed, _worth(below) + _worth(above) - _worth(whole[None]), -np.inf)
        cut = int(gains.argmax())
        return _Found(float(gains[cut]), column, self._answers(column, part, order, cut))

    def _answers(self, column: int, part: NDArray[np.float64], order: NDArray[np.intp], cut: int) -> NDArray[np.bool_]:
        """Answer of every bin, also of those that no row here falls into: by their order, or with the larger side."""
        below, above = order[: cut + 1], order[cut + 1 :]
        larger = bool(part[below, 0].sum() >= part[above, 0].sum())
        yes = np.full(len(part), larger)
        if not self.columns[column].is_category:
            numbers = below[below < len(part) - 1]
            # Gaps alone may be on one side: all numbers are then on the other.
            yes[:-1] = np.arange(len(part) - 1) <= (numbers.max() if len(numbers) else -1)
        yes[below], yes[above] = True, False
        return yes


def _worth(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared length of the sum of scores over the weight of the rows."""
    return (sums[:, 1:] ** 2).sum(axis=1) / np.maximum(sums[:, 0], 1e-300)
