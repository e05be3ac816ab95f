"""From files to files: training tables, fingerprints, scores, and names of columns."""

import gzip
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier

from command_line import people
from dafh.exceptions import InputError
from dafh.tables.read import DataFile
from dafh.tables.write import TableWriter
from dafh.workflows.fingerprints import fingerprint, hash_sums, labelled_hashes
from dafh.workflows.names import names_beside, split_names
from dafh.workflows.serving import SAME_ROWS, FileModel
from dafh.workflows.training import TrainingTable, make_classifier
from tables import written


@pytest.fixture(scope="module")
def model(folder):
    return FileModel.open(folder / "model.dafh")


def scored(model, path, **options):
    return pd.concat(model.score(DataFile(path), **options), ignore_index=True)


def saved(path, table):
    with TableWriter(path) as writer:
        writer.write(table)
    return path


# ---- names ----


@given(st.lists(st.text("ab, ", min_size=1, max_size=5), max_size=6, unique=True))
def test_every_column_can_be_named_by_its_own_name(columns):
    columns = [name for name in columns if name.strip() and name.strip() == name]
    assert split_names(columns, columns) == columns


def test_names_may_be_joined_repeated_and_surrounded_by_blanks():
    assert split_names(["a, b", "b", " c ,,a"], ["a", "b", "c"]) == ["a", "b", "c"]
    assert split_names([], ["a"]) == []
    assert split_names(["a,b"], ["a,b", "a", "b"]) == ["a,b"]


@given(st.lists(st.sampled_from(["row", "row (given)", "group", "a", "row (given) (given)"]), unique=True))
def test_columns_that_are_carried_over_never_share_a_name_with_a_result(names):
    taken = ["row", "prediction", "group"]
    new = names_beside(names, taken)
    assert list(new) == names
    assert len({*new.values(), *taken}) == len(names) + len(taken)
    assert all(new[name] == name for name in names if name not in taken)


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
    return fingerprint(hash_sums(labelled_hashes(features, y)))


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


def test_labels_that_change_places_change_the_fingerprint():
    assert len(labelled_hashes(rows(3), [0, 1, 1])) == 3
    assert mark(rows(3), [0, 1, 1]) != mark(rows(3), [1, 0, 1])


def test_labels_of_every_type_have_the_fingerprint_of_their_text():
    table = rows(3)
    assert mark(table, np.array([0, 1, 0])) == mark(table, np.array(["0", "1", "0"], dtype=object))
    assert mark(table, np.array([True, False, True])) == mark(table, np.array(["True", "False", "True"], dtype=object))


def test_a_column_called_label_is_a_feature_like_others():
    table = rows(3).assign(label=["x", "y", "z"])
    assert mark(table, [0, 1, 0]) != mark(table.assign(label=["x", "y", "y"]), [0, 1, 0])


# ---- training tables ----


def read(tmp_path, table, target="hired", **options):
    return TrainingTable.read(DataFile(saved(tmp_path / "t.csv", table)), target, **options)


@pytest.mark.parametrize("test_size", [0.0, 0.1, 0.5, 0.9])
def test_rows_are_parted_without_loss_and_without_overlap(tmp_path, test_size):
    table = read(tmp_path, people(), test_size=test_size)
    held_out = [] if table.test_rows is None else table.test_rows["person_id"].tolist()
    trained = table.training["person_id"].astype(int).tolist()
    assert len(held_out) == round(300 * test_size)
    assert sorted([*held_out, *trained]) == list(range(1, 301))
    assert len(table.y) == len(table.features) == len(trained)


def test_the_seed_alone_decides_which_rows_are_held_out(tmp_path):
    one, again, other = (read(tmp_path, people(), test_size=0.3, seed=seed).test_rows for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(one, again)
    assert one["person_id"].tolist() != other["person_id"].tolist()


def test_rows_without_a_target_are_neither_trained_on_nor_held_out(tmp_path):
    table = people().assign(hired=lambda t: t["hired"].where(t.index >= 7, "?"))
    found = read(tmp_path, table, test_size=0.5)
    assert len(found.training) + len(found.test_rows) == 293
    assert "Left out, no target: 7 rows." in found.notes


def test_the_headline_gives_rows_and_shares(tmp_path):
    table = people(100).assign(hired=["no"] * 75 + ["yes"] * 25)
    assert read(tmp_path, table).headline() == "Training on 100 rows. Values of hired: no in 75%, yes in 25%."
    many = people(100).assign(hired=[f"class {i % 10}" for i in range(100)])
    assert read(tmp_path, many).headline().endswith("class 4 in 10%, ….")


def test_leakage_is_seen_whichever_rows_are_held_out(tmp_path):
    for seed in range(3):
        table = read(tmp_path, people().assign(hired_too=lambda t: t["hired"]), test_size=0.5, seed=seed)
        assert [note for note in table.notes if note.startswith("Possible leakage: hired_too alone")]


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        ("a,y\n" + "1,0\n2,1\n" * 9 + "3,1\n", {}, "has 19 rows with a target: at least 20 are needed"),
        ("a,y\n" + "1,?\n2,1\n" * 15, {}, "has 15 rows with a target"),
        ("a,y\n" + "1,0\n2,1\n" * 20, {"drop": ["a"]}, "No column is left to learn from"),
        ("a,y\n" + "1,1\n2,1\n" * 20 + "3,0\n", {"test_size": 0.9, "seed": 1}, "have one value of 'y' only"),
        ("a,y\n" + "1,0\n2,1\n" * 20, {"drop": ["b"]}, "has no column 'b'"),
    ],
)
def test_tables_that_cannot_be_trained_on_are_refused(tmp_path, content, options, sentence):
    with pytest.raises(InputError, match=sentence):
        TrainingTable.read(DataFile(written(tmp_path, content)), "y", **options)


def test_twenty_rows_are_enough(tmp_path):
    table = TrainingTable.read(DataFile(written(tmp_path, "a,y\n" + "1,0\n2,1\n" * 10)), "y")
    assert len(table.y) == 20


def test_a_table_of_a_file_is_read_as_its_kinds_before_the_model(tmp_path):
    table = read(tmp_path, people())
    model = table.fit(make_classifier(table.schema, n_groups=1, groups="rules"))
    assert (
        model[0].columns_
        == table.schema.features
        == {"age": "number", "job": "category", "since": "date ISO8601", "sex": "category"}
    )
    assert model[-1].get_params()["n_groups"] == 1


def test_settings_of_a_fit_reach_the_model(tmp_path):
    table = read(tmp_path, people())
    options = {"n_groups": 3, "groups": "rules", "pooled": "boosting", "guard": None, "seed": 7}
    model = table.fit(make_classifier(table.schema, **options))[-1]
    assert (model.n_groups, model.groups, model.guard, model.random_state) == (3, "rules", None, 7)
    assert isinstance(model.pooled, HistGradientBoostingClassifier)


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
    np.testing.assert_array_equal(renamed.y, usual.y)
    with pytest.raises(InputError, match="no column 'hired', the target"):
        model.read(DataFile(path))


def test_a_file_is_read_the_same_packed_or_not(model, folder, tmp_path):
    path = written(tmp_path, gzip.compress((folder / "people.csv").read_bytes()), "t.gz")
    for one, other in itertools.pairwise([model.read(DataFile(path)), model.read(DataFile(folder / "people.csv"))]):
        pd.testing.assert_frame_equal(one.features, other.features)
        np.testing.assert_array_equal(one.y, other.y)
