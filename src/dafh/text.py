"""Numbers, names and tables for readers, in a terminal and in a notebook."""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

# From here on a number is easier to read with an exponent.
_MOST_WHOLE_DIGITS = 15
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
"""Characters that terminals obey, as Python writes them; for `str.translate`."""
# A date is written to the day with up to this many digits, and to the second with more.
_DAY_DIGITS = 4
# Words and signs that conditions are made of.
_OF_CONDITIONS = re.compile(
    r"""[,;]|^['"]|^$|^\s|\s$|(?<!\S)(and|is|not|or)(?!\S)|^above\b|^(missing|anything|never seen|\(other\))$"""
)


def percent(value: float) -> str:
    """Write a share in percent, and a dash if it is unknown."""
    # The z drops the sign of what rounds to zero: "-0.0%" would look like a mistake.
    return "–" if np.isnan(value) else f"{100 * value:z.1f}%"


def points(value: float) -> str:
    """Write a difference of two shares in percentage points, with its sign, and a dash if it is unknown."""
    return "–" if np.isnan(value) else f"{100 * value:+z.2f}"


def write_number(value: float, digits: int = 3) -> str:
    """Write a number with some significant digits, and at least all that stand before the point.

    Examples
    --------
    >>> [write_number(value) for value in (0.012345, 12.345, 1234.5)]
    ['0.0123', '12.3', '1,234']
    """
    # Not rounded: 99.94 has two digits before the point, and 100 would have three.
    n_digits = len(f"{np.trunc(abs(value)):.0f}")
    if n_digits > _MOST_WHOLE_DIGITS:
        return f"{value:.{digits}g}"
    return f"{value:z,.0f}" if n_digits >= digits else f"{value:z,.{digits}g}"


def write_exactly(value: float) -> str:
    """Write a number with all its digits and no more, so that reading it gives the same number.

    Examples
    --------
    >>> [write_exactly(value) for value in (24.0, 0.38, 1300.5, 1e-7)]
    ['24', '0.38', '1,300.5', '1e-07']
    """
    is_short_integer = float(value).is_integer() and len(f"{abs(value):.0f}") <= _MOST_WHOLE_DIGITS
    return f"{int(value):,}" if is_short_integer else f"{float(value):,}"


def write_date(days: float, digits: int = 3) -> str:
    """Write a date, counted in days since 1970: the day, and with more digits than a day needs also the time.

    Examples
    --------
    >>> write_date(18262.5), write_date(18262.5, digits=9)
    ('2020-01-01', '2020-01-01 12:00:00')
    """
    when = np.datetime64(round(float(days) * 86_400), "s")
    return str(when.astype("datetime64[D]")) if digits <= _DAY_DIGITS else str(when).replace("T", " ")


def listed(names: list[str]) -> str:
    """Join names with commas and a final "and"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def clipped(text: object, width: int = 60) -> str:
    r"""Make a name or a value from the data fit into a line: no line breaks, no more than `width` characters.

    Examples
    --------
    >>> clipped("a name\nof two lines", 12)
    'a name of t…'
    """
    line = "".join(letter if letter.isprintable() else " " for letter in str(text)[: width + 1])
    return line if len(line) <= width else line[: width - 1] + "…"


def printable(text: object) -> str:
    r"""Write letters that a terminal would obey or not show as Python does; for names of files, which are not clipped.

    Examples
    --------
    >>> print(printable("a\nb.csv"))
    a\nb.csv
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(text))


def shown(value: object, width: int = 120) -> str:
    """Write any value as Python does, in one line, for a message about it.

    Examples
    --------
    >>> shown("a"), shown([1, 2]), shown(10**5000)
    ("'a'", '[1, 2]', 'a value of type int')
    """
    try:
        return clipped(repr(value), width)
    except Exception:  # Numbers of thousands of digits, and objects whose own representation fails.
        return f"a value of type {type(value).__name__}"


def quoted(text: object, width: int = 60) -> str:
    """Clip a name or a value from the data and put it into quotation marks."""
    return repr(clipped(text, width))


def name_in_condition(text: object, width: int = 60) -> str:
    """Clip a name from the data, and quote one that could be mistaken for the words of a condition around it.

    Examples
    --------
    >>> name_in_condition("Norway"), name_in_condition("Trinidad and Tobago")
    ('Norway', "'Trinidad and Tobago'")
    """
    name = clipped(text, width)
    return repr(name) if _OF_CONDITIONS.search(name) else name


def render_text(table: pd.DataFrame, left: tuple[str, ...] = ()) -> str:
    """Align a table of texts: columns named in `left` at the left, all others at the right.

    Examples
    --------
    >>> print(render_text(pd.DataFrame({"name": ["a", "bbb"], "rows": [10, 5]}), left=("name",)))
     name  rows
     a       10
     bbb      5
    """
    cells = {str(name): [str(value) for value in table[name]] for name in table.columns}
    width = {name: max(map(len, [name, *values])) for name, values in cells.items()}

    def line(values: Iterable[str]) -> str:
        aligned = (
            value.ljust(width[name]) if name in left else value.rjust(width[name])
            for name, value in zip(cells, values, strict=True)
        )
        return " ".join(f" {value}" for value in aligned).rstrip()

    return "\n".join([line(cells), *(line(row) for row in zip(*cells.values(), strict=True))])


def render_html(*texts: str | pd.DataFrame) -> str:
    """Put sentences and tables below each other; nothing in either becomes markup."""
    written = (_html_table(text) if isinstance(text, pd.DataFrame) else f"<p>{html.escape(text)}</p>" for text in texts)
    return f"<div>{''.join(written)}</div>"


def _html_table(table: pd.DataFrame) -> str:
    """Write a table whose headings stand above their columns."""
    page = table.to_html(index=False, escape=True, border=0)
    # Some notebooks drop style sheets, none drops the style of a cell. All text is escaped, so only tags match here.
    for cell in ("th", "td"):
        page = page.replace(f"<{cell}>", f'<{cell} style="text-align: left; padding: 2px 14px 2px 0">')
    return page


LEFT = ("group", "rule", "who", "what", "loss", "answer", "served by")
"""Columns of text, which tables on a terminal align at the left."""


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a result for readers: a title, sentences and a table of texts, each of which may be missing.

    Terminal, notebook and report show the same sections.

    Examples
    --------
    >>> print(Section("Who loses", ["Two groups."], pd.DataFrame({"group": ["a", "b"], "gain": ["-1.0", "-0.5"]})))
    Who loses
    Two groups.
     group  gain
     a      -1.0
     b      -0.5
    """

    title: str = ""
    sentences: Sequence[str] = ()
    table: pd.DataFrame | None = None
    name: str = ""
    """By which a page finds the section, to put a chart beside its table."""

    def __str__(self) -> str:
        """Render for a terminal."""
        table = [] if self.table is None else [render_text(self.table, LEFT)]
        return "\n".join([*filter(None, [self.title]), *self.sentences, *table])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a page: title, sentences, columns and rows."""
        table = pd.DataFrame() if self.table is None else self.table.astype(str)
        values = {"columns": list(table.columns), "rows": table.to_numpy().tolist()}
        return {"title": self.title, "sentences": list(self.sentences), **values}


class Readable:
    """A result that shows its sections in a terminal and in a notebook."""

    def sections(self) -> list[Section]:
        """What to read, from the headline down."""
        raise NotImplementedError

    def summary(self) -> str:
        """Text for a terminal."""
        return "\n\n".join(map(str, self.sections()))

    def __str__(self) -> str:
        """Render for a terminal."""
        return self.summary()

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        texts: list[str | pd.DataFrame] = []
        for section in self.sections():
            texts += [*filter(None, [section.title]), *section.sentences]
            texts += [] if section.table is None else [section.table]
        return render_html(*texts)


def plain(value: object) -> Any:
    """Turn a value into what JSON knows: no NumPy types, None for unknown and infinite numbers, text for the rest.

    Examples
    --------
    >>> plain({"n": np.int64(3), "gap": np.nan, "when": pd.Timestamp("2026-01-01")})
    {'n': 3, 'gap': None, 'when': '2026-01-01 00:00:00'}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.datetime64 | np.timedelta64):  # `tolist` makes bare integers of nanoseconds.
        return plain(pd.Timestamp(value) if isinstance(value, np.datetime64) else pd.Timedelta(value))
    if isinstance(value, np.longdouble):  # Its `item` is a long double again.
        return plain(float(value))
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value] if value.ndim else plain(value[()])
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is pd.NA or value is pd.NaT:
        return None
    return value if isinstance(value, str | int | bool | None) else str(value)
