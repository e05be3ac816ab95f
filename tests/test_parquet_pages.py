"""Pages of a Parquet file that announce more than they hold, and types that do not stay as small as they are stored."""

import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import examples
from dafh.exceptions import InputError
from dafh.tables.files import DataFile
from dafh.tables.footer import read_footer
from dafh.tables.page_contents import check_lengths, longest_text
from dafh.tables.pages import column_pages
from dafh.tables.parquet import _bytes_of
from dafh.tables.thrift import DamagedError
from parquet_bytes import Bytes, about, apart, chunks, field, structure, together, unsigned

CODECS = ["none", "snappy", "gzip", "zstd", "brotli", "lz4"]
ENCODINGS = ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY"]


def written(path, columns, encoding="RLE_DICTIONARY", **options):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    if encoding != "RLE_DICTIONARY":
        options |= {"use_dictionary": False, "column_encoding": {"s": encoding}}
    pq.write_table(table, path, **options)
    return path


@examples(2)
@given(
    texts=st.lists(st.none() | st.text(max_size=30), min_size=1, max_size=200),
    codec=st.sampled_from(CODECS),
    encoding=st.sampled_from(ENCODINGS),
    version=st.sampled_from(["1.0", "2.0"]),
    page=st.sampled_from([100, 2**20]),
    has_gaps=st.booleans(),
)
def test_texts_are_read_however_they_are_stored(tmp_path_factory, texts, codec, encoding, version, page, has_gaps):
    texts = texts if has_gaps else [text or "" for text in texts]
    schema = pa.schema([pa.field("s", pa.string(), nullable=has_gaps), pa.field("n", pa.int64())])
    table = pa.table({"s": texts, "n": range(len(texts))}, schema)
    path = tmp_path_factory.mktemp("texts") / "table.parquet"
    written(path, table, encoding, compression=codec, data_page_version=version, data_page_size=page, row_group_size=70)
    found = DataFile(path).read()["s"]
    assert [None if pd.isna(text) else text for text in found] == texts


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", CODECS)
def test_the_longest_text_of_a_dictionary_is_known(tmp_path, codec, version):
    texts = ["x" * length for length in (3, 500, 0)] * 100
    path = written(tmp_path / "table.parquet", {"s": texts}, compression=codec, data_page_version=version)
    with path.open("rb") as stream:
        chunk = read_footer(stream, "it").groups[0].chunks[0]
        assert column_pages(stream, chunk, "it", 2**26).longest == 500


def test_a_dictionary_of_many_short_texts_is_read_in_large_pieces(tmp_path, monkeypatch):
    texts = [f"customer {number}" for number in range(20_000)]
    path = written(tmp_path / "table.parquet", {"s": texts, "n": range(20_000)})
    sizes, read = [], pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda self, n, **k: sizes.append(n) or read(self, n, **k))
    assert len(DataFile(path).read()) == 20_000
    assert sizes == [20_000]


def test_rows_that_could_be_read_only_one_by_one_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dafh.tables.streams.LARGEST_PIECE", 2**22)
    monkeypatch.setattr("dafh.tables.streams.TIMES_PACKED", 1)
    codes = pa.array(np.zeros(50_000, np.int32))
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "y" * 200_000]))
    path = written(tmp_path / "table.parquet", {"s": texts, "n": range(50_000)}, compression="zstd")
    with pytest.raises(InputError, match="takes more than 4,194,304 bytes in memory at once"):
        DataFile(path).read()


# ---- what a page announces ----


@pytest.mark.parametrize("encoding", ENCODINGS[1:3])
def test_more_lengths_than_texts_are_refused(tmp_path, encoding):
    schema = pa.schema([pa.field("s", pa.string(), nullable=False)])
    table = pa.table({"s": ["ab"] * 20}, schema)
    path = written(tmp_path / "table.parquet", table, encoding, compression="none")
    content = path.read_bytes()
    lengths = b"\x80\x01\x04\x14"  # Blocks of 128 in 4 parts, 20 values.
    assert content.count(lengths) == (2 if encoding == "DELTA_BYTE_ARRAY" else 1)
    assert len(DataFile(path).read()) == 20
    for place in (content.find(lengths), content.rfind(lengths)):
        path.write_bytes(content[: place + 3] + b"\x7f" + content[place + 4 :])
        with pytest.raises(InputError, match="is damaged"):
            DataFile(path).read()


HALF_A_BILLION = unsigned(2**31) + unsigned(1) + unsigned(500_000_000) + b"\0\0\0"


@pytest.mark.parametrize(
    "content",
    [
        HALF_A_BILLION,
        unsigned(128) + unsigned(4) + unsigned(2**40) + b"\0",
        unsigned(128) + unsigned(0) + unsigned(5) + b"\0",
        unsigned(128) + unsigned(3) + unsigned(5) + b"\0",
        unsigned(2**20) + unsigned(1) + unsigned(5) + b"\0",
        unsigned(128) + unsigned(4) + unsigned(5) + b"\0\0" + bytes([65, 0, 0, 0]),
        unsigned(128) + unsigned(4) + unsigned(5) + b"\0\0" + bytes([64, 0, 0, 0]),
        unsigned(128) + unsigned(4),
        b"\xff" * 20,
        b"",
    ],
)
def test_lengths_that_only_announce_are_refused(content):
    for has_prefixes in (False, True):
        with pytest.raises(DamagedError):
            check_lengths(content, 1_000, has_prefixes=has_prefixes)


def test_texts_beyond_the_end_of_a_dictionary_are_refused():
    assert longest_text(b"\2\0\0\0ab\0\0\0\0", 2) == 2
    with pytest.raises(DamagedError):
        longest_text(b"\3\0\0\0ab", 1)


@pytest.mark.parametrize("n_values", [0, 21, -3, 19])
def test_a_page_of_other_cells_than_its_column_is_refused(tmp_path, n_values):
    table = {"n": range(20)}
    path = written(tmp_path / "table.parquet", table, compression="none", use_dictionary=False)
    body, footer = apart(path.read_bytes())
    reader = Bytes(body, 4)
    header = reader.structure()
    field(field(header, 5)[2], 1)[2] = n_values
    content = structure(header)
    field(about(chunks(footer)[0]), 7)[2] += len(content) - (reader.at - 4)
    path.write_bytes(together(body[:4] + content + body[reader.at :], footer))
    for part in (DataFile(path), DataFile(path).parts()[0]):
        with pytest.raises(InputError, match="is damaged"):
            part.read()


# ---- types ----


@pytest.mark.parametrize("storage", [pa.array(["x", "z"] * 10).dictionary_encode(), pa.array([["x"], ["z"]] * 10)])
def test_types_that_extend_others_are_read_as_they_are_stored(tmp_path, storage):
    extended = pa.ExtensionArray.from_storage(pa.opaque(storage.type, "t", "v"), storage)
    path = written(tmp_path / "table.parquet", {"s": extended, "n": range(20)})
    file = DataFile(path)
    found = file.read()
    assert found["n"].tolist() == list(range(20))
    if pa.types.is_list(storage.type):
        assert file.notes == ["Left out, cells hold lists, records or bytes: s."]
    else:
        assert found["s"].tolist() == ["x", "z"] * 10


def test_text_that_is_json_is_text(tmp_path):
    column = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}'] * 3))
    path = written(tmp_path / "table.parquet", {"s": column})
    assert DataFile(path).read()["s"].tolist() == ['{"a": 1}'] * 3


def test_only_the_types_of_columns_are_passed_on_of_what_a_file_notes(tmp_path):
    table = pa.table({"s": pa.array(["x", "y"]).dictionary_encode()}).replace_schema_metadata({"note": "z" * 10_000})
    path = written(tmp_path / "table.parquet", table)
    with path.open("rb") as stream:
        content = read_footer(stream, "it").content()
    assert b"zzz" not in content
    assert pq.read_metadata(io.BytesIO(content)).schema.to_arrow_schema().field("s").type == table["s"].type


@pytest.mark.parametrize("nested", [[{"list": "x"}] * 3, [["x"]] * 3])
def test_names_that_arrow_could_not_tell_apart_are_refused(tmp_path, nested):
    path = written(tmp_path / "table.parquet", {"s": nested, "s.list": ["x"] * 3, "n": range(3)})
    with pytest.raises(InputError, match="names of its columns cannot be told apart"):
        DataFile(path).read()
    path = written(tmp_path / "other.parquet", {"s": nested, "s.lists": ["x"] * 3, "a.b": range(3), "a.b.c": range(3)})
    assert list(DataFile(path).read().columns) == ["s.lists", "a.b", "a.b.c"]


def test_cells_count_as_what_they_take_in_python():
    batch = pa.record_batch(
        {"a": pa.array([Decimal("1.5")] * 10), "b": pa.nulls(10), "c": pa.array([1] * 10, pa.time32("s"))}
    )
    assert _bytes_of(batch) >= 10 * (120 + 8 + 64)
    assert _bytes_of(pa.record_batch({"a": pa.array([1] * 10, pa.timestamp("s"))})) == 80
