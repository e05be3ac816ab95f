"""What the package asks of a classifier, and of a model that serves groups, as types."""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dafh.frames import Table


class Classifier(Protocol):
    """A classifier of scikit-learn's kind; `classes_` is there once it is fitted."""

    classes_: NDArray[Any]

    def fit(self, X: Table, y: ArrayLike) -> Self:
        """Learn from labelled rows."""
        ...

    def predict(self, X: Table) -> NDArray[Any]:
        """Label of each row."""
        ...

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class; some classifiers have none."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor, those of inner estimators with their path as a prefix."""
        ...

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        ...


class GroupModel(Classifier, Protocol):
    """A fitted model that serves groups: what metrics, audit, report and study rely on."""

    n_groups_: int
    pooled_: Classifier
    serves_: NDArray[np.intp]
    """Classifier that serves each group: a number from 0, or `n_groups_` for the pooled one."""

    def predict_group(self, X: Table) -> NDArray[np.intp]:
        """Group of each row."""
        ...

    def predict_all(self, X: Table) -> NDArray[Any]:
        """Label of each row by the classifier of each group, and by the pooled one in the last column."""
        ...
