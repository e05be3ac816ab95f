"""Names of columns as commands take them, and names for columns of results."""

import itertools
from collections.abc import Iterable, Sequence


def split_names(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Different names of columns, given one by one or joined by commas; a name that itself has a comma is one name.

    Examples
    --------
    >>> split_names(["age,sex", "born, where"], ["age", "sex", "born, where"])
    ['age', 'sex', 'born, where']
    """
    known = set(columns)
    parts = ([entry] if entry in known else [part.strip() for part in entry.split(",")] for entry in names)
    return [name for name in dict.fromkeys(itertools.chain(*parts)) if name]


def names_beside(names: Sequence[str], taken: Sequence[str]) -> dict[str, str]:
    """Other names for columns whose own are taken.

    Examples
    --------
    >>> names_beside(["age", "row"], taken=["row", "prediction"])
    {'age': 'age', 'row': 'row (given)'}
    """
    found: dict[str, str] = {}
    for name in names:
        new = name
        # The new name may be taken as well, or be the name of a later column.
        while new in taken or new in found.values() or (new != name and new in names):
            new = f"{new} (given)"
        found[name] = new
    return found
