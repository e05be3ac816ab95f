"""Linear and additive classifiers, solved exactly.

- `scorecard`: the scorecard, which is the default pooled classifier;
- `effects`: which effects of a wide table get a coefficient;
- `designs`: what a regression is linear in, from bins or columns, and the sums over rows it needs;
- `newton`: losses, damped Newton steps, strengths of the penalty by evidence, out-of-fold logits;
- `threads`: one thread for each matrix, one core for each fold;
- `logistic`: the logistic regression of the paper; `discrepancy`: how differently two groups can look to linear
  classifiers (Theorem 2).

Another linear or additive model belongs here: give it a design, and `newton` solves it.
"""

from dafh.linear.discrepancy import linear_discrepancy
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.linear.scorecard import Scaling, Scorecard

__all__ = ["Scaling", "Scorecard", "StandardizedLogisticRegression", "linear_discrepancy"]
