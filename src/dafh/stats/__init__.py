"""Statistics of paired comparisons, and the theorems; knows nothing of models.

- `differences`: one test and one limit for two classifiers on the same rows, whatever the loss;
- `paired`: the same for counts of rows: exact tests, intervals, corrections for many questions, and rows needed;
- `bounds`: Theorem 1 and Theorem 2 of the paper, corrected.

Functions of counts only, NumPy and SciPy only. A new test or interval belongs here, with a simulation of its coverage.
"""

from dafh.stats.bounds import (
    deviation_epsilon,
    deviation_factor,
    deviation_probability,
    deviation_rows,
    discrepancy_bound,
)
from dafh.stats.differences import Differences
from dafh.stats.paired import (
    PairedInterval,
    bonferroni,
    excluded_harm,
    holm,
    mcnemar_p,
    paired_interval,
    rows_needed,
)

__all__ = [
    "Differences",
    "PairedInterval",
    "bonferroni",
    "deviation_epsilon",
    "deviation_factor",
    "deviation_probability",
    "deviation_rows",
    "discrepancy_bound",
    "excluded_harm",
    "holm",
    "mcnemar_p",
    "paired_interval",
    "rows_needed",
]
