"""Models as SQL, so that rows are scored where they live.

`to_sql` writes one SELECT: columns cleaned, rows grouped, scored and decided. Each step is a common table expression
that adds columns to those of the step before it. sqlglot writes it for each database. All values and names become
nodes of its syntax tree, never pasted text: a category called ``'); DROP TABLE x; --`` stays a category. A further
dialect is an entry of `DIALECTS`, which the tests go through.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import dafh
from dafh.classifiers import final_classifier
from dafh.columns.column import Column
from dafh.columns.encoder import TableReader
from dafh.columns.kinds import DATE, FLAGS, LARGEST_NUMBER, MISSING_WORDS
from dafh.columns.schema import TableSchema
from dafh.estimators.dafh import LARGEST_LOGIT, DAFHClassifier
from dafh.exceptions import InputError
from dafh.frames import MISSING
from dafh.groups.trained import ExceptionModel
from dafh.incumbents import Incumbent
from dafh.linear.scorecard import Scorecard
from dafh.regions.conditions import Condition
from dafh.text import printable, quoted, shown, write_date

try:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
except ImportError as error:
    raise InputError(
        "Models are written as SQL with sqlglot, which is not installed: pip install 'dafh[sql]'."
    ) from error

# MySQL and SQL Server take 'Cook' and 'cook', or 'cook' and 'cook ', for the same text unless a column says otherwise,
# and rows would silently get the points of another category.
DIALECTS = ("duckdb", "postgres", "snowflake", "sqlite")
"""Databases that `to_sql` writes for."""


def to_sql(
    model: Any,
    dialect: str = "duckdb",
    table: str = "rows_to_score",
    *,
    schema: TableSchema | None = None,
    keep: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """Write a fitted model as one SELECT, which scores a table where it lives.

    The result has the label, the probability of the positive class (of each class, if there are more than two) and the
    group of each row. Columns hold what they held in training: numbers in columns of numbers, dates in columns of dates
    or timestamps (in SQLite, text such as 2020-12-31), categories in columns of any type that can be cast to text.
    Needs sqlglot: ``pip install 'dafh[sql]'``.

    Parameters
    ----------
    model : fitted DAFHClassifier or Scorecard, or a pipeline that ends in one
        Groups by a network, and pooled classifiers that are no scorecards, cannot be exported.
    dialect : {"duckdb", "postgres", "snowflake", "sqlite"}, default="duckdb"
    table : str, default="rows_to_score"
        Name of the table, with its schema if needed.
    schema : TableSchema, optional
        What the columns held in the file that the model was fitted on; words such as "NA" are then missing values.
    keep : sequence of str, optional
        Columns to carry over from the table, such as a key.
    notes : sequence of str, optional
        Lines for the comment at the top.

    Returns
    -------
    str
        The statement, with a comment at the top that lists the columns it needs.

    Examples
    --------
    >>> import pandas as pd
    >>> from dafh import Scorecard
    >>> from dafh.sql import to_sql
    >>> people = pd.DataFrame({"age": [20, 30, 40, None] * 25, "job": ["cook", "clerk"] * 50})
    >>> statement = to_sql(Scorecard().fit(people, people["age"] > 25), "sqlite", "people")
    >>> import sqlite3
    >>> database = sqlite3.connect(":memory:")
    >>> people[:2].to_sql("people", database, index=False)
    2
    >>> [label for label, probability in database.execute(statement)]
    [0, 1]
    """
    if dialect not in DIALECTS:
        raise InputError(f"There is no dialect {quoted(dialect)}: choose from {', '.join(DIALECTS)}.")
    if isinstance(keep, str):
        raise InputError(f"keep must be a list of names of columns, got {shown(keep)}.")
    final, scorecard, columns = _take_apart(model)
    columns = columns if schema is None else schema.features
    # Words such as "NA" are gaps in files; in data frames they are text.
    statement = _Statement(final, scorecard, columns, schema is not None, dialect).write(
        table, list(dict.fromkeys(keep))
    )
    lines = [f"Scores of a model, as dafh {dafh.__version__} predicts them; for {dialect}.", *notes]
    headings = {"number": "numbers", "flag": "true or false", "category": "categories", "date": "dates or timestamps"}
    for kind, heading in headings.items():
        names = [name for name, full_kind in columns.items() if full_kind.split(" ")[0] == kind]
        if names:
            lines.append(f"Columns of {heading}: {', '.join(names)}.")
            if kind == "date":
                lines.append("Days begin at midnight UTC: set the time zone of the session to UTC.")
    header = "\n".join(f"-- {printable(line)}" for line in lines)
    return f"{header}\n{statement}\n"


def _take_apart(model: Any) -> tuple[Any, Scorecard, Mapping[str, str]]:
    """Return the final classifier, its scorecard, and the kinds of columns; refuse what SQL cannot express."""
    check_is_fitted(model)
    final = final_classifier(model)
    reader = model[0] if isinstance(model, Pipeline) and isinstance(model[0], TableReader) else None
    if isinstance(model, Pipeline) and (len(model) > 2 or (len(model) == 2 and reader is None)):
        raise InputError(f"Steps before {type(final).__name__} cannot be exported, but for the one that reads tables.")
    scorecard = final
    if isinstance(final, DAFHClassifier):
        if not isinstance(final._trained, ExceptionModel):
            raise InputError(
                "The groups of this model are found by a network, which cannot be exported: use method='exceptions'."
            )
        scorecard = final.pooled_
    if not isinstance(scorecard, Scorecard):
        # Named as people know it: not by its wrapper, nor by the encoder before it.
        foreign = final_classifier(scorecard)
        foreign = foreign.model if isinstance(foreign, Incumbent) else foreign
        name = type(getattr(foreign, "trained_as", foreign)).__name__
        raise InputError(f"This model needs a {name}, which cannot be exported: only scorecards can.")
    if not np.array_equal(scorecard.classes_, final.classes_):
        raise InputError(
            "The pooled classifier of this model knows other labels than the model: it cannot be exported."
        )
    return final, scorecard, scorecard.binning_.kinds if reader is None else reader.columns_


# ---- expressions ----

# Steps must be kept apart: otherwise a column that a hundred conditions read is cleaned a hundred times.
_MATERIALIZING = ("postgres", "sqlite")
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
Columns = Mapping[str, exp.Expression]


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


def _column(name: str, table: str | None = None) -> exp.Column:
    """Name a column, of a step where it says which; the name is quoted, whatever it holds."""
    return exp.column(exp.to_identifier(name, quoted=True), table=table)


def _case(
    branches: Iterable[Branch], default: exp.Expression | None = None, of: exp.Expression | None = None
) -> exp.Expression:
    """Write CASE: the value of the first condition that holds or, with `of`, of the first value that it equals."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(this=of, ifs=ifs, default=default)


def _all_of(conditions: Sequence[exp.Expression]) -> exp.Expression:
    """Join conditions that must all hold; none at all always do."""
    return cast("exp.Expression", exp.and_(*(conditions or [exp.true()])))


def _sum(terms: Sequence[exp.Expression]) -> exp.Expression:
    """Add up in this order, as the model does, so that no digit differs; very many terms in several sums."""
    if len(terms) > _MOST_TERMS:
        slices = [terms[start : start + _MOST_TERMS] for start in range(0, len(terms), _MOST_TERMS)]
        return _sum([exp.Paren(this=_sum(terms_of_slice)) for terms_of_slice in slices])
    # Not by the operator +, which copies both sides.
    total = terms[0]
    for term in terms[1:]:
        total = exp.Add(this=total, expression=term)
    return total


def _divided(dividend: exp.Expression, divisor: exp.Expression) -> exp.Expression:
    """Divide floating point numbers; sqlglot is told that they are, and adds no casts."""
    return exp.Div(this=dividend, expression=divisor, typed=True, safe=False)


def _within(node: exp.Expression, low: float, high: float | None = None) -> exp.Expression:
    """Replace what is beyond a limit by the limit.

    Not GREATEST and LEAST: some databases leave a gap out there, and the limit would take the place of a gap.
    """
    branches: list[Branch] = [(node < _real(low), _real(low))]
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
        low, high = (exp.cast(_real(limit), "double") for limit in (-LARGEST_NUMBER, LARGEST_NUMBER))
        return _case([(_all_of([source > low, source < high]), exp.cast(source, "double"))])
    value = exp.TryCast(this=source, to=exp.DataType.build("double"))
    # Written so that NaN fails, too.
    return _case([(exp.Abs(this=value) < _real(LARGEST_NUMBER), value)])


def _read_days(source: exp.Expression, dialect: str) -> exp.Expression:
    """Read a date as days since 1970, in whole seconds."""
    if dialect == "sqlite":
        # Only what begins like a date: SQLite takes "now" and plain numbers for points in time as well.
        seconds = exp.Anonymous(this="STRFTIME", expressions=[_text("%s"), source])
        is_date = exp.Glob(this=source.copy(), expression=_text("[0-9][0-9][0-9][0-9]-*"))
        return _case([(is_date, _divided(exp.cast(seconds, "double"), _real(_SECONDS_OF_A_DAY)))])
    instant = exp.TryCast(this=source, to=exp.DataType.build("timestamp"))
    if dialect == "postgres":
        since: exp.Expression = exp.Extract(this=exp.var("EPOCH"), expression=instant)
    else:
        since = exp.TimeToUnix(this=instant)
    return _divided(exp.cast(exp.Floor(this=since), "double"), _real(_SECONDS_OF_A_DAY))


def _read_flag(source: exp.Expression) -> exp.Expression:
    """Read true and false, or 1 and 0, however a table holds them."""
    word = exp.Lower(this=exp.Trim(this=exp.cast(source, "text")))
    words = {value: [_text(name) for name, meaning in FLAGS.items() if meaning == value] for value in (1.0, 0.0)}
    return _case([(word.isin(*words[value]), _real(value)) for value in words])


def _read_category(source: exp.Expression, categories: Collection[str], has_gap_words: bool) -> exp.Expression:
    """Read a value as the name of a category; a gap is the category `MISSING`, and so are words such as "NA" in files.

    Blanks around such a word do not matter.
    """
    name, missing = exp.cast(source, "text"), _text(MISSING)
    branches: list[Branch] = [(name.is_(exp.null()), missing)]
    whole_numbers = [category for category in sorted(categories) if _WHOLE.fullmatch(category)]
    if whole_numbers:
        # 1.0 and 1.00 are the category 1, whether a table holds text or fractions.
        without_zeros = exp.Trim(this=name, expression=_text("0"), position="TRAILING")
        as_category = [(_text(f"{category}."), _text(category)) for category in whole_numbers]
        has_fraction = exp.Like(this=name.copy(), expression=_text("%.%0"))
        branches.append((has_fraction, _case(as_category, name.copy(), of=without_zeros)))
    if not has_gap_words:
        return _case(branches, name.copy())
    # Names of categories come first: nearly all values are among them, and TRIM is slow.
    names = [_text(category) for category in sorted(categories)]
    first = [(name.isin(*names), name.copy())] if names else []
    words = [_text(word) for word in sorted(MISSING_WORDS)]
    return _case([*first, *branches, (exp.Trim(this=name.copy()).isin(*words), missing.copy())], name.copy())


# ---- groups and scores ----


def _condition(condition: Condition) -> exp.Expression:
    """Write a condition that is true or false for every row, gaps included."""
    node = _column(condition.column)
    if condition.is_category:
        if not condition.values:
            return exp.true() if condition.is_negated else exp.false()
        is_named = node.isin(*map(_text, condition.values))
        return exp.not_(is_named) if condition.is_negated else is_named
    if condition.is_only_missing:
        return node.is_(exp.null()) if condition.with_missing else exp.false()
    limits: list[exp.Expression] = []
    for operator, value in ((exp.GT, condition.low), (exp.LTE, condition.high)):
        if value is not None:
            limit = _number(value)
            if condition.kind.startswith(DATE):
                limit.add_comments([write_date(value, 17)])
            limits.append(operator(this=node.copy(), expression=limit))
    if not limits:
        return exp.true() if condition.with_missing else exp.not_(node.is_(exp.null()))
    in_interval = _all_of(limits)
    return cast("exp.Expression", exp.or_(node.is_(exp.null()), in_interval)) if condition.with_missing else in_interval


def _score(columns: Iterable[Column], points: Iterable[NDArray[Any]], intercept: float, output: int) -> exp.Expression:
    """Write one logit: the intercept, then what each column adds, in the order in which the model adds them."""
    terms = [_column_points(column, table[:, output].tolist()) for column, table in zip(columns, points, strict=True)]
    return _sum([exp.cast(_real(intercept), "double"), *(term for term in terms if term is not None)])


def _column_points(column: Column, points: list[float]) -> exp.Expression | None:
    """Write the points of a column; None where they are 0 in every bin."""
    if column.is_category:
        # The last points are for rare and unseen categories.
        default = points[len(column.categories)]
        named = zip(column.categories, points, strict=False)
        branches = [(_text(category), _real(value)) for category, value in named if value != default]
        if not branches:
            return _real(default) if default else None
        return _case(branches, _real(default), of=_column(column.name))
    *by_bin, missing = points
    node = _column(column.name)
    # Neighbours with the same points are one step.
    changes = [(cut, by_bin[i]) for i, cut in enumerate(column.cuts) if by_bin[i] != by_bin[i + 1]]
    steps: list[Branch] = [(node <= _number(cut), _real(value)) for cut, value in changes]
    if not steps and by_bin[-1] == missing:
        return _real(missing) if missing else None
    last = node > _number(changes[-1][0]) if changes else exp.not_(node.is_(exp.null()))
    # What no comparison holds for is a gap.
    return _case([*steps, (last, _real(by_bin[-1]))], _real(missing))


# ---- the statement ----

_SOURCE = "source"
# A table with the name of a step would be taken for the step.
_PREFIX = "dafh_"


class _Statement:
    """Steps of a statement; each adds columns to those of the step before it."""

    def __init__(
        self, final: Any, scorecard: Scorecard, columns: Mapping[str, str], has_gap_words: bool, dialect: str
    ) -> None:
        self.final, self.scorecard, self.columns = final, scorecard, columns
        self.has_gap_words, self.dialect = has_gap_words, dialect
        self.trained: Any = final._trained if isinstance(final, DAFHClassifier) else None
        # Groups by the position of the classifier that serves them.
        self.groups_of: dict[int, list[int]] = {}
        for group, server in enumerate(final.serves_.tolist() if self.trained else []):
            self.groups_of.setdefault(server, []).append(group)
        self.pooled_groups = self.groups_of.pop(final.n_groups_, []) if self.trained else []
        self._steps: list[tuple[str, exp.Select]] = []
        self._names = {name.lower() for name in columns}

    def write(self, table: str, keep: Sequence[str]) -> str:
        """Write all steps, and what `dafh predict` writes: label, probabilities and group."""
        # A column to carry over may be one that the model reads: both go through all steps, the second one cleaned.
        carried = {name: self._new_name("carried") for name in keep}
        self._add_cleaned(table, carried)
        group = None if self.trained is None else self._add_groups()
        points, intercept, binned = self.scorecard.points_, self.scorecard.intercept_, self.scorecard.binning_.columns
        pooled = self._add_scores(
            "pooled", "pooled_score", lambda output: _score(binned, points, float(intercept[output]), output)
        )
        by_own = pooled
        if group is not None and self.groups_of:
            by_own = self._add_scores("scored", "score", lambda output: self._corrected(pooled[output], output, group))
        columns: dict[str, exp.Expression] = {"prediction": self._label(group, pooled, by_own)}
        columns |= self._probabilities(by_own)
        scaling = None if self.trained is not None else self.scorecard.scaling
        if scaling is not None:
            factor = scaling.factor(self.scorecard.classes_.tolist())
            columns["points"] = exp.Add(this=_real(scaling.start), expression=_real(factor) * _column(by_own[0]))
        if group is not None:
            columns["group"] = _column(group)
        for name in carried:
            if name.lower() in {result.lower() for result in columns}:
                raise InputError(f"The column {quoted(name)} cannot be carried over: a column of scores has this name.")
        columns = {name: _column(new) for name, new in carried.items()} | columns
        select = exp.select(*_aliased(columns), copy=False)
        select = select.from_(exp.Table(this=exp.to_identifier(self._steps[-1][0])))
        for name, step in self._steps:
            materialized = True if self.dialect in _MATERIALIZING else None
            select = select.with_(exp.to_identifier(name), as_=step, materialized=materialized, copy=False)
        return select.sql(self.dialect, pretty=True)

    def _new_name(self, stem: str) -> str:
        """Return a name that no other column of the steps has, whatever their case."""
        name, attempt = stem, 1
        while name.lower() in self._names:
            attempt += 1
            name = f"{stem}_{attempt}"
        self._names.add(name.lower())
        return name

    def _add(self, step: str, columns: Columns) -> None:
        """Add a step with all columns of the last one and some more."""
        last = exp.Table(this=exp.to_identifier(self._steps[-1][0]))
        self._steps.append((_PREFIX + step, exp.select(exp.Star(), *_aliased(columns), copy=False).from_(last)))

    def _add_scores(self, step: str, stem: str, write: Callable[[int], exp.Expression]) -> list[str]:
        """Add a step with one column, or one for each of several classes, and return their names."""
        n_outputs = len(self.scorecard.intercept_)
        names = [self._new_name(stem if n_outputs == 1 else f"{stem}_{output}") for output in range(n_outputs)]
        self._add(step, {name: write(output) for output, name in enumerate(names)})
        return names

    def _add_cleaned(self, table: str, carried: Mapping[str, str]) -> None:
        """Take the columns that the model needs from the table, as it reads them, and those to carry over."""
        try:
            source_table = exp.to_table(table, dialect=self.dialect)
        except (SqlglotError, ValueError) as error:
            raise InputError(f"{quoted(table)} is not the name of a table.") from error
        # Names of the categories that any part of the model uses, by column.
        categories: dict[str, set[str]] = {}
        for region in [] if self.trained is None else self.trained.regions:
            for condition in region.conditions:
                if condition.is_category:
                    categories.setdefault(condition.column, set()).update(condition.values)
        for column in self.scorecard.binning_.columns:
            if column.is_category:
                categories.setdefault(column.name, set()).update(column.categories)
        columns: dict[str, exp.Expression] = {new: _column(name, _SOURCE) for name, new in carried.items()}
        for name, kind in self.columns.items():
            source = _column(name, _SOURCE)
            if kind == "category":
                columns[name] = _read_category(source, categories.get(name, ()), self.has_gap_words)
            elif kind == "flag":
                columns[name] = _read_flag(source)
            else:
                read = _read_days if kind.startswith(DATE) else _read_number
                columns[name] = read(source, self.dialect)
        select = exp.select(*_aliased(columns), copy=False)
        select = select.from_(exp.alias_(source_table, _SOURCE, table=True), copy=False)
        self._steps.append((f"{_PREFIX}cleaned", select))

    def _add_groups(self) -> str:
        """Add the number of the first exception that holds, or of everybody else, and return its name."""
        group = self._new_name("group")
        rules = [
            (_all_of([_condition(condition) for condition in region.conditions]), _number(number))
            for number, region in enumerate(self.trained.regions)
        ]
        self._add("grouped", {group: _case(rules, _number(len(rules))) if rules else _number(0)})
        return group

    def _corrected(self, pooled: str, output: int, group: str) -> exp.Expression:
        """Write a logit of the classifier that serves a row: the pooled one, and what its group adds."""
        binned, corrections = self.final._encoding.binning.columns, self.trained.corrections
        branches = []
        for server, groups in self.groups_of.items():
            points, intercept = [table[server] for table in corrections.points], corrections.intercept[server]
            branches.append((_is_group(group, groups), _score(binned, points, float(intercept[output]), output)))
        return exp.Add(this=_column(pooled), expression=_case(branches, _real(0)))

    def _probabilities(self, scores: list[str]) -> dict[str, exp.Expression]:
        """Write the probability of the second of two classes, or of each of several, named as `dafh predict` does."""
        classes = self.final.classes_
        if len(scores) == 1:
            # Beyond e^700 to 1, some databases stop with an error instead of giving 0 or 1.
            limit = -_SMALLEST_EXPONENT if self.trained is None else LARGEST_LOGIT
            score = _within(_column(scores[0]), -limit, limit)
            # The minus is on the outside of CASE: written before a column it would be read as a comment where two meet.
            power = exp.Exp(this=exp.Neg(this=exp.Paren(this=score)))
            odds = exp.Paren(this=exp.Add(this=_real(1), expression=power))
            return {f"probability_{classes[1]}": _divided(_real(1), odds)}
        largest = self._new_name("largest_score")
        # Scores are missing together or not at all.
        first, *further = map(_column, scores)
        self._add("largest", {largest: exp.Greatest(this=first, expressions=further, ignore_nulls=True)})

        def power_of(output: int) -> exp.Expression:
            # Less the largest one: no logit is too large for that.
            return exp.Exp(this=_within(_column(scores[output]) - _column(largest), _SMALLEST_EXPONENT))

        powers = self._add_scores("powers", "power", power_of)
        return {
            f"probability_{label}": _divided(_column(power), exp.Paren(this=_sum([_column(name) for name in powers])))
            for label, power in zip(classes, powers, strict=True)
        }

    def _label(self, group: str | None, pooled: list[str], by_own: list[str]) -> exp.Expression:
        """Write the label: of the pooled classifier by its own score and cut-off, where that serves a row."""
        pooled_cutoff = float(logit(self.scorecard.threshold_))
        by_pooled = self._decisions(pooled, pooled_cutoff)
        if group is None or not self.groups_of:
            return _case(by_pooled)
        cutoff = float(logit(self.final.threshold_))
        if not self.pooled_groups or cutoff == pooled_cutoff:
            return _case(self._decisions(by_own, cutoff))
        is_pooled = _is_group(group, self.pooled_groups)
        return _case([(is_pooled, _case(by_pooled)), *self._decisions(by_own, cutoff)])

    def _decisions(self, scores: list[str], cutoff: float) -> list[Branch]:
        """Conditions under which each label is predicted; none holds where a score is missing."""
        labels = [_label_literal(label) for label in self.final.classes_.tolist()]
        if len(scores) == 1:
            score, limit = _column(scores[0]), _real(cutoff)
            return [(score > limit, labels[1]), (score <= limit, labels[0])]
        # A tie goes to the first class.
        return [
            (_all_of([_column(score) >= _column(rival) for rival in scores if rival != score]), label)
            for score, label in zip(scores, labels, strict=True)
        ]


def _aliased(columns: Columns) -> list[exp.Expression]:
    return [exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True)) for name, node in columns.items()]


def _is_group(group: str, numbers: Sequence[int]) -> exp.Expression:
    return _column(group).isin(*map(_number, numbers))


def _label_literal(label: Any) -> exp.Expression:
    if isinstance(label, bool):
        return exp.true() if label else exp.false()
    if isinstance(label, int):
        return exp.Literal.number(label)
    return _text(label) if isinstance(label, str) else _number(label)
