"""How the training of a network went, epoch by epoch."""

import altair as alt
import pandas as pd
from sklearn.pipeline import Pipeline

from dafh.classifiers.pipelines import final_classifier
from dafh.classifiers.protocols import GroupModel
from dafh.exceptions import InputError
from dafh.plots.style import LINE_COLOURS, WIDTH

CURVES = {"accuracy": "accuracy", "pr": "Pr without harm"}
"""The curves that `curve` can draw, and the titles of their axes.

Examples
--------
>>> list(CURVES)
['accuracy', 'pr']
"""


def convergence(model: GroupModel | Pipeline | pd.DataFrame) -> alt.VConcatChart:
    """Draw accuracy and Pr without harm over the epochs, on training rows and on held-out rows.

    Parameters
    ----------
    model : fitted DAFHClassifier whose groups are a network, a pipeline that ends in one, or its `history_`

    Examples
    --------
    >>> history = pd.DataFrame({"train_accuracy": [0.7, 0.8], "selection_accuracy": [0.6, 0.7]}, index=[1, 2])
    >>> history = history.assign(train_pr=0.9, selection_pr=0.8).rename_axis("epoch")
    >>> chart = convergence(history)
    >>> [panel.layer[0].encoding.y["title"] for panel in chart.vconcat]
    ['accuracy', 'Pr without harm']
    """
    final = final_classifier(model)
    history = final if isinstance(final, pd.DataFrame) else getattr(final, "history_", None)
    if history is None:
        raise InputError(
            "There is no history of training to draw: pass a fitted DAFHClassifier whose groups are a network, or its "
            "history_."
        )
    best = getattr(final, "best_epoch_", None)
    return alt.vconcat(*(curve(history.reset_index(), metric, best) for metric in CURVES))


def curve(history: pd.DataFrame, metric: str, best_epoch: int | None = None) -> alt.LayerChart:
    """Draw one of `CURVES` over the epochs, on training rows and on held-out rows.

    Parameters
    ----------
    history : data frame
        Like `history_` of a fitted DAFHClassifier, with a column epoch.
    metric : str
        A key of `CURVES`.
    best_epoch : int, optional
        The epoch that was selected, marked by a vertical line.

    Examples
    --------
    >>> history = pd.DataFrame({"epoch": [1, 2], "train_pr": [0.9, 0.95], "selection_pr": [0.8, 0.85]})
    >>> chart = curve(history, "pr", best_epoch=2)
    >>> chart.layer[0].data["rows"].unique().tolist()
    ['training rows', 'held-out rows']
    """
    if metric not in CURVES:
        raise InputError(f"metric must be one of {', '.join(map(repr, CURVES))}, got {metric!r}.")
    title, parts = CURVES[metric], {"training rows": f"train_{metric}", "held-out rows": f"selection_{metric}"}
    curves = pd.concat(
        [pd.DataFrame({"epoch": history["epoch"], "rows": name, "value": history[c]}) for name, c in parts.items()],
        ignore_index=True,
    )
    x_axis = alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(zero=False))
    legend = alt.Legend(orient="bottom", symbolType="stroke", symbolStrokeWidth=2, symbolSize=400)
    # Told apart by dashes as well as by colour; two legends with equal titles and domains are drawn as one.
    colour = alt.Scale(domain=list(parts), range=[LINE_COLOURS[0], LINE_COLOURS[1]])
    dash = alt.Scale(domain=list(parts), range=[[5, 3], [1, 0]])
    lines = (
        alt.Chart(curves)
        # A line alone is hard to hit with a pointer: every epoch gets a point, which shows its numbers.
        .mark_line(point=alt.OverlayMarkDef(size=20, filled=True))
        .encode(
            x_axis,
            alt.Y("value:Q", title=title, axis=alt.Axis(format=".1%"), scale=alt.Scale(zero=False)),
            alt.Color("rows:N", title=None, scale=colour, legend=legend),
            alt.StrokeDash("rows:N", title=None, scale=dash, legend=legend),
            tooltip=["epoch:Q", "rows:N", alt.Tooltip("value:Q", format=".2%", title=title)],
        )
    )
    layers = [lines]
    if best_epoch is not None:
        chosen = pd.DataFrame({"epoch": [best_epoch], "name": [f"selected: epoch {best_epoch}"]})
        late = best_epoch > curves["epoch"].mean()  # The text goes to the side that has more room.
        mark = alt.Chart(chosen).encode(x_axis, tooltip=["name:N"])
        layers.append(mark.mark_rule(strokeDash=[2, 3], color="#555555"))
        layers.append(
            # Above the frame, where no curve runs through it.
            mark.mark_text(align="right" if late else "left", dx=4 if late else -4, dy=-7, color="#333333").encode(
                alt.Text("name:N"), y=alt.value(0)
            )
        )
    return alt.layer(*layers).properties(width=WIDTH, height=170)
