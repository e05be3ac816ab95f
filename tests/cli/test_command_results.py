"""Results of the commands: the same for people, for machines and through pipes; and what cannot be read or written."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command_line import people, run
from dafh.datasets.registry import DATASETS
from tables import written


@pytest.fixture(scope="module")
def held_out(folder):
    return [folder / "model.dafh", folder / "model.test.parquet"]


# ---- for people and for machines ----


def test_an_audit_for_machines_says_what_it_says_for_people(held_out):
    text = run("audit", *held_out, "--details").stdout
    values = json.loads(run("audit", *held_out, "--json").stdout)
    assert f"RECOMMENDATION: {values['recommendation']['headline']}." in text
    assert f"{values['rows']:,} rows" in text
    for share in ("accuracy", "pooled_accuracy", "pr_without_harm"):
        assert f"{100 * values[share]:.1f}" in text
    assert sum(values["sizes"]) == values["rows"] == 90
    for group in values["named_groups"]:
        assert group["group"] in text


def test_options_of_an_audit_reach_the_result(held_out):
    values = json.loads(run("audit", *held_out, "--margin", "0.05", "--json").stdout)
    assert values["margin"] == 0.05


@pytest.mark.usefixtures("blank_charts")
def test_a_report_its_page_and_the_audit_have_one_recommendation(held_out, tmp_path):
    out = tmp_path / "r.html"
    advice = json.loads(run("audit", *held_out, "--json").stdout)["recommendation"]
    printed = run("report", *held_out, "--out", out).stdout.splitlines()
    assert printed[0] == f"RECOMMENDATION: {advice['headline']}."
    assert advice["headline"] in out.read_text()


def test_standard_output_holds_the_result_alone(held_out, folder):
    scores = run("predict", folder / "model.dafh", folder / "people.csv")
    assert len(scores.stdout.splitlines()) == 301
    assert "300 rows in" in scores.stderr
    audit = run("audit", folder / "model.dafh", folder / "people.csv", "--json")
    assert "Note: These results are optimistic" in audit.stderr
    assert json.loads(audit.stdout)["notes"]


# ---- pipes ----


@pytest.mark.parametrize("command", ["predict", "audit", "explain"])
def test_every_command_reads_standard_input(folder, command):
    content = (folder / "people.csv").read_bytes()
    expected = run(command, folder / "model.dafh", folder / "people.csv").stdout
    for piped in (content, gzip.compress(content)):
        result = run(command, folder / "model.dafh", "-", input=piped)
        assert result.exit_code == 0, result.output
        assert result.stdout == expected


def test_errors_about_standard_input_call_it_so(folder):
    result = run("audit", folder / "model.dafh", "-", input=b"")
    assert result.exit_code == 2
    assert result.stderr == "dafh: standard input is empty.\n"


# ---- what cannot be read ----


@pytest.mark.parametrize("command", ["predict", "audit", "explain", "report", "show"])
def test_a_model_that_is_not_there_is_refused_by_every_command(folder, command):
    arguments = [] if command == "show" else [folder / "people.csv"]
    result = run(command, folder / "none.dafh", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("dafh: ")
    assert "none.dafh" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["predict", "audit", "explain", "report"])
def test_a_table_that_is_not_there_is_refused_by_every_command(folder, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(command, folder / "model.dafh", tmp_path / "none.csv")
    assert result.exit_code == 2
    assert result.stderr == f"dafh: There is no file {tmp_path / 'none.csv'}.\n"
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["audit", "explain", "report"])
def test_rows_without_a_target_column_cannot_be_audited(folder, tmp_path, command):
    path = written(tmp_path, people().drop(columns="hired").to_csv(index=False))
    result = run(command, folder / "model.dafh", path)
    assert result.exit_code == 2
    assert "The table has no column 'hired', the target" in result.stderr


# ---- what cannot be written ----


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "people.csv", "--target", "hired"],
        ["predict", "model.dafh", "people.csv"],
        ["report", "model.dafh", "people.csv"],
        ["data", "export", "german"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_place_that_cannot_be_written_to_is_refused_before_the_work(folder, monkeypatch, arguments):
    monkeypatch.chdir(folder)
    for place, sentence in ((folder, "is a folder, not a file to write to"), ("no/such/x.csv", "There is no folder")):
        result = run(*arguments, "--out", place)
        assert result.exit_code == 2
        assert sentence in result.stderr
        assert result.stdout == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence_and_stays_a_device(folder):
    result = run("predict", folder / "model.dafh", folder / "people.csv", "--out", "/dev/full")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == "dafh: /dev/full: No space left on device."
    assert not Path("/dev/full").is_file()


def test_a_failure_while_scoring_leaves_the_old_file(folder, tmp_path):
    out = written(tmp_path, "before", "scores.csv")
    broken = written(tmp_path, people().to_csv(index=False) + "1,2,3,4,5,6,7,8\n", "broken.csv")
    result = run("predict", folder / "model.dafh", broken, "--out", out)
    assert result.exit_code == 2
    assert out.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"scores.csv", "broken.csv"}


# ---- data sets ----


def test_an_exported_data_set_has_features_attributes_and_target(tmp_path, monkeypatch):
    X = pd.DataFrame({"age": [30, 41], "sex": ["f", "m"]})
    attributes = pd.DataFrame({"sex": ["f", "m"], "race": ["x", "y"]})
    bunch = type("Data", (), {"X": X, "sensitive_features": attributes, "y": np.array([0, 1])})
    monkeypatch.setattr("dafh.datasets.FETCHERS", {"tiny": lambda: bunch})
    monkeypatch.chdir(tmp_path)
    result = run("data", "export", "tiny")
    assert result.stdout.startswith("Wrote 2 rows to tiny.csv.")
    assert "dafh fit tiny.csv --target target --sensitive sex,race" in result.stdout
    assert (tmp_path / "tiny.csv").read_text() == "age,sex,race,target\n30,f,x,0\n41,m,y,1\n"
    assert run("data", "export", "tiny", "--out", "t.parquet").exit_code == 0
    assert pd.read_parquet(tmp_path / "t.parquet")["target"].tolist() == [0, 1]


def test_a_data_set_that_does_not_exist_is_refused_with_those_that_do():
    result = run("data", "export", "compas")
    assert result.exit_code == 2
    assert result.stderr == f"dafh: There is no data set 'compas'; choose from {', '.join(DATASETS)}.\n"
