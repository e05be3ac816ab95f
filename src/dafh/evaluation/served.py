"""What a fitted model of this package predicts, ready to be compared."""

import inspect
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dafh.classifiers.pipelines import split_pipeline


class ServedPredictions(NamedTuple):
    """What a fitted model of this package predicts for some rows, as `PreferenceMatrix` and `audit` take it."""

    predictions: NDArray[Any]
    """One column for each classifier that serves somebody, the pooled one apart."""
    groups: NDArray[np.intp]
    pooled: NDArray[Any]
    own: NDArray[np.intp]
    """Column that serves each group; the number of columns for the pooled classifier."""
    classifiers: list[int]
    """Number of the classifier in each column."""

    @classmethod
    def of(cls, model: Any, X: Any, sensitive_features: Any = None) -> "ServedPredictions":
        """Ask the model, or the pipeline that ends in one."""
        model, X = split_pipeline(model, X)
        labels = model.predict_all(X)
        takes_attributes = "sensitive_features" in inspect.signature(model.predict_group).parameters
        known = {"sensitive_features": sensitive_features} if takes_attributes else {}
        groups = model.predict_group(X, **known)
        # Column k of predict_all is the classifier that serves group k: each classifier is taken once.
        classifiers, first, column = np.unique(model.serves_, return_index=True, return_inverse=True)
        chosen = classifiers < model.n_groups_
        nobody = [int(chosen.sum())] * (int(groups.max(initial=0)) + 1 - model.n_groups_)
        return cls(
            labels[:, first[chosen]],
            groups,
            labels[:, -1],
            np.append(column, nobody).astype(np.intp),
            classifiers[chosen].tolist(),
        )
