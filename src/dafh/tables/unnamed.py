"""Columns of a text file that nobody asked for: left out by name, or without a name beyond the header."""

from collections.abc import Collection

import pandas as pd

from dafh.exceptions import InputError

UNWANTED = "\0"
"""Before the names of columns that are not wanted; no column of a file has it."""
_BEYOND = f"{UNWANTED}beyond "


def names_beyond(n_names: int, n_cells: int) -> list[str]:
    """Names for the cells after the last name: lines that end with a delimiter have one, and nothing in it."""
    return [f"{_BEYOND}{i}" for i in range(n_names, n_cells)]


def unwanted_among(names: Collection[str]) -> list[str]:
    """Names of the columns that are not wanted."""
    return [name for name in names if name.startswith(UNWANTED)]


def without_unwanted(table: pd.DataFrame, file: str) -> pd.DataFrame:
    """Return the wanted columns, read as text where they are not; refuse rows with something beyond the header."""
    for name in table.columns[table.columns.str.startswith(_BEYOND)]:
        filled = table.index[table[name].fillna("").str.strip() != ""]
        if len(filled):
            n_names = sum(not column.startswith(_BEYOND) for column in table.columns)
            raise InputError(
                f"{file} cannot be read as a table: its first line has {n_names} cells, and its row {filled[0] + 1:,} "
                "has more."
            )
    unwanted = unwanted_among(table.columns)
    return table.drop(columns=unwanted) if unwanted else table
