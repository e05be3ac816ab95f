"""Tables in Markdown, and places in hand-written pages that a study fills: no number is typed by hand."""

from pathlib import Path

import pandas as pd

from dafh.exceptions import InputError


def markdown(table: pd.DataFrame) -> str:
    """Write a table.

    Examples
    --------
    >>> print(markdown(pd.DataFrame({"rows": [10], "what": ["fits"]})))
    | rows | what |
    | --- | --- |
    | 10 | fits |
    """
    cells = [table.columns, ["---"] * table.shape[1], *table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in cells)


def fill(file: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- name: begin -->`` and ``<!-- name: end -->``."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = file.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise InputError(f"{file} has no place for the results: a line {begin} and a line {end}.")
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
