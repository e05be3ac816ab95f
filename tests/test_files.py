"""Files of tables: what is read, guessed, streamed and written."""

import gzip
import io
import json
import os
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.exceptions import InputError
from dafh.tables.files import DataFile
from dafh.tables.layout import Layout
from tables import written

PEOPLE = "age,job\n30,cook\n41,clerk\n"


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


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
def test_the_delimiter_is_guessed(tmp_path, delimiter):
    table = DataFile(written(tmp_path, PEOPLE.replace(",", delimiter))).read()
    assert table.to_dict("list") == {"age": [30, 41], "job": ["cook", "clerk"]}


def test_commas_in_quotes_and_lines_within_cells_do_not_mislead(tmp_path):
    table = DataFile(written(tmp_path, 'name;note\n"a, b, c";"x\ny"\n"d, e, f";"z"\n')).read()
    assert table["name"].tolist() == ["a, b, c", "d, e, f"]
    assert table["note"].tolist() == ["x\ny", "z"]


def test_a_file_without_names_gets_some_and_says_so(tmp_path):
    file = DataFile(written(tmp_path, "30, cook\n41, clerk\n"))
    assert file.read().to_dict("list") == {"column_1": [30, 41], "column_2": ["cook", "clerk"]}
    assert "looks like data: columns are called column_1 to column_2" in file.notes[0]


def test_what_the_user_says_of_the_layout_is_not_guessed(tmp_path):
    path = written(tmp_path, "2019,2020\n1,2\n")
    assert list(DataFile(path, header=True).read().columns) == ["2019", "2020"]
    assert len(DataFile(path).read()) == 2
    assert list(DataFile(path, delimiter=";", header=True).read().columns) == ["2019,2020"]


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path):
    assert list(DataFile(written(tmp_path, b"\xef\xbb\xbf" + PEOPLE.encode())).read().columns) == ["age", "job"]


def test_other_encodings_are_read_when_named(tmp_path):
    path = written(tmp_path, "stadt,n\nKöln,1\n".encode("latin-1"))
    assert DataFile(path, encoding="latin-1").read()["stadt"].tolist() == ["Köln"]
    with pytest.raises(InputError, match=r"is not UTF-8 text: name its encoding \(latin-1 reads most others\)"):
        DataFile(path).read()
    with pytest.raises(InputError, match="there is no encoding 'klingon'"):
        DataFile(path, encoding="klingon").read()


@pytest.mark.parametrize("letter", ["\x85", "\u2028", "\x0c", "\x0b", "\x1c"])
def test_only_line_feeds_and_returns_end_a_line(tmp_path, letter):
    content = f"na{letter}me;age\nK{letter}ln;1\nb;2\n"
    encoding = "latin-1" if letter == "\x85" else "utf-8"
    table = DataFile(written(tmp_path, content.encode(encoding)), encoding=encoding).read()
    assert table.to_dict("list") == {f"na{letter}me": [f"K{letter}ln", "b"], "age": [1, 2]}


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_end_as_in_every_system(tmp_path, ending):
    assert len(DataFile(written(tmp_path, PEOPLE.replace("\n", ending))).read()) == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("packed", [False, True])
def test_wide_encodings_are_known_by_their_mark(tmp_path, encoding, packed):
    content = "Stadt;n\nKöln;1\nBonn;2\n".encode(encoding)
    table = DataFile(written(tmp_path, gzip.compress(content) if packed else content)).read()
    assert table["Stadt"].tolist() == ["Köln", "Bonn"]


def test_names_and_cells_may_be_very_long(tmp_path):
    table = DataFile(written(tmp_path, f"{'n' * 200_000},age\n{'x' * 300_000},30\ny,41\n")).read()
    assert [len(name) for name in table.columns] == [200_000, 3]
    assert len(table.iloc[0, 0]) == 300_000


def test_rows_wider_than_the_header_are_refused_and_trailing_delimiters_are_not(tmp_path):
    with pytest.raises(InputError, match="its first line has 2 cells, and another one has 3"):
        DataFile(written(tmp_path, "a,b\n1,2,3\n4,5,6\n")).read()
    assert DataFile(written(tmp_path, "a,b\n1,2,\n4,5,\n")).read()["b"].tolist() == [2, 5]


@pytest.mark.parametrize("rows", [None, 40])
@pytest.mark.parametrize(
    ("line", "complaint"), [("5,1,1,0", "3 cells, and its row 101 has more"), ("5,1,1,,0", "line 102")]
)
def test_a_cell_beyond_the_header_is_refused_far_below_trailing_delimiters(tmp_path, rows, line, complaint):
    file = DataFile(written(tmp_path, "a,b,y\n" + "1,2,0,\n" * 100 + f"{line}\n"))
    with pytest.raises(InputError, match=complaint):
        list(file.chunks(rows=rows))
    with pytest.raises(InputError, match=complaint):
        list(file.pieces(["a", "b"], ["y"], rows or 1000))


def test_blanks_and_short_rows_below_trailing_delimiters_are_read(tmp_path):
    table = DataFile(written(tmp_path, "a,b\n1,2,\n4,5, \n6,7\n8\n")).read(text=["b"])
    assert table.fillna("").to_dict("list") == {"a": [1, 4, 6, 8], "b": ["2", "5", "7", ""]}


def test_too_long_rows_are_refused_beside_columns_left_out(tmp_path):
    file = DataFile(written(tmp_path, "a,b,a\n" + "1,2,3\n" * 100 + "1,2,3,4\n"), leave_out=["a"])
    with pytest.raises(InputError, match="line 102"):
        file.read()


def test_names_with_line_breaks_and_columns_without_names_are_read(tmp_path):
    table = DataFile(written(tmp_path, '"a\nb",,c\n"1\n2",,3\n')).read(text=None)
    assert table.to_dict("list") == {"a\nb": ["1\n2"], "column_2": [""], "c": ["3"]}


def test_a_question_mark_is_a_gap(tmp_path):
    assert DataFile(written(tmp_path, "a,b\n1, ?\n2,x\n")).read()["b"].isna().tolist() == [True, False]


def test_packed_and_parquet_files_are_told_by_their_content(tmp_path):
    expected = DataFile(written(tmp_path, PEOPLE)).read()
    expected.to_parquet(tmp_path / "other.csv")
    packed = written(tmp_path, gzip.compress(PEOPLE.encode()), "packed.csv")
    for path in (packed, tmp_path / "other.csv"):
        pd.testing.assert_frame_equal(DataFile(path).read(), expected, check_dtype=False)


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
def test_chunks_are_the_whole_in_pieces(tmp_path, kind):
    table = pd.DataFrame({"a": range(25), "b": [f"x{i}" for i in range(25)]})
    path = tmp_path / f"t.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
    pieces = list(DataFile(path).chunks(rows=10))
    assert [len(piece) for piece in pieces] == [10, 10, 5]
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), table, check_dtype=False)


def test_columns_read_as_text_keep_their_zeros(tmp_path):
    path = written(tmp_path, "zip,n\n007,1\n123,2\n")
    (chunk,) = DataFile(path).chunks(text=["zip", "not there"])
    assert chunk["zip"].tolist() == ["007", "123"]


BAD_FILES = {
    "is empty": b"",
    "is empty.": b"\n \n",
    "has a header and no rows": b"a,b\n",
    "more than one column called 'a'": b"a,b,a\n1,2,3\n",
    "cannot be read as a table: Expected 2 fields in line 60, saw 3": b"a,b\n" + b"1,2\n" * 58 + b"3,4,5\n",
    "is damaged": b"PAR1 and nothing more",
    "cannot be read: Compressed file ended": gzip.compress(PEOPLE.encode() * 50)[:40],
    "is not UTF-8 text": bytes(range(128, 256)) * 4,
}


@pytest.mark.parametrize(("sentence", "content"), BAD_FILES.items(), ids=list(BAD_FILES))
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, sentence, content):
    with pytest.raises(InputError, match=sentence) as refusal:
        DataFile(written(tmp_path, content)).read()
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        DataFile(tmp_path / "none.csv").read()
    with pytest.raises(InputError, match="is a folder"):
        DataFile(tmp_path).read()


def test_an_empty_parquet_file_is_refused(tmp_path):
    pd.DataFrame({"a": []}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no rows"):
        DataFile(tmp_path / "t.parquet").read()


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.text("ab,;\"' \n|é=", min_size=1, max_size=6)), min_size=2, max_size=8)
)
def test_what_pandas_writes_is_read_back(rows):
    table = pd.DataFrame(rows, columns=["number", "text"])
    layout = Layout.guess(table.to_csv(index=False).splitlines(keepends=True))
    assert layout == Layout(",", True)


def test_nested_columns_of_parquet_are_left_out_and_that_is_said(tmp_path):
    pd.DataFrame({"a": [1, 2], "many": [[1], [2, 3]], "bytes": [b"x", b"y"]}).to_parquet(tmp_path / "t.parquet")
    file = DataFile(tmp_path / "t.parquet")
    assert list(file.read().columns) == ["a"]
    assert file.notes == ["Left out, cells hold lists, records or bytes: many, bytes."]


def test_a_header_without_rows_is_told_as_such_in_pieces_too(tmp_path):
    with pytest.raises(InputError, match="a header and no rows"):
        list(DataFile(written(tmp_path, "a,b\n")).chunks(rows=10))


def noted(path, **changes):
    """Write a table whose note by pandas, which is not part of the table, was changed."""
    table = pa.Table.from_pandas(pd.DataFrame({"age": [30, 41], "x": [1, 2]}), preserve_index=False)
    note = json.dumps({**json.loads(table.schema.metadata[b"pandas"]), **changes})
    pq.write_table(table.replace_schema_metadata({b"pandas": note.encode()}), path)
    return path


def test_what_pandas_has_noted_in_a_parquet_file_renames_and_hides_no_column(tmp_path):
    swapped = [{"name": new, "field_name": old, "pandas_type": "int64", "numpy_type": "int64", "metadata": None}
               for new, old in (("x", "age"), ("age", "x"))]  # fmt: skip
    of_names = {"name": None, "field_name": None, "pandas_type": "int64", "numpy_type": "int64", "metadata": None}
    for changes in ({"columns": swapped}, {"index_columns": ["age"]}, {"column_indexes": [of_names]}):
        table = DataFile(noted(tmp_path / "t.parquet", **changes)).read()
        assert table.to_dict("list") == {"age": [30, 41], "x": [1, 2]}


@pytest.mark.parametrize("note", [b"{", b"[]", b"\xff"])
def test_a_parquet_file_with_a_damaged_note_by_pandas_is_read(tmp_path, note):
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({b"pandas": note}), tmp_path / "t.parquet")
    assert DataFile(tmp_path / "t.parquet").read().to_dict("list") == {"a": [1]}


def test_row_names_that_pandas_has_put_into_a_parquet_file_are_no_column(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "c": pd.Categorical(["x", "y"])}, index=[7, 3])
    table.to_parquet(tmp_path / "t.parquet")
    expected = table.reset_index(drop=True).astype({"a": "Int64"})
    pd.testing.assert_frame_equal(DataFile(tmp_path / "t.parquet").read(), expected)


@pytest.mark.parametrize("names", ["a,b", "a"])
def test_a_line_without_end_is_refused_before_all_of_it_is_read(tmp_path, monkeypatch, names):
    monkeypatch.setattr("dafh.tables.streams.LONGEST_LINE", 2**20)
    row = ",".join("1" * len(names.split(",")))
    packed = written(tmp_path, gzip.compress(f"{names}\n{row}\n{'1' * 2**23}\n".encode()))
    for read in (DataFile(packed).chunks(), DataFile(packed).pieces(["a"], [])):
        with pytest.raises(InputError, match=r"cannot be read: one of its lines is longer than 1,048,576 bytes\.$"):
            list(read)


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_many_short_lines_are_not_taken_for_a_long_one(tmp_path, monkeypatch, line_break):
    monkeypatch.setattr("dafh.tables.streams.LONGEST_LINE", 2**14)
    path = written(tmp_path, ("a,b\n" + "1,2\n" * 2**14).replace("\n", line_break).encode())
    assert len(DataFile(path).read()) == sum(map(len, DataFile(path).pieces(["a"], ["b"]))) == 2**14
