"""DecoupledClassifier: who is fitted on which rows, who serves whom, and what happens to difficult groups."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from dafh import DecoupledClassifier
from dafh.exceptions import InputError
from dafh.partitions import (
    NOBODY,
    ClusterPartition,
    IntersectionPartition,
    Partition,
    PooledPartition,
)


class ByFirstColumn(Partition):
    """Groups 0, 1 and 2 by the first column; all other values belong to no group."""

    def fit(self, X, y, sensitive_features=None, sample_weight=None):
        self.group_names_ = ["zero", "one", "two"]
        return self

    def assign(self, X, sensitive_features=None):
        return np.where(np.isin(X[:, 0], [0, 1, 2]), X[:, 0], NOBODY).astype(np.intp)


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what each copy of it was fitted on, and answers with the label it has seen most often."""

    seen: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append((type(X), np.asarray(X)[:, 1].tolist(), sample_weight))
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.classes_, position = np.unique(y, return_inverse=True)
        self.answer_ = self.classes_[np.bincount(position, weight).argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.answer_)


def three_groups(sizes=(4, 6, 10)):
    """Rows numbered in the second column; the labels "a" and "b" alternate, with more "b" in group 1."""
    group = np.repeat([0, 1, 2], sizes)
    y = np.where(np.arange(len(group)) % 2, "b", "a")
    y[(group == 1) & (np.arange(len(group)) % 3 > 0)] = "b"
    return np.column_stack([group, np.arange(len(group))]).astype(float), y


def fitted(estimator=None, X=None, y=None, weight=None, **options):
    rows = three_groups()
    X, y = rows if X is None else (X, y)
    model = DecoupledClassifier(ByFirstColumn(), Recorder() if estimator is None else estimator, **options)
    Recorder.seen.clear()
    return model.fit(X, y, sample_weight=weight), X, y


# ---- who is fitted on which rows ----


def test_the_pooled_classifier_sees_all_rows_and_every_other_its_group():
    fitted()
    assert [rows for _, rows, _ in Recorder.seen] == [
        list(range(20)),
        [0, 1, 2, 3],
        list(range(4, 10)),
        list(range(10, 20)),
    ]


def test_each_classifier_gets_the_weights_of_its_own_rows():
    fitted(weight=np.arange(1.0, 21))
    weights = [weight.tolist() for _, _, weight in Recorder.seen]
    assert weights[0] == list(range(1, 21))
    assert weights[1:3] == [[1, 2, 3, 4], [5, 6, 7, 8, 9, 10]]


def test_what_the_user_brings_stays_as_it_was():
    partition, estimator, pooled = ClusterPartition(), LogisticRegression(), GaussianNB()
    model = DecoupledClassifier(partition, estimator, pooled=pooled, random_state=3).fit(*three_groups())
    for given in (partition, estimator, pooled):
        assert vars(given) == type(given)().get_params()
    assert model.partition_.random_state is not None  # An open seed is filled in the copies.


# ---- who serves whom ----


def test_rows_are_served_by_the_classifier_of_their_group():
    model, X, _ = fitted()
    assert model.serves_.tolist() == [0, 1, 2]
    every, groups = model.predict_all(X), model.predict_group(X)
    assert groups.tolist() == X[:, 0].tolist()
    assert every.shape == (20, 4)
    np.testing.assert_array_equal(model.predict(X), every[np.arange(20), groups])
    assert [model.estimators_[k].answer_ for k in range(3)] == ["a", "b", "a"]


def test_a_row_of_no_group_is_served_by_the_pooled_classifier():
    X, y = three_groups()
    model = DecoupledClassifier(ByFirstColumn(), GaussianNB()).fit(X, y)
    strangers = np.array([[7.0, 3.0], [-2.0, 19.0]])
    assert model.predict_group(strangers).tolist() == [3, 3]
    np.testing.assert_array_equal(model.predict(strangers), model.pooled_.predict(strangers))
    np.testing.assert_array_equal(model.predict_proba(strangers), model.pooled_.predict_proba(strangers))
    assert len(model.predict(strangers[:1])) == 1


@pytest.mark.parametrize(
    ("least", "own"), [(1, [True] * 3), (4, [True] * 3), (5, [False, True, True]), (11, [False] * 3)]
)
def test_a_group_needs_the_least_number_of_rows_for_its_own_classifier(least, own):
    model, X, _ = fitted(min_group_size=least)
    assert [estimator is not model.pooled_ for estimator in model.estimators_] == own
    assert model.serves_.tolist() == [0, 1, 2]
    small = ~np.array(own)[model.predict_group(X)]
    np.testing.assert_array_equal(model.predict(X)[small], model.pooled_.predict(X)[small])


def test_a_group_with_one_label_always_gets_that_label():
    X, y = three_groups()
    y[X[:, 0] == 2] = "c"
    model = DecoupledClassifier(ByFirstColumn(), LogisticRegression()).fit(X, y)
    assert set(model.predict(np.column_stack([np.full(9, 2.0), np.linspace(-1e6, 1e6, 9)]))) == {"c"}
    probabilities = model.predict_proba(X)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert probabilities[X[:, 0] == 2].tolist() == [[0, 0, 1]] * 10
    assert (probabilities[X[:, 0] == 0, 2] == 0).all()  # Group 0 has never seen "c".
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@pytest.mark.parametrize(
    "partition",
    [ByFirstColumn(), ClusterPartition(3), IntersectionPartition("side")],
)
def test_outputs_agree_with_each_other_whatever_the_partition(partition):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, 200), rng.normal(size=200)]).astype(float)
    y = (X[:, 1] * np.where(X[:, 0] > 1, 1, -1) + 0.3 * rng.normal(size=200) > 0).astype(int)
    side = pd.DataFrame({"side": np.where(X[:, 0] > 1, "right", "left")})
    model = DecoupledClassifier(partition, random_state=0).fit(X, y, sensitive_features=side)
    labels, groups, every = model.predict(X, side), model.predict_group(X, side), model.predict_all(X)
    np.testing.assert_array_equal(labels, every[np.arange(200), groups])
    np.testing.assert_array_equal(labels, model.classes_[model.predict_proba(X, side).argmax(axis=1)])
    assert model.score(X, y, sensitive_features=side) == np.mean(labels == y)
    assert every.shape == (200, model.n_groups_ + 1)


def test_probabilities_are_offered_where_every_classifier_has_them():
    assert hasattr(DecoupledClassifier(), "predict_proba")
    assert not hasattr(DecoupledClassifier(estimator=LinearSVC()), "predict_proba")
    assert not hasattr(DecoupledClassifier(pooled=LinearSVC()), "predict_proba")
    X, y = three_groups()
    model = DecoupledClassifier(ByFirstColumn(), LinearSVC()).fit(X, y)
    model.set_params(estimator=GaussianNB())  # The fitted classifiers decide, not what comes next.
    assert not hasattr(model, "predict_proba")


# ---- the guard ----


def noise(n=300, seed=0):
    """Labels of pure noise, mostly 0: a classifier that memorises rows does worse than one that always says 0."""
    rng = np.random.default_rng(seed)
    return np.column_stack([np.arange(n) % 3, rng.normal(size=n)]).astype(float), (rng.random(n) < 0.3).astype(int)


def test_classifiers_that_memorise_their_rows_do_not_convince_the_guard():
    X, y = noise()
    memory = {"estimator": KNeighborsClassifier(1), "pooled": DummyClassifier(strategy="most_frequent")}
    trusting = DecoupledClassifier(ByFirstColumn(), **memory).fit(X, y)
    assert trusting.score(X, y) == 1.0  # On the rows it was fitted on.
    guarded = DecoupledClassifier(ByFirstColumn(), **memory, guard="evidence", random_state=0).fit(X, y)
    assert guarded.serves_.tolist() == [3, 3, 3]
    assert guarded.guard_report_.cross_fitted
    assert guarded.guard_report_.n_rows == 300  # Every row judges once.


def better_by_far(**options):
    """One group, whose own classifier is right on all of 40 rows, and the pooled one on half of them."""
    X = np.column_stack([np.zeros(40), np.arange(40) % 2]).astype(float)
    y = X[:, 1].astype(int)
    model = DecoupledClassifier(PooledPartition(), KNeighborsClassifier(1), pooled=DummyClassifier(), **options)
    return model.fit(X, y), X, y


def test_level_and_margin_reach_the_guard():
    model, X, y = better_by_far(random_state=0)
    few, answers = X[:8], y[:8]  # Four better and none worse: p = 1/16.
    assert model.set_params(guard="proof", guard_level=0.05).recalibrate(few, answers).serves_.tolist() == [1]
    assert model.set_params(guard_level=0.07).recalibrate(few, answers).serves_.tolist() == [0]
    none = np.zeros(40, int)  # The own classifier is now wrong on 20 rows of 40, the pooled one on none.
    assert model.set_params(guard_margin=0.9).recalibrate(X, none).serves_.tolist() == [0]
    assert model.set_params(guard_margin=0.4).recalibrate(X, none).serves_.tolist() == [1]


def test_a_recalibration_that_fails_leaves_the_model_as_it_was():
    X, y = noise()
    model = DecoupledClassifier(ByFirstColumn(), GaussianNB(), guard="evidence", random_state=0).fit(X, y)
    before, report = model.serves_.tolist(), model.guard_report_
    with pytest.raises(InputError, match="was not fitted with"):
        model.recalibrate(X, y + 5)
    with pytest.raises(ValueError, match="is expecting 2 features"):
        model.recalibrate(X[:, :1], y)
    assert model.serves_.tolist() == before
    assert model.guard_report_ is report


# ---- what cannot be used ----


@pytest.mark.parametrize(
    "options",
    [
        {"partition": "clusters"},
        {"estimator": 3},
        {"pooled": "logistic"},
        {"min_group_size": 0},
        {"fit_on": "rows"},
        {"guard": "Veto"},
        {"guard_level": 0.5},
        {"guard_margin": 1},
        {"random_state": -3},
    ],
)
def test_parameters_that_cannot_be_used_are_named(options):
    model = DecoupledClassifier(**options)
    with pytest.raises(InputError, match=f"'{next(iter(options))}' parameter of DecoupledClassifier"):
        model.fit(*three_groups())
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensitive_features": ["f"]}, "1 rows"),
        ({"sample_weight": [1.0]}, "sample_weight"),
    ],
)
def test_rows_that_do_not_belong_together_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        DecoupledClassifier(ByFirstColumn(), guard="evidence").fit(*three_groups(), **options)
