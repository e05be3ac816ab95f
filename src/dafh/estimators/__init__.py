"""The two estimators, and what they share.

- `dafh`: `DAFHClassifier`, which learns groups and their classifiers together;
- `decoupled`: `DecoupledClassifier`, one classifier for each part of a given partition;
- `pooled`: the pooled classifier, fitted here or brought by the user, and its nested logits;
- `learning`: groups by rules, by a network, or by whichever is better on held-out rows;
- `guarded`: the guard logic, from the rows it sees to the classifiers that serve, the same for both.

Another estimator belongs here if it serves groups. It inherits `guarded.GuardedMixin`; metrics, audit, explanation
and report then work with it. To be saved it needs a line in `dafh.persistence.CLASSES`.
"""
