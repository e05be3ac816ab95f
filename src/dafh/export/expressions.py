"""Nodes of SQL syntax: values, names, conditions and sums.

Values become literals and names become quoted identifiers, which sqlglot writes as each database reads them.
"""

import re
from collections.abc import Iterable, Sequence

from sqlglot import exp
from sqlglot.generator import Generator

from dafh.exceptions import InputError
from dafh.export.dialects import Dialect
from dafh.text import quoted

# Whole numbers up to here are the same as floats.
_LARGEST_WHOLE = 2.0**53
# SQLite takes expressions of up to 1,000 levels, and every further term of a sum is one.
_MOST_TERMS = 200
# What sqlglot puts in the place of a line break while it lays out a statement: it must not be part of a text.
_PLACEHOLDER = Generator.SENTINEL_LINE_BREAK


def real(value: float) -> exp.Expression:
    """Write a floating point number so that every database reads the same one; without an exponent it is a decimal."""
    digits = repr(abs(float(value)))
    literal = exp.Literal(this=digits if "e" in digits else f"{digits}e0", is_string=False)
    return exp.Neg(this=literal) if value < 0 else literal


def number(value: float) -> exp.Expression:
    """Write a number to compare with: a whole one as people do, which is exact as well."""
    if not float(value).is_integer() or abs(value) > _LARGEST_WHOLE:
        return real(value)
    literal = exp.Literal(this=str(abs(int(value))), is_string=False)
    return exp.Neg(this=literal) if value < 0 else literal


def can_hold(value: str, dialect: Dialect) -> bool:
    """Whether a text can be in a table of a database at all."""
    if "\0" in value and not dialect.holds_nul:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def text(value: str, dialect: Dialect) -> exp.Expression:
    """Write a text; what some program on the way would take for something else is written in parts.

    That is NUL, which ends a statement, ``${...}`` where it stands for a variable, and sqlglot's own placeholder.
    """
    apart = [r"(\0)", f"(?<={_PLACEHOLDER[:4]})(?={_PLACEHOLDER[4:]})"]
    apart += [r"(?<=\$)(?=\{)"] if dialect.substitutes else []
    parts = [part for part in re.split("|".join(apart), value) if part]
    nodes: list[exp.Expression] = [
        exp.Chr(expressions=[number(0)]) if part == "\0" else exp.Literal.string(part) for part in parts
    ]
    if not nodes:
        return exp.Literal.string("")
    joined = nodes[0]
    for node in nodes[1:]:
        joined = exp.DPipe(this=joined, expression=node, safe=True)
    return exp.Paren(this=joined) if len(nodes) > 1 else joined


def identifier(name: str) -> exp.Identifier:
    """Write a name, whatever it holds, as one name."""
    if "\0" in name or _PLACEHOLDER in name:
        raise InputError(f"The name {quoted(name)} cannot be written in SQL: rename the column.")
    return exp.Identifier(this=name, quoted=True)


def column(name: str, table: str | None = None) -> exp.Column:
    """Name a column, of a step where it says which."""
    return exp.Column(this=identifier(name), table=None if table is None else exp.to_identifier(table))


def case(
    branches: Iterable[tuple[exp.Expression, exp.Expression]],
    default: exp.Expression | None = None,
    of: exp.Expression | None = None,
) -> exp.Expression:
    """Write CASE: the value of the first condition that holds or, with `of`, of the first value that it equals."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(this=of, ifs=ifs, default=default)


def is_null(node: exp.Expression) -> exp.Expression:
    """Ask whether a value is missing."""
    return exp.Is(this=node, expression=exp.Null())


def all_of(conditions: Sequence[exp.Expression]) -> exp.Expression:
    """Join conditions that must all hold; none at all always do."""
    if not conditions:
        return exp.true()
    joined = conditions[0]
    for condition in conditions[1:]:
        joined = exp.And(this=joined, expression=condition)
    return joined


def either(one: exp.Expression, other: exp.Expression) -> exp.Expression:
    """Join two conditions of which one must hold."""
    inner = exp.Paren(this=other) if isinstance(other, exp.And) else other
    return exp.Paren(this=exp.Or(this=one, expression=inner))


def total(terms: Sequence[exp.Expression]) -> exp.Expression:
    """Add up in this order, as the model does, so that no digit differs; very many terms in several sums."""
    if len(terms) > _MOST_TERMS:
        parts = [terms[start : start + _MOST_TERMS] for start in range(0, len(terms), _MOST_TERMS)]
        return total([exp.Paren(this=total(part)) for part in parts])
    added = terms[0]
    for term in terms[1:]:
        added = exp.Add(this=added, expression=term)
    return added


def times(one: exp.Expression, other: exp.Expression) -> exp.Expression:
    """Multiply."""
    return exp.Mul(this=one, expression=other)


def divided(one: exp.Expression, other: exp.Expression) -> exp.Expression:
    """Divide floating point numbers; sqlglot is told that they are, and adds no casts."""
    return exp.Div(this=one, expression=other, typed=True, safe=False)


def minus(one: exp.Expression, other: exp.Expression) -> exp.Expression:
    """Subtract."""
    return exp.Sub(this=one, expression=other)


def within(node: exp.Expression, low: float | None = None, high: float | None = None) -> exp.Expression:
    """Replace what is beyond a limit by the limit.

    Not GREATEST and LEAST: some databases leave a gap out there, and the limit would take the place of a gap.
    """
    branches: list[tuple[exp.Expression, exp.Expression]] = []
    if low is not None:
        branches.append((exp.LT(this=node.copy(), expression=real(low)), real(low)))
    if high is not None:
        branches.append((exp.GT(this=node.copy(), expression=real(high)), real(high)))
    return case(branches, node)


def as_double(node: exp.Expression) -> exp.Expression:
    """Turn a number into a floating point number of double precision."""
    return exp.Cast(this=node, to=exp.DataType.build("double"))
