"""The rows of a fit: checked once, in one container, and divided into those that train and those that are held out.

- `checked`: the container, with features, labels, weights and attributes side by side, and columns that only the pooled
  classifier sees;
- `seen`: rows as they were given, as numbers, and as bins;
- `held_out`: which rows are held out in which fold, and what for.

Rows that are not in memory come from `dafh.large`, a sample of them in the same container.
"""
