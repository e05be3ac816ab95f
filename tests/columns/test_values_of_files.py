"""Numbers and gaps as files write them: decimal commas, words among numbers, whole numbers."""

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from dafh.cli.training import TrainingTable
from dafh.columns.read import DataFile, Layout
from dafh.columns.write import TableWriter

GERMAN = "Fläche;Preis;Ort\n34,66;7,181;Köln\n1.234,5;8,25;Bonn\n"


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
    assert Layout.detect(lines).decimal == mark


def test_a_first_line_of_numbers_with_commas_is_no_header():
    assert not Layout.detect(["3,5;1", "4,5;2"]).has_header


def stray(position, n=40):
    ages = [str(20 + i % 30) for i in range(n)]
    ages[position] = "unknown"
    return pd.DataFrame({"age": ages, "y": ["yes", "no"] * (n // 2)})


@pytest.mark.parametrize("position", [0, 17, 39])
def test_one_word_among_numbers_is_a_gap_wherever_it_stands(tmp_path, position):
    stray(position).to_csv(tmp_path / "t.csv", index=False)
    table = TrainingTable.read(DataFile(tmp_path / "t.csv"), "y", test_size=0.3)
    assert table.schema.features == {"age": "number"}
    assert "Counted as missing in age: 'unknown'." in table.notes
    assert table.features["age"].isna().sum() + table.test_rows["age"].isna().sum() == 1


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
    assert read[0].hash_total == read[1].hash_total


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
