"""Figures of the paper, from the results of a study."""

import altair as alt
import pandas as pd

from dafh.plots.style import LINE_COLOURS


def study_convergence(steps: pd.DataFrame, trivial: dict[str, float]) -> alt.ConcatChart:
    """Draw Pr without harm and accuracy after each step, mean and deviation over splits.

    Parameters
    ----------
    steps : data frame with split, step, part ("train" or "test"), pr and accuracy
    trivial : Pr and accuracy of the trivial partition, drawn as dashed lines
    """
    names = {"pr": "Pr without harm", "accuracy": "accuracy"}
    colour = alt.Color("part:N", title="rows", scale=alt.Scale(domain=["train", "test"], range=list(LINE_COLOURS[1:3])))
    panels = []
    for metric, title in names.items():
        table = steps.groupby(["step", "part"])[metric].agg(["mean", "std"]).reset_index()
        table = table.assign(low=table["mean"] - table["std"].fillna(0), high=table["mean"] + table["std"].fillna(0))
        y_axis = alt.Y("mean:Q", title=title, axis=alt.Axis(format="%"), scale=alt.Scale(zero=False))
        base = alt.Chart(table).encode(alt.X("step:Q", title="step"), color=colour)
        band = base.mark_errorband(opacity=0.2).encode(alt.Y("low:Q", title=title), alt.Y2("high:Q"))
        line = base.mark_line().encode(y_axis, tooltip=["part", "step", alt.Tooltip("mean:Q", format=".1%")])
        level = pd.DataFrame({"value": [trivial[metric]], "name": ["Trivial partition"]})
        rule = alt.Chart(level).mark_rule(strokeDash=[6, 4], color="#555555").encode(alt.Y("value:Q"), tooltip=["name"])
        panels.append(
            alt.layer(band, line, rule).properties(
                title=alt.Title(title, subtitle="dashed: Trivial partition, test rows"), width=320, height=220
            )
        )
    return alt.concat(*panels, columns=2)


def attribute_panels(shares: pd.DataFrame) -> alt.FacetChart:
    """Draw who is in each group of one model: share of race × sex × age.

    Parameters
    ----------
    shares : data frame with group, race_group, sex, age_group and share
    """
    table = shares[["group", "race_group", "sex", "age_group", "share"]].copy()
    table["who"] = table["race_group"] + ", " + table["sex"].str.lower()
    table["group"] = "group " + table["group"].astype(int).astype(str)
    bands = {"less than 25": "under 25", "25 - 45": "25 to 45", "greater than 45": "over 45"}
    table["age_group"] = table["age_group"].map(bands)
    return (
        alt.Chart(table)
        .mark_bar()
        .encode(
            alt.X("age_group:N", sort=list(bands.values()), title="age", axis=alt.Axis(labelAngle=0)),
            alt.Y("share:Q", axis=alt.Axis(format="%"), title="share of the group"),
            alt.Color("group:N", title=None, scale=alt.Scale(range=list(LINE_COLOURS))),
            alt.XOffset("group:N"),
            tooltip=["group", "who", "age_group", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=170, height=200)
        .facet(alt.Column("who:N", title="Who is in the groups that DAFH finds on Arrest"))
    )
