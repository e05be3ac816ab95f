"""A monitor changes who serves whom only where that is shown, and its level holds over all terms of service."""

import numpy as np

from dafh import Monitor, load, save
from watched import bad_rows, fresh_model, good_rows


def test_after_an_alarm_the_pooled_classifier_serves(tmp_path):
    model = fresh_model()
    monitor = Monitor(model)
    monitor.update(bad_rows().X, bad_rows().y, name="October")
    harmed = sorted({alarm.group for alarm in monitor.alarms if alarm.kind == "harm"})
    changes = monitor.apply()
    assert [change.group for change in changes] == harmed
    final, X = model.steps[-1][1], model[:-1].transform(bad_rows().X)
    every, group = final.predict_all(X), final.predict_group(X)
    served = np.isin(group, harmed)
    assert (model.predict(bad_rows().X)[served] == every[served, -1]).all()
    assert monitor.apply() == []
    assert monitor.service == changes
    save(model, tmp_path / "model.dafh")
    assert (load(tmp_path / "model.dafh").predict(bad_rows().X) == model.predict(bad_rows().X)).all()


def test_a_classifier_comes_back_only_with_proof(tmp_path):
    model = fresh_model()
    monitor = Monitor(model)
    monitor.update(bad_rows().X, bad_rows().y)
    taken_out = [change.group for change in monitor.apply()]
    assert not monitor.table().set_index("group")["in_service"][taken_out].any()
    for seed in (11, 12):
        rows = good_rows(1500, seed=seed)
        monitor.update(rows.X, rows.y)
    back = monitor.apply()
    assert sorted(change.group for change in back) == taken_out
    assert all(change.after == "its own" for change in back)
    save(model, tmp_path / "model.dafh")
    assert len(monitor.service) == 2 * len(taken_out)


def test_without_evidence_nothing_changes(model):
    monitor = Monitor(model)
    assert monitor.apply() == []
    monitor.update(good_rows().X[:50], good_rows().y[:50])
    assert monitor.apply() == []


def test_a_proof_of_long_ago_puts_nothing_into_service():
    """As good as proved in the first months, then months of harm that nobody has acted upon: it stays out."""
    model = fresh_model()
    final = model.steps[-1][1]
    final.set_params(guard="proof").recalibrate(model[:-1].transform(bad_rows(300).X), bad_rows(300).y)
    monitor = Monitor(model)
    monitor.update(good_rows().X, good_rows().y)
    assert {notice.group for notice in monitor.notices if notice.kind == "benefit"} == {0, 1}
    for seed in range(20, 24):
        X = good_rows(500, seed=seed).X
        monitor.update(X, final.predict_all(model[:-1].transform(X))[:, -1])  # Only the pooled classifier is right.
    assert monitor.apply() == []


# ---- the level, over all terms ----


def test_a_group_that_never_served_has_all_its_capital_when_it_does():
    model = fresh_model()
    final = model.steps[-1][1]
    final.set_params(guard="proof").recalibrate(model[:-1].transform(bad_rows(300).X), bad_rows(300).y)
    monitor = Monitor(model)
    monitor.update(good_rows().X, good_rows().y)
    assert [change.after for change in monitor.apply()] == ["its own", "its own"]
    np.testing.assert_allclose(monitor.table()["harm_evidence"], 0.99)
    np.testing.assert_allclose(monitor.table()["benefit_evidence"], 0.1)


def test_a_second_term_in_service_has_what_is_left_and_needs_the_most():
    monitor = Monitor(fresh_model())
    monitor.update(bad_rows().X, bad_rows().y)
    out = [change.group for change in monitor.apply()]
    for seed in (11, 12):
        monitor.update(good_rows(1500, seed=seed).X, good_rows(1500, seed=seed).y)
    monitor.apply()
    table = monitor.table().set_index("group").loc[out]
    np.testing.assert_allclose(table["harm_evidence"], 0.005)
    np.testing.assert_allclose(table["harm_needed"], 2 / 0.05)
    monitor.update(bad_rows(1500, seed=3).X, bad_rows(1500, seed=3).y)
    assert {alarm.group for alarm in monitor.alarms if alarm.batch == 4 and alarm.kind == "harm"} <= set(out)
