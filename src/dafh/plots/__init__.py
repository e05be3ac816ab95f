"""Charts in Altair; the same code serves notebooks, the HTML report, and PNG and SVG files.

- `audit`: gains, preference matrix, named groups, composition, and how decisions change;
- `scorecard`: the points of a scorecard by column;
- `history`: the training of a network by epoch, and a model in use by batch;
- `partitions`: two features, the groups, and the decision borders of their classifiers;
- `style`: colours, sizes and axis labels.

To show a chart in the report, add it to `dafh.report.charts`. No chart may depend on colour alone: add a shape, a dash
or a label.
"""

from dafh.plots.audit import composition, decisions, gains, named_groups, preference_matrix
from dafh.plots.history import evidence_over_time, gain_over_time, shares_over_time, training_curve
from dafh.plots.partitions import synthetic_panels
from dafh.plots.scorecard import scorecard_chart

__all__ = [
    "composition",
    "decisions",
    "evidence_over_time",
    "gain_over_time",
    "gains",
    "named_groups",
    "preference_matrix",
    "scorecard_chart",
    "shares_over_time",
    "synthetic_panels",
    "training_curve",
]
