"""Groups that are learned together with their classifiers.

- `exceptions`: a short ordered list of regions, grown and chosen on held-out rows; `summary`: the list in words;
- `corrections`: what own classifiers are linear in, and what they add to the pooled logits;
- `network`: a population of group networks that starts from the exceptions, the way into `dafh.engine`; `recipe`: its
  settings;
- `trained`: what `DAFHClassifier` asks of groups, by exceptions or by a network, which is served in NumPy;
- `judging`: what calibration rows say about models that were trained without them.

Another way to learn groups belongs here. `dafh.estimators.learning` calls it, with out-of-fold logits; it returns a
model with the methods of `trained.ExceptionModel`. A way to divide rows first and to fit classifiers afterwards is a
partition instead (`dafh.partitions`).
"""
