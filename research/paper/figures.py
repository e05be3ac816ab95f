"""Figures of the paper and of the rivals, from stored results."""

import altair as alt
import numpy as np
import pandas as pd

# Dark and light in turn, and no red beside green: groups can be told apart in print and without colour vision.
_BARS = ("#2166ac", "#ffd166")
_BLUE, _ORANGE, _GREY = "#1f5fb0", "#c2570c", "#444444"
_FAMILIES = {"rival": _ORANGE, "DAFH": _BLUE, "plain model": _GREY}
# Labels of points further to the left would cover each other: most methods harm nobody, or few.
_LABELLED_FROM = 0.05
# Share of a panel's height that a label takes.
_TOO_CLOSE = 0.06


def convergence(steps: pd.DataFrame, trivial: dict[str, float]) -> alt.ConcatChart:
    """Draw Pr without harm and accuracy after each 1,024 rows: mean and standard deviation over splits.

    Parameters
    ----------
    steps : data frame
        With columns split, update, step, part ("train" or "test"), pr and accuracy.
    trivial : dict
        pr and accuracy of the trivial partition, drawn as dashed lines.

    Examples
    --------
    >>> steps = pd.DataFrame({"update": "row", "step": 1, "part": "test", "pr": [0.8, 0.9], "accuracy": 0.7})
    >>> chart = convergence(steps, {"pr": 0.75, "accuracy": 0.6})
    >>> round(float(chart.concat[0].layer[1].data["mean"].item()), 3)
    0.85
    """
    names = {"pr": "Pr without harm", "accuracy": "accuracy"}
    readings = {"row": "one update per row", "batch_mean": "batch means", "batch_sum": "batch sums"}
    titles = [title for name, title in readings.items() if name in set(steps["update"])]
    x = alt.X("step:Q", title="steps of 1,024 rows")
    colour = alt.Color("part:N", title="rows", scale=alt.Scale(domain=["train", "test"], range=[_ORANGE, _BLUE]))
    dash = alt.StrokeDash("part:N", title="rows", scale=alt.Scale(domain=["train", "test"], range=[[2, 2], [1, 0]]))
    panels = []
    for metric, title in names.items():
        for update in titles:
            mine = steps[steps["update"].map(readings) == update]
            table = mine.groupby(["step", "part"])[metric].agg(["mean", "std"]).reset_index().fillna({"std": 0.0})
            table = table.assign(low=table["mean"] - table["std"], high=table["mean"] + table["std"])
            scale = alt.Scale(domain=[0.4, 1.0] if metric == "pr" else [0.4, 0.9])
            y = alt.Y("mean:Q", title=title, axis=alt.Axis(format="%"), scale=scale)
            base = alt.Chart(table).encode(x, color=colour)
            band = base.mark_errorband(opacity=0.2).encode(alt.Y("low:Q", title=title, scale=scale), alt.Y2("high:Q"))
            level = pd.DataFrame({"value": [trivial[metric]]})
            rule = alt.Chart(level).mark_rule(strokeDash=[8, 4], color="#555555").encode(alt.Y("value:Q"))
            panel = alt.layer(band, base.mark_line().encode(y, dash), rule)
            panels.append(panel.properties(title=update, width=220, height=170))
    return alt.concat(*panels, columns=len(titles))


def composition(shares: pd.DataFrame) -> alt.FacetChart:
    """Draw who is in each of two groups of Arrest: shares by race, sex and age, one row of panels for each method.

    Parameters
    ----------
    shares : data frame
        With columns way, group, race_group, sex, age_group and share.
    """
    bands = {"less than 25": "under 25", "25 - 45": "25 to 45", "greater than 45": "over 45"}
    table = shares.assign(
        who=shares["race_group"] + ", " + shares["sex"].str.lower(),
        group="group " + shares["group"].astype(int).astype(str),
        age=shares["age_group"].map(bands),
    )
    bars = (
        alt.Chart(table)
        .mark_bar()
        .encode(
            alt.X("age:N", sort=list(bands.values()), title="age", axis=alt.Axis(labelAngle=0)),
            alt.Y("share:Q", axis=alt.Axis(format="%"), title="share of the group's rows"),
            alt.XOffset("group:N"),
            alt.Color("group:N", title=None, scale=alt.Scale(range=list(_BARS))),
            tooltip=["group:N", "who:N", "age:N", alt.Tooltip("share:Q", format=".1%")],
        )
    )
    return bars.properties(width=170, height=150).facet(
        column=alt.Column("who:N", title="Who is in the groups on Arrest, split 0"), row=alt.Row("way:N", title=None)
    )


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
    >>> harm_and_worst(points).data["label"].tolist()
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
    colour = alt.Color("family:N", title=None, scale=alt.Scale(domain=families, range=[_FAMILIES[f] for f in families]))
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
