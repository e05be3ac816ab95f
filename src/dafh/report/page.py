"""One self-contained HTML file from a summary: it needs no network, and nothing from the data becomes markup or script.

Values reach the page in two ways only: as text through a template that escapes everything, and as chart data in JSON
with every angle bracket and ampersand escaped. The page's content security policy allows its own two scripts, by their
checksums, and no connection at all.
"""

import base64
import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup

from dafh import plots
from dafh.evaluation.losses import LOSS_NAMES, Loss
from dafh.report.summary import headline
from dafh.tables.writing import replacing
from dafh.text import listed, percent, points

_SIGNS = {
    "harm": "✖", "nothing_gained": "○", "undecided": "◆", "no_harm": "✔", "unchanged": "=", "unaudited": "–",
}  # fmt: skip
_VERDICT_SIGNS = {"satisfied": "✔ satisfied", "violated": "✖ violated", "undecided": "◆ undecided"}
# More bars than this are no chart; the table behind it has all values.
_MOST_BARS = 40
# Columns of a scorecard that are drawn; its table has all.
_MOST_SCORED = 6
# Columns with fewer points, on average, do not change what anybody is told.
_SMALLEST_IMPORTANCE = 0.01


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
    charts = _charts(summary)
    return _template().render(
        summary=summary,
        sign=_SIGNS[summary["verdict"]["status"]],
        headline=headline(summary["figures"], summary["totals"]) if summary["figures"] else [],
        charts=charts,
        shown=functools.partial(_losses_drawn, charts),
        tables=_tables(summary),
        drawn=_drawn(summary),
        rate_names=list(plots.RATE_TITLES),
        gain=_gain,
        listed=listed,
        percent=percent,
        points=_points,
        policy=security_policy(library, script),
        # These three come with the package. They and the chart data are all that is not escaped by the template.
        library=Markup(library),
        script=Markup(script),
        style=Markup(style),
    )


@functools.cache
def _template() -> jinja2.Template:
    """Return the compiled template: to compile it takes longer than to fill it in."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(asset("page.html"))


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


# ---- charts ----


def _charts(summary: dict[str, Any]) -> dict[str, Markup]:
    """Specifications of all charts that the summary has data for, as JSON that is safe inside a page."""
    charts: dict[str, Any] = {}
    changed = summary["verdict"]["status"] != "unchanged"  # A chart of dots at zero says nothing.
    losses = [loss["name"] for loss in summary["losses"] or []]
    if summary["questions"] and changed:
        asked = pd.DataFrame(summary["questions"])
        for loss in losses:
            charts[f"gains_{loss}"] = plots.gains(asked, loss=loss)
            if (asked["kind"] == "envy").any():
                charts[f"envy_{loss}"] = plots.envy(asked, loss=loss)
        charts["matrix"] = plots.preference_matrix(pd.DataFrame(summary["cells"]))
    if summary["rates"] and changed:
        for rate in plots.RATE_TITLES:
            charts[f"rate_{rate}"] = plots.decisions(pd.DataFrame(summary["rates"]), rate)
    if summary["named"] and changed:
        named = pd.DataFrame(summary["named"]["questions"])
        for loss in losses:
            if loss in set(named["loss"]):  # Of very many questions, only the worst are here.
                charts[f"named_{loss}"] = plots.named_groups(named, loss=loss)
    if summary["composition"]:
        charts["composition"] = plots.composition(pd.DataFrame(summary["composition"]).head(_MOST_BARS))
    for number, column in enumerate(_drawn(summary)):
        charts[f"scorecard_{number}"] = plots.scorecard_chart(pd.DataFrame(column["bins"]), column["name"])
    if summary["training"]:
        history, best = pd.DataFrame(summary["training"]["history"]), summary["training"]["best_epoch"]
        for metric in plots.CURVES:
            charts[f"curve_{metric}"] = plots.curve(history, metric, best)
    return {name: as_json(chart.properties(width="container").to_dict()) for name, chart in charts.items()}


def _losses_drawn(charts: Mapping[str, Markup], name: str) -> list[str]:
    """Losses for which there is a chart of this name."""
    return [loss for loss in LOSS_NAMES if f"{name}_{loss}" in charts]


def _drawn(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Columns of the scorecard that are drawn: the most important ones, as far as they add any points."""
    columns = summary["scorecard"]["columns"] if summary["scorecard"] else []
    return [column for column in columns if column["importance"] >= _SMALLEST_IMPORTANCE][:_MOST_SCORED]


def as_json(value: object) -> Markup:
    """JSON without any character that HTML gives a meaning to: a value cannot close the script it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


# ---- tables: the figures behind the charts, formatted ----

_Column = tuple[str, Callable[[dict[str, Any]], str]]


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _points(value: float | None) -> str:
    return points(np.nan if value is None else value)


def _percent(value: float | None) -> str:
    return percent(np.nan if value is None else value)


def _level(name: str) -> Callable[[dict[str, Any]], str]:
    """How large a loss is: a share of rows, or the cost of 100 rows."""

    def cell(row: dict[str, Any]) -> str:
        value = row.get(name)
        return _number(value and 100 * value, "{:.2f}") if row.get("loss") == "cost" else _percent(value)

    return cell


def _gain(value: float | None, loss: str) -> str:
    """Write a gain with its unit."""
    of_loss = "" if loss == "error" else f" in {Loss(loss).title}"  # type: ignore[arg-type]
    return f"{_points(value)} {Loss(loss).unit}{of_loss}"  # type: ignore[arg-type]


def _title(row: dict[str, Any]) -> str:
    return Loss(row["loss"]).title


def _with_interval(name: str) -> Callable[[dict[str, Any]], str]:
    """A difference with its limits in one cell: two columns would make the tables too wide for a page."""
    return lambda row: f"{_points(row.get(name))} ({_points(row.get('low'))} to {_points(row.get('high'))})"


def _verdict_cell(row: dict[str, Any]) -> str:
    sign, needed = _VERDICT_SIGNS[row["verdict"]], row.get("rows_needed")
    return sign + (f" (needs about {needed:,.0f} people of this group)" if needed is not None else "")


def _question_columns(loss: str) -> tuple[_Column, ...]:
    short, unit = _heads(loss)
    return (
        ("group", lambda row: str(row["group"])),
        ("against", lambda row: "pooled" if row["rival"] == "pooled" else f"classifier {row['rival']}"),
        ("people", lambda row: f"{row['n']:,.0f}"),
        (f"{short} now", _level("own_loss")),
        (f"rival {short}", _level("rival_loss")),
        (f"gap, {unit}", _with_interval("gap")),
        ("corrected p of harm", lambda row: _number(row["p_corrected"], "{:.3f}")),
        ("answer", _verdict_cell),
    )


def _heads(loss: str) -> tuple[str, str]:
    """How a loss and its unit are called in the head of a table."""
    return Loss(loss).title.removesuffix(" rate"), "per 100 rows" if loss == "cost" else "points"  # type: ignore[arg-type]


def _serving_columns(loss: str) -> tuple[_Column, ...]:
    short, unit = _heads(loss)
    return (
        ("group", lambda row: str(row["group"])),
        ("served by", lambda row: row["served_by"]),
        ("answer", lambda row: _VERDICT_SIGNS.get(row.get("verdict", ""), "–")),
        ("people", lambda row: _number(row.get("rows"), "{:,.0f}")),
        ("share", lambda row: _percent(row.get("share"))),
        (f"{short} now", _level("own_loss")),
        (f"pooled {short}", _level("rival_loss")),
        (f"gain, {unit}", _with_interval("gap")),
    )


def _guard_columns(loss: str) -> tuple[_Column, ...]:
    short, unit = _heads(loss)
    return (
        ("group", lambda row: str(row["group"])),
        ("served by", lambda row: row["served_by"]),
        ("people", lambda row: f"{row['rows']:,.0f}"),
        (f"own {short}", _level("own_loss")),
        (f"pooled {short}", _level("pooled_loss")),
        (f"gain, {unit}", _with_interval("gain")),
        (f"harm, {unit}", lambda row: row["certificate"]),
        ("why", lambda row: row["reason"]),
    )


_CHECKS: tuple[_Column, ...] = (
    ("group", lambda row: str(row["group"])),
    ("subgroup", lambda row: row["part"] or "the whole group"),
    ("loss", _title),
    ("people", lambda row: f"{row['rows']:,.0f}"),
    ("own", _level("own_loss")),
    ("pooled", _level("pooled_loss")),
    ("gain", lambda row: _points(row["gain"])),
    ("passed", lambda row: "✔ yes" if row["passed"] else "✖ no"),
)
_TOTALS: tuple[_Column, ...] = (
    ("loss", _title),
    ("now", _level("own_loss")),
    ("pooled", _level("pooled_loss")),
    ("gain", _with_interval("gain")),
    ("unit", lambda row: Loss(row["loss"]).unit),
)
_RATES: tuple[_Column, ...] = (
    ("group", lambda row: row["name"]),
    ("people", lambda row: f"{row['rows']:,.0f}"),
    ("flagged, pooled → now", lambda row: _change(row, "flagged")),
    ("false positive rate, pooled → now", lambda row: _change(row, "fpr")),
    ("false negative rate, pooled → now", lambda row: _change(row, "fnr")),
)


def _change(row: dict[str, Any], rate: str) -> str:
    return f"{_percent(row[f'{rate}_pooled'])} → {_percent(row[rate])}"


_CELL: tuple[_Column, ...] = (
    ("group", lambda row: str(row["group"])),
    ("classifier", lambda row: str(row["classifier"]) + (" (serves it)" if row["own"] else "")),
    ("people", lambda row: f"{row['rows']:,}"),
    ("error", lambda row: f"{_percent(row['error'])} ({_percent(row['low'])} to {_percent(row['high'])})"),
)


def _tables(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    losses = [loss["name"] for loss in summary["losses"] or [{"name": "error"}]]
    named, guard = summary["named"] or {"questions": []}, summary["guard"] or {"table": [], "checks": []}
    serving = _serving_columns(losses[0])
    sources: dict[str, tuple[Any, tuple[_Column, ...]]] = {
        "serving": (summary["serving"], serving if summary["questions"] else serving[:2]),
        "totals": (summary["totals"], _TOTALS),
        "rates": (summary["rates"], _RATES),
        "guard": (guard["table"], _guard_columns(guard["table"][0]["loss"] if guard["table"] else "error")),
        "checks": (guard["checks"], _CHECKS),
        "matrix": (summary["cells"], _CELL),
        "composition": (summary["composition"], _composition_columns(summary["composition"])),
        "scorecard": (_scored(summary), _SCORES if _is_binary(summary) else (_SCORES[0], _CLASS, *_SCORES[1:])),
        "curves": (summary["training"] and summary["training"]["history"], _CURVES),
    }
    for loss in losses:
        columns = _question_columns(loss)
        sources[f"gains_{loss}"] = (_asked(summary["questions"], loss, "rationality"), columns)
        sources[f"envy_{loss}"] = (_asked(summary["questions"], loss, "envy"), columns)
        sources[f"named_{loss}"] = (_asked(named["questions"], loss, "rationality"), columns)
    return {name: _table(rows, columns) for name, (rows, columns) in sources.items() if rows}


_CURVES: tuple[_Column, ...] = (
    ("epoch", lambda row: str(row["epoch"])),
    ("accuracy, training rows", lambda row: _percent(row["train_accuracy"])),
    ("accuracy, held-out rows", lambda row: _percent(row["selection_accuracy"])),
    ("Pr without harm, training rows", lambda row: _percent(row["train_pr"])),
    ("Pr without harm, held-out rows", lambda row: _percent(row["selection_pr"])),
)


_SCORES: tuple[_Column, ...] = (
    ("column", lambda row: str(row["column"])),
    ("value", lambda row: str(row["bin"])),
    ("points", lambda row: f"{row['points']:+.2f}"),
    ("share of people", lambda row: _percent(row["rows"])),
)
_CLASS: _Column = ("class", lambda row: str(row["label"]))


def _scored(summary: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for column in (summary["scorecard"] or {"columns": []})["columns"] for row in column["bins"]]


def _is_binary(summary: dict[str, Any]) -> bool:
    return not summary["scorecard"] or len(summary["scorecard"]["labels"]) == 2


def _asked(questions: list[dict[str, Any]] | None, loss: str, kind: str) -> list[dict[str, Any]]:
    return [row for row in questions or [] if row["kind"] == kind and row["loss"] == loss]


def _composition_columns(records: list[dict[str, Any]] | None) -> tuple[_Column, ...]:
    groups = [name for name in (records or [{}])[0] if name.startswith("in_")]
    return (
        ("named group", lambda row: str(row["named_group"])),
        ("people", lambda row: f"{row['weight']:,.0f}"),
        *((f"in group {name.removeprefix('in_')}", _share_of(name)) for name in groups),
    )


def _share_of(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: _percent(row[name])


def _table(rows: list[dict[str, Any]], columns: tuple[_Column, ...]) -> dict[str, Any]:
    return {"columns": [name for name, _ in columns], "rows": [[cell(row) for _, cell in columns] for row in rows]}
