"""Groups that are learned, with their classifiers.

- `recipe`: how training works, every setting in one place;
- `network`: a population of group networks trained on checked rows, and the best of it; the way into `dafh.engine`;
- `cuts`: points of a column where the errors of the pooled classifier change;
- `serving`: the trained model in NumPy.

Another way to learn groups belongs here, beside `network`. Groups that are given, by attributes or by rules somebody
wrote down, are in `dafh.partitions`.
"""
