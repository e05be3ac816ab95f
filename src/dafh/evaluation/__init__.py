"""How well each group is served, by which classifier, and what the rows can show about it.

- `losses`: error, false positive rate, false negative rate and costs, as what is at stake on each row;
- `paired`: rows reduced to which classifier is right on which, and what that says about two classifiers;
- `matrix`: the preference matrix, and the numbers of the paper;
- `served`: what a fitted model of this package predicts, ready to be compared;
- `named_groups`: groups defined by sensitive attributes, and their intersections;
- `questions`: test, interval and answer for each question;
- `rates`: how often each group is flagged, and the kinds of error;
- `audit`, `result` and `verdict`: all answers together, and the only place that pronounces a verdict;
  `figures` has what is asked for first, and `audit_tables` the tables for readers;
- `deployment` and `recommendation`: for which groups the rows support their own classifiers, and what to do;
  `recommendation_words` has the sentences;
- `guard` and `guard_report`: which classifier serves which group, and why;
- `equality`: comparison of the records above.

A new metric belongs in `matrix`, a new question in `questions`, and a new loss in `losses`: what a wrong decision costs
on each row is all that tests, guard and audit need to know about it.
"""

from dafh.evaluation.audit import audit
from dafh.evaluation.guard import choose_servers
from dafh.evaluation.guard_report import GuardReport
from dafh.evaluation.losses import Costs, Loss, check_losses
from dafh.evaluation.matrix import PreferenceMatrix
from dafh.evaluation.paired import ComparedRows
from dafh.evaluation.recommendation import Recommendation
from dafh.evaluation.result import AuditResult
from dafh.evaluation.served import ServedPredictions
from dafh.evaluation.verdict import Verdict

__all__ = [
    "AuditResult",
    "ComparedRows",
    "Costs",
    "GuardReport",
    "Loss",
    "PreferenceMatrix",
    "Recommendation",
    "ServedPredictions",
    "Verdict",
    "audit",
    "check_losses",
    "choose_servers",
]
