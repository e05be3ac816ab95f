"""All tables of docs/watch.md."""

from collections.abc import Callable, Iterator

import pandas as pd

from dafh.study.watching.alarms import batch_table, level_table
from dafh.study.watching.delays import change_table, delay_table, run_length_table
from dafh.study.watching.limits import coverage_table, drift_table
from dafh.study.watching.service import service_table
from dafh.text import markdown

TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "Any alarm without harm, percentage of worlds": level_table,
    "The same in the monitor's own books": batch_table,
    "Rows until an alarm": delay_table,
    "Delay after 10,000 good rows": change_table,
    "Run length of warnings": run_length_table,
    "All limits hold at all times, percentage of worlds": coverage_table,
    "Drift where there is none, percentage of worlds": drift_table,
    "Two years of monthly batches": service_table,
}


def written() -> Iterator[str]:
    """Yield each table with its title."""
    for title, make in TABLES.items():
        yield f"**{title}**\n\n{as_markdown(make())}\n"


def as_markdown(table: pd.DataFrame) -> str:
    """Write numbers with as many digits as they mean."""
    return markdown(table.map(_cell), align="---:")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)
