"""The points of a scorecard, column by column."""

import json
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dafh.exceptions import InputError
from dafh.linear.scorecard import Scorecard
from dafh.plots.style import LINE_COLOURS, SHAPES, SIGNED, WIDTH, scale, zero_line
from dafh.text import clipped, percent

# More categories than this are no chart; the most frequent ones are drawn.
_MOST_CATEGORIES = 15
# Marks on the axis of a column of numbers: more would overlap on a narrow screen.
_MOST_TICKS = 5
# Of so few bins of numbers, each has room for its name.
_FEW_BINS = 4
# Axes reach at least as far as this on both sides: fewer points change a probability by 2.5 percentage points at most.
_SMALLEST_POINTS = 0.1
_FLAGS = ("False", "True", "missing")
_HEIGHT, _SHARE_HEIGHT = 150, 26
_SHARE = "#8a93a0"
# Points above zero are blue and those below orange; the side of the line at zero says the same.
_SIGN = alt.condition("datum.points < 0", alt.value(LINE_COLOURS[1]), alt.value(LINE_COLOURS[0]))


def scorecard_bins(scorecard: Scorecard) -> pd.DataFrame:
    """Return all that `scorecard_chart` draws as a table: one row for each column, class and bin with training rows.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 30, 40, None] * 25, "job": ["cook", "clerk"] * 50})
    >>> bins = scorecard_bins(Scorecard().fit(table, table["job"] == "cook"))
    >>> bins[["column", "bin", "end", "rows"]].to_numpy().tolist()
    [['age', 'up to 20', '20', 0.25], ['age', '20 to 30', '30', 0.25], ['age', 'above 30', '', 0.25],
     ['age', 'missing', '', 0.25], ['job', 'clerk', '', 0.5], ['job', 'cook', '', 0.5]]
    """
    two = len(scorecard.classes_) == 2
    rows = []
    for column, points, share in zip(scorecard.binning_.columns, scorecard.points_, scorecard.shares_, strict=True):
        ends = list(map(column.write, column.cuts))
        # What is true or false has no order that a reader would look for.
        flag = column.kind == "flag" and len(ends) == 1
        for code in np.flatnonzero(share > 0):
            for output, value in enumerate(points[code]):
                rows.append(
                    {
                        "column": column.name,
                        "category": column.is_category or flag,
                        "label": clipped(scorecard.classes_[1 if two else output], 30),
                        "bin": _FLAGS[code] if flag else column.words(int(code)),
                        # The last bin of numbers has no end, and the one for gaps no place among them.
                        "end": ends[code] if code < len(ends) and not flag else "",
                        "missing": not column.is_category and code == column.n_bins - 1,
                        "rows": float(share[code]),
                        "points": float(value),
                    }
                )
    return pd.DataFrame(rows)


def scorecard_chart(scorecard: Scorecard | pd.DataFrame, column: str) -> alt.LayerChart:
    """Draw the points that a column adds to the score: bins of numbers and dates in order, categories by points.

    Grey bars below the bins of numbers show how many training rows each has; tooltips have the shares as numbers.

    Parameters
    ----------
    scorecard : fitted Scorecard, or its `scorecard_bins`
    column : str
        Name of a column.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 30, 40, None] * 25, "job": ["cook", "clerk"] * 50})
    >>> chart = scorecard_chart(Scorecard().fit(table, table["job"] == "cook"), "job")
    >>> chart.data["bin"].tolist()
    ['cook', 'clerk']
    """
    bins = scorecard_bins(scorecard) if isinstance(scorecard, Scorecard) else scorecard
    bins = bins[bins["column"] == column]
    if not len(bins):
        raise InputError(f"The scorecard has no column {column!r} to draw.")
    # Bins without training rows are not drawn: none of these shares is zero.
    bins = bins.assign(share=[percent(share) if share >= 0.0005 else "under 0.1%" for share in bins["rows"]])
    draw = _categories if bins["category"].iloc[0] else _numbers
    return draw(bins, len(set(bins["label"])) > 1)


def _tooltip(several: bool) -> list[Any]:
    entries = [
        alt.Tooltip("bin:N", title="value"),
        alt.Tooltip("points:Q", format="+.3f"),
        alt.Tooltip("share:N", title="share of rows"),
    ]
    return [alt.Tooltip("label:N", title="class"), *entries] if several else entries


def _by_class(bins: pd.DataFrame) -> tuple[alt.Color, alt.Shape]:
    """Tell several classes apart by colour and shape."""
    labels, legend = list(dict.fromkeys(bins["label"])), alt.Legend(orient="bottom", columns=3)
    return (
        alt.Color("label:N", title=None, scale=scale(labels, LINE_COLOURS), legend=legend),
        alt.Shape("label:N", title=None, scale=scale(labels, SHAPES), legend=legend),
    )


def _categories(bins: pd.DataFrame, several: bool) -> alt.LayerChart:
    """One line for each category, the most points first."""
    size = bins.groupby("bin")["rows"].first().nlargest(_MOST_CATEGORIES)
    kept = bins[bins["bin"].isin(size.index)].sort_values("points", ascending=False, kind="stable")
    x = alt.X(
        "points:Q",
        title="points",
        axis=alt.Axis(labelExpr=SIGNED, tickCount=5),
        scale=alt.Scale(domain=_reach(kept), nice=True),
    )
    base = alt.Chart(kept).encode(
        alt.Y("bin:N", title=None, sort=list(dict.fromkeys(kept["bin"])), axis=alt.Axis(labelLimit=150)),
        tooltip=_tooltip(several),
    )
    if several:
        marks = base.mark_point(size=70, filled=True, opacity=1).encode(x, *_by_class(bins))
    else:
        marks = base.mark_bar().encode(x, color=_SIGN)
    chart = alt.layer(marks, zero_line("x"), data=kept)
    return chart.properties(width=WIDTH, height=22 * kept["bin"].nunique())


def _numbers(bins: pd.DataFrame, several: bool) -> alt.LayerChart:
    """Bins side by side, each as wide as the others: they hold about the same number of rows, wherever values crowd."""
    order = {name: place for place, name in enumerate(dict.fromkeys(bins["bin"]))}
    place = bins["bin"].map(order).astype(float)
    # Gaps stand apart: they are neither below nor above any number.
    start = place + np.where(bins["missing"], _apart(len(order)), 0.0)
    tallest = float(bins["rows"].max())
    bins = bins.assign(
        start=start, stop=start + 1, middle=start + 0.5, top=_HEIGHT - _SHARE_HEIGHT * bins["rows"] / tallest
    )
    x = alt.X(
        "start:Q", title=None, axis=_axis(bins), scale=alt.Scale(domain=[0, float(bins["stop"].max())], nice=False)
    )
    # The lowest part of the chart belongs to the bars of shares: points end above it.
    y = alt.Y(
        "points:Q",
        title="points",
        axis=alt.Axis(labelExpr=SIGNED, tickCount=5),
        scale=alt.Scale(domain=_reach(bins), range=[_HEIGHT - _SHARE_HEIGHT - 6, 0], nice=True),
    )
    base = alt.Chart(bins).encode(tooltip=_tooltip(several))
    # Shares are the same for all classes.
    shares = (
        alt.Chart(bins[bins["label"] == bins["label"].iloc[0]])
        .mark_rect(color=_SHARE, opacity=0.45)
        .encode(
            x, alt.X2("stop:Q"), alt.Y("top:Q", scale=None, axis=None), alt.Y2(value=_HEIGHT), tooltip=_tooltip(several)
        )
    )
    if several:
        middle = alt.X("middle:Q", title=None, axis=_axis(bins))
        colour, shape = _by_class(bins)
        dots = base.mark_point(size=22, filled=True, opacity=1).encode(middle, y, colour, shape)
        lines = base.mark_line(interpolate="step", strokeWidth=1).encode(middle, y, colour, detail="missing:N")
        marks = [lines, dots]
    else:
        marks = [base.mark_rect().encode(x, alt.X2("stop:Q"), y, alt.Y2(datum=0), color=_SIGN)]
    return alt.layer(shares, *marks, zero_line("y")).properties(width=WIDTH, height=_HEIGHT, data=bins)


def _reach(bins: pd.DataFrame) -> list[float]:
    """Smallest and largest points of an axis."""
    return [min(float(bins["points"].min()), -_SMALLEST_POINTS), max(float(bins["points"].max()), _SMALLEST_POINTS)]


def _apart(n_bins: int) -> float:
    """Distance of the bin for gaps from the others, in bins: about the same in every chart."""
    return max(n_bins / 25, 0.2)


def _axis(bins: pd.DataFrame) -> alt.Axis:
    """Marks at some ends of bins, with their values, and a word below the bin for gaps."""
    once = bins.drop_duplicates("bin")
    ends = once[once["end"] != ""]
    if len(once) <= _FEW_BINS:
        names = dict(zip(once["middle"], once["bin"], strict=True))
    else:
        chosen = ends.iloc[np.unique(np.linspace(0, len(ends) - 1, min(_MOST_TICKS, len(ends))).round().astype(int))]
        names = dict(zip(chosen["stop"], chosen["end"], strict=True))
    gaps = bins[bins["missing"]]
    if len(gaps) and len(once) > _FEW_BINS:
        # Its name needs the room of an eighth of the chart.
        names = {place: name for place, name in names.items() if place < gaps["start"].iloc[0] - len(once) / 8}
        names[float(gaps["middle"].iloc[0])] = "missing"
    # A lookup by position: ends are numbers and dates as written, never text of the data.
    table = json.dumps({f"{place:g}": name for place, name in names.items()})
    return alt.Axis(
        values=list(names),
        labelExpr=f"{table}[format(datum.value, '~g')]",
        labelFlush=False,
        grid=False,
        labelOverlap=True,
    )
