"""The tables of a page: the figures behind the charts, formatted."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dafh.evaluation.audit_tables import rows_wanted
from dafh.evaluation.losses import Loss
from dafh.text import percent, points

VERDICT_SIGNS = {"satisfied": "✔\u00a0satisfied", "violated": "✖\u00a0violated", "undecided": "◆\u00a0undecided"}
_ACTIONS = {"deploy": "deploy", "keep": "keep the pooled one", "pooled": "nothing changes"}
# Longer tables stay folded on paper: nobody wants them there, and the file has them.
_LONGEST_PRINTED = 40

_Column = tuple[str, Callable[[dict[str, Any]], str]]


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def write_points(value: float | None) -> str:
    """Write a difference in percentage points, and a dash if it is unknown."""
    return points(np.nan if value is None else value)


def _percent(value: float | None) -> str:
    return percent(np.nan if value is None else value)


def _level(name: str) -> Callable[[dict[str, Any]], str]:
    """How large a loss is: a share of rows, or the cost of 100 rows."""

    def cell(row: dict[str, Any]) -> str:
        value = row.get(name)
        return _number(value and 100 * value, "{:.2f}") if row.get("loss") == "cost" else _percent(value)

    return cell


def write_gain(value: float | None, loss: str) -> str:
    """Write a gain with its unit."""
    of_loss = "" if loss == "error" else f" in {Loss(loss).title}"  # type: ignore[arg-type]
    return f"{write_points(value)} {Loss(loss).unit}{of_loss}"  # type: ignore[arg-type]


def _title(row: dict[str, Any]) -> str:
    return Loss(row["loss"]).title


def _with_interval(name: str) -> Callable[[dict[str, Any]], str]:
    """A difference with its limits in one cell: two columns would make the tables too wide for a page."""

    def cell(row: dict[str, Any]) -> str:
        limits = f"({write_points(row.get('low'))} to {write_points(row.get('high'))})"
        return f"{write_points(row.get(name))} {_unbroken(limits)}"

    return cell


def _unbroken(text: str) -> str:
    """Text that stays on one line: a table may be narrow, but an interval in two lines is two numbers."""
    return text.replace(" ", "\u00a0")


def _verdict_cell(row: dict[str, Any]) -> str:
    wanted = rows_wanted(row.get("rows_needed"), row["n"])
    return VERDICT_SIGNS[row["verdict"]] + (f" (needs about {wanted} people of this group)" if wanted else "")


def _question_columns(loss: str) -> tuple[_Column, ...]:
    short, unit = _heads(loss)
    return (
        ("group", lambda row: str(row["group"])),
        ("against", lambda row: "pooled" if row["rival"] == "pooled" else f"classifier {row['rival']}"),
        ("people", lambda row: f"{row['n']:,.0f}"),
        (f"own {short}", _level("own_loss")),
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
        ("what to do", lambda row: _ACTIONS[row["action"]]),
        ("people", lambda row: _number(row.get("rows"), "{:,.0f}")),
        ("share", lambda row: _percent(row.get("share"))),
        (f"own {short}", _level("own_loss")),
        (f"pooled {short}", _level("rival_loss")),
        (f"gain, {unit}", _with_interval("gap")),
        ("answer", lambda row: VERDICT_SIGNS.get(row.get("verdict", ""), "–")),
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
    ("gain", lambda row: write_points(row["gain"])),
    ("passed", lambda row: "✔ yes" if row["passed"] else "✖ no"),
)
_TOTALS: tuple[_Column, ...] = (
    ("loss", _title),
    ("own", _level("own_loss")),
    ("pooled", _level("pooled_loss")),
    ("gain", _with_interval("gain")),
    ("unit", lambda row: Loss(row["loss"]).unit),
)
_RATES: tuple[_Column, ...] = (
    ("who", lambda row: row["name"]),
    ("people", lambda row: f"{row['rows']:,.0f}"),
    ("flagged, pooled → own", lambda row: _change(row, "flagged")),
    ("false positive rate, pooled → own", lambda row: _change(row, "fpr")),
    ("false negative rate, pooled → own", lambda row: _change(row, "fnr")),
)


_MIGHT_LOSE: tuple[_Column, ...] = (
    ("named group", lambda row: row["group"]),
    ("people", lambda row: f"{row['rows']:,.0f}"),
    ("gain", lambda row: f"{_with_interval('gain')(row)} {_heads(row['loss'])[1]}"),
    ("loss", lambda row: "✖ shown" if row["shown"] else "◆ not ruled out"),
)


def _change(row: dict[str, Any], rate: str) -> str:
    return _unbroken(f"{_percent(row[f'{rate}_pooled'])} → {_percent(row[rate])}")


_CELL: tuple[_Column, ...] = (
    ("group", lambda row: str(row["group"])),
    ("classifier", lambda row: str(row["classifier"]) + (" (serves it)" if row["own"] else "")),
    ("people", lambda row: f"{row['rows']:,}"),
    (
        "error",
        lambda row: f"{_percent(row['error'])} " + _unbroken(f"({_percent(row['low'])} to {_percent(row['high'])})"),
    ),
)


def make_tables(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All tables that the summary has rows for: heads, cells as text, and whether it is too long for paper."""
    losses = [loss["name"] for loss in summary["losses"] or [{"name": "error"}]]
    named, guard = summary["named"] or {"questions": []}, summary["guard"] or {"table": [], "checks": []}
    serving = _serving_columns(losses[0])
    sources: dict[str, tuple[Any, tuple[_Column, ...]]] = {
        "serving": (summary["serving"], serving if summary["questions"] else serving[:2]),
        "totals": (summary["totals"], _TOTALS),
        "might_lose": (summary["recommendation"]["losing"] + summary["recommendation"]["might_lose"], _MIGHT_LOSE),
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
    return {
        "columns": [name for name, _ in columns],
        "rows": [[cell(row) for _, cell in columns] for row in rows],
        "long": len(rows) > _LONGEST_PRINTED,
    }
