"""What the page about a model in use says, as one dictionary of plain values."""

from dataclasses import replace
from typing import Any

import pandas as pd

import dafh
from dafh.evaluation.losses import TITLES, Loss
from dafh.exceptions import InputError
from dafh.monitor.notices import ServiceChange, has_changed
from dafh.monitor.store import StoredBatch, WatchStore
from dafh.text import listed, plain

_SIGNS = {"harm": "✖", "nothing_gained": "○", "undecided": "◆", "no_harm": "✔"}


def summarize_watch(store: WatchStore, *, title: str | None = None) -> dict[str, Any]:
    """Plain values of a state, for the page and for programs."""
    batches = store.batches()
    if not batches:
        raise InputError(f"{store.path} has no batch yet.")
    state = store.plain_state()
    questions, shares = _over_time(batches)
    notices, service = [notice.to_dict() for notice in store.notices()], store.service()
    last = _as_served(batches[-1], service)
    summary: dict[str, Any] = {
        "title": title or f"Watching {store.models()[0].name}",
        "verdict": _verdict(last, notices, len(batches), _stands(last, notices, service)),
        "settings": state["settings"],
        "losses": [
            {"name": name, "title": TITLES[name], "unit": Loss(name).unit} for name in state["settings"]["losses"]
        ],
        "batches": [{"number": one.number, "name": one.name, "added": one.added, **one.counts} for one in batches],
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
    return dict(plain(summary))


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


def _stands(last: StoredBatch, notices: list[dict[str, Any]], service: list[ServiceChange]) -> bool:
    """Whether an alarm about the model by itself stands: others do not serve since."""
    changed = max((change.batch for change in service), default=0)
    alarmed = any(row["alarm_row"] for row in last.levels)
    return alarmed and any(notice["kind"] == "level" and notice["batch"] > changed for notice in notices)


def _verdict(last: StoredBatch, notices: list[dict[str, Any]], n_batches: int, level_alarm: bool) -> dict[str, Any]:
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
    if level_alarm:
        sentence = f"the model in use makes more errors than it did, or its probabilities no longer fit ({seen})."
        return _said("harm", "Alarm", sentence)
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
