"""Leakage: columns that give another column away."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.tables.values import distinct, is_ordered

ROWS_TO_COMPARE = 4000
"""Rows that are enough to see leakage: a fit on more would only take longer."""
_LEAST_ACCURACY = 0.95
# Of the errors that the most frequent value makes. Where 96% of the rows have one value, 95% accuracy shows nothing.
_LARGEST_SHARE_OF_ERRORS = 0.2


def positions(column: pd.Series) -> NDArray[np.intp]:
    """Number the values of a column in their order; a gap is −1."""
    codes, values = distinct(column)
    keys = np.asarray(values) if is_ordered(column) else np.array([str(value) for value in values])
    place = np.append(np.argsort(np.argsort(keys)), -1)
    return place[codes]


def predicts(feature: NDArray[np.intp], outcome: NDArray[np.intp]) -> bool:
    """Whether a small tree on one column predicts another almost perfectly, on rows that it was not fitted on."""
    from sklearn.tree import DecisionTreeClassifier

    fitted, asked = slice(0, None, 2), slice(1, None, 2)
    if len(np.unique(outcome[fitted])) < 2:
        return False
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(feature[fitted, None], outcome[fitted])
    right = (tree.predict(feature[asked, None]) == outcome[asked]).mean()
    usual = np.unique(outcome[asked], return_counts=True)[1].max() / len(outcome[asked])
    return bool(right >= _LEAST_ACCURACY and 1 - right <= _LARGEST_SHARE_OF_ERRORS * (1 - usual))
