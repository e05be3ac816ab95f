"""A page about a model in use: alarms, who served whom when, and evidence, gains and shares batch by batch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

import dafh
from dafh import plots
from dafh.evaluation.losses import TITLES, Loss
from dafh.exceptions import InputError
from dafh.report.charts import as_json
from dafh.report.page import asset, chart_library, security_policy, template
from dafh.storage import replacing
from dafh.text import listed, percent, plain, points
from dafh.watch.display import evidence_in_words, has_changed, limits_in_words
from dafh.watch.notices import ServiceChange
from dafh.watch.store import StoredBatch, WatchStore

_SIGNS = {"harm": "✖", "nothing_gained": "○", "undecided": "◆", "no_harm": "✔"}
# With spaces that do not break: a sign alone on a line says nothing.
_KINDS = {"harm": "✖\u00a0alarm", "change": "◆\u00a0warning", "benefit": "✔\u00a0proof", "drift": "○\u00a0drift"}
# What a reader assumes where nothing else is said.
_USUAL = ("all rows", TITLES["error"])
# More lines than this cannot be told apart; the table behind a chart has all values.
_MOST_LINES = 6


def summarize_watch(store: WatchStore, *, title: str | None = None) -> dict[str, Any]:
    """Plain values of a state, for the page and for programs."""
    batches = store.batches()
    if not batches:
        raise InputError(f"{store.path} has no batch yet.")
    state = store.plain_state()
    questions, shares = _over_time(batches)
    notices, service = [notice.to_dict() for notice in store.notices()], store.service()
    last = _as_served(batches[-1], service)
    found: dict[str, Any] = {
        "title": title or f"Watching {store.models()[0].name}",
        "verdict": _verdict(last, notices, len(batches)),
        "settings": state["settings"],
        "losses": [
            {"name": name, "title": TITLES[name], "unit": Loss(name).unit} for name in state["settings"]["losses"]
        ],
        "batches": [{"number": one.number, "name": one.name, "added": one.added, **one.counts} for one in batches],
        "notices": notices,
        "service": [change.to_dict() for change in service],
        "now": last.evidence,
        "drift": last.drift,
        "questions": questions,
        "shares": shares,
        "reference_rows": state["reference"]["n_rows"],
        "dafh": dafh.__version__,
    }
    return dict(plain(found))


def _as_served(last: StoredBatch, service: list[ServiceChange]) -> StoredBatch:
    """Return the last batch with who serves now: it was stored before its alarms and proofs were acted upon."""
    serving = {change.group: change.after != "pooled" for change in service if change.batch == last.number}
    rows = [{**row, "in_service": serving.get(row["group"], row["in_service"])} for row in last.evidence]
    return replace(last, evidence=rows)


def _over_time(batches: list[StoredBatch]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Evidence, gains and shares after each batch, with the gain and the share in that batch alone."""
    questions, shares = [], []
    before: dict[tuple[Any, ...], dict[str, Any]] = {}
    for batch in batches:
        for row in batch.evidence:
            key = (row["group"], row["part"], row["loss"])
            questions.append({"batch": batch.number, **row, "in_batch": _gain_since(before.get(key), row)})
            before[key] = row
        for row in batch.drift:
            earlier = before.get((row["name"],), {"hits": 0, "rows": 0})
            n = row["rows"] - earlier["rows"]
            in_batch = (row["hits"] - earlier["hits"]) / n if n else None
            shares.append({"batch": batch.number, **row, "in_batch": in_batch})
            before[(row["name"],)] = row
    return questions, shares


def _gain_since(before: dict[str, Any] | None, now: dict[str, Any]) -> float | None:
    """Gain of the rows between two batches, from the means of all rows so far."""
    weight = now["weight"] - (before["weight"] if before else 0.0)
    if now["gain"] is None or weight <= 0:
        return None
    earlier = before["gain"] * before["weight"] if before and before["gain"] is not None else 0.0
    return float((now["gain"] * now["weight"] - earlier) / weight)


def _verdict(last: StoredBatch, notices: list[dict[str, Any]], n_batches: int) -> dict[str, Any]:
    table = pd.DataFrame(last.evidence)
    whole = table[(table["part"] == "") & (table["loss"] == table["loss"].iloc[0])]
    n_rows = int(whole["rows"].sum())
    seen = f"{n_batches} batch{'es' * (n_batches > 1)}, {n_rows:,} labelled row{'s' * (n_rows != 1)}"
    standing = table[(table["alarm_row"] > 0) & table["in_service"]]
    if len(standing):
        who = listed([f"group {g}" for g in sorted(standing["group"].unique())])
        verb = "is" if len(set(standing["group"])) == 1 else "are"
        sentence = f"{who} {verb} worse off than with the pooled classifier"
        return _said("harm", "Alarm", f"{sentence}, and still served by the classifier that does harm ({seen}).")
    alarms = [notice for notice in notices if notice["kind"] == "harm"]
    if alarms:
        sentence = f"{len(alarms)} alarm{'s' * (len(alarms) > 1)} so far, none about a classifier in service ({seen})."
        return _said("nothing_gained", "Acted upon", sentence)
    serving = table[table["in_service"]]
    if not len(serving):
        return _said("undecided", "No alarm", f"the pooled classifier serves every group ({seen}).")
    changed = [has_changed(*line) for line in zip(serving["gain"], serving["low"], serving["high"], strict=True)]
    if (serving["low"] >= 0).all() and not any(changed):
        return _said(
            "no_harm", "No harm", f"no group in service is worse off than with the pooled classifier ({seen})."
        )
    sentence = f"no harm is shown, which does not mean that there is none: see the limits of the gains ({seen})."
    return _said("undecided", "No alarm", sentence)


def _said(status: str, headline: str, sentence: str) -> dict[str, Any]:
    return {"status": status, "headline": headline, "sentence": sentence, "sign": _SIGNS[status]}


# ---- the page ----


def write_watch_page(summary: dict[str, Any], path: str | Path) -> None:
    """Write the page to a file, completely or not at all."""
    with replacing(Path(path)) as temporary:
        temporary.write_text(render_watch(summary), encoding="utf-8")


def render_watch(summary: dict[str, Any]) -> str:
    """Turn what `summarize_watch` returns into a page."""
    library, script, style = chart_library(), asset("page.js"), asset("page.css")
    return template("watched.html").render(
        summary=summary,
        charts={name: as_json(chart) for name, chart in _charts(summary).items()},
        tables=_tables(summary),
        groups=sorted({row["group"] for row in summary["now"]}),
        policy=security_policy(library, script),
        library=Markup(library),
        script=Markup(script),
        style=Markup(style),
    )


def _who(row: dict[str, Any], losses: int) -> str:
    name = f"group {row['group']}" + (f", {row['part']}" if row["part"] else "")
    return f"{name}: {TITLES[row['loss']]}" if losses > 1 else name


def _charts(summary: dict[str, Any]) -> dict[str, Any]:
    """All charts; of many subgroups and shares, those with the most evidence."""
    questions = pd.DataFrame(summary["questions"])
    n_losses = len(summary["losses"])
    main = summary["losses"][0]
    questions["name"] = [_who(row, n_losses) for row in summary["questions"]]
    last = questions[questions["batch"] == questions["batch"].max()]
    worst = last.sort_values("harm_evidence", ascending=False, kind="stable")["name"].head(_MOST_LINES)
    lines = questions[questions["name"].isin(worst)].rename(columns={"harm_needed": "needed"})
    charts = {"evidence": plots.evidence_over_time(lines[["batch", "name", "harm_evidence", "needed"]])}
    whole = questions[(questions["part"] == "") & (questions["loss"] == main["name"])]
    limits = whole[["gain", "low", "high"]].astype(float)
    # Limits that contradict the gain would be drawn as a band around nothing.
    changed = [has_changed(*line) for line in limits.itertuples(index=False)]
    whole = whole.assign(**{name: limits[name].mask(changed) for name in ("low", "high")})
    for group, gains in whole.groupby("group"):
        charts[f"gain_{group}"] = plots.gain_over_time(
            gains[["batch", "gain", "low", "high", "in_batch"]].astype(float), main["unit"]
        )
    shares = pd.DataFrame(summary["shares"])
    if len(shares) and shares["in_batch"].notna().any():
        of_groups = shares["name"].str.startswith("rows of group ")
        if of_groups.any():
            charts["groups"] = plots.shares_over_time(shares[of_groups], "share of rows")
        now = shares[(shares["batch"] == shares["batch"].max()) & ~of_groups]
        most = now[now["drift_row"] > 0].sort_values("evidence", ascending=False, kind="stable")["name"]
        if len(most):
            some = shares[shares["name"].isin(most.head(_MOST_LINES))]
            charts["inputs"] = plots.shares_over_time(some, "share of rows")
    return charts


def _tables(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Cells of all tables as text."""
    points_of = "" if any(loss["name"] == "cost" for loss in summary["losses"]) else ", points"
    tables = {
        "notices": (["what", "batch", "row", "sentence"], [_notice(row) for row in summary["notices"]]),
        "service": (
            ["group", "before", "after", "from row", "batch", "reason"],
            [
                [row["group"], row["before"], row["after"], f"{row['row']:,}", row["batch"], row["reason"]]
                for row in summary["service"]
            ],
        ),
        "now": (
            ["group", "subgroup", "loss", "in service", "rows", "own", "pooled", f"gain{points_of} (limits)",
             "evidence of harm",
             "of benefit"],
            [_question(row) for row in summary["now"]],
        ),
        "evidence": (
            ["batch", "group", "subgroup", "loss", "rows", f"gain so far{points_of} (limits)",
             "in the batch", "evidence of harm"],
            [[row["batch"], *_step(row)] for row in summary["questions"]],
        ),
        "shares": (
            ["property", "reference", "so far", "evidence of a change", "changed"],
            [_share(row) for row in summary["drift"]],
        ),
        "batches": (
            ["batch", "name", "added", "rows", "labelled", "late labels", "given before", "waiting after it"],
            [_batch(row) for row in summary["batches"]],
        ),
    }  # fmt: skip
    said = {name: {"columns": columns, "rows": rows} for name, (columns, rows) in tables.items() if rows}
    for name in ("now", "evidence"):
        said[name] = _without_repeats(said[name])
    return said


def _without_repeats(table: dict[str, Any]) -> dict[str, Any]:
    """Leave out subgroups and losses where there are none but the usual ones."""
    cells = pd.DataFrame(table["rows"], columns=table["columns"], dtype=object)
    cells = cells.drop(columns=[name for name in ("subgroup", "loss") if cells[name].isin(_USUAL).all()])
    return {"columns": list(cells), "rows": cells.to_numpy().tolist()}


def _notice(row: dict[str, Any]) -> list[Any]:
    return [_KINDS[row["kind"]], row["batch"], f"{row['row']:,}", row["sentence"]]


def _question(row: dict[str, Any]) -> list[Any]:
    limits = _gain(row)
    evidence = [evidence_in_words(row[name]) for name in ("harm_evidence", "benefit_evidence")]
    served = "yes" if row["in_service"] else "no"
    if row["alarm_row"]:
        evidence[0] = f"✖ {evidence[0]}, alarm at row {row['alarm_row']:,}"
    levels = [_level(row[name], row["loss"]) for name in ("own_loss", "pooled_loss")]
    return [
        row["group"],
        row["part"] or "all rows",
        TITLES[row["loss"]],
        served,
        f"{row['rows']:,}",
        *levels,
        limits,
        *evidence,
    ]


def _step(row: dict[str, Any]) -> list[Any]:
    limits = _gain(row)
    part, loss = row["part"] or "all rows", TITLES[row["loss"]]
    return [
        row["group"],
        part,
        loss,
        f"{row['rows']:,}",
        limits,
        _points(row["in_batch"]),
        evidence_in_words(row["harm_evidence"]),
    ]


def _share(row: dict[str, Any]) -> list[Any]:
    changed = f"○ shown at row {row['drift_row']:,}" if row["drift_row"] else "–"
    return [
        row["name"],
        percent(row["reference_share"]),
        percent(row["share"]),
        evidence_in_words(row["evidence"]),
        changed,
    ]


def _batch(row: dict[str, Any]) -> list[Any]:
    when = row["added"].replace("T", " ").removesuffix("+00:00") + " UTC"
    counts = [f"{row[name]:,}" for name in ("n_rows", "n_labelled", "n_late", "n_repeated", "n_waiting")]
    return [row["number"], row["name"] or "–", when, *counts]


def _gain(row: dict[str, Any]) -> str:
    if row["gain"] is None:
        return "–"
    return f"{points(row['gain'])} ({limits_in_words(row['gain'], row['low'], row['high'])})"


def _points(value: float | None) -> str:
    return "–" if value is None else points(value)


def _level(value: float | None, loss: str) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.2f}" if loss == "cost" else percent(value)
