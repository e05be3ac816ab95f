"""Charts in Altair; the same code serves notebooks, the HTML report, and PNG and SVG files.

No chart may depend on colour alone: add a shape, a dash or a label.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.classifiers import Classifier
from dafh.evaluation.audit import AuditResult, failed_now
from dafh.evaluation.compare import Comparison
from dafh.evaluation.losses import ERROR, Loss, LossName
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.evaluation.named_groups import SMALLEST_SHOWN
from dafh.exceptions import InputError
from dafh.linear.scorecard import Scorecard
from dafh.text import clipped, percent, points

__all__ = [
    "evidence_over_time",
    "gain_over_time",
    "gains",
    "levels",
    "named_groups",
    "preference_matrix",
    "scorecard_chart",
    "shares_over_time",
    "synthetic_panels",
]

# ---- colours, sizes, axis labels and legends ----

# Six hues for groups, light for points and dark for lines over them. Neighbours differ in lightness as well as in hue,
# and blue and orange come first: readers who cannot tell red from green can tell these apart.
POINT_COLOURS = ("#74b3e8", "#ffc06a", "#5da449", "#dba9dd", "#a3a3a3", "#efe27a")
LINE_COLOURS = ("#1f5fb0", "#c2570c", "#1d5c0b", "#8b2f86", "#444444", "#8a7a00")
VERDICT_COLOURS = {"satisfied": "#2f7d0e", "undecided": "#767676", "violated": "#c2310c"}
# None of the dashes is dotted: that is what an alarm needs, and what shares were in the reference rows.
_DASHES = ([1, 0], [6, 3], [3, 3], [8, 3, 2, 3], [4, 2, 1, 2, 1, 2], [10, 4])
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_WIDTH = 460
# Labels of differences, as a Vega expression: a sign on all but zero, which Vega would write as +0.
_SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+.2~f')"
# A line alone is hard to hit with a pointer: every value gets a point, which shows its numbers.
_POINT = alt.OverlayMarkDef(size=25, filled=True)


def _scale(names: Sequence[str], values: Sequence[object]) -> alt.Scale:
    """One value, such as a colour or a shape, for each name; of very many names, they repeat."""
    return alt.Scale(domain=list(names), range=[values[i % len(values)] for i in range(len(names))])


def _zero_line(channel: str) -> alt.Chart:
    """Draw the line at zero of the axis "x" or "y"."""
    at_zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(strokeDash=[5, 4], color="#888888")
    return at_zero.encode(**{channel: "zero:Q"})


def _by_name(names: list[str], dashes: Sequence[list[int]] = _DASHES) -> tuple[alt.Color, alt.StrokeDash]:
    """Tell lines apart by colour and by dashes; two legends with equal titles and domains are drawn as one."""
    # Lines long enough to see their dashes, in so many columns that the legend is no wider than the chart.
    columns = alt.ExprRef("width < 360 ? 1 : 3")
    legend = alt.Legend(orient="bottom", columns=columns, symbolType="stroke", symbolStrokeWidth=2, symbolSize=400)
    return (
        alt.Color("name:N", title=None, scale=_scale(names, LINE_COLOURS), legend=legend),
        alt.StrokeDash("name:N", title=None, scale=_scale(names, dashes), legend=legend),
    )


# ---- an audit: how well each classifier serves each group, and how certain that is ----

# Verdicts differ in shape as well as in colour, for readers who cannot tell the colours apart.
_VERDICT_SHAPES = ("circle", "diamond", "triangle-down")
# More lines are no chart; the table beside it has all groups.
_MOST_GROUPS, _MOST_LEVELS = 20, 15
_LEGEND_WORDS = (
    "{satisfied: 'shown not to be worse off', undecided: 'undecided (not enough data)', "
    "violated: 'shown to be worse off'}[datum.label]"
)
# A named group of two attributes takes two lines: one would be cut off, or leave no room for the chart on a phone.
_WORD_OF_PAIRS = " & "
_TWO_LINES = r"split(replace(datum.label, / & /g, ' &\n'), '\n')"


def preference_matrix(result: AuditResult) -> alt.LayerChart:
    """Draw the error of every classifier on every group; colour compares it with the group's own classifier.

    Examples
    --------
    >>> from dafh import audit
    >>> y, groups = np.tile([0, 1], 200), np.repeat([0, 1], 200)
    >>> own = np.column_stack([np.where(groups == k, y, 1 - y) for k in (0, 1)])
    >>> chart = preference_matrix(audit(y, own, groups, pooled=1 - y))
    >>> chart.data.loc[chart.data["group"] == "group 0", ["classifier", "label"]].to_numpy().tolist()
    [['classifier 0', '0.0%'], ['classifier 1', '100.0%'], ['pooled', '100.0%']]
    """
    cells = result.cells()
    cells = cells.assign(
        group="group " + cells["group"],
        classifier=[name if name == "pooled" else f"classifier {name}" for name in cells["classifier"]],
        label=cells["error"].map(percent),
        points=100 * cells["gap"],
        serves=np.where(cells["own"], "yes", "no"),
    )
    # The largest gap sets the scale, but never less than half a point: otherwise rounding errors would get full colour.
    limit = max(float(np.nanmax(np.abs(cells["points"]), initial=0.0)), 0.5)
    colour = alt.Color(
        "points:Q",
        title=["difference from the own classifier's", "error, in percentage points"],
        # Both ends are light, so that the numbers stay readable.
        scale=alt.Scale(domain=[-limit, 0, limit], range=["#f0a35e", "#f4f4f0", "#9cc4e4"], interpolate="rgb"),
        legend=alt.Legend(labelExpr=_SIGNED, orient="bottom", gradientLength=180, titleLimit=400),
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
            alt.Tooltip("points:Q", format="+.2f", title="percentage points above own"),
            alt.Tooltip("rows:Q", format=",.0f"),
            alt.Tooltip("serves:N", title="serves the group"),
        ],
    )
    tiles = base.mark_rect(stroke="#bbbbbb", strokeWidth=0.5).encode(colour)
    # A layer of its own: in the same layer, the neighbouring tiles would cover half of each frame.
    frames = base.transform_filter("datum.own").mark_rect(fill="transparent", stroke="#1f5fb0", strokeWidth=3)
    numbers = base.mark_text(color="#111111", fontSize=13).encode(alt.Text("label:N"))
    how_to_read = ["error of each classifier on each group;", "framed: the classifier that serves it"]
    title = alt.Title(how_to_read, fontSize=11, fontWeight="normal", anchor="start", color="#333333")
    height = 44 * cells["group"].nunique()
    return alt.layer(tiles, frames, numbers).properties(height=height, width=_WIDTH, title=title)


def gains(result: AuditResult | Comparison, *, loss: LossName | None = None) -> alt.LayerChart:
    """Draw what each group gains over the pooled classifier, by gain; left of zero it would do better without.

    Of a comparison, the groups are those that were discovered, and the gain is that over the old model.

    Parameters
    ----------
    result : AuditResult or Comparison
    loss : name, optional
        Of an audit of several losses; the first one unless another is named.

    Examples
    --------
    >>> from dafh import audit
    >>> y, groups = np.tile([0, 1], 200), np.repeat([0, 1], 200)
    >>> own = np.column_stack([np.where(groups == k, y, 1 - y) for k in (0, 1)])
    >>> result = audit(y, own, groups, pooled=1 - y)
    >>> gains(result).layer[1].data[["name", "points", "verdict"]].to_numpy().tolist()
    [['group 0', 100.0, 'satisfied'], ['group 1', 100.0, 'satisfied']]
    """
    if isinstance(result, Comparison):
        return _chart_of_comparison(result, "discovered", loss)
    table = result.questions[result.questions["kind"] == "rationality"]
    table = table.assign(who="group " + table["group"].astype(str)).sort_values("gap", ascending=False, kind="stable")
    return _gap_chart(table, loss or result.losses[0], "over the pooled classifier")


def named_groups(result: AuditResult | Comparison, *, loss: LossName | None = None) -> alt.LayerChart:
    """Draw what named groups gain over the pooled classifier, or over the old model, those that lose first.

    Intersections of attributes, and groups of fewer than 50 rows, are left out unless they are shown to lose: the
    interval of a group of three rows would rule the axis. At most 20 groups are drawn.

    Parameters
    ----------
    result : AuditResult or Comparison
        Made with sensitive features.
    loss : name, optional
        Of an audit of several losses; the first one unless another is named.

    Examples
    --------
    >>> from dafh import audit
    >>> y, sex = np.tile([0, 1], 200), np.repeat(["f", "m"], 200)
    >>> new, region = np.where(sex == "f", 1 - y, y), np.zeros(400, int)
    >>> chart = named_groups(audit(y, new, region, pooled=y, sensitive_features=pd.DataFrame({"sex": sex})))
    >>> chart.layer[1].data[["name", "points", "verdict"]].to_numpy().tolist()
    [['sex = f', -100.0, 'violated'], ['sex = m', 0.0, 'undecided']]
    """
    if isinstance(result, Comparison):
        return _chart_of_comparison(result, "named", loss)
    if result.composition is None:
        raise InputError("There are no named groups to draw: pass sensitive_features to the audit.")
    table = result.worst_named()
    single = table["group"].isin(set(result.composition["named_group"])) & (table["n"] >= SMALLEST_SHOWN)
    table = table[single | (table["verdict"] == "violated")].rename(columns={"group": "who"})
    return _gap_chart(table, loss or result.losses[0], "over the pooled classifier")


_VERDICTS_OF_CHANGES = {"loses": "violated", "gains": "satisfied", "not worse": "satisfied", "undecided": "undecided"}


def _chart_of_comparison(result: Comparison, kind: str, loss: LossName | None) -> alt.LayerChart:
    """Draw the discovered or the named groups of a comparison, those that lose first."""
    table = result.to_frame().rename(columns={"group": "who", "gain": "gap", "tested": "n"})
    table = table.assign(verdict=table["answer"].map(_VERDICTS_OF_CHANGES)).sort_values("gap", kind="stable")
    table = table[(table["kind"] == kind) & ((table["n"] >= SMALLEST_SHOWN) | (table["verdict"] == "violated"))]
    return _gap_chart(table, loss or result.groups["loss"].iloc[0], "over the old model")


def _gap_chart(table: pd.DataFrame, loss_name: LossName, over: str) -> alt.LayerChart:
    """Draw the gaps in one loss as points with their intervals, one line for each group, and a line at zero."""
    table = table[table["loss"] == loss_name].head(_MOST_GROUPS)
    loss, names = Loss(loss_name), _told_apart(table["who"])
    unit = loss.unit if loss.name == "cost" else f"in {loss.unit}"
    # In lines that fit on a narrow screen.
    title = [f"gain {over},", unit] if loss == ERROR else [f"gain in {loss.title}", f"{over},", unit]
    limits = list(zip(table["low"], table["high"], strict=True))
    table = table.assign(
        name=names,
        points=100 * table["gap"],
        from_=100 * table["low"],
        to=100 * table["high"],
        interval=[f"{points(low)} to {points(high)}" if np.isfinite(low) else "" for low, high in limits],
    )
    legend = alt.Legend(orient="bottom", labelExpr=_LEGEND_WORDS, labelLimit=240)
    # All three verdicts stay in the legend, whether they occur or not: charts of one report then look alike.
    verdicts = list(VERDICT_COLOURS)
    colours = _scale(verdicts, list(VERDICT_COLOURS.values()))
    colour = alt.Color("verdict:N", title=None, scale=colours, legend=legend)
    shape = alt.Shape("verdict:N", title=None, scale=_scale(verdicts, _VERDICT_SHAPES), legend=legend)
    # All names, also of groups without rows: Vega drops what has no value, and the reader would miss a group.
    line_of_each = alt.Scale(domain=names)
    base = alt.Chart(table).encode(
        y=alt.Y("name:N", title=None, scale=line_of_each, axis=alt.Axis(labelExpr=_TWO_LINES)),
        tooltip=[
            alt.Tooltip("who:N", title="who"),
            alt.Tooltip("points:Q", format="+.2f", title=f"gain {unit}"),
            "interval:N",
            alt.Tooltip("n:Q", format=",.0f", title="rows"),
            alt.Tooltip("p_corrected:Q", format=".3f", title="corrected p of harm"),
            "verdict:N",
        ],
    )
    x = alt.X("from_:Q", title=title, axis=alt.Axis(labelExpr=_SIGNED, tickCount=8))
    lines = base.mark_rule(strokeWidth=2).encode(x, alt.X2("to:Q"), color=colour)
    dots = base.mark_point(size=90, filled=True, opacity=1).encode(alt.X("points:Q", title=title), colour, shape)
    height = 34 if any(_WORD_OF_PAIRS in name for name in names) else 26
    return alt.layer(_zero_line("x"), lines, dots).properties(height=height * len(names), width=_WIDTH)


def _told_apart(names: Iterable[str]) -> list[str]:
    """Clip names so that they fit beside a chart; those that look the same then get a number.

    A chart has one line for each name: groups whose names differ only at their ends would be drawn over each other.
    """
    uses: Counter[str] = Counter()
    labels = []
    for name in map(clipped, names):
        uses[name] += 1
        labels.append(name if uses[name] == 1 else f"{name} ({uses[name]})")
    return labels


def levels(result: AuditResult) -> alt.LayerChart:
    """Draw the loss of each group with the pooled classifier, with intervals; the dashed line is that of all rows.

    Examples
    --------
    >>> from dafh import audit
    >>> y, sex = np.tile([0, 1], 200), np.repeat(["f", "m"], 200)
    >>> wrong_about_f = np.where(sex == "f", 1 - y, y)
    >>> nobody = np.zeros(400, int)
    >>> chart = levels(audit(y, y, nobody, pooled=wrong_about_f, sensitive_features=pd.DataFrame({"sex": sex})))
    >>> chart.layer[1].data[["name", "level"]].to_numpy().tolist()
    [['sex = f', 100.0], ['sex = m', 0.0]]
    """
    table, loss = failed_now(result).head(1 + _MOST_LEVELS), Loss(result.losses[0])
    title = f"{loss.title} with the pooled classifier, {loss.unit if loss.name == 'cost' else 'in %'}"
    table = table.assign(
        name=_told_apart(table["who"]),
        level=100 * table["pooled_loss"],
        from_=100 * table["low"],
        to=100 * table["high"],
    )
    all_rows, groups = table.head(1), table.iloc[1:]
    at_all_rows = alt.Chart(all_rows).mark_rule(strokeDash=[5, 4], color="#888888").encode(x="level:Q")
    base = alt.Chart(groups).encode(
        y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelExpr=_TWO_LINES)),
        tooltip=["who:N", alt.Tooltip("level:Q", format=".1f", title=title), alt.Tooltip("rows:Q", format=",.0f")],
    )
    lines = base.mark_rule(strokeWidth=2, color=LINE_COLOURS[0])
    dots = base.mark_point(size=90, filled=True, opacity=1, color=LINE_COLOURS[0])
    x = alt.X("from_:Q", title=title, axis=alt.Axis(tickCount=8))
    layers = (at_all_rows, lines.encode(x, alt.X2("to:Q")), dots.encode(alt.X("level:Q", title=title)))
    return alt.layer(*layers).properties(height=26 * max(len(groups), 1), width=_WIDTH)


# ---- a model in use, by batch ----

# Evidence beyond these says no more, and would flatten all that happens between them.
_LEAST, _MOST = 1e-2, 1e4


def _batches(table: pd.DataFrame) -> alt.X:
    n = int(table["batch"].max())
    return alt.X(
        "batch:Q",
        title="batch",
        axis=alt.Axis(tickMinStep=1, format="d", tickCount=min(n, 12)),
        scale=alt.Scale(domain=[1, max(n, 2)], nice=False, padding=8),
    )


def evidence_over_time(evidence: pd.DataFrame) -> alt.LayerChart:
    """Draw the evidence of harm after each batch, and what an alarm needs.

    Parameters
    ----------
    evidence : data frame
        Columns batch, name (of the group or subgroup), harm_evidence, and harm_needed, which is missing where there can
        be no alarm.

    Examples
    --------
    >>> table = pd.DataFrame({"batch": [1, 2], "name": "group 0", "harm_evidence": [1.0, 30.0], "harm_needed": 20.0})
    >>> evidence_over_time(table).layer[0].mark.type
    'line'
    """
    table = evidence.assign(drawn=evidence["harm_evidence"].clip(_LEAST, _MOST))
    x = _batches(table)
    y = alt.Y(
        "drawn:Q",
        title="evidence of harm",
        scale=alt.Scale(type="log", domain=[_LEAST, _MOST], clamp=True),
        axis=alt.Axis(values=[0.01, 0.1, 1, 10, 100, 1000, 10_000], format="~g"),
    )
    tooltip = ["name:N", "batch:Q", alt.Tooltip("harm_evidence:Q", format=".3g", title="evidence of harm")]
    lines = alt.Chart(table).mark_line(point=_POINT)
    layers = [lines.encode(x, y, *_by_name(table["name"].unique().tolist()), tooltip=tooltip)]
    needed = table.groupby("batch")["harm_needed"].max().dropna().rename("drawn").reset_index()
    if len(needed):
        level = alt.Chart(needed).mark_line(strokeDash=[2, 3], color="#888888", point=len(needed) == 1)
        # At the first batch, where lines are still low: after alarms they end at this very height.
        label = alt.Chart(needed.head(1)).mark_text(align="left", dy=-8, color="#767676", text="needed for an alarm")
        layers += [level.encode(x, y), label.encode(x, y)]
    return alt.layer(*layers).properties(width=_WIDTH, height=220)


def gain_over_time(gains: pd.DataFrame, unit: str = "percentage points") -> alt.LayerChart:
    """Draw the gain of one group: in each batch, of all rows so far, and the limits that hold at all times.

    Parameters
    ----------
    gains : data frame
        Columns batch, gain, low, high and in_batch.
    unit : str
        Of 100 times a gain.

    Examples
    --------
    >>> table = pd.DataFrame({"batch": [1, 2], "gain": 0.02, "low": -0.01, "high": 0.05, "in_batch": [0.03, 0.01]})
    >>> [layer.mark.type for layer in gain_over_time(table).layer]
    ['area', 'rule', 'line', 'point']
    """
    table = gains.assign(**{name: 100 * gains[name] for name in ("gain", "low", "high", "in_batch")})
    # Twice the largest gain: the first limits are so wide that nothing else could be seen.
    most = max(2 * float(table[["gain", "in_batch"]].abs().fillna(0).to_numpy().max()), 1.0)

    def y(name: str) -> alt.Y:
        scale = alt.Scale(domain=[-most, most], clamp=True)
        return alt.Y(f"{name}:Q", title=f"gain, {unit}", scale=scale, axis=alt.Axis(labelExpr=_SIGNED))

    base = alt.Chart(table).encode(_batches(table))
    tooltip = ["batch:Q", *(alt.Tooltip(f"{name}:Q", format="+.2f") for name in ("gain", "low", "high", "in_batch"))]
    limits = base.mark_area(opacity=0.35, color=POINT_COLOURS[0], clip=True).encode(y("low"), alt.Y2("high:Q"))
    line = base.mark_line(color=LINE_COLOURS[0], strokeWidth=2, point=len(table) == 1)
    points = base.mark_point(color=LINE_COLOURS[1], shape="diamond", filled=True, size=45, opacity=1, clip=True)
    layers = [
        limits,
        _zero_line("y"),
        line.encode(y("gain"), tooltip=tooltip),
        points.encode(y("in_batch"), tooltip=tooltip),
    ]
    return alt.layer(*layers).properties(width=_WIDTH, height=170)


def shares_over_time(shares: pd.DataFrame) -> alt.LayerChart:
    """Draw shares of rows in each batch, and dotted those of the reference rows.

    Parameters
    ----------
    shares : data frame
        Columns batch, name, in_batch and reference_share.

    Examples
    --------
    >>> table = pd.DataFrame({"batch": [1, 2], "name": "age missing", "in_batch": [0.1, 0.3], "reference_share": 0.1})
    >>> len(shares_over_time(table).layer)
    2
    """
    colour, dash = _by_name(shares["name"].unique().tolist())
    y = alt.Y("in_batch:Q", title="share of rows", axis=alt.Axis(format=".0%"))
    tooltip = ["name:N", "batch:Q", *(alt.Tooltip(f"{c}:Q", format=".1%") for c in ("in_batch", "reference_share"))]
    base = alt.Chart(shares.dropna(subset="in_batch")).encode(_batches(shares), colour)
    lines = base.mark_line(point=_POINT).encode(y, dash, tooltip=tooltip)
    reference = base.mark_line(strokeDash=[1, 3], opacity=0.7).encode(alt.Y("reference_share:Q", title="share of rows"))
    return alt.layer(lines, reference).properties(width=_WIDTH, height=200)


# ---- the points of a scorecard, column by column ----

# More categories than this are no chart; the most frequent ones are drawn.
_MOST_CATEGORIES = 15
# Bins of numbers that are named on the axis: more would overlap on a narrow screen.
_MOST_NAMED = 5
# Axes reach at least as far as this on both sides: fewer points change a probability by 2.5 percentage points at most.
_SMALLEST_POINTS = 0.1
_FLAGS = ("False", "True", "missing")
_HEIGHT, _SHARE_HEIGHT = 150, 26
# Points above zero are blue and those below orange; the side of the line at zero says the same.
_SIGN = alt.condition("datum.points < 0", alt.value(LINE_COLOURS[1]), alt.value(LINE_COLOURS[0]))


def scorecard_chart(scorecard: Scorecard, column: str) -> alt.LayerChart:
    """Draw the points that a column adds to the score: bins of numbers and dates in order, categories by points.

    Grey bars below the bins of numbers show how many training rows each has; tooltips have the shares as numbers.

    Parameters
    ----------
    scorecard : fitted Scorecard
    column : str
        Name of a column.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 30, 40, None] * 25, "job": ["cook", "clerk"] * 50})
    >>> chart = scorecard_chart(Scorecard().fit(table, table["job"] == "cook"), "job")
    >>> chart.data["bin"].tolist()
    ['cook', 'clerk']
    """
    names = [learned.name for learned in scorecard.binning_.columns]
    if column not in names:
        raise InputError(f"The scorecard has no column {column!r} to draw.")
    position = names.index(column)
    learned, points_of_bins = scorecard.binning_.columns[position], scorecard.points_[position]
    shares, n_outputs = scorecard.shares_[position], points_of_bins.shape[1]
    # What is true or false has no order that a reader would look for.
    is_flag = learned.kind == "flag" and len(learned.cuts) == 1
    codes = np.flatnonzero(shares > 0)  # Bins without training rows are not drawn.
    words = [_FLAGS[code] if is_flag else learned.words(int(code)) for code in codes]
    labels = scorecard.classes_[1:] if n_outputs == 1 else scorecard.classes_
    bins = pd.DataFrame(
        {
            "label": np.tile([clipped(label, 30) for label in labels], len(codes)),
            "bin": np.repeat(words, n_outputs),
            "missing": np.repeat(~learned.is_category & (codes == learned.n_bins - 1), n_outputs),
            "rows": np.repeat(shares[codes], n_outputs),
            "points": points_of_bins[codes].ravel(),
        }
    )
    bins["share"] = [percent(share) if share >= 0.0005 else "under 0.1%" for share in bins["rows"]]
    draw = _categories if learned.is_category or is_flag else _numbers
    return draw(bins, n_outputs > 1)


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
        alt.Color("label:N", title=None, scale=_scale(labels, LINE_COLOURS), legend=legend),
        alt.Shape("label:N", title=None, scale=_scale(labels, _SHAPES), legend=legend),
    )


def _categories(bins: pd.DataFrame, several: bool) -> alt.LayerChart:
    """One line for each category, the most points first."""
    size = bins.groupby("bin")["rows"].first().nlargest(_MOST_CATEGORIES)
    bins = bins[bins["bin"].isin(size.index)].sort_values("points", ascending=False, kind="stable")
    x = alt.X(
        "points:Q",
        title="points",
        axis=alt.Axis(labelExpr=_SIGNED, tickCount=5),
        scale=alt.Scale(domain=_reach(bins), nice=True),
    )
    base = alt.Chart(bins).encode(
        alt.Y("bin:N", title=None, sort=list(dict.fromkeys(bins["bin"])), axis=alt.Axis(labelLimit=150)),
        tooltip=_tooltip(several),
    )
    if several:
        marks = base.mark_point(size=70, filled=True, opacity=1).encode(x, *_by_class(bins))
    else:
        marks = base.mark_bar().encode(x, color=_SIGN)
    chart = alt.layer(marks, _zero_line("x"), data=bins)
    return chart.properties(width=_WIDTH, height=22 * bins["bin"].nunique())


def _numbers(bins: pd.DataFrame, several: bool) -> alt.LayerChart:
    """Bins side by side, each as wide as the others: they hold about the same number of rows, wherever values crowd."""
    names = list(dict.fromkeys(bins["bin"]))
    # The first and the last, which is that of missing values where there are any, and some between them.
    labelled = np.unique(np.linspace(0, len(names) - 1, min(_MOST_NAMED, len(names))).round().astype(int))
    x = alt.X(
        "bin:N",
        title=None,
        sort=names,
        scale=alt.Scale(paddingInner=0, paddingOuter=0),
        axis=alt.Axis(values=[names[position] for position in labelled], labelAngle=0, labelOverlap=True),
    )
    # The lowest part of the chart belongs to the bars of shares: points end above it.
    y = alt.Y(
        "points:Q",
        title="points",
        axis=alt.Axis(labelExpr=_SIGNED, tickCount=5),
        scale=alt.Scale(domain=_reach(bins), range=[_HEIGHT - _SHARE_HEIGHT - 6, 0], nice=True),
    )
    bins = bins.assign(top=_HEIGHT - _SHARE_HEIGHT * bins["rows"] / float(bins["rows"].max()))
    base = alt.Chart(bins).encode(x, tooltip=_tooltip(several))
    # Shares are the same for all classes.
    shares = base.mark_rect(color="#8a93a0", opacity=0.45 / bins["label"].nunique())
    shares = shares.encode(alt.Y("top:Q", scale=None, axis=None), alt.Y2(value=_HEIGHT))
    if several:
        colour, shape = _by_class(bins)
        lines = base.mark_line(interpolate="step", strokeWidth=1).encode(y, colour, detail="missing:N")
        marks = [lines, base.mark_point(size=22, filled=True, opacity=1).encode(y, colour, shape)]
    else:
        marks = [base.mark_rect().encode(y, alt.Y2(datum=0), color=_SIGN)]
    return alt.layer(shares, *marks, _zero_line("y"), data=bins).properties(width=_WIDTH, height=_HEIGHT)


def _reach(bins: pd.DataFrame) -> list[float]:
    """Smallest and largest points of an axis."""
    return [min(float(bins["points"].min()), -_SMALLEST_POINTS), max(float(bins["points"].max()), _SMALLEST_POINTS)]


# ---- two features, the groups, and the decision border of each group's classifier ----

# Points along each side of the grid on which borders are found: about one per pixel.
_GRID = 240
# Every so many points of it in a row are shaded, with squares (in square pixels) that touch each other.
_SHADE_STEP, _SHADE_SIZE = 6, 42
# A plus and a dot for the two labels of most data; with more labels than shapes, they repeat.
_LABEL_SHAPES = ["cross", *(shape for shape in _SHAPES if shape != "cross")]


def synthetic_panels(experiment: Any, *, n_points: int = 700) -> alt.ConcatChart:
    """Draw the four panels of the paper's synthetic figure.

    Parameters
    ----------
    experiment : object
        With the test rows `X` (two features) and `y`, and `results`: for each method its name `method`, the fitted
        `model`, the `groups` of the test rows and their preference `matrix`.
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
    X, y = experiment.X.iloc[:n_points], np.asarray(experiment.y[:n_points])
    panels = [_panel(result, X, y, result.groups[:n_points]) for result in experiment.results]
    # Each panel keeps its own groups: group 0 of one method has nothing to do with group 0 of another.
    return alt.concat(*panels, columns=4).resolve_scale(color="independent", shape="independent")


def _panel(result: Any, X: pd.DataFrame, y: NDArray[Any], groups: NDArray[np.intp]) -> alt.LayerChart:
    """Draw rows with two features, coloured by group, and the decision border of each group's classifier."""
    # The chart calls the features x and y: a feature called "group", or "income.2020", which Vega reads as a path into
    # nested data, would not be drawn.
    features = X.set_axis(["x", "y"], axis=1)
    first, second = (str(name) for name in X.columns)
    names = [f"group {k}" for k in range(int(groups.max()) + 1)]
    points = features.assign(group=[names[k] for k in groups], label=[f"label {label}" for label in y])
    limits = [(float(features[name].min()) - 0.1, float(features[name].max()) + 0.1) for name in features]
    x_axis = alt.X("x:Q", title=first, scale=alt.Scale(domain=limits[0], nice=False), axis=alt.Axis(grid=False))
    y_axis = alt.Y("y:Q", title=second, scale=alt.Scale(domain=limits[1], nice=False), axis=alt.Axis(grid=False))
    legend = alt.Legend(orient="bottom", title=None, columns=2)
    rows = alt.Chart(points).mark_point(size=16, opacity=0.8, filled=True)
    rows = rows.encode(
        x_axis,
        y_axis,
        alt.Color("group:N", scale=_scale(names, POINT_COLOURS), legend=legend),
        alt.Shape("label:N", scale=alt.Scale(range=_LABEL_SHAPES), legend=legend),
        tooltip=["group:N", "label:N", alt.Tooltip("x:Q", title=first), alt.Tooltip("y:Q", title=second)],
    )
    border_points, positive = _decision_borders(result.model, X.columns, limits, names, np.unique(y)[-1])
    borders = alt.Chart(border_points).mark_circle(size=7, opacity=1)
    # Each group's colour lies over the side that its classifier calls positive.
    shades = alt.Chart(positive).mark_square(size=_SHADE_SIZE, opacity=0.12)
    # Points and borders of a group have different shades, so that the borders stand out.
    dark = alt.Color("group:N", scale=_scale(names, LINE_COLOURS), legend=None)
    matrix: PreferenceMatrix = result.matrix
    figures = f"accuracy {matrix.accuracy:.1%}"
    if len(matrix.own) > 1:  # With a single classifier there is no other to prefer, so Pr would say nothing.
        figures = f"Pr without harm {matrix.pr_without_harm:.1%}, {figures}"
    return (
        alt.layer(shades.encode(x_axis, y_axis, dark), rows, borders.encode(x_axis, y_axis, dark))
        .resolve_scale(color="independent")
        .properties(title=alt.Title(result.method, subtitle=figures), width=250, height=250)
    )


def _decision_borders(
    model: Classifier, columns: pd.Index, limits: list[tuple[float, float]], names: list[str], positive: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Points of a fine grid at which the label of a classifier changes, and of a coarse one where it is positive.

    This needs labels only, and therefore works for classifiers of any kind and borders of any shape.
    """
    across, up = np.meshgrid(*(np.linspace(low, high, _GRID) for low, high in limits))
    grid = pd.DataFrame({"x": across.ravel(), "y": up.ravel()})
    rows = grid.set_axis(columns, axis=1)  # The model knows the features by their own names.
    labels = model.predict_all(rows) if hasattr(model, "predict_all") else model.predict(rows)[:, None]
    borders, shaded, coarse = [], [], np.zeros((_GRID, _GRID), bool)
    coarse[::_SHADE_STEP, ::_SHADE_STEP] = True
    for k, name in enumerate(names):
        plane = labels[:, k].reshape(_GRID, _GRID)
        shaded.append(grid[((plane == positive) & coarse).ravel()].assign(group=name))
        changes = np.zeros_like(plane, dtype=bool)
        changes[:, 1:] |= plane[:, 1:] != plane[:, :-1]
        changes[1:, :] |= plane[1:, :] != plane[:-1, :]
        borders.append(grid[changes.ravel()].assign(group=name))
    return pd.concat(borders, ignore_index=True), pd.concat(shaded, ignore_index=True)
