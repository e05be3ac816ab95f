"""The end of a Parquet file, and the headers in it: read strictly, so that Arrow never sees what could mislead it."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.exceptions import InputError
from dafh.tables import footer as ends
from dafh.tables import thrift
from dafh.tables.files import DataFile
from dafh.tables.pages import column_pages
from parquet_bytes import (
    BOOL,
    LIST,
    LONG,
    STRUCTURE,
    TEXT,
    WHOLE,
    Bytes,
    about,
    apart,
    chunks,
    field,
    groups,
    structure,
    together,
)

N_ROWS = 200


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "table.parquet"
    columns = {"a": np.arange(N_ROWS), "s": ["x", "yy"] * (N_ROWS // 2)}
    pq.write_table(pa.table(columns), path, compression="none", row_group_size=N_ROWS // 2)
    return path


def refused(path, message):
    file = DataFile(path)
    for asked in (file.read, lambda: list(file.pieces([], None)), lambda: [part.read() for part in file.parts()]):
        with pytest.raises(InputError, match=message) as error:
            asked()
        assert "\n" not in str(error.value)


def sharing_bytes(footer):
    first, *others = chunks(footer)
    for other in others[1::2]:
        for number in (7, 9, 11):
            field(about(other), number)[2] = field(about(first), number)[2]


def without_cells(footer):
    for chunk in chunks(footer):
        field(about(chunk), 5)[2] = 0


def in_another_file(footer):
    chunks(footer)[0].insert(0, [1, TEXT, b"/etc/passwd"])


def with_a_chunk_too_many(footer):
    columns = field(groups(footer)[0], 1)[2][1]
    columns.append(columns[-1])


def deeper_than_any(footer):
    elements = field(footer, 2)[2][1]
    elements[1:1] = [[[3, WHOLE, 0], [4, TEXT, b"n"], [5, WHOLE, 1]] for _ in range(5_000)]


DAMAGES = {
    "columns that share bytes": (sharing_bytes, "overlap"),
    "columns without cells": (without_cells, "as many cells as there are rows"),
    "a column in another file": (in_another_file, "in another file"),
    "a chunk too many": (with_a_chunk_too_many, "other columns than its schema"),
    "an encrypted column": (lambda end: chunks(end)[0].append([8, STRUCTURE, []]), "is encrypted"),
    "an encrypted file": (lambda end: end.append([8, STRUCTURE, []]), "is encrypted"),
    "a column before the file": (lambda end: field(about(chunks(end)[0]), 9).__setitem__(2, -5), "outside"),
    "a column after the file": (lambda end: field(about(chunks(end)[0]), 7).__setitem__(2, 10**6), "outside"),
    "a column of no bytes": (lambda end: field(about(chunks(end)[0]), 7).__setitem__(2, 0), "are empty"),
    "more children than columns": (lambda end: field(field(end, 2)[2][1][0], 5).__setitem__(2, 9), "missing"),
    "fewer children than columns": (lambda end: field(field(end, 2)[2][1][0], 5).__setitem__(2, 1), "not a tree"),
    "a column of no repetition": (lambda end: field(field(end, 2)[2][1][1], 3).__setitem__(2, 7), "neither required"),
    "nested without end": (deeper_than_any, "nested more than 64 deep"),
    "the number of rows twice": (lambda end: end.insert(3, [3, LONG, 5]), "a field twice"),
    "the number of rows as a text": (lambda end: field(end, 3).__setitem__(slice(1, 3), [TEXT, b"9"]), "another kind"),
    "a list of something else": (lambda end: field(end, 4).__setitem__(2, (WHOLE, [1])), "another kind"),
    "no schema": (lambda end: end.remove(field(end, 2)), "missing"),
    "a wrapped number": (lambda end: end.append([65_538, LIST, (WHOLE, [1])]), "too large for its kind"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_end_that_could_be_read_in_two_ways_is_refused(path, damage):
    change, message = DAMAGES[damage]
    body, footer = apart(path.read_bytes())
    change(footer)
    path.write_bytes(together(body, footer))
    refused(path, message)


def test_what_arrow_ends_the_process_for_is_never_shown_to_it(path):
    body, footer = apart(path.read_bytes())
    # Histograms of gaps, as Arrow writes them, of a column that has none.
    for element in field(footer, 2)[2][1][1:]:
        field(element, 3)[2] = 0
    path.write_bytes(together(body, footer))
    code = "import sys, pyarrow.parquet as pq; pq.read_metadata(sys.argv[1]).row_group(0).column(0)"
    assert subprocess.run([sys.executable, "-c", code, path], capture_output=True).returncode < 0
    refused(path, "cannot be read|is damaged")


def test_what_is_not_needed_to_read_the_rows_may_be_anything(path):
    before = DataFile(path).read()
    body, footer = apart(path.read_bytes())
    for chunk in chunks(footer):
        about(chunk)[:] = [one for one in about(chunk) if one[0] < 12]
        about(chunk).append([12, STRUCTURE, [[1, LIST, (BOOL, [1, 0])], [900, STRUCTURE, []]]])
    footer.append([300, TEXT, b"anything"])
    path.write_bytes(together(body, footer))
    pd.testing.assert_frame_equal(DataFile(path).read(), before)


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, 200])
def test_a_file_that_is_cut_off_is_refused(path, cut):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - cut] if cut < 200 else b"PAR1PAR1")
    if cut:
        refused(path, "is damaged")
    else:
        assert len(DataFile(path).read()) == N_ROWS


def test_more_cells_than_a_file_of_its_size_can_have_are_refused(path, monkeypatch):
    monkeypatch.setattr(ends, "MOST_CELLS_ANYWAY", 100)
    monkeypatch.setattr(ends, "MOST_CELLS_A_BYTE", 0)
    refused(path, r"has 400 cells in .* up to 0 for each byte")


def test_a_description_that_is_too_long_is_refused(path, monkeypatch):
    monkeypatch.setattr(ends, "MOST_BYTES", 100)
    refused(path, "may take up to 100")
    monkeypatch.undo()
    monkeypatch.setattr(ends, "MOST_VALUES", 100)
    refused(path, "too many values")


def twice(header):
    header.insert(2, [2, WHOLE, 1])


def of_another_kind(header):
    field(header, 2)[1] = LONG


def wrapped(header):
    header.append([65_538, WHOLE, 1])


def decoy(header):
    header.insert(3, [5, STRUCTURE, [[1, WHOLE, 10**6], [2, WHOLE, 0]]])


def negative(header):
    field(header, 3)[2] = -1


def beyond(header):
    field(header, 2)[2] = 2**40


def of_no_kind(header):
    field(header, 1)[2] = 1


def crowded(header):
    header.extend([20 + number, WHOLE, 0] for number in range(200))


def change_header(path, change):
    """Change the header of the first page, and say in the end of the file where everything is now."""
    body, footer = apart(path.read_bytes())
    reader = Bytes(body, 4)
    header = reader.structure()
    assert field(header, 1)[2] == 2  # A dictionary, which is not a page of data.
    change(header)
    content = structure(header)
    moved = len(content) - (reader.at - 4)
    for chunk in chunks(footer):
        for number in (9, 11):
            place = field(about(chunk), number)
            place[2] += moved if place[2] > 4 else 0
    field(about(chunks(footer)[0]), 7)[2] += moved
    path.write_bytes(together(body[:4] + content + body[reader.at :], footer))


@pytest.mark.parametrize(
    "change", [twice, of_another_kind, wrapped, decoy, negative, beyond, of_no_kind, crowded, list.clear]
)
def test_a_header_that_could_be_read_in_two_ways_is_refused(path, change):
    change_header(path, change)
    refused(path, "the header of one of its pages cannot be read")


def test_a_header_may_have_fields_that_nobody_knows_yet(path):
    before = DataFile(path).read()
    change_header(path, lambda header: header.append([100, TEXT, b"x" * 5_000]))
    pd.testing.assert_frame_equal(DataFile(path).read(), before)


def test_what_is_not_packed_is_as_large_as_it_is_whatever_its_header_says(path):
    pq.write_table(pa.table({"s": ["x" * 20_000] * 400}), path, compression="none")
    change_header(path, lambda header: field(header, 2).__setitem__(2, 1))
    with path.open("rb") as stream:
        chunk = ends.read_footer(stream, "it").groups[0].chunks[0]
        pages = column_pages(stream, chunk, "it", 2**26)
    assert pages.most_bytes(400) >= 400 * 20_000


def test_parts_are_read_by_what_was_said_of_each(tmp_path):
    path = tmp_path / "table.parquet"
    table = pd.DataFrame({"a": np.arange(1_000), "s": pd.Categorical(["x", "y"] * 500)})
    table.to_parquet(path, row_group_size=300)
    parts = DataFile(path).parts()
    assert [part.n_rows for part in parts] == [300, 300, 300, 100]
    pd.testing.assert_frame_equal(pd.concat([part.read() for part in parts], ignore_index=True), DataFile(path).read())


SHAPE = {1: thrift.BOOL, 2: thrift.BYTE, 3: thrift.SHORT, 4: thrift.WHOLE, 5: thrift.LONG, 6: thrift.TEXT}
NESTED = {**SHAPE, 7: SHAPE, 8: [SHAPE], 9: [thrift.LONG], 10: [thrift.TEXT]}
whole = {kind: st.integers(-(2 ** (kind - 1)), 2 ** (kind - 1) - 1) for kind in (8, 16, 32, 64)}
plain = {1: st.booleans(), 2: whole[8], 3: whole[16], 4: whole[32], 5: whole[64], 6: st.binary(max_size=200)}
flat = st.fixed_dictionaries({}, optional=plain)
nested = st.fixed_dictionaries(
    {}, optional={**plain, 7: flat, 8: st.lists(flat), 9: st.lists(whole[64]), 10: st.lists(st.binary())}
)


@given(nested)
def test_what_is_written_is_read(fields):
    content = thrift.written(fields, NESTED)
    assert thrift.read(content + b"more", NESTED, 10**6) == (fields, len(content))
    assert thrift.read(content, {}, 10**6) == ({}, len(content))
    # Another implementation may write the same in other bytes.
    assert thrift.read(structure(Bytes(content).structure()), NESTED, 10**6)[0] == fields


@given(nested, st.data())
def test_bytes_that_end_too_early_are_unfinished(fields, data):
    content = thrift.written(fields, NESTED)
    with pytest.raises(thrift.UnfinishedError):
        thrift.read(content[: data.draw(st.integers(0, len(content) - 1))], NESTED, 10**6)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content):
    try:
        fields, length = thrift.read(content, NESTED, 100)
    except thrift.DamagedError:
        return
    assert length <= len(content)
    assert thrift.read(thrift.written(fields, NESTED), NESTED, 100)[0] == fields
