"""What a report says, as one dictionary of plain values; `dafh.report.page` turns it into a page."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

import dafh
from dafh.classifiers.pipelines import final_classifier
from dafh.classifiers.protocols import GroupModel
from dafh.evaluation.guard import ALL_ROWS
from dafh.evaluation.guard_report import GuardReport
from dafh.evaluation.losses import Loss
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.evaluation.recommendation import Recommendation
from dafh.evaluation.result import AuditResult
from dafh.evaluation.verdict import Verdict
from dafh.explanation.words import Explanation, server_words, worth_of_groups
from dafh.linear.scorecard import Scorecard
from dafh.plots import named_rates, scorecard_bins
from dafh.text import clipped, percent, plain

# Names and values from the data can be of any length, and one of a megabyte would make the page unreadable.
_LONGEST_WORD = 80
_MOST_NAMED_GROUPS = 200
# Lines of a scorecard: more would make the page slow, and nobody reads so far.
_MOST_BINS = 1500


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
        For the guard's decisions and the course of training; leave it out to report on other models.
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
        Keys: title, dafh, recommendation, verdict, notes, worth, tiles, figures, losses, totals, rates, positive,
        serving, exceptions, guard, cells, questions, named, failures, composition, groups, scorecard, training, card;
        unknown parts are None.
        `recommendation` and `verdict` are those of the audit, as plain values; `tiles` are the figures at the top.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import audit
    >>> from dafh.report import summarize
    >>> y, groups = np.tile([0, 1], 200), np.repeat([0, 1], 200)
    >>> own = np.column_stack([np.where(groups == k, y, 1 - y) for k in (0, 1)])
    >>> summary = summarize(result=audit(y, own, groups, pooled=1 - y))
    >>> summary["verdict"]["status"], summary["figures"]["accuracy"]
    ('no_harm', 1.0)
    """
    final = final_classifier(model)
    report: GuardReport | None = getattr(final, "guard_report_", None)
    if result is not None:
        verdict, advice = result.verdict, result.recommendation
    else:
        verdict = Verdict.without_rows(*([] if report is None else [report.sentence()]))
        advice = Recommendation.without_rows()
    serving = _serving(final, result, report, advice)
    rates = None if result is None else named_rates(result)
    summary = {
        "title": title,
        "dafh": dafh.__version__,
        "recommendation": advice.to_dict(),
        "verdict": verdict.to_dict(),
        "notes": list(notes),
        "worth": None if final is None else worth_of_groups(final),
        "tiles": _tiles(result, advice),
        "figures": _figures(result),
        "losses": _losses(final, result),
        "totals": None if result is None else _records(result.totals),
        "rates": None if rates is None else _records(rates),
        "positive": _positive(final),
        "serving": serving,
        "exceptions": _exceptions(final, serving),
        "guard": None if report is None else _guard(report),
        "cells": None if result is None else _records(result.cells()),
        "questions": None if result is None else _records(result.questions),
        "named": _named(result, {str(column["name"]) for column in (card or {}).get("columns", [])}),
        "failures": _failures(result),
        "composition": None if result is None or result.composition is None else _records(result.composition),
        "groups": None if explanation is None else explanation.to_dict(),
        "scorecard": _scorecard(getattr(final, "pooled_", None)),
        "training": _training(final),
        "card": None if card is None else {"columns": [], **card},
    }
    return dict(_shortened(plain(summary)))


def _tiles(result: AuditResult | None, advice: Recommendation) -> list[dict[str, Any]] | None:
    """Figures for the top of a page: name, value, and what it means."""
    if result is None:
        return None
    figures = result.figures()
    people = {"name": "People tested", "value": f"{figures['rows']:,}", "note": "whose right label is known"}
    if not advice.figures:  # Where nothing changes, there is one figure to show.
        right = {"name": "Right decisions", "value": percent(figures["accuracy"]), "note": "by the pooled classifier"}
        return [people, right]
    return [{"name": one.name, "value": one.value, "note": one.note} for one in advice.figures] + [people]


def _figures(result: AuditResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    figures = result.figures()
    return {
        **figures,
        "gain": figures["accuracy"] - figures["pooled_accuracy"],
        "violations": result.violations,
        "unchanged": result.verdict.status == "unchanged",
        "level": result.level,
        "margin": result.margin,
    }


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


def _serving(
    final: GroupModel | None, result: AuditResult | None, report: GuardReport | None, advice: Recommendation
) -> list[dict[str, Any]] | None:
    """For each group: the classifier that serves it, its gain over the pooled one, what to do, and excluded harm."""
    if result is not None:  # It can have one group more than the model: rows of none of its groups.
        n_groups = len(result.matrix.sizes)
    elif final is not None:
        n_groups = int(final.n_groups_)
    else:
        return None
    asked = None
    if result is not None:
        about = result.questions
        asked = about[(about["kind"] == "rationality") & (about["loss"] == result.losses[0])]
    found = []
    for k in range(n_groups):
        entry: dict[str, Any] = {"group": k, "served_by": _server(final, result, k)}
        if result is not None and asked is not None:
            row = asked.iloc[k]
            entry |= {"group": row["group"], "loss": row["loss"], "rows": row["n"], "share": result.matrix.weights[k]}
            entry |= {name: row[name] for name in ("own_loss", "rival_loss", "gap", "low", "high", "verdict")}
            entry |= {"action": advice.groups[k].action, "reason": advice.groups[k].reason}
        if report is not None and k < len(report.table):
            entry["certificate"] = report.table["certificate"].iloc[k]
        found.append(entry)
    return found


def _server(final: GroupModel | None, result: AuditResult | None, group: int) -> str:
    if final is not None:
        return server_words(final, group)
    assert result is not None  # Without a model and without rows there are no groups to describe.
    name = result.classifiers[int(result.matrix.own[group])]
    return "the pooled classifier" if name == "pooled" else f"classifier {name}"


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
        "subgroups": int((report.checks["part"] != ALL_ROWS).sum()) if len(report.checks) else 0,
        "checks": _records(report.checks),
    }


def _exceptions(final: Any, serving: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """For each group: its rule, its share of the training rows and gain on calibration rows, and who serves it.

    `tested` has the same about the rows of the audit, or None: figures of different rows do not belong side by side.
    """
    exceptions = getattr(final, "exceptions_", None)
    if exceptions is None or exceptions.n_groups == 1:  # All rows are no exception.
        return None
    return [
        {
            "group": k,
            "loss": exceptions.loss,
            "rule": entry["rule"],
            "share": entry["rows"],
            **{name: entry[name] for name in ("gain", "low", "high")},
            "served_by": server_words(final, k),
            "tested": serving[k] if serving is not None and "rows" in serving[k] else None,
        }
        for k, entry in enumerate(_records(exceptions.to_frame()))
    ]


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
    if result is None or result.named is None:
        return None
    ordered = result.worst_named()
    assert result.composition is not None
    ordered = ordered.assign(single=ordered["group"].isin(set(result.composition["named_group"])))
    counts, sizes = result.named["verdict"].value_counts(), ordered.drop_duplicates("group")["n"]
    return {
        "in_training": sorted(set(result.attributes) & features),
        "known_features": bool(features),
        "n_groups": len(sizes),
        "smallest": SMALLEST_SHOWN,
        "n_small": int((sizes < SMALLEST_SHOWN).sum()),
        "n_questions": len(ordered),
        "verdicts": {verdict: int(counts.get(verdict, 0)) for verdict in ("satisfied", "undecided", "violated")},
        "questions": _records(ordered.head(_MOST_NAMED_GROUPS)),
    }


def _training(final: Any) -> dict[str, Any] | None:
    if getattr(final, "history_", None) is None:  # Only a network is trained in epochs.
        return None
    columns = [f"{part}_{metric}" for metric in ("accuracy", "pr") for part in ("train", "selection")]
    return {"best_epoch": final.best_epoch_, "history": _records(final.history_[columns].reset_index())}


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
