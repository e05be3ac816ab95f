"""Read the printed rules of exceptions back, and ask raw rows for them: a second opinion, made from words alone."""

import ast
import re

import numpy as np
import pandas as pd

from dafh.columns.kinds import category_name

QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
NUMBER = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?|-?\d[\d,]*(?<!,)(?:\.\d+)?(?:e[+-]?\d+)?"
RANGE = re.compile(rf"above ({NUMBER}), up to ({NUMBER})|above ({NUMBER})|({NUMBER}) or less|(missing)|(not missing)")


class Reader:
    """A rule as a text, read from its beginning to its end."""

    def __init__(self, text, table):
        self.left, self.table = text, table

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
        """Which rows the rule holds for: all of its conditions do."""
        found = self.condition()
        while self.take(" and "):
            found = found & self.condition()
        assert not self.left, self.left
        return found

    def condition(self):
        name = self.name(" is ")
        assert self.take(" is ")
        values = self.table[name]
        is_ordered = pd.api.types.is_numeric_dtype(values) or pd.api.types.is_datetime64_any_dtype(values)
        return (
            self.numbers(values.astype(float) if values.dtype == bool else values)
            if is_ordered
            else self.categories(values)
        )

    def numbers(self, values):
        said = RANGE.match(self.left)
        self.take(said[0])
        low, high = (_value(text, values) for text in (said[1] or said[3], said[2] or said[4]))
        gap = values.isna().to_numpy()
        if said[5]:
            return gap
        found = ~gap
        if low is not None:
            found &= (values > low).to_numpy(bool, na_value=False)
        if high is not None:
            found &= (values <= high).to_numpy(bool, na_value=False)
        return found | gap if self.take(" or missing") else found

    def categories(self, values):
        negated, names = self.take("not "), [self.category()]
        while self.take(", ", " or "):
            names.append(self.category())
        words = values.map(lambda value: "(missing)" if pd.isna(value) else category_name(value))
        return words.isin(names).to_numpy(bool) != bool(negated)

    def category(self):
        if QUOTED.match(self.left):
            return self.name()
        found = self.name(", ", " or ", " and ")
        return {"missing": "(missing)"}.get(found, found)


def _value(text, values):
    if text is None:
        return None
    return pd.Timestamp(text) if pd.api.types.is_datetime64_any_dtype(values) else float(text.replace(",", ""))


def groups_by_words(rules, table):
    """Group of each row by the printed rules: the first that holds; the last one is everybody else."""
    assert rules[-1] == "everybody else"
    group = np.full(len(table), len(rules) - 1)
    for number in range(len(rules) - 2, -1, -1):
        group[Reader(rules[number], table).rule()] = number
    return group
