"""The two estimators, and what they share.

- `dafh`: `DAFHClassifier`, which learns groups and their classifiers together;
- `decoupled`: `DecoupledClassifier`, one classifier for each part of a given partition;
- `pooled`: the pooled classifier, fitted or the user's own, and its out-of-fold logits;
- `guarded`: the life of the guard, the same for both.

Another estimator belongs here if it serves groups; it inherits `guarded.GuardedMixin`, and metrics, audit, report and
study then work with it.
"""
