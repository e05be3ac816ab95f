"""DecoupledClassifier: one copy of any classifier for every part of any partition."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dafh.checks import (
    NOTHING,
    RANDOM_STATE,
    Constraints,
    check_features,
    check_parameters,
    check_weights,
    having,
    instance_of,
    unchanged_on_error,
    whole_number,
)
from dafh.classifiers.fitting import fit_clone, fit_group, seeded, stratified_folds
from dafh.classifiers.logits import class_probabilities
from dafh.estimators.guarded import GuardedMixin
from dafh.evaluation.guard import GuardKind, GuardReport
from dafh.evaluation.paired import ComparedRows, PairedCounts
from dafh.exceptions import InputError
from dafh.frames import check_sensitive_features, is_frame, take_rows
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.partitions import NOBODY, ClusterPartition, Partition
from dafh.rows.held_out import set_rows_aside


def _gives_probabilities(classifier: Any) -> bool:
    models = (classifier.estimator, classifier.pooled)
    return all(model is None or hasattr(model, "predict_proba") for model in models)


class DecoupledClassifier(GuardedMixin, ClassifierMixin, BaseEstimator):
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
    guard : {"veto", "proof"} or None, default=None
        What is done for groups that their own classifier serves worse than the pooled one; see
        `dafh.evaluation.guard`. "veto": all rows judge, in five folds, classifiers that were fitted without them
        (the partition stays as it is). "proof": calibration rows, held out of everything else, must show that the own
        classifier is not worse. None: nothing.
    guard_level, guard_margin : float, default=0.05 and 0
        As in `DAFHClassifier`.
    calibration_size : float or "auto", default="auto"
        Share of the rows that "proof" keeps from everything; "auto" is 0.2.
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
        The classifier that serves each group; `pooled_` itself where that does.
    serves_ : array of shape (`n_groups_`,)
        Its number: the group's own, another group's, or `n_groups_` where the guard chose the pooled one.
    guard_report_ : GuardReport or None
        What the guard did for each group, and why; prints as a table.
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

    _constraints: ClassVar[Constraints] = {
        "partition": (instance_of(Partition), NOTHING),
        "estimator": (
            having("fit", "predict"),
            NOTHING,
        ),
        "pooled": (
            having("fit", "predict"),
            NOTHING,
        ),
        "min_group_size": (whole_number(1),),
        "random_state": (RANDOM_STATE,),
        **GuardedMixin._guard_constraints,
    }

    def __init__(
        self,
        partition: Partition | None = None,
        estimator: Any = None,
        *,
        pooled: Any = None,
        min_group_size: int = 1,
        guard: GuardKind | None = None,
        guard_level: float = 0.05,
        guard_margin: float = 0.0,
        calibration_size: float | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.partition = partition
        self.estimator = estimator
        self.pooled = pooled
        self.min_group_size = min_group_size
        self.guard = guard
        self.guard_level = guard_level
        self.guard_margin = guard_margin
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_calibration: Any = None,
        y_calibration: ArrayLike | None = None,
        sensitive_features_calibration: Any = None,
    ) -> Self:
        """Divide the rows, then fit the pooled classifier and one per group.

        Parameters
        ----------
        X : array or numeric data frame of shape (n, d)
        y : array of shape (n,)
        sensitive_features : data frame, series or array with n rows, optional
            For partitions that need it; never seen by the classifiers.
        sample_weight : array of shape (n,), optional
        X_calibration, y_calibration, sensitive_features_calibration : like the first three, optional
            Rows for the guard, and for nothing else. Without them it uses rows of X.
        """
        with unchanged_on_error(self):
            check_parameters(self, self._constraints)
            given_rows = self._check_calibration_rows(X_calibration, y_calibration)
            values, y = check_features(self, X, y, reset=True)
            check_classification_targets(y)
            counted, weight = self._counted_rows(values, y, sample_weight)
            table = check_sensitive_features(sensitive_features, len(values))
            rows = _Rows(values, X if is_frame(X) else values, y, table, weight).take(counted)

            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            estimator = seeded(StandardizedLogisticRegression() if self.estimator is None else self.estimator, seed)
            pooled = estimator if self.pooled is None else seeded(self.pooled, seed)
            partition = seeded(ClusterPartition() if self.partition is None else self.partition, seed)

            if given_rows:
                self._check_labelled_rows(X_calibration, y_calibration)
            train, apart = self._set_calibration_rows_aside(rows, seed, given=given_rows)
            self.partition_ = partition.fit(train.values, train.y, train.table, train.weight)
            self.n_groups_ = self.partition_.n_groups_
            members = self.partition_.members(train.values, train.table)
            self.pooled_, self._own_estimators, self._substitutes = self._fit_models(estimator, pooled, train, members)
            self._serve(None)
            if y_calibration is not None:
                self.recalibrate(X_calibration, y_calibration, sensitive_features_calibration)
            else:
                self._serve(self._guard_report(estimator, pooled, train, members, apart, seed))
        return self

    def _counted_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[NDArray[np.intp], NDArray[Any] | None]:
        weight = None
        rows = np.arange(len(X))
        if sample_weight is not None:
            weight = check_weights(sample_weight, len(X))
            rows = np.flatnonzero(weight > 0)
        self.classes_ = np.unique(y[rows])
        if len(self.classes_) < 2:
            raise InputError(f"y holds one class only ({self.classes_[0]!r}): at least two classes are needed.")
        return rows, weight

    def _set_calibration_rows_aside(self, rows: "_Rows", seed: int, *, given: bool) -> tuple["_Rows", "_Rows | None"]:
        if self.guard != "proof" or given:
            return rows, None
        kept, apart = set_rows_aside(rows.y, self._calibration_share(), np.random.default_rng(seed))
        return rows.take(kept), rows.take(apart)

    def _fit_models(
        self, estimator: Any, pooled: Any, rows: "_Rows", members: list[NDArray[np.intp]]
    ) -> tuple[Any, list[Any], list[Any]]:
        """Pooled classifier, one classifier per group, and those for people whom a tree knows in part."""
        everybody = fit_clone(pooled, rows.given, rows.y, rows.weight)
        models = []
        for group in members:
            part = rows.take(group)
            small = len(group) < self.min_group_size
            models.append(everybody if small else fit_group(estimator, part.given, part.y, part.weight))
        return everybody, models[: self.n_groups_], models[self.n_groups_ :]

    def _guard_report(
        self,
        estimator: Any,
        pooled: Any,
        train: "_Rows",
        members: list[NDArray[np.intp]],
        apart: "_Rows | None",
        seed: int,
    ) -> GuardReport | None:
        if self.guard is None:
            return None
        if apart is not None:
            groups = self.partition_.assign(apart.values, apart.table)
            counts = self._count(apart, groups, self._own_estimators, self.pooled_)
            return self._decide(counts, cross_fitted=False)
        folds = stratified_folds(train.y, 5, seed) or ()
        groups = self.partition_.assign(train.values, train.table)
        counts = PairedCounts.zero(self.n_groups_, self.n_groups_)
        for kept, held_out in folds:
            rest = [np.searchsorted(kept, np.intersect1d(group, kept)) for group in members[: self.n_groups_]]
            everybody, own, _ = self._fit_models(estimator, pooled, train.take(kept), rest)
            counts = counts.plus(self._count(train.take(held_out), groups[held_out], own, everybody))
        return self._decide(counts, cross_fitted=True)

    def _count(self, rows: "_Rows", groups: NDArray[np.intp], own: list[Any], pooled: Any) -> PairedCounts:
        """Compare classifiers on the rows that belong to a group; the pooled one serves all others anyway."""
        known = np.flatnonzero((groups != NOBODY) & (groups < self.n_groups_))
        if not len(known):
            return PairedCounts.zero(self.n_groups_, self.n_groups_)
        rows = rows.take(known)
        labels = np.column_stack([model.predict(rows.given) for model in own])
        compared = ComparedRows.check(rows.y, labels, groups[known], pooled.predict(rows.given), None, rows.weight)
        return compared.paired_counts()

    def _serve(self, report: GuardReport | None) -> None:
        """Let the classifiers serve as the guard has decided; without it, each its own group."""
        self.guard_report_ = report
        self.serves_ = np.arange(self.n_groups_) if report is None else report.serves
        models = [*self._own_estimators, self.pooled_]
        self.estimators_ = [models[k] for k in self.serves_]
        # Nobody has judged the classifiers for people whom a tree knows in part.
        self._guarded_substitutes = self._substitutes if report is None else [self.pooled_] * len(self._substitutes)

    def recalibrate(
        self, X: Any, y: ArrayLike, sensitive_features: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Let the guard decide anew, on fresh rows that were used for nothing else; nothing is refitted.

        Arguments are those of `fit`.
        """
        self._check_guard()
        self._check_labelled_rows(X, y)
        given, groups = self._check_rows(X, sensitive_features)
        y = np.asarray(y)
        weight = None if sample_weight is None else check_weights(sample_weight, len(groups))
        rows = _Rows(groups, given, y, None, weight)
        self._serve(self._decide(self._count(rows, groups, self._own_estimators, self.pooled_), cross_fitted=False))
        return self

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
            labels[rows] = model.predict(take_rows(given, rows))
        return labels

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Probability of each class, by the classifier of the row's group."""
        given, groups = self._check_rows(X, sensitive_features)
        probabilities = np.empty((len(groups), len(self.classes_)))
        for rows, model in self._served_rows(groups):
            probabilities[rows] = class_probabilities(model, take_rows(given, rows), self.classes_)
        return probabilities

    def predict_all(self, X: Any) -> NDArray[Any]:
        """Label of each row by every classifier, (n, `n_groups_` + 1); the pooled classifier is the last column."""
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
        models = [*self.estimators_, self.pooled_, *self._guarded_substitutes]
        return [(np.flatnonzero(groups == k), models[k]) for k in np.unique(groups)]


@dataclass(frozen=True)
class _Rows:
    """Checked rows: `values` for the partition, `given` for the classifiers."""

    values: NDArray[Any]
    given: Any
    y: NDArray[Any]
    table: Any
    weight: NDArray[Any] | None

    def take(self, rows: NDArray[np.intp]) -> "_Rows":
        table = None if self.table is None else self.table.iloc[rows]
        weight = None if self.weight is None else self.weight[rows]
        return _Rows(self.values[rows], take_rows(self.given, rows), self.y[rows], table, weight)
