"""Results in SQLite: whole or absent, however the process ends and whoever else reads."""

import signal
import sqlite3
import subprocess
import sys

import pandas as pd
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


class Interrupted(BaseException):
    """What stands for a kill between two statements."""


@pytest.mark.parametrize("last", range(6))
def test_a_store_whose_making_was_interrupted_anywhere_can_be_used_afterwards(path, monkeypatch, last):
    class Connection(sqlite3.Connection):
        n_left = last

        def execute(self, *arguments):
            if self.n_left == 0:
                raise Interrupted
            self.n_left -= 1
            return super().execute(*arguments)

    connect = sqlite3.connect
    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", lambda name: connect(name, factory=Connection))
        with pytest.raises(Interrupted):
            ResultStore(path)
    with ResultStore(path) as store:
        store.put("job", {"split": 1}, [{"value": 2}], 0.1)
        assert store.rows(["job"]) == [{"split": 1, "value": 2}]


@pytest.mark.parametrize("moment", range(6))
def test_two_processes_that_make_the_same_store_both_get_it(path, monkeypatch, moment):
    """Another one makes it between any two statements of the first."""
    connect = sqlite3.connect

    class Connection(sqlite3.Connection):
        n_left = moment

        def execute(self, *arguments):
            if self.n_left == 0:
                monkeypatch.setattr(sqlite3, "connect", connect)
                with ResultStore(path) as other:
                    other.put("second", {}, [{}], 0.0)
            self.n_left -= 1
            return super().execute(*arguments)

    monkeypatch.setattr(sqlite3, "connect", lambda name: connect(name, factory=Connection))
    with ResultStore(path) as store:
        store.put("first", {}, [{}], 0.0)
        assert store.keys() == {"first", "second"}


def test_values_come_back_as_they_were(path):
    row = {"text": 'ü "quoted"', "none": None, "big": 10**18, "tiny": 5e-324, "list": [0.1, 1], "truth": True}
    with ResultStore(path) as store:
        store.put("job", {"dataset": "größe"}, [row], 0.0)
    with ResultStore(path) as store:
        (found,) = store.rows(["job"])
    assert found == {"dataset": "größe", **row}
    assert found["truth"] is True


def test_a_missing_number_stays_missing(path):
    with ResultStore(path) as store:
        store.put("job", {}, [{"pr": float("nan"), "gain": float("inf")}], 0.0)
        frame = store.frame(["job"])
    assert frame["pr"].isna().all()
    assert frame["gain"].tolist() == [float("inf")]


def test_rows_come_in_the_order_of_the_keys_and_unknown_keys_are_passed_over(path):
    with ResultStore(path) as store:
        for key in ("b", "a", "c"):
            store.put(key, {"key": key}, [{"row": 0}, {"row": 1}], 0.0)
        found = [(row["key"], row["row"]) for row in store.rows(["c", "missing", "b"])]
    assert found == [("c", 0), ("c", 1), ("b", 0), ("b", 1)]


def test_a_row_overrides_a_field_of_its_job(path):
    with ResultStore(path) as store:
        store.put("job", {"n_groups": 3, "split": 1}, [{"n_groups": 2}], 0.0)
        assert store.rows(["job"]) == [{"n_groups": 2, "split": 1}]


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


def test_no_origin_is_an_origin_of_its_own(path):
    with ResultStore(path) as store:
        store.put("a", {}, [], 0.0)
        store.put("b", {}, [], 0.0, "dafh 1")
        assert (store.keys(""), store.keys("dafh 1"), store.keys(None)) == ({"a"}, {"b"}, {"a", "b"})


def test_a_job_without_rows_is_done_all_the_same(path):
    with ResultStore(path) as store:
        store.put("empty", {"split": 0}, [], 0.0)
        assert store.keys() == {"empty"}
        assert store.frame(["empty"]).empty


def test_a_table_of_the_results_survives_csv_and_parquet(path, tmp_path):
    with ResultStore(path) as store:
        for split in range(3):
            store.put(f"{split}", {"dataset": "a, b", "split": split}, [{"accuracy": 1 / (split + 3)}], 0.0)
        frame = store.frame(["0", "1", "2"])
    frame.to_csv(tmp_path / "r.csv", index=False)
    frame.to_parquet(tmp_path / "r.parquet")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "r.csv"), frame, check_exact=True)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "r.parquet"), frame, check_exact=True)


def test_folders_are_made_and_a_file_in_the_way_is_explained(tmp_path):
    ResultStore(tmp_path / "a" / "b" / "results.sqlite").close()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be used to store results"):
        ResultStore(tmp_path / "file" / "results.sqlite")


def test_a_folder_is_no_store(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path} cannot be used to store results"):
        ResultStore(tmp_path)


def test_a_store_that_was_closed_says_so_when_written(path):
    store = ResultStore(path)
    store.close()
    with pytest.raises(InputError, match="cannot be written: Cannot operate on a closed database"):
        store.put("job", {}, [], 0.0)


def test_a_refused_file_is_not_kept_open(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (a)")
    connection.close()
    with pytest.raises(InputError, match="belongs to another program"):
        ResultStore(path)
    with pytest.raises(InputError, match="belongs to another program"):  # Nothing was marked as ours the first time.
        ResultStore(path)
    assert {file.name for file in path.parent.iterdir()} == {path.name}


def test_the_file_is_marked_as_ours_for_good(path):
    """Stores of earlier runs carry this mark; another one would make all of them another program's."""
    ResultStore(path).close()
    assert path.read_bytes()[68:72] == b"dafh"  # Where SQLite keeps the application id.


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE results SET job = NULL",
        "UPDATE results SET job = '[]'",
        "UPDATE results SET rows = '{'",
        "UPDATE results SET rows = '5'",
        "UPDATE results SET rows = '[5]'",
        "UPDATE results SET rows = x'ff'",
        "UPDATE results SET rows = CAST(x'ff' AS TEXT)",
        f"UPDATE results SET rows = '{'[' * 100_000}'",
        "UPDATE results SET key = NULL",
        "UPDATE results SET seconds = 'long'",
        "CREATE VIEW more AS SELECT 1",
        "CREATE TABLE more (a)",
        "CREATE TRIGGER more AFTER INSERT ON results BEGIN UPDATE results SET rows = '[]'; END",
    ],
    ids=lambda statement: statement[:50],
)
def test_a_forged_store_is_refused_in_one_sentence(path, statement):
    with ResultStore(path) as store:
        store.put("job", {"split": 1}, [{"value": 2}], 0.5)
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()

    def read():
        with ResultStore(path) as store:
            return store.keys(), store.rows(["job"]), store.seconds()

    with pytest.raises(InputError, match=r"cannot be used as results of a study: it is damaged \([^\n]+\)\.$"):
        read()


@pytest.mark.parametrize("forged", ["x", [1, 2], {}, 10**400])
def test_results_that_no_job_could_have_put_are_refused(tmp_path, forged):
    with ResultStore(tmp_path / "results.sqlite") as store:
        store.put("a", {"split": 0}, [{"accuracy": 0.5}], seconds=1.0)
        store.put("b", {"split": 1}, [{"accuracy": forged}], seconds=1.0)
        with pytest.raises(InputError, match="cannot be used as results of a study: it is damaged"):
            store.frame(["a", "b"])
