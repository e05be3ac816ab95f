"""DecoupledClassifier: one copy of any classifier for every part of any partition."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dafh.classifiers import Classifier, class_probabilities, fit_clone, fit_group, seeded, stratified_folds
from dafh.estimators.guarded import GuardedMixin, hold_out_for_proof
from dafh.evaluation.compared import ComparedRows, PairedDecisions
from dafh.evaluation.guard import GuardKind
from dafh.evaluation.losses import LossName
from dafh.exceptions import WorseServedWarning
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
        (the partition stays as it is). "proof": only if a fifth of the rows, held out of everything else, show that it
        is not worse. None: always.
    guard_level, guard_margin, guard_losses, costs
        As in `DAFHClassifier`; every classifier decides by its own `predict`.
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
    training_hashes_ : array
        Hashes of a thousand training rows at most, by which `recalibrate` recognises them.
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
    ) -> Self:
        """Divide the rows, then fit the pooled classifier and one per group.

        Parameters
        ----------
        X : array or numeric data frame of shape (n, d)
        y : array of shape (n,)
        sensitive_features : data frame, series or array with n rows, optional
            For partitions that need it; never seen by the classifiers. With a guard, a `WorseServedWarning` names the
            groups that they define and that lose, as in `DAFHClassifier`.
        sample_weight : array of shape (n,), optional
        largest_weight, guard_features, persons, time : optional
            As in `DAFHClassifier`.
        """
        with unchanged_on_error(self):
            check_parameters(self, self._constraints)
            # Without a guard no row is compared, and nobody can be named.
            attributes = self._join_attributes(X, guard_features, None if self.guard is None else sensitive_features)
            rows = LabelledRows.check(
                self,
                X,
                y,
                numbers=True,
                sample_weight=sample_weight,
                sensitive_features=sensitive_features,
                guard_features=attributes.table,
                persons=persons,
                time=time,
            )
            self.classes_ = rows.classes
            self._keep_largest_weight(largest_weight, rows)
            self._keep_hashes(rows)
            self._check_losses()
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            estimator = seeded(StandardizedLogisticRegression() if self.estimator is None else self.estimator, seed)
            # The same seed for all: with equal rows, two copies are then equal classifiers.
            pooled = estimator if self.pooled is None else seeded(self.pooled, seed)
            partition = seeded(ClusterPartition() if self.partition is None else self.partition, seed)
            rows, judges = hold_out_for_proof(rows, self.guard, np.random.default_rng(seed))
            # On training rows only: groups that had seen the rows of "proof" would look better on them than they are.
            self.partition_ = partition.fit(rows.numbers, rows.y, rows.sensitive, rows.weight)
            self.n_groups_ = self.partition_.n_groups_
            group = self.partition_.assign(rows.numbers, rows.sensitive)
            self.pooled_, self._own_estimators = self._fit_models(pooled, estimator, rows, group)
            compared = None
            if self.guard is not None and judges is not None:
                compared = self._compare(judges)
            elif self.guard is not None:
                compared = self._cross_fit(pooled, estimator, rows, group, seed)
            losers = self._judge(compared, attributes, cross_fitted=judges is None)
        if losers:
            warnings.warn(losers, WorseServedWarning, stacklevel=2)
        return self

    def _check_more(self, X: Table, y: ArrayLike, **attributes: Any) -> LabelledRows:
        return LabelledRows.check_more(self, X, y, numbers=True, **attributes)

    def _fit_models(
        self, pooled: Classifier, estimator: Classifier, rows: LabelledRows, group: NDArray[np.intp]
    ) -> tuple[Classifier, list[Classifier]]:
        """Fit the pooled classifier, and one classifier per group."""
        fitted_pooled = fit_clone(pooled, rows.X, rows.y, rows.fit_weight)
        if self.fit_on == "all":
            return fitted_pooled, [fit_clone(estimator, rows.X, rows.y, rows.fit_weight)] * self.n_groups_
        models = []
        for k in range(self.n_groups_):
            members = rows.take(np.flatnonzero(group == k))
            small = len(members) < self.min_group_size  # Too few rows to do better than the pooled classifier.
            own = None if small else fit_group(estimator, members.X, members.y, members.fit_weight)
            models.append(fitted_pooled if own is None else own)
        return fitted_pooled, models

    def _cross_fit(
        self, pooled: Classifier, estimator: Classifier, rows: LabelledRows, group: NDArray[np.intp], seed: int
    ) -> ComparedRows:
        """Compare all rows, each by classifiers that were fitted without its fold; a person's rows stay together.

        The partition stays: cross-fitting it too would give every fold groups of its own, with nothing to add up.
        """
        if rows.time is None:
            n_folds = _GUARD_FOLDS if len(rows) < _MANY_ROWS else _FEWER_GUARD_FOLDS
            folds = list(stratified_folds(rows.y, n_folds, seed, rows.person) or ())
        else:
            rng = np.random.default_rng(seed)
            folds = [set_rows_aside(rows.label, 1 / _GUARD_FOLDS, rng, person=rows.person, time=rows.time)]
        judging, labels = [np.zeros(0, np.intp)], []
        for training, held_out in folds:
            if len(held_out):
                fitted_pooled, models = self._fit_models(pooled, estimator, rows.take(training), group[training])
                judging.append(held_out)
                labels.append(_predict_each([*models, fitted_pooled], rows.take(held_out).X))
        # All folds at once: compared one by one, each would scale its weights and number its persons by itself.
        held_out = np.concatenate(judging)
        return self._compare_labels(rows.take(held_out), group[held_out], np.concatenate(labels) if labels else None)

    def _compare(self, rows: LabelledRows) -> ComparedRows:
        labels = _predict_each([*self._own_estimators, self.pooled_], rows.X) if len(rows) else None
        return self._compare_labels(rows, self.partition_.assign(rows.numbers, rows.sensitive), labels)

    def _compare_labels(self, rows: LabelledRows, group: NDArray[np.intp], labels: NDArray[Any] | None) -> ComparedRows:
        """Compare classifiers on the rows that belong to a group; the pooled one serves all others anyway.

        `labels` has one column per own classifier, and the pooled one last; it is None where there are no rows.
        """
        # Rows of no group gain and lose nothing; as a group of their own they would only widen the corrections.
        members = np.flatnonzero(group != NOBODY)
        if labels is None or not len(members):
            return ComparedRows.none(self.n_groups_)
        rows, labels = rows.take(members), labels[members]
        return ComparedRows.check(
            rows.y,
            labels[:, :-1],
            group[members],
            labels[:, -1],
            None,
            rows.weight,
            classes=self.classes_,
            persons=rows.person,
            attributes=rows.declared,
        )

    def _apply_serving(self) -> None:
        # Own classifiers are kept: a later `recalibrate` may give a group its own one back.
        models = [*self._own_estimators, self.pooled_]
        self.estimators_ = [models[k] for k in self.serves_]

    # ---- prediction ----

    def _check_rows(self, X: Table, sensitive_features: Table | None) -> tuple[Any, NDArray[np.intp]]:
        """X as the classifiers take it, and the position of each row's classifier among all there are."""
        check_is_fitted(self)
        values = check_features(self, X, reset=False)
        attributes = check_sensitive_features(sensitive_features, len(values))
        group = self.partition_.assign(values, attributes)
        return X if is_frame(X) else values, np.where(group == NOBODY, self.n_groups_, group)

    def predict_group(self, X: Table, sensitive_features: Table | None = None) -> NDArray[np.intp]:
        """Group of each row; `n_groups_`, the column of the pooled classifier in `predict_all`, for a row of none."""
        return self._check_rows(X, sensitive_features)[1]

    def predict(self, X: Table, sensitive_features: Table | None = None) -> NDArray[Any]:
        """Label of each row, by the classifier of its group."""
        X, positions = self._check_rows(X, sensitive_features)
        # Of the type of the classes: an array of objects would come back from numbers otherwise.
        labels = np.empty(len(positions), dtype=self.classes_.dtype)
        for k in np.unique(positions):
            rows = np.flatnonzero(positions == k)
            labels[rows] = [*self.estimators_, self.pooled_][k].predict(take_rows(X, rows))
        return labels

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Table, sensitive_features: Table | None = None) -> NDArray[np.float64]:
        """Probability of each class, by the classifier of the row's group."""
        X, positions = self._check_rows(X, sensitive_features)
        probabilities = np.empty((len(positions), len(self.classes_)))
        for k in np.unique(positions):
            rows = np.flatnonzero(positions == k)
            model = [*self.estimators_, self.pooled_][k]
            probabilities[rows] = class_probabilities(model, take_rows(X, rows), self.classes_)
        return probabilities

    def predict_all(self, X: Table) -> NDArray[Any]:
        """Label of each row by every classifier, (n, `n_groups_` + 1); the pooled classifier is the last column."""
        check_is_fitted(self)
        values = check_features(self, X, reset=False)
        return _predict_each([*self.estimators_, self.pooled_], X if is_frame(X) else values)

    def decide_twice(self, X: Table, servers: NDArray[np.intp], sensitive_features: Table | None) -> PairedDecisions:
        """Decide about each row by classifier ``servers[k]`` for group k, whoever serves it, and by the pooled one."""
        X, positions = self._check_rows(X, sensitive_features)
        classes = pd.Index(self.classes_)
        pooled = classes.get_indexer(self.pooled_.predict(X)).astype(np.intp)
        own = pooled.copy()  # Rows of no group are left to the pooled classifier.
        for k, server in enumerate(servers):
            rows = np.flatnonzero(positions == k)
            if len(rows):
                own[rows] = classes.get_indexer(self._own_estimators[server].predict(take_rows(X, rows)))
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


def _predict_each(models: list[Classifier], X: Any) -> NDArray[Any]:
    """Label of each row by every classifier, one column for each; one that is there several times is asked once."""
    labels = {id(model): model.predict(X) for model in dict(zip(map(id, models), models, strict=True)).values()}
    return np.column_stack([labels[id(model)] for model in models])
