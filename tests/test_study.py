"""The store, the runner, and the tables and figures of the paper."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

from dafh.cli import main
from dafh.datasets import make_paper_synthetic
from dafh.exceptions import InputError
from dafh.groups.recipe import Recipe
from dafh.plots.study import attribute_panels, study_convergence
from dafh.study import grid, published
from dafh.study.grid import Setting, execute_grid, grid_settings, sgd_logistic
from dafh.study.methods import Split, execute
from dafh.study.reproduce import ARTEFACTS, Request, chosen_settings, display, fingerprint, provenance, reproduce
from dafh.study.runner import Job, RemainingTime, run_jobs
from dafh.study.store import ResultStore
from dafh.study.tables import TABLES, cells_won, paired_mean, significant_after_holm, summarize, with_yardsticks
from dafh.text import markdown
from study_jobs import toy
from study_results import results_of

JOBS = [Job("honest", "toy", method, 2, split) for method in ("one", "two") for split in range(4)]


# ---- store and runner ----


def test_jobs_run_once_and_are_kept(tmp_path):
    calls = []
    with ResultStore(tmp_path / "r.sqlite") as store:
        for expected in (8, 0):
            assert run_jobs(JOBS, store, lambda job: calls.append(job) or toy(job)) == expected
        frame = store.frame([job.key for job in JOBS])
    assert len(calls) == len(frame) == 8
    assert frame.loc[0, ["dataset", "method", "split", "accuracy"]].tolist() == ["toy", "one", 0, 0.3]


def test_the_same_jobs_give_the_same_table_in_whatever_order_they_ran(tmp_path):
    tables = []
    for number, jobs in enumerate((JOBS, JOBS[::-1])):
        with ResultStore(tmp_path / f"{number}.sqlite") as store:
            run_jobs(jobs, store, toy)
            tables.append(store.frame(sorted(job.key for job in JOBS)).to_csv())
    assert tables[0] == tables[1]


def test_processes_give_the_same_results_as_one(tmp_path):
    frames = []
    for n_jobs in (1, 2):
        with ResultStore(tmp_path / f"{n_jobs}.sqlite") as store:
            run_jobs(JOBS, store, toy, n_jobs=n_jobs)
            frames.append(store.frame([job.key for job in JOBS]))
    pd.testing.assert_frame_equal(*frames)


def test_a_job_that_fails_leaves_the_others_in_place(tmp_path):
    def fails(job):
        if job.split == 2:
            raise RuntimeError("broken")
        return toy(job)

    with ResultStore(tmp_path / "r.sqlite") as store:
        with pytest.raises(RuntimeError, match="broken"):
            run_jobs(JOBS, store, fails)
        assert store.keys() == {"honest/toy/one/K2/split0", "honest/toy/one/K2/split1"}


def test_results_of_another_version_are_made_again_not_mixed_in(tmp_path):
    with ResultStore(tmp_path / "r.sqlite") as store:
        assert [run_jobs(JOBS, store, toy, made_by=made_by) for made_by in ("dafh 1", "dafh 1", "dafh 2")] == [8, 0, 8]
        assert len(store.keys()) == len(store.keys("dafh 2")) == 8
        assert store.keys("dafh 1") == set()
        assert set(store.seconds()) == {job.key for job in JOBS}


def test_another_programs_database_is_left_alone(tmp_path):
    path = tmp_path / "results.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE results (id, a)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="belongs to another program"):
        ResultStore(path)
    assert path.read_bytes() == before


def test_what_is_no_store_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "text").write_text("hello, this is no database, and never was one")
    with pytest.raises(InputError, match="cannot be used to store results"):
        ResultStore(tmp_path / "text")
    ResultStore(tmp_path / "old").close()
    with sqlite3.connect(tmp_path / "old") as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(InputError, match="another version"):
        ResultStore(tmp_path / "old")


def test_the_remaining_time_knows_slow_jobs_from_quick_ones():
    remaining = RemainingTime(JOBS, n_jobs=2)
    assert remaining.seconds() is None
    remaining.done(JOBS[0], 10.0)
    assert remaining.seconds() == pytest.approx((3 * 10 + 4 * 10) / 2)
    remaining.done(JOBS[4], 1.0)
    assert remaining.seconds() == pytest.approx((3 * 10 + 3 * 1) / 2)


# A study in a process of its own for every folder it reads; forks, because importing takes longer than the study.
SMALL_STUDY = """
import os, sys, time
from pathlib import Path
from dafh.study.runner import Job, run_jobs
from dafh.study.store import ResultStore

def slow(job):
    time.sleep(0.03)
    return [{"accuracy": job.split / 7, "p_values": [0.1 * job.split]}]

def study(folder):
    jobs = [Job("honest", "toy", "m", 2, split) for split in range(60)]
    with ResultStore(folder / "results.sqlite") as store:
        print(os.getpid(), flush=True)
        run_jobs(jobs, store, slow)
        store.frame(sorted(job.key for job in jobs)).to_csv(folder / "results.csv", index=False)

for folder in sys.stdin:
    child = os.fork()
    if child == 0:
        study(Path(folder.strip()))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_study_that_is_killed_ten_times_ends_as_if_nothing_had_happened(tmp_path):
    whole, killed = (tmp_path / name for name in ("whole", "killed"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    moments = random.Random(0)
    with subprocess.Popen([sys.executable, "-c", SMALL_STUDY], **pipes) as studies:

        def ends_with(folder, kill):
            folder.mkdir(exist_ok=True)
            studies.stdin.write(f"{folder}\n")
            process = int(studies.stdout.readline())
            if kill:
                time.sleep(moments.uniform(0, 0.15))
                os.kill(process, signal.SIGKILL)
            return int(studies.stdout.readline())

        assert ends_with(whole, kill=False) == 0
        assert [ends_with(killed, kill=True) for _ in range(10)] == [-signal.SIGKILL] * 10
        with ResultStore(killed / "results.sqlite") as store:
            assert 0 < len(store.keys()) < 60  # Killed in the middle, not before or after.
        assert ends_with(killed, kill=False) == 0
    assert (whole / "results.csv").read_bytes() == (killed / "results.csv").read_bytes()


# ---- the paper's grid ----


@pytest.fixture
def small_split(monkeypatch):
    """The synthetic data in place of a real set."""
    data = make_paper_synthetic(300, random_state=0)
    X, y = data.X.to_numpy(), (data.y == 1) * 1
    people = data.sensitive_features
    tables = data.X.iloc[:150], data.X.iloc[150:]
    split = Split(*tables, X[:150], y[:150], people[:150], X[150:], y[150:], people[150:])
    monkeypatch.setattr(grid, "load_split", lambda *_: split)
    return split


def test_the_grid_has_the_papers_96_settings():
    settings = grid_settings()
    assert len(set(settings)) == 96
    assert all(Setting(*chosen) in settings for chosen in published.CHOSEN_SETTINGS.values())


# Each size of the batches is compiled anew.
@pytest.mark.parametrize(
    ("method", "batch_sizes"),
    [
        ("grid", (256,)),
        pytest.param("grid", grid.BATCH_SIZES, marks=pytest.mark.slow),
        pytest.param("grid-cold", grid.BATCH_SIZES, marks=pytest.mark.slow),
    ],
)
def test_the_grid_is_trained_as_populations_and_measured_setting_by_setting(
    small_split, monkeypatch, method, batch_sizes
):
    monkeypatch.setattr(grid, "BATCH_SIZES", batch_sizes)
    rows = pd.DataFrame(execute_grid(Job("paper", "toy", method, 3, 0)))
    assert len(rows) == 48 * len(batch_sizes)
    assert len(rows[list(Setting._fields)].drop_duplicates()) == len(rows)
    assert rows["pr"].between(0, 1).all()
    assert rows["accuracy"].nunique() > 10


@pytest.mark.parametrize("method", ["grid-clustering", "grid-trivial", "grid-pooled"])
def test_baselines_have_the_settings_of_their_sgd(small_split, method):
    rows = pd.DataFrame(execute_grid(Job("paper", "toy", method, 2, 0)))
    assert len(rows) == 2 * 3 * 2
    assert (rows["n_models"] == (1 if method == "grid-pooled" else 2)).all()


def test_the_papers_sgd_is_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.logistic(size=4000) > 0) * 1
    layer = sgd_logistic(X, y, 256, seed=0)[4, 1e-1]
    exact = LogisticRegression(C=1e6).fit(X, y)
    np.testing.assert_allclose(layer.weight[0][:, 0], exact.coef_[0], atol=0.15)


def test_convergence_is_recorded_step_by_step(small_split, monkeypatch):
    monkeypatch.setitem(grid.CHOSEN_SETTINGS, "toy", (256, 3, 1e-3, 1e-2, 10.0))
    rows = pd.DataFrame(execute_grid(Job("paper", "toy", "grid-convergence", 2, 0)))
    assert rows.groupby("part")["step"].max().to_dict() == {"test": 40, "train": 40}
    chart = study_convergence(rows.assign(split=0), {"pr": 0.8, "accuracy": 0.6})
    assert len(chart.to_dict()["concat"]) == 2


# ---- tables ----


@pytest.mark.parametrize("name", list(TABLES))
def test_every_table_has_the_published_numbers_the_yardsticks_and_the_differences(name):
    table = with_yardsticks(TABLES[name]())
    summary = summarize(table, results_of(table), "honest")
    ours = "Scorecard and groups" if name == "defaults" else "DAFH"
    yardsticks = {"Pooled, converged", "Scorecard for all rows", "Gradient boosting", "Majority class"}
    assert {*yardsticks, ours} <= set(summary["method"])
    mine = summary[summary["method"] == ours]
    np.testing.assert_allclose(mine["to pooled"], 1.0)
    for metric in table.metrics:
        np.testing.assert_allclose(mine[f"{metric} difference"], mine[metric] - mine[f"{metric} published"])
    shown = display(summary, table.metrics)
    assert "nan" not in markdown(shown)
    assert len(shown) == len(table.lines)


def test_published_values_keep_to_their_table():
    assert published.K2["violent", "dafh"]["pr"].mean == 91.74
    assert published.CLUSTERING["violent", "dafh"][0]["pr"].mean == 96.28


def test_a_cell_is_won_only_by_both_numbers():
    table = with_yardsticks(TABLES["clustering"]())
    summary = summarize(table, results_of(table), "honest")
    won, lost = cells_won(summary)
    assert len(won) + len(lost) == 15
    assert "arrest K = 2" in won
    assert "bank K = 2" in lost


def test_holm_runs_over_all_tests_of_all_models():
    table = TABLES["clustering"]()
    results = results_of(table)
    assert significant_after_holm(results) == (0, 3 * 15 * 3 * 2)  # Three ways, 15 cells, 3 splits, 2 tests each.
    first = results.index[results["method"] == "dafh"][0]
    results["p_values"] = [[1e-9, 0.5] if index == first else p for index, p in results["p_values"].items()]
    assert significant_after_holm(results)[0] == 1


def test_paired_mean_by_hand():
    mean, low, high = paired_mean([1.0, 2.0, 3.0])
    assert mean == 2
    assert high - mean == pytest.approx(4.302653 * 1 / np.sqrt(3), rel=1e-6)
    assert low == pytest.approx(4 - high)
    assert np.isnan(paired_mean([1.0])[1])


def test_the_paper_protocol_chooses_on_test_rows_and_says_so(tmp_path):
    table = with_yardsticks(TABLES["manual"]())
    results = results_of(table, "paper")
    better = results[results["method"] == "grid"].assign(accuracy=0.99)
    settings = dict.fromkeys(Setting._fields, 0.0)
    frame = pd.concat([results.assign(**settings), better.assign(**settings | {"penalty": 10.0})], ignore_index=True)
    summary = summarize(table, frame, "paper")
    assert summary.loc[summary["method"] == "DAFH", "accuracy"].item() == pytest.approx(99)
    assert "TEST rows" in provenance(Request.of(("manual",), "paper", 3, tmp_path))


def test_chosen_settings_stand_beside_the_published_ones():
    rows = []
    for dataset in ("adult", "arrest", "violent", "german", "bank"):
        for setting in grid_settings():
            accuracy = 0.9 if setting.penalty == 1.0 and setting.epochs == 4 else 0.8
            rows.append(
                setting._asdict()
                | {"dataset": dataset, "method": "grid", "n_groups": 2, "pr": 0.9, "accuracy": accuracy}
            )
    warm = pd.DataFrame(rows)
    chosen = chosen_settings(pd.concat([warm, warm.assign(method="grid-cold", accuracy=0.5)], ignore_index=True))
    assert chosen["penalty λ"].tolist()[:2] == ["10", "1"]
    assert chosen.groupby("start")["our accuracy"].max().to_dict() == {"pooled": "90.00", "random": "50.00"}


def test_composition_is_that_of_one_model(tmp_path):
    """Group 0 of one model has nothing to do with group 0 of another: nothing is averaged over splits."""
    jobs = Request.of(("composition",), "honest", 5, tmp_path).jobs()
    assert [(job.method, job.split) for job in jobs] == [("composition", 0)]
    shares = pd.DataFrame(
        {"group": [0, 1], "race_group": "White", "sex": "Male", "age_group": "25 - 45", "share": [0.75, 0.5]}
    )
    drawn = attribute_panels(shares).to_dict()["datasets"].popitem()[1]
    assert [(row["group"], row["share"]) for row in drawn] == [("group 0", 0.75), ("group 1", 0.5)]


# ---- requests and the command ----


def test_everything_is_asked_for_by_default_and_no_job_twice(tmp_path):
    request = Request.of((), "honest", 5, tmp_path)
    assert request.names == ARTEFACTS
    jobs = request.jobs()
    assert len(jobs) == len(set(jobs))
    assert sum(job.method == "dafh" for job in jobs) == 5 * 15
    assert {job.protocol for job in jobs if job.method in ("pooled", "scorecard", "boosting", "default")} == {"honest"}


def test_the_full_paper_protocol_is_7200_fits(tmp_path):
    jobs = Request.of(("all",), "paper", 5, tmp_path).jobs()
    assert sum(job.method == "grid" for job in jobs) * len(grid_settings()) == 7200


def test_reproduce_writes_tables_and_runs_nothing_twice(tmp_path, monkeypatch):
    calls = []

    def fake(job):
        calls.append(job)
        row = results_of(TABLES["manual"]()).iloc[0].to_dict()
        return [{k: v for k, v in row.items() if k not in ("protocol", "dataset", "method", "n_groups", "split")}]

    monkeypatch.setattr("dafh.study.reproduce.execute", fake)
    request = Request.of(("manual",), "honest", 2, tmp_path)
    files = reproduce(request)
    assert sorted(path.name for path in files) == ["honest-manual.csv", "honest-manual.md", "honest-manual.tex"]
    first = [path.read_bytes() for path in files]
    n_calls = len(calls)
    assert [path.read_bytes() for path in reproduce(request)] == first
    assert len(calls) == n_calls == 2 * 7
    text = (tmp_path / "tables" / "honest-manual.md").read_text()
    for part in ("81.39", "Majority class", "seeds 0 to 1", "scikit-learn"):
        assert part in text


def test_tables_chosen_on_test_rows_never_carry_the_honest_label(tmp_path, monkeypatch):
    def fake(job):
        return [s._asdict() | {"pr": 0.9, "accuracy": 0.8} for s in grid_settings()]

    monkeypatch.setattr("dafh.study.reproduce.execute", fake)
    files = reproduce(Request.of(("hyperparameters",), "honest", 2, tmp_path))
    assert {path.stem for path in files} == {"paper-hyperparameters", "paper-chosen"}
    assert all("TEST rows" in path.read_text() for path in files if path.suffix == ".md")
    assert "λ" not in (tmp_path / "tables" / "paper-chosen.tex").read_text()


def test_results_are_made_again_when_a_default_of_the_method_changes(monkeypatch):
    before = fingerprint()
    assert fingerprint() == before
    defaults = Recipe.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "max_epochs", 7)
    assert fingerprint() != before


def test_a_folder_that_cannot_hold_the_output_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("dafh.study.reproduce.execute", None)
    (tmp_path / "figures").write_text("in the way")
    with pytest.raises(InputError, match="Tables and figures cannot be written to"):
        reproduce(Request.of(("manual",), "honest", 2, tmp_path))


def test_unknown_names_are_refused_with_the_known_ones(tmp_path):
    run = CliRunner().invoke(main, ["reproduce", "tabel", "--out", str(tmp_path / "x")])
    assert run.exit_code == 2
    assert "'tabel' cannot be reproduced: choose from hyperparameters, defaults, k2, clustering" in run.output


@pytest.mark.skipif(not os.environ.get("DAFH_DATA"), reason="needs the data sets at hand: DAFH_DATA names no folder")
def test_the_command_makes_a_real_table(tmp_path):
    out = tmp_path / "out"
    run = CliRunner().invoke(main, ["reproduce", "convergence", "--splits", "2", "--out", str(out)])
    assert run.exit_code == 0, run.output
    assert (out / "figures" / "convergence.png").stat().st_size > 10_000
    rows = execute(Job("honest", "german", "trivial", 2, 0))
    assert 0.6 < rows[0]["accuracy"] < 0.9
    assert Path(run.output.splitlines()[-1]).exists()
