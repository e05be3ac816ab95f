"""Charts, in Altair: the same code for a notebook, for the HTML report, and for PNG and SVG files.

- `audit`: preference matrix, gains, envy, named groups, composition;
- `training`: how a fit went;
- `partitions`: two features, the groups and the borders of their classifiers;
- `study`: figures of the paper;
- `style`: colours and sizes.

A new chart of an audit belongs in `audit`; to show it in the report, name it in `dafh.report.page`.
"""

from dafh.plots.audit import composition, envy, gains, named_groups, preference_matrix
from dafh.plots.partitions import partition_panel, side_by_side, synthetic_panels
from dafh.plots.study import attribute_panels, study_convergence
from dafh.plots.training import CURVES, convergence, curve

__all__ = [
    "CURVES",
    "attribute_panels",
    "composition",
    "convergence",
    "curve",
    "envy",
    "gains",
    "named_groups",
    "partition_panel",
    "preference_matrix",
    "side_by_side",
    "study_convergence",
    "synthetic_panels",
]
