"""DecoupledClassifier: one copy of any classifier for every part of any partition."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dafh.classifiers import Classifier, class_probabilities, fit_clone, fit_group, seeded, stratified_folds
from dafh.estimators.guarded import GuardedMixin
from dafh.estimators.prediction import PairedDecisions
from dafh.evaluation.compared import ComparedRows
from dafh.evaluation.guard import GuardKind
from dafh.evaluation.losses import LossName
from dafh.frames import Table, check_sensitive_features, is_frame, take_rows
from dafh.linear.logistic import StandardizedLogisticRegression
from dafh.partitions import NOBODY, ClusterPartition, Partition
from dafh.rows import LabelledRows, set_rows_aside
from dafh.validation import (
    NOTHING,
    RANDOM_STATE,
    Constraints,
    RandomState,
    TakesSparse,
    check_features,
    check_parameters,
    having,
    instance_of,
    one_of,
    unchanged_on_error,
    whole_number,
)

# Folds in which rows judge: with many rows, a classifier learns next to nothing from the fifth that five folds add.
_GUARD_FOLDS, _FEWER_GUARD_FOLDS, _MANY_ROWS = 5, 3, 20_000


def _gives_probabilities(classifier: "DecoupledClassifier") -> bool:
    """Whether all its classifiers have probabilities: those in use once it is fitted, else those to be copied."""
    fitted = getattr(classifier, "estimators_", None)
    models = [classifier.estimator, classifier.pooled] if fitted is None else [*fitted, classifier.pooled_]
    return all(model is None or hasattr(model, "predict_proba") for model in models)


class DecoupledClassifier(TakesSparse, GuardedMixin, ClassifierMixin, BaseEstimator):
    """Fit one classifier for every group of a partition, and a pooled one to compare with.

    The rules for difficult groups are the same for all partitions: a group with fewer than `min_group_size` rows in
    training, and a row that belongs to no group seen in training, are served by the pooled classifier; a group whose
    rows all have one label gets that label.

    Parameters
    ----------
    partition : Partition or None, default=None
        Which row belongs to which group; None is two clusters.
    estimator : classifier or None, default=None
        Copied for every group; None is logistic regression, fitted to convergence.
    pooled : classifier or None, default=None
        Copied and fitted on all rows, for comparison; None is the same as `estimator`.
    fit_on : {"group", "all"}, default="group"
        Rows that own classifiers are fitted on. "all": one copy of `estimator`, fitted on all rows, serves every group,
        and the guard chooses group by group between it and the pooled classifier. This is the guard for any model.
    min_group_size : int, default=1
        Rows that a group needs for a classifier of its own.
    guard : {"evidence", "proof"} or None, default=None
        When a group keeps its own classifier; see `dafh.evaluation.guard`. "evidence": only if rows favour it, with
        p ≤ 0.2; in five folds (three from 20,000 rows on), all rows judge classifiers that were fitted without them
        (the partition stays as it is). "proof": only if calibration rows, held out of everything else, show that it is
        not worse. None: always.
    guard_level, guard_margin, guard_losses, costs
        As in `DAFHClassifier`; every classifier decides by its own `predict`.
    calibration_size : float or "auto", default="auto"
        Share of the rows that "proof" holds out of everything else; "auto" is 0.2.
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
    >>> attributes = data.sensitive_features
    >>> model = DecoupledClassifier(IntersectionPartition()).fit(data.X, data.y, sensitive_features=attributes)
    >>> model.n_groups_, model.score(data.X, data.y, sensitive_features=attributes) > 0.95
    (4, True)
    """

    _constraints: ClassVar[Constraints] = {
        "partition": (instance_of(Partition), NOTHING),
        "estimator": (having("fit", "predict"), NOTHING),
        "pooled": (having("fit", "predict"), NOTHING),
        "fit_on": (one_of("group", "all"),),
        "min_group_size": (whole_number(1),),
        "random_state": (RANDOM_STATE,),
        **GuardedMixin._guard_constraints,
    }

    def __init__(
        self,
        partition: Partition | None = None,
        estimator: Classifier | None = None,
        *,
        pooled: Classifier | None = None,
        fit_on: Literal["group", "all"] = "group",
        min_group_size: int = 1,
        guard: GuardKind | None = None,
        guard_level: float = 0.05,
        guard_margin: float = 0.0,
        guard_losses: LossName | Literal["auto"] | Sequence[LossName] = "auto",
        costs: Mapping[str, float] | None = None,
        calibration_size: float | str = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.partition = partition
        self.estimator = estimator
        self.pooled = pooled
        self.fit_on = fit_on
        self.min_group_size = min_group_size
        self.guard = guard
        self.guard_level = guard_level
        self.guard_margin = guard_margin
        self.guard_losses = guard_losses
        self.costs = costs
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(
        self,
        X: Table,
        y: ArrayLike,
        *,
        sensitive_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
        largest_weight: float | None = None,
        guard_features: Table | None = None,
        persons: ArrayLike | None = None,
        time: ArrayLike | None = None,
        X_calibration: Table | None = None,
        y_calibration: ArrayLike | None = None,
        sensitive_features_calibration: Table | None = None,
        guard_features_calibration: Table | None = None,
        persons_calibration: ArrayLike | None = None,
    ) -> Self:
        """Divide the rows, then fit the pooled classifier and one per group.

        Parameters
        ----------
        X : array or numeric data frame of shape (n, d)
        y : array of shape (n,)
        sensitive_features : data frame, series or array with n rows, optional
            For partitions that need it; never seen by the classifiers.
        sample_weight : array of shape (n,), optional
        largest_weight, guard_features, persons, time : optional
            As in `DAFHClassifier`.
        X_calibration, y_calibration, sensitive_features_calibration : like X, y and sensitive_features, optional
            Rows for the guard, and for nothing else. Without them it uses rows of X.
        guard_features_calibration, persons_calibration : like guard_features and persons, optional
            The same for these rows.
        """
        with unchanged_on_error(self):
            check_parameters(self, self._constraints)
            known: dict[str, Any] = {"guard_features": guard_features, "persons": persons, "time": time}
            known_calibration: dict[str, Any] = {
                "guard_features": guard_features_calibration,
                "persons": persons_calibration,
            }
            self._check_calibration(X_calibration, y_calibration, known, known_calibration)
            rows = LabelledRows.check(
                self,
                X,
                y,
                numbers=True,
                sample_weight=sample_weight,
                sensitive_features=sensitive_features,
                **known,
            )
            self.classes_ = rows.classes
            self._bound_weights(largest_weight, rows)
            self._check_losses()
            judges = self._calibration_rows(
                X_calibration, y_calibration, sensitive_features_calibration, **known_calibration
            )
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            unfitted = self._unfitted(seed)
            train, judges = self._hold_out_for_proof(rows, judges, np.random.default_rng(seed))
            self.partition_ = unfitted.partition.fit(train.numbers, train.y, train.sensitive, train.weight)
            self.n_groups_ = self.partition_.n_groups_
            members = self.partition_.members(train.numbers, train.sensitive)
            self.pooled_, self._own_estimators = self._fit_models(unfitted, train, members)
            self._judge(judges, lambda: self._cross_fitted_rows(unfitted, train, members, seed))
        return self

    def _unfitted(self, seed: int) -> "Unfitted":
        """Copies of what the user brings, or the defaults, with a seed wherever one was left open."""
        estimator = seeded(StandardizedLogisticRegression() if self.estimator is None else self.estimator, seed)
        # The same seed for all: with equal rows, two copies are then equal classifiers.
        pooled = estimator if self.pooled is None else seeded(self.pooled, seed)
        partition = seeded(ClusterPartition() if self.partition is None else self.partition, seed)
        return Unfitted(partition, estimator, pooled)

    def _fit_models(
        self, unfitted: "Unfitted", rows: LabelledRows, members: list[NDArray[np.intp]]
    ) -> tuple[Classifier, list[Classifier]]:
        """Pooled classifier, and one classifier per group."""
        everybody = fit_clone(unfitted.pooled, rows.X, rows.y, rows.fit_weight)
        if self.fit_on == "all":
            other = fit_clone(unfitted.estimator, rows.X, rows.y, rows.fit_weight)
            return everybody, [other] * self.n_groups_
        models = []
        for group in members:
            part = rows.take(group)
            small = len(group) < self.min_group_size  # Too few rows to do better than the pooled classifier.
            models.append(everybody if small else fit_group(unfitted.estimator, part.X, part.y, part.fit_weight))
        return everybody, models

    def _cross_fitted_rows(
        self, unfitted: "Unfitted", rows: LabelledRows, members: list[NDArray[np.intp]], seed: int
    ) -> ComparedRows:
        """All rows, each with classifiers that were fitted without its fold."""
        # The partition stays: cross-fitting it too would give every fold groups of its own, with nothing to add up.
        groups = self.partition_.assign(rows.numbers, rows.sensitive)
        judges, labels = [], []
        for kept, held_out in _guard_folds(rows, seed):
            rest = [np.searchsorted(kept, np.intersect1d(group, kept)) for group in members]
            everybody, own = self._fit_models(unfitted, rows.take(kept), rest)
            judges.append(held_out)
            labels.append(_predict_each([*own, everybody], rows.take(held_out).X))
        if not judges:
            return ComparedRows.none(self.n_groups_)
        # All folds at once: compared one by one, each would scale its weights and number its persons by itself.
        judging = np.concatenate(judges)
        return self._compare_labels(rows.take(judging), groups[judging], np.concatenate(labels))

    def _compare(self, rows: LabelledRows) -> ComparedRows:
        groups = self.partition_.assign(rows.numbers, rows.sensitive)
        return self._compare_labels(rows, groups, _predict_each([*self._own_estimators, self.pooled_], rows.X))

    def _compare_labels(self, rows: LabelledRows, groups: NDArray[np.intp], labels: NDArray[Any]) -> ComparedRows:
        """Compare classifiers on the rows that belong to a group; the pooled one serves all others anyway.

        `labels` has one column per own classifier, and the pooled one last.
        """
        known = np.flatnonzero(groups != NOBODY)
        if not len(known):
            return ComparedRows.none(self.n_groups_)
        rows, labels = rows.take(known), labels[known]
        return ComparedRows.check(
            rows.y,
            labels[:, :-1],
            groups[known],
            labels[:, -1],
            None,
            rows.weight,
            classes=self.classes_,
            persons=rows.person,
            attributes=rows.declared,
        )

    def _apply_serving(self) -> None:
        models = [*self._own_estimators, self.pooled_]
        self.estimators_ = [models[k] for k in self.serves_]

    # ---- prediction ----

    def _check_rows(self, X: Table, sensitive_features: Table | None) -> tuple[Any, NDArray[np.intp]]:
        """X as the classifiers take it, and the position of each row's classifier among all there are."""
        check_is_fitted(self)
        values = check_features(self, X, reset=False)
        attributes = check_sensitive_features(sensitive_features, len(values))
        groups = self.partition_.assign(values, attributes)
        return X if is_frame(X) else values, np.where(groups == NOBODY, self.n_groups_, groups)

    def predict_group(self, X: Table, sensitive_features: Table | None = None) -> NDArray[np.intp]:
        """Group of each row; `n_groups_`, the column of the pooled classifier in `predict_all`, for a row of none."""
        return self._check_rows(X, sensitive_features)[1]

    def predict(self, X: Table, sensitive_features: Table | None = None) -> NDArray[Any]:
        """Label of each row, by the classifier of its group."""
        given, positions = self._check_rows(X, sensitive_features)
        # Of the type of the classes: an array of objects would come back from numbers otherwise.
        labels = np.empty(len(positions), dtype=self.classes_.dtype)
        for rows, model in self._served_rows(positions):
            labels[rows] = model.predict(take_rows(given, rows))
        return labels

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Table, sensitive_features: Table | None = None) -> NDArray[np.float64]:
        """Probability of each class, by the classifier of the row's group."""
        given, positions = self._check_rows(X, sensitive_features)
        probabilities = np.empty((len(positions), len(self.classes_)))
        for rows, model in self._served_rows(positions):
            probabilities[rows] = class_probabilities(model, take_rows(given, rows), self.classes_)
        return probabilities

    def predict_all(self, X: Table) -> NDArray[Any]:
        """Label of each row by every classifier, (n, `n_groups_` + 1); the pooled classifier is the last column."""
        check_is_fitted(self)
        values = check_features(self, X, reset=False)
        return _predict_each([*self.estimators_, self.pooled_], X if is_frame(X) else values)

    def decide_twice(self, X: Table, servers: NDArray[np.intp], sensitive_features: Table | None) -> PairedDecisions:
        """Decide about each row by classifier ``servers[k]`` for group k, whoever serves it, and by the pooled one."""
        given, positions = self._check_rows(X, sensitive_features)
        known = pd.Index(self.classes_)
        pooled = known.get_indexer(self.pooled_.predict(given)).astype(np.intp)
        own = pooled.copy()  # Rows of no group are left to the pooled classifier.
        for k, server in enumerate(servers):
            rows = np.flatnonzero(positions == k)
            if len(rows):
                own[rows] = known.get_indexer(self._own_estimators[server].predict(take_rows(given, rows)))
        return PairedDecisions(positions, own, pooled)

    def score(
        self,
        X: Table,
        y: ArrayLike,
        *,
        sensitive_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Accuracy of `predict`."""
        return float(accuracy_score(y, self.predict(X, sensitive_features), sample_weight=sample_weight))

    def _served_rows(self, positions: NDArray[np.intp]) -> list[tuple[NDArray[np.intp], Classifier]]:
        """Rows that each classifier serves, without those that serve none."""
        models = [*self.estimators_, self.pooled_]
        return [(np.flatnonzero(positions == k), models[k]) for k in np.unique(positions)]


def _guard_folds(rows: LabelledRows, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows that train and rows that judge, fold by fold; a person's rows stay together."""
    person, time = rows.person, rows.time
    if time is None:
        n_folds = _GUARD_FOLDS if len(rows) < _MANY_ROWS else _FEWER_GUARD_FOLDS
        return list(stratified_folds(rows.y, n_folds, seed, person) or ())
    rng = np.random.default_rng(seed)
    kept, last = set_rows_aside(rows.label, 1 / _GUARD_FOLDS, rng, person=person, time=time)
    return [(kept, last)] if len(last) else []


def _predict_each(models: list[Classifier], given: Any) -> NDArray[Any]:
    """Label of each row by every classifier, one column for each; one that is there several times is asked once."""
    labels = {id(model): model.predict(given) for model in dict(zip(map(id, models), models, strict=True)).values()}
    return np.column_stack([labels[id(model)] for model in models])


class Unfitted(NamedTuple):
    """Partition and classifiers, seeded and ready to be copied and fitted."""

    partition: Partition
    estimator: Classifier
    pooled: Classifier
