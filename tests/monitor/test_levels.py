"""The model in use by itself: its error against a reference, and its probabilities."""

import numpy as np
import pytest

from dafh import DAFHClassifier, Monitor
from dafh.exceptions import InputError
from watched import good_rows, parts_of


def test_a_batch_with_all_labels_inverted_raises_an_alarm_within_itself(model):
    monitor = Monitor(model)
    for rows in parts_of(good_rows(), 500):
        assert not monitor.update(rows.X, rows.y).alarms
    rows = good_rows(300, seed=9)
    update = monitor.update(rows.X, np.where(rows.y == "yes", "no", "yes"))
    assert "level" in {alarm.kind for alarm in update.alarms}
    assert "more errors than in the reference rows" in str(update)


def test_so_it_does_in_a_model_of_one_group_that_the_pooled_classifier_serves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = (rng.random(3000) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    model = DAFHClassifier(random_state=0).fit(X[:2000], y[:2000])
    monitor = Monitor(model, reference=X[:2000])
    assert (model.n_groups_, model.serves_.tolist()) == (1, [1])
    assert not monitor.update(X[2000:2500], y[2000:2500]).notices
    update = monitor.update(X[2500:] * [1, 10], 1 - y[2500:])
    assert {notice.kind for notice in update.notices} == {"level", "drift"}
    assert "x1 above" in str(update) or "x1 up to" in str(update)


def test_levels_are_those_of_the_rows(model):
    rows = good_rows()
    monitor = Monitor(model, reference=good_rows(seed=4).X, reference_labels=good_rows(seed=4).y)
    monitor.update(rows.X, rows.y)
    levels, group = monitor.levels(), model[:-1].transform(rows.X)
    group = model.steps[-1][1].predict_group(group)
    wrong, score = model.predict(rows.X) != rows.y, model.predict_proba(rows.X)[:, 1]
    for line, members in zip(levels.itertuples(), (group >= 0, group == 0, group == 1), strict=True):
        assert line.rows == members.sum()
        assert line.error == pytest.approx(wrong[members].mean())
        assert line.low < line.error < line.high
        assert line.predicted == pytest.approx(score[members].mean())
        assert line.observed == pytest.approx((rows.y[members] == "yes").mean())
    before = good_rows(seed=4)
    assert levels["reference_error"][0] == pytest.approx((model.predict(before.X) != before.y).mean())


def test_probabilities_that_are_too_low_are_noticed(model):
    rows = good_rows()
    monitor = Monitor(model, level_margin=0.05)
    update = monitor.update(rows.X, np.where(np.random.default_rng(0).random(1500) < 0.4, "yes", rows.y))
    assert "The probabilities of the model in use are too low, in all rows" in str(update)


def test_reference_labels_need_their_rows(model):
    with pytest.raises(InputError, match="reference_labels"):
        Monitor(model, reference_labels=good_rows().y)
