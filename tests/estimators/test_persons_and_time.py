"""Persons with several rows count once, and where time counts the last rows judge."""

import copy
import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from dafh import DAFHClassifier, DecoupledClassifier
from dafh.exceptions import InputError
from dafh.partitions import PooledPartition

# ---- fits ----


@functools.cache
def repeated(n_persons=300, per_person=4, seed=0):
    """Every person has the same row several times."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n_persons, 3)), per_person, axis=0)
    flip = np.repeat(rng.logistic(size=n_persons), per_person)
    y = (np.where(X[:, 1] > 0, 2, -2) * X[:, 0] + flip > 0) * 1
    return X, y, np.repeat(np.arange(n_persons), per_person)


class Remembering(LogisticRegression):
    """Notes the rows that every copy was fitted on, and asked about."""

    seen = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.fitted_on_ = set(np.round(X[:, 0], 9))
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        Remembering.seen.append((self.fitted_on_, set(np.round(X[:, 0], 9))))
        return super().predict(X)


def test_no_person_judges_a_decoupled_classifier_that_knows_it():
    X, y, person = repeated()
    for known, shared in (({"persons": person}, False), ({}, True)):
        Remembering.seen = []
        DecoupledClassifier(PooledPartition(), Remembering(), guard="evidence", random_state=0).fit(X, y, **known)
        assert len(Remembering.seen) >= 6
        assert any(fitted & asked for fitted, asked in Remembering.seen) == shared


@pytest.mark.parametrize("guard", ["evidence", "proof"])
def test_the_guard_counts_persons(guard):
    X, y, person = repeated()
    options = {"method": "exceptions", "pooled": "linear", "guard": guard, "random_state": 0}
    model = DAFHClassifier(2, **options).fit(X, y, persons=person)
    # Four equal rows each: as wide as for a quarter of the rows.
    alone = copy.deepcopy(model).recalibrate(X, y, persons=person).guard_report_
    single = model.recalibrate(X[::4], y[::4]).guard_report_
    np.testing.assert_allclose(alone.table[["low", "high"]], single.table[["low", "high"]], atol=1e-8)
    np.testing.assert_allclose(alone.table["p_better"], single.table["p_better"], rtol=1e-6)
    rows = model.recalibrate(X, y).guard_report_
    assert (rows.table["high"] - rows.table["low"] < single.table["high"] - single.table["low"]).all()


def test_the_last_rows_judge_a_fit():
    """After a change the pattern of one half is reversed: judged by the last rows, its own classifier is worse."""
    rng = np.random.default_rng(0)
    n = 2000
    X, time = rng.normal(size=(n, 2)), np.arange(n)
    slope = np.where(X[:, 1] > 0, np.where(time < 1700, -2, 2), 2)
    y = (slope * X[:, 0] + rng.logistic(size=n) > 0) * 1
    options = {"method": "exceptions", "pooled": "linear", "random_state": 0}
    for guard in ("proof", "evidence"):
        now, ever = (DAFHClassifier(2, guard=guard, **options).fit(X, y, **known) for known in ({"time": time}, {}))
        k = int(np.bincount(now.predict_group(X[X[:, 1] > 0.5])).argmax())
        assert now.serves_[k] != k  # The pooled classifier serves it, or the other group's, which has become right.
        k = int(np.bincount(ever.predict_group(X[X[:, 1] > 0.5])).argmax())
        assert ever.serves_[k] == k
    dates = pd.to_datetime("2020-01-01") + pd.to_timedelta(time, unit="D")
    by_date = DAFHClassifier(2, guard="evidence", **options).fit(X, y, time=dates)
    assert str(by_date.guard_report_) == str(now.guard_report_)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"persons": [1, 2]}, "one identifier"),
        ({"time": [1, 2]}, "one time"),
        ({"time": [np.nan] * 1200}, "time has missing values"),
        ({"time": ["soon"] * 1200}, "numbers or dates"),
    ],
)
@pytest.mark.parametrize("estimator", [DAFHClassifier(), DecoupledClassifier(guard="evidence")])
def test_persons_and_times_that_cannot_be_used(estimator, known, message):
    X, y, _ = repeated()
    with pytest.raises(InputError, match=message):
        estimator.fit(X, y, **known)
