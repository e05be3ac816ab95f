"""Charts, made from result objects; Vega-Lite, so that the same chart serves notebooks, pages and image files.

`preference_matrix`, `gains`, `envy`, `named_groups` and `composition` take an `AuditResult` or the table behind it,
`convergence` a fitted model or its `history_`; all return an Altair chart that a notebook shows and `.save("x.svg")`
writes. `synthetic_panels`, `study_convergence` and `attribute_panels` are the paper's figures.
"""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

# Points and lines of a group share a hue; pairs differ in lightness too, for readers who see no colour.
_POINT_COLOURS = ("#9fd356", "#ffb454", "#8ec5ff", "#e5a3e0", "#c9c9c9", "#f2e06b")
_LINE_COLOURS = ("#2f7d0e", "#c2570c", "#1f5fb0", "#8b2f86", "#555555", "#8a7a00")
# Verdicts differ in shape as well as in colour.
_VERDICTS = {
    "satisfied": ("#2f7d0e", "circle"),
    "undecided": ("#767676", "diamond"),
    "violated": ("#c2310c", "triangle-down"),
}
CURVES = {"accuracy": "accuracy", "pr": "Pr without harm"}
"""What `curve` draws, and what it is called."""
_GRID = 240
_SIZE = 250
_WIDTH = 460


def partition_panel(
    model: Any, X: pd.DataFrame, y: ArrayLike, groups: NDArray[np.intp], *, title: str, subtitle: str = ""
) -> alt.LayerChart:
    """Draw rows with two features, coloured by group, and the border of each group's classifier.

    Parameters
    ----------
    model : fitted classifier
        With `predict_all`, or with `predict` only for a single classifier.
    X : data frame with two columns
    y, groups : arrays with one entry per row
    """
    first, second = X.columns
    group_names = [str(k) for k in range(int(groups.max()) + 1)]
    points = X.assign(group=groups.astype(str), label=np.asarray(y).astype(str))
    limits = [(float(X[name].min()) - 0.1, float(X[name].max()) + 0.1) for name in (first, second)]
    x_axis = alt.X(f"{first}:Q", scale=alt.Scale(domain=limits[0], nice=False), axis=alt.Axis(grid=False))
    y_axis = alt.Y(f"{second}:Q", scale=alt.Scale(domain=limits[1], nice=False), axis=alt.Axis(grid=False))

    def colours(palette: tuple[str, ...]) -> alt.Color:
        return alt.Color("group:N", scale=alt.Scale(domain=group_names, range=list(palette)), legend=None)

    shape = alt.Shape("label:N", scale=alt.Scale(range=["cross", "circle"]), legend=None)
    rows = (
        alt.Chart(points)
        .mark_point(size=16, opacity=0.75, filled=True)
        .encode(x_axis, y_axis, colours(_POINT_COLOURS), shape, tooltip=["group", "label", first, second])
    )
    borders = _decision_borders(model, [first, second], limits, len(group_names))
    lines = alt.Chart(borders).mark_circle(size=7, opacity=1).encode(x_axis, y_axis, colours(_LINE_COLOURS))
    heading = alt.Title(title, subtitle=subtitle)
    return (
        alt.layer(rows, lines).resolve_scale(color="independent").properties(title=heading, width=_SIZE, height=_SIZE)
    )


def _decision_borders(model: Any, names: list[str], limits: list[tuple[float, float]], n_groups: int) -> pd.DataFrame:
    """Points of a fine grid between which a classifier's label changes: any shape of border, from labels alone."""
    axes = [np.linspace(low, high, _GRID) for low, high in limits]
    across, up = np.meshgrid(*axes)
    grid = pd.DataFrame({names[0]: across.ravel(), names[1]: up.ravel()})
    labels = model.predict_all(grid) if hasattr(model, "predict_all") else model.predict(grid)[:, None]
    found = []
    for k in range(n_groups):
        plane = labels[:, k].reshape(_GRID, _GRID)
        changes = np.zeros_like(plane, dtype=bool)
        changes[:, 1:] |= plane[:, 1:] != plane[:, :-1]
        changes[1:, :] |= plane[1:, :] != plane[:-1, :]
        found.append(grid[changes.ravel()].assign(group=str(k)))
    return pd.concat(found, ignore_index=True)


def side_by_side(panels: list[Any], *, columns: int = 4) -> alt.ConcatChart:
    """Put panels into one chart."""
    return alt.concat(*panels, columns=columns).resolve_scale(color="independent", shape="independent")


def synthetic_panels(experiment: Any, *, n_points: int = 700) -> alt.ConcatChart:
    """Draw the four panels of the paper's synthetic figure from a `SyntheticExperiment`."""
    X, y = experiment.X.iloc[:n_points], experiment.y[:n_points]
    panels = [
        partition_panel(
            result.model,
            X,
            y,
            result.groups[:n_points],
            title=result.method,
            subtitle=_figures(result.matrix),
        )
        for result in experiment.results
    ]
    return side_by_side(panels)


def _figures(matrix: Any) -> str:
    if len(matrix.own) == 1:  # Pr says nothing where there is no choice.
        return f"Acc {matrix.accuracy:.1%}"
    return f"Pr {matrix.pr_without_harm:.1%}, Acc {matrix.accuracy:.1%}"


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
    return alt.layer(tiles, frames, numbers, intervals).properties(height=56 * cells["group"].nunique(), width=_WIDTH)


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
            alt.Color("group:N", title=None, scale=_group_colours(names), legend=alt.Legend(orient="bottom")),
            tooltip=[
                alt.Tooltip("named_group:N", title="who"),
                "group:N",
                alt.Tooltip("share:Q", format=".1%"),
                alt.Tooltip("weight:Q", format=",.0f", title="rows"),
            ],
        )
        .properties(height=22 * shares["named_group"].nunique(), width=_WIDTH)
    )


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
        alt.Color("rows:N", title=None, scale=_group_colours(list(parts)), legend=alt.Legend(orient="bottom")),
        alt.StrokeDash("rows:N", title=None, legend=None),
        tooltip=["epoch:Q", "rows:N", alt.Tooltip("value:Q", format=".2%", title=title)],
    )
    layers = [encoded.mark_line(), encoded.mark_point(size=18, filled=True)]
    if best_epoch is not None:
        chosen = pd.DataFrame({"epoch": [best_epoch], "name": [f"chosen: epoch {best_epoch}"]})
        layers.append(alt.Chart(chosen).mark_rule(strokeDash=[4, 4]).encode(x="epoch:Q", tooltip=["name:N"]))
    return alt.layer(*layers).properties(width=_WIDTH, height=170)


def _questions(result: Any) -> pd.DataFrame:
    return result.questions if hasattr(result, "questions") else result


def _intervals(table: pd.DataFrame, scale: str = "{:.1f}") -> list[str]:
    pairs = zip(table["low"].astype(float), table["high"].astype(float), strict=True)
    return [f"{scale.format(100 * low)} to {scale.format(100 * high)}" for low, high in pairs]


def _group_colours(names: list[str]) -> alt.Scale:
    return alt.Scale(domain=names, range=[_LINE_COLOURS[i % len(_LINE_COLOURS)] for i in range(len(names))])


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
    return alt.layer(zero, lines, dots).properties(height=26 * table["name"].nunique(), width=_WIDTH)


def study_convergence(steps: pd.DataFrame, trivial: dict[str, float]) -> alt.ConcatChart:
    """Draw Pr without harm and accuracy after each step, mean and deviation over splits.

    Parameters
    ----------
    steps : data frame with split, step, part ("train" or "test"), pr and accuracy
    trivial : Pr and accuracy of the trivial partition, drawn as dashed lines
    """
    names = {"pr": "Pr without harm", "accuracy": "accuracy"}
    colour = alt.Color(
        "part:N", title="rows", scale=alt.Scale(domain=["train", "test"], range=list(_LINE_COLOURS[1:3]))
    )
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
            alt.Color("group:N", title=None, scale=alt.Scale(range=list(_LINE_COLOURS))),
            alt.XOffset("group:N"),
            tooltip=["group", "who", "age_group", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=170, height=200)
        .facet(alt.Column("who:N", title="Who is in the groups that DAFH finds on Arrest"))
    )
