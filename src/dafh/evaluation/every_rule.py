"""One limit of harm for every group of a size that two conditions describe, the worst of thousands included.

The class is fixed before losses are looked at: every column is cut into at most 8 bins, a condition is a half-line
(up to a cut, or above it), one category or all but one, and a rule is one condition or two. With M rules of at least
the asked size, each gets an exact limit at level / M, and all M limits hold together with probability 1 − level. No
search and no halves are needed, so that all rows count.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.bins import Binning
from dafh.evaluation.discovery import RowHarm
from dafh.exceptions import InputError
from dafh.stats import Differences

_BINS = 8
_ROWS_AT_A_TIME = 50_000


@dataclass(frozen=True)
class EveryRule:
    """A limit that holds for all rules of a class together."""

    share: float
    """Smallest share of the rows in a group."""
    n_rules: int
    """Rules of at least this size."""
    limit: float
    """Harm that no rule exceeds."""
    level: float


def limit_every_rule(table: pd.DataFrame, harm: RowHarm, *, share: float, level: float) -> EveryRule:
    """Limit the harm of every rule that at least a share of the rows satisfies.

    Rows must count alike, each as a person of its own; `level` is the probability that any of the limits is too low.
    """
    counted = np.unique(harm.size[harm.size > 0])
    if harm.person is not None or len(counted) > 1:
        raise InputError("A limit for every rule needs rows that count alike: leave persons and weights out.")
    kinds = np.unique(harm.difference)
    counts = count_rules(table, harm, kinds)
    counts = counts[counts.sum(axis=1) >= share * max((harm.size > 0).sum(), 1)]
    if not len(counts):
        raise InputError(f"No rule has {share:.0%} of the rows: lower every_rule.")
    differences = Differences(kinds, np.full(len(kinds), counted[0]), counts, harm.worst, harm.largest)
    return EveryRule(share, len(counts), _largest_limit(differences.distinct()[0], level / len(counts)), level)


def _largest_limit(differences: Differences, level: float) -> float:
    """Largest of the limits of all questions.

    A limit takes seven evaluations of a test, and whether it lies above another takes one: those with the largest
    normal approximations are computed, then those that one test shows to lie above these.
    """
    units = differences.counts.sum(axis=1) + 1
    approximate = differences.harm + 4 * np.sqrt((differences.spread + 1 / units) / units)
    largest = differences.take(np.argsort(-approximate)[:20]).upper(level).max()
    above = np.flatnonzero(differences.p_within(largest) > level)
    return float(np.append(differences.take(above).upper(level), largest).max())


def count_rules(table: pd.DataFrame, harm: RowHarm, kinds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Number of rows with each difference, for every rule of one condition or two, (M, V)."""
    binning = Binning.learn(table, most=_BINS, readable=True)
    first = np.concatenate([[0], np.cumsum(binning.n_bins)]).astype(np.intp)
    allowed = np.column_stack(list(_conditions(binning)))
    pairs = np.zeros((len(kinds), first[-1], first[-1]))
    for start in range(0, len(table), _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        codes = binning.codes(table.iloc[rows]) + first[:-1]
        one_hot = np.zeros((len(codes), first[-1]), np.float32)
        np.put_along_axis(one_hot, codes, 1.0, axis=1)
        kind, is_counted = np.searchsorted(kinds, harm.difference[rows]), harm.size[rows] > 0
        for number in range(len(kinds)):
            # Whole numbers below 2²⁴ are exact in single precision.
            mine = one_hot[is_counted & (kind == number)]
            pairs[number] += mine.T @ mine
    both = np.stack([allowed.T @ pair @ allowed for pair in pairs], axis=-1)
    return both[np.triu_indices(allowed.shape[1])]


def _conditions(binning: Binning) -> Iterator[NDArray[np.float64]]:
    """Bins that each condition allows, of all columns one after the other."""
    first = np.concatenate([[0], np.cumsum(binning.n_bins)])
    for number, column in enumerate(binning.columns):
        place = np.arange(column.n_bins)
        if column.is_category:
            sides = [place == code for code in range(len(column.categories))]
            sides += [~side for side in sides] if len(sides) > 2 else []
        else:
            # The last bin holds missing values.
            sides = [(place <= cut) & (place < column.n_bins - 1) for cut in range(column.n_bins - 2)]
            sides += [~side & (place < column.n_bins - 1) for side in sides]
        for side in sides:
            allowed = np.zeros(first[-1])
            allowed[first[number] : first[number + 1]] = side
            yield allowed
