"""Numbers, dates, flags and gaps: the same value in every file, and in training as later."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.columns.encoder import TableEncoder
from dafh.columns.hashes import fingerprint, hash_total, labelled_hashes
from dafh.columns.kinds import as_kind, category_name, guess_kind, is_number, read_as, to_floats, typed_kind
from dafh.columns.read import DataFile
from dafh.columns.schema import TableSchema
from dafh.columns.unexpected import UnexpectedValues
from dafh.exceptions import InputError

DAY = dt.date(2020, 6, 1)


def texts(*values):
    return pd.Series(values, name="c", dtype=object)


# ---- numbers ----


@pytest.mark.parametrize("cell", ["12", " 12 ", "-1.5", "+.5", "5.", "1e5", "1E-3", "inf", "-Infinity"])
def test_what_is_a_number_is_read_as_one(cell):
    assert is_number(cell)
    assert as_kind(texts(cell), "number").iloc[0] == float(cell)


@pytest.mark.parametrize("cell", ["1_000", "0x10", "１２", "١٢", "12 b", "1,5", "--1", "e5", "1e", "12-05", "true"])
def test_what_only_resembles_a_number_is_text(cell):
    assert not is_number(cell)
    assert guess_kind(texts(cell, cell + "x")) == "category"
    with pytest.raises(InputError, match="held numbers in fit and holds"):
        as_kind(texts(cell), "number")


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([".", ","]))
def test_every_float_survives_as_text_with_either_mark(value, mark):
    column = texts(repr(value).replace(".", mark))
    assert guess_kind(column, mark) == "number"
    assert as_kind(column, "number", mark).iloc[0] == value


@given(st.integers(0, 10**12), st.sampled_from([(".", ","), (",", ".")]))
def test_thousands_may_be_parted_by_the_other_mark(value, marks):
    mark, other = marks
    column = texts(f"{value:,}".replace(",", other) + f"{mark}25")
    assert as_kind(column, "number", mark).iloc[0] == value + 0.25


def test_infinite_and_huge_numbers_count_as_missing():
    assert np.isnan(to_floats(pd.Series([np.inf, -np.inf, 1e300, np.nan]))).all()
    assert to_floats(pd.Series([1, None], dtype="Int64")).tolist()[0] == 1


def test_types_say_what_a_column_holds():
    expected = {
        "number": [
            pd.Series([1, 2.5, None], dtype=object),
            pd.Series([decimal.Decimal("1.5")]),
            pd.Series([1], dtype="Int8"),
        ],
        "flag": [pd.Series([True, None], dtype=object), pd.Series([True, None], dtype="boolean")],
        "date ISO8601": [pd.Series([DAY, None], dtype=object), pd.Series([pd.Timestamp(DAY, tz="UTC")])],
        "category": [pd.Series(pd.Categorical([1, 2]))],
        None: [pd.Series(["1"]), pd.Series([1, "a"], dtype=object), pd.Series([None], dtype=object)],
    }
    assert [typed_kind(column) for columns in expected.values() for column in columns] == [
        kind for kind, columns in expected.items() for _ in columns
    ]


@given(st.integers(-(10**15), 10**15))
def test_a_code_has_one_name_whatever_its_type(code):
    assert {category_name(value) for value in (code, float(code), str(code), f"{code}.0", np.int64(code))} == {
        str(code)
    }


# ---- a few words among numbers ----


@pytest.mark.parametrize(
    "words",
    [["V27"], ["12 b"], ["a", "b", "c", "d", "e", "f"], ["unknown"] * 10],
    ids=["code", "unit", "many words", "often"],
)
def test_columns_with_more_than_a_few_words_stay_categories(words):
    assert guess_kind(texts(*map(str, range(150)), *words)) == "category"


def test_words_among_dates_are_gaps_and_dates_in_two_orders_are_text():
    days = [f"{1 + i % 12:02d}/{13 + i % 15}/2020" for i in range(60)]
    assert guess_kind(texts(*days, "unknown", "00/00/0000")) == "date %m/%d/%Y"
    assert guess_kind(texts(*days, "31/12/2020")) == "category"


def test_a_later_word_is_counted_and_a_column_of_words_is_refused():
    schema = TableSchema("y", {"age": "number"})
    unexpected = UnexpectedValues()
    values = schema.features_of(pd.DataFrame({"age": ["30", "old", "?", "41"]}), unexpected)
    assert values["age"].isna().tolist() == [False, True, True, False]
    assert unexpected.notes(4) == [
        "Column 'age': 1 of 3 values could not be read, such as 'old'; they count as missing."
    ]
    with pytest.raises(InputError, match="'age' held numbers in fit and holds 'old' now"):
        schema.features_of(pd.DataFrame({"age": ["30", "old", "older"]}))


def test_a_small_last_piece_is_not_judged_by_itself():
    schema, unexpected = TableSchema("y", {"age": "number"}), UnexpectedValues()
    schema.features_of(pd.DataFrame({"age": ["30"] * 50}), unexpected)
    assert schema.features_of(pd.DataFrame({"age": ["old"]}), unexpected)["age"].isna().all()


def test_words_that_were_gaps_in_training_are_gaps_however_many():
    schema = TableSchema("y", {"age": "number"}, gap_words={"age": ["unknown"]})
    unexpected = UnexpectedValues()
    assert schema.features_of(pd.DataFrame({"age": ["unknown", "unknown"]}), unexpected)["age"].isna().all()
    assert unexpected.notes(4) == []


def test_dates_where_numbers_were_are_refused():
    with pytest.raises(InputError, match="held numbers in fit and holds '2020-06-01"):
        as_kind(pd.Series(pd.to_datetime([DAY]), name="c"), "number")


# ---- dates alike in every file ----


def same_days(n=60):
    days = [DAY + dt.timedelta(days=3 * i) for i in range(n)]
    stamps = pd.Series(pd.to_datetime(days))
    return {
        "text": texts(*map(str, days)),
        "objects": pd.Series(days, dtype=object),
        "date32": pyarrow.array(days, pyarrow.date32()),
        "ns": stamps.astype("datetime64[ns]"),
        "us": stamps.astype("datetime64[us]"),
        "ms": pyarrow.array(days, pyarrow.date32()).cast(pyarrow.timestamp("ms")),
        "utc": stamps.dt.tz_localize("UTC"),
        "tokyo": stamps.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        "zoned text": texts(*(f"{day} 09:00:00+09:00" for day in days)),
    }


@pytest.mark.parametrize("name", same_days())
def test_a_date_is_the_same_date_in_every_type_and_file(tmp_path, name):
    results = []
    for column in (same_days()["text"], same_days()[name]):
        rows = pyarrow.table({"d": column, "y": ["a", "b"] * 30})
        pyarrow.parquet.write_table(rows, tmp_path / "t.parquet")
        table = DataFile(tmp_path / "t.parquet").read(text=None)
        schema = TableSchema.guess(table, "y", categories=[])
        features = schema.features_of(table)
        encoded = TableEncoder(schema.features).fit_transform(features)
        attributes = schema.attributes_of(table, ["d"])
        results.append(
            (schema.features, fingerprint(hash_total(labelled_hashes(features, table["y"]))), encoded, attributes)
        )
    (kinds, mark, encoded, attributes), other = results
    assert (kinds, mark) == other[:2]
    np.testing.assert_array_equal(encoded, other[2])
    pd.testing.assert_frame_equal(attributes, other[3])


def test_what_is_read_again_stays_as_it_is():
    for kind, column in {
        "number": texts("1", "?"),
        "date %d.%m.%Y": texts("1.2.2020", ""),
        "category": texts("a"),
    }.items():
        once = read_as(column, kind).values
        pd.testing.assert_series_equal(read_as(once, kind).values, once)
