"""What training rows looked like: the same in another session, and counted alike in later rows."""

import json

import numpy as np
import pandas as pd
import pytest

from dafh import Monitor
from dafh.monitor.inputs import Reference
from watched import good_rows


def test_a_reference_is_the_same_in_another_session():
    table = pd.DataFrame({"n": [1.0, np.inf, None], "c": ["x", None, "y"]})
    reference = Reference.of(table, np.array([0, 2, 1]), 2, divides_all=False)
    again = Reference.from_dict(json.loads(json.dumps(reference.to_dict())))
    assert again == reference
    assert {share.name: share.n_rows for share in again.shares()} == {
        "rows of group 0": 1, "rows of group 1": 1, "rows of no group": 1, "n missing": 2, "c missing": 1,
        "c never seen": 0,
    }  # fmt: skip
    np.testing.assert_array_equal(again.count(table, np.array([0, 2, 1])), [1, 1, 1, 2, 1, 0])


def test_numbers_are_cut_at_their_quantiles_and_long_lists_have_one_share_of_rare_categories():
    table = pd.DataFrame({"n": np.arange(100.0), "c": [f"name {i}" for i in range(100)]})
    reference = Reference.of(table, np.zeros(100, int), 1)
    assert [(share.name, share.n_rows) for share in reference.shares()] == [
        ("n missing", 0), ("n up to 4", 5), ("n 4 to 24", 20), ("n 24 to 49", 25), ("n 49 to 74", 25),
        ("n 74 to 94", 20), ("n above 94", 5), ("c missing", 0), ("c (other)", 41),
    ]  # fmt: skip
    assert reference.count(table.assign(c="new"), np.zeros(100, int))[-1] == 100


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
