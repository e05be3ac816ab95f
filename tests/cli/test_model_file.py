"""A model file and a table: names, fingerprints, scores, rows with their target, and scorers for Dask and Spark."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import people
from dafh import AuditResult, DecoupledClassifier, load, save, tabular_pipeline
from dafh.cli.model_file import (
    SAME_ROWS,
    ModelFile,
)
from dafh.columns.hashes import fingerprint, hash_total, labelled_hashes
from dafh.columns.read import DataFile
from dafh.columns.schema import TableSchema, split_names
from dafh.exceptions import InputError
from models import workers
from tables import saved
from test_architecture import modules_after


@pytest.fixture(scope="module")
def model(folder):
    return ModelFile.open(folder / "model.dafh")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    path = tmp_path_factory.mktemp("fresh") / "fresh.csv"
    people(300, seed=5).to_csv(path, index=False)
    return path


def scored(model, path, **options):
    return pd.concat(model.score(DataFile(path), **options), ignore_index=True)


# ---- names ----


@given(st.lists(st.text("ab, ", min_size=1, max_size=5), max_size=6, unique=True))
def test_every_column_can_be_named_by_its_own_name(columns):
    columns = [name for name in columns if name.strip() and name.strip() == name]
    assert split_names(columns, columns) == columns


def test_names_may_be_joined_repeated_and_surrounded_by_blanks():
    assert split_names(["a, b", "b", " c ,,a"], ["a", "b", "c"]) == ["a", "b", "c"]
    assert split_names([], ["a"]) == []
    assert split_names(["a,b"], ["a,b", "a", "b"]) == ["a,b"]


# ---- fingerprints ----


def rows(n=12):
    return pd.DataFrame(
        {
            "n": np.linspace(0, 1, n),
            "d": pd.date_range("2020-01-01", periods=n).astype("datetime64[us]"),
            "c": pd.Series(["a", "b", None] * (n // 3), dtype=object),
        }
    )


def mark(features, y):
    return fingerprint(hash_total(labelled_hashes(features, y)))


@given(st.permutations(range(12)))
def test_the_order_and_the_index_of_rows_do_not_matter(order):
    y = np.arange(12) % 2
    shuffled = rows().iloc[order]
    for table in (shuffled, shuffled.reset_index(drop=True)):
        assert mark(table, y[list(order)]) == mark(rows(), y)


@given(st.integers(0, 11), st.sampled_from(["n", "d", "c", "label"]))
def test_any_value_that_changes_changes_the_fingerprint(row, name):
    table, y = rows(), np.array(["no", "yes"] * 6, dtype=object)
    before = mark(table, y)
    if name == "label":
        y[row] = {"no": "yes", "yes": "no"}[y[row]]
    else:
        changed = {"n": -1.0, "d": pd.Timestamp("2021-01-01"), "c": "other"}[name]
        table.loc[row, name] = changed
    assert mark(table, y) != before


def test_rows_that_are_added_left_out_or_repeated_change_the_fingerprint():
    table, y = rows(), np.arange(12) % 2
    others = [mark(table.iloc[places], y[places]) for places in (range(11), [*range(12), 0], [0, *range(11)])]
    assert len({mark(table, y), *others}) == 4


def test_labels_of_every_type_have_the_fingerprint_of_their_text():
    table = rows(3)
    assert mark(table, np.array([0, 1, 0])) == mark(table, np.array(["0", "1", "0"], dtype=object))
    assert mark(table, np.array([True, False, True])) == mark(table, np.array(["True", "False", "True"], dtype=object))


def test_a_column_called_label_is_a_feature_like_others():
    table = rows(3).assign(label=["x", "y", "z"])
    assert mark(table, [0, 1, 0]) != mark(table.assign(label=["x", "y", "y"]), [0, 1, 0])


# ---- scores ----


@pytest.mark.parametrize("size", [60, 299, 300, 10_000])
def test_pieces_of_every_size_give_the_same_scores(model, folder, size):
    expected = scored(model, folder / "people.csv", keep=["person_id"])
    pd.testing.assert_frame_equal(scored(model, folder / "people.csv", keep=["person_id"], rows=size), expected)


def test_scores_are_the_same_from_every_format_and_layout(model, folder, tmp_path):
    expected = scored(model, folder / "people.csv")
    table = people()
    table.to_csv(tmp_path / "other.csv", sep=";", index=False, encoding="utf-16")
    paths = [saved(tmp_path / name, table) for name in ("t.csv", "t.csv.gz", "t.parquet")]
    for path in (*paths, tmp_path / "other.csv"):
        pd.testing.assert_frame_equal(scored(model, path), expected)


def test_carrying_columns_over_changes_no_score(model, folder):
    expected = scored(model, folder / "people.csv")
    for keep in (["age"], ["all"], ["age,job", "age"]):
        table = scored(model, folder / "people.csv", keep=keep)
        pd.testing.assert_frame_equal(table[expected.columns], expected)
        assert table.columns.is_unique


def test_scores_are_those_of_the_model_row_by_row(model, folder):
    table = scored(model, folder / "people.csv")
    features = model.schema.features_of(people())
    assert table["row"].tolist() == list(range(1, 301))
    assert table["prediction"].tolist() == model.model.predict(features).tolist()
    np.testing.assert_allclose(table["probability_yes"], model.model.predict_proba(features)[:, 1], atol=1e-6)
    assert ((table["probability_yes"] > 0.5) == (table["prediction"] == "yes")).mean() > 0.99
    encoded = model.model[:-1].transform(features)
    assert table["group"].tolist() == model.model[-1].predict_group(encoded).tolist()


def test_values_that_cannot_be_read_are_counted_over_all_pieces(model, tmp_path):
    table = people().astype({"age": object})
    table.loc[[5, 100, 200], "age"] = "unknown"
    file = DataFile(saved(tmp_path / "t.csv", table))
    list(model.score(file, rows=50))
    assert "Column 'age': 3 of 300 values could not be read, such as 'unknown'; they count as missing." in file.notes


@pytest.mark.parametrize("keep", [["wage"], ["age", "wage"]])
def test_columns_to_carry_over_must_be_there(model, folder, keep):
    with pytest.raises(InputError, match="no column 'wage', to carry over; did you mean 'age'"):
        scored(model, folder / "people.csv", keep=keep)


def test_scoring_a_file_imports_neither_jax_nor_what_reports_need(folder):
    code = (
        "from pathlib import Path; from dafh.columns.read import DataFile; "
        f"from dafh.cli.model_file import ModelFile; folder = Path({str(folder)!r}); "
        "list(ModelFile.open(folder / 'model.dafh').score(DataFile(folder / 'people.csv')))"
    )
    assert not {"jax", "altair", "skops"} & modules_after(code)


def test_files_are_scored_by_models_without_a_pass_of_their_own(tmp_path):
    data = workers(300)
    model = tabular_pipeline(DecoupledClassifier(random_state=0)).fit(data.X, data.y)
    kinds = {"experience": "number", "job": "category", "hours": "number", "since": "date ISO8601", "remote": "flag"}
    save(model, tmp_path / "m.dafh", details={"schema": TableSchema("y", kinds).to_dict()})
    data.X.to_csv(tmp_path / "t.csv", index=False)
    (scored,) = ModelFile.open(tmp_path / "m.dafh").score(DataFile(tmp_path / "t.csv"))
    assert scored["prediction"].tolist() == model.predict(data.X).tolist()
    assert scored["probability_yes"].tolist() == model.predict_proba(data.X)[:, 1].round(6).tolist()


# ---- rows with their target ----


def test_training_rows_are_recognised_from_every_format(model, folder, tmp_path):
    table = people().sample(frac=1, random_state=1)
    for name in ("t.csv", "t.parquet"):
        assert SAME_ROWS in model.read(DataFile(saved(tmp_path / name, table))).notes
    for other in (table.head(299), table.assign(hired=table["hired"].to_numpy()[::-1])):
        assert SAME_ROWS not in model.read(DataFile(saved(tmp_path / "o.csv", other))).notes


def test_attributes_are_those_of_training_unless_others_are_named(model, folder):
    data = DataFile(folder / "people.csv")
    assert list(model.read(data).sensitive.columns) == ["sex"]
    assert list(model.read(data, ["job,age", "sex"]).sensitive.columns) == ["job", "age", "sex"]


def test_rows_need_no_sensitive_attribute(model, folder, tmp_path):
    path = saved(tmp_path / "t.csv", people().drop(columns="sex"))
    assert model.read(DataFile(path)).sensitive is None


def test_the_target_may_have_another_name(model, folder, tmp_path):
    path = saved(tmp_path / "t.csv", people().rename(columns={"hired": "outcome"}))
    renamed, usual = model.read(DataFile(path), target="outcome"), model.read(DataFile(folder / "people.csv"))
    np.testing.assert_array_equal(renamed.codes, usual.codes)
    with pytest.raises(InputError, match="no column 'hired', the target"):
        model.read(DataFile(path))


def test_an_audit_in_pieces_is_the_audit_of_all_rows(folder, fresh, monkeypatch):
    monkeypatch.setattr("dafh.cli.model_file.ROWS_PER_PIECE", 100)
    loaded = ModelFile.open(folder / "model.dafh")
    read = loaded.read(DataFile(fresh), ["sex"])
    known = {"sensitive_features": read.sensitive, "persons": read.persons, "sample_weight": read.weights}
    at_once = AuditResult.of(loaded.model, read.features, loaded.model.classes_[read.codes[:, 0]], **known)
    assert loaded.audit(read).to_dict() == at_once.to_dict()


def test_rows_without_a_target_are_counted(folder, tmp_path):
    table = people()
    table.loc[:9, "hired"] = np.nan
    table.to_csv(tmp_path / "gaps.csv", index=False)
    notes = ModelFile.open(folder / "model.dafh").read(DataFile(tmp_path / "gaps.csv"), person="person_id").notes
    assert "Left out, no target: 10 rows." in notes


# ---- partitions ----


def test_dask_scores_partition_by_partition(folder):
    dd = pytest.importorskip("dask.dataframe")
    model, rows = load(folder / "model.dafh"), people(60, seed=7)
    rows = rows[list(model[0].columns_)].reset_index(drop=True)
    scored = dd.from_pandas(rows, npartitions=4).map_partitions(model.predict, meta=np.array(["yes"])).compute()
    assert np.concatenate([scored]).tolist() == model.predict(rows).tolist()
