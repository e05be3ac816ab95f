"""Files that are written whole or not at all."""

import os
import stat
import threading
from pathlib import Path

import pandas as pd
import pytest

from dafh.columns.write import TableWriter
from dafh.exceptions import InputError
from dafh.storage import check_writable, replacing
from tables import written


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = written(tmp_path, "before")
    with replacing(path) as temporary:
        temporary.write_text("after")
        assert path.read_text() == "before"
        assert temporary.suffix == path.suffix
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = written(tmp_path, "before")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_result_has_the_rights_of_an_ordinary_file_and_a_private_file_stays_private(tmp_path):
    for name in ("a.txt", "private.txt"):
        (tmp_path / name).write_text("before")
    (tmp_path / "private.txt").chmod(0o600)
    rights = {}
    for name in ("new.txt", "private.txt"):
        with replacing(tmp_path / name) as temporary:
            rights[name] = stat.S_IMODE(temporary.stat().st_mode)
            temporary.write_text("after")
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == rights[name]
    assert rights == {"new.txt": stat.S_IMODE((tmp_path / "a.txt").stat().st_mode), "private.txt": 0o600}


def test_a_link_stays_a_link_even_to_a_file_that_does_not_exist(tmp_path):
    (tmp_path / "link").symlink_to("new")
    with replacing(tmp_path / "link") as temporary:
        temporary.write_text("x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").read_text() == "x"


@pytest.mark.parametrize("name", ["n" * 300, "none/x.csv", ""])
def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path, name):
    with pytest.raises(InputError, match=r"cannot be written|no folder|is a folder") as caught:
        check_writable(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_checking_a_path_leaves_nothing_behind(tmp_path):
    check_writable(tmp_path / "new.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_full_device_is_named_and_stays_a_device():
    device = Path("/dev/full")
    if not device.is_char_device():
        pytest.skip("there is no such device")
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"), replacing(device) as same:
        same.write_bytes(b"x")
    assert device.is_char_device()


def test_a_named_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.parquet")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe.parquet").read_bytes()))
    reader.start()
    with TableWriter(tmp_path / "pipe.parquet") as writer:
        writer.write(pd.DataFrame({"a": [1, 2]}))
    reader.join(timeout=30)
    (tmp_path / "copy.parquet").write_bytes(received[0])
    assert pd.read_parquet(tmp_path / "copy.parquet")["a"].tolist() == [1, 2]
    assert (tmp_path / "pipe.parquet").is_fifo()


def test_many_threads_that_write_the_same_file_leave_one_of_their_contents(tmp_path):
    def write(number):
        for _ in range(10):
            with replacing(tmp_path / "same.txt") as temporary:
                temporary.write_text(str(number) * 1000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "same.txt").read_text() in {str(number) * 1000 for number in range(8)}
    assert os.listdir(tmp_path) == ["same.txt"]
