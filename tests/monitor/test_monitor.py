"""The monitor: what it counts, when it raises an alarm, and who serves whom then."""

import numpy as np
import pandas as pd
import pytest

from dafh import DecoupledClassifier, Monitor
from dafh.exceptions import InputError
from dafh.partitions import IntersectionPartition
from watched import bad_rows, fresh_model, good_rows, parts_of, same_evidence

# ---- evidence ----


def test_where_own_classifiers_gain_there_is_no_alarm_but_a_proof(model):
    monitor = Monitor(model)
    update = monitor.update(good_rows().X, good_rows().y)
    assert update.n_labelled == monitor.n_rows == 1500
    assert not monitor.alarms
    assert {notice.group for notice in update.notices if notice.kind == "benefit"} == {0, 1}
    table = monitor.table()
    assert (table["low"] > 0).all()
    assert (table["benefit_evidence"] > 20).all()
    assert (table["harm_evidence"] < 1).all()


def test_where_own_classifiers_do_harm_an_alarm_says_whom_and_when(model):
    monitor = Monitor(model)
    update = monitor.update(bad_rows().X, bad_rows().y)
    alarm = next(alarm for alarm in update.alarms if alarm.kind == "harm")
    assert alarm.gain < 0
    assert alarm.onset < alarm.row
    assert monitor.table()["high"].min() < 0
    assert 1 <= alarm.row <= 1500
    assert f"Group {alarm.group} is worse off" in str(update)
    assert monitor.alarms == update.alarms
    assert monitor.table()["alarm_row"].max() == max(found.row for found in monitor.alarms if found.kind == "harm")


def test_counts_are_those_of_the_rows(model):
    rows = good_rows()
    monitor = Monitor(model, losses=("error", "fnr", "cost"), costs={"fp": 1, "fn": 4})
    monitor.update(rows.X, rows.y)
    final, X = model.steps[-1][1], model[:-1].transform(rows.X)
    every = final.predict_all(X)
    group = final.predict_group(X)
    own = every[np.arange(len(group)), group]
    table = monitor.table().set_index(["group", "loss"])
    for g in (0, 1):
        here, positive = group == g, rows.y == "yes"
        assert table.loc[(g, "error"), "own_loss"] == pytest.approx((own != rows.y)[here].mean())
        assert table.loc[(g, "fnr"), "own_loss"] == pytest.approx((own != rows.y)[here & positive].mean())
        assert table.loc[(g, "fnr"), "rows"] == (here & positive).sum()
        pooled = (every[:, -1] != rows.y) * np.where(positive, 4, 1)
        assert table.loc[(g, "cost"), "pooled_loss"] == pytest.approx(pooled[here].mean())


def test_a_group_that_the_pooled_classifier_serves_cannot_be_harmed():
    model = fresh_model()
    final = model.steps[-1][1]
    final.set_params(guard="proof").recalibrate(model[:-1].transform(bad_rows(300).X), bad_rows(300).y)
    assert (final.serves_ == 2).all()
    monitor = Monitor(model)
    monitor.update(bad_rows().X, bad_rows().y)
    assert not monitor.alarms
    assert (monitor.table()["harm_evidence"] > 20).any()


def test_harm_after_a_good_start_is_noticed(model):
    monitor = Monitor(model)
    monitor.update(good_rows().X, good_rows().y)
    for part in parts_of(bad_rows(), 100):
        monitor.update(part.X, part.y)
    alarm = next(alarm for alarm in monitor.alarms if alarm.kind == "harm")
    assert alarm.row > 1500
    assert abs(alarm.onset - 1500) < 150
    assert alarm.gain > 0


# ---- subgroups, weights, persons ----


def test_harm_in_a_subgroup_is_found_though_its_group_gains(model):
    rows = good_rows()
    harmed = np.random.default_rng(0).random(1500) < 0.3
    sex = pd.DataFrame({"sex": np.where(harmed, "f", "m")})
    y = np.where(harmed, bad_rows().y, rows.y)
    X = pd.concat([rows.X[~harmed], bad_rows().X[harmed]]).sort_index()
    monitor = Monitor(model, sensitive_features=sex)
    update = monitor.update(X, y, sensitive_features=sex)
    assert {alarm.part for alarm in update.alarms if alarm.kind == "harm"} == {"sex = f"}


def test_a_value_that_was_not_declared_is_not_a_subgroup(model):
    monitor = Monitor(model)
    first, later, fresh = good_rows(), pd.DataFrame({"sex": ["x"] * 1500}), good_rows(seed=5)
    monitor.update(first.X, first.y, sensitive_features=first.sensitive)
    before = monitor.table().set_index("part")["rows"]
    monitor.update(fresh.X, fresh.y, sensitive_features=later)
    after = monitor.table().set_index("part")["rows"]
    assert (after["sex = f"] == before["sex = f"]).all()
    assert after[""].sum() == 3000
    with pytest.raises(InputError, match="sensitive_features is missing"):
        monitor.update(first.X, first.y)
    with pytest.raises(InputError, match="no column 'sex'"):
        monitor.update(first.X, first.y, sensitive_features=later.rename(columns={"sex": "gender"}))


def test_rows_of_the_largest_weight_count_like_rows_without_weights(model):
    rows = good_rows()
    plain, weighted = Monitor(model), Monitor(model, largest_weight=3.0)
    plain.update(rows.X, rows.y)
    weighted.update(rows.X, rows.y, sample_weight=np.full(1500, 3.0))
    same_evidence(plain, weighted)
    np.testing.assert_allclose(weighted.table()[["low", "high"]], plain.table()[["low", "high"]], atol=1e-5)


def test_weights_need_a_bound(model):
    rows = good_rows()
    with pytest.raises(InputError, match="largest_weight"):
        Monitor(model).update(rows.X, rows.y, sample_weight=np.ones(1500))
    with pytest.raises(InputError, match="sample_weight holds 2"):
        Monitor(model, largest_weight=1).update(rows.X, rows.y, sample_weight=np.full(1500, 2.0))


# ---- another model ----


@pytest.mark.parametrize("change", ["recalibrate", "fit"])
def test_a_model_that_was_changed_elsewhere_begins_anew(change):
    model = fresh_model()
    monitor = Monitor(model, reference=good_rows().X)
    monitor.update(good_rows().X, good_rows().y)
    rows = bad_rows(600)
    if change == "fit":
        model.fit(rows.X, rows.y)
    else:
        model.steps[-1][1].recalibrate(model[:-1].transform(rows.X), rows.y)
    fresh = good_rows(300, seed=7)
    monitor.update(fresh.X, fresh.y)
    assert [notice.kind for notice in monitor.notices].count("model") == 1
    assert monitor.table()["rows"].sum() == 300


# ---- other models, and bad input ----


def test_groups_of_a_partition_and_rows_of_none_of_them():
    rows = good_rows()
    X = rows.X[["experience", "hours"]].fillna(0.0)
    model = DecoupledClassifier(IntersectionPartition()).fit(X, rows.y, sensitive_features=rows.sensitive)
    monitor = Monitor(model, reference=X, sensitive_features=rows.sensitive)
    strange = rows.sensitive.copy()
    strange.loc[:299, "sex"] = "x"
    update = monitor.update(X, rows.y, sensitive_features=strange)
    assert (update.n_labelled, update.n_left_out, monitor.n_rows) == (1500, 300, 1200)
    assert "rows of no group" in str(update)


def test_more_than_two_classes(grouped_data):
    model = DecoupledClassifier(random_state=0).fit(grouped_data.X, grouped_data.y)
    monitor = Monitor(model)
    monitor.update(grouped_data.X, grouped_data.y)
    assert monitor.table()["rows"].sum() == 1500
    with pytest.raises(InputError, match="needs two classes"):
        Monitor(model, losses="fpr")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 0.7}, "level"),
        ({"largest_weight": 0}, "largest_weight"),
        ({"drift_margin": -1}, "drift_margin"),
        ({"level_margin": 1}, "level_margin"),
        ({"min_labelled": 2}, "min_labelled"),
        ({"losses": "cost"}, "needs costs"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(model, settings, message):
    with pytest.raises(InputError, match=message):
        Monitor(model, **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": ["yes"] * 3}, "give one label for each"),
        ({"y": ["maybe"] * 1500}, "not fitted with"),
        ({"ids": [1, 2]}, "ids has 2 entries"),
        ({"ids": [None] * 1500}, "ids has missing values"),
        ({"persons": np.arange(1500)}, "persons"),
        ({"ids": np.arange(1500)}, "Give ids in every update or in none"),
    ],
)
def test_bad_rows_are_refused_and_leave_the_monitor_as_it_was(model, change, message):
    monitor = Monitor(model)
    monitor.update(good_rows().X, good_rows().y)
    before = monitor.table()
    with pytest.raises(InputError, match=message):
        monitor.update(**{"X": good_rows().X, "y": good_rows().y} | change)
    pd.testing.assert_frame_equal(monitor.table(), before)
