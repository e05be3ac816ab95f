"""Charts of an audit: who is served how well, by whom, and how sure that is."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dafh.plots.style import WIDTH, group_colours

# Verdicts differ in shape as well as in colour.
_VERDICTS = {
    "satisfied": ("#2f7d0e", "circle"),
    "undecided": ("#767676", "diamond"),
    "violated": ("#c2310c", "triangle-down"),
}


def preference_matrix(result: Any) -> alt.LayerChart:
    """Draw the error of every classifier on every group; colour says how it compares with the group's own.

    Parameters
    ----------
    result : AuditResult, or what its `cells` returns
    """
    cells = result.cells() if hasattr(result, "cells") else result
    cells = cells.assign(
        group="group " + cells["group"].astype(str),
        classifier=[name if name == "pooled" else f"model {name}" for name in cells["classifier"].astype(str)],
        label=[f"{100 * error:.1f} %" if np.isfinite(error) else "–" for error in cells["error"].astype(float)],
        interval=_intervals(cells),
        points=100 * cells["gap"].astype(float),
        serves=np.where(cells["own"], "serves the group", ""),
    )
    # Light at both ends, so that the numbers stay readable; never a scale of mere rounding.
    limit = max(float(np.nanmax(np.abs(cells["points"]), initial=0.0)), 0.5)
    colour = alt.Color(
        "points:Q",
        title="error against own, in points",
        scale=alt.Scale(domain=[-limit, 0, limit], range=["#f0a35e", "#f4f4f0", "#9cc4e4"], interpolate="rgb"),
        legend=alt.Legend(format="+.1~f", orient="bottom", gradientLength=180, titleLimit=240),
    )
    base = alt.Chart(cells).encode(
        alt.X(
            "classifier:N",
            title=None,
            sort=None,
            axis=alt.Axis(orient="top", labelAngle=0, labelLimit=110, labelFlush=False),
        ),
        alt.Y("group:N", title=None, sort=None),
        tooltip=[
            "group:N",
            "classifier:N",
            alt.Tooltip("error:Q", format=".2%"),
            "interval:N",
            alt.Tooltip("points:Q", format="+.2f", title="points against own"),
            alt.Tooltip("rows:Q", format=","),
            alt.Tooltip("serves:N", title="own"),
        ],
    )
    tiles = base.mark_rect(stroke="#bbbbbb", strokeWidth=0.5).encode(colour)
    # Above its neighbours, which would cover half of the frame.
    frames = base.transform_filter("datum.own").mark_rect(fill="transparent", stroke="#1f5fb0", strokeWidth=3)
    numbers = base.mark_text(color="#111111", fontSize=13, dy=-6).encode(alt.Text("label:N"))
    intervals = base.mark_text(color="#333333", fontSize=10, dy=9).encode(alt.Text("interval:N"))
    return alt.layer(tiles, frames, numbers, intervals).properties(height=56 * cells["group"].nunique(), width=WIDTH)


def gains(result: Any) -> alt.LayerChart:
    """Draw what each group gains over the pooled classifier, with intervals; left of zero is harm.

    Parameters
    ----------
    result : AuditResult, or a table of questions as its `to_frame` returns
    """
    asked = _questions(result)
    asked = asked[asked["kind"] == "rationality"]
    return _gap_chart(
        asked, "group " + asked["group"].astype(str), ["gain over the pooled model,", "in points of error"]
    )


def envy(result: Any) -> alt.LayerChart:
    """Draw how much better each group fares with its own classifier than with another group's; left of zero is envy.

    Parameters
    ----------
    result : AuditResult, or a table of questions as its `to_frame` returns
    """
    asked = _questions(result)
    asked = asked[asked["kind"] == "envy"]
    names = "group " + asked["group"].astype(str) + ", model " + asked["rival"].astype(str)
    return _gap_chart(asked, names, ["own model against the other,", "in points of error"])


def named_groups(result: Any, *, n_groups: int = 20) -> alt.LayerChart:
    """Draw what named groups gain over the pooled classifier: those with the most evidence of harm first.

    Parameters
    ----------
    result : AuditResult with sensitive features, or its table `named`
    n_groups : int
        Groups to draw.
    """
    asked = result.named if hasattr(result, "named") else result
    asked = asked.sort_values("p", kind="stable").head(n_groups)
    names = asked["group"].astype(str).map(lambda name: name if len(name) <= 60 else name[:59] + "…")
    return _gap_chart(asked, names, ["gain over the pooled model,", "in points of error"])


def composition(result: Any) -> alt.Chart:
    """Draw who is in which group: for every value of every attribute, the share of its people in each group.

    Parameters
    ----------
    result : AuditResult with sensitive features, or its table `composition`
    """
    table = result.composition if hasattr(result, "composition") else result
    shares = table.melt(["named_group", "weight"], var_name="group", value_name="share")
    shares["group"] = "group " + shares["group"].str.removeprefix("in_")
    names = list(dict.fromkeys(shares["group"]))
    return (
        alt.Chart(shares)
        .mark_bar()
        .encode(
            alt.X("share:Q", stack="normalize", title="share in each group", axis=alt.Axis(format="%", tickCount=5)),
            alt.Y("named_group:N", sort=None, title=None),
            alt.Color("group:N", title=None, scale=group_colours(names), legend=alt.Legend(orient="bottom")),
            tooltip=[
                alt.Tooltip("named_group:N", title="who"),
                "group:N",
                alt.Tooltip("share:Q", format=".1%"),
                alt.Tooltip("weight:Q", format=",.0f", title="rows"),
            ],
        )
        .properties(height=22 * shares["named_group"].nunique(), width=WIDTH)
    )


def _questions(result: Any) -> pd.DataFrame:
    return result.questions if hasattr(result, "questions") else result


def _intervals(table: pd.DataFrame, scale: str = "{:.1f}") -> list[str]:
    pairs = zip(table["low"].astype(float), table["high"].astype(float), strict=True)
    return [f"{scale.format(100 * low)} to {scale.format(100 * high)}" for low, high in pairs]


def _gap_chart(asked: pd.DataFrame, names: Any, title: list[str]) -> alt.LayerChart:
    """Draw gaps as points with intervals around them, one line each, and a line at zero."""
    table = asked.assign(
        name=list(names),
        points=100 * asked["gap"].astype(float),
        from_=100 * asked["low"].astype(float),
        to=100 * asked["high"].astype(float),
        interval=_intervals(asked, "{:+.2f}"),
    )
    verdicts = list(_VERDICTS)
    colour = alt.Color(
        "verdict:N",
        title=None,
        scale=alt.Scale(domain=verdicts, range=[_VERDICTS[v][0] for v in verdicts]),
        legend=alt.Legend(orient="bottom"),
    )
    shape = alt.Shape(
        "verdict:N", title=None, scale=alt.Scale(domain=verdicts, range=[_VERDICTS[v][1] for v in verdicts])
    )
    base = alt.Chart(table).encode(
        y=alt.Y("name:N", sort=None, title=None),
        tooltip=[
            alt.Tooltip("name:N", title="who"),
            alt.Tooltip("points:Q", format="+.2f", title="gap"),
            "interval:N",
            alt.Tooltip("n:Q", format=",.0f", title="rows"),
            alt.Tooltip("p_corrected:Q", format=".3f", title="corrected p"),
            "verdict:N",
        ],
    )
    x = alt.X("from_:Q", title=title, axis=alt.Axis(format="+.2~f"))
    lines = base.mark_rule(strokeWidth=2).encode(x, alt.X2("to:Q"), color=colour)
    dots = base.mark_point(size=90, filled=True, opacity=1).encode(alt.X("points:Q", title=title), colour, shape)
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(strokeDash=[5, 4], color="#888888").encode(x="zero:Q")
    return alt.layer(zero, lines, dots).properties(height=26 * table["name"].nunique(), width=WIDTH)
