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

from dafh.exceptions import InputError
from dafh.tables.encoder import TableEncoder
from dafh.tables.files import DataFile
from dafh.tables.layout import Layout
from dafh.tables.schema import TableSchema
from dafh.tables.unread import UnreadValues
from dafh.tables.values import as_kind, category_name, guess_kind, is_number, read_as, to_floats, typed_kind
from dafh.tables.writing import TableWriter
from dafh.text import write_apart, write_number
from dafh.workflows.fingerprints import fingerprint, hash_sums, labelled_hashes
from dafh.workflows.training import TrainingTable

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


def test_booleans_with_gaps_are_flags_in_python_too():
    frame = pd.DataFrame({"b": pd.Series([True, None, False, True], dtype=object)})
    assert TableEncoder().fit(frame).get_feature_names_out().tolist() == ["b", "b is missing"]
    assert as_kind(texts("1", "0", "TRUE", "?"), "flag").tolist()[:3] == [1, 0, 1]


def test_lists_in_cells_are_refused_in_one_sentence():
    with pytest.raises(InputError, match="'c' holds lists or records"):
        TableEncoder().fit(pd.DataFrame({"c": [[1], [2, 3]]}))


@given(st.integers(-(10**15), 10**15))
def test_a_code_has_one_name_whatever_its_type(code):
    assert {category_name(value) for value in (code, float(code), str(code), f"{code}.0", np.int64(code))} == {
        str(code)
    }


# ---- decimal commas ----

GERMAN = "Fläche;Preis;Ort\n34,66;7,181;Köln\n1.234,5;8,25;Bonn\n"


def test_decimal_commas_are_guessed_read_and_reported(tmp_path):
    (tmp_path / "t.csv").write_text(GERMAN)
    file = DataFile(tmp_path / "t.csv")
    table = file.read(text=None)
    assert file.layout == Layout(";", True, ",")
    assert "decimal comma: 7,5 is read as 7.5" in file.notes[0]
    assert as_kind(table["Fläche"], "number", ",").tolist() == [34.66, 1234.5]
    assert as_kind(table["Preis"], "number", ",").tolist() == [7.181, 8.25]


def test_the_user_decides_about_the_decimal_mark(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n7,181;x\n8,250;y\n")
    guessed, told = DataFile(tmp_path / "t.csv"), DataFile(tmp_path / "t.csv", decimal=".")
    assert guessed.read()["a"].tolist() == [7.181, 8.25]
    assert as_kind(told.read(text=None)["a"], "number").tolist() == [7181, 8250]
    assert not told.notes


@pytest.mark.parametrize(
    ("lines", "mark"),
    [
        (["a;b", "7,181;x"], ","),  # Programs write semicolons where the comma is the decimal mark.
        (["a\tb", "7,181\tx"], "."),
        (["a\tb", "7,18\tx"], ","),
        (["a|b", "0,125|x"], ","),
        (["a;b", "7,18;2.5"], "."),
        (["a;b", "1,234.5;x"], "."),
        (["a;b", "1,234,567;x"], "."),
        (["a;b", "1.234,5;x"], ","),
        (["a;b", "13.02.2020;7,5"], ","),
        (["a;b", "1,2,3;x"], "."),
        (["a,b", '"7,18",x'], "."),
        (["a;b", *["1;x"] * 300, "7,5;x"], ","),
    ],
)
def test_the_decimal_mark_is_the_one_that_the_numbers_need(lines, mark):
    assert Layout.guess(lines).decimal == mark


def test_a_first_line_of_numbers_with_commas_is_no_header():
    assert not Layout.guess(["3,5;1", "4,5;2"]).has_header


# ---- a few words among numbers ----


def stray(position, n=40):
    ages = [str(20 + i % 30) for i in range(n)]
    ages[position] = "unknown"
    return pd.DataFrame({"age": ages, "y": ["yes", "no"] * (n // 2)})


@pytest.mark.parametrize("position", range(40))
def test_one_word_among_numbers_is_a_gap_wherever_it_stands(tmp_path, position):
    stray(position).to_csv(tmp_path / "t.csv", index=False)
    table = TrainingTable.read(DataFile(tmp_path / "t.csv"), "y", test_size=0.3)
    assert table.schema.features == {"age": "number"}
    assert "Counted as missing in age: 'unknown'." in table.notes
    assert table.features["age"].isna().sum() + table.test_rows["age"].isna().sum() == 1


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
    unread = UnreadValues()
    values = schema.features_of(pd.DataFrame({"age": ["30", "old", "?", "41"]}), unread)
    assert values["age"].isna().tolist() == [False, True, True, False]
    assert unread.notes() == ["Column 'age': 1 of 3 values could not be read, such as 'old'; they count as missing."]
    with pytest.raises(InputError, match="'age' held numbers in fit and holds 'old' now"):
        schema.features_of(pd.DataFrame({"age": ["30", "old", "older"]}))


def test_a_small_last_piece_is_not_judged_by_itself():
    schema, unread = TableSchema("y", {"age": "number"}), UnreadValues()
    schema.features_of(pd.DataFrame({"age": ["30"] * 50}), unread)
    assert schema.features_of(pd.DataFrame({"age": ["old"]}), unread)["age"].isna().all()


def test_words_that_were_gaps_in_training_are_gaps_however_many():
    schema = TableSchema("y", {"age": "number"}, gap_words={"age": ["unknown"]})
    unread = UnreadValues()
    assert schema.features_of(pd.DataFrame({"age": ["unknown", "unknown"]}), unread)["age"].isna().all()
    assert unread.notes() == []


def test_one_date_in_another_order_is_refused_because_others_would_be_misread():
    schema = TableSchema("y", {"d": "date %m/%d/%Y"})
    rows = pd.DataFrame({"d": ["01/02/2020"] * 99 + ["31/12/2020"]})
    with pytest.raises(InputError, match="held dates like month/day/year in fit and holds '31/12/2020' now"):
        schema.features_of(rows)


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
            (schema.features, fingerprint(hash_sums(labelled_hashes(features, table["y"]))), encoded, attributes)
        )
    (kinds, mark, encoded, attributes), other = results
    assert (kinds, mark) == other[:2]
    np.testing.assert_array_equal(encoded, other[2])
    pd.testing.assert_frame_equal(attributes, other[3])


def test_csv_and_parquet_of_one_table_have_one_fingerprint(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "x": rng.normal(size=80),
            "n": pd.array([None, *range(79)], dtype="Int64"),
            "flag": rng.random(80) < 0.5,
            "when": pd.date_range("2020-06-01", periods=80, freq="h", tz="Europe/Berlin"),
            "y": rng.integers(0, 2, 80),
        }
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    read = [TrainingTable.read(DataFile(tmp_path / f"t.{kind}"), "y") for kind in ("csv", "parquet")]
    assert read[0].schema.features == read[1].schema.features
    assert read[0].fingerprints == read[1].fingerprints


# ---- whole numbers in Parquet ----


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_stay_whole_in_the_held_out_rows(tmp_path, kind):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": np.arange(100) + 2**60,
            "age": rng.integers(20, 60, 100),
            "children": pd.array([None, *rng.integers(0, 3, 99)], dtype="Int64"),
            "zip": [f"0{i}" for i in range(100)],
            "height": rng.normal(170, 9, 100).round(1),
            "y": rng.integers(0, 2, 100),
        }
    )
    path = tmp_path / f"t.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
    held_out = TrainingTable.read(DataFile(path), "y", test_size=0.5, categories=["zip"]).test_rows
    with TableWriter(tmp_path / "held.parquet") as writer:
        writer.write(held_out)
    schema = pyarrow.parquet.read_schema(tmp_path / "held.parquet")
    types = {name: str(schema.field(name).type) for name in schema.names}
    assert [types[name] for name in ("id", "age", "children", "y")] == ["int64"] * 4
    assert types["height"] == "double"
    assert "string" in types["zip"]
    assert set(held_out["id"]) <= set(table["id"])


def test_a_column_without_values_in_its_first_piece_takes_text_later(tmp_path):
    with TableWriter(tmp_path / "t.parquet") as writer:
        writer.write(pd.DataFrame({"a": pd.Series([None, None], dtype=object), "c": pd.Categorical(["x", "y"])}))
        writer.write(pd.DataFrame({"a": ["later", None], "c": pd.Categorical(["z", "x"])}))
    table = pd.read_parquet(tmp_path / "t.parquet")
    assert table["a"].tolist()[2] == "later"
    assert table["c"].tolist() == ["x", "y", "z", "x"]


# ---- writing numbers for people ----


@given(st.lists(st.floats(-1e14, 1e14, allow_subnormal=False), min_size=2, max_size=8, unique=True))
def test_different_numbers_are_written_differently(values):
    distinct = sorted({float(f"{value:.14g}") for value in values})
    assert len(set(write_apart(distinct))) == len(distinct)


def test_numbers_are_written_with_the_digits_that_stand_before_the_point():
    assert [write_number(value) for value in (1234567.8, 0.00012345, 5.0, -1500)] == [
        "1,234,568", "0.000123", "5", "-1,500",
    ]  # fmt: skip


def test_dates_on_one_day_are_told_apart_by_their_time():
    assert write_apart([18262.25, 18262.5], is_date=True) == ["2020-01-01 06:00:00", "2020-01-01 12:00:00"]
    assert write_apart([18262.25, 18263.5], is_date=True) == ["2020-01-01", "2020-01-02"]


def test_what_is_read_again_stays_as_it_is():
    for kind, column in {
        "number": texts("1", "?"),
        "date %d.%m.%Y": texts("1.2.2020", ""),
        "category": texts("a"),
    }.items():
        once = read_as(column, kind).values
        pd.testing.assert_series_equal(read_as(once, kind).values, once)
