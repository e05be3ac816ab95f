"""DecoupledClassifier: one copy of any classifier for every part of any partition."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dafh._pooled import StandardizedLogisticRegression, class_probabilities, fit_clone, fit_group, seeded
from dafh._validation import (
    HasMethods,
    Interval,
    check_features,
    check_sensitive_features,
    check_weights,
    is_frame,
    unchanged_on_error,
)
from dafh.exceptions import InputError
from dafh.partitions import NOBODY, ClusterPartition, Partition


def _gives_probabilities(classifier: Any) -> bool:
    models = (classifier.estimator, classifier.pooled)
    return all(model is None or hasattr(model, "predict_proba") for model in models)


class DecoupledClassifier(ClassifierMixin, BaseEstimator):
    """Serve every group of a partition by a classifier of its own, beside a pooled one for comparison.

    The rules for difficult groups are the same for all partitions: a group with fewer than `min_group_size` rows in
    training, and a row that belongs to no group seen in training, are served by the pooled classifier (a row that a
    tree knows up to some node, by that node's); a group whose rows all have one label gets that label.

    Parameters
    ----------
    partition : Partition or None, default=None
        Who belongs to which group; None is two clusters.
    estimator : classifier or None, default=None
        Copied for every group; None is logistic regression, fitted to convergence.
    pooled : classifier or None, default=None
        Copied and fitted on all rows, for comparison; None is the same as `estimator`.
    min_group_size : int, default=1
        Rows that a group needs for a classifier of its own.
    random_state : int, RandomState or None, default=None
        Also takes the place of every random state that partition and classifiers leave open.

    Attributes
    ----------
    classes_ : array
        Labels, as they were given.
    partition_ : Partition
        The fitted partition.
    pooled_ : classifier
        Fitted on all rows.
    estimators_ : list
        The classifier of each group; `pooled_` itself where that serves the group.
    n_groups_ : int
        Number of groups.

    Examples
    --------
    >>> from dafh import DecoupledClassifier
    >>> from dafh.datasets import make_paper_synthetic
    >>> from dafh.partitions import IntersectionPartition
    >>> data = make_paper_synthetic(2000, random_state=0)
    >>> model = DecoupledClassifier(IntersectionPartition()).fit(data.X, data.y, data.sensitive_features)
    >>> model.n_groups_, model.score(data.X, data.y, data.sensitive_features) > 0.95
    (4, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "partition": [Partition, None],
        "estimator": [HasMethods(["fit", "predict"]), None],
        "pooled": [HasMethods(["fit", "predict"]), None],
        "min_group_size": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        partition: Partition | None = None,
        estimator: Any = None,
        *,
        pooled: Any = None,
        min_group_size: int = 1,
        random_state: Any = None,
    ) -> None:
        self.partition = partition
        self.estimator = estimator
        self.pooled = pooled
        self.min_group_size = min_group_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sensitive_features: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Divide the rows, then fit the pooled classifier and one per group.

        Parameters
        ----------
        X : array or numeric data frame of shape (n, d)
        y : array of shape (n,)
        sensitive_features : data frame, series or array with n rows, optional
            For partitions that need it; never seen by the classifiers.
        sample_weight : array of shape (n,), optional
        """
        with unchanged_on_error(self):
            self._validate_params()
            values, y = check_features(self, X, y, reset=True)
            check_classification_targets(y)
            rows, weight = self._counted_rows(values, y, sample_weight)
            given = _safe_indexing(X if is_frame(X) else values, rows)
            table = check_sensitive_features(sensitive_features, len(values))
            table = None if table is None else table.iloc[rows]

            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            estimator = seeded(StandardizedLogisticRegression() if self.estimator is None else self.estimator, seed)
            pooled = estimator if self.pooled is None else seeded(self.pooled, seed)
            partition = seeded(ClusterPartition() if self.partition is None else self.partition, seed)

            self.partition_ = partition.fit(values[rows], y[rows], table, weight)
            self.pooled_ = fit_clone(pooled, given, y[rows], weight)
            self._fit_groups(estimator, given, y[rows], self.partition_.members(values[rows], table), weight)
        return self

    def _counted_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[NDArray[np.intp], NDArray[Any] | None]:
        weight = None
        rows = np.arange(len(X))
        if sample_weight is not None:
            weight = check_weights(sample_weight, X)
            rows = np.flatnonzero(weight > 0)
            weight = weight[rows]
        self.classes_ = np.unique(y[rows])
        if len(self.classes_) < 2:
            raise InputError(f"y holds one class only ({self.classes_[0]!r}): at least two classes are needed.")
        return rows, weight

    def _fit_groups(self, estimator: Any, given: Any, y: Any, members: list[NDArray[np.intp]], weight: Any) -> None:
        self.n_groups_ = self.partition_.n_groups_
        models = [
            self.pooled_
            if len(rows) < self.min_group_size
            else fit_group(estimator, _safe_indexing(given, rows), y[rows], None if weight is None else weight[rows])
            for rows in members
        ]
        self.estimators_ = models[: self.n_groups_]
        self._substitutes = models[self.n_groups_ :]

    def _check_rows(self, X: Any, sensitive_features: Any) -> tuple[Any, NDArray[np.intp]]:
        """X as the classifiers take it, and the position of each row's classifier among all there are."""
        check_is_fitted(self)
        values = check_features(self, X, reset=False)
        table = check_sensitive_features(sensitive_features, len(values))
        groups = self.partition_.assign(values, table)
        # Groups come first, then the pooled classifier, then what a tree has for people it knows in part.
        position = np.where(groups < self.n_groups_, groups, groups + 1)
        return X if is_frame(X) else values, np.where(groups == NOBODY, self.n_groups_, position)

    def predict_group(self, X: Any, sensitive_features: Any = None) -> NDArray[np.intp]:
        """Group of each row; `n_groups_`, the column of the pooled classifier in `predict_all`, for a row of none.

        Metrics count such a row as served by the pooled classifier, also where a tree has an ancestor's for it.
        """
        return self._check_rows(X, sensitive_features)[1].clip(max=self.n_groups_)

    def predict(self, X: Any, sensitive_features: Any = None) -> NDArray[Any]:
        """Label of each row, by the classifier of its group."""
        given, groups = self._check_rows(X, sensitive_features)
        labels = np.empty(len(groups), dtype=self.classes_.dtype)
        for rows, model in self._served_rows(groups):
            labels[rows] = model.predict(_safe_indexing(given, rows))
        return labels

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Probability of each class, by the classifier of the row's group."""
        given, groups = self._check_rows(X, sensitive_features)
        probabilities = np.empty((len(groups), len(self.classes_)))
        for rows, model in self._served_rows(groups):
            probabilities[rows] = class_probabilities(model, _safe_indexing(given, rows), self.classes_)
        return probabilities

    def predict_all(self, X: Any) -> NDArray[Any]:
        """Label of each row by every classifier, (n, n_groups_ + 1); the pooled classifier is the last column."""
        check_is_fitted(self)
        values = check_features(self, X, reset=False)
        given = X if is_frame(X) else values
        return np.column_stack([model.predict(given) for model in [*self.estimators_, self.pooled_]])

    def score(
        self, X: Any, y: ArrayLike, sensitive_features: Any = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Accuracy of `predict`."""
        return float(accuracy_score(y, self.predict(X, sensitive_features), sample_weight=sample_weight))

    def _served_rows(self, groups: NDArray[np.intp]) -> list[tuple[NDArray[np.intp], Any]]:
        """Rows that each classifier serves, without those that serve none."""
        models = [*self.estimators_, self.pooled_, *self._substitutes]
        return [(np.flatnonzero(groups == k), models[k]) for k in np.unique(groups)]
