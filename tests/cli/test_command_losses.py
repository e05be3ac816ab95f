"""What must not be harmed, and for whom, on the command line: losses, costs, persons, time."""

import json

import numpy as np
import pandas as pd
import pytest

from command_line import run
from dafh import AuditResult, load
from dafh.cli.model_file import ModelFile
from dafh.cli.options import LOSSES
from dafh.cli.training import TrainingTable
from dafh.columns.read import DataFile
from dafh.evaluation.losses import LOSS_NAMES
from models import workers

ABOUT_ROWS = ["--sensitive", "sex,age", "--person", "customer", "--time", "seen", "--test-size", "0.3"]


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """A folder with a table in which each customer has three rows, in no order of time, and a model of it."""
    path = tmp_path_factory.mktemp("visits")
    data, rng = workers(1500), np.random.default_rng(0)
    table = data.X.drop(columns="since").join(data.sensitive).assign(paid=data.y, age=rng.integers(18, 80, 1500))
    days = pd.to_timedelta(rng.permutation(1500), unit="D")
    table["customer"], table["seen"] = 1000 + np.arange(1500) // 3, pd.Timestamp("2020-01-01") + days
    table.assign(seen=table["seen"].dt.strftime("%Y-%m-%d")).to_csv(path / "visits.csv", index=False)
    arguments = ["--target", "paid", "--method", "exceptions", "--groups", "2", *ABOUT_ROWS, "--costs", "fp=1,fn=4"]
    result = run("fit", path / "visits.csv", *arguments, "--out", path / "m.dafh")
    assert result.exit_code == 0, result.output
    (path / "fit.txt").write_text(result.output)
    return path


def training(path, **options):
    return TrainingTable.read(DataFile(path / "visits.csv"), "paid", **options)


def trained(path, table):
    return pd.read_csv(path / "visits.csv").loc[table.features.index]


# ---- fit ----


def test_fit_says_for_every_group_why_it_kept_or_lost_its_own_classifier(visits):
    report, text = load(visits / "m.dafh")[-1].guard_report_, (visits / "fit.txt").read_text()
    for group, reason in enumerate(report.table["reason"]):
        kept = " keeps its own classifier" if report.serves[group] == group else ""
        assert report.sentence_of(group).startswith(f"Group {group}{kept}: {reason}")
        assert text.count(f"{report.sentence_of(group)}\n") == 1


def test_no_person_is_on_both_sides_and_the_last_rows_are_set_aside(visits):
    kept = pd.read_parquet(visits / "m.test.parquet")
    table = training(visits, sensitive=["sex,age"], person="customer", time="seen", test_size=0.3)
    assert not set(kept["customer"]) & set(trained(visits, table)["customer"])
    assert len(kept) == 450
    latest = pd.concat([kept, trained(visits, table)]).groupby("customer")["seen"].max()
    assert latest[sorted(set(kept["customer"]))].min() > latest.drop(set(kept["customer"])).max()


def test_a_time_alone_sets_the_very_last_rows_aside(visits):
    table = training(visits, time="seen", test_size=0.2)
    assert len(table.test_rows) == 300
    assert table.test_rows["seen"].min() > trained(visits, table)["seen"].max()


def test_persons_alone_are_drawn_whole(visits):
    table = training(visits, person="customer", test_size=0.3)
    counts = table.test_rows["customer"].value_counts()
    assert (counts == 3).all()
    assert len(counts) == 150
    assert table.test_rows["seen"].min() < trained(visits, table)["seen"].max()


def test_show_says_where_decisions_are_cut(visits):
    assert "Cut-off:     a probability of 0.2\n" in run("show", visits / "m.dafh").stdout


# ---- audit and report ----


def test_an_audit_asks_about_what_the_guard_protects_and_counts_persons(visits):
    values = json.loads(run("audit", visits / "m.dafh", visits / "m.test.parquet", "--json").stdout)
    opened = ModelFile.open(visits / "m.dafh")
    rows = opened.read(DataFile(visits / "m.test.parquet"))
    labels = opened.model.classes_[rows.codes[:, 0]]
    assert rows.persons.nunique() == 150
    assert list(rows.sensitive.columns) == ["sex", "age"]
    expected = AuditResult.of(
        opened.model, rows.features, labels, sensitive_features=rows.sensitive, persons=rows.persons
    )
    assert values["losses"] == ["cost"]
    assert values["questions"] == expected.to_dict()["questions"]
    assert values["totals"] == expected.to_dict()["totals"]
    assert [row["group"] for row in values["rates"]][:3] == ["all rows", "0", "1"]


def test_losses_costs_and_persons_of_an_audit_can_be_given(visits):
    def asked(*options):
        return json.loads(run("audit", visits / "m.dafh", visits / "m.test.parquet", *options, "--json").stdout)

    assert asked("--losses", "error,fnr")["losses"] == ["error", "fnr"]
    assert {row["loss"] for row in asked("--losses", "error,fnr")["questions"]} == {"error", "fnr"}
    dear, cheap = (asked("--costs", f"fp=1,fn={cost}")["totals"][0] for cost in (40, 4))
    assert dear["loss"] == "cost"
    assert dear["own_loss"] > cheap["own_loss"] == asked()["totals"][0]["own_loss"]
    # Every row by itself: more units, and a shorter interval than for persons.
    single = pd.read_parquet(visits / "m.test.parquet").assign(row=range(450))
    single.to_parquet(visits / "single.parquet")
    by_row = json.loads(run("audit", visits / "m.dafh", visits / "single.parquet", "--person", "row", "--json").stdout)
    for one, other in zip(by_row["questions"], asked()["questions"], strict=True):
        assert one["gap"] == pytest.approx(other["gap"])
        assert one["own_worse"] + one["own_better"] >= other["own_worse"] + other["own_better"]


def test_a_table_without_the_persons_of_the_training_says_so(visits):
    pd.read_parquet(visits / "m.test.parquet").drop(columns="customer").to_parquet(visits / "nobody.parquet")
    result = run("audit", visits / "m.dafh", visits / "nobody.parquet")
    assert "no column 'customer', which says which rows belong to one person: each row counts" in result.stderr
    assert "customer" not in run("audit", visits / "m.dafh", visits / "m.test.parquet").stderr


def test_a_report_takes_the_options_of_an_audit(visits, tmp_path):
    files, out = (visits / "m.dafh", visits / "m.test.parquet"), tmp_path / "r.html"
    result = run("report", *files, "--losses", "error,fpr", "--person", "customer", "--out", out)
    assert result.exit_code == 0, result.output
    assert "rate of false positives" in out.read_text() or "false positive rate" in out.read_text()


# ---- bad options: one sentence, exit code 2 ----


def bad_options(model="model.dafh", csv="visits.csv"):
    fit = ["fit", csv, "--target", "paid", "--out", "never.dafh"]
    return {
        "'fp=1' is not of the form fp=1,fn=5": [*fit, "--costs", "fp=1"],
        "'fp=1,fn=-5' is not of the form": [*fit, "--costs", "fp=1,fn=-5"],
        "'fp=1,fn=inf' is not of the form": [*fit, "--costs", "fp=1,fn=inf"],
        "'fp=1,fp=2' is not of the form": [*fit, "--costs", "fp=1,fp=2"],
        "'fp=1,fn=x' is not of the form": ["audit", model, csv, "--costs", "fp=1,fn=x"],
        "'accuracy' is not a loss: choose from error, fpr, fnr, cost": ["audit", model, csv, "--losses", "accuracy"],
        "an empty list is not a loss": ["audit", model, csv, "--losses", " , "],
        "no column 'sx'; did you mean 'sex'?": [*fit, "--sensitive", "sx"],
        "no column 'custom'; did you mean 'customer'?": [*fit, "--person", "custom"],
        "no column 'sen'; did you mean 'seen'?": [*fit, "--time", "sen"],
        "'job', which says when rows were observed, holds neither dates nor numbers": [*fit, "--time", "job"],
        "'hours', which says when rows were observed, has no readable value in": [*fit, "--time", "hours"],
        "'paid' cannot have a second role": [*fit, "--sensitive", "paid"],
        "no column 'who', with the person of each row": ["audit", model, csv, "--person", "who"],
    }


@pytest.mark.parametrize("sentence", bad_options())
def test_bad_options_are_refused_in_one_sentence(visits, sentence, monkeypatch):
    monkeypatch.chdir(visits)
    result = run(*bad_options(visits / "m.dafh")[sentence])
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith(("dafh:", "Error:"))]) == 1
    assert not (visits / "never.dafh").exists()


def test_costs_of_three_labels_are_refused(visits, tmp_path):
    pd.read_csv(visits / "visits.csv").to_csv(tmp_path / "t.csv", index=False)
    arguments = ["--target", "job", "--method", "exceptions", "--groups", "1", "--out", tmp_path / "m.dafh"]
    result = run("fit", tmp_path / "t.csv", *arguments, "--costs", "fp=1,fn=2")
    assert result.exit_code == 2
    assert "two classes" in result.stderr


def test_the_losses_of_the_command_line_are_all_there_are():
    assert LOSSES == LOSS_NAMES


def test_a_class_that_is_left_alone_by_the_split_is_refused(tmp_path):
    table = pd.DataFrame({"x": np.arange(100.0) % 7, "y": np.repeat([0, 1], [60, 40]), "day": np.arange(100)})
    table.to_csv(tmp_path / "t.csv", index=False)
    result = run("fit", tmp_path / "t.csv", "--target", "y", "--time", "day", "--test-size", "0.5")
    assert result.exit_code == 2
    assert "The rows left to train on have one value of 'y' only." in result.stderr
