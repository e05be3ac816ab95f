"""Rules for groups: the model's own, or a short one that is found and measured."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from dafh.explanation.views import Described, View

# With more conditions than this, a rule is no longer read as one sentence.
_MOST_LEVELS = 3
# A rule may get one level deeper if that raises its F1 by more than this.
_WORTH_A_LEVEL = 0.04
# With fewer rows than this, half of them are too few to measure a rule on.
_FEWEST_ROWS = 40


@dataclass(frozen=True)
class Rule:
    """A rule that describes a group: exactly where it is the model's own, else approximately.

    Precision and recall of a rule that was found are measured on rows that were not used to find it.

    Examples
    --------
    >>> rule = Rule("age is 30 or less and job is cook", precision=0.9, recall=0.8)
    >>> rule.text
    'age is 30 or less and job is cook'
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
    rules = getattr(final, "rules_", None)
    if rules is None or rules.n_groups == 1 or group >= rules.n_groups:
        return None
    return Rule(rules.tree.rule(group), precision=1.0, recall=1.0, exact=True)


def find_rule(seen: Described, inside: NDArray[np.bool_], rng: np.random.Generator) -> Rule | None:
    """Fit a shallow tree for a group against all other rows on half of the rows, and measure it on the other half.

    Returns None if there are too few rows, or if no tree is better than calling all rows, or none, members.
    """
    n_rows = len(inside)
    if not seen.views or n_rows < _FEWEST_ROWS or inside.all() or not inside.any():
        return None
    order = rng.permutation(n_rows)
    fitting, measuring = order[: n_rows // 2], order[n_rows // 2 :]
    if len(np.unique(inside[fitting])) < 2:
        return None
    # scikit-learn's trees compare in single precision, which cannot tell apart large numbers that are close. Ranks of
    # the values can be told apart.
    ranks = seen.ranks
    tree = _shortest_tree(ranks[fitting], inside[fitting])
    paths = [] if tree is None else _paths(tree.tree_, 0, ())
    if not paths:
        return None
    matched = tree.predict(ranks[measuring])
    member = inside[measuring]
    return Rule(
        "; or ".join(_condition(seen, path) for path in paths),
        precision=float(member[matched].mean()) if matched.any() else 0.0,
        recall=float(matched[member].mean()) if member.any() else 0.0,
    )


def _shortest_tree(values: NDArray[np.float64], inside: NDArray[np.bool_]) -> Any:
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


_Step = tuple[int, bool, float]
"""View, whether it lies above the threshold, threshold."""


def _paths(tree: Any, node: int, path: tuple[_Step, ...]) -> list[tuple[_Step, ...]]:
    """Return the paths from the root to the leaves that predict the group.

    A path ends early at a node if all leaves below it predict the group: the text needs no further conditions.
    """
    answers = _answers(tree, node)
    if answers == {False}:
        return []
    if answers == {True}:
        return [path] if path else []
    view, threshold = int(tree.feature[node]), float(tree.threshold[node])
    return [
        *_paths(tree, int(tree.children_left[node]), (*path, (view, False, threshold))),
        *_paths(tree, int(tree.children_right[node]), (*path, (view, True, threshold))),
    ]


def _answers(tree: Any, node: int) -> set[bool]:
    if tree.children_left[node] < 0:
        return {bool(tree.value[node, 0].argmax() == 1)}
    return _answers(tree, int(tree.children_left[node])) | _answers(tree, int(tree.children_right[node]))


def _condition(seen: Described, path: tuple[_Step, ...]) -> str:
    """Put a path into words; of several bounds on a column, only the tightest are mentioned."""
    bounds: dict[int, dict[bool, float]] = {}
    for position, above, threshold in path:  # Going down a tree, bounds in one direction only get tighter.
        bounds.setdefault(position, {})[above] = threshold
    return " and ".join(_bounded(seen.views[p], seen.values[:, p], limits) for p, limits in bounds.items())


def _bounded(view: View, values: NDArray[np.float64], limits: dict[bool, float]) -> str:
    """Put the bounds of a column into words, with values that occur in the data instead of the tree's midpoints."""
    if view.is_flag:
        return view.holds(True in limits)
    steps = np.unique(values)  # The tree was fitted on ranks, so its thresholds are positions among these.
    low = high = ""
    if True in limits:
        first = int(np.floor(limits[True])) + 1
        low = view.bound(steps[first], steps[first - 1])
    if False in limits:
        last = int(np.floor(limits[False]))
        high = view.bound(steps[last], steps[last + 1])
    if low and high:
        return f"{view.column} is {low}" if low == high else f"{view.column} is between {low} and {high}"
    if high:
        return f"{view.column} is {high} or {'earlier' if view.is_date else 'less'}"
    return f"{view.column} is {low} or {'later' if view.is_date else 'more'}"
