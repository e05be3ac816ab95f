"""Results as files: whole or not at all, and harmless."""

import gzip
import stat

import pandas as pd
import pytest

from dafh.exceptions import InputError
from dafh.tables.writing import TableWriter, check_writable, replacing
from tables import written


def test_formulas_are_harmless_in_csv_and_untouched_in_parquet(tmp_path):
    table = pd.DataFrame({"=name()": ["=cmd()", "@x", "plain", "-5", "+1.5", "-y"], "n": [-1, 2, 3, 4, 5, 6]})
    for name in ("t.csv", "t.parquet"):
        with TableWriter(tmp_path / name) as writer:
            writer.write(table)
            writer.write(table)
    cells = pd.read_csv(tmp_path / "t.csv")
    assert cells.columns[0] == "'=name()"
    assert cells.iloc[:6, 0].tolist() == ["'=cmd()", "'@x", "plain", "-5", "+1.5", "'-y"]
    assert cells["n"].tolist() == [-1, 2, 3, 4, 5, 6] * 2
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), pd.concat([table] * 2, ignore_index=True))


def test_packed_output_and_standard_output(tmp_path, capsys):
    table = pd.DataFrame({"a": [1, 2]})
    for target in (tmp_path / "t.csv.gz", "-"):
        with TableWriter(target) as writer:
            writer.write(table)
    packed = gzip.decompress((tmp_path / "t.csv.gz").read_bytes()).decode()
    assert packed == capsys.readouterr().out == "a\n1\n2\n"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = written(tmp_path, "before")

    def fail():
        with TableWriter(path) as writer:
            writer.write(pd.DataFrame({"a": [1]}))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_result_has_the_rights_of_an_ordinary_file(tmp_path):
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("x")
    (tmp_path / "b.txt").write_text("x")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == stat.S_IMODE((tmp_path / "b.txt").stat().st_mode)


def test_places_that_cannot_be_written_to_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="is a folder"):
        check_writable(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        check_writable(tmp_path / "none" / "x.csv")

    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(InputError, match="cannot be written: permission denied"):
        check_writable(tmp_path / "x.csv")
