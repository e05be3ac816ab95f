"""Figures of the paper, from the results of a study."""

import altair as alt
import pandas as pd

from dafh.plots.style import LINE_COLOURS, bar_colours


def study_convergence(steps: pd.DataFrame, trivial: dict[str, float]) -> alt.ConcatChart:
    """Draw Pr without harm and accuracy after each step: mean and standard deviation over splits.

    Parameters
    ----------
    steps : data frame
        With columns split, step, part ("train" or "test"), pr and accuracy.
    trivial : dict
        pr and accuracy of the trivial partition, drawn as dashed lines.

    Examples
    --------
    >>> steps = pd.DataFrame({"split": [0, 1], "step": 1, "part": "test", "pr": [0.8, 0.9], "accuracy": 0.7})
    >>> chart = study_convergence(steps, {"pr": 0.75, "accuracy": 0.6})
    >>> band, line, trivial = chart.concat[0].layer
    >>> round(float(line.data["mean"].item()), 3), trivial.data["value"].item()
    (0.85, 0.75)
    """
    names = {"pr": "Pr without harm", "accuracy": "accuracy"}
    parts = ["train", "test"]
    legend = alt.Legend(symbolType="stroke", symbolStrokeWidth=2, symbolSize=300, symbolOpacity=1)
    shades = alt.Scale(domain=parts, range=[LINE_COLOURS[1], LINE_COLOURS[0]])
    colour = alt.Color("part:N", title="rows", scale=shades, legend=legend)
    # Dashes tell the curves apart without colour; those of the trivial partition are longer.
    dashes = alt.Scale(domain=parts, range=[[2, 2], [1, 0]])
    dash = alt.StrokeDash("part:N", title="rows", scale=dashes, legend=legend)
    panels = []
    for metric, title in names.items():
        table = steps.groupby(["step", "part"])[metric].agg(["mean", "std"]).reset_index()
        # A single split has no deviation.
        table = table.assign(low=table["mean"] - table["std"].fillna(0), high=table["mean"] + table["std"].fillna(0))
        y_axis = alt.Y("mean:Q", title=title, axis=alt.Axis(format="%"), scale=alt.Scale(zero=False))
        base = alt.Chart(table).encode(alt.X("step:Q", title="training step"), color=colour)
        band = base.mark_errorband(opacity=0.2).encode(alt.Y("low:Q", title=title), alt.Y2("high:Q"))
        line = base.mark_line().encode(y_axis, dash, tooltip=["part", "step", alt.Tooltip("mean:Q", format=".1%")])
        level = pd.DataFrame({"value": [trivial[metric]], "name": ["Trivial partition"]})
        rule = alt.Chart(level).mark_rule(strokeDash=[8, 4], color="#555555").encode(alt.Y("value:Q"), tooltip=["name"])
        panels.append(
            alt.layer(band, line, rule).properties(
                title=alt.Title(title, subtitle="dashed line: trivial partition, test rows"), width=320, height=220
            )
        )
    return alt.concat(*panels, columns=2)


def attribute_panels(shares: pd.DataFrame) -> alt.FacetChart:
    """Draw who is in each group of one model of Arrest: shares by race, sex and age.

    Parameters
    ----------
    shares : data frame
        With columns group, race_group, sex, age_group and share.

    Examples
    --------
    >>> shares = pd.DataFrame({"group": [0, 1], "race_group": "other", "sex": "Male", "age_group": "25 - 45"})
    >>> chart = attribute_panels(shares.assign(share=[0.75, 0.5]))
    >>> chart.data[["who", "group"]].to_numpy().tolist()
    [['other, male', 'group 0'], ['other, male', 'group 1']]
    """
    table = shares[["group", "race_group", "sex", "age_group", "share"]].copy()
    table["who"] = table["race_group"] + ", " + table["sex"].str.lower()
    table["number"] = table["group"].astype(int).astype(str)
    table["group"] = "group " + table["number"]
    bands = {"less than 25": "under 25", "25 - 45": "25 to 45", "greater than 45": "over 45"}
    table["age_group"] = table["age_group"].map(bands)
    names = sorted(table["group"].unique(), key=lambda name: int(name.removeprefix("group ")))
    base = alt.Chart().encode(
        alt.X("age_group:N", sort=list(bands.values()), title="age", axis=alt.Axis(labelAngle=0)),
        alt.Y("share:Q", axis=alt.Axis(format="%"), title="share of the group's rows"),
        alt.XOffset("group:N", sort=names),
        tooltip=["group:N", "who:N", "age_group:N", alt.Tooltip("share:Q", format=".1%")],
    )
    bars = base.mark_bar().encode(alt.Color("group:N", title=None, scale=bar_colours(names)))
    numbers = base.mark_text(dy=-6, fontSize=9).encode(alt.Text("number:N"))  # Readable without the colours.
    return (
        alt.layer(bars, numbers, data=table)
        .properties(width=170, height=200)
        .facet(column=alt.Column("who:N", title="Who is in the groups that DAFH finds on Arrest"))
    )
