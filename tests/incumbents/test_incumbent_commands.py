"""Scores, decisions and weights of a table on the command line; models that were saved from Python; who repeats."""

import json

import numpy as np
import pandas as pd
import pytest

from command_line import people, run
from dafh import AuditResult, DAFHClassifier, Scorecard, load, save, tabular_pipeline
from models import workers

pytestmark = pytest.mark.filterwarnings("ignore::dafh.exceptions.GroupsEncodeLabelWarning")


def scored(n=400, seed=0):
    """People with the score of a model in use, its decisions, and weights."""
    rng = np.random.default_rng(seed)
    table = people(n, seed)
    known = np.where(table["hired"] == "yes", 0.6, -0.6) + rng.normal(0, 1, n)
    return table.assign(
        score=(1 / (1 + np.exp(-known))).round(4),
        approved=np.where(known > -0.3, "yes", "no"),
        weight=rng.choice([0.5, 1.0, 2.0], n),
    )


FIT = ("--target", "hired", "--method", "exceptions", "--groups", "2", "--test-size", "0.3")


@pytest.fixture(scope="module")
def in_use(tmp_path_factory):
    """A table with a score and decisions, and a model fitted on top of them."""
    folder = tmp_path_factory.mktemp("in_use")
    scored().to_csv(folder / "people.csv", index=False)
    more = ["--pooled", "score", "--costs", "fp=2,fn=3", "--weight", "weight"]
    result = run("fit", folder / "people.csv", *FIT, *more, "--out", folder / "model.dafh")
    assert result.exit_code == 0, result.output
    return folder


def test_the_score_in_the_table_is_the_pooled_classifier(in_use):
    test = pd.read_parquet(in_use / "model.test.parquet")
    model = load(in_use / "model.dafh")
    every = model[-1].predict_all(model[0].transform(test[[*model[0].columns_]]))
    # Decisions are cut where the costs imply: 2 / (2 + 3).
    np.testing.assert_array_equal(every[:, -1], np.where(test["score"] > 0.4, "yes", "no"))


def test_a_column_of_labels_has_the_decisions_of_the_model_in_use(in_use, tmp_path):
    result = run("fit", in_use / "people.csv", *FIT, "--pooled", "approved", "--out", tmp_path / "model.dafh")
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "model.dafh")
    assert (model[-1].pooled_.decision, model[-1].pooled_.score) == ("approved", None)


def test_a_table_without_the_score_is_refused_in_one_sentence(in_use, tmp_path):
    scored().drop(columns="score").to_csv(tmp_path / "new.csv", index=False)
    for command in ("predict", "audit"):
        result = run(command, in_use / "model.dafh", tmp_path / "new.csv")
        assert result.exit_code == 2
        assert "no column 'score'" in result.stderr


def test_an_audit_counts_the_weights_of_the_training_or_those_that_are_named(in_use):
    model, test = load(in_use / "model.dafh"), pd.read_parquet(in_use / "model.test.parquet")
    features = test[[*model[0].columns_]]
    weighted = AuditResult.of(model, features, test["hired"], sample_weight=test["weight"])
    assert weighted.accuracy != AuditResult.of(model, features, test["hired"]).accuracy
    for more in ((), ("--weight", "weight")):
        figures = run("audit", in_use / "model.dafh", in_use / "model.test.parquet", "--json", *more).stdout
        assert json.loads(figures)["accuracy"] == pytest.approx(weighted.accuracy)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pooled", "job"), "decisions of a model in use are labels of the target ('no' and 'yes')"),
        (("--pooled", "age"), "its scores numbers from 0 to 1"),
        (("--pooled", "scores"), "for the pooled classifier"),
        (("--pooled", "hired"), "cannot have a second role"),
        (("--weight", "job"), "needs a number from 0 on in every row"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_sentence(in_use, options, message):
    result = run("fit", in_use / "people.csv", "--target", "hired", *options, "--out", in_use / "never.dafh")
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (in_use / "never.dafh").exists()


# ---- models that were saved from Python ----

DATA = workers(500)


@pytest.fixture(scope="module")
def from_python(tmp_path_factory):
    folder = tmp_path_factory.mktemp("python")
    DATA.X.assign(hired=DATA.y, sex=DATA.sensitive["sex"]).to_csv(folder / "rows.csv", index=False)
    model = DAFHClassifier(2, random_state=0)
    save(model.fit(DATA.X, DATA.y), folder / "alone.dafh")
    save(tabular_pipeline(model).fit(DATA.X, DATA.y), folder / "pipeline.dafh")
    save(DAFHClassifier(1).fit(DATA.X[["experience"]].to_numpy(), DATA.y), folder / "array.dafh")
    save(Scorecard().fit(DATA.X, DATA.y), folder / "scorecard.dafh")
    return folder


@pytest.mark.parametrize("name", ["alone", pytest.param("pipeline", marks=pytest.mark.slow)])
def test_a_model_from_python_is_audited_reported_and_scored(name, from_python, tmp_path):
    path, rows = from_python / f"{name}.dafh", from_python / "rows.csv"
    told = run("audit", path, rows, "--target", "hired", "--sensitive", "sex", "--json")
    result = AuditResult.of(load(path), DATA.X, DATA.y, sensitive_features=DATA.sensitive)
    assert json.loads(told.stdout)["accuracy"] == pytest.approx(result.accuracy)
    assert json.loads(told.stdout)["recommendation"] == result.recommendation.to_dict()
    written = run("report", path, rows, "--target", "hired", "--out", tmp_path / "report.html")
    assert written.exit_code == 0, written.output
    assert "hired" in (tmp_path / "report.html").read_text()
    run("predict", path, rows, "--out", tmp_path / "scored.csv")
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "scored.csv")["prediction"], load(path).predict(DATA.X))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("alone", (), "name the target column"),
        ("array", ("--target", "hired"), "columns by name"),
        ("scorecard", ("--target", "hired"), "scorecard"),
    ],
)
def test_what_a_model_from_python_does_not_say_is_asked_for(name, options, message, from_python):
    result = run("audit", from_python / f"{name}.dafh", from_python / "rows.csv", *options)
    assert result.exit_code == 2
    assert message in result.stderr


# ---- what is noticed ----


def test_identifiers_that_repeat_are_left_out_and_an_option_is_offered(tmp_path):
    rng = np.random.default_rng(0)
    table = people(300).assign(id_student=rng.integers(1000, 1150, 300), shop_id=rng.integers(0, 9, 300))
    table.to_csv(tmp_path / "people.csv", index=False)
    result = run("fit", tmp_path / "people.csv", *FIT, "--out", tmp_path / "model.dafh")
    assert "add --person id_student" in result.stderr
    assert "shop_id" in load(tmp_path / "model.dafh")[-1].feature_names_in_
    named = run("fit", tmp_path / "people.csv", *FIT, "--person", "id_student", "--out", tmp_path / "model.dafh")
    assert "add --person" not in named.stderr
    kept = run("fit", tmp_path / "people.csv", *FIT, "--categories", "id_student", "--out", tmp_path / "model.dafh")
    assert "id_student" in kept.stderr
    assert "several rows share" not in kept.stderr


def test_unseen_categories_are_counted_when_a_file_is_scored(from_python, tmp_path):
    new = DATA.X.assign(job=DATA.X["job"].where(DATA.X.index % 50 > 0, "baker"), hired=DATA.y)
    new.loc[1, "job"] = None  # Missing, and not unseen.
    new.to_csv(tmp_path / "new.csv", index=False)
    note = "Column 'job': 10 of 500 rows"
    assert note in run("predict", from_python / "alone.dafh", tmp_path / "new.csv").stderr
    assert note in run("audit", from_python / "alone.dafh", tmp_path / "new.csv", "--target", "hired").stderr
    model = load(from_python / "alone.dafh")
    assert model.unseen_categories(new[DATA.X.columns]) == {"job": (10, "baker")}
    assert model.unseen_categories(DATA.X) == {}
