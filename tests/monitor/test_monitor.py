"""The monitor: what it counts, when it raises an alarm, and who serves whom then."""

import numpy as np
import pandas as pd
import pytest

from dafh import DAFHClassifier, DecoupledClassifier, Monitor
from dafh.exceptions import InputError
from dafh.partitions import IntersectionPartition
from watched import bad_rows, fresh_model, good_rows, parts_of, same_evidence


@pytest.fixture(scope="module")
def model():
    """Not to be changed."""
    return fresh_model()


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


def test_the_order_of_rows_in_a_file_does_not_matter(model):
    rows = bad_rows(400)
    as_given, by_label = (Monitor(model, losses=("error", "fpr", "fnr")) for _ in range(2))
    order = np.argsort(rows.y, kind="stable")
    as_given.update(rows.X, rows.y)
    by_label.update(rows.X.iloc[order], rows.y[order])
    same_evidence(as_given, by_label)
    assert by_label.notices == as_given.notices


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


def test_of_a_person_with_several_rows_one_counts(model):
    rows = good_rows()
    monitor, by_label, order = Monitor(model), Monitor(model), np.argsort(good_rows().y[:900], kind="stable")
    update = monitor.update(rows.X[:900], rows.y[:900], persons=np.arange(900) // 3)
    assert (update.n_labelled, update.n_left_out, monitor.n_rows) == (900, 600, 300)
    by_label.update(rows.X[:900].iloc[order], rows.y[:900][order], persons=order // 3)
    same_evidence(monitor, by_label)  # Which one does not depend on where it stands in the file.
    update = monitor.update(rows.X[900:], rows.y[900:], persons=np.arange(600))
    assert (update.n_left_out, monitor.n_rows) == (300, 600)
    with pytest.raises(InputError, match="persons"):
        monitor.update(rows.X, rows.y)


# ---- labels that come late ----


def test_rows_without_labels_wait_and_then_count_as_if_labelled_at_once(model):
    rows = good_rows()
    late, at_once = Monitor(model), Monitor(model)
    update = late.update(rows.X, ids=np.arange(1500))
    assert (update.n_labelled, update.n_waiting) == (0, 1500)
    update = late.label(np.arange(1500), rows.y)
    assert (update.n_labelled, update.n_late, update.n_waiting) == (1500, 1500, 0)
    at_once.update(rows.X, rows.y, ids=np.arange(1500))
    same_evidence(late, at_once)


def test_late_labels_are_told_by_the_values_of_the_rows(model):
    rows = good_rows()
    y = pd.Series(rows.y).where(np.arange(1500) % 2 == 0, None)
    late, at_once = Monitor(model), Monitor(model)
    first = late.update(rows.X, y)
    assert (first.n_labelled, first.n_waiting, first.n_held) == (0, 750, 750)
    again = late.update(rows.X[1::2], rows.y[1::2])
    assert (again.n_labelled, again.n_late, again.n_waiting) == (1500, 750, 0)
    at_once.update(rows.X, rows.y)
    same_evidence(late, at_once)


def test_a_batch_counts_when_nearly_all_labels_are_known_and_then_once(model):
    rows = good_rows(200)
    monitor, each = Monitor(model), Monitor(model, min_labelled=0)
    for one in (monitor, each):
        one.update(rows.X, pd.Series(rows.y).where(np.arange(200) < 100, None), ids=np.arange(200))
    assert (monitor.n_rows, each.n_rows) == (0, 100)
    for one in (monitor, each):
        one.label(np.arange(100, 192), rows.y[100:192])
    assert (monitor.n_rows, each.n_rows) == (200, 192)
    # Those that were missing have counted, as if they spoke against what is to be shown.
    assert monitor.table()["rows"].sum() == 192
    assert monitor.label(np.arange(192, 200), rows.y[192:]).n_repeated == 8
    assert each.label(np.arange(192, 200), rows.y[192:]).n_late == 8


def test_rows_with_a_known_id_are_left_out(model):
    rows = good_rows()
    monitor = Monitor(model)
    monitor.update(rows.X[:1000], rows.y[:1000], ids=np.arange(1000))
    update = monitor.update(rows.X[500:], rows.y[500:], ids=np.arange(500, 1500))
    assert (update.n_repeated, update.n_labelled, monitor.n_rows) == (500, 500, 1500)
    assert monitor.update(rows.X, ids=np.arange(1500)).n_repeated == 1500


def test_files_that_overlap_without_ids_count_each_row_once(model):
    rows, monitor = good_rows(), Monitor(model)
    sizes = [monitor.update(rows.X[first : first + 500], rows.y[first : first + 500]) for first in range(0, 1001, 250)]
    assert [update.n_repeated for update in sizes] == [0, 250, 250, 250, 250]
    assert monitor.n_rows == 1500


def test_rows_of_few_different_values_are_not_taken_for_earlier_ones(model):
    X = good_rows().X.assign(experience=5.0, hours=38.0, since=good_rows().X["since"].iloc[0])
    monitor = Monitor(model)
    for first in (0, 500, 1000):
        assert monitor.update(X[first : first + 500], good_rows().y[first : first + 500]).n_repeated == 0
    assert monitor.n_rows == 1500


# ---- the model in use, by itself ----


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


# ---- drift ----


def test_input_like_that_of_training_does_not_drift(model):
    monitor = Monitor(model, reference=good_rows().X)
    update = monitor.update(good_rows(1500, seed=5).X)
    assert not update.notices
    assert (monitor.drift()["evidence"] < 40).all()


def test_shares_of_groups_gaps_and_new_categories_are_noticed(model):
    X = good_rows(1500, seed=5).X.copy()
    X["hours"] = np.nan
    X.loc[::5, "job"] = "astronaut"
    monitor = Monitor(model, reference=good_rows().X)
    update = monitor.update(X)
    drift = monitor.drift().set_index("name")
    assert {"hours missing", "job never seen"} <= set(drift.index[drift["drift_row"] > 0])
    assert drift.loc["job never seen", "share"] == pytest.approx(0.2)
    assert "hours missing" in str(update)
    assert "since missing" not in set(drift.index[drift["drift_row"] > 0])


def test_a_drift_is_told_once_and_a_margin_tolerates_it(model):
    X = good_rows(1500, seed=5).X.copy()
    X.loc[::4, "job"] = "astronaut"
    monitor, tolerant = (Monitor(model, reference=good_rows().X, drift_margin=margin) for margin in (0.0, 0.5))
    assert monitor.update(X).notices
    assert not monitor.update(X).notices
    assert not tolerant.update(X).notices


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
