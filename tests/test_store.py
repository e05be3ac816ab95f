"""Results in SQLite: whole or absent, however the process ends and whoever else reads."""

import signal
import sqlite3
import subprocess
import sys

import pytest

from dafh.exceptions import InputError
from dafh.study.store import ResultStore

WRITER = """
import sys
from dafh.study.store import ResultStore

with ResultStore(sys.argv[1]) as store:
    for number in range(1000):
        store.put(f"job {number}", {"split": number}, [{"value": number / 7}, {"value": -number}], 0.5)
        print(number, flush=True)
        sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


def start_writer(path):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_what_was_put_before_a_kill_is_there_whole_and_nothing_else(path):
    with start_writer(path) as writer:
        for number in range(3):
            assert writer.stdout.readline() == f"{number}\n"
            if number < 2:
                writer.stdin.write("\n")
                writer.stdin.flush()
        writer.send_signal(signal.SIGKILL)
    with ResultStore(path) as store:
        assert store.keys() == {"job 0", "job 1", "job 2"}
        assert store.rows(["job 2"]) == [{"split": 2, "value": 2 / 7}, {"split": 2, "value": -2}]


def test_others_read_while_one_process_writes(path):
    with start_writer(path) as writer:
        assert writer.stdout.readline() == "0\n"
        with ResultStore(path) as one, ResultStore(path) as other:
            assert one.keys() == other.keys() == {"job 0"}
            writer.stdin.write("\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "1\n"
            assert one.keys() == other.keys() == {"job 0", "job 1"}
        writer.kill()


def test_values_come_back_as_they_were(path):
    row = {"text": 'ü "quoted"', "none": None, "big": 10**18, "tiny": 5e-324, "list": [0.1, 1], "truth": True}
    with ResultStore(path) as store:
        store.put("job", {"dataset": "größe"}, [row], 0.0)
    with ResultStore(path) as store:
        (found,) = store.rows(["job"])
    assert found == {"dataset": "größe", **row}
    assert found["truth"] is True


def test_a_result_that_cannot_be_written_leaves_the_older_one(path):
    with ResultStore(path) as store:
        store.put("job", {}, [{"value": 1}], 1.0, "first")
        with pytest.raises(TypeError, match="not JSON serializable"):
            store.put("job", {}, [{"value": 2}, {"value": object()}], 2.0, "second")
        assert store.rows(["job"]) == [{"value": 1}]
        assert store.keys("first") == {"job"}


def test_a_newer_result_replaces_rows_time_and_origin_at_once(path):
    with ResultStore(path) as store:
        store.put("job", {"a": 1}, [{"x": 1}, {"x": 2}], 1.0, "first")
        store.put("job", {"a": 2}, [{"x": 3}], 2.0, "second")
        assert store.rows(["job"]) == [{"a": 2, "x": 3}]
        assert store.seconds() == {"job": 2.0}
        assert (store.keys("first"), store.keys("second"), store.keys()) == (set(), {"job"}, {"job"})


def test_folders_are_made_and_a_file_in_the_way_is_explained(tmp_path):
    ResultStore(tmp_path / "a" / "b" / "results.sqlite").close()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be used to store results"):
        ResultStore(tmp_path / "file" / "results.sqlite")


def test_a_refused_file_is_not_kept_open(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (a)")
    connection.close()
    with pytest.raises(InputError, match="belongs to another program"):
        ResultStore(path)
    with pytest.raises(InputError, match="belongs to another program"):  # Nothing was marked as ours the first time.
        ResultStore(path)
    assert {file.name for file in path.parent.iterdir()} == {path.name}
