"""Persons with several rows are never on both sides of a split, and where time counts the last rows judge."""

import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from dafh import DAFHClassifier, DecoupledClassifier
from dafh.checks.rows import check_persons, check_times
from dafh.estimators.learning import _nested_folds
from dafh.exceptions import InputError
from dafh.partitions import PooledPartition
from dafh.rows.checked import CheckedRows, RowContext
from dafh.rows.held_out import HeldOut, set_rows_aside

SHARES = st.sampled_from([(0.14, 0.06), (0.0, 0.2), (0.3, 0.1)])


def draw(seed, n=400, per_person=5):
    rng = np.random.default_rng(seed)
    return rng.integers(2, size=n), rng.integers(n // per_person, size=n), rng


def one_value_each(person, *values):
    """Whether the rows of every person have the same of each value."""
    kinds = set(zip(person.tolist(), *(value.tolist() for value in values), strict=True))
    return len(kinds) == len(set(person.tolist()))


# ---- folds ----


@given(st.integers(0, 999), SHARES, st.sampled_from([1, 3, "auto"]))
def test_a_persons_rows_are_in_one_fold_for_one_purpose(seed, shares, folds):
    label, person, rng = draw(seed)
    held = HeldOut.draw(label, *shares, folds, rng, person=person)
    assert held.n_folds >= 1
    assert one_value_each(person, held.fold, held.calibrates)


@given(st.integers(0, 999), st.sampled_from([0.1, 0.2, 0.5]))
def test_a_persons_rows_are_set_aside_together(seed, share):
    label, person, rng = draw(seed)
    kept, apart = set_rows_aside(label, share, rng, person=person)
    assert not set(person[kept]) & set(person[apart])
    assert sorted([*kept, *apart]) == list(range(len(label)))
    assert len(set(person[apart])) == round(share * len(set(person)))


@given(st.integers(0, 999), st.sampled_from([1, 3]))
def test_nested_folds_keep_persons_together_too(seed, n_folds):
    label, person, rng = draw(seed)
    context = RowContext(person=person)
    rows = CheckedRows(np.zeros((400, 1)), None, label, np.array([0, 1]), np.ones(400), context=context)
    held = HeldOut.draw(label, 0.14, 0.06, n_folds, rng, person=person)
    fold = _nested_folds(held, rows, rng)
    assert one_value_each(person, fold)
    for number in range(held.n_folds):
        assert len(set(fold[held.fold == number])) == 1


@given(st.integers(0, 999), SHARES)
def test_the_last_rows_judge(seed, shares):
    label, _, rng = draw(seed)
    time = rng.permutation(400).astype(float)
    held = HeldOut.draw(label, *shares, "auto", rng, time=time)
    assert held.n_folds == 1
    n_last = round(sum(shares) * 400)
    np.testing.assert_array_equal(held.fold == 0, time >= 400 - n_last)
    assert held.calibrates.sum() == pytest.approx(shares[1] * 400, abs=1)
    kept, apart = set_rows_aside(label, 0.25, rng, time=time)
    assert time[apart].min() > time[kept].max()
    assert len(apart) == 100


def test_a_person_is_as_late_as_the_last_of_its_rows():
    label, person, time = np.tile([0, 1], 50), np.repeat(np.arange(20), 5), np.arange(100.0)
    time[0] = 1000  # The first person comes again after all others.
    kept, apart = set_rows_aside(label, 0.1, np.random.default_rng(0), person=person, time=time)
    assert sorted(set(person[apart])) == [0, 19]
    assert len(kept) == 90


# ---- estimators ----


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
        DecoupledClassifier(PooledPartition(), Remembering(), guard="veto", random_state=0).fit(X, y, **known)
        assert len(Remembering.seen) >= 6
        assert any(fitted & asked for fitted, asked in Remembering.seen) == shared


@pytest.mark.parametrize("guard", ["veto", "proof"])
def test_the_guard_counts_persons(guard):
    X, y, person = repeated()
    options = {"groups": "rules", "pooled": "linear", "guard": guard, "random_state": 0}
    model = DAFHClassifier(2, **options).fit(X, y, persons=person)
    # Four equal rows each: as wide as for a quarter of the rows.
    alone = DAFHClassifier(2, **options).fit(X, y, persons=person).recalibrate(X, y, persons=person).guard_report_
    single = model.recalibrate(X[::4], y[::4]).guard_report_
    np.testing.assert_allclose(alone.table[["low", "high"]], single.table[["low", "high"]], atol=1e-8)
    np.testing.assert_allclose(alone.table["p_better"], single.table["p_better"], rtol=1e-6)
    rows = model.recalibrate(X, y).guard_report_
    assert (rows.table["high"] - rows.table["low"] < single.table["high"] - single.table["low"]).all()


def test_weights_of_the_folds_are_on_one_scale():
    """One row of each class weighs much more: where every fold scaled by itself, its fold would count for little."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.logistic(size=300) > 0) * 1
    weight = np.where(np.arange(300) < 2, 50.0, 1.0)
    model = DecoupledClassifier(
        PooledPartition(), LogisticRegression(C=0.01), pooled=LogisticRegression(), guard="veto"
    )
    table = model.set_params(random_state=0).fit(X, y, sample_weight=weight).guard_report_.table
    total = table["pooled_loss"].iloc[0] * weight.sum()
    assert total == pytest.approx(round(total), abs=1e-6)  # A sum of weights of 1 and 50.


def test_the_last_rows_judge_a_fit():
    """After a change the pattern of one half is reversed: judged by the last rows, its own classifier is worse."""
    rng = np.random.default_rng(0)
    n = 2000
    X, time = rng.normal(size=(n, 2)), np.arange(n)
    slope = np.where(X[:, 1] > 0, np.where(time < 1700, -2, 2), 2)
    y = (slope * X[:, 0] + rng.logistic(size=n) > 0) * 1
    options = {"groups": "rules", "pooled": "linear", "random_state": 0}
    for guard in ("veto", "proof"):
        now, ever = (
            DAFHClassifier(2, guard=guard, calibration_size=0.15 if guard == "proof" else "auto", **options).fit(
                X, y, **known
            )
            for known in ({"time": time}, {})
        )
        k = int(np.bincount(now.predict_group(X[X[:, 1] > 0.5])).argmax())
        assert now.serves_[k] != k  # The pooled classifier serves it, or the other group's, which has become right.
        k = int(np.bincount(ever.predict_group(X[X[:, 1] > 0.5])).argmax())
        assert ever.serves_[k] == k
    dates = pd.to_datetime("2020-01-01") + pd.to_timedelta(time, unit="D")
    by_date = DAFHClassifier(2, guard="veto", **options).fit(X, y, time=dates)
    by_number = DAFHClassifier(2, guard="veto", **options).fit(X, y, time=time)
    assert by_date.guard_report_ == by_number.guard_report_


# ---- checks ----


def test_all_rows_judge_rules_but_where_one_fold_is_divided_between_choice_and_guard():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = (X[:, 0] * np.sign(X[:, 1]) + rng.normal(size=1000) > 0).astype(int)
    by_chance = DAFHClassifier(2, groups="rules", pooled="linear", random_state=0).fit(X, y)
    in_time = DAFHClassifier(2, groups="rules", pooled="linear", random_state=0).fit(X, y, time=np.arange(1000))
    assert by_chance.guard_report_.n_rows == 1000
    assert in_time.guard_report_.n_rows == pytest.approx(60, abs=1)  # 30% of the latest fifth.


def test_persons_are_numbered_and_rows_without_one_are_persons_of_their_own():
    assert check_persons(["b", "a", "b"], 3).tolist() == [0, 1, 0]
    assert check_persons(pd.Series(["x", None, "x", None]), 4).tolist() == [0, 1, 0, 2]
    assert check_persons([np.nan, np.nan], 2).tolist() == [0, 1]
    assert check_persons(None, 3) is None


def test_times_may_be_numbers_dates_and_text_that_reads_as_dates():
    assert check_times([3, 1, 2], 3).tolist() == [3, 1, 2]
    days = ["2020-01-03", "2020-01-01", "2020-01-02"]
    for times in (days, pd.to_datetime(days), pd.Series(pd.to_datetime(days)), np.array(days, "datetime64[D]")):
        assert check_times(times, 3).tolist() == [18_264, 18_262, 18_263]  # Days since 1970: whatever the other rows.
    assert check_times(None, 3) is None
    # Farther back than the nanoseconds of pandas reach, and in a zone of its own.
    assert check_times(["0000-01-01", "1970-01-01 18:00"], 2).tolist() == [-719_528, 0.75]
    assert check_times(["1970-01-02 00:00+02:00"], 1) == pytest.approx(22 / 24)
    with pytest.raises(InputError, match="numbers or dates"):
        check_times(np.array([2**61], "datetime64[s]"), 1)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"persons": [1, 2]}, r"persons has the shape \(2, 1\) for 1,200 rows: give one identifier for each row"),
        ({"persons": np.zeros((1200, 2))}, r"persons has the shape \(1200, 2\)"),
        ({"time": [1, 2]}, r"time has the shape \(2, 1\) for 1,200 rows: give one time for each row"),
        ({"time": [np.nan] * 1200}, "time has missing values"),
        ({"time": ["soon"] * 1200}, "time must hold numbers or dates, one for each row"),
        ({"time": ["2020-01-01", None] * 600}, "time has missing values"),
    ],
)
@pytest.mark.parametrize("estimator", [DAFHClassifier(), DecoupledClassifier(guard="veto")])
def test_persons_and_times_that_cannot_be_used(estimator, known, message):
    X, y, _ = repeated()
    with pytest.raises(InputError, match=message):
        estimator.fit(X, y, **known)
