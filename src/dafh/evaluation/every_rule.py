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

from dafh.evaluation.discovery import RowHarm
from dafh.exceptions import InputError
from dafh.regions.conditions import Condition, Region
from dafh.stats import Differences
from dafh.tables.bins import Binning

_BINS = 8
_ROWS_AT_A_TIME = 50_000
_TOP = 10


@dataclass(frozen=True, eq=False)
class EveryRule:
    """A limit that holds for all rules of a class together."""

    share: float
    """Smallest share of the rows in a group."""
    n_rules: int
    """Rules of at least this size."""
    limit: float
    """Harm that no rule exceeds."""
    worst: pd.DataFrame
    """Rules with the largest limits: rule, rows, harm and limit."""
    level: float


def limit_every_rule(
    table: pd.DataFrame, harm: RowHarm, *, share: float = 0.05, level: float = 0.05, random_state: int = 0
) -> EveryRule:
    """Limit the harm of every rule that at least a share of the rows satisfies.

    Parameters
    ----------
    table : data frame
    harm : RowHarm
        Rows must count alike, each as a person of its own.
    share : float
    level : float
        Probability that any of the limits is too low.
    """
    counted = np.unique(harm.size[harm.size > 0])
    if harm.person is not None or len(counted) > 1:
        raise InputError("A limit for every rule needs rows that count alike: leave persons and weights out.")
    kinds = np.unique(harm.difference)
    members, counts = RuleClass.of(table, random_state).counts(table, harm, kinds)
    large = counts.sum(axis=1) >= share * max((harm.size > 0).sum(), 1)
    members, counts = [members[i] for i in np.flatnonzero(large)], counts[large]
    if not members:
        raise InputError(f"No rule has {share:.0%} of the rows: lower every_rule.")
    differences = Differences(kinds, np.full(len(kinds), counted[0]), counts, harm.worst, harm.largest)
    distinct, place = differences.distinct()
    each = level / len(members)
    limits = _largest_limits(distinct, each)
    order = np.argsort(-limits[place], kind="stable")[:_TOP]
    worst = pd.DataFrame(
        {
            "rule": [str(Region.of(members[i])) for i in order],
            "rows": counts[order].sum(axis=1).astype(np.int64),
            "harm": differences.harm[order],
            "limit": limits[place][order],
        }
    )
    return EveryRule(share, len(members), float(limits.max()), worst, level)


def _largest_limits(differences: Differences, level: float) -> NDArray[np.float64]:
    """Limits of the questions with the largest ones; −∞ where a question's is surely below those.

    A limit takes seven evaluations of a test, and whether it lies below another takes one: those with the largest
    normal approximations are computed, then those that one test does not show to lie below the lowest of them.
    """
    units = differences.counts.sum(axis=1) + 1
    approximate = differences.harm + 4 * np.sqrt((differences.spread + 1 / units) / units)
    first = np.argsort(-approximate, kind="stable")[: 2 * _TOP]
    limits = np.full(len(units), -np.inf)
    limits[first] = differences.take(first).upper(level)
    rest = np.setdiff1d(np.arange(len(units)), first)
    if len(rest):
        bound = float(np.sort(limits[first])[::-1][min(_TOP, len(first)) - 1])
        above = rest[differences.take(rest).p_within(bound) > level]
        if len(above):
            limits[above] = differences.take(above).upper(level)
    return limits


@dataclass(frozen=True)
class RuleClass:
    """All conditions, by bins."""

    binning: Binning

    @classmethod
    def of(cls, table: pd.DataFrame, seed: int) -> "RuleClass":
        """Cut the columns of a table."""
        n = min(len(table), 200_000)
        sample = np.sort(np.random.default_rng(seed).permutation(len(table))[:n])
        return cls(Binning.learn(table.iloc[sample], most=_BINS, readable=True))

    def conditions(self) -> Iterator[tuple[int, Condition, NDArray[np.bool_]]]:
        """Column, condition and the bins it allows."""
        for number, column in enumerate(self.binning.columns):
            n_bins = column.n_bins
            if column.is_category:
                sides = [np.arange(n_bins) == code for code in range(len(column.categories))]
                sides += [~side for side in sides] if len(sides) > 2 else []
            else:
                place = np.arange(n_bins)
                below = [(place <= cut) & (place < n_bins - 1) for cut in range(n_bins - 2)]
                sides = [*below, *[~side & (place < n_bins - 1) for side in below]]
            for side in sides:
                yield number, Condition.of_bins(column, side), side

    def counts(
        self, table: pd.DataFrame, harm: RowHarm, kinds: NDArray[np.float64]
    ) -> tuple[list[list[Condition]], NDArray[np.float64]]:
        """Conditions of every rule, and the number of its rows with each difference, (M, V)."""
        every = list(self.conditions())
        first = np.concatenate([[0], np.cumsum(self.binning.n_bins)])
        allowed = np.zeros((int(first[-1]), len(every)))
        for place, (number, _, side) in enumerate(every):
            allowed[first[number] : first[number + 1], place] = side
        pairs = np.zeros((len(kinds), int(first[-1]), int(first[-1])))
        for start in range(0, len(table), _ROWS_AT_A_TIME):
            some = np.arange(start, min(start + _ROWS_AT_A_TIME, len(table)))
            codes = self.binning.codes(table.iloc[some]) + first[:-1]
            one_hot = np.zeros((len(some), int(first[-1])), np.float32)
            np.put_along_axis(one_hot, codes.astype(np.intp), 1.0, axis=1)
            kind, is_counted = np.searchsorted(kinds, harm.difference[some]), harm.size[some] > 0
            for number in range(len(kinds)):
                # Whole numbers below 2²⁴ are exact in single precision.
                mine = one_hot[is_counted & (kind == number)]
                pairs[number] += mine.T @ mine
        both = np.stack([allowed.T @ table @ allowed for table in pairs], axis=-1)
        left, right = np.triu_indices(len(every))
        rules = [[every[i][1]] if i == j else [every[i][1], every[j][1]] for i, j in zip(left, right, strict=True)]
        return rules, both[left, right]
