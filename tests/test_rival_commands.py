"""dafh fit --method: rivals from the command line, with predict, audit and report like any other model."""

import json

import pandas as pd
import pytest

from command_line import people, run
from dafh import load
from dafh.cli.fit import RIVALS as NAMES
from dafh.rivals.baselines import RIVALS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rivals")
    people(400).to_csv(folder / "people.csv", index=False)
    options = ("--target", "hired", "--sensitive", "sex", "--test-size", 0.25, "--method", "dro", "--groups", 3)
    result = run("fit", folder / "people.csv", *options, "--out", folder / "dro.dafh")
    assert result.exit_code == 0, result.output
    (folder / "fit.txt").write_text(result.output)
    return folder


def fit(folder, *options):
    return run("fit", folder / "people.csv", "--target", "hired", "--out", folder / "other.dafh", *options)


def test_the_command_knows_the_rivals_that_python_knows():
    assert set(NAMES) == set(RIVALS)


def test_fit_says_what_was_chosen_and_whom_the_rival_serves(folder):
    text = (folder / "fit.txt").read_text()
    assert "Of 6 settings, log-loss on selection rows chooses alpha 0." in text
    assert "of 3 clusters of rows, the pooled classifier the others." in text
    assert 'Guard "veto" on 300 calibration rows' in text
    assert "Next: dafh audit" in text


def test_a_rival_predicts_and_is_audited_like_any_other_model(folder):
    assert run("predict", folder / "dro.dafh", folder / "people.csv", "--out", folder / "s.csv").exit_code == 0
    scored = pd.read_csv(folder / "s.csv")
    assert len(scored) == 400
    assert set(scored["group"]) <= {0, 1, 2}
    audited = run("audit", folder / "dro.dafh", folder / "dro.test.parquet", "--json")
    assert {row["group"] for row in json.loads(audited.output)["named_groups"]} == {"sex = f", "sex = m"}
    report = run("report", folder / "dro.dafh", folder / "dro.test.parquet", "--json", "--seeds", 0)
    assert len(json.loads(report.output)["serving"]) == 3
    assert "DROClassifier" in run("show", folder / "dro.dafh").output


def test_without_guard_and_tuning_a_rival_serves_all_rows(folder):
    result = fit(folder, "--method", "jtt", "--model", "network", "--guard", "none", "--tune", "none")
    assert "jtt serves all rows; there is no guard." in result.output
    assert "settings" not in result.output
    model = load(folder / "other.dafh")[-1]
    assert (model.estimator.model, model.estimator.upweight, model.guard) == ("network", 6, None)


@pytest.mark.parametrize("pooled", ["linear", "scorecard", "boosting"])
def test_the_pooled_classifier_is_linear_unless_another_is_named(folder, pooled):
    named = () if pooled == "linear" else ("--pooled", pooled)
    fit(folder, "--method", "dro", "--tune", "none", "--guard", "none", *named)
    kinds = {"linear": "StandardizedLogisticRegression", "scorecard": "Scorecard", "boosting": "BoostedTrees"}
    assert type(load(folder / "other.dafh")[-1].pooled_).__name__ == kinds[pooled]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "arl", "--costs", "fp=1,fn=2"), "--costs has no meaning with --method arl: leave it out."),
        (("--method", "arl", "--threshold", 0.3), "--threshold has no meaning with --method arl"),
        (("--method", "arl", "--by", "rules"), "--by has no meaning with --method arl"),
        (("--method", "arl", "--incumbent-score", "age"), "--incumbent-score has no meaning"),
        (("--model", "network"), "--model is about a rival: name one with --method."),
        (("--tune", "antigone"), "--tune is about a rival: name one with --method."),
        (("--method", "zafar"), "'zafar' is not one of"),
        (("--method", "residual-boosting", "--model", "network"), "'residual-boosting' trains no network"),
        (("--method", "arl", "--guard", "none", "--protect", "sex"), "Only the guard protects columns"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_sentence(folder, options, message):
    result = fit(folder, *options)
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_table_that_is_read_in_pieces_is_too_large_for_a_rival(folder, monkeypatch):
    monkeypatch.setattr("dafh.large.SAMPLE_SIZE", 100)
    result = fit(folder, "--method", "arl")
    assert "arl is trained in memory, on at most 200,000 rows: take a sample of the table." in result.output
