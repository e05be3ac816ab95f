"""Tables of an audit as readers see them, in a terminal and in a notebook."""

import numpy as np
import pandas as pd

from dafh.evaluation.losses import TITLES
from dafh.text import percent, points


def display_questions(questions: pd.DataFrame, level: float) -> pd.DataFrame:
    """Format a table of questions."""
    limits = zip(questions["low"], questions["high"], strict=True)
    answers = zip(questions["verdict"], questions["rows_needed"], strict=True)
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
            # An infinite number of rows means that the gap is zero: no number of rows can be named.
            "verdict": [f"{v} (about {n:,.0f} rows needed)" if np.isfinite(n) else v for v, n in answers],
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
    """Format the shares flagged and the kinds of error, each as "with the pooled classifier → now"."""
    columns = {"group": rates["group"], "rows": [f"{n:,.0f}" for n in rates["rows"]]}
    for name, title in (("flagged", "flagged"), ("fpr", "false positive rate"), ("fnr", "false negative rate")):
        pairs = zip(rates[f"{name}_pooled"], rates[name], strict=True)
        columns[f"{title}, pooled → now"] = [f"{percent(before)} → {percent(now)}" for before, now in pairs]
    return pd.DataFrame(columns)
