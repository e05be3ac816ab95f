"""Files of tables: what is read, guessed, streamed and written."""

import gzip
import io
import os
import stat
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafh.exceptions import InputError
from dafh.tables.files import DataFile
from dafh.tables.labels import labelled_rows, match_labels, read_labels
from dafh.tables.layout import Layout
from dafh.tables.schema import TableSchema, check_columns
from dafh.tables.writing import TableWriter, check_writable, replacing

PEOPLE = "age,job\n30,cook\n41,clerk\n"


def written(tmp_path, content, name="people.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def pipe(monkeypatch):
    """Make standard input a pipe with some content: it cannot be rewound."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as target, os.fdopen(reading, "rb") as source:

        def fill(content):
            target.write(content)
            target.close()
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(source))

        yield fill


# ---- reading ----


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
def test_the_delimiter_is_guessed(tmp_path, delimiter):
    table = DataFile(written(tmp_path, PEOPLE.replace(",", delimiter))).read()
    assert table.to_dict("list") == {"age": [30, 41], "job": ["cook", "clerk"]}


def test_commas_in_quotes_and_lines_within_cells_do_not_mislead(tmp_path):
    table = DataFile(written(tmp_path, 'name;note\n"a, b, c";"x\ny"\n"d, e, f";"z"\n')).read()
    assert table["name"].tolist() == ["a, b, c", "d, e, f"]
    assert table["note"].tolist() == ["x\ny", "z"]


def test_a_file_without_names_gets_some_and_says_so(tmp_path):
    file = DataFile(written(tmp_path, "30, cook\n41, clerk\n"))
    assert file.read().to_dict("list") == {"column_1": [30, 41], "column_2": ["cook", "clerk"]}
    assert "looks like data: columns are called column_1 to column_2" in file.notes[0]


def test_what_the_user_says_of_the_layout_is_not_guessed(tmp_path):
    path = written(tmp_path, "2019,2020\n1,2\n")
    assert list(DataFile(path, header=True).read().columns) == ["2019", "2020"]
    assert len(DataFile(path).read()) == 2
    assert list(DataFile(path, delimiter=";", header=True).read().columns) == ["2019,2020"]


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path):
    assert list(DataFile(written(tmp_path, b"\xef\xbb\xbf" + PEOPLE.encode())).read().columns) == ["age", "job"]


def test_other_encodings_are_read_when_named(tmp_path):
    path = written(tmp_path, "stadt,n\nKöln,1\n".encode("latin-1"))
    assert DataFile(path, encoding="latin-1").read()["stadt"].tolist() == ["Köln"]
    with pytest.raises(InputError, match=r"is not UTF-8 text: name its encoding \(latin-1 reads most others\)"):
        DataFile(path).read()
    with pytest.raises(InputError, match="there is no encoding 'klingon'"):
        DataFile(path, encoding="klingon").read()


@pytest.mark.parametrize("letter", ["\x85", "\u2028", "\x0c", "\x0b", "\x1c"])
def test_only_line_feeds_and_returns_end_a_line(tmp_path, letter):
    content = f"na{letter}me;age\nK{letter}ln;1\nb;2\n"
    encoding = "latin-1" if letter == "\x85" else "utf-8"
    table = DataFile(written(tmp_path, content.encode(encoding)), encoding=encoding).read()
    assert table.to_dict("list") == {f"na{letter}me": [f"K{letter}ln", "b"], "age": [1, 2]}


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_end_as_in_every_system(tmp_path, ending):
    assert len(DataFile(written(tmp_path, PEOPLE.replace("\n", ending))).read()) == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("packed", [False, True])
def test_wide_encodings_are_known_by_their_mark(tmp_path, encoding, packed):
    content = "Stadt;n\nKöln;1\nBonn;2\n".encode(encoding)
    table = DataFile(written(tmp_path, gzip.compress(content) if packed else content)).read()
    assert table["Stadt"].tolist() == ["Köln", "Bonn"]


def test_names_and_cells_may_be_very_long(tmp_path):
    table = DataFile(written(tmp_path, f"{'n' * 200_000},age\n{'x' * 300_000},30\ny,41\n")).read()
    assert [len(name) for name in table.columns] == [200_000, 3]
    assert len(table.iloc[0, 0]) == 300_000


def test_rows_wider_than_the_header_are_refused_and_trailing_delimiters_are_not(tmp_path):
    with pytest.raises(InputError, match="its first line has 2 cells, and another one has 3"):
        DataFile(written(tmp_path, "a,b\n1,2,3\n4,5,6\n")).read()
    assert DataFile(written(tmp_path, "a,b\n1,2,\n4,5,\n")).read()["b"].tolist() == [2, 5]


def test_names_with_line_breaks_and_columns_without_names_are_read(tmp_path):
    table = DataFile(written(tmp_path, '"a\nb",,c\n"1\n2",,3\n')).read(text=None)
    assert table.to_dict("list") == {"a\nb": ["1\n2"], "column_2": [""], "c": ["3"]}


def test_a_question_mark_is_a_gap(tmp_path):
    assert DataFile(written(tmp_path, "a,b\n1, ?\n2,x\n")).read()["b"].isna().tolist() == [True, False]


def test_packed_and_parquet_files_are_told_by_their_content(tmp_path):
    expected = DataFile(written(tmp_path, PEOPLE)).read()
    expected.to_parquet(tmp_path / "other.csv")
    packed = written(tmp_path, gzip.compress(PEOPLE.encode()), "packed.csv")
    for path in (packed, tmp_path / "other.csv"):
        pd.testing.assert_frame_equal(DataFile(path).read(), expected, check_dtype=False)


@pytest.mark.parametrize("kind", ["csv", "gz", "parquet"])
def test_a_pipe_carries_every_kind(tmp_path, pipe, kind):
    expected = DataFile(written(tmp_path, PEOPLE)).read()
    buffer = io.BytesIO()
    expected.to_parquet(buffer)
    content = {"csv": PEOPLE.encode(), "gz": gzip.compress(PEOPLE.encode()), "parquet": buffer.getvalue()}[kind]
    pipe(content)
    file = DataFile("-")
    assert file.name == "standard input"
    pd.testing.assert_frame_equal(file.read(), expected, check_dtype=False)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_chunks_are_the_whole_in_pieces(tmp_path, kind):
    table = pd.DataFrame({"a": range(25), "b": [f"x{i}" for i in range(25)]})
    path = tmp_path / f"t.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
    pieces = list(DataFile(path).chunks(rows=10))
    assert [len(piece) for piece in pieces] == [10, 10, 5]
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), table, check_dtype=False)


def test_columns_read_as_text_keep_their_zeros(tmp_path):
    path = written(tmp_path, "zip,n\n007,1\n123,2\n")
    (chunk,) = DataFile(path).chunks(text=["zip", "not there"])
    assert chunk["zip"].tolist() == ["007", "123"]


BAD_FILES = {
    "is empty": b"",
    "is empty.": b"\n \n",
    "has a header and no rows": b"a,b\n",
    "more than one column called 'a'": b"a,b,a\n1,2,3\n",
    "cannot be read as a table: Expected 2 fields in line 60, saw 3": b"a,b\n" + b"1,2\n" * 58 + b"3,4,5\n",
    "is damaged": b"PAR1 and nothing more",
    "cannot be read: Compressed file ended": gzip.compress(PEOPLE.encode() * 50)[:40],
    "is not UTF-8 text": bytes(range(128, 256)) * 4,
}


@pytest.mark.parametrize(("sentence", "content"), BAD_FILES.items(), ids=list(BAD_FILES))
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, sentence, content):
    with pytest.raises(InputError, match=sentence) as refusal:
        DataFile(written(tmp_path, content)).read()
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        DataFile(tmp_path / "none.csv").read()
    with pytest.raises(InputError, match="is a folder"):
        DataFile(tmp_path).read()


def test_an_empty_parquet_file_is_refused(tmp_path):
    pd.DataFrame({"a": []}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no rows"):
        DataFile(tmp_path / "t.parquet").read()


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.text("ab,;\"' \n|é=", min_size=1, max_size=6)), min_size=2, max_size=8)
)
def test_what_pandas_writes_is_read_back(rows):
    table = pd.DataFrame(rows, columns=["number", "text"])
    layout = Layout.guess(table.to_csv(index=False).splitlines(keepends=True))
    assert layout == Layout(",", True)


# ---- writing ----


def test_formulas_are_harmless_in_csv_and_untouched_in_parquet(tmp_path):
    table = pd.DataFrame({"=name()": ["=cmd()", "@x", "plain", "-5", "+1.5", "-y"], "n": [-1, 2, 3, 4, 5, 6]})
    for name in ("t.csv", "t.parquet"):
        with TableWriter(tmp_path / name) as writer:
            writer.write(table)
            writer.write(table)
    cells = pd.read_csv(tmp_path / "t.csv")
    assert cells.columns[0] == "'=name()"
    assert cells.iloc[:6, 0].tolist() == ["'=cmd()", "'@x", "plain", "-5", "+1.5", "'-y"]
    assert cells["n"].tolist() == [-1, 2, 3, 4, 5, 6] * 2
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), pd.concat([table] * 2, ignore_index=True))


def test_packed_output_and_standard_output(tmp_path, capsys):
    table = pd.DataFrame({"a": [1, 2]})
    for target in (tmp_path / "t.csv.gz", "-"):
        with TableWriter(target) as writer:
            writer.write(table)
    packed = gzip.decompress((tmp_path / "t.csv.gz").read_bytes()).decode()
    assert packed == capsys.readouterr().out == "a\n1\n2\n"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = written(tmp_path, "before")

    def fail():
        with TableWriter(path) as writer:
            writer.write(pd.DataFrame({"a": [1]}))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_result_has_the_rights_of_an_ordinary_file(tmp_path):
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("x")
    (tmp_path / "b.txt").write_text("x")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == stat.S_IMODE((tmp_path / "b.txt").stat().st_mode)


def test_places_that_cannot_be_written_to_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="is a folder"):
        check_writable(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        check_writable(tmp_path / "none" / "x.csv")

    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(InputError, match="cannot be written: permission denied"):
        check_writable(tmp_path / "x.csv")


# ---- columns ----


def everything(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "customer_id": rng.permutation(n) + 1000,
            "row": np.arange(n),
            "name": [f"person {i}" for i in range(n)],
            "same": 1,
            "empty": np.nan,
            "age": rng.integers(20, 60, n),
            "income": rng.normal(size=n),
            "flag": rng.random(n) < 0.5,
            "job": rng.choice(["cook", "clerk"], n),
            "since": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(n)],
            "born": [f"{1 + i % 28}.{1 + i % 12}.1980" for i in range(n)],
            "sex": rng.choice(["f", "m"], n),
            "y": rng.choice(["yes", "no"], n),
        }
    )


def test_columns_are_guessed_and_the_guesses_are_said():
    schema = TableSchema.guess(everything(), "y", sensitive=["sex"])
    assert schema.features == {
        "age": "number", "income": "number", "flag": "flag", "job": "category", "since": "date ISO8601",
        "born": "date %d.%m.%Y",
    }  # fmt: skip
    assert set(schema.left_out) == {"customer_id", "row", "name", "same", "empty"}
    text = " ".join(schema.notes)
    for sentence in (
        "Left out, a different value in every row: customer_id, row, name.",
        "Left out, only one value: same.",
        "Left out, no values: empty.",
        "Dates (year-month-day): since.",
        "Dates (day.month.year): born.",
        "Kept out of training",
    ):
        assert sentence in text


def test_what_the_user_says_of_a_column_is_not_guessed():
    schema = TableSchema.guess(everything(), "y", drop=["age", "job"], categories=["customer_id", "flag"])
    assert schema.features["customer_id"] == schema.features["flag"] == "category"
    assert "age" not in schema.features
    assert not any("age" in note for note in schema.notes)


def test_a_schema_survives_its_way_through_a_file():
    schema = TableSchema.guess(everything(), "y", sensitive=["sex"])
    assert TableSchema.from_dict(schema.to_dict()) == schema


def test_features_come_typed_in_order_and_without_the_rest():
    table = everything()
    schema = TableSchema.guess(table, "y")
    features = schema.features_of(table[table.columns[::-1]])
    assert list(features.columns) == list(schema.features)
    assert features["since"].dt.year.eq(2024).all()
    assert features["born"].dt.day.tolist() == [1 + i % 28 for i in range(60)]


def test_flags_with_gaps_are_still_flags():
    table = everything()
    schema = TableSchema.guess(table, "y")
    gaps = table.assign(flag=table["flag"].astype(object).where(table.index > 0))
    assert np.isnan(schema.features_of(gaps)["flag"].iloc[0])


def test_a_wrong_name_gets_a_suggestion():
    with pytest.raises(InputError, match=r"has no column 'agee', the target; did you mean 'age'\?"):
        check_columns(["age", "job"], ["agee"], "the target")
    with pytest.raises(InputError, match="has no column 'zzz' and 1 more; its columns are age, job"):
        check_columns(["age", "job"], ["zzz", "qqq"])


def test_names_of_any_length_make_short_sentences():
    with pytest.raises(InputError) as refusal:
        check_columns(["a" * 10_000], ["b" * 10_000])
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0, 1, 1], [0, 1, 1]), ([1.0, 2.0, 1.0], [1, 2, 1]), ([True, False, True], [True, False, True]),
     (["a", "b", "a"], ["a", "b", "a"])],
)  # fmt: skip
def test_labels_are_whole_numbers_flags_or_text(values, expected):
    assert read_labels(pd.Series(values, name="y")).tolist() == expected


@pytest.mark.parametrize(
    ("values", "sentence"),
    [([1, 1, 1], "one value only"), (list(range(60)), "60 different values"), ([0.5, 1.0, 0.5], "fractions like 0.5")],
)
def test_targets_that_are_no_labels_are_refused(values, sentence):
    with pytest.raises(InputError, match=sentence):
        read_labels(pd.Series(values, name="y"))


def test_labels_of_another_file_are_matched_whatever_their_type():
    assert match_labels(pd.Series(["1", "0", "1"]), np.array([0, 1])).tolist() == [1, 0, 1]
    assert match_labels(pd.Series([1.0, 0.0]), np.array([0, 1])).tolist() == [1, 0]
    assert match_labels(pd.Series(["True", "False"]), np.array([False, True])).tolist() == [True, False]
    with pytest.raises(InputError, match="holds 'maybe', which the model was not fitted with; it knows 'no' and 'yes'"):
        match_labels(pd.Series(["yes", "maybe"], name="y"), np.array(["no", "yes"], dtype=object))


def test_rows_without_a_target_are_left_out():
    table = pd.DataFrame({"a": [1, 2], "y": [np.nan, 1]})
    assert labelled_rows(table, "y")["a"].tolist() == [2]
    with pytest.raises(InputError, match="has no values"):
        labelled_rows(table.assign(y=np.nan), "y")


def test_a_table_without_anything_to_learn_from_is_refused():
    with pytest.raises(InputError, match="No column is left to learn from"):
        TableSchema.guess(pd.DataFrame({"y": [0, 1] * 20, "same": 1}), "y")


def test_a_column_of_dates_is_read_in_one_way_only():
    day_first = pd.Series(["13/02/2020", "01/02/2020", "31/01/2020", "02/01/2020"] * 10, name="d")
    table = pd.DataFrame({"d": day_first, "y": [0, 1] * 20})
    schema = TableSchema.guess(table, "y")
    assert schema.features == {"d": "date %d/%m/%Y"}
    assert schema.features_of(table)["d"].dt.month.tolist()[:4] == [2, 2, 1, 1]
    both = table.assign(d=["13/02/2020", "02/13/2020"] * 20)
    assert TableSchema.guess(both, "y").features == {"d": "category"}


@pytest.mark.parametrize("spelling", [("true", "false"), ("True", "False"), ("TRUE", "FALSE")])
def test_flags_are_flags_in_every_spelling_and_with_gaps(tmp_path, spelling):
    rows = "".join(f"{flag},{i % 2}\n" for i, flag in enumerate([*spelling, ""] * 10))
    file = DataFile(written(tmp_path, f"c,y\n{rows}"))
    schema = TableSchema.guess(file.read(text=None), "y")
    assert schema.features == {"c": "flag"}
    for table in (file.read(text=None), file.read(text=schema.text_columns), file.read()):
        assert schema.features_of(table)["c"].head(3).tolist()[:2] == [1.0, 0.0]


def test_codes_named_as_categories_keep_their_zeros_in_fit_and_after(tmp_path):
    file = DataFile(written(tmp_path, "zip,y\n" + "01234,0\n1234,1\n" * 20))
    schema = TableSchema.guess(file.read(text=None), "y", categories=["zip"])
    for text in (None, schema.text_columns):
        assert schema.features_of(file.read(text=text))["zip"].tolist()[:2] == ["01234", "1234"]


def test_large_labels_stay_apart_and_infinite_ones_are_no_numbers():
    assert len(set(read_labels(pd.Series(["9007199254740992", "9007199254740993"] * 5, name="y")))) == 2
    assert len(set(read_labels(pd.Series([9007199254740992, 9007199254740993] * 5, name="y")))) == 2
    with pytest.raises(InputError, match="fractions like"):
        read_labels(pd.Series([1.0, np.inf] * 5, name="y"))


def test_numbers_of_any_size_are_read():
    table = pd.DataFrame({"n": ["9" * 401, "1", "2"] * 10, "m": ["9" * 25, "1e300", "3"] * 10, "y": ["a", "b"] * 15})
    schema = TableSchema.guess(table, "y")
    assert schema.features == {"n": "number", "m": "number"}
    assert schema.features_of(table)["n"].tolist()[1:3] == [1, 2]


def test_nested_columns_of_parquet_are_left_out_and_that_is_said(tmp_path):
    pd.DataFrame({"a": [1, 2], "many": [[1], [2, 3]], "bytes": [b"x", b"y"]}).to_parquet(tmp_path / "t.parquet")
    file = DataFile(tmp_path / "t.parquet")
    assert list(file.read().columns) == ["a"]
    assert file.notes == ["Left out, cells hold lists, records or bytes: many, bytes."]


def test_a_header_without_rows_is_told_as_such_in_pieces_too(tmp_path):
    with pytest.raises(InputError, match="a header and no rows"):
        list(DataFile(written(tmp_path, "a,b\n")).chunks(rows=10))


def test_dates_beyond_the_reach_of_nanoseconds_are_encoded():
    from dafh.tables.encoder import TableEncoder

    far = pd.DataFrame({"d": np.array(["9999-12-31", "2020-01-01", "NaT"], "datetime64[s]")})
    assert np.isfinite(TableEncoder().fit(far).transform(far).to_numpy()).all()


def test_numbers_too_large_to_square_count_as_missing():
    from dafh.tables.encoder import TableEncoder

    table = pd.DataFrame({"n": [1.0, 2.0, 1e300]})
    assert np.isfinite(TableEncoder().fit(table).transform(table).to_numpy()).all()


def guessed(**columns):
    table = pd.DataFrame(columns).assign(y=lambda t: np.arange(len(t)) % 2)
    return TableSchema.guess(table, "y", categories=[name for name in columns if name == "code"]), table


def test_dates_written_in_another_way_are_refused_and_placeholders_are_gaps():
    schema, _ = guessed(d=["12/31/2020", "01/02/2020"] * 20)
    assert schema.features == {"d": "date %m/%d/%Y"}
    for strange in ("31/12/2020", "garbage", "2020-12-31"):
        with pytest.raises(InputError, match="held dates like month/day/year in fit and holds"):
            schema.features_of(pd.DataFrame({"d": [strange]}))
    assert schema.features_of(pd.DataFrame({"d": ["00/00/0000", ""]}))["d"].isna().all()


def test_codes_match_whether_a_gap_made_fractions_of_them_or_not():
    schema, _ = guessed(code=["1", "2", "03"] * 20)
    for values in (["1", "2"], ["1.0", "2.0"], [1, 2], [1.0, 2.0]):
        assert schema.features_of(pd.DataFrame({"code": values}))["code"].tolist() == ["1", "2"]
    assert schema.features_of(pd.DataFrame({"code": ["03"]}))["code"].tolist() == ["03"]


def test_time_zones_mean_the_same_in_every_file(tmp_path):
    zoned = pd.DataFrame({"t": pd.date_range("2020-06-01", periods=40, freq="h", tz="Europe/Berlin"), "y": [0, 1] * 20})
    zoned.to_csv(tmp_path / "t.csv", index=False)
    zoned.to_parquet(tmp_path / "t.parquet")
    csv, parquet = (DataFile(tmp_path / f"t.{kind}").read(text=None) for kind in ("csv", "parquet"))
    schema = TableSchema.guess(csv, "y")
    assert (schema.features_of(csv)["t"].to_numpy() == schema.features_of(parquet)["t"].to_numpy()).all()


def test_whole_numbers_and_flags_with_gaps_survive_parquet(tmp_path):
    import pyarrow
    import pyarrow.parquet

    content = {"id": [9007199254740993, None, 5], "flag": [True, None, False]}
    pyarrow.parquet.write_table(pyarrow.table(content), tmp_path / "t.parquet")
    table = DataFile(tmp_path / "t.parquet").read()
    with TableWriter(tmp_path / "t.csv") as writer:
        writer.write(table)
    assert (tmp_path / "t.csv").read_text().splitlines()[1:] == ["9007199254740993,True", ",", "5,False"]
    many = pd.concat([table] * 20, ignore_index=True)
    schema = TableSchema.guess(many.assign(y=[0, 1] * 30), "y")
    assert schema.features["flag"] == "flag"
    assert schema.features_of(many)["flag"].isna().sum() == 20


@pytest.mark.parametrize("name", ["customer_id", "customerId", "Customer ID", "ID.", "row-nr"])
def test_identifiers_are_known_by_many_names(name):
    numbers = np.random.default_rng(0).permutation(60)
    schema, _ = guessed(**{name: numbers, "age": [1, 2] * 30})
    assert name in schema.left_out
    assert guessed(**{"valid": numbers, "age": [1, 2] * 30})[0].features["valid"] == "number"


def test_labels_that_differ_stay_apart_and_flags_match_in_every_spelling():
    assert read_labels(pd.Series(["01", "1", "2"], name="y")).tolist() == ["01", "1", "2"]
    assert match_labels(pd.Series(["01", "1"]), np.array(["01", "1", "2"], dtype=object)).tolist() == ["01", "1"]
    assert match_labels(pd.Series(["true", "FALSE"]), np.array([False, True])).tolist() == [True, False]
