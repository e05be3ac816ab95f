"""Two features, the groups, and the decision border of each group's classifier."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.classifiers.protocols import Classifier
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.plots.style import LINE_COLOURS, POINT_COLOURS, SHAPES, scale

# Points along each side of the grid on which borders are found: about one per pixel.
_GRID = 240
_SIZE = 250
# A plus and a dot for the two labels of most data; with more labels than shapes, they repeat.
_SHAPES = ("cross", *(shape for shape in SHAPES if shape != "cross"))


def _panel(
    model: Classifier, X: pd.DataFrame, y: ArrayLike, groups: NDArray[np.intp], *, title: str, subtitle: str = ""
) -> alt.LayerChart:
    """Draw rows with two features, coloured by group, and the decision border of each group's classifier.

    `model` either has `predict_all`, or is a single classifier with `predict`; `X` has two columns.
    """
    # The chart calls the features x and y: a feature called "group", or "income.2020", which Vega reads as a path into
    # nested data, would not be drawn.
    features = X.set_axis(["x", "y"], axis=1)
    first, second = (str(name) for name in X.columns)
    group_names = [f"group {k}" for k in range(int(groups.max()) + 1)]
    points = features.assign(
        group=[group_names[k] for k in groups], label=[f"label {label}" for label in np.asarray(y)]
    )
    limits = [(float(features[name].min()) - 0.1, float(features[name].max()) + 0.1) for name in features]
    x_axis = alt.X("x:Q", title=first, scale=alt.Scale(domain=limits[0], nice=False), axis=alt.Axis(grid=False))
    y_axis = alt.Y("y:Q", title=second, scale=alt.Scale(domain=limits[1], nice=False), axis=alt.Axis(grid=False))
    legend = alt.Legend(orient="bottom", title=None, columns=2)
    shape = alt.Shape("label:N", scale=alt.Scale(range=list(_SHAPES)), legend=legend)
    rows = (
        alt.Chart(points)
        .mark_point(size=16, opacity=0.8, filled=True)
        .encode(
            x_axis,
            y_axis,
            alt.Color("group:N", scale=scale(group_names, POINT_COLOURS), legend=legend),
            shape,
            tooltip=["group:N", "label:N", alt.Tooltip("x:Q", title=first), alt.Tooltip("y:Q", title=second)],
        )
    )
    borders = _decision_borders(model, X.columns, limits, group_names)
    dark = alt.Color("group:N", scale=scale(group_names, LINE_COLOURS), legend=None)
    lines = alt.Chart(borders).mark_circle(size=7, opacity=1).encode(x_axis, y_axis, dark)
    # Points and borders of a group have different shades, so that the borders stand out.
    return (
        alt.layer(rows, lines)
        .resolve_scale(color="independent")
        .properties(title=alt.Title(title, subtitle=subtitle), width=_SIZE, height=_SIZE)
    )


def _decision_borders(
    model: Classifier, names: pd.Index, limits: list[tuple[float, float]], group_names: list[str]
) -> pd.DataFrame:
    """Points of a fine grid at which the label of a classifier changes.

    This needs labels only, and therefore works for classifiers of any kind and borders of any shape.
    """
    axes = [np.linspace(low, high, _GRID) for low, high in limits]
    across, up = np.meshgrid(*axes)
    grid = pd.DataFrame({"x": across.ravel(), "y": up.ravel()})
    rows = grid.set_axis(names, axis=1)  # The model knows the features by their own names.
    labels = model.predict_all(rows) if hasattr(model, "predict_all") else model.predict(rows)[:, None]
    borders = []
    for k, name in enumerate(group_names):
        plane = labels[:, k].reshape(_GRID, _GRID)
        changes = np.zeros_like(plane, dtype=bool)
        changes[:, 1:] |= plane[:, 1:] != plane[:, :-1]
        changes[1:, :] |= plane[1:, :] != plane[:-1, :]
        borders.append(grid[changes.ravel()].assign(group=name))
    return pd.concat(borders, ignore_index=True)


def synthetic_panels(experiment: Any, *, n_points: int = 700) -> alt.ConcatChart:
    """Draw the four panels of the paper's synthetic figure.

    Parameters
    ----------
    experiment : object
        With the test rows `X` (two features) and `y`, and `results`: for each method its name `method`, the fitted
        `model`, the `groups` of the test rows and their preference `matrix`.
    n_points : int, default=700
        Number of rows to draw; more would hide each other.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dafh.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(200, random_state=0)
    >>> model, groups = LogisticRegression().fit(data.X, data.y), np.zeros(200, int)
    >>> labels = model.predict(data.X)
    >>> matrix = PreferenceMatrix.from_predictions(data.y, labels[:, None], groups, labels)
    >>> result = SimpleNamespace(method="Pooled", model=model, groups=groups, matrix=matrix)
    >>> chart = synthetic_panels(SimpleNamespace(X=data.X, y=data.y, results=[result]))
    >>> chart.concat[0].title["text"]
    'Pooled'
    """
    X, y = experiment.X.iloc[:n_points], experiment.y[:n_points]
    panels = [
        _panel(
            result.model,
            X,
            y,
            result.groups[:n_points],
            title=result.method,
            subtitle=_figures(result.matrix),
        )
        for result in experiment.results
    ]
    # Each panel keeps its own groups: group 0 of one method has nothing to do with group 0 of another.
    return alt.concat(*panels, columns=4).resolve_scale(color="independent", shape="independent")


def _figures(matrix: PreferenceMatrix) -> str:
    if len(matrix.own) == 1:  # With a single classifier there is no other to prefer, so Pr would say nothing.
        return f"accuracy {matrix.accuracy:.1%}"
    return f"Pr without harm {matrix.pr_without_harm:.1%}, accuracy {matrix.accuracy:.1%}"
