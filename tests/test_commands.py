"""The commands that take a table, from a CSV file to a report."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command_line import fit_hastily, people, run
from dafh import AuditResult, load
from dafh.tables.files import DataFile
from dafh.workflows.serving import FileModel
from dafh.workflows.training import TrainingTable


@pytest.fixture
def hasty(monkeypatch):
    fit_hastily(monkeypatch)


def test_fit_says_what_it_guesses_and_what_came_of_it(folder):
    text = (folder / "fit.txt").read_text()
    for said in (
        "Training on 210 rows; target hired: no",
        "Left out, a different value in every row: person_id.",
        "Numbers: age.",
        "Dates (year-month-day): since.",
        "Categories: job.",
        "Kept out of training, used in the audit: sex.",
        'Guard "veto"',
        "Test rows:",
        "Next: dafh audit",
    ):
        assert said in text, said


def test_the_model_is_the_one_that_python_gives(folder):
    table = TrainingTable.read(DataFile(folder / "people.csv"), "hired", sensitive=["sex"], test_size=0.3)
    again = table.fit()
    rows = table.schema.features_of(people(50, seed=3))
    np.testing.assert_array_equal(load(folder / "model.dafh").predict_proba(rows), again.predict_proba(rows))


def test_held_out_rows_were_not_trained_on(folder):
    kept = pd.read_parquet(folder / "model.test.parquet")
    table = TrainingTable.read(DataFile(folder / "people.csv"), "hired", sensitive=["sex"], test_size=0.3)
    assert len(kept) == 90
    assert not set(kept["person_id"]) & set(table.training["person_id"])
    assert list(kept.columns) == list(people().columns)


def test_predict_streams_predictions_with_groups(folder):
    result = run(
        "predict", folder / "model.dafh", folder / "people.csv", "--keep", "person_id", "--out", folder / "s.csv"
    )
    assert "300 rows in" in result.output
    scored = pd.read_csv(folder / "s.csv")
    assert list(scored.columns) == ["person_id", "row", "prediction", "probability_yes", "group"]
    model = FileModel.open(folder / "model.dafh")
    features = model.schema.features_of(people())
    assert scored["prediction"].tolist() == model.model.predict(features).tolist()
    assert scored["probability_yes"].to_numpy() == pytest.approx(model.model.predict_proba(features)[:, 1], abs=1e-6)


def test_kept_columns_come_out_as_they_went_in(folder):
    table = people(5).assign(account=["00012", "12345678901234567890", "None", "", "NA"])
    table.to_csv(folder / "kept.csv", index=False)
    for keep in ("account,age", "all"):
        run("predict", folder / "model.dafh", folder / "kept.csv", "--keep", keep, "--out", folder / "k.csv")
        kept = pd.read_csv(folder / "k.csv", dtype=str, keep_default_na=False)
        assert kept["account"].tolist() == table["account"].tolist()
        assert kept["age"].tolist() == [str(age) for age in table["age"]]


def test_columns_whose_names_are_taken_get_others(folder):
    people(5).assign(row=7, **{"row (given)": 8}).to_csv(folder / "taken.csv", index=False)
    run("predict", folder / "model.dafh", folder / "taken.csv", "--keep", "all", "--out", folder / "t.parquet")
    scored = pd.read_parquet(folder / "t.parquet")
    assert scored.columns.is_unique
    assert scored["row"].tolist() == [1, 2, 3, 4, 5]


def test_a_reader_who_has_seen_enough_is_no_error(folder):
    command = f"{sys.executable} -m dafh predict model.dafh long.csv | head -1; echo ${{PIPESTATUS[0]}}"
    pd.concat([people()] * 200).to_csv(folder / "long.csv", index=False)
    result = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    assert result.stdout == "row,prediction,probability_yes,group\n141\n"
    assert "rror" not in result.stderr


def test_columns_of_one_name_can_be_dropped_together(folder, hasty):
    text = (folder / "people.csv").read_text().splitlines()
    doubled = "\n".join(f"{line},{line.split(',')[1]}" for line in text)
    (folder / "doubled.csv").write_text(doubled)
    arguments = ["--target", "hired", "--groups", "1", "--guard", "none", "--out", folder / "d.dafh"]
    refused = run("fit", folder / "doubled.csv", *arguments)
    assert refused.exit_code == 2
    assert "more than one column called 'age': rename them, or leave them out" in refused.stderr
    accepted = run("fit", folder / "doubled.csv", *arguments, "--drop", "age")
    assert accepted.exit_code == 0, accepted.output
    assert "Numbers: age" not in accepted.stderr
    for command in ("predict", "audit"):
        assert run(command, folder / "d.dafh", folder / "doubled.csv").exit_code == 0


def test_decimal_commas_and_stray_words_are_read_alike_in_fit_and_predict(tmp_path, hasty):
    table = people().assign(wage=lambda t: (t["age"] * 12.5).astype(str))
    german = table.assign(wage=table["wage"].str.replace(".", ","))
    german.loc[3, "wage"] = "unknown"
    table.to_csv(tmp_path / "points.csv", index=False)
    german.to_csv(tmp_path / "commas.csv", sep=";", index=False)
    quick = ["--target", "hired", "--groups", "1", "--guard", "none"]
    for name in ("points", "commas"):
        fitted = run("fit", tmp_path / f"{name}.csv", *quick, "--out", tmp_path / f"{name}.dafh")
        assert fitted.exit_code == 0, fitted.output
    assert "decimal comma" in fitted.stderr
    assert "Counted as missing in wage: 'unknown'." in fitted.stderr
    german.drop(index=3).assign(wage=lambda t: ["old", *t["wage"][1:]]).to_csv(
        tmp_path / "next.csv", sep=";", index=False
    )
    scored = run("predict", tmp_path / "commas.dafh", tmp_path / "next.csv")
    assert scored.exit_code == 0, scored.output
    assert "Column 'wage': 1 of 299 values could not be read, such as 'old'; they count as missing." in scored.stderr
    refused = run("predict", tmp_path / "points.dafh", tmp_path / "next.csv")
    assert "held numbers in fit and holds" in refused.stderr
    assert run("predict", tmp_path / "points.dafh", tmp_path / "next.csv", "--decimal", ",").exit_code == 0


def test_held_out_rows_of_an_earlier_fit_are_pointed_at(tmp_path, hasty):
    people(400).to_csv(tmp_path / "people.csv", index=False)
    quick = ["--target", "hired", "--groups", "1", "--guard", "none", "--out", tmp_path / "m.dafh"]
    assert "earlier fit" not in run("fit", tmp_path / "people.csv", *quick, "--test-size", "0.3").stderr
    assert "m.test.parquet is from an earlier fit" in run("fit", tmp_path / "people.csv", *quick).stderr


def test_fit_warns_of_leakage(tmp_path):
    rng = np.random.default_rng(0)
    table = people().assign(
        group=lambda t: np.where(t["age"] > 45, "old", "young"), label=lambda t: 1 * (t["hired"] == "yes")
    )
    table = table.assign(other=rng.normal(size=300))
    table.to_csv(tmp_path / "t.csv", index=False)
    notes = " ".join(TrainingTable.read(DataFile(tmp_path / "t.csv"), "hired", sensitive=["group"]).notes)
    assert "label alone predicts the target almost perfectly. Is it available at prediction time?" in notes
    assert "age alone predicts group almost perfectly." in notes
    assert "other" not in notes.split("Possible leakage", 1)[1]


def test_chunks_do_not_change_predictions(folder):
    model = FileModel.open(folder / "model.dafh")
    whole, pieces = (
        pd.concat(model.score(DataFile(folder / "people.csv"), ["all"], rows=rows), ignore_index=True)
        for rows in (1000, 7)
    )
    pd.testing.assert_frame_equal(whole, pieces)


def test_predict_reads_pipes_and_writes_parquet(folder):
    packed = gzip.compress((folder / "people.csv").read_bytes())
    result = run("predict", folder / "model.dafh", "-", "--out", folder / "s.parquet", input=packed)
    assert result.exit_code == 0, result.output
    assert len(pd.read_parquet(folder / "s.parquet")) == 300


def test_columns_in_another_order_and_more_of_them_do_not_matter(folder):
    table = people()
    table[table.columns[::-1]].assign(more=1).drop(columns=["hired", "sex"]).to_csv(folder / "other.csv", index=False)
    outputs = [run("predict", folder / "model.dafh", folder / f"{name}.csv").stdout for name in ("people", "other")]
    assert outputs[0] == outputs[1]


def test_audit_is_that_of_python(folder):
    result = run("audit", folder / "model.dafh", folder / "model.test.parquet")
    assert result.exit_code == 0
    kept = pd.read_parquet(folder / "model.test.parquet")
    model = FileModel.open(folder / "model.dafh")
    expected = AuditResult.of(
        model.model, model.schema.features_of(kept), kept["hired"].to_numpy(object), sensitive_features=kept[["sex"]]
    )
    assert result.stdout == f"{expected}\n"
    assert "sex = f" in result.stdout


def test_audit_for_machines(folder):
    result = run("audit", folder / "model.dafh", folder / "model.test.parquet", "--json")
    assert json.loads(result.stdout)["rows"] == 90


def test_an_audit_of_the_training_rows_says_so(folder):
    table = TrainingTable.read(DataFile(folder / "people.csv"), "hired", sensitive=["sex"], test_size=0.3)
    table.training.sample(frac=1, random_state=0).to_csv(folder / "training.csv", index=False)
    for name in ("people.csv", "training.csv"):
        assert "the rows were used for training" in run("audit", folder / "model.dafh", folder / name).stderr
    assert "used for training" not in run("audit", folder / "model.dafh", folder / "model.test.parquet").stderr


def test_fail_on_harm_is_an_exit_code(folder):
    table = people(3000, seed=5)
    features = FileModel.open(folder / "model.dafh").schema.features_of(table)
    model = load(folder / "model.dafh")
    if (model[-1].serves_ == 2).all():
        pytest.skip("the guard left nothing that could harm")
    pooled = model[-1].pooled_.predict(model[:-1].transform(features))
    table.assign(hired=pooled).to_csv(folder / "harm.csv", index=False)  # The pooled classifier is always right.
    assert run("audit", folder / "model.dafh", folder / "harm.csv", "--fail-on-harm").exit_code == 1
    assert run("audit", folder / "model.dafh", folder / "harm.csv").exit_code == 0


def test_explain_puts_groups_into_words(folder):
    result = run("explain", folder / "model.dafh", folder / "model.test.parquet")
    assert result.stdout.startswith("Group 0:")
    assert "sex = " in result.stdout
    assert len(json.loads(run("explain", folder / "model.dafh", folder / "people.csv", "--json").stdout)["groups"]) == 2


def test_report_writes_one_page(folder):
    out = folder / "report.html"
    result = run("report", folder / "model.dafh", folder / "model.test.parquet", "--out", out, "--title", "Hiring")
    assert result.exit_code == 0, result.output
    assert f"Report: {out}" in result.stdout
    page = out.read_text()
    assert "<title>Hiring</title>" in page
    assert "sex = f" in page
    assert "210 rows of people.csv" in page


def test_report_without_rows_and_for_machines(folder):
    result = run("report", folder / "model.dafh", "--json")
    assert json.loads(result.stdout)["verdict"]["status"] == "unaudited"
    assert not Path("report.html").exists()
    assert run("report", folder / "model.dafh", "--out", folder / "bare.html").exit_code == 0


def test_show_says_what_is_inside(folder):
    text = run("show", folder / "model.dafh").stdout
    for said in ("DAFHClassifier, 2 groups", "no, yes", "3: age, job, since", "210 rows of people.csv", "sex", "Guard"):
        assert said in text
    assert json.loads(run("show", folder / "model.dafh", "--json").stdout)["schema"]["target"] == "hired"


def test_fit_for_machines_prints_nothing_else(folder, hasty):
    arguments = ["--target", "hired", "--groups", "1", "--guard", "none", "--out", folder / "one.dafh", "--json"]
    card = json.loads(run("fit", folder / "people.csv", *arguments).stdout)
    assert card["file"] == str(folder / "one.dafh")
    assert card["test_rows"] is None
    assert card["guard"] is None


def test_boosting_can_be_the_pooled_model(folder, hasty):
    arguments = ["--target", "hired", "--pooled", "boosting", "--guard", "proof", "--out", folder / "boosted.dafh"]
    assert run("fit", folder / "people.csv", *arguments).exit_code == 0
    assert "HistGradientBoosting" in run("show", folder / "boosted.dafh").stdout
    assert run("audit", folder / "boosted.dafh", folder / "people.csv").exit_code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell):
    assert "_DAFH_COMPLETE" in run("completion", shell).stdout


def test_completion_completes_commands():
    words = {"_DAFH_COMPLETE": "bash_complete", "COMP_WORDS": "dafh au", "COMP_CWORD": "1"}
    result = subprocess.run(
        [sys.executable, "-m", "dafh"], env=os.environ | words, capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "plain,audit"
