"""The two estimators, and what they share.

- `dafh`: `DAFHClassifier`, which learns groups and their classifiers together;
- `decoupled`: `DecoupledClassifier`, one classifier for each part of a given partition;
- `pooled`: the pooled classifier, fitted here or brought by the user, and its nested logits;
- `learning`: groups as a list of exceptions, or by a network, and what held-out rows say about them;
- `guarded`: the guard in a fit: the rows that judge, the losses that count, and who serves; the same for both.

Another estimator belongs here if it serves groups. It inherits `guarded.GuardedMixin`; metrics, audit, explanation
and report then work with it. To be saved it needs a line in `dafh.persistence.CLASSES`.
"""
