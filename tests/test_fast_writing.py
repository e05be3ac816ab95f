"""Lines of CSV written column by column: the same text as pandas writes, and harmless in a spreadsheet."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dafh.tables.cells import NotSimpleError, csv_lines
from dafh.tables.writing import TableWriter

LETTERS = st.text(st.sampled_from(list("ab0,;\"'\n =+-@\té😀\u2028")), max_size=6)


def by_pandas(table):
    return table.to_csv(index=False, header=False, lineterminator="\n")


@given(
    arrays(np.float64, st.integers(1, 20), elements=st.floats()),
    st.integers(0, 12),
)
def test_every_float_is_written_with_the_digits_of_python(values, digits):
    with np.errstate(over="ignore"):
        table = pd.DataFrame({"as it is": values, "rounded": values.round(digits)})
    assert csv_lines(table) == by_pandas(table)


def test_floats_are_written_alike_on_both_sides_of_every_limit():
    powers = 10.0 ** np.arange(-20, 23)
    values = np.concatenate([sign * powers * factor for sign in (1, -1) for factor in (1, 0.999999, 1.000001, 1.5)])
    table = pd.DataFrame({"a": values, "b": np.arange(len(values)) / 7})
    assert csv_lines(table) == by_pandas(table)


@given(st.lists(st.tuples(st.none() | LETTERS, st.integers(-(2**63), 2**63 - 1), LETTERS), min_size=1, max_size=8))
def test_texts_stand_in_quotation_marks_where_they_need_them(rows):
    table = pd.DataFrame(rows, columns=["a", "b", "c"]).astype({"b": np.int64})
    assert csv_lines(table) == by_pandas(table)
    assert csv_lines(table.astype({"a": object, "c": object})) == by_pandas(table)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([True, False]),
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1.5, 2.5], dtype="float32"),
        pd.Series(["a", 1], dtype=object),
        pd.Series(["a", "b\r"]),
        pd.Series(["a", "\ud800"], dtype=object),
        pd.Series(["a", "b"], dtype="category"),
    ],
)
def test_columns_that_pandas_writes_by_rules_of_its_own_are_left_to_it(column):
    with pytest.raises(NotSimpleError):
        csv_lines(pd.DataFrame({"x": column, "n": [1, 2]}))


def test_an_empty_cell_that_is_alone_in_its_row_is_left_to_pandas():
    with pytest.raises(NotSimpleError):
        csv_lines(pd.DataFrame({"x": ["", "a"]}))


@pytest.mark.parametrize("n_rows", [1, 5])
def test_pieces_follow_each_other_whichever_way_each_is_written(tmp_path, n_rows):
    simple = pd.DataFrame({"t": ["=a", 'b,"c"'] * n_rows, "n": [0.5, 1e-9] * n_rows})
    other = pd.DataFrame({"t": ["x\ry", "=z"] * n_rows, "n": [1.0, np.nan] * n_rows})
    with TableWriter(tmp_path / "t.csv") as writer:
        for piece in (simple, other, simple):
            writer.write(piece)
    content = (tmp_path / "t.csv").read_bytes().decode()
    first, second = '\'=a,0.5\n"b,""c""",1e-09\n' * n_rows, '"x\ry",1.0\n"\'=z",""\n' * n_rows
    assert content == "t,n\n" + first + second + first
    assert writer.n_defused == 3 * n_rows
