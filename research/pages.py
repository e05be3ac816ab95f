"""Tables in Markdown, and places in hand-written pages that a study fills: no number is typed by hand."""

import re
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
    """Replace what stands between ``<!--name-->`` and ``<!--/name-->``."""
    begin, end = f"<!--{name}-->", f"<!--/{name}-->"
    page = file.read_text(encoding="utf-8")
    filled, n_places = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL
    )
    if not n_places:
        raise InputError(f"{file} has no place for the results: a line {begin} and a line {end}.")
    file.write_text(filled, encoding="utf-8")
