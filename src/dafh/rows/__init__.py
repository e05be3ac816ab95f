"""The rows of a fit: checked once, in one container, and divided into those that train and those that are held out.

- `checked`: the container, with features, labels, weights and attributes side by side;
- `aside`: columns that only the pooled classifier sees;
- `seen`: rows as they were given, as numbers, and as bins;
- `held_out`: which rows are held out in which fold, and what for.

Another home for the rows (files larger than memory, a cluster) belongs here, behind the same container.
"""
