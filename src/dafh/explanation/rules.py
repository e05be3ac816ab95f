"""A short rule for a group, and how well it describes it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from dafh.explanation.views import Described, View

_RULE_DEPTH = 3
# Gain in F1 for which a rule may get one condition longer.
_WORTH_A_LEVEL = 0.04


@dataclass(frozen=True)
class Rule:
    """A short description of a group, and how well it describes."""

    text: str
    precision: float
    """Share of the rows it names that are in the group, on rows that did not make the rule."""
    recall: float
    """Share of the group that it names, on the same rows."""


def find_rule(seen: Described, inside: NDArray[np.bool_], rng: np.random.Generator) -> Rule | None:
    """Shallow tree for one group against the rest, made on one half of the rows and measured on the other."""
    n_rows = len(inside)
    if n_rows < 40 or inside.all() or not inside.any():
        return None
    order = rng.permutation(n_rows)
    makes, measures = order[: n_rows // 2], order[n_rows // 2 :]
    if len(np.unique(inside[makes])) < 2:
        return None
    ranks = seen.ranks
    tree = _shortest_tree(ranks[makes], inside[makes])
    paths = [] if tree is None else _paths(tree.tree_, 0, ())
    if not paths:
        return None
    named = tree.predict(ranks[measures])
    truly = inside[measures]
    return Rule(
        "; or ".join(_condition(seen, path) for path in paths),
        float(truly[named].mean()) if named.any() else 0.0,
        float(named[truly].mean()) if truly.any() else 0.0,
    )


def _shortest_tree(values: NDArray[np.float64], inside: NDArray[np.bool_]) -> Any:
    """Return the shallowest tree that is nearly as good as the best of them: a word less is worth a row more.

    Trees that count all rows alike prefer to be right about few, those that balance the two sides to miss nobody.
    """
    trees: list[tuple[int, float, int, Any]] = []
    for depth in range(1, _RULE_DEPTH + 1):
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
    """Ways from the root to the parts of a tree that name the group; where all leaves below do, the way ends there."""
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
    """Words for a way through the tree; of several bounds on one column only the tightest are said."""
    bounds: dict[int, dict[bool, float]] = {}
    for position, above, threshold in path:  # Later steps are tighter.
        bounds.setdefault(position, {})[above] = threshold
    return " and ".join(_bounded(seen.views[p], seen.values[:, p], limits) for p, limits in bounds.items())


def _bounded(view: View, values: NDArray[np.float64], limits: dict[bool, float]) -> str:
    """Say between which values of a column rows lie, by values that occur and not by what lies between them."""
    if view.is_flag:
        return view.holds(True in limits)
    steps = np.unique(values)  # Limits are positions among these.
    low = high = ""
    if True in limits:
        first = int(np.floor(limits[True])) + 1
        low = view.bound(steps[first], steps[first - 1])
    if False in limits:
        last = int(np.floor(limits[False]))
        high = view.bound(steps[last], steps[last + 1])
    if not low:
        return f"{view.column} up to {high}"
    if not high:
        return f"{view.column} from {low}"
    return f"{view.column} {low}" + (f" to {high}" if high != low else "")
