"""Charts in Altair; the same code serves notebooks, the HTML report, and PNG and SVG files.

- `audit`: gains, preference matrix, named groups, composition, and how decisions change;
- `scorecard`: the points of a scorecard by column;
- `history`: the training of a network by epoch, and a model in use by batch;
- `partitions`: two features, the groups, and the decision borders of their classifiers;
- `study`: figures of the paper;
- `rivals`: the worst named group against people harmed, for many methods;
- `style`: colours, sizes and axis labels.

To show a chart in the report, add it to `dafh.report.charts`. No chart may depend on colour alone: add a shape, a dash
or a label.
"""

from dafh.plots.audit import composition, decisions, gains, named_groups, preference_matrix
from dafh.plots.history import evidence_over_time, gain_over_time, shares_over_time, training_curve
from dafh.plots.partitions import synthetic_panels
from dafh.plots.rivals import harm_and_worst
from dafh.plots.scorecard import scorecard_chart
from dafh.plots.study import attribute_panels, study_convergence

__all__ = [
    "attribute_panels",
    "composition",
    "decisions",
    "evidence_over_time",
    "gain_over_time",
    "gains",
    "harm_and_worst",
    "named_groups",
    "preference_matrix",
    "scorecard_chart",
    "shares_over_time",
    "study_convergence",
    "synthetic_panels",
    "training_curve",
]
