"""Two features, the groups, and the decision border of each group's classifier."""

from collections.abc import Sequence
from typing import Any, Protocol

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dafh.classifiers.protocols import Classifier
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.plots.style import LINE_COLOURS, POINT_COLOURS

# Points along each side of the grid on which borders are found: about one per pixel.
_GRID = 240
_SIZE = 250
# One for each label; with more labels they repeat.
_SHAPES = ["cross", "circle", "square", "triangle-up", "diamond", "triangle-down"]


class MethodOutcome(Protocol):
    """What a panel shows of one method: the demo's `SyntheticResult` has it."""

    @property
    def method(self) -> str:
        """Name of the method."""

    @property
    def model(self) -> Classifier:
        """The fitted model."""

    @property
    def groups(self) -> NDArray[np.intp]:
        """Group of each test row."""

    @property
    def matrix(self) -> PreferenceMatrix:
        """Its metrics on the test rows."""


class Experiment(Protocol):
    """Test rows and the outcomes of several methods on them: the demo's `SyntheticExperiment`."""

    @property
    def X(self) -> pd.DataFrame:  # noqa: N802
        """Test rows with two features."""

    @property
    def y(self) -> NDArray[Any]:
        """Their labels."""

    @property
    def results(self) -> Sequence[MethodOutcome]:
        """One outcome for each method."""


def partition_panel(
    model: Classifier, X: pd.DataFrame, y: ArrayLike, groups: NDArray[np.intp], *, title: str, subtitle: str = ""
) -> alt.LayerChart:
    """Draw rows with two features, coloured by group, and the decision border of each group's classifier.

    Parameters
    ----------
    model : fitted classifier
        Either with `predict_all`, or a single classifier with `predict`.
    X : data frame with two columns
    y, groups : arrays with one entry per row
    title, subtitle : str

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"a": [-1.0, -0.5, 0.5, 1.0], "b": [0.0, 1.0, 0.0, 1.0]})
    >>> y = np.array([0, 0, 1, 1])
    >>> panel = partition_panel(LogisticRegression().fit(X, y), X, y, np.zeros(4, int), title="Pooled")
    >>> rows, border = panel.layer
    >>> len(rows.data), bool(border.data["x"].between(-0.5, 0.5).all())
    (4, True)
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

    def colours(palette: tuple[str, ...], legend: alt.Legend | None) -> alt.Color:
        shades = [palette[k % len(palette)] for k in range(len(group_names))]
        return alt.Color("group:N", scale=alt.Scale(domain=group_names, range=shades), legend=legend)

    legend = alt.Legend(orient="bottom", title=None, columns=2)
    shape = alt.Shape("label:N", scale=alt.Scale(range=_SHAPES), legend=legend)
    rows = (
        alt.Chart(points)
        .mark_point(size=16, opacity=0.8, filled=True)
        .encode(
            x_axis,
            y_axis,
            colours(POINT_COLOURS, legend),
            shape,
            tooltip=["group:N", "label:N", alt.Tooltip("x:Q", title=first), alt.Tooltip("y:Q", title=second)],
        )
    )
    borders = _decision_borders(model, X.columns, limits, group_names)
    lines = alt.Chart(borders).mark_circle(size=7, opacity=1).encode(x_axis, y_axis, colours(LINE_COLOURS, None))
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
    found = []
    for k, name in enumerate(group_names):
        plane = labels[:, k].reshape(_GRID, _GRID)
        changes = np.zeros_like(plane, dtype=bool)
        changes[:, 1:] |= plane[:, 1:] != plane[:, :-1]
        changes[1:, :] |= plane[1:, :] != plane[:-1, :]
        found.append(grid[changes.ravel()].assign(group=name))
    return pd.concat(found, ignore_index=True)


def side_by_side(panels: Sequence[alt.LayerChart], *, columns: int = 4) -> alt.ConcatChart:
    """Put panels into one chart.

    Examples
    --------
    >>> point = alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x")
    >>> chart = side_by_side([point, point, point], columns=2)
    >>> len(chart.concat), chart.columns
    (3, 2)
    """
    # Each panel keeps its own groups: group 0 of one method has nothing to do with group 0 of another.
    return alt.concat(*panels, columns=columns).resolve_scale(color="independent", shape="independent")


def synthetic_panels(experiment: Experiment, *, n_points: int = 700) -> alt.ConcatChart:
    """Draw the four panels of the paper's synthetic figure.

    Parameters
    ----------
    experiment : SyntheticExperiment
        What `dafh.cli.synthetic.run_synthetic` returns.
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


def _figures(matrix: PreferenceMatrix) -> str:
    if len(matrix.own) == 1:  # With a single classifier there is no other to prefer, so Pr would say nothing.
        return f"accuracy {matrix.accuracy:.1%}"
    return f"Pr without harm {matrix.pr_without_harm:.1%}, accuracy {matrix.accuracy:.1%}"
