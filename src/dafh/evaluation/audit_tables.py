"""Tables of an audit as readers see them, in a terminal and in a notebook."""

import numpy as np
import pandas as pd

from dafh.evaluation.losses import TITLES
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.text import percent, points

# More times the rows of the group than this are not named: nobody will collect them, and the estimate rests on a gap
# that is mostly noise.
_MOST_TIMES = 10


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
    return named.loc[order.sort_values(list(order), kind="stable").index]


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
            "now": [own for own, _ in written],
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
    return table.drop(columns="loss").rename(columns={"now": f"{title} now", "rival": f"rival {title}"})


def _gap_title(losses: set[str]) -> str:
    """Head of the column of gaps, with their unit: a cost is not a percentage."""
    if "cost" not in losses:
        return "gap, points"
    return "gap per 100 rows" if losses == {"cost"} else "gap, points or per 100 rows"


def _level_of(loss: str, value: float) -> str:
    return f"{100 * value:.2f}" if loss == "cost" else percent(value)


def display_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Format the shares flagged and the kinds of error, each as "with the pooled classifier → now"."""
    columns = {"group": rates["group"], "rows": [f"{n:,.0f}" for n in rates["rows"]]}
    for name, title in (("flagged", "flagged"), ("fpr", "false positive rate"), ("fnr", "false negative rate")):
        pairs = zip(rates[f"{name}_pooled"], rates[name], strict=True)
        columns[f"{title}, pooled → now"] = [f"{percent(before)} → {percent(now)}" for before, now in pairs]
    return pd.DataFrame(columns)
