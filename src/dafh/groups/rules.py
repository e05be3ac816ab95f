"""Groups as rules: a small tree of questions about the columns, and the group of each of its leaves."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dafh.tables.bins import Binning
from dafh.tables.column import Column
from dafh.text import name_in_condition

# A condition holds all of a column's name that fits into a few lines: two columns may differ in their last word only.
_WIDTH = 200


@dataclass(frozen=True)
class Question:
    """A question that divides a leaf in two: whether the bin of a column is one of these."""

    leaf: int
    """Leaf that is divided. Rows that answer yes stay in it, the others go to a new leaf, numbered after all others."""
    column: int
    bins: tuple[int, ...]
    """Bins whose answer is yes, sorted."""


@dataclass(frozen=True, eq=False)
class RuleTree:
    """Questions in the order in which leaves were divided, and the group of each leaf.

    The first L − 1 questions are the tree with L leaves. A group may hold several leaves: its rule is then "this, or
    that".
    """

    binning: Binning
    questions: tuple[Question, ...]
    group: NDArray[np.intp]
    """Group of each leaf, (leaves,)."""

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.questions) + 1

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group.max()) + 1

    def leaves(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        """Leaf of each row."""
        leaf = np.zeros(len(codes), np.intp)
        for number, question in enumerate(self.questions, 1):
            asked = np.flatnonzero(leaf == question.leaf)
            leaf[asked[~self._yes(question)[codes[asked, question.column]]]] = number
        return leaf

    def assign(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        """Group of each row."""
        return self.group[self.leaves(codes)]

    def answers(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Answer of each row to every question, (n, questions), also to those it would never be asked."""
        answers = np.empty((len(codes), len(self.questions)), bool)
        for number, question in enumerate(self.questions):
            answers[:, number] = self._yes(question)[codes[:, question.column]]
        return answers

    def _yes(self, question: Question) -> NDArray[np.bool_]:
        """Answer of each bin."""
        yes = np.zeros(self.binning.columns[question.column].n_bins, bool)
        yes[list(question.bins)] = True
        return yes

    def paths(self) -> list[tuple[tuple[int, bool], ...]]:
        """For each leaf, the questions on the way to it with their answers."""
        paths: list[tuple[tuple[int, bool], ...]] = [()]
        for number, question in enumerate(self.questions):
            before = paths[question.leaf]
            paths[question.leaf] = (*before, (number, True))
            paths.append((*before, (number, False)))
        return paths

    def parents(self, n_leaves: int) -> NDArray[np.intp]:
        """For each leaf, the leaf of the tree with only `n_leaves` leaves that it is a part of."""
        part = np.arange(self.n_leaves)
        for number in range(n_leaves, self.n_leaves):
            part[number] = part[self.questions[number - 1].leaf]
        return part

    def cut_back(self, n_leaves: int, group: NDArray[np.intp]) -> "RuleTree":
        """Return the tree with fewer leaves, and the groups of those."""
        return replace(self, questions=self.questions[: n_leaves - 1], group=group)

    # ---- in words ----

    def conditions(self, group: int) -> list[str]:
        """Conditions of a group, one for each part of the tree; a row belongs to the group if one of them holds."""
        return [self._condition(path) for path in self._whole_parts(group)]

    def _whole_parts(self, group: int) -> list[tuple[tuple[int, bool], ...]]:
        """Ways to the parts of the tree that belong to a group as a whole: what divides them need not be said."""
        ways = [path for path, k in zip(self.paths(), self.group, strict=True) if k == group]
        # Two ways that differ only in the last answer are one way without that question; from the longest on.
        for way in sorted(ways, key=len, reverse=True):
            while way in ways and way:
                *before, (number, yes) = way
                sister = (*before, (number, not yes))
                if sister not in ways:
                    break
                ways = [other for other in ways if other not in (way, sister)]
                way = tuple(before)
                ways.append(way)
        return ways

    def rule(self, group: int) -> str:
        """Write the rule of a group as one text."""
        return "; or ".join(self.conditions(group))

    def allowed_bins(self, group: int) -> list[dict[int, NDArray[np.bool_]]]:
        """Bins that rows of a group can have, by column: for each of its conditions, of the columns it is about."""
        return [self._allowed(path) for path in self._whole_parts(group)]

    def _allowed(self, path: Iterable[tuple[int, bool]]) -> dict[int, NDArray[np.bool_]]:
        allowed: dict[int, NDArray[np.bool_]] = {}
        for number, yes in path:
            question = self.questions[number]
            answer = self._yes(question)
            kept = answer if yes else ~answer
            allowed[question.column] = allowed[question.column] & kept if question.column in allowed else kept
        return allowed

    def _condition(self, path: Iterable[tuple[int, bool]]) -> str:
        """Put a path into words; all that is asked about a column is said once."""
        allowed = self._allowed(path)
        parts = [column_condition(self.binning.columns[column], bins) for column, bins in allowed.items()]
        return " and ".join(parts) or "all rows"


def column_condition(column: Column, allowed: NDArray[np.bool_]) -> str:
    """Say which bins of a column are meant.

    Examples
    --------
    >>> age = Column("age", "number", (24.0, 40.0), (20.0, 30.0, 50.0), has_gaps=True)
    >>> column_condition(age, np.array([True, True, False, False]))
    'age is 40 or less'
    >>> column_condition(age, np.array([False, True, True, True]))
    'age is above 24 or missing'
    """
    name = name_in_condition(column.name, _WIDTH)
    if column.is_category:
        return _category_condition(column, name, allowed)
    inside = np.flatnonzero(allowed[:-1])
    missing = bool(allowed[-1])
    if not len(inside):
        return f"{name} is missing"
    low = column.write(column.cuts[inside[0] - 1]) if inside[0] > 0 else None
    high = column.write(column.cuts[inside[-1]]) if inside[-1] < len(column.cuts) else None
    if low is None and high is None:
        return f"{name} is {'anything' if missing else 'not missing'}"
    words = f"{high} or less" if low is None else f"above {low}" if high is None else f"above {low}, up to {high}"
    return f"{name} is {words}{' or missing' if missing else ''}"


def _category_condition(column: Column, name: str, allowed: NDArray[np.bool_]) -> str:
    """Name the categories that are meant; where those that training never saw are meant too, the ones that are not."""
    inside, outside = ([column.words(int(code)) for code in np.flatnonzero(bins[:-1])] for bins in (allowed, ~allowed))
    if allowed[-1]:
        return f"{name} is not {_any_of(outside)}" if outside else f"{name} is anything"
    return f"{name} is {_any_of(inside)}"


def _any_of(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
