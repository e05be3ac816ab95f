"""A model in use, batch by batch: evidence of harm, gains with their limits, and shares of rows."""

import altair as alt
import pandas as pd

from dafh.plots.style import LINE_COLOURS, POINT_COLOURS, SIGNED, WIDTH

# Evidence beyond these says no more, and would flatten all that happens between them.
_LEAST, _MOST = 1e-2, 1e4
# None is dotted: that is what an alarm needs, and what shares were in the reference rows.
_DASHES = ([1, 0], [6, 3], [3, 3], [8, 3, 2, 3], [4, 2, 1, 2, 1, 2], [10, 4])


def _batches(n: int) -> alt.X:
    return alt.X(
        "batch:Q",
        title="batch",
        axis=alt.Axis(tickMinStep=1, format="d", tickCount=min(n, 12)),
        scale=alt.Scale(domain=[1, max(n, 2)], nice=False, padding=8),
    )


def _by_name(names: list[str], title: str | None = None) -> tuple[alt.Color, alt.StrokeDash]:
    """Tell lines apart by colour and by dashes; two legends with equal titles and domains are drawn as one."""
    legend = alt.Legend(orient="bottom", symbolType="stroke", symbolStrokeWidth=2, symbolSize=400)
    colours = [LINE_COLOURS[i % len(LINE_COLOURS)] for i in range(len(names))]
    dashes = [_DASHES[i % len(_DASHES)] for i in range(len(names))]
    return (
        alt.Color("name:N", title=title, scale=alt.Scale(domain=names, range=colours), legend=legend),
        alt.StrokeDash("name:N", title=title, scale=alt.Scale(domain=names, range=dashes), legend=legend),
    )


def evidence_over_time(evidence: pd.DataFrame) -> alt.LayerChart:
    """Draw the evidence of harm after each batch, and what an alarm needs.

    Parameters
    ----------
    evidence : data frame
        Columns batch, name (of the group or subgroup), harm_evidence, and needed, which is missing where there can be
        no alarm.

    Examples
    --------
    >>> found = pd.DataFrame({"batch": [1, 2], "name": "group 0", "harm_evidence": [1.0, 30.0], "needed": [20.0, 20.0]})
    >>> evidence_over_time(found).layer[0].mark.type
    'line'
    """
    table = evidence.assign(drawn=evidence["harm_evidence"].clip(_LEAST, _MOST))
    names, n = table["name"].unique().tolist(), int(table["batch"].max())
    colour, dash = _by_name(names)
    scale = alt.Scale(type="log", domain=[_LEAST, _MOST], clamp=True)
    y = alt.Y(
        "drawn:Q",
        title="evidence of harm",
        scale=scale,
        axis=alt.Axis(values=[0.01, 0.1, 1, 10, 100, 1000, 10_000], format="~g"),
    )
    tooltip = ["name:N", "batch:Q", alt.Tooltip("harm_evidence:Q", format=".3g", title="evidence of harm")]
    lines = (
        alt.Chart(table)
        .mark_line(point=alt.OverlayMarkDef(size=25, filled=True))
        .encode(_batches(n), y, colour, dash, tooltip=tooltip)
    )
    needed = table.groupby("batch")["needed"].max().dropna().rename("drawn").reset_index()
    layers: list[alt.Chart] = [lines]
    if len(needed):
        level = alt.Chart(needed).encode(_batches(n), alt.Y("drawn:Q", scale=scale))
        layers.append(level.mark_line(strokeDash=[2, 3], color="#888888", point=len(needed) == 1))
        # At the first batch, where lines are still low: after alarms they end at this very height.
        first = needed.head(1).assign(text="needed for an alarm")
        layers.append(
            alt.Chart(first)
            .mark_text(align="left", dy=-8, color="#767676")
            .encode(_batches(n), alt.Y("drawn:Q", scale=scale), alt.Text("text:N"))
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
    >>> found = pd.DataFrame({"batch": [1, 2], "gain": 0.02, "low": -0.01, "high": 0.05, "in_batch": [0.03, 0.01]})
    >>> [layer.mark.type for layer in gain_over_time(found).layer]
    ['area', 'rule', 'line', 'point']
    """
    table = gains.assign(**{name: 100 * gains[name] for name in ("gain", "low", "high", "in_batch")})
    n = int(table["batch"].max())
    known = pd.concat([table["gain"], table["in_batch"]]).dropna().abs()
    # The first limits are so wide that nothing else could be seen.
    most = max(float(known.max()) * 2 if len(known) else 1.0, 1.0)
    scale = alt.Scale(domain=[-most, most], clamp=True)
    y = alt.Y("gain:Q", title=f"gain, {unit}", scale=scale, axis=alt.Axis(labelExpr=SIGNED))
    base = alt.Chart(table).encode(_batches(n))
    shown = [alt.Tooltip(f"{name}:Q", format="+.2f") for name in ("gain", "low", "high", "in_batch")]
    limits = base.mark_area(opacity=0.35, color=POINT_COLOURS[0], clip=True).encode(
        alt.Y("low:Q", scale=scale, title=f"gain, {unit}"), alt.Y2("high:Q")
    )
    zero = alt.Chart(pd.DataFrame({"gain": [0.0]})).mark_rule(strokeDash=[4, 3]).encode(alt.Y("gain:Q", scale=scale))
    line = base.mark_line(color=LINE_COLOURS[0], strokeWidth=2, point=n == 1).encode(y, tooltip=["batch:Q", *shown])
    points = base.mark_point(color=LINE_COLOURS[1], shape="diamond", filled=True, size=45, clip=True).encode(
        alt.Y("in_batch:Q", scale=scale), tooltip=["batch:Q", *shown]
    )
    return alt.layer(limits, zero, line, points).properties(width=WIDTH, height=170)


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
    >>> found = pd.DataFrame({"batch": [1, 2], "name": "age missing", "in_batch": [0.1, 0.3], "reference_share": 0.1})
    >>> len(shares_over_time(found, "share of rows").layer)
    2
    """
    names, n = shares["name"].unique().tolist(), int(shares["batch"].max())
    colour, dash = _by_name(names)
    y = alt.Y("in_batch:Q", title=title, axis=alt.Axis(format=".0%"))
    tooltip = ["name:N", "batch:Q", *(alt.Tooltip(f"{c}:Q", format=".1%") for c in ("in_batch", "reference_share"))]
    base = alt.Chart(shares.dropna(subset="in_batch")).encode(_batches(n), colour)
    lines = base.mark_line(point=alt.OverlayMarkDef(size=25, filled=True)).encode(y, dash, tooltip=tooltip)
    before = base.mark_line(strokeDash=[1, 3], opacity=0.7).encode(alt.Y("reference_share:Q", title=title))
    return alt.layer(lines, before).properties(width=WIDTH, height=200)
