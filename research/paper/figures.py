"""Figures of the paper, from stored results."""

import altair as alt
import pandas as pd

# Dark and light in turn, and no red beside green: groups can be told apart in print and without colour vision.
_BARS = ("#2166ac", "#ffd166")
_BLUE, _ORANGE = "#1f5fb0", "#c2570c"
_TITLES = {"pr": "Pr without harm", "accuracy": "accuracy"}
_RANGES = {"pr": [0.4, 1.0], "accuracy": [0.4, 0.9]}


def convergence(steps: pd.DataFrame, trivial: dict[str, float]) -> alt.ConcatChart:
    """Draw Pr without harm and accuracy after each 1,024 rows: mean and standard deviation over splits.

    `steps` has a column `update`, the title of a reading. The trivial partition's values are dashed lines.

    Examples
    --------
    >>> steps = pd.DataFrame({"update": "row", "step": 1, "part": "test", "pr": [0.8, 0.9], "accuracy": 0.7})
    >>> chart = convergence(steps, {"pr": 0.75, "accuracy": 0.6})
    >>> round(float(chart.concat[0].layer[1].data["mean"].item()), 3)
    0.85
    """
    x = alt.X("step:Q", title="steps of 1,024 rows")
    colour = alt.Color("part:N", title="rows", scale=alt.Scale(domain=["train", "test"], range=[_ORANGE, _BLUE]))
    dash = alt.StrokeDash("part:N", title="rows", scale=alt.Scale(domain=["train", "test"], range=[[2, 2], [1, 0]]))
    updates = list(dict.fromkeys(steps["update"]))
    panels = []
    for metric, title in _TITLES.items():
        scale = alt.Scale(domain=_RANGES[metric])
        y = alt.Y("mean:Q", title=title, axis=alt.Axis(format="%"), scale=scale)
        for update in updates:
            rows = steps[steps["update"] == update]
            table = rows.groupby(["step", "part"])[metric].agg(["mean", "std"]).reset_index().fillna({"std": 0.0})
            table = table.assign(low=table["mean"] - table["std"], high=table["mean"] + table["std"])
            base = alt.Chart(table).encode(x, color=colour)
            band = base.mark_errorband(opacity=0.2, clip=True).encode(
                alt.Y("low:Q", title=title, scale=scale), alt.Y2("high:Q")
            )
            level = pd.DataFrame({"value": [trivial[metric]]})
            rule = alt.Chart(level).mark_rule(strokeDash=[8, 4], color="#555555").encode(alt.Y("value:Q"))
            panel = alt.layer(band, base.mark_line().encode(y, dash), rule)
            panels.append(panel.properties(title=update, width=220, height=170))
    return alt.concat(*panels, columns=len(updates))


def composition(shares: pd.DataFrame) -> alt.FacetChart:
    """Draw who is in each of two groups of Arrest: shares by race, sex and age, one row of panels for each method."""
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
