"""Limits of what is read, and tables that broke: refused in one sentence."""

import numpy as np
import pandas as pd
import pytest

from dafh import Scorecard
from dafh.exceptions import InputError
from dafh.linear import scorecard
from dafh.tables.files import MOST_COLUMNS, DataFile
from dafh.tables.labels import read_labels


def read(tmp_path, content, **options):
    (tmp_path / "table.csv").write_bytes(content)
    return DataFile(tmp_path / "table.csv", **options).read()


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"\0,b\n1,2\n", {"header": True}, "a column whose name has the letter NUL"),
        (b"x" * 262_145 + b",b\n1,2\n", {}, "a column whose name has more than 262,144 letters"),
        (b",".join(b"c%d" % i for i in range(MOST_COLUMNS + 1)) + b"\n1\n", {"header": True}, "10,001 columns"),
        ("a,b\n1,2\n".encode("utf-16-le"), {"encoding": "utf-16"}, "has no byte order mark.*utf-16-le"),
        (b"a,b\n1,2\n", {"delimiter": "\0"}, "must be one character of ASCII"),
    ],
)
def test_tables_beyond_the_limits_are_refused(tmp_path, content, options, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, content, **options)


def test_any_number_of_blank_lines_may_stand_before_the_header(tmp_path):
    assert read(tmp_path, b"\n" * 60 + b"a,b\n1,2\n").to_dict("list") == {"a": [1], "b": [2]}


@pytest.mark.parametrize("values", [["0.5", "1.5"], [0.5, 1.5], ["1", "2.5"]])
def test_labels_that_are_fractions_are_refused_from_text_and_from_numbers(values):
    with pytest.raises(InputError, match=r"holds fractions like"):
        read_labels(pd.Series(values * 5, name="y"))


def test_numbers_among_words_are_labels():
    assert set(read_labels(pd.Series(["0.5", "high"], name="y"))) == {"0.5", "high"}


def test_a_scorecard_of_too_many_bins_is_refused_before_it_takes_the_memory(monkeypatch):
    monkeypatch.setattr(scorecard, "_LARGEST_CURVATURE", 10**2)
    X = pd.DataFrame({f"c{i}": np.arange(40) % (i + 2) for i in range(8)})
    with pytest.raises(InputError, match=r"bins in all, and a scorecard takes up to 10"):
        Scorecard().fit(X, np.arange(40) % 2)
