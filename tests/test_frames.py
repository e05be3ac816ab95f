"""Data frames of any library, and tables of sensitive attributes."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from dafh import AuditResult, DAFHClassifier, explain
from dafh.exceptions import InputError
from dafh.frames import MISSING, check_attributes, check_sensitive_features, is_frame, take_rows, to_pandas

DATA = {"age": [30, 40, 50], "city": ["Oslo", "Rome", "Nairobi"]}


@pytest.mark.parametrize(
    ("table", "expected"),
    [(pd.DataFrame(DATA), True), (pl.DataFrame(DATA), True), (np.eye(2), False), ([[1]], False), (DATA, False)],
)
def test_frames_are_told_from_arrays_and_lists(table, expected):
    assert is_frame(table) is expected


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_rows_are_taken_by_position_and_keep_their_columns(library):
    taken = take_rows(library(DATA), np.array([2, 0, 2]))
    assert list(taken.columns) == ["age", "city"]
    assert list(taken["city"]) == ["Nairobi", "Oslo", "Nairobi"]


def test_rows_of_a_frame_are_taken_by_position_whatever_its_index():
    frame = pd.DataFrame(DATA, index=[2, 1, 0])
    assert take_rows(frame, np.array([0]))["age"].tolist() == [30]
    assert take_rows(np.arange(6).reshape(3, 2), np.array([1])).tolist() == [[2, 3]]
    assert take_rows(frame, np.array([], int)).shape == (0, 2)


@pytest.mark.parametrize("table", [pd.DataFrame(DATA), pl.DataFrame(DATA), pa.table(DATA), DATA])
def test_tables_of_any_library_become_the_same_pandas_frame(table):
    frame = to_pandas(table)
    assert isinstance(frame, pd.DataFrame)
    assert {name: frame[name].tolist() for name in frame} == DATA


@pytest.mark.parametrize(
    ("series", "name"),
    [
        (pd.Series([1, 2], name="age"), "age"),
        (pl.Series("age", [1, 2]), "age"),
        (pd.Series([1, 2]), "attribute"),
        (pl.Series([1, 2]), "attribute"),
    ],
)
def test_a_series_is_a_frame_of_one_column(series, name):
    frame = to_pandas(series)
    assert frame.columns.tolist() == [name]
    assert frame[name].tolist() == [1, 2]


# ---- sensitive attributes ----


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT])
def test_a_missing_value_is_a_value_too(gap):
    table = check_sensitive_features(pd.DataFrame({"sex": pd.Series(["f", gap, "m"], dtype=object)}), 3)
    assert table["sex"].tolist() == ["f", MISSING, "m"]


def test_gaps_in_numbers_dates_and_categories_are_values_too():
    table = pd.DataFrame(
        {
            "age": [30.0, np.nan],
            "born": [datetime.datetime(1990, 1, 1), pd.NaT],
            "kind": pd.Categorical(["a", None]),
            "paid": pd.array([True, None], dtype="boolean"),
        }
    )
    checked = check_sensitive_features(table, 2)
    assert checked.iloc[1].tolist() == [MISSING] * 4
    assert checked["age"].iloc[0] == 30.0
    assert checked["kind"].iloc[0] == "a"
    assert checked["paid"].iloc[0] is True


def test_the_table_given_is_not_changed():
    given = pd.DataFrame({"sex": ["f", None]}, index=[5, 6])
    before = given.copy()
    check_sensitive_features(given, 2)
    pd.testing.assert_frame_equal(given, before)


@pytest.mark.parametrize(
    ("table", "n_rows", "message"),
    [
        (pd.DataFrame(DATA), 4, "3 rows"),
        (np.array(["f", "m"]), 1, "2 rows"),
        (pd.DataFrame(index=range(3)), 3, "no columns"),
    ],
)
def test_tables_that_do_not_fit_the_data_are_refused(table, n_rows, message):
    for check in (check_attributes, check_sensitive_features):
        with pytest.raises(InputError, match=message):
            check(table, n_rows)


@pytest.mark.parametrize("of", [pl.Series, lambda name, values: pa.chunked_array([values[:2], values[2:]])])
def test_texts_of_any_library_come_as_they_are(of):
    values = ["b", None, "😀", "b", "", None]
    column = of("t", values)
    frame = pl.DataFrame({"t": column}) if isinstance(column, pl.Series) else pa.table({"t": column})
    found = to_pandas(frame)["t"]
    assert found.isna().tolist() == [value is None for value in values]
    assert found.dropna().tolist() == ["b", "😀", "b", ""]


@pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")
def test_a_sparse_matrix_gives_the_model_of_its_dense_form():
    matrix = scipy.sparse.random(200, 4, density=0.4, random_state=0, format="csr")
    values = matrix.toarray()
    y = (values[:, 0] > 0.3).astype(int)
    model, same = (DAFHClassifier(2, random_state=0).fit(X, y) for X in (matrix, values))
    np.testing.assert_array_equal(model.predict_proba(matrix), same.predict_proba(values))
    assert AuditResult.of(model, matrix, y).to_dict() == AuditResult.of(same, values, y).to_dict()
    assert str(explain(model, matrix)) == str(explain(same, values))
