"""The charts of a page: specifications for Vega-Lite, as JSON that is safe inside a page."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from dafh import plots
from dafh.evaluation.losses import LOSS_NAMES
from dafh.evaluation.named_groups import SMALLEST_SHOWN

# More bars than this are no chart; the table behind it has all values.
MOST_BARS = 40
MOST_RATES = 30
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
            charts[f"rate_{rate}"] = plots.decisions(_most_changed(summary), rate)
    if summary["named"] and changed:
        named = pd.DataFrame(summary["named"]["questions"])
        # Intersections are in the table. Beside single attributes their intervals would rule the axis.
        alone = named["single"] & (named["n"] >= summary["named"]["smallest"])
        large = named[alone | (named["verdict"] == "violated")]
        for loss in losses:
            if loss in set(large["loss"]):  # Of very many questions, only the worst are here.
                charts[f"named_{loss}"] = plots.named_groups(large, loss=loss)
    if summary["composition"]:
        charts["composition"] = plots.composition(_most_unlike(pd.DataFrame(summary["composition"])))
    for number, column in enumerate(drawn_columns(summary)):
        charts[f"scorecard_{number}"] = plots.scorecard_chart(pd.DataFrame(column["bins"]), column["name"])
    if summary["training"]:
        history, best = pd.DataFrame(summary["training"]["history"]), summary["training"]["best_epoch"]
        for metric in plots.CURVES:
            charts[f"curve_{metric}"] = plots.curve(history, metric, best)
    return {name: as_json(chart) for name, chart in charts.items()}


def _most_changed(summary: dict[str, Any]) -> pd.DataFrame:
    """Rates to draw: all rows, the groups of the model, and of very many named groups those that change most."""
    rates = pd.DataFrame(summary["rates"])
    n_first = 1 + len(summary["serving"])
    named = rates.iloc[n_first:]
    named = named[named["rows"] >= SMALLEST_SHOWN]
    pairs = [named[rate].astype(float) - named[f"{rate}_pooled"].astype(float) for rate in plots.RATE_TITLES]
    change = pd.concat(pairs, axis=1).abs().max(axis=1)
    kept = change.sort_values(ascending=False, kind="stable").index[: max(MOST_RATES - n_first, 0)]
    return pd.concat([rates.iloc[:n_first], named.loc[kept.sort_values()]])


def _most_unlike(composition: pd.DataFrame) -> pd.DataFrame:
    """Values of attributes to draw: of very many, those whose rows are divided least like all rows."""
    if len(composition) <= MOST_BARS:
        return composition
    large = composition[composition["weight"] >= SMALLEST_SHOWN]
    shares = large.filter(regex="^in_").astype(float)
    overall = shares.mul(large["weight"], axis=0).sum() / large["weight"].sum()
    unlike = (shares - overall).abs().max(axis=1)
    return large.loc[unlike.sort_values(ascending=False, kind="stable").index[:MOST_BARS].sort_values()]


def losses_drawn(charts: Mapping[str, Markup], name: str) -> list[str]:
    """Losses for which there is a chart of this name."""
    return [loss for loss in LOSS_NAMES if f"{name}_{loss}" in charts]


def drawn_columns(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Columns of the scorecard that are drawn: the most important ones, as far as they add any points."""
    columns = summary["scorecard"]["columns"] if summary["scorecard"] else []
    return [column for column in columns if column["importance"] >= _SMALLEST_IMPORTANCE][:_MOST_SCORED]


def as_json(chart: Any) -> Markup:
    """JSON without any character that HTML gives a meaning to: a value cannot close the script it stands in."""
    # Not checked against the schema of Vega-Lite, which takes a third of the time: the charts are all ours, and tested.
    specification = chart.properties(width="container").to_dict(validate=False)
    text = json.dumps(specification, ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
