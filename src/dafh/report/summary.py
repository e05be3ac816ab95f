"""What a report says, as one dictionary of plain values; `dafh.report.page` makes a page of it."""

from typing import Any

import dafh
from dafh.classifiers.pipelines import final_classifier
from dafh.evaluation.result import AuditResult
from dafh.explanation.words import Explanation, server_words
from dafh.text import listed, percent, plain, points

# Names and values from the data can be of any length; nobody reads more of one than this.
_LONGEST_TEXT = 80
_MOST_NAMED_GROUPS = 200
_MOST_COLUMNS = 200

NOT_PROMISED = (
    "The figures speak of people like those in the data. For others, or later, they have to be measured again.",
    "No harm is meant against the shared (pooled) model, in rates of wrong decisions. It does not say that a decision "
    "is right, that the labels are fair, or that wrong decisions of one kind do not weigh more than those of another.",
    "The learned groups are not groups of society. Whether women or men, old or young are served worse can only be "
    "asked where somebody has recorded it, in the section on named groups.",
    "A verdict of “undecided” means that there are too few people to tell, not that all is well.",
)


def summarize(
    model: Any = None,
    result: AuditResult | None = None,
    explanation: Explanation | None = None,
    *,
    title: str = "Fairness report",
    card: dict[str, Any] | None = None,
    notes: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Put everything that a report says into one dictionary of plain values, ready for JSON.

    Parameters
    ----------
    model : fitted DAFHClassifier or DecoupledClassifier, or a pipeline that ends in one, optional
        What the guard did, and how training went; an audit of other models has none.
    result : AuditResult, optional
    explanation : Explanation, optional
        Groups in words.
    title : str
    card : dict, optional
        Of the model's file: data and settings.
    notes : tuple of str
        What the reader must know about the data, such as that they are those of the training.

    Returns
    -------
    dict
        Keys: title, dafh, verdict, notes, figures, serving, guard, cells, questions, named, composition, groups,
        training, card, not_promised; what is not known is None.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import audit
    >>> from dafh.report import summarize
    >>> y, groups = np.tile([0, 1], 200), np.repeat([0, 1], 200)
    >>> own = np.column_stack([np.where(groups == k, y, 1 - y) for k in (0, 1)])
    >>> summary = summarize(result=audit(y, own, groups, pooled=1 - y))
    >>> summary["verdict"]["status"], summary["figures"]["accuracy"]
    ('fine', 1.0)
    """
    final = final_classifier(model)
    report = getattr(final, "guard_report_", None)
    summary = {
        "title": title,
        "dafh": dafh.__version__,
        "verdict": _verdict(result, report),
        "notes": list(notes),
        "figures": _figures(result),
        "serving": _serving(final, result, report),
        "guard": None if report is None else _guard(report),
        "cells": None if result is None else _records(result.cells()),
        "questions": None if result is None else _records(result.questions),
        "named": _named(result, {str(column["name"]) for column in (card or {}).get("columns", [])}),
        "composition": None if result is None or result.composition is None else _records(result.composition),
        "groups": None if explanation is None else explanation.to_dict(),
        "training": _training(final),
        "card": None if card is None else _card(card),
        "not_promised": list(NOT_PROMISED),
    }
    return _shortened(plain(summary))


def _verdict(result: AuditResult | None, report: Any) -> dict[str, Any]:
    if result is None:
        sentence = "Not audited: this report has no people outside of training to test the model on."
        return {"status": "unaudited", "sentence": sentence, "details": [] if report is None else [report.sentence()]}
    tested = f"tested on {int(result.matrix.sizes.sum()):,} people"
    asked = result.questions if result.named is None else result.to_frame()
    harmed = list(dict.fromkeys(_who(group) for group in asked["group"][asked["verdict"] == "violated"]))
    n_open = int((result.questions["verdict"] == "undecided").sum())
    sentences = {
        "same": "Nothing changed: the pooled model serves every group, so nobody is harmed and nothing is gained.",
        "harm": f"Harm: {tested}, {_harm(harmed)}.",
        "open": f"No harm found: {tested}, no group is shown to be served worse than it could be; {n_open} of "
        f"{len(result.questions)} questions about the groups need more people to be decided.",
        "fine": f"No harm: {tested}, every group is shown to be served no worse than it could be.",
    }
    named = result.named_verdict() if result.status != "same" else ""
    return {"status": result.status, "sentence": sentences[result.status], "details": [named] if named else []}


def _harm(harmed: list[str]) -> str:
    if not harmed:
        return ""
    named = harmed[:3] + ([f"{len(harmed) - 3} more"] if len(harmed) > 3 else [])
    verb, it = ("is", "it") if len(harmed) == 1 else ("are", "they")
    return f"{listed(named)} {verb} served worse than {it} could be"


def _who(group: Any) -> str:
    return f"group {group}" if isinstance(group, int) else str(group)


def _figures(result: AuditResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    figures = result.figures()
    return {
        **figures,
        "gain": figures["accuracy"] - figures["pooled_accuracy"],
        "violations": result.violations,
        "level": result.level,
        "margin": result.margin,
    }


def _serving(final: Any, result: AuditResult | None, report: Any) -> list[dict[str, Any]] | None:
    """Who is served by which classifier, what that gains, and what harm is excluded."""
    if final is None and result is None:
        return None
    n_groups = len(result.matrix.sizes) if result is not None else int(final.n_groups_)
    asked = None if result is None else result.questions[result.questions["kind"] == "rationality"]
    found = []
    for k in range(n_groups):
        entry: dict[str, Any] = {"group": k, "served_by": _server(final, result, k)}
        if result is not None and asked is not None:
            row = asked.iloc[k]
            entry |= {"group": row["group"], "rows": row["n"], "share": result.matrix.weights[k]}
            entry |= {name: row[name] for name in ("own_error", "rival_error", "gap", "low", "high", "verdict")}
        if report is not None and k < len(report.table):
            entry["certificate"] = report.table["certificate"].iloc[k]
        found.append(entry)
    return found


def _server(final: Any, result: AuditResult | None, group: int) -> str:
    if final is not None:
        return server_words(final, group)
    assert result is not None
    name = result.classifiers[int(result.matrix.own[group])]
    return "the pooled classifier" if name == "pooled" else f"classifier {name}"


def _guard(report: Any) -> dict[str, Any]:
    return {
        "kind": report.kind,
        "level": report.level,
        "margin": report.margin,
        "sentence": report.sentence(),
        "cross_fitted": report.cross_fitted,
        "table": [{**row, "why": _why(row, report)} for row in _records(report.table.reset_index())],
    }


def _why(row: dict[str, Any], report: Any) -> str:
    """Why the guard lets a classifier serve a group."""
    if row["served_by"] == "its own":
        return "shown to do no harm" if report.kind == "proof" else "nothing speaks against it"
    if row["served_by"] != "pooled":
        return "the group does better with it"
    if not row["own_worse"] + row["own_better"]:
        return "its own decided nothing differently"
    return "its own is not shown to do no harm" if report.kind == "proof" else "its own did worse on people held back"


def _named(result: AuditResult | None, features: set[str]) -> dict[str, Any] | None:
    if result is None or result.named is None:
        return None
    ordered = result.named.sort_values("p", kind="stable")
    counts = result.named["verdict"].value_counts()
    return {
        "in_training": sorted(set(result.attributes) & features),
        "known_features": bool(features),
        "n_groups": len(ordered),
        "verdicts": {verdict: int(counts.get(verdict, 0)) for verdict in ("satisfied", "undecided", "violated")},
        "questions": _records(ordered.head(_MOST_NAMED_GROUPS)),
    }


def _training(final: Any) -> dict[str, Any] | None:
    if not hasattr(final, "history_"):
        return None
    columns = [f"{part}_{metric}" for metric in ("accuracy", "pr") for part in ("train", "selection")]
    return {"best_epoch": final.best_epoch_, "history": _records(final.history_[columns].reset_index())}


def _card(card: dict[str, Any]) -> dict[str, Any]:
    columns = card.get("columns", [])
    return {**card, "columns": columns[:_MOST_COLUMNS], "n_columns": len(columns)}


def _records(table: Any) -> list[dict[str, Any]]:
    return table.to_dict("records")


def _shortened(value: Any) -> Any:
    """Cut names and values from the data that are too long to read; sentences have their names cut already."""
    if isinstance(value, dict):
        return {_cut(key): _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return _cut(value) if isinstance(value, str) else value


def _cut(text: str) -> str:
    words = (word if len(word) <= _LONGEST_TEXT else word[: _LONGEST_TEXT - 1] + "…" for word in text.split(" "))
    return " ".join(words)


def headline(figures: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Figures for the top of a page: name, value, and what it means."""
    gain = f"{points(figures['gain'])} points against the pooled model"
    alike = (
        "of the people: they decide alike" if not figures["disagreement"] else "of the people; on all others they agree"
    )
    return [
        ("People tested", f"{figures['rows']:,}", f"in {figures['groups']} groups"),
        ("Right decisions", percent(figures["accuracy"]), gain),
        (
            "Served as well as can be",
            percent(figures["pr_without_harm"]),
            "no other model here would do better for them",
        ),
        ("Models disagree on", percent(figures["disagreement"]), alike),
    ]
