"""Any classifier of scikit-learn's kind, whoever wrote it: copying, fitting and predicting.

- `fitting`: fresh copies fitted with weights, seeds for what is left random, out-of-fold probabilities;
- `logits`: probabilities and logits in the order of the classes, and the label that a logit stands for;
- `protocols`: what is asked of a classifier, and of a model that serves groups, as types;
- `pipelines`: the last step of a pipeline, and what comes before it.

It knows nothing about groups. A new way to handle estimators in general belongs here; a classifier of our own belongs
in `dafh.linear`.
"""
