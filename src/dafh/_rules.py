"""Columns as numbers that can be put into words, and short rules made of them."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from dafh._text import clipped
from dafh._validation import LARGEST_NUMBER, to_days

# Of more categories than this in a column, only the frequent ones are described.
_MOST_CATEGORIES = 20
_RULE_DEPTH = 3
# A date is written to the day with up to this many digits, and to the second with more.
_DAY_DIGITS = 4
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


@dataclass(frozen=True)
class View:
    """One number per row, made from a column, and how to speak about it."""

    column: str
    category: str | None = None
    is_date: bool = False
    is_gap: bool = False

    @property
    def is_flag(self) -> bool:
        return self.category is not None or self.is_gap

    def holds(self, yes: bool) -> str:
        if self.is_gap:
            return f"{self.column} is {'missing' if yes else 'known'}"
        return f"{self.column} {'is' if yes else 'is not'} {clipped(self.category)}"

    def amount(self, value: float, digits: int = 3) -> str:
        if self.is_date:
            when = np.datetime64(round(float(value) * 86_400), "s")
            return str(when.astype("datetime64[D]")) if digits <= _DAY_DIGITS else str(when).replace("T", " ")
        if abs(value) >= 1e15:
            return f"{value:.{digits}g}"
        whole = len(f"{abs(value):.0f}")  # At least as many digits as stand before the point: 1,234, not 1.23e+03.
        return f"{value:,.{max(digits - whole, 0)}f}" if whole >= digits else f"{value:.{digits}g}"

    def bound(self, value: float, beyond: float) -> str:
        """Write a value with so many digits that it does not reach the next one beyond it."""
        for digits in range(3, 18):
            text = self.amount(value, digits)
            written = _read_back(text, self.is_date)
            if min(value, beyond) < written <= max(value, beyond) if beyond < value else value <= written < beyond:
                return text
        return text


@dataclass(frozen=True)
class Described:
    """A table as numbers, one column per view."""

    views: list[View]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, table: pd.DataFrame) -> "Described":
        views: list[View] = []
        values: list[NDArray[np.float64]] = []
        for position, name in enumerate(table.columns):
            for view, numbers in _views(clipped(name), table.iloc[:, position]):
                views.append(view)
                values.append(numbers)
        return cls(views, np.column_stack(values))

    @functools.cached_property
    def ranks(self) -> NDArray[np.float64]:
        """Position of each value among the different ones of its column, which single precision tells apart."""
        return np.column_stack([np.unique(column, return_inverse=True)[1] for column in self.values.T]).astype(float)

    @functools.cached_property
    def standardized(self) -> NDArray[np.float64]:
        spread = self.values.std(axis=0)
        return (self.values - self.values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _views(name: str, column: pd.Series) -> list[tuple[View, NDArray[np.float64]]]:
    gaps = column.isna().to_numpy()
    found = [(View(name, is_gap=True), gaps.astype(float))] if gaps.any() and not gaps.all() else []
    is_date = pd.api.types.is_datetime64_any_dtype(column.dtype)
    if is_date or pd.api.types.is_numeric_dtype(column.dtype):
        numbers = to_days(column) if is_date else column.astype(float)
        filled = numbers.where(numbers.abs() < LARGEST_NUMBER)
        filled = filled.fillna(filled.median() if filled.notna().any() else 0.0)
        return [(View(name, is_date=is_date), np.asarray(filled, np.float64)), *found]
    texts = column[~gaps].astype(str)
    frequent = texts.value_counts().index[:_MOST_CATEGORIES]
    return [*((View(name, str(v)), ((column.astype(str) == v) & ~gaps).to_numpy(float)) for v in frequent), *found]


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


def _read_back(text: str, is_date: bool) -> float:
    if is_date:
        return float(np.datetime64(text.replace(" ", "T"), "s").astype(np.int64)) / 86_400
    return float(text.replace(",", ""))
