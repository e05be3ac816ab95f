"""Charts of an audit: how well each classifier serves each group, how certain that is, and how decisions change."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import altair as alt
import numpy as np
import pandas as pd

from dafh.evaluation.losses import ERROR, Loss, LossName
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.evaluation.result import AuditResult
from dafh.exceptions import InputError
from dafh.plots.style import SIGNED, VERDICT_COLOURS, WIDTH, bar_colours, scale, text_on_bars, zero_line
from dafh.text import clipped, percent

RateName = Literal["flagged", "fpr", "fnr"]
RATE_TITLES: dict[RateName, str] = {
    "flagged": "share flagged",
    "fpr": "false positive rate",
    "fnr": "false negative rate",
}
"""What each rate is called."""

# Verdicts and classifiers differ in shape as well as in colour, for readers who cannot tell the colours apart.
_VERDICT_SHAPES = ("circle", "diamond", "triangle-down")
_SIDES = ("pooled classifier", "this model")
_SIDE_COLOURS, _SIDE_SHAPES = ("#767676", "#1f5fb0"), ("diamond", "circle")
_LEGEND_WORDS = "datum.label == 'undecided' ? 'undecided (not enough data)' : datum.label"
# A named group of two attributes, or a group and another's classifier, takes two lines: in one, it would be cut off or
# leave no room for the chart on a narrow screen.
_TWO_LINES = r"split(replace(datum.label, / (&|against) /g, ' $1\n'), '\n')"
# Narrower segments of a bar have no room for the number of their group.
_NARROWEST_LABELLED = 0.05
_MOST_RATES = 30


def preference_matrix(result: AuditResult | pd.DataFrame) -> alt.LayerChart:
    """Draw the error of every classifier on every group; colour compares it with the group's own classifier.

    Parameters
    ----------
    result : AuditResult, or the table that its `cells` returns

    Examples
    --------
    >>> from dafh import audit
    >>> y, groups = np.tile([0, 1], 200), np.repeat([0, 1], 200)
    >>> own = np.column_stack([np.where(groups == k, y, 1 - y) for k in (0, 1)])
    >>> chart = preference_matrix(audit(y, own, groups, pooled=1 - y))
    >>> chart.data.loc[chart.data["group"] == "group 0", ["classifier", "label"]].to_numpy().tolist()
    [['classifier 0', '0.0%'], ['classifier 1', '100.0%'], ['pooled', '100.0%']]
    """
    cells = result.cells() if isinstance(result, AuditResult) else result
    cells = cells.assign(
        group="group " + cells["group"].astype(str),
        classifier=[name if name == "pooled" else f"classifier {name}" for name in cells["classifier"].astype(str)],
        label=[percent(error) for error in cells["error"].astype(float)],
        interval=_intervals(cells, "{:.1f} to {:.1f}%"),
        points=100 * cells["gap"].astype(float),
        serves=np.where(cells["own"], "yes", "no"),
    )
    # The largest gap sets the scale, but never less than half a point: otherwise rounding errors would get full colour.
    limit = max(float(np.nanmax(np.abs(cells["points"]), initial=0.0)), 0.5)
    colour = alt.Color(
        "points:Q",
        title=["difference from the own classifier's", "error, in percentage points"],
        # Both ends are light, so that the numbers stay readable.
        scale=alt.Scale(domain=[-limit, 0, limit], range=["#f0a35e", "#f4f4f0", "#9cc4e4"], interpolate="rgb"),
        legend=alt.Legend(labelExpr=SIGNED, orient="bottom", gradientLength=180, titleLimit=400),
    )
    base = alt.Chart(cells).encode(
        alt.X(
            "classifier:N",
            title=None,
            sort=None,
            axis=alt.Axis(orient="top", labelAngle=0, labelLimit=110, labelFlush=False),
        ),
        alt.Y("group:N", title=None, sort=None),
        tooltip=[
            "group:N",
            "classifier:N",
            alt.Tooltip("error:Q", format=".2%"),
            alt.Tooltip("interval:N", title="interval of the error"),
            alt.Tooltip("points:Q", format="+.2f", title="percentage points above own"),
            alt.Tooltip("rows:Q", format=",.0f"),
            alt.Tooltip("serves:N", title="serves the group"),
        ],
    )
    tiles = base.mark_rect(stroke="#bbbbbb", strokeWidth=0.5).encode(colour)
    # A layer of its own: in the same layer, the neighbouring tiles would cover half of each frame.
    frames = base.transform_filter("datum.own").mark_rect(fill="transparent", stroke="#1f5fb0", strokeWidth=3)
    numbers = base.mark_text(color="#111111", fontSize=13, dy=-6).encode(alt.Text("label:N"))
    # On a narrow screen intervals would run into each other; tooltip and table have them.
    room = alt.ExprRef("bandwidth('x') < 76 ? 0 : 1")
    intervals = base.mark_text(color="#333333", fontSize=10, dy=9, opacity=room).encode(alt.Text("interval:N"))
    return alt.layer(tiles, frames, numbers, intervals).properties(
        height=56 * cells["group"].nunique(),
        width=WIDTH,
        title=_note(["error of each classifier on each group;", "framed: the classifier that serves it"]),
    )


def gains(
    result: AuditResult | pd.DataFrame,
    *,
    against: Literal["pooled", "groups"] = "pooled",
    loss: LossName | None = None,
) -> alt.LayerChart:
    """Draw what each group gains by its own classifier, with intervals; left of zero it would do better without.

    Parameters
    ----------
    result : AuditResult, or its table `questions`
    against : {"pooled", "groups"}, default="pooled"
        Compare with the pooled classifier, where left of zero is harm, or with the classifiers of all other groups,
        where left of zero is envy.
    loss : {"error", "fpr", "fnr", "cost"}, optional
        Loss to draw; by default the first that was asked about.

    Examples
    --------
    >>> from dafh import audit
    >>> y, groups = np.tile([0, 1], 200), np.repeat([0, 1], 200)
    >>> own = np.column_stack([np.where(groups == k, y, 1 - y) for k in (0, 1)])
    >>> result = audit(y, own, groups, pooled=1 - y)
    >>> gains(result).layer[1].data[["name", "points", "verdict"]].to_numpy().tolist()
    [['group 0', 100.0, 'satisfied'], ['group 1', 100.0, 'satisfied']]
    >>> gains(result, against="groups").layer[1].data["name"].tolist()
    ['group 0 against classifier 1', 'group 1 against classifier 0']
    """
    if against not in ("pooled", "groups"):
        raise InputError(f"against must be 'pooled' or 'groups', got {against!r}.")
    asked = result.questions if isinstance(result, AuditResult) else result
    asked = _about(asked[asked["kind"] == ("rationality" if against == "pooled" else "envy")], loss)
    names = "group " + asked["group"].astype(str)
    if against == "pooled":
        return _gap_chart(asked, list(names), "over the pooled classifier")
    names = names + " against classifier " + asked["rival"].astype(str)
    return _gap_chart(asked, list(names), "of the own classifier over the other")


def named_groups(
    result: AuditResult | pd.DataFrame, *, n_groups: int = 20, loss: LossName | None = None
) -> alt.LayerChart:
    """Draw what named groups gain over the pooled classifier, those that are shown to lose first.

    Intersections of attributes, and groups of fewer than 50 rows, are left out unless they are shown to lose: the
    interval of a group of three rows would rule the axis.

    Parameters
    ----------
    result : AuditResult with sensitive features, or the table that its `worst_named` returns
    n_groups : int, default=20
        Number of groups to draw.
    loss : {"error", "fpr", "fnr", "cost"}, optional
        Loss to draw; by default the first that was asked about.

    Examples
    --------
    >>> from dafh import audit
    >>> y, sex = np.tile([0, 1], 200), np.repeat(["f", "m"], 200)
    >>> new, region = np.where(sex == "f", 1 - y, y), np.zeros(400, int)
    >>> chart = named_groups(audit(y, new, region, pooled=y, sensitive_features=pd.DataFrame({"sex": sex})))
    >>> chart.layer[1].data[["name", "points", "verdict"]].to_numpy().tolist()
    [['sex = f', -100.0, 'violated'], ['sex = m', 0.0, 'undecided']]
    """
    if isinstance(result, AuditResult):
        if result.composition is None:
            raise InputError("There are no named groups to draw: pass sensitive_features to the audit.")
        named = result.worst_named()
        single = named["group"].isin(set(result.composition["named_group"]))
        asked = _about(named[single | (named["verdict"] == "violated")], loss)
    else:
        asked = _about(result, loss)
    asked = asked[(asked["n"] >= SMALLEST_SHOWN) | (asked["verdict"] == "violated")].head(n_groups)
    return _gap_chart(asked, _told_apart(asked["group"]), "over the pooled classifier")


def composition(result: AuditResult | pd.DataFrame) -> alt.LayerChart:
    """Draw who is in which group: for every value of every attribute, the share of its rows in each group.

    Parameters
    ----------
    result : AuditResult with sensitive features, or its table `composition`

    Examples
    --------
    >>> from dafh import audit
    >>> y, groups = np.tile([0, 1], 200), np.repeat([0, 1], 200)
    >>> sex = pd.DataFrame({"sex": np.where(groups == 0, "f", "m")})
    >>> chart = composition(audit(y, np.column_stack([y, y]), groups, pooled=y, sensitive_features=sex))
    >>> chart.data[["named_group", "group", "share"]].to_numpy().tolist()
    [['sex = f', 'group 0', 1.0], ['sex = m', 'group 0', 0.0], ['sex = f', 'group 1', 0.0], ['sex = m', 'group 1', 1.0]]
    """
    table = result.composition if isinstance(result, AuditResult) else result
    if table is None:
        raise InputError("There are no attributes to draw: pass sensitive_features to the audit.")
    shares = table.melt(["named_group", "weight"], var_name="number", value_name="share")
    shares["number"] = shares["number"].str.removeprefix("in_")
    shares["group"] = "group " + shares["number"]
    names = list(dict.fromkeys(shares["group"]))
    shares["order"] = [names.index(name) for name in shares["group"]]  # As text, group 10 would precede group 2.
    x = alt.X("share:Q", stack="normalize", title="share of rows in each group", axis=alt.Axis(format="%", tickCount=5))
    base = alt.Chart(shares).encode(
        alt.Y("named_group:N", sort=None, title=None),
        alt.Order("order:O"),
        tooltip=[
            alt.Tooltip("named_group:N", title="who"),
            "group:N",
            alt.Tooltip("share:Q", format=".1%"),
            alt.Tooltip("weight:Q", format=",.0f", title="rows"),
        ],
    )
    legend = alt.Legend(orient="bottom", columns=6)
    bars = base.mark_bar().encode(x, alt.Color("group:N", title=None, scale=bar_colours(names), legend=legend))
    # The number of the group on its bar: the colours alone do not tell groups apart for everyone.
    narrow = f"datum.share < {_NARROWEST_LABELLED}"
    numbers = base.mark_text(fontSize=10).encode(
        alt.X("share:Q", stack="normalize", bandPosition=0.5),
        alt.Text("number:N"),
        alt.Color("group:N", scale=text_on_bars(names), legend=None),
        opacity=alt.condition(narrow, alt.value(0), alt.value(1)),
    )
    return (
        alt.layer(bars, numbers)
        .resolve_scale(color="independent")
        .properties(height=22 * shares["named_group"].nunique(), width=WIDTH)
    )


def named_rates(result: AuditResult) -> pd.DataFrame | None:
    """Return the rates of an audit, with a first column that names learned groups as such; None without two classes.

    Examples
    --------
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
    >>> from dafh import audit
    >>> y, groups = np.tile([0, 1], 200), np.repeat([0, 1], 200)
    >>> own = np.column_stack([np.where(groups == k, y, 1 - y) for k in (0, 1)])
    >>> chart = decisions(audit(y, own, groups, pooled=np.ones(400, int)), "fpr")
    >>> chart.layer[0].data[["name", "before", "now"]].to_numpy().tolist()
    [['all rows', 1.0, 0.0], ['group 0', 1.0, 0.0], ['group 1', 1.0, 0.0]]
    """
    if rate not in RATE_TITLES:
        raise InputError(f"rate must be one of {', '.join(map(repr, RATE_TITLES))}, got {rate!r}.")
    table = named_rates(result) if isinstance(result, AuditResult) else result
    if table is None:
        raise InputError("There are no rates to draw: a label can only be flagged if there are two.")
    # All rows and learned groups whatever their size; named groups of a few rows have rates of 0 or 100%.
    learned = table["name"].str.match(r"all rows$|group ")
    table = table[learned | (table["rows"] >= SMALLEST_SHOWN)].head(_MOST_RATES)
    names = _told_apart(table["name"])
    pairs = pd.DataFrame(
        {"name": names, "before": table[f"{rate}_pooled"].astype(float), "now": table[rate].astype(float)}
    ).assign(rows=table["rows"].to_numpy())
    sides = pairs.melt(["name", "rows"], ["before", "now"], "side", "value")
    sides["side"] = sides["side"].map(dict(zip(("before", "now"), _SIDES, strict=True)))
    axis = alt.Axis(format="%", tickCount=4)
    # All names, also of groups without rows: Vega drops what has no value, and the reader would miss a group.
    y = alt.Y("name:N", title=None, scale=alt.Scale(domain=names), axis=alt.Axis(labelLimit=150))
    lines = alt.Chart(pairs).mark_rule(strokeWidth=2, color="#999999")
    lines = lines.encode(alt.X("before:Q", title=RATE_TITLES[rate], axis=axis), alt.X2("now:Q"), y)
    legend = alt.Legend(orient="bottom")
    dots = alt.Chart(sides).mark_point(size=80, filled=True, opacity=1)
    dots = dots.encode(
        alt.X("value:Q", title=RATE_TITLES[rate], axis=axis),
        y,
        alt.Color("side:N", title=None, scale=scale(_SIDES, _SIDE_COLOURS), legend=legend),
        alt.Shape("side:N", title=None, scale=scale(_SIDES, _SIDE_SHAPES), legend=legend),
        tooltip=[
            alt.Tooltip("name:N", title="who"),
            alt.Tooltip("side:N", title="by"),
            alt.Tooltip("value:Q", format=".1%", title=RATE_TITLES[rate]),
            alt.Tooltip("rows:Q", format=",.0f"),
        ],
    )
    return alt.layer(lines, dots).properties(height=26 * len(names), width=WIDTH)


def _told_apart(names: Iterable[str]) -> list[str]:
    """Clip names so that they fit beside a chart; those that look the same then get a number.

    A chart has one line for each name: groups whose names differ only at their ends would be drawn over each other.
    """
    uses: Counter[str] = Counter()
    labels = []
    for name in names:
        short = clipped(name)
        uses[short] += 1
        labels.append(short if uses[short] == 1 else f"{short} ({uses[short]})")
    return labels


def _about(asked: pd.DataFrame, loss: LossName | None) -> pd.DataFrame:
    """Questions about one loss, because costs and rates do not fit on one axis."""
    if loss is None:
        return asked[asked["loss"] == asked["loss"].iloc[0]] if len(asked) else asked
    if loss not in set(asked["loss"]):
        raise InputError(f"The audit was not asked about the loss {loss!r}: name it in its losses.")
    return asked[asked["loss"] == loss]


def _intervals(table: pd.DataFrame, form: str) -> list[str]:
    pairs = zip(table["low"].astype(float), table["high"].astype(float), strict=True)
    return [form.format(100 * low, 100 * high) if np.isfinite(low) else "" for low, high in pairs]


def _note(lines: list[str]) -> alt.Title:
    """Lines above a chart that say how to read it, short enough for a narrow screen."""
    return alt.Title(lines, fontSize=11, fontWeight="normal", anchor="start", color="#333333")


def _gap_chart(asked: pd.DataFrame, names: Sequence[str], over: str) -> alt.LayerChart:
    """Draw gaps as points with their intervals, one line each, and a line at zero."""
    loss = Loss(asked["loss"].iloc[0]) if len(asked) else ERROR
    unit = loss.unit if loss.name == "cost" else f"in {loss.unit}"
    # In lines that fit on a narrow screen.
    title = [f"gain {over},", unit] if loss == ERROR else [f"gain in {loss.title}", f"{over},", unit]
    table = asked.assign(
        name=list(names),
        points=100 * asked["gap"].astype(float),
        from_=100 * asked["low"].astype(float),
        to=100 * asked["high"].astype(float),
        interval=_intervals(asked, "{:+.2f} to {:+.2f}"),
    )
    legend = alt.Legend(orient="bottom", labelExpr=_LEGEND_WORDS, labelLimit=240)
    # All three verdicts stay in the legend, whether they occur or not: charts of one report then look alike.
    verdicts = list(VERDICT_COLOURS)
    colours = scale(verdicts, list(VERDICT_COLOURS.values()))
    colour = alt.Color("verdict:N", title=None, scale=colours, legend=legend)
    shape = alt.Shape("verdict:N", title=None, scale=scale(verdicts, _VERDICT_SHAPES), legend=legend)
    # All names, also of groups without rows: Vega drops what has no value, and the reader would miss a group.
    line_of_each = alt.Scale(domain=list(dict.fromkeys(names)))
    base = alt.Chart(table).encode(
        y=alt.Y("name:N", title=None, scale=line_of_each, axis=alt.Axis(labelExpr=_TWO_LINES)),
        tooltip=[
            alt.Tooltip("name:N", title="who"),
            alt.Tooltip("points:Q", format="+.2f", title=f"gain {unit}"),
            "interval:N",
            alt.Tooltip("n:Q", format=",.0f", title="rows"),
            alt.Tooltip("p_corrected:Q", format=".3f", title="corrected p of harm"),
            "verdict:N",
        ],
    )
    x = alt.X("from_:Q", title=title, axis=alt.Axis(labelExpr=SIGNED, tickCount=8))
    lines = base.mark_rule(strokeWidth=2).encode(x, alt.X2("to:Q"), color=colour)
    dots = base.mark_point(size=90, filled=True, opacity=1).encode(alt.X("points:Q", title=title), colour, shape)
    height = 34 if any(" & " in name or " against " in name for name in names) else 26
    return alt.layer(zero_line("x"), lines, dots).properties(height=height * table["name"].nunique(), width=WIDTH)
