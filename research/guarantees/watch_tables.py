"""All tables of docs/watch.md."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from research.paper.marks import fill
from research.guarantees.alarms import batch_table, level_table
from research.guarantees.delays import change_table, delay_table, run_length_table
from research.guarantees.limits import coverage_table, drift_table
from research.guarantees.service import service_table
from dafh.text import markdown

TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "alarms": level_table,
    "books": batch_table,
    "delays": delay_table,
    "changes": change_table,
    "run lengths": run_length_table,
    "limits": coverage_table,
    "drift": drift_table,
    "service": service_table,
}
"""Each fills the place of its name in the page."""


def written(names: Sequence[str] = tuple(TABLES)) -> Iterator[tuple[str, str]]:
    """Yield the name of each table, and the table in Markdown."""
    for name in names:
        yield name, as_markdown(TABLES[name]())


def write_page(page: Path, names: Sequence[str] = tuple(TABLES)) -> None:
    """Fill the tables into the page, each as soon as it is made."""
    for name, text in written(names):
        fill(page, name, text)


def as_markdown(table: pd.DataFrame) -> str:
    """Write numbers with as many digits as they mean; of two texts a line, the first is not repeated below itself."""
    cells = table.map(_cell)
    texts = [column for column in table if all(isinstance(value, str) for value in table[column])]
    if len(texts) > 1:
        cells[texts[0]] = cells[texts[0]].where(table[texts[0]] != table[texts[0]].shift(), "")
    title, _, *rest = markdown(cells).splitlines()
    rule = "| " + " | ".join("---" if column in texts else "---:" for column in table) + " |"
    return "\n".join([title, rule, *rest])


def _cell(value: object) -> str:
    if isinstance(value, float):
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text.replace("-", "−")
    return f"{value:,}" if isinstance(value, int) else str(value)
