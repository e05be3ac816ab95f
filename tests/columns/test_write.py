"""Results as files: whole or not at all, and harmless."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.columns.kinds import as_kind
from dafh.columns.read import DataFile
from dafh.columns.schema import TableSchema
from dafh.columns.write import TableWriter


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


# ---- what is written is read back ----

# Anything but lone surrogates, which no encoding can write, and leading blanks, which reading leaves out: in files such
# as those of the UCI repository a blank follows every comma.
CELLS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8).filter(lambda text: text[0] != " ")


def harmless(text):
    return text.removeprefix("'") if text[1:2] in ("=", "+", "-", "@", "\t", "\r", "\n") else text


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6))
def test_every_text_survives_in_every_format(tmp_path_factory, suffix, rows):
    path = tmp_path_factory.getbasetemp() / f"texts.{suffix}"
    table = pd.DataFrame(rows, columns=["first name", "köy, no. 2"], dtype=object)
    with TableWriter(path) as writer:
        writer.write(table)
    again = DataFile(path).read(text=None)
    if suffix != "parquet":
        again = again.map(harmless)
        table = table.map(harmless)
    assert again.to_numpy().tolist() == table.to_numpy().tolist()
    assert list(again.columns) == list(table.columns)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_every_number_survives_to_the_last_digit_in_every_format(tmp_path_factory, values):
    for suffix in ("csv", "csv.gz", "parquet"):
        path = tmp_path_factory.getbasetemp() / f"numbers.{suffix}"
        with TableWriter(path) as writer:
            writer.write(pd.DataFrame({"n": values, "w": "x"}))
        for text in ((), None):
            column = DataFile(path).read(text=text)["n"]
            np.testing.assert_array_equal(as_kind(column, "number"), values)


def kinds_of_columns():
    n = 40
    return pd.DataFrame(
        {
            "whole": np.arange(n) % 13 - 6,
            "huge": np.arange(n) + 2**60,
            "whole with gaps": pd.array([None, 3, 1, 2] * (n // 4), dtype="Int64"),
            "fraction": np.linspace(-1, 1, n),
            "fraction with gaps": [np.nan, *np.linspace(0, 1, n - 1)],
            "flag": np.arange(n) % 3 == 0,
            "flag with gaps": pd.array([None, True, False, True] * (n // 4), dtype="boolean"),
            "day": pd.date_range("2020-02-20", periods=n),
            "instant": pd.date_range("2020-02-20 23:59:59", periods=n, freq="97min", tz="America/New_York"),
            "day with gaps": [pd.NaT, *pd.date_range("1950-01-01", periods=n - 1)],
            "text": [f"w{i % 7}" for i in range(n)],
            "text with gaps": [None, *(f"w{i % 7}" for i in range(n - 1))],
            "category": pd.Categorical(["a", "b"] * (n // 2)),
        }
    )


@pytest.mark.parametrize("name", kinds_of_columns().columns)
def test_csv_and_parquet_agree_about_every_kind_of_column(tmp_path, name):
    table = kinds_of_columns()[[name]].assign(y=["no", "yes"] * 20)
    read = []
    for suffix in ("csv", "csv.gz", "parquet"):
        with TableWriter(tmp_path / f"t.{suffix}") as writer:
            writer.write(table.head(11))
            writer.write(table.tail(29))
        found = DataFile(tmp_path / f"t.{suffix}").read(text=None)
        schema = TableSchema.guess(found, "y", categories=[name] if "huge" in name or "text" in name else [])
        read.append((schema.features, schema.left_out, schema.features_of(found) if schema.features else None))
    assert read[0][:2] == read[1][:2] == read[2][:2]
    pd.testing.assert_frame_equal(read[0][2], read[1][2])
    pd.testing.assert_frame_equal(read[0][2], read[2][2], check_dtype=False)


# ---- formulas ----


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", "\n="])
def test_whatever_starts_a_formula_is_defused_and_counted(tmp_path, start):
    with TableWriter(tmp_path / "t.csv") as writer:
        writer.write(pd.DataFrame({"a": [f"{start}SUM(A1)", "x"], "b": pd.Categorical([f"{start}f()", f"{start}g()"])}))
    assert writer.n_defused == 3
    assert pd.read_csv(tmp_path / "t.csv")["a"].tolist() == [f"'{start}SUM(A1)", "x"]


@pytest.mark.parametrize("name", ["plain", "with\rreturn"])
def test_a_return_within_a_cell_ends_no_line(tmp_path, name):
    table = pd.DataFrame({name: ["a\r=cmd()", "b"], "n": [1.5, np.nan]})
    with TableWriter(tmp_path / "t.csv") as writer:
        writer.write(table)
        writer.write(table.tail(1))
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv"), pd.concat([table, table.tail(1)], ignore_index=True))


@pytest.mark.parametrize("value", ["-5", "+1.5", "-1e9", "-7,5", "+,5", "-inf", "a=b", "x@y.org", "'=quoted", " =1"])
def test_numbers_and_text_that_only_contain_such_signs_are_left_alone(tmp_path, value):
    with TableWriter(tmp_path / "t.csv") as writer:
        writer.write(pd.DataFrame({"a": [value, "x"]}))
    assert writer.n_defused == 0
    assert pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False)["a"].tolist() == [value, "x"]


# ---- whole or not at all ----


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_failure_in_the_middle_leaves_no_file_of_any_format(tmp_path, name):
    pieces = (pd.DataFrame({"a": range(1000 // n)}) for n in (1, 2, 0))

    def write():
        with TableWriter(tmp_path / name) as writer:
            for piece in pieces:
                writer.write(piece)

    with pytest.raises(ZeroDivisionError):
        write()
    assert list(tmp_path.iterdir()) == []


def test_names_as_long_as_a_file_system_allows_can_be_written(tmp_path):
    path = tmp_path / f"{'n' * 251}.csv"
    with TableWriter(path) as writer:
        writer.write(pd.DataFrame({"a": [1]}))
    assert path.read_text() == "a\n1\n"


# ---- the text of CSV ----


@given(st.lists(st.tuples(st.none() | CELLS, st.integers(-(2**63), 2**63 - 1), CELLS), min_size=1, max_size=8))
def test_csv_is_what_other_programs_read(tmp_path_factory, rows):
    table = pd.DataFrame(rows, columns=["a", "b", "c"]).astype({"b": np.int64})
    path = tmp_path_factory.getbasetemp() / "read by others.csv"
    with TableWriter(path) as writer:
        writer.write(table)
        writer.write(table.astype({"a": "category"}))
    again = pd.read_csv(path, keep_default_na=False, dtype={"a": str, "c": str})
    expected = pd.concat([table, table], ignore_index=True)
    assert again["b"].tolist() == expected["b"].tolist()
    for name in ("a", "c"):
        texts = ["" if text is None or pd.isna(text) else harmless(text) for text in expected[name]]
        assert [harmless(text) for text in again[name]] == texts


def test_cells_are_quoted_only_where_they_need_it(tmp_path):
    table = pd.DataFrame({"t": ['say "no"', "a,b", "plain", None], "n": [0.5, 1e-9, np.nan, -2.25], "f": True})
    with TableWriter(tmp_path / "t.csv") as writer:
        writer.write(table)
    assert (tmp_path / "t.csv").read_text() == (
        't,n,f\n"say ""no""",0.5,True\n"a,b",1e-9,True\nplain,,True\n,-2.25,True\n'
    )


def test_a_terminal_is_told_nothing_by_cells(monkeypatch):
    table = pd.DataFrame({"a\x1b[31m": ["x\x9by", "z\tw"]})
    for is_terminal in (True, False):
        target = io.StringIO()
        target.isatty = lambda is_terminal=is_terminal: is_terminal
        monkeypatch.setattr("sys.stdout", target)
        with TableWriter("-") as writer:
            writer.write(table)
        shown = "a\\x1b[31m\nx\\x9by\nz\tw\n"
        assert target.getvalue() == (shown if is_terminal else "a\x1b[31m\nx\x9by\nz\tw\n")
