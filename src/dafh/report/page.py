"""One self-contained HTML file from a summary: it needs no network, and nothing from the data becomes markup or script.

Values reach the page in two ways only: as text through a template that escapes everything, and as chart data in JSON
with every angle bracket and ampersand escaped. The page's content security policy allows its own two scripts, by their
checksums, and no connection at all.
"""

import base64
import functools
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import altair as alt
import jinja2
from markupsafe import Markup

from dafh.storage import replacing
from dafh.text import Section

# Longer tables stay folded on paper: nobody wants them there, and the file has them.
_LONGEST_PRINTED = 40
# More would make the page slow, and nobody reads so far.
_MOST_ROWS = 250
# An interval, and a change with its arrow: in two lines they would be read as two numbers.
_INTERVAL = re.compile(r"[+-]?[\d.,]+%? (to|→) [+-]?[\d.,]+%?")


def write_report(summary: dict[str, Any], path: str | Path) -> None:
    """Write the page to a file, completely or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from dafh.report import summarize, write_report
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(summarize(title="Hiring"), path)
    >>> "<title>Hiring</title>" in path.read_text(encoding="utf-8")
    True
    """
    page = render(summary)
    with replacing(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render(summary: dict[str, Any]) -> str:
    """Turn what `summarize`, `summarize_comparison` or `summarize_watch` returns into a page.

    Examples
    --------
    >>> from dafh.report import render, summarize
    >>> render(summarize())[:15]
    '<!doctype html>'
    """
    library, script = _chart_library(), _asset("page.js")
    return _template(f"{summary['about']}.html").render(
        summary=summary,
        charts={name: _as_json(specification) for name, specification in summary["charts"].items()},
        tables=summary["tables"],
        policy=_security_policy(library, script),
        # These three come with the package. They and the chart data are all that is not escaped by the template.
        library=Markup(library),
        script=Markup(script),
        style=Markup(_asset("page.css")),
    )


def page_table(section: Section) -> dict[str, Any]:
    """Heads and cells of the table of a section, how many rows it has in all, and whether it is too long for paper."""
    values = section.to_dict()
    n_rows, first = len(values["rows"]), values["rows"][:_MOST_ROWS]
    rows = [[_INTERVAL.sub(lambda interval: interval[0].replace(" ", "\u00a0"), cell) for cell in row] for row in first]
    return {**values, "rows": rows, "n_rows": n_rows, "long": n_rows > _LONGEST_PRINTED}


def page_charts(charts: Mapping[str, alt.LayerChart]) -> dict[str, dict[str, Any]]:
    """Specifications of charts that are as wide as the page."""
    # Not checked against the schema of Vega-Lite, which takes a third of the time: the charts are all ours, and tested.
    return {name: chart.properties(width="container").to_dict(validate=False) for name, chart in charts.items()}


def _as_json(specification: dict[str, Any]) -> Markup:
    """JSON without any character that HTML gives a meaning to: a value cannot close the script it stands in."""
    text = json.dumps(specification, ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@functools.cache
def _template(name: str) -> jinja2.Template:
    """Return a compiled template of this folder: to compile it takes longer than to fill it in."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_asset),
    )
    return environment.get_template(name)


def _security_policy(*scripts: str) -> str:
    """Let a page run these scripts and nothing else, and connect to nothing."""
    sums = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{checksum}'" for checksum in sums)
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}; base-uri 'none'; "
        "form-action 'none'"
    )


@functools.cache
def _chart_library() -> str:
    """Return the library that draws charts, as one script."""
    import vl_convert

    return vl_convert.javascript_bundle("window.drawChart = vegaEmbed;")


def _asset(name: str) -> str:
    """Return a file of this folder."""
    return files("dafh.report").joinpath(name).read_text(encoding="utf-8")
