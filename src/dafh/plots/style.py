"""Colours and sizes that all charts share."""

import altair as alt

# Points and lines of a group share a hue; pairs differ in lightness too, for readers who see no colour.
POINT_COLOURS = ("#9fd356", "#ffb454", "#8ec5ff", "#e5a3e0", "#c9c9c9", "#f2e06b")
LINE_COLOURS = ("#2f7d0e", "#c2570c", "#1f5fb0", "#8b2f86", "#555555", "#8a7a00")
WIDTH = 460


def group_colours(names: list[str]) -> alt.Scale:
    """Give each name a colour of its own, as far as they last."""
    return alt.Scale(domain=names, range=[LINE_COLOURS[i % len(LINE_COLOURS)] for i in range(len(names))])
