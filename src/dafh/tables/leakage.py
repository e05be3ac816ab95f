"""Columns that give another column away."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dafh.tables.values import is_date

# Rows that are enough to see that one column tells another, and how well it must do that.
ROWS_TO_COMPARE = 4000
_TELLS = 0.95


def positions(column: pd.Series) -> NDArray[Any]:
    """Number the values of a column in their order; a gap is −1."""
    codes, values = pd.factorize(column)
    ordered = pd.api.types.is_numeric_dtype(column.dtype) or is_date(column)
    keys = np.asarray(values) if ordered else np.array([str(value) for value in values])
    place = np.append(np.argsort(np.argsort(keys)), -1)
    return place[codes]


def predicts(feature: NDArray[Any], outcome: NDArray[Any]) -> bool:
    """Whether a small tree on one column gets another one right, on rows that did not make the tree."""
    from sklearn.tree import DecisionTreeClassifier

    made, asked = slice(0, None, 2), slice(1, None, 2)
    if len(np.unique(outcome[made])) < 2:
        return False
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(feature[made, None], outcome[made])
    right = (tree.predict(feature[asked, None]) == outcome[asked]).mean()
    usual = np.unique(outcome[asked], return_counts=True)[1].max() / len(outcome[asked])
    return bool(right >= _TELLS and 1 - right <= 0.2 * (1 - usual))
