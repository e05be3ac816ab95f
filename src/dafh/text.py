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


def clipped(text: Any, width: int = 60) -> str:
    r"""Put a name or a value from the data into a line of text: without line breaks, and not longer than `width`.

    Examples
    --------
    >>> clipped("a name\nof two lines", 12)
    'a name of t…'
    """
    line = "".join(letter if letter.isprintable() else " " for letter in str(text)[: width + 1])
    return line if len(line) <= width else line[: width - 1] + "…"


def quoted(text: Any, width: int = 60) -> str:
    """Clip a name or a value from the data, and put it into quotation marks."""
    return repr(clipped(text, width))


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


def render_html(*parts: str | pd.DataFrame) -> str:
    """Put sentences and tables below each other; nothing in either becomes markup."""
    body = "".join(_html_table(part) if isinstance(part, pd.DataFrame) else _paragraph(part) for part in parts)
    return f"<div>{body}</div>"


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _html_table(table: pd.DataFrame) -> str:
    """Write a table with headings over their columns; the style goes into the cells, where every notebook keeps it."""
    page = table.to_html(index=False, escape=True, border=0)
    for cell in ("th", "td"):  # Escaped, no text of the table looks like a tag.
        page = page.replace(f"<{cell}>", f'<{cell} style="text-align: left; padding: 2px 14px 2px 0">')
    return page


def plain(value: Any) -> Any:
    """Python values for JSON: no NumPy types, None for what is unknown or infinite, text for anything else.

    Examples
    --------
    >>> plain({"n": np.int64(3), "gap": np.nan, "when": pd.Timestamp("2026-01-01")})
    {'n': 3, 'gap': None, 'when': '2026-01-01 00:00:00'}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
