"""The group of each row, from the rules."""

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from dafh.export.dialects import Dialect
from dafh.export.expressions import all_of, can_hold, case, column, either, is_null, number, text
from dafh.groups.rules import RuleTree
from dafh.tables.column import Column
from dafh.text import write_date


def group_of(tree: RuleTree, dialect: Dialect) -> exp.Expression:
    """Write the group of a row: the rules as conditions, each of which is true for the rows of its group alone."""
    if not tree.questions:
        return number(0)
    branches = []
    for group in range(tree.n_groups):
        for bins in tree.allowed_bins(group):
            asked = [(tree.binning.columns[place], allowed) for place, allowed in bins.items()]
            conditions = [_condition(about, allowed, dialect) for about, allowed in asked if not allowed.all()]
            branches.append((all_of(conditions), number(group)))
    return case(branches)


def _condition(about: Column, allowed: NDArray[np.bool_], dialect: Dialect) -> exp.Expression:
    if about.is_category:
        return _one_of(about, allowed, dialect)
    inside = np.flatnonzero(allowed[:-1])
    conditions: list[exp.Expression] = []
    if len(inside) and inside[0] > 0:
        conditions.append(exp.GT(this=column(about.name), expression=_cut(about, int(inside[0]) - 1)))
    if len(inside) and inside[-1] < len(about.cuts):
        conditions.append(exp.LTE(this=column(about.name), expression=_cut(about, int(inside[-1]))))
    missing = is_null(column(about.name))
    if not len(inside):
        return missing
    if not conditions:
        return exp.Not(this=missing)
    return either(missing, all_of(conditions)) if allowed[-1] else all_of(conditions)


def _cut(about: Column, place: int) -> exp.Expression:
    cut = number(about.cuts[place])
    if about.is_date:
        cut.add_comments([write_date(about.cuts[place], 17)])
    return cut


def _one_of(about: Column, allowed: NDArray[np.bool_], dialect: Dialect) -> exp.Expression:
    """Ask for some categories; where unseen ones are meant too, exclude the others."""
    # Rare and unseen categories have the bin behind those with a name of their own.
    unseen = bool(allowed[len(about.categories)])
    named = [
        text(category, dialect)
        for category, is_meant in zip(about.categories, allowed, strict=False)
        if is_meant != unseen and can_hold(category, dialect)
    ]
    if not named:
        return exp.true() if unseen else exp.false()
    listed = exp.In(this=column(about.name), expressions=named)
    return exp.Not(this=listed) if unseen else listed
