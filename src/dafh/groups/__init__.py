"""Groups that are learned together with their classifiers.

- `recipe`: how training works, every setting in one place;
- `network`: a population of group networks trained on checked rows, and the best of it; the way into `dafh.engine`;
- `cuts`: points of a column where the errors of the pooled classifier change;
- `serving`: the trained model in NumPy.

Another way to learn groups and classifiers together belongs here, beside `network`; `DAFHClassifier.fit` calls it,
and it returns a `FittedPopulation`. A way to divide rows first and to fit classifiers afterwards is a partition
instead (`dafh.partitions`).
"""
