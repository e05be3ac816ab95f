"""The books of a monitor in a file: nothing is lost between two sessions, and damage is noticed."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pytest

from dafh import Monitor
from dafh.exceptions import InputError
from dafh.monitor.store import WatchStore
from dafh.persistence import open_model
from watched import bad_rows, fresh_model, good_rows, same_evidence, watch, watched_folder


@pytest.fixture
def state(tmp_path):
    return tmp_path / "watch.db"


def through_a_file(monitor):
    """The monitor as another session finds it."""
    values, arrays = monitor.to_state()
    copies = {name: array.copy() for name, array in arrays.items()}
    return Monitor.from_state(monitor.model, json.loads(json.dumps(values)), copies)


def test_a_monitor_goes_on_where_another_session_ended():
    rows, model = good_rows(), fresh_model()
    about = rows.sensitive.assign(age=np.arange(1500) % 60)
    settings = {"losses": ("error", "cost"), "costs": {"fp": 1, "fn": 3}, "largest_weight": 2.0, "level": 0.1}
    straight, broken = (Monitor(model, **settings) for _ in range(2))
    for first in range(0, 1500, 500):
        part = slice(first, first + 500)
        y = pd.Series(rows.y[part]).where(np.arange(500) % 5 > 0, None)
        given = {"sensitive_features": about[part], "sample_weight": np.tile([1.0, 2.0], 250)}
        known = {"ids": np.arange(first, first + 500), "persons": np.arange(first, first + 500) // 2}
        for monitor in (straight, broken):
            monitor.update(rows.X[part], y, **given, **known)
        broken = through_a_file(broken)
        labels = np.arange(first, first + 500, 5)
        late = straight.label(labels, rows.y[labels])
        assert broken.label(labels, rows.y[labels]) == late
        assert late.n_waiting == 0
    same_evidence(straight, broken)
    pd.testing.assert_frame_equal(straight.table(), broken.table())
    pd.testing.assert_frame_equal(straight.drift(), broken.drift())
    assert broken.notices == straight.notices


def test_so_it_does_after_a_change_of_service():
    straight, broken = (Monitor(fresh_model()) for _ in range(2))
    for rows in (bad_rows(), good_rows(), good_rows(1500, seed=12)):
        for monitor in (straight, broken):
            monitor.update(rows.X, rows.y)
            monitor.apply()
        broken = through_a_file(broken)
    assert broken.service == straight.service != []
    pd.testing.assert_frame_equal(straight.table(), broken.table())


def test_the_state_is_that_of_a_monitor_of_the_same_rows(state):
    for month in (1, 2):
        watch(state, month)
    model, _ = open_model(watched_folder() / "model.dafh")
    with WatchStore(state, must_exist=True) as store:
        stored = store.monitor(model)
    monitor = Monitor(model)
    for month in (1, 2):
        table = pd.read_csv(watched_folder() / f"{month}.csv", parse_dates=["since"])
        monitor.update(table[["experience", "job", "hours", "since", "remote"]], table["hired"].to_numpy(),
                       sensitive_features=table[["sex"]])  # fmt: skip
    pd.testing.assert_frame_equal(stored.table(), monitor.table())
    assert str(stored) == str(monitor)
    assert "rows of group 0" in set(stored.drift()["name"])


def test_a_damaged_state_is_refused(state):
    watch(state, 1)
    with sqlite3.connect(state) as connection:
        connection.execute("UPDATE state SET plain = '{}', arrays = substr(arrays, 1, 500)")
    connection.close()
    result = watch(state, 2)
    assert result.exit_code == 2
    assert "is damaged" in " ".join(result.stderr.split())


def test_files_of_other_programs_and_formats_are_refused(state, tmp_path):
    with sqlite3.connect(state) as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    assert "belongs to another program" in watch(state, 1).stderr
    text = tmp_path / "text.db"
    text.write_text("not a database, and long enough to be told from one" * 20)
    assert "cannot be used as a state" in watch(text, 1).stderr
    newer = tmp_path / "newer.db"
    watch(newer, 1)
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "written by another version of dafh (format 99, not 3)" in watch(newer, 2).stderr


def test_a_state_in_use_makes_others_wait_or_tells_them(state):
    watch(state, 1)
    refusal = pytest.raises(InputError, match=r"in use by another process, for more than 0.2 seconds: try again later")
    with (
        WatchStore(state) as one,
        one.transaction(),
        WatchStore(state, wait=0.2) as other,
        refusal,
        other.transaction(),
    ):
        pass
    assert watch(state, 2).exit_code == 0
