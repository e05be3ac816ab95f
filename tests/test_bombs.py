"""Small files that unpack to gigabytes, or have rows without end: refused before the memory is taken."""

import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import run
from dafh.exceptions import InputError
from dafh.tables import files, footer, rows_of_text, streams
from dafh.tables.files import DataFile
from dafh.tables.rows_of_text import RowsOfText

LONG = "x" * 20_000


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(streams, "LARGEST_PIECE", 2**22)
    monkeypatch.setattr(streams, "TIMES_PACKED", 1)
    monkeypatch.setattr(streams, "LONGEST_LINE", 2**16)


def coded(n_rows, text, n_others=0):
    """A column of one text, which a file holds once."""
    texts = [text, *(str(i) for i in range(n_others))]
    return pa.DictionaryArray.from_arrays(pa.array(np.arange(n_rows, dtype=np.int32) % len(texts)), pa.array(texts))


def written(tmp_path, columns, **options):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def ways(path):
    """All ways in which commands read a file."""
    file = DataFile(path)
    return [file.chunks(text=None), file.chunks(rows=None, text=None), file.pieces([], None), file.parts()[0].chunks()]


BOMBS = {
    "a text that is stored once": ({"a": coded(400, LONG)}, {"store_schema": False}),
    "a category": ({"a": coded(400, LONG)}, {}),
    "beginnings that are stored once": (
        {"a": [LONG] * 400},
        {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}},
    ),
    "a packed page": ({"a": ["x" * 2**22]}, {"use_dictionary": False, "compression": "zstd"}),
    "packed pages": ({"a": [LONG] * 400}, {"use_dictionary": False, "compression": "zstd", "data_page_size": 2**15}),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_parquet_file_that_unpacks_to_too_much_is_refused(tmp_path, bomb):
    columns, options = BOMBS[bomb]
    path = written(tmp_path, columns, **options)
    assert path.stat().st_size < 2**18
    before = pa.total_allocated_bytes()
    for way in ways(path):
        with pytest.raises(InputError, match=r"takes more than 4,194,304 bytes in memory at once") as error:
            list(way)
        assert "\n" not in str(error.value)
    assert pa.total_allocated_bytes() - before < 2**24


def test_commands_refuse_it_in_one_sentence(tmp_path):
    path = written(tmp_path, {"a": coded(400, LONG), "hired": np.arange(400) % 2}, store_schema=False)
    result = run("fit", path, "--target", "hired", "--out", tmp_path / "m.dafh")
    assert result.exit_code == 2
    assert "takes more than 4,194,304 bytes in memory" in result.stderr


def test_more_rows_than_a_file_of_its_size_can_have_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(footer, "MOST_ROWS_ANYWAY", 1_000)
    monkeypatch.setattr(footer, "MOST_ROWS_A_BYTE", 2)
    path = written(tmp_path, {"a": np.zeros(50_000)})
    for asked in (DataFile(path).read, DataFile(path).count_rows, DataFile(path).parts):
        with pytest.raises(InputError, match=r"has 50,000 rows in .* a Parquet file may have up to 2 for each byte"):
            asked()


@pytest.mark.parametrize("store_schema", [True, False])
@pytest.mark.parametrize("compression", ["snappy", "gzip", "zstd", "none"])
def test_pieces_of_parquet_are_the_same_however_few_rows_are_read_at_once(tmp_path, compression, store_schema):
    n = 3_000
    texts = coded(n, "x" * 500, n_others=40)
    numbers = [None if i % 7 == 0 else i for i in range(n)]
    columns = {"a": texts, "b": pa.array(map(str, range(n))), "c": pa.array(numbers), "d": [[1]] * n}
    path = written(tmp_path, columns, compression=compression, row_group_size=700, store_schema=store_schema)
    plain = pq.read_table(path, columns=["a", "b", "c"]).replace_schema_metadata(None)
    expected = files.arrow_to_pandas(plain)
    pd.testing.assert_frame_equal(DataFile(path).read().astype({"a": str}), expected.astype({"a": str}))
    assert [len(piece) for piece in DataFile(path).chunks(rows=1_100)] == [1_100, 1_100, 800]


def test_headers_of_pages_that_are_damaged_are_refused(tmp_path):
    path = written(tmp_path, {"a": ["x", "y"] * 50})
    content = bytearray(path.read_bytes())
    for damage in (b"\x19" * 20, b"\xff" * 20, b"\x1c" * 20):
        path.write_bytes(content[:4] + damage + content[24:])
        with pytest.raises(InputError, match="is damaged"):
            DataFile(path).read()


@pytest.mark.parametrize("quoted", ['"cook', '"""cook""', '"cook"\n,"'])
def test_a_quotation_mark_that_is_not_closed_is_refused_before_all_is_read(tmp_path, quoted):
    path = tmp_path / "table.csv"
    path.write_text(f"age,job\n30,cook\n31,{quoted}\n" + "32,cook\n" * 2**15)
    for way in ways(path):
        with pytest.raises(InputError, match="longer than 65,536 letters; a quotation mark may not be closed"):
            list(way)


@pytest.mark.parametrize("cell", ['5" pipe', '"5"" pipe, long"', '""', '"cook   "', '"a,"', '" "', '"""a"""', 'a"b"c'])
def test_quotation_marks_that_are_closed_are_no_trouble(tmp_path, cell):
    path = tmp_path / "table.csv"
    path.write_text("age,job\n" + f"30,{cell}\n" * 2**14)
    assert len(DataFile(path).read(text=None)) == 2**14


def test_rows_of_text_know_what_pandas_takes_for_a_cell(monkeypatch):
    monkeypatch.setattr(rows_of_text, "_WINDOW", 12)
    rng = np.random.default_rng(0)
    for _ in range(100):
        text = "".join(rng.choice(list('"",\n a'), rng.integers(1, 40)))
        text, size = f"h,i\n{text}\nend", int(rng.choice([1, 2, 7, 1000]))
        rows = RowsOfText(io.BytesIO(text.encode()), "utf-8", ",", 10**9)
        while rows.read(size):
            pass
        try:
            pd.read_csv(io.StringIO(text), skipinitialspace=True, names=range(60), dtype=str)
            closed = True
        except pd.errors.ParserError as error:
            closed = "EOF inside string" not in str(error)
        assert (rows._length <= 3) == closed, text


def test_a_packed_text_that_unpacks_to_too_much_is_refused(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"age,job\n" + (b"30," + b"x" * 2**15 + b"\n") * 140))
    for way in ways(path):
        with pytest.raises(InputError, match="unpacks to more than 4,194,304 bytes at once"):
            list(way)


def test_a_packed_text_is_limited_piece_by_piece(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"age,job\n" + (b"30," + b"x" * 2**12 + b"\n") * 2_000))
    assert sum(map(len, DataFile(path).chunks(rows=200))) == 2_000
    assert sum(map(len, DataFile(path).pieces([], None, rows=200))) == 2_000


def test_a_parquet_file_in_gzip_fills_no_disk(tmp_path):
    plain = written(tmp_path, {"a": np.zeros(2**20)}, use_dictionary=False, compression="none")
    path = tmp_path / "table.parquet.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    for way in (*ways(path), [DataFile(path).count_rows]):
        with pytest.raises(InputError, match="unpacks to more than 4,194,304 bytes at once"):
            [one() if callable(one) else one for one in way]
    path.write_bytes(gzip.compress(written(tmp_path, {"a": [1.0, 2.0]}).read_bytes()))
    assert DataFile(path).count_rows() == sum(map(len, DataFile(path).chunks())) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"\x19\x18\x01s", b"\x19\x18\x01q", "not what its schema says"),  # The path of a column.
        (b"\x15\x0c\x19", b"\x15\x02\x19", "not what its schema says"),  # Its type: whole numbers instead of text.
        (b"\x16\x90\x03\x26", b"\x16\x80\x00\x26", "as many rows as the whole"),  # No rows in the only part.
        (b"\x16\x90\x03\x26", b"\x16\x8f\x03\x26", "as many rows as the whole"),  # Less than none.
    ],
)
def test_a_parquet_file_that_contradicts_itself_is_refused(tmp_path, old, new, message):
    columns = {"a": np.arange(200), "s": ["x"] * 200}
    path = written(tmp_path, columns, store_schema=False, compression="none")
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    with pytest.raises(InputError, match=message):
        DataFile(path).read()


def test_a_row_of_very_many_empty_cells_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,s,y\n1,x,1" + "," * 20_000 + "\n")
    with pytest.raises(InputError, match="20,003 columns"):
        DataFile(path).read()
