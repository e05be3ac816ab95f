"""What the page about a model in use says, as one dictionary of plain values."""

from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

import dafh
from dafh import plots
from dafh.evaluation.losses import TITLES, Loss
from dafh.exceptions import InputError
from dafh.monitor.notices import HEADINGS, ServiceChange, display, evidence_in_words, has_changed
from dafh.monitor.store import StoredBatch, WatchStore
from dafh.report.page import page_charts, page_table
from dafh.text import Section, listed, percent, plain, points

_SIGNS = {"harm": "✖", "nothing_gained": "○", "undecided": "◆", "no_harm": "✔"}
# With a sign before it, and a space that does not break: a sign alone on a line says nothing.
_SIGN_OF_NOTICE = {"harm": "✖", "level": "✖", "shock": "◆", "benefit": "✔"}
# More lines than this cannot be told apart.
_MOST_LINES = 6


def summarize_watch(store: WatchStore, *, title: str | None = None) -> dict[str, Any]:
    """Plain values of a state, for the page and for programs."""
    batches = store.batches()
    if not batches:
        raise InputError(f"{store.path} has no batch yet.")
    state = store.plain_state()
    settings = state["settings"]
    questions, shares = _over_time(batches)
    notices, service = [notice.to_dict() for notice in store.notices()], store.service()
    last = _as_served(batches[-1], service)
    summary: dict[str, Any] = {
        "about": "watched",
        "title": title or f"Watching {store.models()[0].name}",
        "verdict": _verdict(last, notices, len(batches), _stands(last, notices, service)),
        "settings": settings,
        "losses": [{"name": name, "title": TITLES[name], "unit": Loss(name).unit} for name in settings["losses"]],
        "batches": [
            {"number": batch.number, "name": batch.name, "added": batch.added, **batch.counts} for batch in batches
        ],
        "notices": notices,
        "service": [change.to_dict() for change in service],
        "now": last.evidence,
        "levels": last.levels,
        "drift": last.drift,
        "questions": questions,
        "shares": shares,
        "reference_rows": state["reference"]["n_rows"],
        "dafh": dafh.__version__,
    }
    values = dict(plain(summary))
    tables = {name: page_table(section) for name, section in _tables(values).items()}
    return values | {"tables": tables, "charts": plain(page_charts(_charts(values)))}


# ---- tables and charts ----


def _tables(summary: dict[str, Any]) -> dict[str, Section]:
    """The tables of the page; those of what has not happened are missing."""
    level, batches = summary["settings"]["level"], pd.DataFrame(summary["batches"])
    questions, drift = pd.DataFrame(summary["questions"]), pd.DataFrame(summary["drift"])
    over_time = _display(questions, level).assign(**{"in the batch": questions["in_batch"].astype(float).map(points)})
    over_time.insert(0, "batch", questions["batch"])
    tables = {
        "now": Section("Every group, subgroup and loss, over all batches", table=_display(summary["now"], level)),
        "levels": Section("The model in use by itself", table=_display_levels(pd.DataFrame(summary["levels"]))),
        "evidence": Section("Evidence and gains, batch by batch", table=over_time.drop(columns="in service")),
        "batches": Section("Batches in the order in which they came", table=_display_batches(batches)),
    }
    if len(drift):
        tables["shares"] = Section("All shares", table=_display_drift(drift))
    if summary["notices"]:
        notices = [
            {
                "what": f"{_SIGN_OF_NOTICE.get(notice['kind'], '○')}\u00a0{HEADINGS[notice['kind']].lower()}",
                "batch": notice["batch"],
                "row": f"{notice['row']:,}",
                "sentence": notice["sentence"],
            }
            for notice in summary["notices"]
        ]
        tables["notices"] = Section("Alarms, proofs and drift", table=pd.DataFrame(notices))
    if summary["service"]:
        service = pd.DataFrame(summary["service"])[["group", "before", "after", "row", "batch", "reason"]]
        service = service.assign(row=service["row"].map("{:,}".format)).rename(columns={"row": "from row"})
        tables["service"] = Section("Changes of who serves whom", table=service)
    return tables


def _display(rows: Any, level: float) -> pd.DataFrame:
    """Questions as the monitor prints them; None is what a file has for infinite evidence and unknown figures."""
    table = pd.DataFrame(rows)
    evidence = {name: table[name].astype(float).fillna(np.inf) for name in ("harm_evidence", "benefit_evidence")}
    figures = {name: table[name].astype(float) for name in ("own_loss", "pooled_loss", "gain", "low", "high")}
    return display(table.assign(**evidence, **figures), level)


def _display_levels(table: pd.DataFrame) -> pd.DataFrame:
    limits = table[["low", "high"]].astype(float).map(lambda value: points(value).lstrip("+"))
    shares = {"error": "error", "reference_error": "in the reference", "predicted": "predicted", "observed": "observed"}
    written = {title: table[name].astype(float).map(percent) for name, title in shares.items()}
    return pd.DataFrame(
        {
            "model in use": ["all rows" if pd.isna(group) else f"group {group:g}" for group in table["group"]],
            "rows": table["rows"].map("{:,}".format),
            **written,
            "limits, points": limits["low"] + " to " + limits["high"],
            "alarm": [f"✖ at row {row:,}" if row else "–" for row in table["alarm_row"]],
        }
    )


def _display_drift(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "property": table["name"],
            "reference": table["reference_share"].astype(float).map(percent),
            "so far": table["share"].astype(float).map(percent),
            "evidence of a change": table["evidence"].astype(float).fillna(np.inf).map(evidence_in_words),
            "changed": [f"○ shown at row {row:,}" if row else "–" for row in table["drift_row"]],
        }
    )


def _display_batches(table: pd.DataFrame) -> pd.DataFrame:
    counts = {
        "n_rows": "rows",
        "n_labelled": "labelled",
        "n_late": "late labels",
        "n_repeated": "given before",
        "n_waiting": "waiting after it",
    }
    added = table["added"].str.replace("T", " ").str.removesuffix("+00:00") + " UTC"
    columns = {"batch": table["number"], "name": table["name"].replace("", "–"), "added": added}
    return pd.DataFrame(columns | {title: table[name].map("{:,}".format) for name, title in counts.items()})


def _charts(summary: dict[str, Any]) -> dict[str, alt.LayerChart]:
    """All charts of the page; of many subgroups and shares, those with the most evidence."""
    main, several = summary["losses"][0], len(summary["losses"]) > 1
    questions = pd.DataFrame(summary["questions"])
    questions["name"] = [
        f"group {row['group']}"
        + (f", {row['part']}" if row["part"] else "")
        + (f": {TITLES[row['loss']]}" if several else "")
        for row in summary["questions"]
    ]
    last = questions[questions["batch"] == questions["batch"].max()]
    worst = last.sort_values("harm_evidence", ascending=False, kind="stable")["name"].head(_MOST_LINES)
    charts = {"evidence": plots.evidence_over_time(questions[questions["name"].isin(worst)])}
    of_groups = questions[(questions["part"] == "") & (questions["loss"] == main["name"])]
    limits = of_groups[["gain", "low", "high"]].astype(float)
    # Limits that contradict the gain would be drawn as a band around nothing.
    changed = [has_changed(*line) for line in limits.itertuples(index=False)]
    of_groups = of_groups.assign(**{name: limits[name].mask(changed) for name in ("low", "high")})
    for group, gains in of_groups.groupby("group"):
        gains = gains[["batch", "gain", "low", "high", "in_batch"]].astype(float)
        charts[f"gain_{group}"] = plots.gain_over_time(gains, main["unit"])
    shares = pd.DataFrame(summary["shares"])
    if not len(shares) or not shares["in_batch"].notna().any():
        return charts
    is_group = shares["name"].str.startswith("rows of group ")
    if is_group.any():
        charts["groups"] = plots.shares_over_time(shares[is_group])
    drifted = shares[(shares["batch"] == shares["batch"].max()) & ~is_group & (shares["drift_row"] > 0)]
    if len(drifted):
        most = drifted.sort_values("evidence", ascending=False, kind="stable")["name"].head(_MOST_LINES)
        charts["inputs"] = plots.shares_over_time(shares[shares["name"].isin(most)])
    return charts


# ---- evidence over time, and the verdict ----


def _as_served(last: StoredBatch, service: list[ServiceChange]) -> StoredBatch:
    """Return the last batch with who serves now: it was stored before its alarms and proofs were acted upon."""
    serving = {change.group: change.after != "pooled" for change in service if change.batch == last.number}
    rows = [{**row, "in_service": serving.get(row["group"], row["in_service"])} for row in last.evidence]
    return replace(last, evidence=rows)


def _over_time(batches: list[StoredBatch]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Evidence, gains and shares after each batch, with the gain and the share in that batch alone."""
    questions, shares = [], []
    previous: dict[tuple[Any, ...], dict[str, Any]] = {}
    for batch in batches:
        for row in batch.evidence:
            key = (row["group"], row["part"], row["loss"])
            questions.append({"batch": batch.number, **row, "in_batch": _gain_since(previous.get(key), row)})
            previous[key] = row
        for row in batch.drift:
            earlier = previous.get((row["name"],), {"hits": 0, "rows": 0})
            n = row["rows"] - earlier["rows"]
            in_batch = (row["hits"] - earlier["hits"]) / n if n else None
            shares.append({"batch": batch.number, **row, "in_batch": in_batch})
            previous[(row["name"],)] = row
    return questions, shares


def _gain_since(previous: dict[str, Any] | None, latest: dict[str, Any]) -> float | None:
    """Gain of the rows between two batches, from the means of all rows so far.

    Means of n and of N rows are m / n and M / N, so that the rows between them have the mean (M - m) / (N - n).
    """
    weight = latest["weight"] - (previous["weight"] if previous else 0.0)
    if latest["gain"] is None or weight <= 0:
        return None
    earlier = previous["gain"] * previous["weight"] if previous and previous["gain"] is not None else 0.0
    return float((latest["gain"] * latest["weight"] - earlier) / weight)


def _stands(last: StoredBatch, notices: list[dict[str, Any]], service: list[ServiceChange]) -> bool:
    """Whether an alarm about the model by itself stands: others do not serve since."""
    changed = max((change.batch for change in service), default=0)
    alarmed = any(row["alarm_row"] for row in last.levels)
    return alarmed and any(notice["kind"] == "level" and notice["batch"] > changed for notice in notices)


def _verdict(last: StoredBatch, notices: list[dict[str, Any]], n_batches: int, level_alarm: bool) -> dict[str, Any]:
    """Status, headline and sentence of the page's top."""
    table = pd.DataFrame(last.evidence)
    main = table[(table["part"] == "") & (table["loss"] == table["loss"].iloc[0])]
    n_rows = int(main["rows"].sum())
    alarms = [notice for notice in notices if notice["kind"] == "harm"]
    standing, serving = table[(table["alarm_row"] > 0) & table["in_service"]], table[table["in_service"]]
    changed = [has_changed(*line) for line in zip(serving["gain"], serving["low"], serving["high"], strict=True)]
    if len(standing):
        who = listed([f"group {g}" for g in sorted(standing["group"].unique())])
        verb = "is" if len(set(standing["group"])) == 1 else "are"
        status, headline = "harm", "Alarm"
        sentence = (
            f"{who} {verb} worse off than with the pooled classifier, and still served by the classifier that does harm"
        )
    elif level_alarm:
        status, headline = "harm", "Alarm"
        sentence = "the model in use makes more errors than it did, or its probabilities no longer fit"
    elif alarms:
        status, headline = "nothing_gained", "Acted upon"
        sentence = f"{len(alarms)} alarm{'s' * (len(alarms) > 1)} so far, none about a classifier in service"
    elif not len(serving):
        status, headline, sentence = "undecided", "No alarm", "the pooled classifier serves every group"
    elif (serving["low"] >= 0).all() and not any(changed):
        status, headline = "no_harm", "No harm"
        sentence = "no group in service is worse off than with the pooled classifier"
    else:
        status, headline = "undecided", "No alarm"
        sentence = "no harm is shown, which does not mean that there is none: see the limits of the gains"
    counted = f"{n_batches} batch{'es' * (n_batches > 1)}, {n_rows:,} labelled row{'s' * (n_rows != 1)}"
    return {"status": status, "headline": headline, "sentence": f"{sentence} ({counted}).", "sign": _SIGNS[status]}
