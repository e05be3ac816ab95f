"""The charts of a page: specifications for Vega-Lite, as JSON that is safe inside a page."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from dafh import plots
from dafh.evaluation.losses import LOSS_NAMES

# More bars than this are no chart; the table behind it has all values.
MOST_BARS = 40
# Columns of a scorecard that are drawn; its table has all.
_MOST_SCORED = 6
# Columns with fewer points, on average, do not change what anybody is told.
_SMALLEST_IMPORTANCE = 0.01


def make_charts(summary: dict[str, Any]) -> dict[str, Markup]:
    """Specifications of all charts that the summary has data for, as JSON that is safe inside a page."""
    charts: dict[str, Any] = {}
    changed = summary["verdict"]["status"] != "unchanged"  # A chart of dots at zero says nothing.
    losses = [loss["name"] for loss in summary["losses"] or []]
    if summary["questions"] and changed:
        asked = pd.DataFrame(summary["questions"])
        for loss in losses:
            charts[f"gains_{loss}"] = plots.gains(asked, loss=loss)
            if (asked["kind"] == "envy").any():
                charts[f"envy_{loss}"] = plots.envy(asked, loss=loss)
        charts["matrix"] = plots.preference_matrix(pd.DataFrame(summary["cells"]))
    if summary["rates"] and changed:
        for rate in plots.RATE_TITLES:
            charts[f"rate_{rate}"] = plots.decisions(pd.DataFrame(summary["rates"]), rate)
    if summary["named"] and changed:
        named = pd.DataFrame(summary["named"]["questions"])
        # Intersections are in the table. Beside single attributes their intervals would rule the axis.
        alone = named["single"] & (named["n"] >= summary["named"]["smallest"])
        large = named[alone | (named["verdict"] == "violated")]
        for loss in losses:
            if loss in set(large["loss"]):  # Of very many questions, only the worst are here.
                charts[f"named_{loss}"] = plots.named_groups(large, loss=loss)
    if summary["composition"]:
        charts["composition"] = plots.composition(pd.DataFrame(summary["composition"]).head(MOST_BARS))
    for number, column in enumerate(drawn_columns(summary)):
        charts[f"scorecard_{number}"] = plots.scorecard_chart(pd.DataFrame(column["bins"]), column["name"])
    if summary["training"]:
        history, best = pd.DataFrame(summary["training"]["history"]), summary["training"]["best_epoch"]
        for metric in plots.CURVES:
            charts[f"curve_{metric}"] = plots.curve(history, metric, best)
    return {name: _as_json(chart.properties(width="container").to_dict()) for name, chart in charts.items()}


def losses_drawn(charts: Mapping[str, Markup], name: str) -> list[str]:
    """Losses for which there is a chart of this name."""
    return [loss for loss in LOSS_NAMES if f"{name}_{loss}" in charts]


def drawn_columns(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Columns of the scorecard that are drawn: the most important ones, as far as they add any points."""
    columns = summary["scorecard"]["columns"] if summary["scorecard"] else []
    return [column for column in columns if column["importance"] >= _SMALLEST_IMPORTANCE][:_MOST_SCORED]


def _as_json(value: object) -> Markup:
    """JSON without any character that HTML gives a meaning to: a value cannot close the script it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
