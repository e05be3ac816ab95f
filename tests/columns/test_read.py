"""Tables in files: what is read, guessed, refused, and read in pieces."""

import csv
import gzip
import io
import os
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.columns.read import DataFile, Layout, find_files, with_columns
from dafh.exceptions import InputError
from tables import written

PEOPLE = "age,job\n30,cook\n41,clerk\n"
# Letters of names and cells that are no number, whatever the delimiter and the decimal mark are.
WORDS = st.text(st.characters(codec="utf-8", categories=("L",)), min_size=1, max_size=6).filter(
    lambda word: word.lower() not in ("inf", "infinity", "na", "nan", "null", "none")
)


def text_of(rows, delimiter=","):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


@pytest.fixture
def pipe(monkeypatch):
    """Make standard input a pipe with some content: it cannot be rewound."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as target, os.fdopen(reading, "rb") as source:

        def fill(content):
            target.write(content)
            target.close()
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(source))

        yield fill


# ---- delimiters ----


@given(
    st.lists(WORDS, min_size=2, max_size=5, unique=True),
    st.integers(1, 6),
    st.sampled_from([",", ";", "\t", "|"]),
    st.data(),
)
def test_the_delimiter_is_found_whatever_the_words(names, n_rows, delimiter, data):
    row = st.lists(WORDS, min_size=len(names), max_size=len(names))
    lines = text_of([names, *(data.draw(row) for _ in range(n_rows))], delimiter).splitlines()
    assert Layout.detect(lines) == Layout(delimiter, True, ".")


@pytest.mark.parametrize(
    ("lines", "delimiter"),
    [
        (["a b,c d", "e f,g h"], ","),  # Blanks count only where nothing else cuts.
        (["a b,c", "d e,f", "g h"], ","),  # Even where blanks cut more evenly.
        (["a b", "1 2"], " "),
        (["one"], ","),
        (["a;b,c", "1;2,3", "4;5"], ";"),  # The comma does not cut the last line.
        (["a;b;c", "1;2,5;x", "3;4,5;y"], ";"),
        (['"a;b";c', '"d;e";f'], ";"),
        (["a|b,c|d", "1|2,3|4"], "|"),
        (["1,2,a;b", "3,4,c;d"], ","),  # Lists parted by semicolons.
        (["a;b", *["1;2"] * 50, *["1,2,3"] * 500], ";"),  # Only the first lines decide.
    ],
)
def test_the_delimiter_is_the_one_that_cuts_all_lines_alike(lines, delimiter):
    assert Layout.detect(lines).delimiter == delimiter


@pytest.mark.parametrize(
    "lines", [["30,5;cook", "41,5;clerk"], ["1,5;2,5", "3,5;4,5"], ["1.234,5;2", "2.345,5;3"], ["7,181;x", "8,250;y"]]
)
def test_decimal_commas_are_not_taken_for_delimiters_in_files_without_a_header(lines):
    assert Layout.detect(lines) == Layout(";", False, ",")


# ---- headers ----


@pytest.mark.parametrize(
    ("lines", "has_header"),
    [
        (["age,job", "30,cook"], True),
        (["30,cook", "41,clerk"], False),
        (["name,job", "Ann,cook"], True),  # Words above words: names are more likely.
        (["id,2019,2020", "x,1,2"], False),  # Years look like data, and the user is told so.
        (["2019,total", "1,2"], True),  # A word stands above a number.
        (["age,job"], True),
        (["30,cook"], True),
        (["?,cook", "41,clerk"], True),
        (["inf,cook", "41,clerk"], False),
        (["30,cook,1", "41,clerk"], False),  # Rows of two widths.
    ],
)
def test_a_header_is_words_and_most_of_all_words_above_numbers(lines, has_header):
    assert Layout.detect(lines).has_header is has_header


def test_a_file_without_names_gets_some_and_says_so(tmp_path):
    file = DataFile(written(tmp_path, "30, cook\n41, clerk\n"))
    assert file.read().to_dict("list") == {"column_1": [30, 41], "column_2": ["cook", "clerk"]}
    assert "column_1 to column_2" in file.notes[0]


@pytest.mark.parametrize("blank", ["\n", "  \n", "\t\n", "\r\n", " \n\n \n", "\n" * 60])
def test_blank_lines_before_the_header_and_between_rows_do_not_count(tmp_path, blank):
    table = DataFile(written(tmp_path, f"{blank}a,b\n{blank}1,2\n{blank}3,4\n")).read()
    assert table.to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_names_with_line_breaks_and_columns_without_names_are_read(tmp_path):
    table = DataFile(written(tmp_path, '"a\nb",,c\n"1\n2",,3\n')).read(text=None)
    assert table.to_dict("list") == {"a\nb": ["1\n2"], "column_2": [""], "c": ["3"]}


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = written(tmp_path, "a,b,a\n1,2,3\n")
    with pytest.raises(InputError, match="more than one column called 'a'"):
        DataFile(path).read()


# ---- decimal marks ----


@given(
    st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 2)), min_size=1, max_size=8),
    st.sampled_from([(",", "."), (";", "."), (";", ","), ("\t", ","), ("|", ",")]),
)
def test_numbers_are_the_same_whatever_the_delimiter_and_the_decimal_mark(tmp_path_factory, values, layout):
    delimiter, decimal = layout
    rows = [[f"{value:.2f}".replace(".", decimal), "x"] for value in values]
    path = written(tmp_path_factory.getbasetemp(), text_of([["n", "w"], *rows], delimiter), "layouts.csv")
    file = DataFile(path)
    np.testing.assert_array_equal(file.read()["n"], [float(f"{value:.2f}") for value in values])
    assert file.decimal == decimal


def test_a_decimal_mark_may_first_show_thousands_of_lines_down(tmp_path):
    lines = ["n;w", *["1;x"] * 5_000, "2,5;y"]
    assert DataFile(written(tmp_path, "\n".join(lines))).read()["n"].iloc[-1] == 2.5


def test_a_guess_is_noted_once_however_often_the_file_is_read(tmp_path):
    file = DataFile(written(tmp_path, "30,5;cook\n41,5;clerk\n"))
    file.read()
    file.read()
    assert len(file.notes) == 2
    assert "decimal comma" in file.notes[0]
    assert "looks like data" in file.notes[1]


# ---- cells and lines ----


def test_commas_in_quotes_and_lines_within_cells_do_not_mislead(tmp_path):
    table = DataFile(written(tmp_path, 'name;note\n"a, b, c";"x\ny"\n"d, e, f";"z"\n')).read()
    assert table["name"].tolist() == ["a, b, c", "d, e, f"]
    assert table["note"].tolist() == ["x\ny", "z"]


@pytest.mark.parametrize("cell", ['5" pipe', '"5"" pipe, long"', '""', '"cook   "', '"a,"', '"""a"""', 'a"b"c'])
def test_quotation_marks_that_are_closed_are_no_trouble(tmp_path, cell):
    path = written(tmp_path, "age,job\n" + f"30,{cell}\n" * 60)
    assert len(DataFile(path).read(text=None)) == DataFile(path).count_rows() == 60


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("content", ["30,cook\n41,clerk", "a;b\n7,5;x", "a\tb\n1\t2"])
def test_lines_end_as_in_every_system_and_the_last_as_it_likes(tmp_path, content, ending):
    alone, ended = (written(tmp_path, (content + end).replace("\n", ending), f"{len(end)}.csv") for end in ("", "\n"))
    pd.testing.assert_frame_equal(DataFile(alone).read(), DataFile(ended).read())


def test_rows_of_empty_cells_are_rows_and_words_for_gaps_are_gaps(tmp_path):
    table = DataFile(written(tmp_path, "a,b\n,\n1, ?\n2,NA\n3,x\n")).read()
    assert table["a"].isna().tolist() == [True, False, False, False]
    assert table["b"].isna().tolist() == [True, True, True, False]


def test_columns_read_as_text_keep_their_zeros_and_words(tmp_path):
    path = written(tmp_path, "zip,n\n007,1\nNone,2\n")
    (piece,) = DataFile(path).pieces(text=["zip", "not there"])
    assert piece["zip"].tolist() == ["007", "None"]
    assert piece["n"].tolist() == [1, 2]


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.text("ab,;\"' \n|é=", min_size=1, max_size=6)), min_size=2, max_size=8)
)
def test_what_pandas_writes_is_told_apart(rows):
    table = pd.DataFrame(rows, columns=["number", "text"])
    assert Layout.detect(table.to_csv(index=False).splitlines(keepends=True)) == Layout(",", True)


# ---- rows that are too long or too short ----


def test_rows_wider_than_the_header_are_refused_and_trailing_delimiters_are_not(tmp_path):
    with pytest.raises(InputError, match="cannot be read as a table"):
        DataFile(written(tmp_path, "a,b\n1,2,3\n4,5,6\n")).read()
    assert DataFile(written(tmp_path, "a,b\n1,2,\n4,5,\n")).read()["b"].tolist() == [2, 5]


def test_blanks_and_short_rows_below_trailing_delimiters_are_read(tmp_path):
    table = DataFile(written(tmp_path, "a,b\n1,2,\n4,5, \n6,7\n8\n")).read(text=["b"])
    assert table.fillna("").to_dict("list") == {"a": [1, 4, 6, 8], "b": ["2", "5", "7", ""]}


# ---- encodings ----


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path):
    assert list(DataFile(written(tmp_path, b"\xef\xbb\xbf" + PEOPLE.encode())).read().columns) == ["age", "job"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize("packed", [False, True])
def test_the_encoding_is_detected(tmp_path, encoding, packed):
    content = ("Stadt;n\n" + "Bonn;1\n" * 300_000 + "Köln;2\n").encode(encoding)
    file = DataFile(written(tmp_path, gzip.compress(content, 1) if packed else content))
    assert file.read()["Stadt"].iloc[-1] == "Köln"
    assert ("Windows-1252" in " ".join(file.notes)) == (encoding == "cp1252")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_what_is_no_text_of_a_known_encoding_is_refused(tmp_path, encoding):
    with pytest.raises(InputError, match="save it as UTF-8"):
        DataFile(written(tmp_path, PEOPLE.encode(encoding))).read()


# ---- packed files, Parquet and pipes ----


def test_packed_and_parquet_files_are_told_by_their_content(tmp_path):
    expected = DataFile(written(tmp_path, PEOPLE)).read()
    expected.to_parquet(tmp_path / "other.csv")
    packed = written(tmp_path, gzip.compress(PEOPLE.encode()), "packed.csv")
    both = written(tmp_path, gzip.compress((tmp_path / "other.csv").read_bytes()), "both.csv")
    for path in (packed, tmp_path / "other.csv", both):
        pd.testing.assert_frame_equal(DataFile(path).read(), expected, check_dtype=False)
        assert DataFile(path).count_rows() == 2


@pytest.mark.parametrize("kind", ["csv", "gz", "parquet"])
def test_a_pipe_carries_every_kind(tmp_path, pipe, kind):
    expected = DataFile(written(tmp_path, PEOPLE)).read()
    buffer = io.BytesIO()
    expected.to_parquet(buffer)
    content = {"csv": PEOPLE.encode(), "gz": gzip.compress(PEOPLE.encode()), "parquet": buffer.getvalue()}[kind]
    pipe(content)
    file = DataFile("-")
    assert file.name == "standard input"
    pd.testing.assert_frame_equal(file.read(), expected, check_dtype=False)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_pieces_are_the_whole_in_pieces(tmp_path, kind):
    table = pd.DataFrame({"a": range(25), "b": [f"x{i}" for i in range(25)]})
    path = tmp_path / f"t.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
    pieces = list(DataFile(path).pieces(rows=10))
    assert max(map(len, pieces)) == 10
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), table, check_dtype=False)


def test_every_type_of_parquet_is_read_as_what_it_holds(tmp_path):
    columns = {
        "whole": pa.array([2**60 + 1, None]),
        "flag": pa.array([True, None]),
        "day": pa.array([0, None], pa.date32()),
        "instant": pa.array([0, None], pa.timestamp("ms", "Europe/Berlin")),
        "price": pa.array([1, None], pa.decimal128(5, 2)),
        "code": pa.array(["007", None]).dictionary_encode(),
        "text": pa.array(["NA", None]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    table = DataFile(tmp_path / "t.parquet").read()
    assert table["whole"].iloc[0] == 2**60 + 1
    assert table["flag"].dtype == "boolean"
    assert pd.api.types.is_datetime64_any_dtype(table["day"])
    assert table["instant"].iloc[0] == pd.Timestamp("1970-01-01", tz="UTC")
    assert float(table["price"].iloc[0]) == 1
    assert (table["code"].iloc[0], table["text"].iloc[0]) == ("007", "NA")
    assert table.iloc[1].isna().all()


def test_nested_columns_of_parquet_are_left_out_and_that_is_said(tmp_path):
    pd.DataFrame({"a": [1, 2], "many": [[1], [2, 3]], "bytes": [b"x", b"y"]}).to_parquet(tmp_path / "t.parquet")
    file = DataFile(tmp_path / "t.parquet")
    assert list(file.read().columns) == ["a"]
    assert "lists, records or bytes: many, bytes" in file.notes[0]
    pd.DataFrame({"many": [[1], [2, 3]]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no columns that can be used"):
        DataFile(tmp_path / "t.parquet").read()


def test_row_names_that_pandas_has_put_into_a_parquet_file_are_no_column(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "c": pd.Categorical(["x", "y"])}, index=[7, 3])
    table.to_parquet(tmp_path / "t.parquet")
    expected = table.reset_index(drop=True).astype({"a": "Int64"})
    pd.testing.assert_frame_equal(DataFile(tmp_path / "t.parquet").read(), expected)


# ---- files that cannot be read ----

BAD_FILES = {
    "is empty": b"",
    "is empty.": b"\n \n",
    "has a header and no rows": b"a,b\n",
    "more than one column called 'a'": b"a,b,a\n1,2,3\n",
    "Expected 2 fields in line 60, saw 3": b"a,b\n" + b"1,2\n" * 58 + b"3,4,5\n",
    "EOF inside string": b"a,b\n" + b"1,2\n" * 58 + b'3,"4\n' + b"5,6\n" * 10,
    "cannot be read": b"PAR1 and nothing more",
    "Compressed file ended": gzip.compress(PEOPLE.encode() * 50)[:40],
    "save it as UTF-8": bytes(range(128, 256)) * 4,
}


@pytest.mark.parametrize(("sentence", "content"), BAD_FILES.items(), ids=list(BAD_FILES))
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, sentence, content):
    file = DataFile(written(tmp_path, content))
    for way in (file.pieces(rows=None), file.pieces(rows=10), file.pieces(text=["b"])):
        with pytest.raises(InputError, match=sentence) as refusal:
            list(way)
        assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        DataFile(tmp_path / "none.csv").read()
    with pytest.raises(InputError, match="Is a directory"):
        DataFile(tmp_path).read()


def test_an_empty_parquet_file_is_refused(tmp_path):
    pd.DataFrame({"a": []}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no rows"):
        DataFile(tmp_path / "t.parquet").read()


# ---- several files ----


def test_a_folder_a_pattern_and_a_list_lead_to_files(tmp_path):
    for name in ("b.csv", "a.parquet", "c.txt.gz", "notes.md", "_hidden.csv"):
        written(tmp_path, PEOPLE, name)
    assert [path.name for path in find_files(tmp_path)] == ["a.parquet", "b.csv", "c.txt.gz"]
    assert [path.name for path in find_files([tmp_path / "b.csv", str(tmp_path / "*.csv")])] == ["_hidden.csv", "b.csv"]
    assert [file.path.name for file in DataFile(tmp_path / "b*").files()] == ["b.csv"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no table in the folder"):
        find_files(tmp_path / "empty")
    with pytest.raises(InputError, match="There is no file"):
        find_files(tmp_path / "*.xlsx")


def test_several_files_must_have_the_columns_of_the_first():
    table = pd.DataFrame({"b": [1], "a": [2]})
    assert list(with_columns(table, ["a", "b"], "t.csv")) == ["a", "b"]
    with pytest.raises(InputError, match=r"t\.csv has no column 'c'"):
        with_columns(table, ["a", "b", "c"], "t.csv")
    with pytest.raises(InputError, match=r"t\.csv has a column 'b'"):
        with_columns(table, ["a"], "t.csv")


# ---- numbers of rows ----


def test_whoever_stops_early_leaves_the_file_closed(tmp_path):
    path = written(tmp_path, PEOPLE)
    pieces = DataFile(path).pieces(rows=1)
    assert len(next(pieces)) == 1
    pieces.close()
    path.unlink()
