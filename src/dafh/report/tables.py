"""The tables of a page: the figures behind the charts, formatted.

A table is a list of columns, each with its head and a function that writes the cell of a row.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dafh.evaluation.audit import rows_wanted
from dafh.evaluation.losses import Loss
from dafh.monitor.notices import evidence_in_words, limits_in_words
from dafh.text import percent, points

Row = dict[str, Any]
Cell = Callable[[Row], str]
Columns = Sequence[tuple[str, Cell]]

# With spaces that do not break: a sign alone on a line says nothing.
_VERDICTS = {"satisfied": "✔\u00a0satisfied", "violated": "✖\u00a0violated", "undecided": "◆\u00a0undecided"}
_NOTICES = {
    "harm": "✖\u00a0alarm",
    "level": "✖\u00a0alarm",
    "shock": "◆\u00a0warning",
    "benefit": "✔\u00a0proof",
    "drift": "○\u00a0drift",
    "model": "○\u00a0new\u00a0start",
}
_ACTIONS = {"deploy": "deploy", "keep": "keep the pooled one", "pooled": "nothing changes"}
_ANSWERS = {"loses": "✖\u00a0loses", "check": "◆\u00a0check", "": "–"}
# Longer tables stay folded on paper: nobody wants them there, and the file has them.
_LONGEST_PRINTED = 40


# ---- cells ----


def write_points(value: float | None) -> str:
    """Write a difference in percentage points, and a dash if it is unknown."""
    return points(np.nan if value is None else value)


def _loss(name: str) -> Loss:
    return Loss(name)  # type: ignore[arg-type]


def _text(name: str) -> Cell:
    return lambda row: str(row[name])


def _count(name: str) -> Cell:
    return lambda row: "–" if row.get(name) is None else f"{row[name]:,.0f}"


def _percent(value: float | None) -> str:
    return percent(np.nan if value is None else value)


def _share(name: str) -> Cell:
    return lambda row: _percent(row.get(name))


def _points(name: str) -> Cell:
    return lambda row: write_points(row[name])


def _level(name: str) -> Cell:
    """How large a loss is: a share of rows, or the cost of 100 rows."""

    def cell(row: Row) -> str:
        value = row.get(name)
        if row.get("loss") != "cost":
            return _percent(value)
        return "–" if value is None else f"{100 * value:.2f}"

    return cell


def _loss_title(row: Row) -> str:
    return _loss(row["loss"]).title


def _with_interval(name: str) -> Cell:
    """A difference with its limits in one cell: two columns would make the tables too wide for a page."""

    def cell(row: Row) -> str:
        limits = f"({write_points(row.get('low'))} to {write_points(row.get('high'))})"
        return f"{write_points(row.get(name))} {_unbroken(limits)}"

    return cell


def _unbroken(text: str) -> str:
    """Text that stays on one line: a table may be narrow, but an interval in two lines is two numbers."""
    return text.replace(" ", "\u00a0")


def _heads(loss: str) -> tuple[str, str]:
    """How a loss and its unit are called in the head of a table."""
    return _loss(loss).title.removesuffix(" rate"), "per 100 rows" if loss == "cost" else "points"


def _table(rows: Sequence[Row], columns: Columns) -> dict[str, Any]:
    return {
        "columns": [head for head, _ in columns],
        "rows": [[cell(row) for _, cell in columns] for row in rows],
        "long": len(rows) > _LONGEST_PRINTED,
    }


# ---- an audit ----


def make_tables(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All tables that the summary has rows for: heads, cells as text, and whether it is too long for paper."""
    losses = [loss["name"] for loss in summary["losses"] or [{"name": "error"}]]
    guard = summary["guard"] or {"table": []}
    named = summary["named"] or {"changes": [], "questions": []}
    scored = [row for column in (summary["scorecard"] or {"columns": []})["columns"] for row in column["bins"]]
    tables: dict[str, tuple[Sequence[Row] | None, Columns]] = {
        "failed": (summary["failed"], _failed_columns(losses[0])),
        "serving": (summary["serving"], _serving_columns(summary["serving"] or [{}])),
        "changes": (summary["changes"], _change_columns(summary["changes"] or [{}], losses[0])),
        "named": (named["changes"], _named_columns(losses[0])),
        "totals": (summary["totals"], _TOTALS),
        "rates": (summary["rates"], _RATES),
        "guard": (guard["table"], _guard_columns(guard["table"][0]["loss"] if guard["table"] else "error")),
        "matrix": (summary["cells"], _CELLS),
        "composition": (summary["composition"], _composition_columns((summary["composition"] or [{}])[0])),
        "scorecard": (scored, _SCORES if len({row["label"] for row in scored}) > 1 else (_SCORES[0], *_SCORES[2:])),
    }
    for loss in losses:
        asked = [row for row in summary["questions"] or [] if row["loss"] == loss]
        columns = _question_columns(loss)
        tables[f"gains_{loss}"] = ([row for row in asked if row["kind"] == "rationality"], columns)
        tables[f"envy_{loss}"] = ([row for row in asked if row["kind"] == "envy"], columns)
        tables[f"named_{loss}"] = ([row for row in named["questions"] if row["loss"] == loss], columns)
    found = (summary["failures"] or {"tables": []})["tables"]
    failures = {f"failures_{number}": {**table, "long": False} for number, table in enumerate(found)}
    return failures | {name: _table(rows, columns) for name, (rows, columns) in tables.items() if rows}


def _question_columns(loss: str) -> Columns:
    short, unit = _heads(loss)
    return (
        ("group", _text("group")),
        ("against", lambda row: "pooled" if row["rival"] == "pooled" else f"classifier {row['rival']}"),
        ("people", _count("n")),
        (f"own {short}", _level("own_loss")),
        (f"rival {short}", _level("rival_loss")),
        (f"gap, {unit}", _with_interval("gap")),
        ("corrected p of harm", lambda row: "–" if row["p_corrected"] is None else f"{row['p_corrected']:.3f}"),
        ("answer", _answer),
    )


def _answer(row: Row) -> str:
    wanted = rows_wanted(row.get("rows_needed"), row["n"])
    return _VERDICTS[row["verdict"]] + (f" (needs about {wanted} people of this group)" if wanted else "")


def _failed_columns(loss: str) -> Columns:
    title = _loss(loss).title
    kinds = [name for name in ("fpr", "fnr") if name != loss]
    return (
        ("who", _text("who")),
        ("people", _count("rows")),
        (title, _level("pooled_loss")),
        ("interval", lambda row: _unbroken(f"{_level('low')(row)} to {_level('high')(row)}")),
        *((_loss(name).title, _share(f"{name}_pooled")) for name in kinds),
    )


def _serving_columns(rows: Sequence[Row]) -> Columns:
    """Groups of a model without an audit: rules with share and gain in training, if there are any, and who serves."""
    served = (("group", _text("group")), ("served by", _text("served_by")))
    if "rule" not in rows[0]:
        return served
    unit = _heads(rows[0]["loss"])[1]
    return (served[0], _RULE, ("share", _share("share")), (f"gain, {unit}", _with_interval("gain")), served[1])


def _change_columns(rows: Sequence[Row], loss: str) -> Columns:
    short, unit = _heads(loss)
    return (
        ("group", _text("group")),
        *([_RULE] if rows[0].get("rule") else []),
        ("people", _count("rows")),
        ("share", _share("share")),
        (f"{short}, pooled", _level("pooled_loss")),
        ("own", _level("own_loss")),
        (f"gain, {unit}", _with_interval("gain")),
        ("in the model", _text("in_model")),
        ("what to do", lambda row: _ACTIONS[row["action"]]),
    )


def _named_columns(loss: str) -> Columns:
    short, unit = _heads(loss)
    return (
        ("named group", _text("group")),
        ("people", _count("rows")),
        (f"{short}, pooled", _level("pooled_loss")),
        ("own", _level("own_loss")),
        (f"gain, {unit}", _with_interval("gain")),
        ("answer", lambda row: _ANSWERS[row["answer"]]),
    )


def _guard_columns(loss: str) -> Columns:
    short, unit = _heads(loss)
    return (
        ("group", _text("group")),
        ("served by", _text("served_by")),
        ("people", _count("rows")),
        (f"own {short}", _level("own_loss")),
        (f"pooled {short}", _level("pooled_loss")),
        (f"gain, {unit}", _with_interval("gain")),
        (f"harm, {unit}", _text("certificate")),
        ("why", _text("reason")),
    )


def _composition_columns(row: Row) -> Columns:
    groups = [name for name in row if name.startswith("in_")]
    return (
        ("named group", _text("named_group")),
        ("people", _count("weight")),
        *((f"in group {name.removeprefix('in_')}", _share(name)) for name in groups),
    )


def _change(rate: str) -> Cell:
    return lambda row: _unbroken(f"{_percent(row[f'{rate}_pooled'])} → {_percent(row[rate])}")


_RULE = ("rule", _text("rule"))
_TOTALS: Columns = (
    ("loss", _loss_title),
    ("own", _level("own_loss")),
    ("pooled", _level("pooled_loss")),
    ("gain", _with_interval("gain")),
    ("unit", lambda row: _loss(row["loss"]).unit),
)
_RATES: Columns = (
    ("who", _text("name")),
    ("people", _count("rows")),
    ("flagged, pooled → own", _change("flagged")),
    ("false positive rate, pooled → own", _change("fpr")),
    ("false negative rate, pooled → own", _change("fnr")),
)
_CELLS: Columns = (
    ("group", _text("group")),
    ("classifier", lambda row: str(row["classifier"]) + (" (serves it)" if row["own"] else "")),
    ("people", _count("rows")),
    ("error", _share("error")),
)
_SCORES: Columns = (
    ("column", _text("column")),
    ("class", _text("label")),
    ("value", _text("bin")),
    ("points", lambda row: f"{row['points']:+.2f}"),
    ("share of people", _share("rows")),
)


# ---- a model in use ----


def make_watch_tables(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All tables of the page about a model in use."""
    names = [loss["name"] for loss in summary["losses"]]
    unit = "" if "cost" in names else ", points"
    # Subgroups and losses are left out where there are none but the usual ones.
    about: Columns = (
        ("group", _text("group")),
        *([("subgroup", _subgroup)] if any(row["part"] for row in summary["now"]) else []),
        *([("loss", _loss_title)] if names != ["error"] else []),
    )
    now: Columns = (
        *about,
        ("in service", lambda row: "yes" if row["in_service"] else "no"),
        ("rows", _count("rows")),
        ("own", _level("own_loss")),
        ("pooled", _level("pooled_loss")),
        (f"gain{unit} (limits)", _with_limits),
        ("evidence of harm", _harm),
        ("of benefit", _evidence("benefit_evidence")),
    )
    evidence: Columns = (
        ("batch", _text("batch")),
        *about,
        ("rows", _count("rows")),
        (f"gain so far{unit} (limits)", _with_limits),
        ("in the batch", _points("in_batch")),
        ("evidence of harm", _evidence("harm_evidence")),
    )
    tables = {
        "notices": (summary["notices"], _NOTICE),
        "service": (summary["service"], _SERVICE),
        "now": (summary["now"], now),
        "levels": (summary["levels"], _LEVELS),
        "evidence": (summary["questions"], evidence),
        "shares": (summary["drift"], _SHARES),
        "batches": (summary["batches"], _BATCHES),
    }
    return {name: _table(rows, columns) for name, (rows, columns) in tables.items() if rows}


def _subgroup(row: Row) -> str:
    return row["part"] or "all rows"


def _with_limits(row: Row) -> str:
    if row["gain"] is None:
        return "–"
    return f"{points(row['gain'])} ({limits_in_words(row['gain'], row['low'], row['high'])})"


def _evidence(name: str) -> Cell:
    return lambda row: evidence_in_words(row[name])


def _harm(row: Row) -> str:
    evidence = evidence_in_words(row["harm_evidence"])
    return f"✖ {evidence}, alarm at row {row['alarm_row']:,}" if row["alarm_row"] else evidence


_NOTICE: Columns = (
    ("what", lambda row: _NOTICES[row["kind"]]),
    ("batch", _text("batch")),
    ("row", _count("row")),
    ("sentence", _text("sentence")),
)
_SERVICE: Columns = (
    ("group", _text("group")),
    ("before", _text("before")),
    ("after", _text("after")),
    ("from row", _count("row")),
    ("batch", _text("batch")),
    ("reason", _text("reason")),
)
_LEVELS: Columns = (
    ("rows of", lambda row: "all groups" if row["group"] is None else f"group {row['group']}"),
    ("rows", _count("rows")),
    ("error", _share("error")),
    ("limits, points", lambda row: f"{points(row['low']).lstrip('+')} to {points(row['high']).lstrip('+')}"),
    ("in the reference", _share("reference_error")),
    ("positive labels predicted", _share("predicted")),
    ("observed", _share("observed")),
    ("alarm", lambda row: f"✖ at row {row['alarm_row']:,}" if row["alarm_row"] else "–"),
)
_SHARES: Columns = (
    ("property", _text("name")),
    ("reference", _share("reference_share")),
    ("so far", _share("share")),
    ("evidence of a change", _evidence("evidence")),
    ("changed", lambda row: f"○ shown at row {row['drift_row']:,}" if row["drift_row"] else "–"),
)
_BATCHES: Columns = (
    ("batch", _text("number")),
    ("name", lambda row: row["name"] or "–"),
    ("added", lambda row: row["added"].replace("T", " ").removesuffix("+00:00") + " UTC"),
    ("rows", _count("n_rows")),
    ("labelled", _count("n_labelled")),
    ("late labels", _count("n_late")),
    ("given before", _count("n_repeated")),
    ("waiting after it", _count("n_waiting")),
)
