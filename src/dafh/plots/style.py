"""Colours, sizes, axis labels and legends that all charts share."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

# Six hues for groups, light for points and dark for lines over them. Neighbours differ in lightness as well as in hue,
# and blue and orange come first: readers who cannot tell red from green can tell these apart.
POINT_COLOURS = ("#74b3e8", "#ffc06a", "#5da449", "#dba9dd", "#a3a3a3", "#efe27a")
LINE_COLOURS = ("#1f5fb0", "#c2570c", "#1d5c0b", "#8b2f86", "#444444", "#8a7a00")
# Groups as bars. No green, no red and no grey: these are the colours of answers, and a green bar would look like a good
# group. Blue, yellow and violet stay apart for readers who cannot tell red from green.
BAR_COLOURS = ("#2166ac", "#ffd166", "#170f57", "#a6e3f2", "#5a1fe0", "#dd8abb")
VERDICT_COLOURS = {"satisfied": "#2f7d0e", "undecided": "#767676", "violated": "#c2310c"}
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
WIDTH = 460

SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+.2~f')"
"""Vega expression for labels of differences: a sign on all but zero, which Vega would write as +0."""


def scale(names: Sequence[str], values: Sequence[object]) -> alt.Scale:
    """Return one value, such as a colour or a shape, for each name; of very many names, they repeat."""
    return alt.Scale(domain=list(names), range=[values[i % len(values)] for i in range(len(names))])


def bar_colours(names: list[str]) -> alt.Scale:
    """Return one colour for each name, dark and light in turn, so that neighbouring bars differ in print as well."""
    return scale(names, BAR_COLOURS)


def text_on_bars(names: list[str]) -> alt.Scale:
    """Return the colour of text on each of the `bar_colours`: white on dark, black on light."""
    return scale(names, ("white", "black"))


def line_legend() -> alt.Legend:
    """Return a legend that shows lines long enough to see their dashes."""
    # In so many columns that it is no wider than the chart.
    columns = alt.ExprRef("width < 360 ? 1 : 3")
    return alt.Legend(orient="bottom", columns=columns, symbolType="stroke", symbolStrokeWidth=2, symbolSize=400)


def zero_line(channel: str) -> alt.Chart:
    """Draw the line at zero of the axis "x" or "y"."""
    at_zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(strokeDash=[5, 4], color="#888888")
    return at_zero.encode(**{channel: "zero:Q"})
