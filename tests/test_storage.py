"""Files that are written whole, and what killed processes leave of them."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

from dafh.exceptions import InputError
from dafh.storage import leftovers
from dafh.storage.leftovers import FOLDER_PREFIX, PREFIX, create_beside, shared_folder, sweep_files
from dafh.storage.nameless import nameless_file, temporary_folder
from dafh.storage.replacing import check_writable, replacing
from dafh.tables.write import TableWriter
from tables import written

LEFT = f"{PREFIX}01234567-scored.csv"


# ---- what killed processes leave ----


def test_an_unfinished_file_whose_process_is_gone_is_removed_by_the_next_writer(tmp_path):
    (tmp_path / LEFT).write_text("half")
    with replacing(tmp_path / "other.txt") as temporary:
        temporary.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]


def test_an_unfinished_file_that_somebody_is_writing_stays(tmp_path):
    with replacing(tmp_path / "one.txt") as one:
        one.write_text("one")
        with replacing(tmp_path / "other.txt") as other:
            other.write_text("other")
            assert one.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.txt", "other.txt"]
    assert (tmp_path / "one.txt").read_text() == "one"


CHILD = "from dafh.storage.leftovers import create_beside; from pathlib import Path; import sys, time"
WAITS = f"{CHILD}; create_beside(Path(sys.argv[1]), None); print('held', flush=True); time.sleep(60)"


def test_another_process_holds_its_file_until_it_is_killed(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", WAITS, tmp_path / "a.csv"], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout.readline() == "held\n"
        sweep_files(tmp_path)
        assert len(list(tmp_path.iterdir())) == 1
        child.send_signal(signal.SIGKILL)
    sweep_files(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_only_files_with_our_name_are_swept(tmp_path):
    for name in (".dafh-part", "dafh-part-01234567-x", ".part", "x.tmp"):
        (tmp_path / name).write_text("of somebody else")
    sweep_files(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_what_is_no_file_of_ours_is_left_alone_even_with_our_name(tmp_path):
    target = written(tmp_path, "precious")
    (tmp_path / LEFT).symlink_to(target)
    (tmp_path / f"{PREFIX}folder").mkdir()
    os.mkfifo(tmp_path / f"{PREFIX}pipe")
    sweep_files(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    assert target.read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_other_users_are_left_alone(tmp_path):
    (tmp_path / LEFT).write_text("half")
    os.chown(tmp_path / LEFT, 65534, 65534)
    sweep_files(tmp_path)
    assert (tmp_path / LEFT).exists()


def test_a_new_file_that_was_swept_before_it_was_held_is_made_again(tmp_path, monkeypatch):
    """Between making and holding it, another process takes it for one that was left."""
    hold, swept = leftovers._hold, []

    def sweep_first(handle):
        if not swept:
            swept.append(1)
            sweep_files(tmp_path)
        return hold(handle)

    monkeypatch.setattr(leftovers, "_hold", sweep_first)
    handle, made = create_beside(tmp_path / "a.csv", None)
    os.close(handle)
    assert made.exists()


def test_a_folder_that_is_missing_is_no_reason_to_stop(tmp_path):
    sweep_files(tmp_path / "none")


def test_a_shared_folder_vanishes_and_those_of_killed_processes_vanish_with_the_next_one(tmp_path):
    for name, files in (("empty", ()), ("left", ("owner", "lane-0.rows"))):
        folder = tmp_path / f"{FOLDER_PREFIX}{name}"
        folder.mkdir()
        for file in files:
            (folder / file).touch()
    with shared_folder(tmp_path) as one, shared_folder(tmp_path) as other:
        assert {one, other} == set(tmp_path.iterdir())
        assert one != other
    assert list(tmp_path.iterdir()) == []


def test_many_threads_that_write_beside_each_other_lose_nothing(tmp_path):
    def write(number):
        for _ in range(10):
            with replacing(tmp_path / f"{number}.txt") as temporary:
                temporary.write_text(str(number))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {f"{n}.txt": str(n) for n in range(8)}


# ---- replacing ----


def test_a_private_file_stays_private(tmp_path):
    path = written(tmp_path, "before")
    path.chmod(0o600)
    with replacing(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        temporary.write_text("after")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_to_a_file_that_does_not_exist_leads_to_a_new_one(tmp_path):
    (tmp_path / "link").symlink_to("new")
    with replacing(tmp_path / "link") as temporary:
        temporary.write_text("x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").read_text() == "x"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("n" * 300, "file name too long"), ("a\0b", "letters that no path can have"), ("loop", "form a circle")],
)
def test_a_path_that_cannot_be_is_one_sentence(tmp_path, name, reason):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=f"cannot be written: .*{reason}"):
        check_writable(tmp_path / name)


def test_a_full_device_is_named_and_stays_a_device():
    device = Path("/dev/full")
    if not device.is_char_device():
        pytest.skip("there is no such device")

    def write():
        with replacing(device) as same:
            assert same == device
            same.write_bytes(b"x")

    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write()
    assert device.is_char_device()


def test_parquet_goes_through_a_named_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.parquet")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe.parquet").read_bytes()))
    reader.start()
    with TableWriter(tmp_path / "pipe.parquet") as writer:
        writer.write(pd.DataFrame({"a": [1, 2]}))
    reader.join(timeout=30)
    (tmp_path / "copy.parquet").write_bytes(received[0])
    assert pd.read_parquet(tmp_path / "copy.parquet")["a"].tolist() == [1, 2]


def test_the_same_rows_give_the_same_packed_bytes(tmp_path):
    for name in ("one.csv.gz", "other.csv.gz"):
        with TableWriter(tmp_path / name) as writer:
            writer.write(pd.DataFrame({"a": [1, 2]}))
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "other.csv.gz").read_bytes()


def test_without_locks_files_are_closed_before_they_are_replaced_and_nothing_is_swept(tmp_path, monkeypatch):
    for module in ("leftovers", "replacing"):
        monkeypatch.setattr(f"dafh.storage.{module}.CAN_HOLD", False)
    (tmp_path / LEFT).write_text("half")
    closed, close = [], os.close
    monkeypatch.setattr(os, "close", lambda handle: closed.append(handle) or close(handle))
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda *paths: replace(*paths) if closed else pytest.fail("still open"))
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("x")
    assert sorted(path.name for path in tmp_path.iterdir()) == [LEFT, "a.txt"]


def test_temporary_files_lie_where_the_variable_says_and_have_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert temporary_folder() == tmp_path
    with nameless_file() as file:
        file.write(b"x")
        assert list(tmp_path.iterdir()) == []


def test_a_folder_for_temporary_files_that_does_not_exist_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    monkeypatch.setenv("TEMP", str(tmp_path))
    assert temporary_folder() == tmp_path
