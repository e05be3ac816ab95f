"""A partition of your own: two groups, split at one value of one feature.

A partition assigns rows to groups. `DecoupledClassifier` does the rest: it fits a classifier for each group and a
pooled one, handles groups with few rows or one label, and has the interface that all metrics use.
"""

import numpy as np

from dafh import DecoupledClassifier, PreferenceMatrix
from dafh.datasets import make_paper_synthetic
from dafh.partitions import Partition


class ThresholdPartition(Partition):
    """Split one feature at the quantile where the shares of a label in both halves differ most.

    Parameters
    ----------
    column : int
        Position of the feature.
    n_candidates : int
        Quantiles to try.
    """

    def __init__(self, column=0, n_candidates=9):
        self.column = column
        self.n_candidates = n_candidates

    def fit(self, X, y, sensitive_features=None, sample_weight=None):
        """Find the threshold; sets `group_names_`, which also says how many groups there are."""
        values = X[:, self.column]
        candidates = np.quantile(values, np.linspace(0.1, 0.9, self.n_candidates))
        self.threshold_ = max(candidates, key=lambda at: self._contrast(values, y, at))
        self.group_names_ = [f"feature {self.column} up to {self.threshold_:.2f}", "above"]
        return self

    def assign(self, X, sensitive_features=None):
        """Group of each row: 0 or 1. Rows that belong to no group would get `dafh.partitions.NOBODY`."""
        return (X[:, self.column] > self.threshold_).astype(int)

    @staticmethod
    def _contrast(values, y, at):
        shares = [np.mean(y[part] == y[0]) for part in (values <= at, values > at)]
        return abs(shares[0] - shares[1])


def main():
    """Compare the groups' own classifiers with the pooled one."""
    data = make_paper_synthetic(4_000, random_state=0)
    model = DecoupledClassifier(ThresholdPartition(column=1)).fit(data.X, data.y)
    print(model.partition_.group_names_)
    print(PreferenceMatrix.of(model, data.X, data.y).to_frame().round(3))


if __name__ == "__main__":
    main()
