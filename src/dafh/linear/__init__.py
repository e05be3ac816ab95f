"""Linear classifiers, fitted to convergence.

- `logistic`: the logistic regression that is used wherever the user brings no classifier;
- `discrepancy`: how differently two groups can be seen by linear classifiers (Theorem 2).

Another linear or additive model, and the solver behind it, belongs here.
"""
