"""Colours, sizes and axis labels that all charts share."""

import altair as alt

# Six hues for groups, light for points and dark for lines over them. Neighbours differ in lightness as well as in hue,
# and blue and orange come first: readers who cannot tell red from green can tell these apart.
POINT_COLOURS = ("#74b3e8", "#ffc06a", "#5da449", "#dba9dd", "#a3a3a3", "#efe27a")
LINE_COLOURS = ("#1f5fb0", "#c2570c", "#1d5c0b", "#8b2f86", "#444444", "#8a7a00")
# Groups as bars. No green, no red and no grey: these are the colours of answers, and a green bar would look like a good
# group. Blue, yellow and violet stay apart for readers who cannot tell red from green.
BAR_COLOURS = ("#2166ac", "#ffd166", "#170f57", "#a6e3f2", "#5a1fe0", "#dd8abb")
VERDICT_COLOURS = {"satisfied": "#2f7d0e", "undecided": "#767676", "violated": "#c2310c"}
WIDTH = 460

SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+.2~f')"
"""Vega expression for labels of differences: a sign on all but zero, which Vega would write as +0."""


def bar_colours(names: list[str]) -> alt.Scale:
    """Return one colour for each name, dark and light in turn, so that neighbouring bars differ in print as well."""
    return alt.Scale(domain=names, range=[BAR_COLOURS[i % len(BAR_COLOURS)] for i in range(len(names))])


def text_on_bars(names: list[str]) -> alt.Scale:
    """Return the colour of text on each of the `bar_colours`: white on dark, black on light."""
    return alt.Scale(domain=names, range=[("white", "black")[i % 2] for i in range(len(names))])
