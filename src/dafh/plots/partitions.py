"""Two features, the groups, and the border of each group's classifier."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.plots.style import LINE_COLOURS, POINT_COLOURS

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
        .encode(x_axis, y_axis, colours(POINT_COLOURS), shape, tooltip=["group", "label", first, second])
    )
    borders = _decision_borders(model, [first, second], limits, len(group_names))
    lines = alt.Chart(borders).mark_circle(size=7, opacity=1).encode(x_axis, y_axis, colours(LINE_COLOURS))
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
