"""The charts of a page: which are drawn, from which rows of the summary."""

from typing import Any

import altair as alt
import pandas as pd

from dafh import plots
from dafh.evaluation.losses import TITLES
from dafh.monitor.notices import has_changed

# More are no chart; the table behind it has all values.
_MOST_LEVELS = 15
# Columns of a scorecard that are drawn; its table has all.
_MOST_SCORED = 6
# Columns with fewer points, on average, do not change what anybody is told.
_SMALLEST_IMPORTANCE = 0.01
# More lines than this cannot be told apart.
_MOST_LINES = 6

Charts = dict[str, alt.LayerChart]


# ---- an audit ----


def make_charts(summary: dict[str, Any]) -> Charts:
    """All charts that the summary has data for."""
    charts: Charts = {}
    changed = bool(summary["figures"]) and not summary["figures"]["unchanged"]  # A chart of dots at zero says nothing.
    losses = [loss["name"] for loss in summary["losses"] or []]
    if summary["failed"]:
        charts["failed"] = plots.levels(pd.DataFrame(summary["failed"][: 1 + _MOST_LEVELS]))
    if summary["questions"] and changed:
        asked = pd.DataFrame(summary["questions"])
        for loss in losses:
            charts[f"gains_{loss}"] = plots.gains(
                asked[asked["loss"] == loss].sort_values("gap", ascending=False, kind="stable")
            )
        charts["matrix"] = plots.preference_matrix(pd.DataFrame(summary["cells"]))
    if summary["named"] and changed:
        named = pd.DataFrame(summary["named"]["questions"])
        # Intersections are in the table. Beside single attributes their intervals would rule the axis.
        drawn = named[named["single"] | (named["verdict"] == "violated")]
        for loss in losses:
            if loss in set(drawn["loss"]):  # Of very many questions, only the worst are here.
                charts[f"named_{loss}"] = plots.named_groups(drawn[drawn["loss"] == loss])
    for number, column in enumerate(drawn_columns(summary)):
        charts[f"scorecard_{number}"] = plots.scorecard_chart(pd.DataFrame(column["bins"]), column["name"])
    return charts


def drawn_columns(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Columns of the scorecard that are drawn: the most important ones, as far as they add any points."""
    columns = summary["scorecard"]["columns"] if summary["scorecard"] else []
    return [column for column in columns if column["importance"] >= _SMALLEST_IMPORTANCE][:_MOST_SCORED]


# ---- a change of model ----


def make_comparison_charts(summary: dict[str, Any]) -> Charts:
    """Groups by change: those found without a name, and named ones."""
    drawn = {kind: pd.DataFrame(rows) for kind, rows in summary["drawn"].items() if rows}
    return {kind: plots.named_groups(rows, over="over the old model") for kind, rows in drawn.items()}


# ---- a model in use ----


def make_watch_charts(summary: dict[str, Any]) -> Charts:
    """All charts of the page about a model in use; of many subgroups and shares, those with the most evidence."""
    main, several = summary["losses"][0], len(summary["losses"]) > 1
    questions = pd.DataFrame(summary["questions"])
    questions["name"] = [
        f"group {row['group']}"
        + (f", {row['part']}" if row["part"] else "")
        + (f": {TITLES[row['loss']]}" if several else "")
        for row in summary["questions"]
    ]
    last = questions[questions["batch"] == questions["batch"].max()]
    worst = last.sort_values("harm_evidence", ascending=False, kind="stable")["name"].head(_MOST_LINES)
    lines = questions.loc[questions["name"].isin(worst), ["batch", "name", "harm_evidence", "harm_needed"]]
    charts: Charts = {"evidence": plots.evidence_over_time(lines)}
    whole = questions[(questions["part"] == "") & (questions["loss"] == main["name"])]
    limits = whole[["gain", "low", "high"]].astype(float)
    # Limits that contradict the gain would be drawn as a band around nothing.
    changed = [has_changed(*line) for line in limits.itertuples(index=False)]
    whole = whole.assign(**{name: limits[name].mask(changed) for name in ("low", "high")})
    for group, gains in whole.groupby("group"):
        gains = gains[["batch", "gain", "low", "high", "in_batch"]].astype(float)
        charts[f"gain_{group}"] = plots.gain_over_time(gains, main["unit"])
    shares = pd.DataFrame(summary["shares"])
    if not len(shares) or not shares["in_batch"].notna().any():
        return charts
    of_groups = shares["name"].str.startswith("rows of group ")
    if of_groups.any():
        charts["groups"] = plots.shares_over_time(shares[of_groups])
    now = shares[(shares["batch"] == shares["batch"].max()) & ~of_groups & (shares["drift_row"] > 0)]
    if len(now):
        most = now.sort_values("evidence", ascending=False, kind="stable")["name"].head(_MOST_LINES)
        charts["inputs"] = plots.shares_over_time(shares[shares["name"].isin(most)])
    return charts
