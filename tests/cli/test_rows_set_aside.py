"""Test rows belong to their model: a table with their name and other rows is refused."""

import shutil

import pandas as pd
import pytest

from command_line import people, run
from dafh.columns.write import TableWriter
from dafh.persistence import read_card

REFUSED = "does not hold the test rows of model.dafh: another fit has written it"


@pytest.fixture
def fitted(folder, tmp_path):
    """A model and its test rows, to be changed."""
    for name in ("model.dafh", "model.test.parquet", "people.csv"):
        shutil.copy(folder / name, tmp_path)
    return tmp_path


@pytest.fixture
def interrupted(fitted):
    """What a kill between the two files leaves: the earlier model, and the test rows of the new one."""
    people().sample(90, random_state=1).to_parquet(fitted / "model.test.parquet")
    return fitted


def test_a_model_knows_its_test_rows_in_any_order(fitted):
    path = fitted / "model.test.parquet"
    pd.read_parquet(path).sample(frac=1, random_state=0).to_parquet(path)
    assert run("audit", fitted / "model.dafh", path).exit_code == 0


@pytest.mark.parametrize(
    "command",
    [("audit",), ("report",), ("explain",), ("watch", "--state", "watch.db")],
    ids=lambda c: c[0],
)
def test_test_rows_of_another_fit_are_refused_by_every_command_that_judges(interrupted, monkeypatch, command):
    monkeypatch.chdir(interrupted)
    name, *options = command
    result = run(name, "model.dafh", "model.test.parquet", *options)
    assert result.exit_code == 2
    assert REFUSED in result.stderr


def test_they_may_be_judged_under_another_name(interrupted):
    (interrupted / "model.test.parquet").rename(interrupted / "rows.parquet")
    assert run("audit", interrupted / "model.dafh", interrupted / "rows.parquet").exit_code == 0


def test_a_link_to_the_model_leads_to_its_test_rows(interrupted):
    (interrupted / "current.dafh").symlink_to("model.dafh")
    result = run("audit", interrupted / "current.dafh", interrupted / "model.test.parquet")
    assert "does not hold the test rows of current.dafh" in result.stderr


def test_a_model_that_was_fitted_without_test_rows_refuses_those_of_an_earlier_fit(fitted):
    arguments = ("--target", "hired", "--method", "exceptions", "--out", fitted / "model.dafh")
    assert run("fit", fitted / "people.csv", *arguments).exit_code == 0
    result = run("audit", fitted / "model.dafh", fitted / "model.test.parquet")
    assert result.exit_code == 2
    assert REFUSED in result.stderr


def test_other_labels_make_other_rows_and_are_not_compared(fitted):
    path = fitted / "model.test.parquet"
    pd.read_parquet(path).assign(other=lambda rows: rows["hired"].to_numpy()[::-1]).to_parquet(path)
    assert run("audit", fitted / "model.dafh", path, "--target", "other").exit_code == 0


def test_a_fit_that_cannot_write_its_test_rows_leaves_the_model_as_it_was(fitted, monkeypatch):
    before = {path.name: path.read_bytes() for path in fitted.iterdir()}

    def full(self, table):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TableWriter, "write", full)
    arguments = ("--target", "hired", "--method", "exceptions", "--test-size", "0.2", "--out", fitted / "model.dafh")
    result = run("fit", fitted / "people.csv", *arguments)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].endswith("model.test.parquet: No space left on device.")
    assert {path.name: path.read_bytes() for path in fitted.iterdir()} == before


def test_the_card_has_the_fingerprint_of_the_test_rows_and_json_says_where_they_are(fitted):
    card = read_card(fitted / "model.dafh")
    assert card["rows_kept_back"] == len(pd.read_parquet(fitted / "model.test.parquet"))
    assert len(card["test_fingerprint"]) == 16
