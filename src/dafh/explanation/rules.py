"""Rules for groups: the model's own, or a short one that is found and measured."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.columns.bins import Binning
from dafh.columns.column import Column
from dafh.columns.kinds import kind_of
from dafh.regions.conditions import Condition, Region
from dafh.regions.search import Candidate, RegionSearch

# With conditions on more columns than this, a rule is no longer read as one sentence. An interval takes two steps.
_MOST_STEPS = 3
# A further condition must come this much of the way from "all rows" to a perfect rule, in F1.
_WORTH_A_CONDITION = 0.1
# With fewer rows than this, half of them are too few to measure a rule on.
_FEWEST_ROWS = 40


@dataclass(frozen=True)
class Rule:
    """A rule that describes a group: exactly where it is the model's own, else approximately.

    Precision and recall of a rule that was found are measured on rows that were not used to find it.
    """

    text: str
    precision: float
    """Share of the rows that the rule matches which are in the group."""
    recall: float
    """Share of the group's rows that the rule matches."""
    exact: bool = False
    """Whether the model itself divides rows by this rule; precision and recall are then 1."""


def own_rule(final: Any, group: int) -> Rule | None:
    """Rule by which a fitted model divides rows; None if it has no rules, and for a group of all rows."""
    exceptions = getattr(final, "exceptions_", None)
    if exceptions is None or exceptions.n_groups == 1 or group >= exceptions.n_groups:
        return None
    return Rule(exceptions.rules[group], precision=1.0, recall=1.0, exact=True)


def find_rule(table: pd.DataFrame, inside: NDArray[np.bool_], rng: np.random.Generator) -> Rule | None:
    """Search for the region that is most like a group on half of the rows, and measure it on the other half.

    Returns None if there are too few rows, or if no region is better than calling all rows members.
    """
    n_rows = len(inside)
    if n_rows < _FEWEST_ROWS or inside.all() or not inside.any():
        return None
    order = rng.permutation(n_rows)
    fitting, measuring = order[: n_rows // 2], order[n_rows // 2 :]
    if len(np.unique(inside[fitting])) < 2:
        return None
    binning = _bins(table)
    codes = binning.codes(table)
    found = _shortest_region(binning, codes[fitting], inside[fitting])
    if found is None:
        return None
    matched, member = found.rows(codes[measuring]), inside[measuring]
    # Not `Candidate.region`, which takes columns of the same name for one column.
    conditions = [Condition.of_bins(binning.columns[column], bins) for column, bins in found.bins.items()]
    return Rule(
        str(Region(tuple(conditions))),
        precision=float(member[matched].mean()) if matched.any() else 0.0,
        recall=float(matched[member].mean()) if member.any() else 0.0,
    )


def _bins(table: pd.DataFrame) -> Binning:
    """Bins of every column; true and false are categories: "married is True", not "married is above 0"."""
    columns = []
    for position in range(table.shape[1]):
        kind = kind_of(table.iloc[:, position])
        columns.append(Column.learn(table.iloc[:, position], "category" if kind == "flag" else kind, readable=True))
    return Binning(tuple(columns))


def _shortest_region(binning: Binning, codes: NDArray[Any], inside: NDArray[np.bool_]) -> Candidate | None:
    """Return the region with the fewest conditions whose F1 is close to the best; None if that is all rows."""
    all_rows = 2 * inside.mean() / (1 + inside.mean())
    values = np.column_stack([np.ones(len(inside)), inside])
    search = RegionSearch(binning, codes, values, _f1, max(len(inside) // 50, 5))
    found = search.best(_MOST_STEPS)
    best = max((one.score for one in found), default=0.0)
    worth = _WORTH_A_CONDITION * (1 - all_rows)
    if best <= all_rows + worth:
        return None
    close = (one for one in found if one.score >= best - worth)
    return min(close, key=lambda one: (len(one.bins), -one.score))


def _f1(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1 of regions, from the numbers of rows and of members."""
    return 2 * inside[:, 1] / (inside[:, 0] + inside[:, 1] + outside[:, 1])
