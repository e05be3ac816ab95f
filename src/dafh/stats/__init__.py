"""Statistics of paired comparisons, and the theorems; knows nothing of models.

- `differences`: one test and one limit for two classifiers on the same rows, whatever the loss;
- `paired`: McNemar's exact test, the correction for many questions, and rows needed;
- `sequential`: evidence of harm that may be looked at after every row, forever;
- `sequences`: limits of a gain that hold at all times together;
- `drift`: evidence that shares of rows are no longer what they were in training;
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
from dafh.stats.drift import drift_evidence, known_share
from dafh.stats.paired import holm, mcnemar_p, robust_radius, rows_needed
from dafh.stats.sequences import WeighedCounts
from dafh.stats.sequential import Bettors

__all__ = [
    "Bettors",
    "Differences",
    "WeighedCounts",
    "deviation_epsilon",
    "deviation_factor",
    "deviation_probability",
    "deviation_rows",
    "discrepancy_bound",
    "drift_evidence",
    "holm",
    "known_share",
    "mcnemar_p",
    "robust_radius",
    "rows_needed",
]
