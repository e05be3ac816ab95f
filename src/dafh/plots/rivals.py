"""Rivals side by side: how the worst named group is served, against how many people are harmed."""

import altair as alt
import numpy as np
import pandas as pd

from dafh.plots.style import LINE_COLOURS

_FAMILIES = {"rival": LINE_COLOURS[1], "DAFH": LINE_COLOURS[0], "plain model": LINE_COLOURS[4]}
# Labels of points further to the left would cover each other: most methods harm nobody, or few.
_LABELLED_FROM = 0.05
# Share of a panel's height that a label takes.
_TOO_CLOSE = 0.06


def harm_and_worst(points: pd.DataFrame) -> alt.FacetChart:
    """Draw the accuracy of the worst named group against the share of people in groups that are shown to be harmed.

    One panel for each data set and way of tuning. A line joins a method without guard to the same method with it.

    Parameters
    ----------
    points : data frame
        With columns dataset, tuning, name (of method and model), family ("rival", "DAFH" or "plain model"), guard ("no"
        or "yes"), worst and harmed, both as shares, and pooled, the worst accuracy of the pooled classifier.

    Examples
    --------
    >>> points = pd.DataFrame({"dataset": "bank", "tuning": "log-loss", "name": "ARL", "family": "rival",
    ...                        "guard": ["no", "yes"], "worst": [0.6, 0.7], "harmed": [0.4, 0.0], "pooled": 0.7})
    >>> chart = harm_and_worst(points)
    >>> chart.data["label"].tolist()
    ['ARL', '']
    """
    table = points.reset_index(drop=True).assign(label="")
    for _, panel in table.groupby(["dataset", "tuning"]):
        table.loc[panel.index, "label"] = _labels(panel)
    families = list(_FAMILIES)
    base = alt.Chart().encode(
        alt.X(
            "harmed:Q",
            title="people in groups shown to be harmed",
            axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
            scale=alt.Scale(domain=[-0.03, 1.03]),
        ),
        alt.Y("worst:Q", title="worst group's accuracy", axis=alt.Axis(format="%"), scale=alt.Scale(zero=False)),
    )
    colour = alt.Color(
        "family:N", title=None, scale=alt.Scale(domain=families, range=[_FAMILIES[name] for name in families])
    )
    shape = alt.Shape("guard:N", title="guard", scale=alt.Scale(domain=["no", "yes"], range=["cross", "circle"]))
    tooltip = ["name:N", "guard:N", alt.Tooltip("worst:Q", format=".1%"), alt.Tooltip("harmed:Q", format=".1%")]
    joined = base.mark_line(strokeWidth=0.7, opacity=0.5, color="#999999").encode(detail="name:N", order="guard:N")
    marks = base.mark_point(filled=True, size=45, opacity=0.8).encode(colour, shape, tooltip=tooltip)
    named = base.encode(alt.Text("label:N"))
    # On the right half, to the left of the point: labels must not run into the next panel.
    words = [
        named.transform_filter(f"datum.harmed {side} 0.5").mark_text(align=align, dx=shift, dy=-6, fontSize=8)
        for side, align, shift in (("<", "left", 5), (">=", "right", -5))
    ]
    level = alt.Chart().mark_rule(strokeDash=[4, 3], color="#555555").encode(alt.Y("mean(pooled):Q"))
    return (
        alt.layer(level, joined, marks, *words, data=table)
        .properties(width=210, height=180)
        .facet(
            column=alt.Column("dataset:N", title=None, sort=list(dict.fromkeys(points["dataset"]))),
            row=alt.Row("tuning:N", title="settings chosen by", sort=["log-loss", "antigone"]),
        )
        .resolve_scale(y="independent")
        .properties(title=alt.Title("Whom rivals harm", subtitle="dashed line: worst group with the pooled classifier"))
    )


def _labels(panel: pd.DataFrame) -> list[str]:
    """Names of the points of a panel that are labelled; points whose labels would cover each other share one."""
    worst, harmed = panel["worst"].to_numpy(float), panel["harmed"].to_numpy(float)
    names, close = panel["name"].to_list(), _TOO_CLOSE * float(worst.max() - worst.min())
    far = (panel["guard"] == "no").to_numpy() & (harmed >= _LABELLED_FROM)
    labels = [""] * len(panel)
    for side in (far & (harmed < 0.5), far & (harmed >= 0.5)):
        last = -1
        for place in sorted(np.flatnonzero(side).tolist(), key=lambda place: -worst[place]):
            if last >= 0 and worst[last] - worst[place] < close:
                labels[last] += f"; {names[place]}"
            else:
                labels[place], last = names[place], place
    return labels
