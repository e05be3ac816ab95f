"""Tables to train on: what is read, guessed and set aside."""

import pandas as pd
import pytest

from command_line import people
from dafh import DAFHClassifier
from dafh.cli.training import TrainingTable
from dafh.columns.read import DataFile
from dafh.exceptions import InputError
from tables import saved, written


def read(tmp_path, table, target="hired", **options):
    return TrainingTable.read(DataFile(saved(tmp_path / "t.csv", table)), target, **options)


@pytest.mark.parametrize("test_size", [0.0, 0.1, 0.5, 0.9])
def test_rows_are_parted_without_loss_and_without_overlap(tmp_path, test_size):
    table = read(tmp_path, people(), test_size=test_size)
    held_out = table.test_rows["person_id"].tolist()
    trained = people()["person_id"][table.features.index].tolist()
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
    assert len(found.y) + len(found.test_rows) == 293
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


def test_a_table_of_a_file_is_read_as_its_kinds_before_the_model(tmp_path):
    table = read(tmp_path, people())
    model = table.fit(DAFHClassifier(1))
    assert (
        model[0].columns_
        == table.schema.features
        == {"age": "number", "job": "category", "since": "date ISO8601", "sex": "category"}
    )
    assert model[-1].get_params()["n_groups"] == 1
