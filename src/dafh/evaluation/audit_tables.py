"""Tables of an audit as readers see them, in a terminal and in a notebook."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dafh.evaluation.losses import TITLES
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.evaluation.verdict import in_points
from dafh.text import percent, points

if TYPE_CHECKING:
    from dafh.evaluation.result import AuditResult

_MOST_NAMED_GROUPS_IN_SUMMARY = 10
# More times the rows of the group than this are not named: nobody will collect them, and the estimate rests on a gap
# that is mostly noise.
_MOST_TIMES = 10


def figure_lines(result: "AuditResult") -> list[str]:
    """Say in four lines how many rows were tested, how many are right, and how much is gained."""
    figures, counts = result.figures(), result.violations
    margin = f", margin {in_points(result.margin)}" if result.margin else ""
    total = result.totals.iloc[0]
    unit = "per 100 rows" if total["loss"] == "cost" else "percentage points"
    groups = f"{figures['groups']} group{'' if figures['groups'] == 1 else 's'}"
    lines = [
        f"{figures['rows']:,} rows, {groups}, level {result.level:g}{margin}",
        f"accuracy {percent(figures['accuracy'])}, pooled {percent(figures['pooled_accuracy'])}; "
        f"Pr without harm {percent(figures['pr_without_harm'])}, "
        f"classifiers disagree on {percent(figures['disagreement'])} of rows",
    ]
    if result.verdict.status == "unchanged":  # An interval around a gain that is zero by definition would mislead.
        return lines
    return [
        *lines,
        f"gain in {TITLES[total['loss']]} {points(total['gain'])} {unit} "
        f"({100 * (1 - result.level):g}% interval {points(total['low'])} to {points(total['high'])})",
        f"comparisons in which a group looks worse off: {counts['point']} observed, {counts['significant']} "
        f"significant, {counts['corrected']} after correction for the number of questions",
    ]


def summary_tables(result: "AuditResult") -> list[tuple[str, pd.DataFrame, tuple[str, ...]]]:
    """Tables of the summary: title, table, and the columns to align at the left."""
    if result.verdict.status == "unchanged":  # Every gap would be zero.
        return []
    tables: list[tuple[str, pd.DataFrame, tuple[str, ...]]] = [
        ("", display_questions(result.questions, result.level), ("answer",))
    ]
    if result.named is not None:
        shown = result.worst_named().head(_MOST_NAMED_GROUPS_IN_SUMMARY)
        n_named = len(result.named)
        which = "" if len(shown) == n_named else f", {len(shown)} of {n_named:,} (single attributes first)"
        title = f"Named groups against the pooled classifier{which}:"
        tables.append((title, display_questions(shown, result.level), ("group", "answer")))
    if result.rates is not None:
        shown = result.rates.head(1 + len(result.matrix.sizes) + _MOST_NAMED_GROUPS_IN_SUMMARY)
        title = "Decisions with the pooled classifier and with this model (flagged: the second label is predicted):"
        tables.append((title, display_rates(shown), ("group",)))
    return tables


def worst_first(named: pd.DataFrame, single: set[str]) -> pd.DataFrame:
    """Named groups that are shown to lose, then those of 50 rows and more, single attributes first, by p-value."""
    order = pd.DataFrame(
        {
            "spared": named["verdict"] != "violated",
            "small": (named["n"] < SMALLEST_SHOWN) & (named["verdict"] != "violated"),
            "several": ~named["group"].isin(single),
            "p": named["p"],
        }
    )
    return named.loc[order.sort_values(["spared", "small", "several", "p"], kind="stable").index]


def rows_wanted(needed: float | None, rows: float) -> str:
    """Rows that would decide a question, to two digits; nothing where they are unknown or out of reach.

    Examples
    --------
    >>> rows_wanted(3_456, 1_000), rows_wanted(2_367_992, 1_000), rows_wanted(np.inf, 1_000)
    ('3,500', '', '')
    """
    if needed is None or not np.isfinite(needed) or needed > _MOST_TIMES * rows:
        return ""
    step = 10 ** max(len(str(int(needed))) - 2, 0)
    return f"{int(np.ceil(needed / step)) * step:,}"


def display_questions(questions: pd.DataFrame, level: float) -> pd.DataFrame:
    """Format a table of questions."""
    limits = zip(questions["low"], questions["high"], strict=True)
    answers = zip(questions["verdict"], map(rows_wanted, questions["rows_needed"], questions["n"]), strict=True)
    losses = zip(questions["loss"], questions["own_loss"], questions["rival_loss"], strict=True)
    written = [(_level_of(loss, own), _level_of(loss, rival)) for loss, own, rival in losses]
    table = pd.DataFrame(
        {
            "group": questions["group"].astype(str),
            "loss": [TITLES[name] for name in questions["loss"]],
            "against": questions["rival"].astype(str),
            "rows": [f"{n:,.0f}" for n in questions["n"]],
            "own": [own for own, _ in written],
            "rival": [rival for _, rival in written],
            _gap_title(set(questions["loss"])): [points(g) for g in questions["gap"]],
            f"{100 * (1 - level):g}% interval": [f"{points(low)} to {points(high)}" for low, high in limits],
            "corrected p": ["<0.001" if p < 0.001 else f"{p:.3f}" for p in questions["p_corrected"]],
            "answer": [f"{verdict} (about {wanted} rows needed)" if wanted else verdict for verdict, wanted in answers],
        }
    )
    if len(set(questions["loss"])) > 1:
        return table
    # One loss is named in the head of the table, not in every line.
    title = TITLES[questions["loss"].iloc[0]].removesuffix(" rate") if len(questions) else "error"
    return table.drop(columns="loss").rename(columns={"own": f"own {title}", "rival": f"rival {title}"})


def _gap_title(losses: set[str]) -> str:
    """Head of the column of gaps, with their unit: a cost is not a percentage."""
    if "cost" not in losses:
        return "gap, points"
    return "gap per 100 rows" if losses == {"cost"} else "gap, points or per 100 rows"


def _level_of(loss: str, value: float) -> str:
    return f"{100 * value:.2f}" if loss == "cost" else percent(value)


def display_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Format the shares flagged and the kinds of error, each as "with the pooled classifier → with this model"."""
    columns = {"group": rates["group"], "rows": [f"{n:,.0f}" for n in rates["rows"]]}
    for name, title in (("flagged", "flagged"), ("fpr", "false positive rate"), ("fnr", "false negative rate")):
        pairs = zip(rates[f"{name}_pooled"], rates[name], strict=True)
        columns[f"{title}, pooled → own"] = [f"{percent(before)} → {percent(now)}" for before, now in pairs]
    return pd.DataFrame(columns)
