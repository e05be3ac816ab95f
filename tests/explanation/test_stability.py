"""How much groups change with the seed and with the rows."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score

from dafh import DAFHClassifier, DecoupledClassifier
from dafh.exceptions import InputError
from dafh.explanation import stability
from dafh.partitions import Partition


class ByChance(Partition):
    """Groups that have nothing to do with the rows."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sensitive_features=None, sample_weight=None):
        self.group_names_ = ["one", "other"]
        return self

    def assign(self, X, sensitive_features=None):
        return np.random.default_rng(self.random_state).integers(2, size=len(X))


def test_stability_is_one_for_groups_that_no_seed_moves_and_small_for_chance():
    table = np.random.default_rng(0).integers(18, 80, (400, 1)).astype(float)
    y = (table[:, 0] > 40).astype(int)
    same = stability(DecoupledClassifier(), np.r_[table * 0, table * 0 + 100], np.r_[y, y], seeds=(0, 1, 2))
    assert same == 1
    chance = stability(DecoupledClassifier(ByChance()), np.arange(800.0)[:, None], np.r_[y, y], seeds=(0, 1, 2))
    assert abs(chance) < 0.05
    with pytest.raises(InputError, match="two different seeds"):
        stability(DecoupledClassifier(), table, y, seeds=(1, 1))


class SeededGroups(ClassifierMixin, BaseEstimator):
    """Groups that depend on the seed in a known way: the rows below ten times the seed."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X, y):
        self.fitted_ = self.random_state
        self.classes_, self.n_groups_, self.serves_ = np.unique(y), 2, np.arange(2)
        return self

    def predict_group(self, X):
        return (np.asarray(X)[:, 0] < 10 * self.fitted_).astype(int)

    def predict_all(self, X):
        return np.zeros((len(X), 3), int)


def test_stability_is_the_mean_over_all_pairs_of_seeds():
    X, y = np.arange(100.0)[:, None], np.arange(100) % 2
    parts = {seed: (X[:, 0] < 10 * seed).astype(int) for seed in (2, 5, 7)}
    by_hand = np.mean([adjusted_rand_score(parts[a], parts[b]) for a, b in ((2, 5), (2, 7), (5, 7))])
    model = SeededGroups(random_state=9)
    assert stability(model, X, y, seeds=(2, 5, 7)) == pytest.approx(by_hand)
    assert model.random_state == 9
    assert not hasattr(model, "classes_")
    assert stability(model, X, y, seeds=(3, 4)) < 1


class RowsSeen(ClassifierMixin, BaseEstimator):
    """Groups that depend on the rows of fit in a known way: rows up to the largest one seen of the first 50."""

    fits = []  # noqa: RUF012

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        self.fits.append((np.asarray(X)[:, 0], np.asarray(y), sample_weight, self.random_state))
        self.classes_, self.n_groups_, self.serves_ = np.unique(y), 2, np.arange(2)
        self.last_ = np.asarray(X)[np.asarray(X)[:, 0] < 50, 0].max()
        return self

    def predict_group(self, X):
        return (np.asarray(X)[:, 0] > self.last_ - 25).astype(int)

    def predict_all(self, X):
        return np.zeros((len(X), 3), int)


@pytest.mark.parametrize("table", [lambda X: X, lambda X: pd.DataFrame(X, columns=["x"])], ids=["array", "frame"])
def test_resamples_are_four_fifths_of_the_rows_of_each_class_with_all_that_belongs_to_them(table):
    X, y = np.arange(100.0)[:, None], np.where(np.arange(100) < 10, "rare", "often")
    RowsSeen.fits.clear()
    found = stability(RowsSeen(random_state=7), table(X), y, resamples=4, sample_weight=np.arange(100.0))
    assert -1 <= found <= 1
    assert len(RowsSeen.fits) == 4
    assert len({tuple(rows) for rows, *_ in RowsSeen.fits}) == 4
    for rows, labels, weight, seed in RowsSeen.fits:
        assert len(set(rows)) == 80
        assert (labels == "rare").sum() == 8
        np.testing.assert_array_equal(labels, y[rows.astype(int)])
        np.testing.assert_array_equal(weight, rows)
        assert seed == 7


def test_groups_of_resamples_are_compared_on_all_rows_over_all_pairs():
    X, y = np.arange(100.0)[:, None], np.arange(100) % 2
    RowsSeen.fits.clear()
    found = stability(RowsSeen(), X, y, resamples=5)
    last = [rows[rows < 50].max() for rows, *_ in RowsSeen.fits]
    assert len(set(last)) > 1
    parts = [(X[:, 0] > row - 25).astype(int) for row in last]
    by_hand = np.mean([adjusted_rand_score(one, other) for one, other in itertools.combinations(parts, 2)])
    assert found == pytest.approx(by_hand)
    assert {seed for *_, seed in RowsSeen.fits} == {0}


@pytest.mark.parametrize("resamples", [0, 1, -3])
def test_one_resample_is_no_comparison(resamples):
    with pytest.raises(InputError, match="at least two resamples"):
        stability(RowsSeen(), np.arange(10.0)[:, None], np.arange(10) % 2, resamples=resamples)


@pytest.mark.parametrize(("n_rows", "n_used"), [(100, 100), (10_000, 10_000), (10_003, 10_000)])
def test_copies_are_compared_on_no_more_rows_than_asked_for(n_rows, n_used):
    X, y = np.arange(float(n_rows))[:, None], np.arange(n_rows) % 2
    RowsSeen.fits.clear()
    found = stability(RowsSeen(), X, y, max_rows=10_000, sample_weight=np.arange(n_rows))
    assert -1 <= found <= 1
    assert [seed for *_, seed in RowsSeen.fits] == [0, 1, 2]
    for rows, labels, weight, _ in RowsSeen.fits:
        assert len(set(rows)) == n_used
        np.testing.assert_array_equal(labels, y[rows.astype(int)])
        np.testing.assert_array_equal(weight, rows)


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
def test_copies_keep_the_incumbent_of_the_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (np.where(X[:, 0] > 0, X[:, 1], -X[:, 1]) + 0.3 * rng.normal(size=400) > 0).astype(int)
    incumbent = CountsItsFits(max_iter=50).fit(X, y)
    model = DAFHClassifier(2, pooled=incumbent, random_state=0).fit(X, y)
    CountsItsFits.n_fits = 0
    assert stability(model, X, y, resamples=2) > 0.5
    assert CountsItsFits.n_fits == 0


class CountsItsFits(LogisticRegression):
    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        CountsItsFits.n_fits += 1
        return super().fit(X, y, sample_weight)
