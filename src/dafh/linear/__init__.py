"""Linear classifiers, fitted to convergence.

- `logistic`: the logistic regression that is used wherever the user passes no classifier;
- `discrepancy`: how differently two groups can look to linear classifiers (Theorem 2).

Another linear or additive model, and the solver behind it, belongs here.
"""

from dafh.linear.discrepancy import linear_discrepancy
from dafh.linear.logistic import StandardizedLogisticRegression

__all__ = ["StandardizedLogisticRegression", "linear_discrepancy"]
