"""Read a printed rule back, and ask raw rows for it: a second opinion on `RuleTree.assign`, made from words alone."""

import ast
import re

import numpy as np
import pandas as pd

from dafh.tables.values import category_name

QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
NUMBER = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?|-?\d[\d,]*(?<!,)(?:\.\d+)?(?:e[+-]?\d+)?"
RANGE = re.compile(rf"above ({NUMBER}), up to ({NUMBER})|above ({NUMBER})|({NUMBER}) or less|(missing)|(not missing)")


class Reader:
    """A rule as a text, read from its beginning to its end; `known` has the categories of training by column."""

    def __init__(self, text, table, known):
        self.left, self.table, self.known = text, table, known

    def take(self, *choices):
        """Take the first of some texts that the rest begins with; None if there is none."""
        found = next((choice for choice in choices if self.left.startswith(choice)), None)
        self.left = self.left[len(found or "") :]
        return found

    def name(self, *ends):
        """Take a name, quoted or up to where it ends."""
        if quoted := QUOTED.match(self.left):
            return ast.literal_eval(self.take(quoted[0]))
        return self.take(self.left[: min([self.left.find(end) for end in ends if end in self.left] or [None])])

    def rule(self):
        """Which rows the rule holds for: one of its conditions does."""
        found = self.condition()
        while self.take("; or "):
            found = found | self.condition()
        assert not self.left, self.left
        return found

    def condition(self):
        if self.take("all rows"):
            return np.ones(len(self.table), bool)
        found = self.column()
        while self.take(" and "):
            found = found & self.column()
        return found

    def column(self):
        name = self.name(" is ")
        assert self.take(" is ")
        if self.take("anything"):
            return np.ones(len(self.table), bool)
        values = self.table[name]
        return self.categories(name, values) if name in self.known else self.numbers(values)

    def numbers(self, values):
        said = RANGE.match(self.left)
        self.take(said[0])
        low, high = (_value(text, values) for text in (said[1] or said[3], said[2] or said[4]))
        gap = _is_gap(values)
        if said[5]:
            return gap
        found = ~gap
        if low is not None:
            found &= (values > low).to_numpy(bool, na_value=False)
        if high is not None:
            found &= (values <= high).to_numpy(bool, na_value=False)
        return found | gap if self.take(" or missing") else found

    def categories(self, name, values):
        negated, names = self.take("not "), [self.category()]
        while self.take(", ", " or "):
            names.append(self.category())
        meant = {value: _word(value, self.known[name]) in names for value in values.unique()}
        return values.map(meant).to_numpy(bool) != bool(negated)

    def category(self):
        if QUOTED.match(self.left):
            return self.name()
        found = self.name(", ", " or ", " and ", ";")
        return {"missing": "(missing)"}.get(found, found)


def _value(text, values):
    if text is None:
        return None
    return pd.Timestamp(text) if pd.api.types.is_datetime64_any_dtype(values) else float(text.replace(",", ""))


def _is_gap(values):
    gap = values.isna().to_numpy()
    return gap if pd.api.types.is_datetime64_any_dtype(values) else gap | (values.abs() >= 1e100).to_numpy(bool)


def _word(value, known):
    """The category as a rule names it: rare ones, and unseen ones too, are (other) where training put some together."""
    name = "(missing)" if pd.isna(value) else category_name(value)
    categories, has_other = known
    return name if name in categories or not has_other else "(other)"


def groups_by_words(tree, table):
    """Group of each row by the printed rules; every row must be in exactly one."""
    known = {c.name: (c.categories, c.has_other) for c in tree.binning.columns if c.is_category}
    table = table.set_axis([c.name for c in tree.binning.columns], axis=1)
    inside = np.column_stack([Reader(tree.rule(k), table, known).rule() for k in range(tree.n_groups)])
    assert (inside.sum(axis=1) == 1).all()
    return inside.argmax(axis=1)
