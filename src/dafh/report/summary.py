"""What a report says, as one dictionary of plain values; `dafh.report.page` turns it into a page."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

import dafh
from dafh.classifiers import GroupModel, final_classifier
from dafh.evaluation.audit import AuditResult, failed_now, group_changes, named_changes, rules_of
from dafh.evaluation.guard import ALL_ROWS, GuardReport
from dafh.evaluation.losses import Loss, level_in_words
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.evaluation.recommendation import Recommendation
from dafh.explanation import Explanation, server_words, worth_of_groups
from dafh.linear.scorecard import Scorecard
from dafh.plots import scorecard_bins
from dafh.text import clipped, listed, percent, plain, points

# Names and values from the data can be of any length, and one of a megabyte would make the page unreadable.
_LONGEST_WORD = 80
_MOST_NAMED_GROUPS = 200
# Lines of a scorecard: more would make the page slow, and nobody reads so far.
_MOST_BINS = 1500
_RATES = (
    ("flagged", "Flagged", "of people get the positive label"),
    ("fpr", "False positive rate", "flagged, of those who should not be"),
    ("fnr", "False negative rate", "not flagged, of those who should be"),
)


def summarize(
    model: GroupModel | None = None,
    result: AuditResult | None = None,
    explanation: Explanation | None = None,
    *,
    title: str = "Fairness report",
    card: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Collect everything that a report says in one dictionary of plain values, ready for JSON.

    Parameters
    ----------
    model : fitted DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one, optional
        For the guard's decisions and the groups; leave it out to report on other models.
    result : AuditResult, optional
    explanation : Explanation, optional
        Groups in words.
    title : str
    card : dict, optional
        The card of the model's file: data and settings.
    notes : tuple of str
        What the reader must know about the data, for example that the model was trained on them.

    Returns
    -------
    dict
        Keys: title, dafh, recommendation, notes, worth, tiles, figures, losses, failed, serving, changes, totals,
        rates, positive, guard, cells, questions, named, failures, composition, groups, scorecard, network, card;
        unknown parts are None. `recommendation` is that of the audit, as plain values; `tiles` are the figures at the
        top; `failed` are levels with the pooled classifier; `serving` are the groups of the model, and `changes` those
        by gain.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import audit
    >>> from dafh.report import summarize
    >>> y, groups = np.tile([0, 1], 200), np.repeat([0, 1], 200)
    >>> own = np.column_stack([np.where(groups == k, y, 1 - y) for k in (0, 1)])
    >>> summary = summarize(result=audit(y, own, groups, pooled=1 - y))
    >>> summary["recommendation"]["kind"], summary["figures"]["accuracy"]
    ('deploy', 1.0)
    """
    final = final_classifier(model)
    report: GuardReport | None = getattr(final, "guard_report_", None)
    advice = Recommendation.without_rows() if result is None else result.recommendation
    summary = {
        "title": title,
        "dafh": dafh.__version__,
        "recommendation": advice.to_dict(),
        "notes": list(notes),
        "worth": None if final is None else worth_of_groups(final),
        "tiles": _tiles(result, advice),
        "figures": _figures(result),
        "losses": _losses(final, result),
        "failed": None if result is None else _records(failed_now(result)),
        "serving": None if final is None else _serving(final),
        "changes": None if result is None else _changes(result, final),
        "totals": None if result is None else _records(result.totals),
        "rates": _rates(result),
        "positive": _positive(final),
        "guard": None if report is None else _guard(report),
        "cells": None if result is None else _records(result.cells()),
        "questions": None if result is None else _records(result.questions),
        "named": _named(result, {str(column["name"]) for column in (card or {}).get("columns", [])}),
        "failures": _failures(result),
        "composition": None if result is None or result.composition is None else _records(result.composition),
        "groups": None if explanation is None else explanation.to_dict(),
        "scorecard": _scorecard(getattr(final, "pooled_", None)),
        "network": None if final is None else getattr(final, "history_", None) is not None,
        "card": None if card is None else {"columns": [], **card},
    }
    return dict(_shortened(plain(summary)))


def _tiles(result: AuditResult | None, advice: Recommendation) -> list[dict[str, str]] | None:
    """Figures for the top of a page, of the model as it is recommended: name, value, and what it means."""
    if result is None or advice.total is None:
        return None
    total, loss = advice.total, Loss(advice.total["loss"])
    before, now = (level_in_words(loss.name, total[side]) for side in ("pooled_loss", "own_loss"))
    tiles = [("People tested", f"{int(result.matrix.sizes.sum()):,}", "whose right label is known")]
    if result.changed:
        alone = f", with {len(advice.deploy)} of {len(advice.groups)} groups" if advice.kind == "deploy_some" else ""
        unit = "per 100 rows" if loss.name == "cost" else "points"
        interval = f"{100 * (1 - result.level):g}% interval {points(total['low'])} to {points(total['high'])}"
        note = f"{loss.title} {before} → {now}; {interval}"
        tiles.insert(0, (f"Gain{loss.of_gain}{alone}", f"{points(total['gain'])} {unit}", note))
        losing = [f"group {one.group}" for one in advice.groups if advice.kind == "do_not_deploy" and one.harmed]
        losing += [one.group for one in advice.losing]
        note = f"{len(advice.checks)} named groups to check" if result.named is not None else "no attribute was named"
        tiles.append(("Shown to lose", listed(losing[:3]) if losing else "nobody", note))
    else:
        tiles.insert(0, (loss.title.capitalize(), before, "with the pooled classifier"))
    rates = advice.rates or {}
    for name, title, note in _RATES if rates else ():
        pooled, own = (percent(float(rates[column])) for column in (f"{name}_pooled", name))
        tiles.append((title, f"{pooled} → {own}" if result.changed else pooled, note))
    return [{"name": name, "value": value, "note": note} for name, value, note in tiles]


def _figures(result: AuditResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    figures = result.figures()
    return {
        **figures,
        "gain": figures["accuracy"] - figures["pooled_accuracy"],
        "violations": result.violations,
        "unchanged": not result.changed,
        "level": result.level,
        "margin": result.margin,
    }


def _rates(result: AuditResult | None) -> list[dict[str, Any]] | None:
    """How decisions change, with learned groups named as such; None without two classes."""
    if result is None or result.rates is None:
        return None
    last = len(result.matrix.sizes)  # All rows come first, then learned groups.
    names = [f"group {name}" if 0 < place <= last else name for place, name in enumerate(result.rates["group"])]
    return _records(result.rates.assign(name=names))


def _failures(result: AuditResult | None) -> dict[str, Any] | None:
    """Groups that the model fails, with the tables that a page shows."""
    if result is None or result.failures is None:
        return None
    tables = [
        {"title": title.rstrip(":"), "columns": list(table.columns), "rows": table.to_numpy().tolist()}
        for title, table in result.failures.parts()
    ]
    return {**result.failures.to_dict(), "tables": tables}


def _losses(final: Any, result: AuditResult | None) -> list[dict[str, str]] | None:
    """Losses that were asked about, the main one first: name, title and unit."""
    if result is not None:
        names = list(result.losses)
    elif hasattr(final, "losses_"):
        names = [loss.name for loss in final.losses_]
    else:
        return None
    return [{"name": name, "title": Loss(name).title, "unit": Loss(name).unit} for name in names]


def _positive(final: Any) -> str | None:
    """The label that "flagged" means, if a model with two of them says so."""
    classes: Sequence[Any] = getattr(final, "classes_", ())
    return clipped(classes[1], 30) if len(classes) == 2 else None


def _serving(final: GroupModel) -> list[dict[str, Any]]:
    """For each group: its rule, the classifier that serves it, and share and gain in training."""
    rules, exceptions = rules_of(final), getattr(final, "exceptions_", None)
    serving = [{"group": k, "served_by": server_words(final, k)} for k in range(int(final.n_groups_))]
    for k, entry in enumerate(_records(exceptions.to_frame()) if rules and exceptions is not None else []):
        known = {name: entry[name] for name in ("rule", "gain", "low", "high")}
        serving[k] |= {**known, "share": entry["rows"], "loss": exceptions.loss}  # type: ignore[union-attr]
    return serving


def _changes(result: AuditResult, final: GroupModel | None) -> list[dict[str, Any]]:
    """Groups by gain, on the people tested, and who serves each in the model."""
    changes = _records(group_changes(result).assign(loss=result.losses[0]))
    if final is not None:
        # An audit can have one group more than the model: rows of none of its groups.
        words = {str(k): server_words(final, k) for k in range(int(final.n_groups_))}
        changes = [entry | {"in_model": words.get(str(entry["group"]), entry["in_model"])} for entry in changes]
    return changes


def _guard(report: GuardReport) -> dict[str, Any]:
    return {
        "kind": report.kind,
        "level": report.level,
        "margin": report.margin,
        "losses": [Loss(name).title for name in report.losses],
        "sentence": report.sentence(),
        "notes": list(report.notes),
        "cross_fitted": report.cross_fitted,
        "table": [{**row, "loss": report.losses[0]} for row in _records(report.table.reset_index())],
        "checks": _records(report.checks),
        "subgroups": int((report.checks["part"] != ALL_ROWS).sum()) if len(report.checks) else 0,
    }


def _scorecard(pooled: Any) -> dict[str, Any] | None:
    """Points of the pooled classifier by column, the most important column first; None if it is no scorecard."""
    if not isinstance(pooled, Scorecard):
        return None
    bins, importance = scorecard_bins(pooled), pooled.importance()
    columns: list[dict[str, Any]] = []
    for name, size in importance.items():
        part = bins[bins["column"] == name]
        if sum(len(column["bins"]) for column in columns) + len(part) > _MOST_BINS:
            break
        columns.append({"name": str(name), "importance": size, "bins": _records(part)})
    return {
        "labels": [clipped(label, 30) for label in pooled.classes_],
        "start": pooled.intercept_,
        "n_columns": len(importance),
        "columns": columns,
    }


def _named(result: AuditResult | None, features: set[str]) -> dict[str, Any] | None:
    if result is None or result.named is None or result.composition is None:
        return None
    ordered, single = result.worst_named(), set(result.composition["named_group"])
    changes, sizes = named_changes(result), ordered.drop_duplicates("group")["n"]
    return {
        "in_training": sorted(set(result.attributes) & features),
        "known_features": bool(features),
        "n_groups": len(sizes),
        "smallest": SMALLEST_SHOWN,
        "n_small": int((sizes < SMALLEST_SHOWN).sum()),
        "changes": _records(changes.head(_MOST_NAMED_GROUPS).assign(loss=result.losses[0])),
        "questions": _records(ordered.assign(single=ordered["group"].isin(single)).head(_MOST_NAMED_GROUPS)),
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _shortened(value: object) -> Any:
    """Cut long words in every text: they come from the data. Sentences keep their length."""
    if isinstance(value, dict):
        return {_shortened(key): _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    if not isinstance(value, str):
        return value
    return " ".join(
        word if len(word) <= _LONGEST_WORD else word[: _LONGEST_WORD - 1] + "…" for word in value.split(" ")
    )
