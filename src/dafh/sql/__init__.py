"""Models as SQL, so that rows are scored where they live.

- `plan`: a fitted model taken apart into regions and points, and the sentences for what cannot be exported;
- `statement`: all of it as one SELECT. sqlglot writes it for each database; all values and names become nodes of its
  syntax tree, never pasted text: a category called ``'); DROP TABLE x; --`` stays a category.

A further dialect is an entry of `DIALECTS`, which the tests go through. A further kind of classifier is a kind of score
in `plan`, with its expression in `statement`.
"""

import importlib.util
from collections.abc import Sequence
from typing import Any

import dafh
from dafh.columns.schema import TableSchema
from dafh.exceptions import InputError
from dafh.sql.plan import Plan, make_plan
from dafh.text import printable, quoted, shown

__all__ = ["DIALECTS", "to_sql"]

# MySQL and SQL Server take 'Cook' and 'cook', or 'cook' and 'cook ', for the same text unless a column says otherwise,
# and rows would silently get the points of another category.
DIALECTS = ("duckdb", "postgres", "snowflake", "sqlite")
"""Databases that `to_sql` writes for."""
_HEADINGS = {"number": "numbers", "flag": "true or false", "category": "categories", "date": "dates or timestamps"}


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
    if importlib.util.find_spec("sqlglot") is None:
        raise InputError("Models are written as SQL with sqlglot, which is not installed: pip install 'dafh[sql]'.")
    from dafh.sql.statement import write_statement

    plan = make_plan(model, schema)
    statement = write_statement(plan, dialect, table, list(dict.fromkeys(keep)))
    return f"{_header(plan, dialect, notes)}\n{statement}\n"


def _header(plan: Plan, dialect: str, notes: Sequence[str]) -> str:
    """Write the comment at the top: what this is, and the columns it needs."""
    lines = [f"Scores of a model, as dafh {dafh.__version__} predicts them; for {dialect}.", *notes]
    for kind, heading in _HEADINGS.items():
        names = [name for name, known in plan.columns.items() if known.split(" ")[0] == kind]
        if names:
            lines.append(f"Columns of {heading}: {', '.join(names)}.")
            if kind == "date":
                lines.append("Days begin at midnight UTC: set the time zone of the session to UTC.")
    return "\n".join(f"-- {printable(line)}" for line in lines)
