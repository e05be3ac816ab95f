"""The commands that take a table, from a CSV file to a report."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from command_line import people, run
from dafh import AuditResult, DAFHClassifier, load
from dafh.cli.model_file import ModelFile
from dafh.cli.training import TrainingTable
from dafh.columns.read import DataFile
from models import workers


def test_fit_says_what_it_guesses_and_what_came_of_it(folder):
    text = (folder / "fit.txt").read_text()
    for said in (
        "Training on 210 rows. Values of hired: no",
        "Left out, a different value in every row: person_id.",
        "Numbers: age.",
        "Dates (year-month-day): since.",
        "Categories: job.",
        "Kept out of training, used in the audit: sex.",
        "Trained in ",
        "Test rows:",
        "Next: dafh audit",
    ):
        assert said in text, said


def test_the_model_is_the_one_that_python_gives(folder):
    table = TrainingTable.read(DataFile(folder / "people.csv"), "hired", sensitive=["sex"], test_size=0.3)
    again = table.fit(DAFHClassifier(random_state=0))
    rows = table.schema.features_of(people(50, seed=3))
    np.testing.assert_array_equal(load(folder / "model.dafh").predict_proba(rows), again.predict_proba(rows))


def test_predict_streams_predictions_with_groups(folder):
    result = run(
        "predict", folder / "model.dafh", folder / "people.csv", "--keep", "person_id", "--out", folder / "s.csv"
    )
    assert "300 rows in" in result.output
    scored = pd.read_csv(folder / "s.csv")
    assert list(scored.columns) == ["person_id", "row", "prediction", "probability_yes", "group"]
    model = ModelFile.open(folder / "model.dafh")
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
    people(5).assign(row=7).to_csv(folder / "taken.csv", index=False)
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


def test_decimal_commas_and_stray_words_are_read_alike_in_fit_and_predict(tmp_path):
    table = people().assign(wage=lambda t: (t["age"] * 12.5).astype(str))
    german = table.assign(wage=table["wage"].str.replace(".", ","))
    german.loc[3, "wage"] = "unknown"
    table.to_csv(tmp_path / "points.csv", index=False)
    german.to_csv(tmp_path / "commas.csv", sep=";", index=False)
    quick = ["--target", "hired", "--method", "exceptions", "--groups", "1", "--guard", "none"]
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


def test_columns_in_another_order_and_more_of_them_do_not_matter(folder):
    table = people()
    table[table.columns[::-1]].assign(more=1).drop(columns=["hired", "sex"]).to_csv(folder / "other.csv", index=False)
    outputs = [run("predict", folder / "model.dafh", folder / f"{name}.csv").stdout for name in ("people", "other")]
    assert outputs[0] == outputs[1]


def test_audit_is_that_of_python(folder):
    result = run("audit", folder / "model.dafh", folder / "model.test.parquet")
    assert result.exit_code == 0
    kept = pd.read_parquet(folder / "model.test.parquet")
    model = ModelFile.open(folder / "model.dafh")
    expected = AuditResult.of(
        model.model, model.schema.features_of(kept), kept["hired"].to_numpy(object), sensitive_features=kept[["sex"]]
    )
    assert result.stdout == f"{expected}\n"
    assert "sex = f" in run("audit", folder / "model.dafh", folder / "model.test.parquet", "--details").stdout


def test_an_audit_of_the_training_rows_says_so(folder):
    table = TrainingTable.read(DataFile(folder / "people.csv"), "hired", sensitive=["sex"], test_size=0.3)
    people().loc[table.features.index].sample(frac=1, random_state=0).to_csv(folder / "training.csv", index=False)
    for name in ("people.csv", "training.csv"):
        assert "the model was trained on these rows" in run("audit", folder / "model.dafh", folder / name).stderr
    assert "trained on these rows" not in run("audit", folder / "model.dafh", folder / "model.test.parquet").stderr


def test_fail_on_harm_is_an_exit_code(folder):
    table = people(3000, seed=5)
    features = ModelFile.open(folder / "model.dafh").schema.features_of(table)
    model = load(folder / "model.dafh")
    if (model[-1].serves_ == model[-1].n_groups_).all():
        pytest.skip("the guard left nothing that could harm")
    pooled = model[-1].pooled_.predict(model[:-1].transform(features))
    table.assign(hired=pooled).to_csv(folder / "harm.csv", index=False)  # The pooled classifier is always right.
    assert run("audit", folder / "model.dafh", folder / "harm.csv", "--fail-on-harm").exit_code == 1
    assert run("audit", folder / "model.dafh", folder / "harm.csv").exit_code == 0


def test_report_writes_one_page(folder):
    out = folder / "report.html"
    result = run("report", folder / "model.dafh", folder / "model.test.parquet", "--out", out)
    assert result.exit_code == 0, result.output
    assert f"Report: {out}" in result.stdout
    page = out.read_text()
    assert "<title>Fairness report: people.csv, hired</title>" in page
    assert "sex = f" in page
    assert "210 rows of people.csv" in page


# ---- groups by rules ----


@pytest.fixture(scope="module")
def ruled(tmp_path_factory):
    """A folder with a model of two groups by rules, one where groups add nothing, and what fit said of them."""
    path = tmp_path_factory.mktemp("ruled")
    said = {}
    for name, flip, groups in (("rules", 1.0, "2"), ("nothing", 0.0, "auto")):
        data = workers(flip=flip)
        data.X.join(data.sensitive).assign(paid=data.y).to_csv(path / f"{name}.csv", index=False)
        arguments = ["--target", "paid", "--sensitive", "sex", "--method", "exceptions", "--groups", groups]
        said[name] = run("fit", path / f"{name}.csv", *arguments, "--out", path / f"{name}.dafh")
        assert said[name].exit_code == 0, said[name].output
    return path, said


def test_fit_tells_what_groups_are_worth_their_rules_and_what_the_guard_did(ruled):
    _, said = ruled
    text = said["rules"].stdout
    order = [
        "1 exception, and everybody else: 2 of 2 groups have their own classifier.",
        "job is cook",
        "everybody else ",
        'Guard "evidence"',
        "Model: ",
        "Next: dafh show",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "own error" not in text  # The guard's table would repeat gains and servers.
    assert "Trained in" in said["rules"].stderr
    assert "epoch" not in said["rules"].output  # Only networks have them.


@pytest.mark.parametrize("command", ["audit", "explain", "show", "report"])
def test_every_command_says_that_groups_add_nothing(ruled, command):
    path, said = ruled
    sentence = "No exceptions: groups add nothing to the pooled classifier, which serves everybody."
    assert sentence in said["nothing"].stdout
    assert "group 0" not in said["nothing"].stdout
    arguments = [path / "nothing.dafh", *([] if command == "show" else [path / "nothing.csv"])]
    out = ["--out", path / "page.html"] if command == "report" else []
    # Standard output of an audit is the audit alone.
    assert sentence in getattr(run(command, *arguments, *out), "stderr" if command == "audit" else "stdout")
    if command == "report":
        assert sentence in (path / "page.html").read_text()
    else:
        assert json.loads(run(command, *arguments, "--json").stdout)["worth"] == sentence


def test_explain_shows_the_rules_themselves(ruled):
    path, _ = ruled
    text = run("explain", path / "rules.dafh", path / "rules.csv").stdout
    for said in (
        "Exactly the rows for which job is cook.",
        "Everybody else: the rows of no exception above.",
        "Gain of its classifier over the pooled classifier on calibration rows: +",
        "served by its own classifier",
        "Compared with the other rows: ",
        "sex = ",
    ):
        assert said in text
    assert "Approximate" not in text


def test_show_has_the_rules(ruled):
    path, _ = ruled
    text = run("show", path / "rules.dafh").stdout
    shown = r"^Group 0: +job is cook; \d+\.\d% of rows; gain \+.* percentage points \(.* to .*\); its own classifier$"
    assert re.search(shown, text, re.MULTILINE)
    assert "Groups:      1 exception, and everybody else: 2 of 2 groups have their own classifier." in text


@pytest.mark.slow
def test_a_network_says_which_epoch_it_kept(ruled, tmp_path):
    path, _ = ruled
    arguments = ["--target", "paid", "--method", "network", "--groups", "2", "--pooled", "linear"]
    result = run("fit", path / "rules.csv", *arguments, "--out", tmp_path / "net.dafh")
    assert result.exit_code == 0, result.output
    assert "; kept epoch " in result.stderr
    text = run("explain", tmp_path / "net.dafh", path / "rules.csv").stdout
    assert "Exactly" not in text
