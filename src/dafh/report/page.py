"""One self-contained HTML file from a summary: it needs no network, and nothing from the data becomes markup or script.

Values reach the page in two ways only: as text through a template that escapes everything, and as chart data in JSON
with every angle bracket and ampersand escaped. The page's content security policy allows its own two scripts, by their
checksums, and no connection at all.
"""

import base64
import functools
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import altair as alt
import jinja2
from markupsafe import Markup

from dafh.report import charts, tables
from dafh.storage import replacing
from dafh.text import listed, percent

_SIGNS = {
    "deploy": "✔",
    "deploy_with_checks": "◆",
    "deploy_some": "◐",
    "keep": "○",
    "do_not_deploy": "✖",
    "unaudited": "–",
}


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
    if "batches" in summary:
        drawn, shown = charts.make_watch_charts(summary), tables.make_watch_tables(summary)
        return _fill("watched.html", summary, drawn, shown, groups=sorted({row["group"] for row in summary["now"]}))
    if "comparison" in summary:
        return _fill(
            "compared.html",
            summary,
            charts.make_comparison_charts(summary),
            {f"part_{number}": {**part, "long": False} for number, part in enumerate(summary["parts"])},
        )
    drawn = charts.make_charts(summary)
    return _fill(
        "page.html",
        summary,
        drawn,
        tables.make_tables(summary),
        sign=_SIGNS[summary["recommendation"]["kind"]],
        shown=lambda name: [loss for loss in summary["losses"] or [] if f"{name}_{loss['name']}" in drawn],
        drawn=charts.drawn_columns(summary),
        listed=listed,
        percent=percent,
    )


def _fill(
    name: str,
    summary: dict[str, Any],
    charts: Mapping[str, alt.LayerChart],
    tables: Mapping[str, dict[str, Any]],
    **values: Any,
) -> str:
    """Fill in a template."""
    library, script = _chart_library(), _asset("page.js")
    return _template(name).render(
        summary=summary,
        charts={name: _as_json(chart) for name, chart in charts.items()},
        tables=tables,
        policy=_security_policy(library, script),
        # These three come with the package. They and the chart data are all that is not escaped by the template.
        library=Markup(library),
        script=Markup(script),
        style=Markup(_asset("page.css")),
        **values,
    )


def _as_json(chart: alt.LayerChart) -> Markup:
    """JSON without any character that HTML gives a meaning to: a value cannot close the script it stands in."""
    # Not checked against the schema of Vega-Lite, which takes a third of the time: the charts are all ours, and tested.
    specification = chart.properties(width="container").to_dict(validate=False)
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
