"""Columns of a table as the model reads them: numbers and days as floats, categories as names.

The same as `dafh.tables.values` does with the columns of a file. A value that cannot be read as what its column holds
is missing in databases that can try to read it (SQLite, DuckDB and most warehouses); the others refuse the table.
"""

import re
from collections.abc import Callable, Collection

from sqlglot import exp

from dafh.export.dialects import Dialect
from dafh.export.expressions import as_double, can_hold, case, divided, is_null, real, text
from dafh.frames import MISSING
from dafh.tables.values import DATE, FLAGS, LARGEST_NUMBER, MISSING_WORDS

_SECONDS_OF_A_DAY = 86_400.0
# What Python's `strip` takes away. Letters and not a class of them: TRIM knows no classes.
_BLANKS = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
_WHOLE = re.compile(r"-?\d+")
# DuckDB looks up longer lists for all rows, also for those that an earlier condition has settled: to trim half a
# million values then took 0.8 s instead of 0.03 s.
_LAZY = 4

Blank = Callable[[], exp.Expression]
"""Makes the node of the text with all blank letters, which is written once."""


def blank_letters(dialect: Dialect) -> exp.Expression:
    """Write the letters that do not count at the ends of a word, by their numbers: nobody could read them."""
    joined: exp.Expression = text(" ", dialect)
    for letter in _BLANKS.replace(" ", ""):
        known = ord(letter) <= dialect.largest_code
        code = exp.Chr(expressions=[exp.Literal.number(ord(letter))]) if known else text(letter, dialect)
        joined = exp.DPipe(this=joined, expression=code, safe=True)
    return joined


def cleaned(
    source: exp.Expression, kind: str, categories: Collection[str], blanks: Blank, has_gap_words: bool, dialect: Dialect
) -> exp.Expression:
    """Read a column as its kind.

    Parameters
    ----------
    source : node
        The column of the table.
    kind : str
        As in a schema.
    categories : collection of str
        Names that the model knows, of a column of categories.
    blanks : function
        Makes the node for all blank letters.
    has_gap_words : bool
        Whether words such as "NA" are gaps.
    dialect : Dialect
    """
    if kind == "category":
        return _category(source, categories, blanks if has_gap_words else None, dialect)
    if kind == "flag":
        return _flag(source, blanks, dialect)
    return _days(source, dialect) if kind.startswith(DATE) else _number(source, dialect)


def _number(source: exp.Expression, dialect: Dialect) -> exp.Expression:
    """Read a number; infinite ones, and those too large to square, are missing."""
    if dialect.name == "sqlite":
        # A comparison with a number makes SQLite read text as a number where all of it is one. Other text is larger
        # than every number. A cast alone would read "12 b" as 12 and "unknown" as 0.
        low, high = (as_double(real(limit)) for limit in (-LARGEST_NUMBER, LARGEST_NUMBER))
        inside = exp.And(
            this=exp.GT(this=source, expression=low), expression=exp.LT(this=source.copy(), expression=high)
        )
        return case([(inside, as_double(source.copy()))])
    value = exp.TryCast(this=source, to=exp.DataType.build("double"))
    # Written so that NaN fails, too.
    return case([(exp.LT(this=exp.Abs(this=value), expression=real(LARGEST_NUMBER)), value.copy())])


def _days(source: exp.Expression, dialect: Dialect) -> exp.Expression:
    """Read a date as days since 1970, in whole seconds."""
    if dialect.name == "sqlite":
        # Only what begins like a date: SQLite takes "now" and plain numbers for points in time as well.
        seconds = exp.Anonymous(this="STRFTIME", expressions=[exp.Literal.string("%s"), source])
        date = exp.Glob(this=source.copy(), expression=exp.Literal.string("[0-9][0-9][0-9][0-9]-*"))
        return case([(date, divided(as_double(seconds), real(_SECONDS_OF_A_DAY)))])
    kind = "timestamptz" if dialect.name == "bigquery" else "timestamp"
    instant = exp.TryCast(this=source, to=exp.DataType.build(kind))
    seconds_since: exp.Expression = exp.TimeToUnix(this=instant)
    if dialect.name == "bigquery":
        seconds_since = exp.UnixSeconds(this=instant)
    elif dialect.name in ("postgres", "redshift"):
        seconds_since = exp.Extract(this=exp.var("EPOCH"), expression=instant)
    return divided(as_double(exp.Floor(this=seconds_since)), real(_SECONDS_OF_A_DAY))


def _flag(source: exp.Expression, blanks: Blank, dialect: Dialect) -> exp.Expression:
    """Read true and false, or 1 and 0, however a table holds them."""
    word = exp.Lower(this=exp.Trim(this=_as_text(source), expression=blanks()))
    branches = []
    for value in (1.0, 0.0):
        words = [text(name, dialect) for name, meaning in FLAGS.items() if meaning == value]
        branches.append((exp.In(this=word.copy(), expressions=words), real(value)))
    return case(branches)


def _category(
    source: exp.Expression, categories: Collection[str], blanks: Blank | None, dialect: Dialect
) -> exp.Expression:
    """Read a value as the name of a category; a gap is the category `MISSING`."""
    name = _as_text(source)
    missing = text(MISSING, dialect)
    branches: list[tuple[exp.Expression, exp.Expression]] = [(is_null(name), missing)]
    whole = [category for category in sorted(categories) if _WHOLE.fullmatch(category)]
    if whole:
        # 1.0 and 1.00 are the category 1, whether a table holds text or fractions.
        without_zeros = exp.Trim(this=name.copy(), expression=text("0", dialect), position="TRAILING")
        known = [(text(f"{category}.", dialect), text(category, dialect)) for category in whole]
        fraction = exp.Like(this=name.copy(), expression=text("%.%0", dialect))
        branches.append((fraction, case(known, name.copy(), of=without_zeros)))
    if blanks is None:
        return case(branches, name.copy())
    # Known names come first: nearly all values are known, and TRIM is slow.
    names = [text(category, dialect) for category in sorted(categories) if can_hold(category, dialect)]
    first = [(exp.In(this=name.copy(), expressions=names), name.copy())] if names else []
    words = [text(word, dialect) for word in sorted(MISSING_WORDS)]
    for start in range(0, len(words), _LAZY):
        trimmed = exp.Trim(this=name.copy(), expression=blanks())
        branches.append((exp.In(this=trimmed, expressions=words[start : start + _LAZY]), missing.copy()))
    return case([*first, *branches], name.copy())


def _as_text(source: exp.Expression) -> exp.Expression:
    return exp.Cast(this=source, to=exp.DataType.build("text"))
