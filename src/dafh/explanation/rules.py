"""Rules for groups: the model's own, or a short one that is found and measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from dafh.regions.conditions import Condition
from dafh.tables.column import Column
from dafh.tables.values import kind_of

# With more conditions than this, a rule is no longer read as one sentence.
_MOST_LEVELS = 3
# A rule may get one level deeper if that raises its F1 by more than this.
_WORTH_A_LEVEL = 0.04
# With fewer rows than this, half of them are too few to measure a rule on.
_FEWEST_ROWS = 40

_Path = tuple[tuple[int, bool, float], ...]
"""Steps down a tree: column, whether it lies above the threshold, threshold."""


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
    """Fit a shallow tree for a group against all other rows on half of the rows, and measure it on the other half.

    Returns None if there are too few rows, or if no tree is better than calling all rows, or none, members.
    """
    n_rows = len(inside)
    if n_rows < _FEWEST_ROWS or inside.all() or not inside.any():
        return None
    order = rng.permutation(n_rows)
    fitting, measuring = order[: n_rows // 2], order[n_rows // 2 :]
    if len(np.unique(inside[fitting])) < 2:
        return None
    columns, places, values = [], [], []
    for position in range(table.shape[1]):
        # True and false are categories: "married is True", not "married is above 0".
        kind = kind_of(table.iloc[:, position])
        column = Column.learn(table.iloc[:, position], "category" if kind == "flag" else kind)
        codes = column.codes(table.iloc[:, position])
        place = np.arange(column.n_bins)
        if column.is_category:  # These have no order but that by their share of members.
            members, rows = (
                np.bincount(codes[some], minlength=column.n_bins) for some in (fitting[inside[fitting]], fitting)
            )
            place[np.argsort(members / np.maximum(rows, 1), kind="stable")] = np.arange(column.n_bins)
        columns.append(column)
        places.append(place)
        values.append(place[codes])
    ordered = np.column_stack(values)
    tree = _shortest_tree(ordered[fitting], inside[fitting])
    paths = [] if tree is None else _paths(tree.tree_)
    if paths in ([], [()]):
        return None
    matched, member = tree.predict(ordered[measuring]), inside[measuring]
    return Rule(
        "; or ".join(_condition(columns, places, path) for path in paths),
        precision=float(member[matched].mean()) if matched.any() else 0.0,
        recall=float(matched[member].mean()) if member.any() else 0.0,
    )


def _shortest_tree(values: NDArray[np.intp], inside: NDArray[np.bool_]) -> Any:
    """Return the shallowest tree whose F1 is close to that of the best tree, or None if all have an F1 of 0."""
    trees: list[tuple[int, float, int, Any]] = []
    for depth in range(1, _MOST_LEVELS + 1):
        # Unweighted trees favour precision, balanced ones recall. Which gives the better F1 depends on the group.
        for balance in (None, "balanced"):
            tree = DecisionTreeClassifier(
                max_depth=depth, min_samples_leaf=max(len(inside) // 50, 5), class_weight=balance, random_state=0
            ).fit(values, inside)
            trees.append((depth, -f1_score(inside, tree.predict(values), zero_division=0.0), len(trees), tree))
    enough = min(score for _, score, _, _ in trees) + _WORTH_A_LEVEL
    good = [entry for entry in trees if entry[1] <= enough and entry[1] < 0]
    return min(good)[-1] if good else None


def _paths(tree: Any, node: int = 0) -> list[_Path]:
    """Return the paths from a node to the leaves that predict the group.

    A path ends early if all leaves below predict the group: the text needs no further conditions.
    """
    if tree.children_left[node] < 0:
        return [()] if tree.value[node, 0].argmax() == 1 else []
    column, threshold = int(tree.feature[node]), float(tree.threshold[node])
    below, above = (_paths(tree, int(child[node])) for child in (tree.children_left, tree.children_right))
    if below == above == [()]:
        return [()]
    return [
        *(((column, False, threshold), *path) for path in below),
        *(((column, True, threshold), *path) for path in above),
    ]


def _condition(columns: Sequence[Column], places: Sequence[NDArray[np.intp]], path: _Path) -> str:
    """Put a path into words; all that is asked about a column is said once."""
    allowed: dict[int, NDArray[np.bool_]] = {}
    for column, above, threshold in path:
        kept = (places[column] > threshold) == above
        allowed[column] = allowed.get(column, np.ones(len(kept), bool)) & kept
    for column, bins in allowed.items():
        if not columns[column].is_category:
            bins[-1] &= columns[column].has_gaps  # Nothing is said about gaps where there are none.
        elif not columns[column].has_other:
            # No row is in the last bin, of categories never seen: it decides which of two lists is said, the shorter.
            bins[-1] = 2 * bins[:-1].sum() > len(bins) - 1
    return " and ".join(str(Condition.of_bins(columns[column], bins)) for column, bins in allowed.items())
