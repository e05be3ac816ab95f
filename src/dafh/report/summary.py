"""What a report about an audit says, as one dictionary of plain values; `dafh.report.page` turns it into a page."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

import dafh
from dafh import plots
from dafh.classifiers import GroupModel, final_classifier
from dafh.evaluation.audit import AuditResult, failed_now, group_changes, rules_of
from dafh.evaluation.guard import ALL_ROWS, GuardReport
from dafh.evaluation.losses import Loss, level_in_words
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.evaluation.recommendation import Recommendation
from dafh.explanation import Explanation, server_words, worth_of_groups
from dafh.linear.scorecard import Scorecard
from dafh.report.page import page_charts, page_table
from dafh.text import Section, clipped, listed, percent, plain, points

# Names and values from the data can be of any length, and one of a megabyte would make the page unreadable.
_LONGEST_WORD = 80
# Columns of a scorecard that are drawn; its table has all.
_MOST_DRAWN = 6
# Columns with fewer points, on average, do not change what anybody is told.
_SMALLEST_IMPORTANCE = 0.01
# Values of columns that cost most, where a scorecard has a scale; and the share of rows that makes one worth naming.
_MOST_REASONS, _SMALLEST_SHARE = 10, 0.01
_SIGNS = {
    "deploy": "✔",
    "deploy_with_checks": "◆",
    "deploy_some": "◐",
    "keep": "○",
    "do_not_deploy": "✖",
    "unaudited": "–",
}
_SERVERS = {"its own": "its own classifier", "pooled": "the pooled classifier"}
_ACTIONS = {"deploy": "Deploy", "keep": "Keep the pooled classifier", "pooled": "Nothing changes"}
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
        Among others `recommendation`, that of the audit; `tiles`, the figures at the top; `groups`, those of the model
        by gain; `tables` and `charts`, by name. What is unknown is None.

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
    pooled = getattr(final, "pooled_", None)
    scorecard = pooled if isinstance(pooled, Scorecard) else None
    features = {str(column["name"]) for column in (card or {}).get("columns", [])}
    tables = {
        **({} if result is None else _audit_tables(result)),
        **({} if report is None else {"guard": Section("The guard’s figures", table=report.display())}),
        **({} if scorecard is None else _scorecard_tables(scorecard)),
    }
    summary = {
        "about": "audited",
        "title": title,
        "dafh": dafh.__version__,
        "recommendation": advice.to_dict(),
        "sign": _SIGNS[advice.kind],
        "notes": list(notes),
        "worth": None if final is None else worth_of_groups(final),
        "tiles": _tiles(result, advice),
        "figures": _figures(result),
        "losses": [] if result is None else [vars(Loss(name)) | {"title": Loss(name).title} for name in result.losses],
        "groups": _groups(final, result, explanation),
        "groups_by": _divided_by(final),
        "alike": explanation is not None and explanation.alike,
        "failures": None if result is None or result.failures is None else result.failures.to_dict(),
        "named": _named(result, features),
        "positive": _positive(final),
        "guard": None if report is None else _guard(report),
        "scorecard": None if scorecard is None else _scorecard(scorecard),
        "card": None if card is None else {"columns": [], **card},
        "tables": {name: page_table(section) for name, section in tables.items()},
    }
    charts = {} if result is None else _audit_charts(result)
    if scorecard is not None:
        for position, column in enumerate(_drawn_columns(scorecard)):
            charts[f"scorecard_{position}"] = plots.scorecard_chart(scorecard, column)
    # Of charts, nothing is shortened: their names fit beside an axis, and a cut expression would draw nothing.
    return dict(_shortened(plain(summary))) | {"charts": plain(page_charts(charts))}


# ---- an audit ----


def _tiles(result: AuditResult | None, advice: Recommendation) -> list[dict[str, str]] | None:
    """Figures for the top of a page, of the model as it is recommended: name, value, and what it means."""
    if result is None or advice.total is None:
        return None
    total, loss = advice.total, Loss(advice.total["loss"])
    old_level, new_level = (level_in_words(loss.name, total[side]) for side in ("pooled_loss", "own_loss"))
    tiles = [("People tested", f"{int(result.matrix.sizes.sum()):,}", "whose right label is known")]
    if result.changed:
        deployed = f", with {len(advice.deploy)} of {len(advice.groups)} groups" if advice.kind == "deploy_some" else ""
        unit = "per 100 rows" if loss.name == "cost" else "points"
        interval = f"{100 * (1 - result.level):g}% interval {points(total['low'])} to {points(total['high'])}"
        note = f"{loss.title} {old_level} → {new_level}; {interval}"
        tiles.insert(0, (f"Gain{loss.of_gain}{deployed}", f"{points(total['gain'])} {unit}", note))
        losing = [f"group {group.group}" for group in advice.groups if advice.kind == "do_not_deploy" and group.harmed]
        losing += [group.group for group in advice.losing]
        n_checks = len(advice.checks)
        note = f"{n_checks} named group{'' if n_checks == 1 else 's'} to check"
        note = note if result.named is not None else "no attribute was named"
        tiles.append(("Shown to lose", listed(losing[:3]) if losing else "nobody", note))
    else:
        tiles.insert(0, (loss.title.capitalize(), old_level, "with the pooled classifier"))
    rates = advice.rates or {}
    for name, title, note in _RATES if rates else ():
        old_rate, new_rate = (percent(float(rates[column])) for column in (f"{name}_pooled", name))
        tiles.append((title, f"{old_rate} → {new_rate}" if result.changed else old_rate, note))
    return [{"name": name, "value": value, "note": note} for name, value, note in tiles]


def _figures(result: AuditResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {**result.figures(), "gain": result.gain, "changed": result.changed, "level": result.level}


def _audit_tables(result: AuditResult) -> dict[str, Section]:
    """Tables of the audit, those of the paper's metrics last."""
    tables = {section.name: section for section in result.sections(short=False) if section.name}
    if result.failures is not None and result.failures.regions:
        # Named groups, which are tested there as well, have sections of their own.
        title, regions = result.failures.parts()[0]
        tables["discovered"] = Section(title.rstrip(":"), table=regions.drop(columns="answer"))
    tables |= {section.name: section for section in result.detail_sections() if section.name}
    cells = result.cells()
    classifiers = [f"{name} (serves it)" if own else str(name) for name, own in cells[["classifier", "own"]].to_numpy()]
    columns = {"group": cells["group"], "classifier": classifiers, "people": cells["rows"].map("{:,.0f}".format)}
    errors = pd.DataFrame({**columns, "error": cells["error"].map(percent)})
    tables["matrix"] = Section("Error rates of every classifier on every group", table=errors)
    if len(result.losses) > 1:
        tables["totals"] = Section("All people together", table=_display_totals(result.totals))
    if result.composition is not None and len(result.matrix.sizes) > 1:
        composition = result.composition.rename(
            columns=lambda name: name.replace("in_", "in group ").replace("_", " ").replace("weight", "people")
        )
        written = {
            name: composition[name].map("{:,.0f}".format if name == "people" else percent)
            for name in composition.columns[1:]
        }
        tables["composition"] = Section("Named groups within the learned groups", table=composition.assign(**written))
    return tables


def _display_totals(totals: pd.DataFrame) -> pd.DataFrame:
    losses = [Loss(name) for name in totals["loss"]]
    limits = totals[["gain", "low", "high"]].map(points)
    return pd.DataFrame(
        {
            "loss": [loss.title for loss in losses],
            "pooled": list(map(level_in_words, totals["loss"], totals["pooled_loss"])),
            "own": list(map(level_in_words, totals["loss"], totals["own_loss"])),
            "gain": limits["gain"] + " (" + limits["low"] + " to " + limits["high"] + ")",
            "unit": [loss.unit for loss in losses],
        }
    )


def _audit_charts(result: AuditResult) -> dict[str, alt.LayerChart]:
    charts = {}
    if len(failed_now(result)) > 1:
        charts["failed"] = plots.levels(result)
    if not result.changed:  # A chart of dots at zero says nothing.
        return charts
    for loss in result.losses:
        charts[f"gains_{loss}"] = plots.gains(result, loss=loss)
        if result.named is not None:
            charts[f"named_{loss}"] = plots.named_groups(result, loss=loss)
    return {**charts, "matrix": plots.preference_matrix(result)}


def _named(result: AuditResult | None, features: set[str]) -> dict[str, Any] | None:
    """How many named groups there are, and which attributes the model was trained with."""
    if result is None or result.named is None:
        return None
    sizes = result.worst_named().drop_duplicates("group").set_index("group")["n"]
    return {
        "in_training": sorted(set(result.attributes) & features),
        "known_features": bool(features),
        "n_groups": len(sizes),
        "example": sizes.index[0],
        "smallest": SMALLEST_SHOWN,
        "n_small": int((sizes < SMALLEST_SHOWN).sum()),
    }


# ---- the groups of a model ----


def _groups(
    final: GroupModel | None, result: AuditResult | None, explanation: Explanation | None
) -> list[dict[str, Any]]:
    """Each group as a card, by gain: on the people tested or, without any, on calibration rows in training."""
    words = {} if explanation is None else {str(group.group): group for group in explanation.groups}
    servers = {} if final is None else {str(k): server_words(final, k) for k in range(int(final.n_groups_))}
    level = 0.05 if result is None else result.level
    if result is not None:
        table = group_changes(result).assign(loss=result.losses[0])
    elif final is not None and rules_of(final):
        exceptions = final.exceptions_  # type: ignore[attr-defined]
        table = exceptions.to_frame().reset_index().rename(columns={"rows": "share"}).assign(loss=exceptions.loss)
    else:
        shares = [words[name].share if name in words else np.nan for name in (servers or words)]
        table = pd.DataFrame({"group": list(servers or words), "rule": "", "gain": np.nan, "share": shares})
    return [
        {
            "group": str(row["group"]),
            "title": words[str(row["group"])].name if str(row["group"]) in words else f"Group {row['group']}",
            "rule": row["rule"],
            "size": _size(row),
            "served_by": servers.get(str(row["group"])) or _SERVERS.get(str(row.get("in_model")), row.get("in_model")),
            "advice": f"{_ACTIONS[row['action']]}: {row['reason']}" if "action" in row else "",
            "action": row.get("action", ""),
            # The first line says the rule, which stands above.
            "lines": words[str(row["group"])].lines()[bool(row["rule"]) :] if str(row["group"]) in words else [],
            **_gain(row, level),
        }
        for row in table.to_dict("records")
    ]


def _size(row: Mapping[Any, Any]) -> str:
    """People tested, where there are any, and share of all; empty where neither is known."""
    people = f"{row['rows']:,.0f} people" if "rows" in row else ""
    return " · ".join(filter(None, [people, "" if pd.isna(row["share"]) else percent(row["share"])]))


def _gain(row: Mapping[Any, Any], level: float) -> dict[str, str]:
    """Gain of a group with its interval and, on people tested, the losses that it is made of."""
    if pd.isna(row["gain"]):
        return {"gain": "", "change": ""}
    loss, limits = Loss(row["loss"]), f"{points(row['low'])} to {points(row['high'])}"
    change = f"{100 * (1 - level):g}% interval {limits}"
    if "own_loss" in row:
        old_level, new_level = (level_in_words(loss.name, row[side]) for side in ("pooled_loss", "own_loss"))
        change = f"{loss.title} {old_level} → {new_level}; {change}"
    return {"gain": f"{points(row['gain'])} {'per 100 rows' if loss.name == 'cost' else 'points'}", "change": change}


def _divided_by(final: GroupModel | None) -> str | None:
    """What divides rows into groups: rules, a network, or nothing that can be told."""
    if final is None:
        return None
    return "network" if getattr(final, "history_", None) is not None else "rules" if rules_of(final) else None


def _positive(final: Any) -> str | None:
    """The label that "flagged" means, if a model with two of them says so."""
    classes: Sequence[Any] = getattr(final, "classes_", ())
    return clipped(classes[1], 30) if len(classes) == 2 else None


def _guard(report: GuardReport) -> dict[str, Any]:
    return {
        "kind": report.kind,
        "level": report.level,
        "margin": report.margin,
        "losses": [Loss(name).title for name in report.losses],
        "sentence": report.sentence(),
        "sentences": [*report.reasons(), *report.notes],
        "cross_fitted": report.cross_fitted,
        "checks_subgroups": bool(len(report.checks) and (report.checks["part"] != ALL_ROWS).any()),
    }


# ---- the pooled classifier as a scorecard ----


def _scorecard(scorecard: Scorecard) -> dict[str, Any]:
    """Where the sum of points starts, its scale, and the columns that are drawn."""
    scaling = scorecard.scaling
    return {
        "labels": [clipped(label, 30) for label in scorecard.classes_],
        "start": scorecard.intercept_[0],
        "n_columns": len(scorecard.points_),
        "drawn": [clipped(name) for name in _drawn_columns(scorecard)],
        "scale": None
        if scaling is None
        else {
            "points": scaling.points,
            "odds": scaling.odds,
            "doubling": scaling.doubling,
            "favourable": clipped(scorecard.classes_[1] if scaling.favourable is None else scaling.favourable, 30),
            "start": scaling.start + scaling.factor(scorecard.classes_.tolist()) * scorecard.intercept_[0],
        },
    }


def _drawn_columns(scorecard: Scorecard) -> list[str]:
    """The most important columns, as far as they add any points."""
    importance = scorecard.importance()
    return importance.index[importance >= _SMALLEST_IMPORTANCE].tolist()[:_MOST_DRAWN]


def _scorecard_tables(scorecard: Scorecard) -> dict[str, Section]:
    """Points of all values, the most important column first; and on a scale, the values that cost most."""
    table = scorecard.table()
    table = table[table["rows"] > 0]
    order = {name: rank for rank, name in enumerate(scorecard.importance().index)}
    table = table.sort_values("column", key=lambda names: names.map(order), kind="stable")
    written = {
        name: table[name].map(
            percent if name == "rows" else "{:+z.1f}".format if "scaled" in name else "{:+z.2f}".format
        )
        for name in table.columns[2:]
    }
    texts = table.assign(**written).rename(columns={"bin": "value", "rows": "share of people"})
    tables = {"scorecard": Section("Points of the scorecard", table=texts)}
    if "scaled points" in table:
        costly = table[(table["scaled points"] < 0) & (table["rows"] >= _SMALLEST_SHARE)]
        costly = costly.sort_values("scaled points", kind="stable").head(_MOST_REASONS)
        tables["reasons"] = Section(
            "Values that cost most points", table=texts.loc[costly.index].drop(columns="points")
        )
    return tables


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
