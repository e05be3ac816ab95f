"""Groups that are learned together with their classifiers.

- `rules`: a tree of questions with the group of each leaf, and the same in words; `rules_in_use`: as people read them;
- `growing`: the tree, on the errors of the pooled classifier; `merging`: its leaves, put together into groups;
- `exact`: candidates compared on held-out rows, and the best of them fitted exactly;
- `corrections`: what own classifiers are linear in, and what they add to the pooled logits;
- `network`: a population of group networks that starts from the rules, the way into `dafh.engine`; `recipe`: its
  settings;
- `trained`: what `DAFHClassifier` asks of groups, by rules or by a network, which is served in NumPy;
- `judging`: what calibration rows say about models that were trained without them.

Another way to learn groups belongs here. `dafh.estimators.learning` calls it, with logits and folds that are nested; it
returns a model with the methods of `trained.RuleModel`. A way to divide rows first and to fit classifiers afterwards is
a partition instead (`dafh.partitions`).
"""
