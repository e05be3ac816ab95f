"""dafh watch: batches into a state file, and what is said about them."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from command_line import run
from dafh.monitor.store import WatchStore
from dafh.persistence import save
from models import rules_case
from watched import content, watch, watched_folder


@pytest.fixture
def state(tmp_path):
    return tmp_path / "watch.db"


@pytest.fixture(scope="module")
def year(tmp_path_factory):
    """A state after eight months, with a model that was changed on the way; returns both, and what was printed."""
    folder = tmp_path_factory.mktemp("year")
    state, model = folder / "watch.db", folder / "model.dafh"
    shutil.copy(watched_folder() / "model.dafh", model)
    printed = [watch(state, month, "--apply", model=model).stdout for month in range(1, 9)]
    return state, model, printed


# ---- batches ----


def test_a_batch_is_added_and_what_changed_is_printed(state):
    result = watch(state, 1)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Batch 1 (1.csv), 300 rows: 300 labelled.\n")
    assert watch(state, 2, "--name", "February").stdout.startswith("Batch 2 (February), 300 rows")


def test_the_same_batch_again_changes_nothing_whatever_the_order_of_its_rows(state, tmp_path):
    watch(state, 1)
    before = content(state)
    assert "given before, as batch 1 (1.csv): nothing is counted again" in watch(state, 1).stdout
    shuffled = pd.read_csv(watched_folder() / "1.csv", dtype=str).sample(frac=1, random_state=0)
    shuffled.to_csv(tmp_path / "again.csv", index=False)
    result = watch(state, tmp_path / "again.csv", "--json")
    assert json.loads(result.stdout)["repeated"] == 1
    assert content(state) == before


@pytest.mark.parametrize("options", [(), ("--id", "case")])
def test_late_labels_are_told_from_new_rows(state, tmp_path, options):
    table = pd.read_csv(watched_folder() / "1.csv", dtype=str)
    table.assign(hired=table["hired"].where(table.index < 100)).to_csv(tmp_path / "early.csv", index=False)
    first = watch(state, tmp_path / "early.csv", *options)
    assert "200 rows wait for labels. 100 with labels count when their batch has nearly all" in first.stdout
    late = table[100:] if not options else table
    pd.concat([late, pd.read_csv(watched_folder() / "2.csv", dtype=str)]).to_csv(tmp_path / "late.csv", index=False)
    result = json.loads(watch(state, tmp_path / "late.csv", *options, "--json").stdout)
    assert result["update"]["n_late"] == 200
    assert result["update"]["n_labelled"] == 600
    assert result["update"]["n_waiting"] == 0
    assert sum(row["rows"] for row in result["table"] if not row["part"]) == 600


def test_a_file_without_the_target_has_rows_without_labels(state, tmp_path):
    pd.read_csv(watched_folder() / "1.csv", dtype=str).drop(columns="hired").to_csv(tmp_path / "new.csv", index=False)
    result = watch(state, tmp_path / "new.csv")
    assert result.exit_code == 0, result.stderr
    assert "300 rows wait for labels" in result.stdout


def test_the_reference_is_that_of_the_training_rows(state):
    watch(state, 1)
    with WatchStore(state) as store:
        assert store.plain_state()["reference"]["n_rows"] == 1200
        assert (pd.DataFrame(store.batches()[0].drift)["rows"] == 300).all()


# ---- alarms and service ----


def test_an_alarm_fails_until_something_is_done_about_it(tmp_path):
    state, model = tmp_path / "watch.db", tmp_path / "model.dafh"
    shutil.copy(watched_folder() / "model.dafh", model)
    codes = [watch(state, month, "--fail-on-alarm", model=model).exit_code for month in (1, 5, 6, 7)]
    assert codes[0] == 0
    assert codes[-1] == 1
    again = watch(state, 7, "--fail-on-alarm", model=model)
    assert again.exit_code == 1
    assert "Alarm still standing: group" in again.stdout
    assert "--apply takes them out of service" in again.stdout
    assert run("watch", "report", state, "--out", tmp_path / "watch.html").stdout.startswith("ALARM: group ")
    applied = watch(state, 8, "--apply", "--fail-on-alarm", model=model)
    assert applied.exit_code == 0
    assert "served by the pooled classifier instead of its own" in applied.stdout
    # At once, and not only after the next batch.
    assert run("watch", "report", state, "--out", tmp_path / "watch.html").stdout.startswith("ACTED UPON: ")


def test_apply_replaces_the_model_file_which_the_state_then_knows(year):
    state, model, printed = year
    assert any("served by the pooled classifier instead of its own" in text for text in printed)
    shown = run("show", model).stdout
    assert "is served by the pooled classifier" in shown
    assert "of train.csv" in shown
    with WatchStore(state) as store:
        assert len(store.models()) == 2
        assert store.service()[0].after == "pooled"
        assert [batch.number for batch in store.batches()] == list(range(1, 9))


def test_a_model_file_that_was_not_put_in_place_is_mentioned_and_then_replaced(year, tmp_path):
    state, model = tmp_path / "watch.db", tmp_path / "model.dafh"
    shutil.copy(year[0], state)
    shutil.copy(watched_folder() / "model.dafh", model)  # As if the process was killed before the file was replaced.
    assert "is older than the last change of who serves whom" in watch(state, 8, model=model).stderr
    applied = watch(state, 8, "--apply", model=model)
    assert applied.exit_code == 0
    assert "its successor in the state has replaced it" in applied.stderr
    assert model.read_bytes() == year[1].read_bytes()


def test_json_has_all_that_is_printed(state):
    for month in (1, 5, 6, 7):
        result = json.loads(watch(state, month, "--json").stdout)
    assert set(result) == {"update", "repeated", "changes", "standing", "table", "levels", "drift", "notes"}
    assert result["standing"][0]["kind"] == "harm"
    assert result["standing"][0]["sentence"].startswith(("Group", "sex"))


# ---- what is refused ----


def test_a_state_of_another_model_is_refused(state, folder):
    watch(state, 1)
    before = content(state)
    result = run("watch", folder / "model.dafh", folder / "people.csv", "--state", state)
    assert result.exit_code == 2
    assert "is the state of another model (model.dafh)" in result.stderr
    assert content(state) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--level", "0.1"), "was begun with level = 0.05"),
        (("--losses", "error,fnr"), "was begun with losses = ['error']"),
        (("--sensitive", "job"), "was begun with these sensitive columns: sex"),
        (("--id", "nothing"), "no column 'nothing'"),
    ],
)
def test_what_was_settled_with_the_first_batch_cannot_change(state, options, message):
    watch(state, 1)
    before = content(state)
    result = watch(state, 2, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert content(state) == before


def test_training_rows_are_no_evidence(state):
    result = watch(state, watched_folder() / "train.csv")
    assert result.exit_code == 2
    assert "The model was trained on the rows of train.csv: they are no evidence." in result.stderr
    assert WatchStore(state).is_empty


# ---- the page ----


def test_the_page_says_what_the_state_holds(year, tmp_path):
    out = tmp_path / "watch.html"
    result = run("watch", "report", year[0], "--out", out, "--title", "Hiring")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("ACTED UPON: ")
    page = out.read_text(encoding="utf-8")
    assert "<title>Hiring</title>" in page
    assert "because harm was shown" not in page  # The table has the reason in a cell of its own.
    assert "harm was shown at row" in page
    assert page.count('class="chart"') >= 4


def test_the_page_as_json_has_gains_in_each_batch(year):
    summary = json.loads(run("watch", "report", year[0], "--json").stdout)
    questions, harmed = pd.DataFrame(summary["questions"]), summary["service"][0]["group"]
    whole = questions[(questions["part"] == "") & (questions["group"] == harmed)]
    assert len(whole) == 8
    rows = np.diff(whole["weight"], prepend=0)
    assert (whole["in_batch"] * rows).cumsum().iloc[-1] / rows.sum() == pytest.approx(whole["gain"].iloc[-1])
    assert whole["in_batch"].iloc[:4].mean() > 0 > whole["in_batch"].iloc[4:].mean()


# ---- weights, and models saved from Python ----


def test_weights_need_the_largest_one(state, tmp_path):
    table = pd.read_csv(watched_folder() / "1.csv", dtype=str)
    table.assign(w=np.tile([1, 2], 150)).to_csv(tmp_path / "weighed.csv", index=False)
    result = watch(state, tmp_path / "weighed.csv", "--weight", "w")
    assert result.exit_code == 2
    assert "Weights need the largest one" in result.stderr
    assert watch(state, tmp_path / "weighed.csv", "--weight", "w", "--largest-weight", "2").exit_code == 0
    with WatchStore(state) as store:
        weight = sum(row["weight"] for row in store.batches()[0].evidence if not row["part"])
    assert weight == 225  # 150 rows of weight 2 count fully, 150 rows half.
    assert "was begun with largest_weight = 2.0" in watch(state, 2, "--largest-weight", "3").stderr


def test_a_model_that_was_saved_from_python_is_told_its_target(state, tmp_path):
    save(rules_case().model, tmp_path / "python.dafh")
    unnamed = watch(state, 1, model=tmp_path / "python.dafh")
    assert "does not know its target" in unnamed.stderr
    assert "300 rows wait for labels" in unnamed.stdout
    named = watch(state, 2, "--target", "hired", model=tmp_path / "python.dafh")
    assert "300 labelled" in named.stdout
