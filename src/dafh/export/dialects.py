"""What databases do differently, as far as sqlglot does not see to it.

MySQL and SQL Server are left out: they take 'Cook' and 'cook', or 'cook' and 'cook ', for the same text unless a column
says otherwise, and rows would silently get the points of another category.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """How a database differs."""

    name: str
    folds_names: bool = True
    """Whether a table cannot have two columns that differ in upper and lower case only."""
    materialized: bool = False
    """Whether steps must be kept apart: otherwise a column that a hundred conditions read is cleaned a hundred
    times."""
    holds_nul: bool = True
    """Whether text can hold the character NUL."""
    substitutes: bool = False
    """Whether ``${name}`` is replaced even within text."""
    largest_code: int = 0x10FFFF
    """Largest number of a letter that CHR takes."""


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("bigquery"),
        Dialect("databricks", substitutes=True, largest_code=255),
        Dialect("duckdb"),
        Dialect("postgres", folds_names=False, materialized=True, holds_nul=False),
        Dialect("redshift", holds_nul=False),
        Dialect("snowflake", folds_names=False),
        Dialect("spark", substitutes=True, largest_code=255),
        Dialect("sqlite", materialized=True),
        Dialect("trino"),
    )
}
