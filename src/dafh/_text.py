"""Numbers and tables for people, in a terminal and in a notebook."""

import html
from typing import Any

import numpy as np
import pandas as pd


def percent(value: float) -> str:
    """Write a share: 12.3%; a dash where there is none."""
    return "–" if np.isnan(value) else f"{100 * value:.1f}%"


def points(value: float) -> str:
    """Write a difference of two shares in points, with its sign."""
    return "–" if np.isnan(value) else f"{100 * value:+.2f}"


def listed(names: list[str]) -> str:
    """Join names as a sentence does.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def render_text(table: pd.DataFrame, left: tuple[str, ...] = ()) -> str:
    """Align a table of texts; columns named in `left` start at the left, all others end at the right."""
    cells = {str(name): [str(value) for value in table[name]] for name in table.columns}
    width = {name: max(map(len, [name, *values])) for name, values in cells.items()}

    def line(values: Any) -> str:
        aligned = (
            value.ljust(width[name]) if name in left else value.rjust(width[name])
            for name, value in zip(cells, values, strict=True)
        )
        return " ".join(f" {value}" for value in aligned).rstrip()

    return "\n".join([line(cells), *(line(row) for row in zip(*cells.values(), strict=True))])


def markdown(table: pd.DataFrame, align: str = "---") -> str:
    """Write a table of texts in Markdown."""
    lines = [list(map(str, table.columns)), [align] * table.shape[1]]
    lines += [[str(value) for value in row] for row in table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def render_html(title: str, *tables: pd.DataFrame) -> str:
    """Put a sentence over tables; nothing in either becomes markup."""
    body = "".join(table.to_html(index=False, escape=True, border=0) for table in tables)
    return f"<div><p>{html.escape(title)}</p>{body}</div>"
