"""The layout of text files: delimiter, header, decimal mark, and the same table whatever they are."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.exceptions import InputError
from dafh.tables.files import DataFile
from dafh.tables.layout import Layout, cells, declared_delimiter
from tables import written

# Letters of names and cells that are no number, whatever the delimiter and the decimal mark are.
WORDS = st.text(st.characters(codec="utf-8", categories=("L",)), min_size=1, max_size=6).filter(
    lambda word: word.lower() not in ("inf", "infinity", "na", "nan", "null", "none")
)


def text_of(rows, delimiter=","):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


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
    assert Layout.guess(lines) == Layout(delimiter, True, ".")


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
    ],
)
def test_the_delimiter_is_the_one_that_cuts_all_lines_alike(lines, delimiter):
    assert Layout.guess(lines).delimiter == delimiter


@pytest.mark.parametrize(
    "lines", [["30,5;cook", "41,5;clerk"], ["1,5;2,5", "3,5;4,5"], ["1.234,5;2", "2.345,5;3"], ["7,181;x", "8,250;y"]]
)
def test_decimal_commas_are_not_taken_for_delimiters_in_files_without_a_header(lines):
    assert Layout.guess(lines) == Layout(";", False, ",")


def test_lists_parted_by_semicolons_are_not_taken_for_cells():
    assert Layout.guess(["1,2,a;b", "3,4,c;d"]).delimiter == ","


def test_only_the_first_lines_decide_about_the_delimiter():
    even, uneven = ["1;2"] * 50, ["1,2,3"] * 500
    assert Layout.guess(["a;b", *even, *uneven]).delimiter == ";"


def test_what_is_given_is_taken_even_where_another_layout_fits_better():
    lines = ["1;2", "3;4"]
    assert Layout.guess(lines, delimiter="|", has_header=True, decimal=",") == Layout("|", True, ",")


@pytest.mark.parametrize("delimiter", ["ab", "§", '"', "\n", "\r"])
def test_delimiters_that_cannot_be_used_are_refused(tmp_path, delimiter):
    file = DataFile(written(tmp_path, "a,b\n1,2\n"), delimiter=delimiter)
    with pytest.raises(InputError, match="must be one character of ASCII") as refusal:
        file.read()
    assert "\n" not in str(refusal.value)


def test_any_other_ascii_character_may_part_cells(tmp_path):
    for delimiter in "~:!^#":
        path = written(tmp_path, f"a{delimiter}b\n1{delimiter}x\n")
        assert DataFile(path, delimiter=delimiter).read().to_dict("list") == {"a": [1], "b": ["x"]}


# ---- the line that Excel reads ----


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "SEP=;", "sep=;\r", "\ufeffsep=;"])
@pytest.mark.parametrize("rows", [None, 1])
def test_excel_s_line_about_the_delimiter_is_followed_and_not_part_of_the_table(tmp_path, line, rows):
    path = written(tmp_path, f"{line}\na;b\n1,5;x\n2,5;y\n")
    file = DataFile(path)
    table = pd.concat(file.chunks(rows=rows), ignore_index=True)
    assert table.to_dict("list") == {"a": [1.5, 2.5], "b": ["x", "y"]}
    assert file.layout == Layout(";", True, ",")


def test_excel_s_line_decides_where_a_guess_would_be_wrong(tmp_path):
    path = written(tmp_path, "sep=|\na,b|c\n1,2|x\n")
    assert list(DataFile(path).read().columns) == ["a,b", "c"]
    assert list(DataFile(path, delimiter=",").read().columns) == ["a", "b|c"]


def test_excel_s_line_may_name_a_tab_and_alone_is_an_empty_file(tmp_path):
    assert DataFile(written(tmp_path, "sep=\t\na\tb\n1\t2\n")).read().to_dict("list") == {"a": [1], "b": [2]}
    with pytest.raises(InputError, match="is empty"):
        DataFile(written(tmp_path, "sep=;\n")).read()


@pytest.mark.parametrize("line", ["sep=;;", "sep=", "sep", "x sep=;", "sep=;a;b"])
def test_lines_that_only_resemble_it_are_ordinary(line):
    assert declared_delimiter(line) is None


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
    assert Layout.guess(lines, delimiter=",").has_header is has_header


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("content", ["30,cook\n41,clerk", "a;b\n7,5;x", "a\tb\n1\t2"])
def test_the_end_of_the_last_line_changes_nothing(tmp_path, content, end):
    alone, ended = DataFile(written(tmp_path, content)), DataFile(written(tmp_path, content + end, "other.csv"))
    pd.testing.assert_frame_equal(alone.read(), ended.read())
    assert alone.layout == ended.layout


@pytest.mark.parametrize("blank", ["\n", "  \n", "\t\n", "\r\n", " \n\n \n"])
def test_blank_lines_before_the_header_and_between_rows_do_not_count(tmp_path, blank):
    table = DataFile(written(tmp_path, f"{blank}a,b\n{blank}1,2\n{blank}3,4\n")).read()
    assert table.to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_rows_of_empty_cells_are_rows(tmp_path):
    table = DataFile(written(tmp_path, "a,b\n,\n1,2\n")).read()
    assert table.isna().all(axis=1).tolist() == [True, False]


def test_cells_are_cut_as_spreadsheets_cut_them():
    assert cells(['a, "b, c" ,""', "", '"x ""y"""', ","], ",") == [["a", "b, c ", ""], ['x "y"'], ["", ""]]


def test_other_users_of_the_csv_module_keep_their_limits():
    before = csv.field_size_limit()
    assert len(cells(["x" * (before + 1)], ",")[0][0]) == before + 1
    assert csv.field_size_limit() == before


# ---- the same numbers in every layout ----


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
    assert file.layout == Layout(delimiter, True, decimal)


def test_a_decimal_mark_may_first_show_thousands_of_lines_down(tmp_path):
    lines = ["n;w", *["1;x"] * 5_000, "2,5;y"]
    table = DataFile(written(tmp_path, "\n".join(lines))).read()
    assert table["n"].iloc[-1] == 2.5


def test_a_guess_is_noted_once_however_often_the_file_is_read(tmp_path):
    file = DataFile(written(tmp_path, "30,5;cook\n41,5;clerk\n"))
    file.read()
    file.read()
    assert len(file.notes) == 2
    assert "decimal comma" in file.notes[0]
    assert "columns are called column_1 to column_2" in file.notes[1]
