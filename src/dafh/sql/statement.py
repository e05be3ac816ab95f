"""One statement out of all parts of a plan: columns cleaned, rows grouped, scored and decided, step by step.

Each step is a common table expression that adds columns to those of the step before it. The first half of the file
writes expressions; `_Statement` puts them together.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dafh.columns.column import Column
from dafh.columns.kinds import DATE, FLAGS, LARGEST_NUMBER, MISSING_WORDS
from dafh.exceptions import InputError
from dafh.frames import MISSING
from dafh.regions.conditions import Condition, Region
from dafh.sql.plan import Plan, Points
from dafh.text import quoted, write_date

# ---- what sqlglot does not know about databases ----

# A table cannot have two columns that differ in upper and lower case only.
_FOLDING = ("duckdb", "sqlite")
# Steps must be kept apart: otherwise a column that a hundred conditions read is cleaned a hundred times.
_MATERIALIZING = ("postgres", "sqlite")
# Postgres cuts names at 63 bytes, and two of them might then be the same.
_LONGEST_NAME = 55
# SQLite takes expressions of up to 1,000 levels, and every further term of a sum is one.
_MOST_TERMS = 200
# Differences of logits beyond this one give probabilities of 0, and in some databases an error.
_SMALLEST_EXPONENT = -700.0
# Whole numbers up to here are the same as floats.
_LARGEST_WHOLE = 2.0**53
_SECONDS_OF_A_DAY = 86_400.0
_WHOLE = re.compile(r"-?\d+")

Branch = tuple[exp.Expression, exp.Expression]
"""A condition and its value."""


# ---- values, names and sums ----


def _real(value: float) -> exp.Expression:
    """Write a floating point number so that every database reads the same one; without an exponent it is a decimal."""
    digits = repr(abs(float(value)))
    literal = exp.Literal.number(digits if "e" in digits else f"{digits}e0")
    return exp.Neg(this=literal) if value < 0 else literal


def _number(value: float) -> exp.Expression:
    """Write a number to compare with: a whole one as people do, which is exact as well."""
    if not float(value).is_integer() or abs(value) > _LARGEST_WHOLE:
        return _real(value)
    literal = exp.Literal.number(str(abs(int(value))))
    return exp.Neg(this=literal) if value < 0 else literal


def _text(value: str) -> exp.Expression:
    return exp.Literal.string(value)


def _identifier(name: str) -> exp.Identifier:
    """Write a name, whatever it holds, as one name."""
    return exp.Identifier(this=name, quoted=True)


def _column(name: str, table: str | None = None) -> exp.Column:
    """Name a column, of a step where it says which."""
    return exp.Column(this=_identifier(name), table=None if table is None else exp.to_identifier(table))


def _case(
    branches: Iterable[Branch], default: exp.Expression | None = None, of: exp.Expression | None = None
) -> exp.Expression:
    """Write CASE: the value of the first condition that holds or, with `of`, of the first value that it equals."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(this=of, ifs=ifs, default=default)


def _is_null(node: exp.Expression) -> exp.Expression:
    return exp.Is(this=node, expression=exp.Null())


def _one_of(node: exp.Expression, values: Sequence[exp.Expression]) -> exp.Expression:
    return exp.In(this=node.copy(), expressions=values)


def _all_of(conditions: Sequence[exp.Expression]) -> exp.Expression:
    """Join conditions that must all hold; none at all always do."""
    return cast("exp.Expression", exp.and_(*(conditions or [exp.true()])))


def _sum(terms: Sequence[exp.Expression]) -> exp.Expression:
    """Add up in this order, as the model does, so that no digit differs; very many terms in several sums."""
    if len(terms) > _MOST_TERMS:
        parts = [terms[start : start + _MOST_TERMS] for start in range(0, len(terms), _MOST_TERMS)]
        return _sum([exp.Paren(this=_sum(part)) for part in parts])
    # Not by the operator +, which copies both sides.
    added = terms[0]
    for term in terms[1:]:
        added = exp.Add(this=added, expression=term)
    return added


def _divided(one: exp.Expression, other: exp.Expression) -> exp.Expression:
    """Divide floating point numbers; sqlglot is told that they are, and adds no casts."""
    return exp.Div(this=one, expression=other, typed=True, safe=False)


def _double(node: exp.Expression) -> exp.Expression:
    return exp.Cast(this=node, to=exp.DataType.build("double"))


def _within(node: exp.Expression, low: float | None = None, high: float | None = None) -> exp.Expression:
    """Replace what is beyond a limit by the limit.

    Not GREATEST and LEAST: some databases leave a gap out there, and the limit would take the place of a gap.
    """
    branches: list[Branch] = []
    if low is not None:
        branches.append((node < _real(low), _real(low)))
    if high is not None:
        branches.append((node > _real(high), _real(high)))
    return _case(branches, node)


# ---- columns as the model reads them: numbers and days as floats, categories as names ----
#
# The same as `dafh.columns.kinds` does with the columns of a file. A value that cannot be read as what its column holds
# is missing in databases that can try to read it (SQLite, DuckDB); the others refuse the table.


def _read_number(source: exp.Expression, dialect: str) -> exp.Expression:
    """Read a number; infinite ones, and those too large to square, are missing."""
    if dialect == "sqlite":
        # A comparison with a number makes SQLite read text as a number where all of it is one. Other text is larger
        # than every number. A cast alone would read "12 b" as 12 and "unknown" as 0.
        low, high = (_double(_real(limit)) for limit in (-LARGEST_NUMBER, LARGEST_NUMBER))
        return _case([(_all_of([source > low, source < high]), _double(source))])
    value = exp.TryCast(this=source, to=exp.DataType.build("double"))
    # Written so that NaN fails, too.
    return _case([(exp.Abs(this=value) < _real(LARGEST_NUMBER), value)])


def _read_days(source: exp.Expression, dialect: str) -> exp.Expression:
    """Read a date as days since 1970, in whole seconds."""
    if dialect == "sqlite":
        # Only what begins like a date: SQLite takes "now" and plain numbers for points in time as well.
        seconds = exp.Anonymous(this="STRFTIME", expressions=[exp.Literal.string("%s"), source])
        date = exp.Glob(this=source.copy(), expression=exp.Literal.string("[0-9][0-9][0-9][0-9]-*"))
        return _case([(date, _divided(_double(seconds), _real(_SECONDS_OF_A_DAY)))])
    instant = exp.TryCast(this=source, to=exp.DataType.build("timestamp"))
    if dialect == "postgres":
        since: exp.Expression = exp.Extract(this=exp.var("EPOCH"), expression=instant)
    else:
        since = exp.TimeToUnix(this=instant)
    return _divided(_double(exp.Floor(this=since)), _real(_SECONDS_OF_A_DAY))


def _read_flag(source: exp.Expression) -> exp.Expression:
    """Read true and false, or 1 and 0, however a table holds them."""
    word = exp.Lower(this=exp.Trim(this=_as_text(source)))
    branches = []
    for value in (1.0, 0.0):
        words = [_text(name) for name, meaning in FLAGS.items() if meaning == value]
        branches.append((_one_of(word, words), _real(value)))
    return _case(branches)


def _read_category(source: exp.Expression, categories: Collection[str], has_gap_words: bool) -> exp.Expression:
    """Read a value as the name of a category; a gap is the category `MISSING`, and so are words such as "NA" in files.

    Blanks around such a word do not matter.
    """
    name, missing = _as_text(source), _text(MISSING)
    branches: list[Branch] = [(_is_null(name), missing)]
    whole = [category for category in sorted(categories) if _WHOLE.fullmatch(category)]
    if whole:
        # 1.0 and 1.00 are the category 1, whether a table holds text or fractions.
        without_zeros = exp.Trim(this=name, expression=_text("0"), position="TRAILING")
        known = [(_text(f"{category}."), _text(category)) for category in whole]
        fraction = exp.Like(this=name.copy(), expression=_text("%.%0"))
        branches.append((fraction, _case(known, name.copy(), of=without_zeros)))
    if not has_gap_words:
        return _case(branches, name.copy())
    # Known names come first: nearly all values are known, and TRIM is slow.
    names = [_text(category) for category in sorted(categories)]
    first = [(_one_of(name, names), name.copy())] if names else []
    words = [_text(word) for word in sorted(MISSING_WORDS)]
    return _case([*first, *branches, (_one_of(exp.Trim(this=name.copy()), words), missing.copy())], name.copy())


def _as_text(source: exp.Expression) -> exp.Expression:
    return exp.Cast(this=source, to=exp.DataType.build("text"))


# ---- groups ----


def _group_of(regions: Sequence[Region]) -> exp.Expression:
    """Write the group of a row: the first exception that holds, or everybody else."""
    if not regions:
        return _number(0)
    branches = [
        (_all_of([_condition(condition) for condition in region.conditions]), _number(group))
        for group, region in enumerate(regions)
    ]
    return _case(branches, _number(len(regions)))


def _condition(condition: Condition) -> exp.Expression:
    """Write a condition that is true or false for every row, gaps included."""
    node = _column(condition.column)
    if condition.is_category:
        if not condition.values:
            return exp.true() if condition.is_negated else exp.false()
        named = _one_of(node, [_text(value) for value in condition.values])
        return exp.not_(named) if condition.is_negated else named
    if condition.is_only_missing:
        return _is_null(node) if condition.with_missing else exp.false()
    limits: list[exp.Expression] = []
    if condition.low is not None:
        limits.append(exp.GT(this=node, expression=_limit(condition, condition.low)))
    if condition.high is not None:
        limits.append(exp.LTE(this=node.copy(), expression=_limit(condition, condition.high)))
    if not limits:
        return exp.true() if condition.with_missing else exp.not_(_is_null(node))
    inside = _all_of(limits)
    return cast("exp.Expression", exp.or_(_is_null(node), inside)) if condition.with_missing else inside


def _limit(condition: Condition, value: float) -> exp.Expression:
    limit = _number(value)
    if condition.kind.startswith(DATE):
        limit.add_comments([write_date(value, 17)])
    return limit


def _is_group(group: str, numbers: Sequence[int]) -> exp.Expression:
    if len(numbers) == 1:
        return exp.EQ(this=_column(group), expression=_number(numbers[0]))
    return _one_of(_column(group), [_number(one) for one in numbers])


# ---- scores ----


def _score(score: Points, output: int) -> exp.Expression:
    """Write one logit: the intercept, then what each column adds, in the order in which the model adds them."""
    parts = zip(score.binning.columns, score.points, strict=True)
    terms = [_points(of, points[:, output].tolist()) for of, points in parts]
    start = _double(_real(float(score.intercept[output])))
    return _sum([start, *(term for term in terms if term is not None)])


def _points(of: Column, points: list[float]) -> exp.Expression | None:
    """Write the points of a column; None where they are 0 in every bin."""
    if of.is_category:
        # The last points are for rare and unseen categories.
        other = points[len(of.categories)]
        named = zip(of.categories, points, strict=False)
        branches = [(_text(category), _real(value)) for category, value in named if value != other]
        if not branches:
            return _real(other) if other else None
        return _case(branches, _real(other), of=_column(of.name))
    *inside, missing = points
    node = _column(of.name)
    # Neighbours with the same points are one step.
    changes = [(cut, inside[place]) for place, cut in enumerate(of.cuts) if inside[place] != inside[place + 1]]
    steps: list[Branch] = [(node <= _number(cut), _real(value)) for cut, value in changes]
    if not steps and inside[-1] == missing:
        return _real(missing) if missing else None
    last = node > _number(changes[-1][0]) if changes else exp.not_(_is_null(node))
    # What no comparison holds for is a gap.
    return _case([*steps, (last, _real(inside[-1]))], _real(missing))


# ---- probabilities ----


def _logistic(score: exp.Expression, largest: float) -> exp.Expression:
    """Write the probability of the second of two classes."""
    # The minus is on the outside of CASE: written before a column it would be read as a comment where two meet.
    power = exp.Exp(this=exp.Neg(this=exp.Paren(this=_within(score, -largest, largest))))
    return _divided(_real(1), exp.Paren(this=exp.Add(this=_real(1), expression=power)))


def _share(name: str, names: Sequence[str]) -> exp.Expression:
    return _divided(_column(name), exp.Paren(this=_sum([_column(one) for one in names])))


# ---- the statement ----

_SOURCE = "source"
# A table with the name of a step would be taken for the step.
_PREFIX = "dafh_"
Columns = Mapping[str, exp.Expression]


def write_statement(plan: Plan, dialect: str, table: str, keep: Sequence[str]) -> str:
    """Write the statement that scores a table, and carries some of its columns over."""
    statement = _Statement(plan, dialect, table, keep)
    statement.add_cleaned()
    group = statement.add_group()
    pooled = statement.add_scores("pooled", "pooled_score", plan.n_outputs, lambda output: _score(plan.pooled, output))
    own = pooled
    if plan.corrections:
        assert group is not None
        own = statement.add_scores(
            "scored", "score", plan.n_outputs, lambda output: statement.corrected(pooled, output, group)
        )
    return statement.finish(group, pooled, own)


class _Statement:
    """Steps of a statement; each adds columns to those of the step before it."""

    def __init__(self, plan: Plan, dialect: str, table: str, keep: Sequence[str]) -> None:
        self.plan, self.dialect = plan, dialect
        self._table = _parse_table(table, dialect)
        self._steps: list[tuple[str, exp.Select]] = []
        _check_names(plan.columns, dialect)
        self._taken = {name.lower() for name in plan.columns}
        # A kept column may be one that the model reads: both go through all steps, one as it is and one cleaned.
        self._kept = {name: self._new_name(name) for name in keep}

    def _new_name(self, wanted: str) -> str:
        """Return a name that no other column of the steps has, whatever their case."""
        wanted = wanted if len(wanted.encode()) <= _LONGEST_NAME else "long_name"
        name, attempt = wanted, 1
        while name.lower() in self._taken:
            attempt += 1
            name = f"{wanted}_{attempt}"
        self._taken.add(name.lower())
        return name

    def _add(self, step: str, columns: Columns) -> None:
        """Add a step with all columns of the last one and some more."""
        last = exp.Table(this=exp.to_identifier(self._steps[-1][0]))
        self._steps.append((_PREFIX + step, exp.select(exp.Star(), *_aliased(columns), copy=False).from_(last)))

    def add_cleaned(self) -> None:
        """Take the columns that the model needs from the table, as it reads them, and those to carry over."""
        kept = {new: _column(name, _SOURCE) for name, new in self._kept.items()}
        categories = self.plan.categories
        columns = {name: self._read(name, kind, categories.get(name, ())) for name, kind in self.plan.columns.items()}
        select = exp.select(*_aliased({**kept, **columns}), copy=False)
        select = select.from_(exp.alias_(self._table, _SOURCE, table=True), copy=False)
        self._steps.append((f"{_PREFIX}cleaned", select))

    def _read(self, name: str, kind: str, categories: Collection[str]) -> exp.Expression:
        source = _column(name, _SOURCE)
        if kind == "category":
            return _read_category(source, categories, self.plan.has_gap_words)
        if kind == "flag":
            return _read_flag(source)
        return _read_days(source, self.dialect) if kind.startswith(DATE) else _read_number(source, self.dialect)

    def add_group(self) -> str | None:
        """Find the group of each row; None for a model without groups."""
        if self.plan.regions is None:
            return None
        name = self._new_name("group")
        self._add("grouped", {name: _group_of(self.plan.regions)})
        return name

    def corrected(self, pooled: Sequence[str], output: int, group: str) -> exp.Expression:
        """Write a logit of the classifier that serves a row: the pooled one, and what its group adds."""
        branches = [
            (_is_group(group, correction.groups), _score(correction.score, output))
            for correction in self.plan.corrections
        ]
        return exp.Add(this=_column(pooled[output]), expression=_case(branches, _real(0)))

    def add_scores(self, step: str, name: str, count: int, write: Callable[[int], exp.Expression]) -> list[str]:
        """Add one column, or one for each class, and return their names."""
        names = [self._new_name(name if count == 1 else f"{name}_{output}") for output in range(count)]
        self._add(step, {name: write(output) for output, name in enumerate(names)})
        return names

    def _add_powers(self, scores: Sequence[str]) -> list[str]:
        """Add e to the power of each logit, of which a probability is the share in the sum; return their names."""
        largest = self._new_name("largest_score")
        # Scores are missing together or not at all.
        first, *others = map(_column, scores)
        self._add("largest", {largest: exp.Greatest(this=first, expressions=others, ignore_nulls=True)})

        def power(output: int) -> exp.Expression:
            # Less the largest one: no logit is too large for that.
            return exp.Exp(this=_within(_column(scores[output]) - _column(largest), low=_SMALLEST_EXPONENT))

        return self.add_scores("powers", "power", len(scores), power)

    def finish(self, group: str | None, pooled: list[str], own: list[str]) -> str:
        """Write all steps, and what `dafh predict` writes: label, probabilities and group."""
        plan = self.plan
        columns: dict[str, exp.Expression] = {"prediction": self._label(group, pooled, own)}
        if plan.n_outputs == 1:
            columns[_probability(plan.classes[1])] = _logistic(_column(own[0]), plan.largest_logit)
        else:
            powers = self._add_powers(own)
            for label, power in zip(plan.classes, powers, strict=True):
                columns[_probability(label)] = _share(power, powers)
        if plan.points is not None:
            start, factor = plan.points
            columns["points"] = exp.Add(this=_real(start), expression=_real(factor) * _column(own[0]))
        if group is not None:
            columns["group"] = _column(group)
        for name in self._kept:
            if name.lower() in {known.lower() for known in columns}:
                raise InputError(f"The column {quoted(name)} cannot be carried over: a column of scores has this name.")
        kept = {name: _column(new) for name, new in self._kept.items()}
        select = exp.select(*_aliased({**kept, **columns}), copy=False)
        select = select.from_(exp.Table(this=exp.to_identifier(self._steps[-1][0])))
        for name, step in self._steps:
            apart = True if self.dialect in _MATERIALIZING else None
            select = select.with_(exp.to_identifier(name), as_=step, materialized=apart, copy=False)
        return select.sql(self.dialect, pretty=True)

    def _label(self, group: str | None, pooled: list[str], own: list[str]) -> exp.Expression:
        """Write the label: of the pooled classifier by its own score and cut-off, where that serves a row."""
        plan = self.plan
        by_own, by_pooled = self._decided(own, plan.cutoff), self._decided(pooled, plan.pooled_cutoff)
        if not plan.corrections:
            return _case(by_pooled)
        if not plan.left_to_pooled or plan.cutoff == plan.pooled_cutoff:
            return _case(by_own)
        assert group is not None
        return _case([(_is_group(group, plan.left_to_pooled), _case(by_pooled)), *by_own])

    def _decided(self, scores: list[str], cutoff: float) -> list[Branch]:
        """Conditions under which each label is predicted; none holds where a score is missing."""
        labels = [_literal(label) for label in self.plan.classes.tolist()]
        if len(scores) == 1:
            score, limit = _column(scores[0]), _real(cutoff)
            return [(score > limit, labels[1]), (score <= limit, labels[0])]
        # A tie goes to the first class.
        return [
            (_all_of([_column(score) >= _column(other) for other in scores if other != score]), label)
            for score, label in zip(scores, labels, strict=True)
        ]


def _aliased(columns: Columns) -> list[exp.Expression]:
    return [exp.Alias(this=node, alias=_identifier(name)) for name, node in columns.items()]


def _parse_table(table: str, dialect: str) -> exp.Table:
    try:
        return exp.to_table(table, dialect=dialect)
    except (SqlglotError, ValueError) as error:
        raise InputError(f"{quoted(table)} is not the name of a table.") from error


def _check_names(names: Iterable[str], dialect: str) -> None:
    """Refuse columns that a database cannot tell apart."""
    seen: dict[str, str] = {}
    for name in names:
        if dialect in _FOLDING and name.lower() in seen:
            raise InputError(
                f"The columns {quoted(seen[name.lower()])} and {quoted(name)} have the same name for {dialect}, "
                "which does not tell upper from lower case: rename one of them."
            )
        seen[name.lower()] = name


def _probability(label: Any) -> str:
    """Name the column of a label's probability, as `dafh predict` does."""
    return f"probability_{label}"


def _literal(label: Any) -> exp.Expression:
    if isinstance(label, bool | np.bool_):
        return exp.true() if label else exp.false()
    if isinstance(label, int):
        return exp.Literal.number(label)
    return _text(label) if isinstance(label, str) else _number(label)
