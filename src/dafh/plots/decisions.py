"""Charts of how decisions change: how often each group is flagged, and which errors are made."""

from typing import Literal

import altair as alt
import pandas as pd

from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.evaluation.result import AuditResult
from dafh.exceptions import InputError
from dafh.plots.style import WIDTH
from dafh.text import clipped

RateName = Literal["flagged", "fpr", "fnr"]
RATE_TITLES: dict[RateName, str] = {
    "flagged": "share flagged",
    "fpr": "false positive rate",
    "fnr": "false negative rate",
}
"""What each rate is called."""
# Shape as well as colour, for readers who cannot tell the colours apart.
_SIDES = {"pooled classifier": ("#767676", "diamond"), "this model": ("#1f5fb0", "circle")}
_MOST_LINES = 30


def named_rates(result: AuditResult) -> pd.DataFrame | None:
    """Return the rates of an audit, with a first column that names learned groups as such; None without two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import audit
    >>> y = np.tile([0, 1], 200)
    >>> named_rates(audit(y, y, np.repeat([0, 1], 200), pooled=1 - y))["name"].tolist()
    ['all rows', 'group 0', 'group 1']
    """
    if result.rates is None:
        return None
    n_groups = len(result.matrix.sizes)
    names = [
        f"group {name}" if 0 < place <= n_groups else str(name) for place, name in enumerate(result.rates["group"])
    ]
    return result.rates.assign(name=names)[["name", *result.rates.columns]]


def decisions(result: AuditResult | pd.DataFrame, rate: RateName = "flagged") -> alt.LayerChart:
    """Draw one rate of every group, with the pooled classifier and with the classifiers that serve.

    Parameters
    ----------
    result : AuditResult of two classes, or the table that `named_rates` returns
    rate : {"flagged", "fpr", "fnr"}, default="flagged"
        Share of rows for which the positive label is predicted, false positive rate, or false negative rate.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import audit
    >>> y, groups = np.tile([0, 1], 200), np.repeat([0, 1], 200)
    >>> own = np.column_stack([np.where(groups == k, y, 1 - y) for k in (0, 1)])
    >>> chart = decisions(audit(y, own, groups, pooled=np.ones(400, int)), "fpr")
    >>> chart.layer[0].data[["name", "before", "now"]].to_numpy().tolist()
    [['all rows', 1.0, 0.0], ['group 0', 1.0, 0.0], ['group 1', 1.0, 0.0]]
    """
    table = named_rates(result) if isinstance(result, AuditResult) else result
    if table is None:
        raise InputError("There are no rates to draw: a label can only be flagged if there are two.")
    # All rows and learned groups whatever their size; named groups of a few rows have rates of 0 or 100%.
    learned = table["name"].str.match(r"all rows$|group ")
    table = table[learned | (table["rows"] >= SMALLEST_SHOWN)].head(_MOST_LINES)
    names = [clipped(name) for name in table["name"]]
    pairs = pd.DataFrame(
        {"name": names, "before": table[f"{rate}_pooled"].astype(float), "now": table[rate].astype(float)}
    ).assign(rows=table["rows"].to_numpy())
    sides = pairs.melt(["name", "rows"], ["before", "now"], "side", "value")
    sides["side"] = sides["side"].map({"before": "pooled classifier", "now": "this model"})
    x_title = RATE_TITLES[rate]
    axis = alt.Axis(format="%", tickCount=4)
    # All names, also of groups without rows: Vega drops what has no value, and the reader would miss a group.
    y = alt.Y("name:N", title=None, scale=alt.Scale(domain=list(dict.fromkeys(names))), axis=alt.Axis(labelLimit=150))
    lines = alt.Chart(pairs).mark_rule(strokeWidth=2, color="#999999")
    lines = lines.encode(alt.X("before:Q", title=x_title, axis=axis), alt.X2("now:Q"), y)
    colours, shapes = ([look[i] for look in _SIDES.values()] for i in (0, 1))
    legend = alt.Legend(orient="bottom")
    dots = alt.Chart(sides).mark_point(size=80, filled=True, opacity=1)
    dots = dots.encode(
        alt.X("value:Q", title=x_title, axis=axis),
        y,
        alt.Color("side:N", title=None, scale=alt.Scale(domain=list(_SIDES), range=colours), legend=legend),
        alt.Shape("side:N", title=None, scale=alt.Scale(domain=list(_SIDES), range=shapes), legend=legend),
        tooltip=[
            alt.Tooltip("name:N", title="who"),
            alt.Tooltip("side:N", title="by"),
            alt.Tooltip("value:Q", format=".1%", title=RATE_TITLES[rate]),
            alt.Tooltip("rows:Q", format=",.0f"),
        ],
    )
    return alt.layer(lines, dots).properties(height=26 * len(names), width=WIDTH)
