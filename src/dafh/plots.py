"""Charts, made from result objects; Vega-Lite, so that the same chart serves notebooks, pages and image files."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

# Points and lines of a group share a hue; pairs differ in lightness too, for readers who see no colour.
_POINT_COLOURS = ("#9fd356", "#ffb454", "#8ec5ff", "#e5a3e0", "#c9c9c9", "#f2e06b")
_LINE_COLOURS = ("#2f7d0e", "#c2570c", "#1f5fb0", "#8b2f86", "#555555", "#8a7a00")
_GRID = 240
_SIZE = 250


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


def convergence(steps: pd.DataFrame, trivial: dict[str, float]) -> alt.ConcatChart:
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


def composition(shares: pd.DataFrame) -> alt.FacetChart:
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
