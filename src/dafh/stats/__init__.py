"""Statistics of paired comparisons, and the theorems; knows nothing of models.

- `differences`: one test and one limit for two classifiers on the same rows, whatever the loss;
- `paired`: McNemar's exact test, the correction for many questions, and rows needed;
- `sequential`: evidence of harm, limits of a gain and evidence of drift that may be looked at after every row, forever;
- `bounds`: Theorem 1 and Theorem 2 of the paper, corrected.

Functions of counts only, NumPy and SciPy only. A new test or interval belongs here, with a simulation of its coverage.
"""

from dafh.stats.bounds import deviation_epsilon, deviation_factor, discrepancy_bound
from dafh.stats.differences import Differences
from dafh.stats.paired import holm, mcnemar_p, robust_radius, rows_needed
from dafh.stats.sequential import Bettors, WeightedCounts, drift_evidence, share_interval

__all__ = [
    "Bettors",
    "Differences",
    "WeightedCounts",
    "deviation_epsilon",
    "deviation_factor",
    "discrepancy_bound",
    "drift_evidence",
    "holm",
    "mcnemar_p",
    "robust_radius",
    "rows_needed",
    "share_interval",
]
