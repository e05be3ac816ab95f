"""How well each group is served, by which classifier, and what the rows can show about it.

- `paired`: rows reduced to which classifier is right on which, and the counts that all tests need;
- `matrix` and `metrics`: the preference matrix, and the numbers of the paper;
- `served`: what a fitted model of this package predicts, ready to be compared;
- `named_groups`: groups defined by sensitive attributes, and their intersections;
- `questions`: test, interval and answer for each question;
- `audit`, `result` and `verdict`: all answers together, and the only place that pronounces a verdict;
- `guard`: which classifier serves which group;
- `equality`: comparison of the records above.

A new metric belongs in `matrix`, a new question in `questions`. All of this room, the guard and `dafh.stats` know the
0-1 loss only, as counts of rows: another loss needs losses per row in `paired` and tests of means in `dafh.stats`.
"""

from dafh.evaluation.audit import audit
from dafh.evaluation.guard import GuardReport, choose_servers
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.evaluation.metrics import (
    accuracy,
    disagreement,
    disparity_change,
    max_envy_gap,
    max_gain,
    min_envy_gap,
    min_gain,
    pr_without_harm,
    violations,
)
from dafh.evaluation.paired import ComparedRows, PairedCounts
from dafh.evaluation.result import AuditResult
from dafh.evaluation.served import ServedPredictions
from dafh.evaluation.verdict import Verdict

__all__ = [
    "AuditResult",
    "ComparedRows",
    "GuardReport",
    "PairedCounts",
    "PreferenceMatrix",
    "ServedPredictions",
    "Verdict",
    "accuracy",
    "audit",
    "choose_servers",
    "disagreement",
    "disparity_change",
    "max_envy_gap",
    "max_gain",
    "min_envy_gap",
    "min_gain",
    "pr_without_harm",
    "violations",
]
