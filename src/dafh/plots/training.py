"""How a fit went, epoch by epoch."""

from typing import Any

import altair as alt
import pandas as pd

from dafh.plots.style import WIDTH, group_colours

CURVES = {"accuracy": "accuracy", "pr": "Pr without harm"}
"""What `curve` draws, and what it is called."""


def convergence(model: Any) -> alt.VConcatChart:
    """Draw how accuracy and Pr without harm developed in training, on rows that trained and on rows held out.

    Parameters
    ----------
    model : fitted DAFHClassifier, or its `history_`
    """
    history = getattr(model, "history_", model).reset_index()
    best = getattr(model, "best_epoch_", None)
    return alt.vconcat(*(curve(history, metric, best) for metric in CURVES))


def curve(history: pd.DataFrame, metric: str, best_epoch: int | None = None) -> alt.LayerChart:
    """Draw one of `CURVES` over the epochs, on rows that trained and on rows held out.

    Parameters
    ----------
    history : data frame
        Like `history_` of a fitted DAFHClassifier, with the column epoch.
    metric : str
    best_epoch : int, optional
        Marked by a line.
    """
    title, parts = CURVES[metric], {"training rows": f"train_{metric}", "rows held out": f"selection_{metric}"}
    curves = pd.concat(
        [pd.DataFrame({"epoch": history["epoch"], "rows": name, "value": history[c]}) for name, c in parts.items()]
    )
    encoded = alt.Chart(curves).encode(
        alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1, format="d")),
        alt.Y("value:Q", title=title, axis=alt.Axis(format=".1%"), scale=alt.Scale(zero=False)),
        alt.Color("rows:N", title=None, scale=group_colours(list(parts)), legend=alt.Legend(orient="bottom")),
        alt.StrokeDash("rows:N", title=None, legend=None),
        tooltip=["epoch:Q", "rows:N", alt.Tooltip("value:Q", format=".2%", title=title)],
    )
    layers = [encoded.mark_line(), encoded.mark_point(size=18, filled=True)]
    if best_epoch is not None:
        chosen = pd.DataFrame({"epoch": [best_epoch], "name": [f"chosen: epoch {best_epoch}"]})
        layers.append(alt.Chart(chosen).mark_rule(strokeDash=[4, 4]).encode(x="epoch:Q", tooltip=["name:N"]))
    return alt.layer(*layers).properties(width=WIDTH, height=170)
