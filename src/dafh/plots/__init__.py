"""Charts in Altair; the same code serves notebooks, the HTML report, and PNG and SVG files.

- `audit`: preference matrix, gains, envy, named groups, composition;
- `decisions`: how often each group is flagged, and which errors are made, before and after;
- `scorecard`: the points of a scorecard by column;
- `training`: accuracy and Pr without harm over the epochs of a network;
- `partitions`: two features, the groups, and the decision borders of their classifiers;
- `watch`: a model in use, batch by batch;
- `style`: colours, sizes and axis labels.

A new chart of an audit belongs in `audit`; to show it in the report, add it to `dafh.report.page`. No chart may depend
on colour alone: add a shape, a dash or a label.
"""

from dafh.plots.audit import composition, envy, gains, named_groups, preference_matrix
from dafh.plots.decisions import RATE_TITLES, decisions, named_rates
from dafh.plots.partitions import partition_panel, side_by_side, synthetic_panels
from dafh.plots.scorecard import scorecard_bins, scorecard_chart
from dafh.plots.training import CURVES, convergence, curve
from dafh.plots.watch import evidence_over_time, gain_over_time, shares_over_time

__all__ = [
    "CURVES",
    "RATE_TITLES",
    "composition",
    "convergence",
    "curve",
    "decisions",
    "envy",
    "evidence_over_time",
    "gain_over_time",
    "gains",
    "named_groups",
    "named_rates",
    "partition_panel",
    "preference_matrix",
    "scorecard_bins",
    "scorecard_chart",
    "shares_over_time",
    "side_by_side",
    "synthetic_panels",
]
