"""Text files read with Arrow: the same features, kept columns, notes and messages as the slow way has."""

import codecs
import csv
import gzip
import io
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dafh.exceptions import InputError
from dafh.tables.coded import CodedTable
from dafh.tables.files import DataFile
from dafh.tables.records import PlainRecords
from dafh.tables.schema import TableSchema
from dafh.tables.unread import UnreadValues
from tables import written

SCHEMA = TableSchema(
    "y", {"n": "number", "c": "category", "d": "date ISO8601", "f": "flag", "m": "number"}, gap_words={"m": ["none"]}
)
HEADER = ["n", "c", "d", "f", "m", "y"]


def outcome(path, *, fast, rows=3, keep=("c", "y"), **options):
    """Features, kept columns and notes of all pieces; or the message of the error."""
    file, unread = DataFile(path, **options), UnreadValues()
    text = {*SCHEMA.text_columns, *keep}
    found, kinds = [], []
    try:
        for piece in file.pieces(SCHEMA.number_columns, text, rows) if fast else file.chunks(rows=rows, text=text):
            schema = TableSchema(
                SCHEMA.target, SCHEMA.features, decimal=file.layout.decimal, gap_words=SCHEMA.gap_words
            )
            features = schema.features_of(piece, unread)
            kept = piece.texts(keep) if isinstance(piece, CodedTable) else piece[list(keep)]
            found.append(
                pd.concat([features.reset_index(drop=True), kept.reset_index(drop=True).add_prefix("kept ")], axis=1)
            )
            kinds.append(isinstance(piece, CodedTable))
    except InputError as error:
        return str(error), [len(part) for part in found], kinds
    return found, [*file.notes, *unread.notes()], kinds


def assert_same(path, **options):
    """Compare the two ways piece by piece; return which pieces were read the fast way."""
    slow, fast = outcome(path, fast=False, **options), outcome(path, fast=True, **options)
    assert fast[1] == slow[1]
    if isinstance(slow[0], str):
        assert fast[0] == slow[0]
        return fast[2]
    assert len(fast[0]) == len(slow[0])
    for one, other in zip(fast[0], slow[0], strict=True):
        assert list(one.columns) == list(other.columns)
        for name in one.columns:
            # Through objects: categories may be coded. To the last bit, but for the sign of zero: pandas reads −0 as a
            # whole number, which has none, unless there are fractions in the piece.
            ours, theirs = one[name].astype(object), other[name].astype(object)
            assert ours.isna().tolist() == theirs.isna().tolist(), name
            assert ours.dropna().tolist() == theirs.dropna().tolist(), name
    return fast[2]


def rows_of(text, tmp_path, **options):
    return assert_same(written(tmp_path, text), **options)


LETTERS = st.text(st.sampled_from(list("ab01.,;-+= \t\"'\\\n\ré😀?\x85\u2028\ufeff")), max_size=5)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=4).map(str),
    st.sampled_from(
        ["7,5", "1,234", "1.234,5", "+5", "-0", "1e400", "5 ", "5\t", "0x10", "1_0", ".5", "5.", "Inf", "007"]
    ),
)
WORDS = st.sampled_from(
    ["", "?", "NA", "NA ", " ?", "nan", "NAN", "None", "none", "NULL", "True", "false", "1", "0", "1.0", "unknown"]
)
DATES = st.one_of(
    st.dates().map(str),
    st.datetimes().map(str),
    st.sampled_from(["0000-00-00", "2020/1/31", "31.12.2020", "2020-02-30", "2021-01-01T00:00:00+02:00"]),
)
CELLS = st.one_of(NUMBERS, WORDS, DATES, LETTERS)
# Columns as they are meant to be, with a few strange cells among them.
ROWS = st.lists(
    st.tuples(
        st.one_of(NUMBERS, WORDS),
        CELLS,
        st.one_of(DATES, WORDS),
        WORDS,
        st.one_of(NUMBERS, WORDS),
        st.sampled_from("ab"),
    ),
    min_size=1,
    max_size=8,
)
# Six, unless a quotation mark or a line break is among their letters.
SIX_CELLS = st.lists(CELLS.map(lambda cell: re.sub(r"[,;\t]", "", cell)), min_size=6, max_size=6)


@given(
    rows=ROWS,
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    every=st.booleans(),
    rows_a_piece=st.integers(1, 4),
)
def test_tables_that_a_program_wrote_are_read_the_same(tmp_path_factory, rows, delimiter, end, every, rows_a_piece):
    buffer = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL
    csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows([HEADER, *rows])
    path = written(tmp_path_factory.mktemp("t"), buffer.getvalue().encode())
    assert_same(path, delimiter=delimiter, header=True, rows=rows_a_piece, decimal=".")


@given(
    lines=st.lists(st.one_of(SIX_CELLS, SIX_CELLS, st.lists(CELLS, min_size=5, max_size=7)), min_size=1, max_size=6),
    between=st.sampled_from([",", ", ", ";", "\t"]),
    decimal=st.sampled_from(".,"),
)
@example(lines=[["1", "a", "2020-01-01", "1", "2", "b"], ["2", ' "a', "", "0", "?", "b"]], between=",", decimal=".")
@example(lines=[["1", '"a', "2020-01-01", "1", "2", 'b"']], between=",", decimal=".")
@example(lines=[["-0", "a", "", "", "2", "b"]], between=",", decimal=".")
@example(lines=[["\t1", "a", "", "", "2", "b"]], between=",", decimal=".")
def test_whatever_a_text_holds_both_ways_agree(tmp_path_factory, lines, between, decimal):
    text = "\n".join(between.join(cells) for cells in [HEADER, *lines])
    path = written(tmp_path_factory.mktemp("t"), text.encode())
    assert_same(path, delimiter=between[0], header=True, rows=2, decimal=decimal)


@given(columns=st.lists(st.one_of(NUMBERS, WORDS), min_size=4, max_size=12))
def test_numbers_of_every_kind_come_out_to_the_last_bit(tmp_path_factory, columns):
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([HEADER, *([cell, "a", "", "", cell, "b"] for cell in columns)])
    assert_same(written(tmp_path_factory.mktemp("t"), buffer.getvalue()), header=True, decimal=".", delimiter=",")


# ---- what is fast, and what is left to pandas ----

LINES = [
    "1,a,2020-01-01,true,5,b",
    "2.5,c,2020-02-01,false,?,b",
    "-3e2,a,,1,7,a",
    "4,é😀,2020-03-01,0,8,b",
    "5,a,,,9,b",
]
TEXT = "\n".join([",".join(HEADER), *LINES]) + "\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(",", ", "),
        lambda text: text.replace(",", "\t"),
        lambda text: text.replace(",a,", ',"a, ""b""\nc",'),
        lambda text: text.replace("2.5", "unknown"),
        lambda text: text.replace("2.5", '"1,250"'),
        lambda text: text.replace(",5,b", ",none,b"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("-3e2", "123456789012345678901"),
    ],
)
def test_plain_texts_are_read_with_arrow_to_the_last_row(tmp_path, change):
    kinds = rows_of(change(TEXT), tmp_path, rows=2, decimal=".")
    assert kinds == [True, True, True]


@pytest.mark.parametrize(
    ("old", "new", "n_fast"),
    [
        ("4,é", "\n4,é", 1),  # A blank line.
        ("4,é", " 4,é", 1),
        ("4,é", "4\r,é", 1),
        ("4,é", "4,x\0é", 1),
        ("4,é", '4,x"é', 1),
        ("5,a", "inf,a", 2),
        ("5,a", "true,a", 2),
        ("5,a,,,9,b", "5,a", 2),
        ("9,b", "9,b,,", 0),  # The first lines say that rows may have two cells more.
    ],
)
def test_pandas_reads_on_from_the_first_piece_that_is_not_plain(tmp_path, old, new, n_fast):
    kinds = rows_of(TEXT.replace(old, new), tmp_path, rows=2, header=True)
    assert kinds[:n_fast] == [True] * n_fast
    assert not any(kinds[n_fast:])


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8"])
def test_other_encodings_are_left_to_pandas(tmp_path, encoding):
    path = written(tmp_path, TEXT.replace("😀", "").encode(encoding))
    assert assert_same(path, encoding=encoding, rows=2) == [False] * 3


def test_bytes_that_are_no_text_are_refused_in_the_same_words(tmp_path):
    path = written(tmp_path, TEXT.encode().replace(b"5,a,,,9", b"5,\xff,,,9"))
    assert_same(path, rows=2)
    assert "is not UTF-8 text" in outcome(path, fast=True, rows=2)[0]


def test_a_row_that_is_too_long_is_named_by_its_line(tmp_path):
    lines = TEXT + LINES[0] + "\n" * 60 + (LINES[1] + "\n") * 60 + LINES[0] + ",1,2\n"
    message = outcome(written(tmp_path, lines), fast=True, rows=2)[0]
    assert message == outcome(written(tmp_path, lines), fast=False, rows=2)[0]
    assert "in line" in message


def test_packed_files_and_files_without_names_are_read_the_same(tmp_path):
    packed = written(tmp_path, gzip.compress(TEXT.encode()), "t.csv.gz")
    assert assert_same(packed, rows=2) == [True] * 3
    bare = written(tmp_path, "\n".join(LINES), "bare.csv")
    (piece,) = DataFile(bare, header=False).pieces(["column_1"], ["column_2"])
    assert piece.parts["column_1"].tolist() == [1, 2.5, -300, 4, 5]
    assert piece.texts(["column_2"])["column_2"].tolist() == ["a", "c", "a", "é😀", "a"]


def test_a_header_without_rows_is_refused(tmp_path):
    for text in (",".join(HEADER), ",".join(HEADER) + "\n"):
        assert outcome(written(tmp_path, text), fast=True)[0].endswith("has a header and no rows.")


@pytest.mark.parametrize("names", ["a,b", "n,b", "c,y"])
def test_a_file_that_lacks_columns_is_refused_in_the_same_words(tmp_path, names):
    path = written(tmp_path, f"{names}\n1,2\n3,4\n")
    message = outcome(path, fast=True, keep=())[0]
    assert message == outcome(path, fast=False, keep=())[0]
    assert message.startswith("The table has no column ")


def test_whoever_stops_early_leaves_the_file_closed(tmp_path):
    path = written(tmp_path, TEXT)
    pieces = DataFile(path).pieces(["n"], ["c"], rows=1)
    assert len(next(pieces)) == 1
    pieces.close()
    path.unlink()


def test_no_number_of_rows_changes_a_feature(tmp_path):
    path = written(tmp_path, TEXT * 1 + "\n".join(LINES * 20))
    whole = pd.concat(outcome(path, fast=True, rows=1000)[0], ignore_index=True)
    parts = pd.concat([part.astype({"c": object}) for part in outcome(path, fast=True, rows=7)[0]], ignore_index=True)
    pd.testing.assert_frame_equal(whole.astype({"c": object}), parts)


# ---- records ----


@given(
    cells=st.lists(st.lists(LETTERS, min_size=2, max_size=2), min_size=1, max_size=30),
    rows=st.integers(1, 5),
    every=st.booleans(),
)
@example(cells=[["\ufeffa", "b"], ["c", "d"]], rows=1, every=False)
def test_pieces_and_the_rest_are_the_whole_file(cells, rows, every):
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL).writerows(cells)
    content = buffer.getvalue().encode()
    records = PlainRecords(io.BytesIO(content), ",", has_header=False)
    taken, n_rows = b"", 0
    while (piece := records.take(rows)) is not None:
        assert piece.n_rows <= rows
        assert len(list(csv.reader(io.StringIO(piece.content.decode(), newline="")))) == piece.n_rows
        taken, n_rows = taken + piece.content, n_rows + piece.n_rows
    # A byte order mark is part of no row, and stays at the beginning of the rest.
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    rest = records.rest().read()
    assert rest.startswith(mark + b"\n" * n_rows)
    assert mark + taken + rest[len(mark) + n_rows :] == content


def test_a_stray_quotation_mark_does_not_pull_the_whole_file_into_memory():
    content = b'1,5" pipe\n' + b"2,x\n" * 2_000_000
    stream = io.BytesIO(content)
    assert PlainRecords(stream, ",", has_header=False).take(1000) is None
    assert stream.tell() < len(content) / 4


def test_a_value_in_a_piece_is_asked_about_once(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("dafh.tables.values.category_name", lambda value: asked.append(value) or str(value))
    path = written(tmp_path, "c,y\n" + "red,1\nblue,0\n" * 500)
    schema = TableSchema("y", {"c": "category"})
    (piece,) = DataFile(path).pieces([], ["c"])
    codes = schema.features_of(piece)["c"].cat.codes
    assert asked == ["red", "blue"]
    assert np.bincount(codes).tolist() == [500, 500]


@pytest.mark.parametrize("n_taken", [57, 60])
@pytest.mark.parametrize("wide", ["5,x,,,1,a,0\n", "\n\n5,x,,,1,a,0,0\n", "5,x,,,1,a,\n"])
def test_rows_with_too_many_cells_are_refused_at_the_border_of_two_pieces_too(tmp_path, n_taken, wide):
    plain = "1,x,2020-01-01,1,2,a\n"
    path = written(tmp_path, ",".join(HEADER) + "\n" + plain * n_taken + wide + plain * 5)
    fast, slow = (outcome(path, fast=fast, rows=30) for fast in (True, False))
    assert fast[:2] == slow[:2]
    assert "Expected 6 fields in line" in fast[0]
