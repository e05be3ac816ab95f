"""What happened over time: the training of a network by epoch, and a model in use by batch."""

from collections.abc import Sequence

import altair as alt
import pandas as pd
from sklearn.pipeline import Pipeline

from dafh.classifiers.pipelines import final_classifier
from dafh.classifiers.protocols import GroupModel
from dafh.exceptions import InputError
from dafh.plots.style import LINE_COLOURS, POINT_COLOURS, SIGNED, WIDTH, line_legend, scale, zero_line

CURVES = {"accuracy": "accuracy", "pr": "Pr without harm"}
"""What `training_curve` can draw, and the titles of the axes."""
# Evidence beyond these says no more, and would flatten all that happens between them.
_LEAST, _MOST = 1e-2, 1e4
# None is dotted: that is what an alarm needs, and what shares were in the reference rows.
_DASHES = ([1, 0], [6, 3], [3, 3], [8, 3, 2, 3], [4, 2, 1, 2, 1, 2], [10, 4])
# A line alone is hard to hit with a pointer: every value gets a point, which shows its numbers.
_POINT = alt.OverlayMarkDef(size=25, filled=True)


def _batches(n: int) -> alt.X:
    return alt.X(
        "batch:Q",
        title="batch",
        axis=alt.Axis(tickMinStep=1, format="d", tickCount=min(n, 12)),
        scale=alt.Scale(domain=[1, max(n, 2)], nice=False, padding=8),
    )


def _by_name(names: list[str], dashes: Sequence[list[int]] = _DASHES) -> tuple[alt.Color, alt.StrokeDash]:
    """Tell lines apart by colour and by dashes; two legends with equal titles and domains are drawn as one."""
    return (
        alt.Color("name:N", title=None, scale=scale(names, LINE_COLOURS), legend=line_legend()),
        alt.StrokeDash("name:N", title=None, scale=scale(names, dashes), legend=line_legend()),
    )


def training_curve(
    model: GroupModel | Pipeline | pd.DataFrame, metric: str = "accuracy", *, best_epoch: int | None = None
) -> alt.LayerChart:
    """Draw accuracy or Pr without harm over the epochs of a network, on training rows and on held-out rows.

    Parameters
    ----------
    model : fitted DAFHClassifier whose groups are a network, a pipeline that ends in one, or its `history_`
    metric : {"accuracy", "pr"}, default="accuracy"
    best_epoch : int, optional
        The epoch that was selected, marked by a vertical line; by default that of the model.

    Examples
    --------
    >>> history = pd.DataFrame({"train_pr": [0.9, 0.95], "selection_pr": [0.8, 0.85]}, index=[1, 2])
    >>> chart = training_curve(history.rename_axis("epoch"), "pr", best_epoch=2)
    >>> chart.layer[0].data["name"].unique().tolist()
    ['training rows', 'held-out rows']
    """
    if metric not in CURVES:
        raise InputError(f"metric must be one of {', '.join(map(repr, CURVES))}, got {metric!r}.")
    final = final_classifier(model)
    history = final if isinstance(final, pd.DataFrame) else getattr(final, "history_", None)
    if history is None:
        raise InputError(
            "There is no history of training to draw: pass a fitted DAFHClassifier whose groups are a network, or its "
            "history_."
        )
    best_epoch = getattr(final, "best_epoch_", None) if best_epoch is None else best_epoch
    title, parts = CURVES[metric], {"training rows": f"train_{metric}", "held-out rows": f"selection_{metric}"}
    history = history.reset_index()
    curves = pd.concat(
        [pd.DataFrame({"epoch": history["epoch"], "name": name, "value": history[c]}) for name, c in parts.items()],
        ignore_index=True,
    )
    x = alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(zero=False))
    y = alt.Y("value:Q", title=title, axis=alt.Axis(format=".1%"), scale=alt.Scale(zero=False))
    tooltip = ["epoch:Q", alt.Tooltip("name:N", title="rows"), alt.Tooltip("value:Q", format=".2%", title=title)]
    lines = alt.Chart(curves).mark_line(point=_POINT)
    layers = [lines.encode(x, y, *_by_name(list(parts), ([5, 3], [1, 0])), tooltip=tooltip)]
    if best_epoch is not None:
        selected = pd.DataFrame({"epoch": [best_epoch], "name": [f"selected: epoch {best_epoch}"]})
        late = best_epoch > curves["epoch"].mean()  # The text goes to the side that has more room.
        mark = alt.Chart(selected).encode(x, tooltip=["name:N"])
        layers.append(mark.mark_rule(strokeDash=[2, 3], color="#555555"))
        # Above the frame, where no curve runs through it.
        label = mark.mark_text(align="right" if late else "left", dy=-7, color="#333333")
        layers.append(label.encode(alt.Text("name:N"), y=alt.value(0)))
    return alt.layer(*layers).properties(width=WIDTH, height=170)


def evidence_over_time(evidence: pd.DataFrame) -> alt.LayerChart:
    """Draw the evidence of harm after each batch, and what an alarm needs.

    Parameters
    ----------
    evidence : data frame
        Columns batch, name (of the group or subgroup), harm_evidence, and needed, which is missing where there can be
        no alarm.

    Examples
    --------
    >>> table = pd.DataFrame({"batch": [1, 2], "name": "group 0", "harm_evidence": [1.0, 30.0], "needed": [20.0, 20.0]})
    >>> evidence_over_time(table).layer[0].mark.type
    'line'
    """
    table = evidence.assign(drawn=evidence["harm_evidence"].clip(_LEAST, _MOST))
    names, n = table["name"].unique().tolist(), int(table["batch"].max())
    colour, dash = _by_name(names)
    log = alt.Scale(type="log", domain=[_LEAST, _MOST], clamp=True)
    y = alt.Y(
        "drawn:Q",
        title="evidence of harm",
        scale=log,
        axis=alt.Axis(values=[0.01, 0.1, 1, 10, 100, 1000, 10_000], format="~g"),
    )
    tooltip = ["name:N", "batch:Q", alt.Tooltip("harm_evidence:Q", format=".3g", title="evidence of harm")]
    lines = alt.Chart(table).mark_line(point=_POINT).encode(_batches(n), y, colour, dash, tooltip=tooltip)
    needed = table.groupby("batch")["needed"].max().dropna().rename("drawn").reset_index()
    layers: list[alt.Chart] = [lines]
    if len(needed):
        level = alt.Chart(needed).encode(_batches(n), alt.Y("drawn:Q", scale=log))
        layers.append(level.mark_line(strokeDash=[2, 3], color="#888888", point=len(needed) == 1))
        # At the first batch, where lines are still low: after alarms they end at this very height.
        first = needed.head(1).assign(text="needed for an alarm")
        layers.append(
            alt.Chart(first)
            .mark_text(align="left", dy=-8, color="#767676")
            .encode(_batches(n), alt.Y("drawn:Q", scale=log), alt.Text("text:N"))
        )
    return alt.layer(*layers).properties(width=WIDTH, height=220)


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
    n = int(table["batch"].max())
    known = pd.concat([table["gain"], table["in_batch"]]).dropna().abs()
    # The first limits are so wide that nothing else could be seen.
    most = max(float(known.max()) * 2 if len(known) else 1.0, 1.0)
    both_sides = alt.Scale(domain=[-most, most], clamp=True)
    y = alt.Y("gain:Q", title=f"gain, {unit}", scale=both_sides, axis=alt.Axis(labelExpr=SIGNED))
    base = alt.Chart(table).encode(_batches(n))
    shown = [alt.Tooltip(f"{name}:Q", format="+.2f") for name in ("gain", "low", "high", "in_batch")]
    limits = base.mark_area(opacity=0.35, color=POINT_COLOURS[0], clip=True).encode(
        alt.Y("low:Q", scale=both_sides, title=f"gain, {unit}"), alt.Y2("high:Q")
    )
    line = base.mark_line(color=LINE_COLOURS[0], strokeWidth=2, point=n == 1).encode(y, tooltip=["batch:Q", *shown])
    points = base.mark_point(color=LINE_COLOURS[1], shape="diamond", filled=True, size=45, opacity=1, clip=True).encode(
        alt.Y("in_batch:Q", scale=both_sides), tooltip=["batch:Q", *shown]
    )
    return alt.layer(limits, zero_line("y"), line, points).properties(width=WIDTH, height=170)


def shares_over_time(shares: pd.DataFrame, title: str) -> alt.LayerChart:
    """Draw shares of rows in each batch, and dotted those of the reference rows.

    Parameters
    ----------
    shares : data frame
        Columns batch, name, in_batch and reference_share.
    title : str
        Of the vertical axis.

    Examples
    --------
    >>> table = pd.DataFrame({"batch": [1, 2], "name": "age missing", "in_batch": [0.1, 0.3], "reference_share": 0.1})
    >>> len(shares_over_time(table, "share of rows").layer)
    2
    """
    names, n = shares["name"].unique().tolist(), int(shares["batch"].max())
    colour, dash = _by_name(names)
    y = alt.Y("in_batch:Q", title=title, axis=alt.Axis(format=".0%"))
    tooltip = ["name:N", "batch:Q", *(alt.Tooltip(f"{c}:Q", format=".1%") for c in ("in_batch", "reference_share"))]
    base = alt.Chart(shares.dropna(subset="in_batch")).encode(_batches(n), colour)
    lines = base.mark_line(point=_POINT).encode(y, dash, tooltip=tooltip)
    before = base.mark_line(strokeDash=[1, 3], opacity=0.7).encode(alt.Y("reference_share:Q", title=title))
    return alt.layer(lines, before).properties(width=WIDTH, height=200)
