"""Numbers, names and tables for readers: nothing is written that is not so, and nothing breaks a line or a page."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.text import (
    Readable,
    Section,
    clipped,
    percent,
    plain,
    points,
    render_html,
    write_date,
    write_number,
)

numbers = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(max_size=80)


def read(text):
    return float(text.replace(",", ""))


# ---- numbers ----


@pytest.mark.parametrize("write", [percent, points, write_number])
def test_what_rounds_to_zero_has_no_minus(write):
    assert "-" not in write(-0.0)
    assert "-" not in points(-1e-9)


@given(st.floats(-1, 1))
def test_points_are_the_difference_to_the_last_digit_shown(gap):
    assert read(points(gap)) == pytest.approx(100 * gap, abs=0.0051)
    assert read(percent(gap).rstrip("%")) == pytest.approx(100 * gap, abs=0.051)


@given(st.floats(-1e300, 1e300), st.integers(2, 17))
def test_a_number_is_written_to_as_many_digits_as_asked(value, digits):
    written = read(write_number(value, digits))
    # Half a unit of the last digit; a whole number may get more digits, never fewer.
    assert written == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits), abs=1e-307)


@given(numbers)
def test_seventeen_digits_give_a_number_back(value):
    assert read(write_number(value, 17)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (999.6, "1,000"),
        (-1234.4, "-1,234"),
        (99.94, "99.9"),
        (1e-9, "1e-09"),
        (123_456_789_012_345.0, "123,456,789,012,345"),
        (1_234_567_890_123_456.0, "1.23e+15"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_of_every_size_are_readable(value, text):
    assert write_number(value) == text


@given(st.integers(-700_000, 2_900_000), st.integers(0, 86_399))
def test_a_date_is_written_as_pandas_reads_it(day, second):
    written = pd.Timestamp(write_date(day + second / 86_400, 9))
    expected = pd.Timestamp("1970-01-01").as_unit("s") + pd.Timedelta(days=day, seconds=second).as_unit("s")
    assert written == expected


# ---- names ----


@given(words, st.integers(1, 70))
def test_a_clipped_name_fits_one_line(text, width):
    line = clipped(text, width)
    assert len(line) <= width
    assert line.isprintable()
    assert len(line.splitlines()) <= 1


# ---- tables ----


@given(words)
def test_nothing_becomes_markup_in_a_notebook(text):
    nasty = f"<b>{text}</b>"
    page = render_html(nasty, pd.DataFrame({nasty: [nasty]}))
    assert "<b>" not in page
    assert page.count("&lt;b&gt;") == 3


# ---- plain values ----


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.longdouble(0.25), 0.25),
        (np.array(7), 7),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(["a", None, 1.5], object), ["a", None, 1.5]),
        ((1, (2,)), [1, [2]]),
        ({3: {np.int64(4): 5}}, {"3": {"4": 5}}),
        (b"raw", "b'raw'"),
        (3 + 4j, "(3+4j)"),
    ],
)
def test_values_become_what_json_knows(value, expected):
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "unknown",
    [np.nan, np.inf, -np.inf, np.float32("nan"), None, pd.NA, pd.NaT, np.datetime64("NaT"), np.longdouble("inf")],
    ids=repr,
)
def test_what_is_unknown_becomes_none(unknown):
    assert plain(unknown) is None
    assert plain([{"a": unknown}]) == [{"a": None}]


leaves = st.none() | st.booleans() | st.integers() | st.floats() | words
trees = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))


@given(trees)
def test_plain_values_go_through_json_and_come_back(tree):
    once = plain(tree)
    assert json.loads(json.dumps(once, allow_nan=False)) == once
    assert plain(once) == once


class Counted(Readable):
    def sections(self):
        table = pd.DataFrame({"group": ["<b>", "c"], "rows": ["1", "20"]})
        return [Section(sentences=["Two groups."]), Section("Who", table=table)]


def test_terminal_notebook_and_page_show_the_same_sections():
    assert str(Counted()) == "Two groups.\n\nWho\n group  rows\n <b>       1\n c        20"
    page = Counted()._repr_html_()
    assert all(text in page for text in ("<p>Two groups.</p>", "<p>Who</p>", "&lt;b&gt;", "20"))
    assert Counted().sections()[1].to_dict() == {
        "title": "Who", "sentences": [], "columns": ["group", "rows"], "rows": [["<b>", "1"], ["c", "20"]],
    }  # fmt: skip
