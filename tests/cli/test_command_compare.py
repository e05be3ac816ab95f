"""dafh compare: files in, who loses out, and exit codes that a job can rely on."""

import json
import re

import numpy as np
import pytest

from command_line import people, run
from dafh import DAFHClassifier, compare, save, tabular_pipeline
from dafh.cli.decided import read_decided


@pytest.fixture
def table():
    frame = people(3000, seed=1).drop(columns="person_id")
    rng = np.random.default_rng(0)
    other = np.where(frame["hired"] == "yes", "no", "yes")
    frame["old"] = np.where(rng.random(3000) < 0.8, frame["hired"], other)
    frame["new"] = np.where((frame["age"] > 60) & (rng.random(3000) < 0.4), other, frame["old"])
    return frame


@pytest.fixture
def csv(table, tmp_path):
    path = tmp_path / "rows.csv"
    table.to_csv(path, index=False)
    return path


def test_who_loses_stands_in_the_answer_and_the_exit_code_says_so(csv):
    asked = ("compare", csv, "--target", "hired", "--old", "old", "--new", "new")
    result = run(*asked, "--fail-on-harm")
    assert result.exit_code == 1
    assert "age is above 60" in result.stdout
    assert len(result.stdout.splitlines()) <= 40
    assert run(*asked).exit_code == 0
    assert run("compare", csv, "--target", "hired", "--old", "new", "--new", "old", "--fail-on-harm").exit_code == 0


def test_the_file_gives_the_same_answer_as_the_frame(table, csv):
    result = run(
        "compare",
        csv,
        "--target",
        "hired",
        "--old",
        "old",
        "--new",
        "new",
        "--sensitive",
        "sex",
        "--drop",
        "since",
        "--json",
    )
    answer = json.loads(result.stdout)
    features = table[["age", "job"]]
    expected = compare(table["hired"], table["old"], table["new"], features, table[["sex"]])
    assert answer["headline"] == expected.headline
    assert [group["group"] for group in answer["groups"]] == expected.to_frame()["group"].tolist()
    assert [group["gain"] for group in answer["groups"]] == pytest.approx(expected.to_frame()["gain"].tolist())


def test_parquet_and_patterns_give_the_same_answer(table, csv, tmp_path):
    (tmp_path / "parts").mkdir()
    for number in range(3):
        table.iloc[number * 1000 : (number + 1) * 1000].to_parquet(tmp_path / "parts" / f"{number}.parquet")
    asked = ("--target", "hired", "--old", "old", "--new", "new", "--json")
    one, several = (json.loads(run("compare", path, *asked).stdout) for path in (csv, tmp_path / "parts"))
    assert one["groups"] == several["groups"]


def test_scores_are_cut_where_asked(table, csv, tmp_path):
    scores = table.assign(new=np.where(table["new"] == "yes", 0.6, 0.2))
    scores.to_csv(tmp_path / "scores.csv", index=False)
    asked = ("--target", "hired", "--old", "old", "--new", "new", "--json")
    labels = json.loads(run("compare", csv, *asked).stdout)
    assert json.loads(run("compare", tmp_path / "scores.csv", *asked).stdout)["groups"] == labels["groups"]
    higher = json.loads(run("compare", tmp_path / "scores.csv", *asked, "--new-cutoff", "0.7").stdout)
    assert higher["differ"] > labels["differ"]


def test_a_model_file_decides_about_the_rows(table, csv, tmp_path):
    features = table[["age", "job"]]
    model = tabular_pipeline(DAFHClassifier(1, random_state=0)).fit(features, table["hired"])
    save(model, tmp_path / "model.dafh")
    result = run("compare", csv, "--target", "hired", "--old", "old", "--new", tmp_path / "model.dafh", "--json")
    expected = (model.predict(features) != table["old"]).mean()
    assert json.loads(result.stdout)["differ"] == pytest.approx(expected)


def test_without_a_target_it_says_who_is_decided_differently(csv):
    result = run("compare", csv, "--old", "old", "--new", "new", "--drop", "hired", "--json")
    assert not json.loads(result.stdout)["is_labelled"]


def test_rows_without_a_target_are_left_out(table, csv, tmp_path):
    gaps = table.assign(hired=table["hired"].where(np.arange(3000) % 3 > 0))
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    result = run("compare", tmp_path / "gaps.csv", "--target", "hired", "--old", "old", "--new", "new", "--json")
    assert json.loads(result.stdout)["rows"] == 2000


def test_the_page_names_who_loses(csv, tmp_path):
    page = tmp_path / "page.html"
    result = run("compare", csv, "--target", "hired", "--old", "old", "--new", "new", "--out", page)
    assert result.exit_code == 0
    text = page.read_text()
    assert "age is above 60" in text
    assert text.count("<h1>") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        ("--old", "no_such_column", "--new", "new", "--target", "hired"),
        ("--old", "old", "--new", "new", "--target", "no_such_column"),
        ("--old", "old", "--new", "age", "--target", "hired"),
        ("--old", "old", "--new", "new", "--target", "hired", "--costs", "fp=1"),
        ("--old", "old", "--new", "new", "--target", "hired", "--sensitive", "no_such_column"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(csv, wrong):
    result = run("compare", csv, *wrong)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_audit_explain_and_report_name_the_groups_that_a_model_fails(tmp_path):
    frame = people(3000, seed=2)[["age", "job", "sex"]]
    rng = np.random.default_rng(0)
    frame["hired"] = np.where(rng.random(3000) < np.where(frame["age"] > 60, 0.5, 0.95), "yes", "no")
    model = tabular_pipeline(DAFHClassifier(1, random_state=0)).fit(frame[["age", "job"]], frame["hired"])
    save(model, tmp_path / "model.dafh")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    asked = (tmp_path / "model.dafh", tmp_path / "rows.csv", "--target", "hired", "--sensitive", "sex")
    for command in ("audit", "explain"):
        result = run(command, *asked)
        assert result.exit_code == 0
        assert re.search(r"age is above (59|6[0-2])\b", result.stdout), result.stdout
    assert run("report", *asked, "--out", tmp_path / "report.html").exit_code == 0
    assert re.search(r"age is above (59|6[0-2])\b", (tmp_path / "report.html").read_text())


def test_a_dask_frame_gives_the_same_answer_as_a_table_in_memory(table):
    dask_frame = pytest.importorskip("dask.dataframe")
    rows, _ = read_decided(dask_frame.from_pandas(table, npartitions=3), "old", "new", target="hired")
    features = table.drop(columns=["old", "new", "hired", "since"])
    expected = compare(table["hired"], table["old"], table["new"], features)
    found = compare(**{**rows, "X": rows["X"].drop(columns="since")})
    assert found.to_frame().equals(expected.to_frame())
