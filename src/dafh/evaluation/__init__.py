"""How well each group is served, by which classifier, and what the rows can show about it.

- `losses`: error, false positive rate, false negative rate and costs, as what is at stake on each row;
- `paired`: predictions reduced to which classifier is right on which row, and what that says about two classifiers;
- `matrix`: the preference matrix, and the numbers of the paper;
- `named_groups`: groups defined by sensitive attributes, and their intersections;
- `questions`: test, interval and answer for each question, and how often each group is flagged;
- `audit` and `result`: all answers together, and the tables that people see;
- `theorems`: the paper's Theorems 1 and 2 for a fitted model;
- `recommendation`: the verdict: for which groups the rows support their own classifiers, and what to do;
- `discovery`: groups that nobody has named, found on one half of the rows and tested on the other;
- `compare` and `comparison`: who loses from a change of model, whom one model fails, and the words for it;
- `every_rule`: one limit of harm for all groups that two conditions describe;
- `guard` and `guard_report`: which classifier serves which group, and why.

A new metric belongs in `matrix`, a new question in `questions`, and a new loss in `losses`: what a wrong decision costs
on each row is all that tests, guard and audit need to know about it.
"""

from dafh.evaluation.audit import audit
from dafh.evaluation.guard import choose_servers
from dafh.evaluation.guard_report import GuardReport
from dafh.evaluation.losses import Costs, Loss, check_losses
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.evaluation.paired import ComparedRows, ServedPredictions
from dafh.evaluation.recommendation import Recommendation
from dafh.evaluation.result import AuditResult
from dafh.evaluation.theorems import Theorems, theorems

__all__ = [
    "AuditResult",
    "ComparedRows",
    "Costs",
    "GuardReport",
    "Loss",
    "PreferenceMatrix",
    "Recommendation",
    "ServedPredictions",
    "Theorems",
    "audit",
    "check_losses",
    "choose_servers",
    "theorems",
]
