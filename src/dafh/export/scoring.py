"""Scores, corrections and probabilities of rows whose columns are cleaned."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from dafh.export.dialects import Dialect
from dafh.export.expressions import (
    as_double,
    can_hold,
    case,
    column,
    divided,
    is_null,
    minus,
    number,
    real,
    text,
    times,
    total,
    within,
)
from dafh.export.plan import Correction, Plan, Points, Score, Weights
from dafh.tables.column import Column
from dafh.tables.encoder import Scale

# Differences of logits beyond this one give probabilities of 0, and in some databases an error.
_SMALLEST_EXPONENT = -700.0

Standardized = Mapping[str, str]
"""Column of numbers, and the name of the step's column that holds it standardised."""


def score_of(
    score: Score, output: int, columns: Sequence[str], named: Standardized, dialect: Dialect
) -> exp.Expression:
    """Write one logit: the intercept, then what each column adds, in the order in which the model adds them."""
    start = as_double(real(float(score.intercept[output])))
    if isinstance(score, Points):
        parts = zip(score.binning.columns, score.points, strict=True)
        terms = [_points(of, points[:, output], dialect) for of, points in parts]
    elif score.encoder is not None:
        terms = _encoded_terms(score, output, named, dialect)
    else:
        weights = score.weight[:, output].tolist()
        terms = [times(real(weight), column(name)) for weight, name in zip(weights, columns, strict=False)]
    return total([start, *(term for term in terms if term is not None)])


def _points(of: Column, points: NDArray[np.float64], dialect: Dialect) -> exp.Expression | None:
    """Write the points of a column; None where they are 0 in every bin."""
    values = points.tolist()
    if of.is_category:
        # Rare and unseen categories have the bin behind those with a name of their own.
        return _by_category(of.name, of.categories, values, values[len(of.categories)], dialect)
    *inside, missing = values
    branches: list[tuple[exp.Expression, exp.Expression]] = []
    for place, cut in enumerate(of.cuts):
        # Neighbours with the same points are one step.
        if inside[place] != inside[place + 1]:
            condition = exp.LTE(this=column(of.name), expression=number(cut))
            branches.append((condition, real(inside[place])))
    if not branches and inside[-1] == missing:
        return real(missing) if missing else None
    last: exp.Expression = exp.Not(this=is_null(column(of.name)))
    if of.cuts:
        last = exp.GT(this=column(of.name), expression=number(of.cuts[-1]))
    # What no comparison holds for is a gap.
    return case([*branches, (last, real(inside[-1]))], real(missing))


def _by_category(
    name: str, categories: Sequence[str], values: Sequence[float], other: float, dialect: Dialect
) -> exp.Expression | None:
    branches = [
        (text(category, dialect), real(value))
        for category, value in zip(categories, values, strict=False)
        if value != other and can_hold(category, dialect)
    ]
    if not branches:
        return real(other) if other else None
    return case(branches, real(other), of=column(name))


# ---- columns as numbers ----


def known_categories(plan: Plan) -> dict[str, set[str]]:
    """Names of the categories that any part of a model knows, by column."""
    known: dict[str, set[str]] = {}
    columns: list[Column] = [] if plan.tree is None else [*plan.tree.binning.columns]
    for score in plan.scores:
        if isinstance(score, Points):
            columns += score.binning.columns
        elif score.encoder is not None:
            columns += score.encoder.columns_
    for of in columns:
        if of.is_category:
            known.setdefault(of.name, set()).update(of.categories)
    return known


def standardized(name: str, scale: Scale) -> exp.Expression:
    """Write a column of numbers as the encoder has it: the median for gaps, less the mean, by the deviation."""
    filled = exp.Coalesce(this=column(name), expressions=[real(scale.median)])
    return divided(exp.Paren(this=minus(filled, real(scale.mean))), real(scale.deviation))


def _encoded_terms(score: Weights, output: int, named: Standardized, dialect: Dialect) -> list[exp.Expression | None]:
    """Write what each column adds: numbers first, then where they are missing, then categories, as in the encoder."""
    assert score.encoder is not None
    weights = iter(score.weight[:, output].tolist())
    scales = score.encoder.scales_
    terms: list[exp.Expression | None] = [times(real(next(weights)), column(named[name])) for name in scales]
    for name, scale in scales.items():
        if scale.has_gaps:
            weight = next(weights)
            here, elsewhere = (weight * (gap - scale.gap_share) / scale.gap_deviation for gap in (1, 0))
            terms.append(case([(is_null(column(name)), real(here))], real(elsewhere)))
    for group in score.encoder.columns_:
        if group.is_category:
            values = [next(weights) for _ in group.categories]
            other = next(weights) if group.has_other else 0.0
            terms.append(_by_category(group.name, group.categories, values, other, dialect))
    return terms


# ---- groups ----


def corrected(
    pooled: Sequence[str],
    output: int,
    group: str,
    corrections: Sequence[Correction],
    write: Callable[[Score, int], exp.Expression],
) -> exp.Expression:
    """Write a logit of the classifier that serves a row: the pooled one, and what its group adds."""
    branches = []
    for correction in corrections:
        added = write(correction.score, output)
        for source, name in enumerate(pooled[: len(correction.of_logits)]):
            factor = real(float(correction.of_logits[source, output]))
            added = exp.Add(this=added, expression=times(column(name), factor))
        branches.append((is_group(group, correction.groups), added))
    if not branches:
        return column(pooled[output])
    return exp.Add(this=column(pooled[output]), expression=case(branches, real(0)))


def is_group(group: str, numbers: Sequence[int]) -> exp.Expression:
    """Ask whether a row is in one of some groups."""
    if len(numbers) == 1:
        return exp.EQ(this=column(group), expression=number(numbers[0]))
    return exp.In(this=column(group), expressions=[number(one) for one in numbers])


# ---- probabilities ----


def logistic(score: exp.Expression, largest: float) -> exp.Expression:
    """Write the probability of the second of two classes."""
    # The minus is on the outside of CASE: written before a column it would be read as a comment where two meet.
    power = exp.Exp(this=exp.Neg(this=exp.Paren(this=within(score, -largest, largest))))
    return divided(real(1), exp.Paren(this=exp.Add(this=real(1), expression=power)))


def greatest(names: Sequence[str]) -> exp.Expression:
    """Write the largest of some columns, which are missing together or not at all."""
    first, *others = (column(name) for name in names)
    return exp.Greatest(this=first, expressions=others, ignore_nulls=True)


def exponential(name: str, largest: str) -> exp.Expression:
    """Write e to the power of a logit less the largest one: no logit is too large for that."""
    return exp.Exp(this=within(minus(column(name), column(largest)), low=_SMALLEST_EXPONENT))


def share(name: str, names: Sequence[str]) -> exp.Expression:
    """Write a column divided by the sum of all."""
    return divided(column(name), exp.Paren(this=total([column(one) for one in names])))


def logarithm(probability: exp.Expression, smallest: float) -> exp.Expression:
    """Write the logarithm of a probability that is kept away from 0."""
    return exp.Ln(this=within(probability, low=smallest))
