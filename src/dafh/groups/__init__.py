"""Groups that are learned together with their classifiers.

- `exceptions`: a short ordered list of regions, grown and chosen on held-out rows; `summary`: the list in words;
- `corrections`: what own classifiers are linear in, and what they add to the pooled logits;
- `algorithm`: the paper's Algorithm 1 in plain NumPy, to be read beside the paper;
- `objective`: what the network maximises, on one page; `recipe`: its settings, the paper's among them;
- `network`: a population of networks, trained as one compiled program. It and `objective` alone import JAX;
- `trained`: what `DAFHClassifier` asks of groups, by exceptions or by a network, which is served in NumPy;
- `judging`: what calibration rows say about models that were trained without them.

Another way to learn groups belongs here. `dafh.estimators.learning` calls it, with out-of-fold logits; it returns a
model with the methods of `trained.ExceptionModel`. A way to divide rows first and to fit classifiers afterwards is a
partition instead (`dafh.partitions`).
"""
