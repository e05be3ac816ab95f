"""One self-contained HTML file from a summary: it needs no network, and nothing from the data becomes markup or script.

Values reach the page in two ways only: as text through a template that escapes everything, and as chart data in JSON
with every angle bracket and ampersand escaped. The page's content security policy allows its own two scripts, by their
checksums, and no connection at all.
"""

import base64
import functools
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from dafh import plots
from dafh.report.charts import MOST_BARS, MOST_RATES, drawn_columns, losses_drawn, make_charts
from dafh.report.tables import make_tables, write_gain, write_points
from dafh.storage import replacing
from dafh.text import listed, percent

_SIGNS = {"deploy": "✔", "deploy_some": "◐", "keep": "○", "do_not_deploy": "✖", "unaudited": "–"}


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
    with replacing(Path(path)) as temporary:
        temporary.write_text(render(summary), encoding="utf-8")


def render(summary: dict[str, Any]) -> str:
    """Turn what `summarize` returns into a page.

    Examples
    --------
    >>> from dafh.report import render, summarize
    >>> render(summarize())[:15]
    '<!doctype html>'
    """
    library, script, style = chart_library(), asset("page.js"), asset("page.css")
    charts = make_charts(summary)
    return template("page.html").render(
        summary=summary,
        sign=_SIGNS[summary["recommendation"]["kind"]],
        charts=charts,
        shown=functools.partial(losses_drawn, charts),
        tables=make_tables(summary),
        drawn=drawn_columns(summary),
        most_bars=MOST_BARS,
        most_rates=MOST_RATES,
        rate_names=list(plots.RATE_TITLES),
        gain=write_gain,
        listed=listed,
        percent=percent,
        points=write_points,
        policy=security_policy(library, script),
        # These three come with the package. They and the chart data are all that is not escaped by the template.
        library=Markup(library),
        script=Markup(script),
        style=Markup(style),
    )


@functools.cache
def template(name: str) -> jinja2.Template:
    """Return a compiled template of this folder: to compile it takes longer than to fill it in."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(asset),
    )
    return environment.get_template(name)


def security_policy(*scripts: str) -> str:
    """Let a page run these scripts and nothing else, and connect to nothing."""
    return "; ".join(
        [
            "default-src 'none'",
            "style-src 'unsafe-inline'",
            "img-src data:",
            f"script-src {' '.join(map(_checksum, scripts))}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


@functools.cache
def chart_library() -> str:
    """Return the library that draws charts, as one script."""
    import vl_convert

    return vl_convert.javascript_bundle("window.drawChart = vegaEmbed;")


def asset(name: str) -> str:
    """Return a file of this folder."""
    return files("dafh.report").joinpath(name).read_text(encoding="utf-8")


def _checksum(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
