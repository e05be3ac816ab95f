"""A command that is killed while it writes leaves the old file or the new one, never half of one.

A process forks a child for every trial. The child runs a command, and kills itself before or after the call by which a
file takes its name, or by which SQLite ends its transaction.
"""

import json
import os
import shutil
import signal
import subprocess
import sys

import pandas as pd
import pytest

from command_line import people, run
from watched import content, watch, watched_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")

TRIALS = """
import json, os, signal, sqlite3, sys
# Once for all children.
import pyarrow.parquet, sqlglot
import dafh.cli.training, dafh.estimators.dafh, dafh.persistence
import dafh.report.page, dafh.cli.model_file, dafh.sql, dafh.monitor
from dafh.cli import main

dafh.report.page._chart_library = lambda: "window.drawChart = null;"  # To put it together takes seconds.

def run(folder, moment, arguments):
    replace, connect = os.replace, sqlite3.connect

    def killed(call, *arguments):
        if moment == "after":
            call(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    class Connection(sqlite3.Connection):
        def execute(self, statement, *more):
            call = super().execute
            return killed(call, statement) if statement == "COMMIT" else call(statement, *more)

    os.replace = lambda *paths: killed(replace, *paths)
    sqlite3.connect = lambda *arguments, **options: connect(*arguments, **options, factory=Connection)
    os.chdir(folder)
    main(arguments)

signals = []
for trial in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        run(*trial)
    signals.append(os.WTERMSIG(os.waitpid(child, 0)[1]))
print(json.dumps(signals))
"""
FIT = ("fit", "people.csv", "--target", "hired", "--method", "exceptions", "--out")
COMMANDS = {
    "new.dafh": (*FIT, "new.dafh", "--seed", "1"),
    "scored.csv.gz": ("predict", "model.dafh", "people.csv", "--out", "scored.csv.gz"),
    "scored.parquet": ("predict", "model.dafh", "people.csv", "--out", "scored.parquet"),
    "page.html": ("report", "model.dafh", "people.csv", "--out", "page.html"),
    "model.sql": ("export", "model.dafh", "--out", "model.sql"),
    "state.db": ("watch", "model.dafh", "2.csv", "--state", "state.db"),
}
MOMENTS = ("before", "after")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders after their commands were killed, by result and moment; each had an old file in place of the result."""
    prepared = tmp_path_factory.mktemp("prepared")
    people(120).to_csv(prepared / "people.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(prepared)
        assert run(*FIT, "model.dafh").exit_code == 0
    for out in COMMANDS:
        (prepared / out).write_text("old")
    trials = {}
    for out, command in COMMANDS.items():
        for moment in MOMENTS:
            folder = tmp_path_factory.mktemp("killed") / "folder"
            shutil.copytree(prepared if out != "state.db" else watched_folder(), folder)
            if out == "state.db":
                assert watch(folder / out, 1).exit_code == 0
            trials[out, moment] = (str(folder), moment, command)
    command = [sys.executable, "-c", TRIALS, json.dumps(list(trials.values()))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [signal.SIGKILL] * len(trials), done.stdout + done.stderr
    return {trial: type(prepared)(folder) for trial, (folder, *_) in trials.items()}


@pytest.mark.parametrize("out", [out for out in COMMANDS if out != "state.db"])
def test_a_command_killed_before_its_file_has_its_name_leaves_the_old_one(folders, out):
    assert (folders[out, "before"] / out).read_text() == "old"


def test_a_command_killed_afterwards_leaves_a_whole_file(folders):
    assert run("show", folders["new.dafh", "after"] / "new.dafh").exit_code == 0
    assert len(pd.read_csv(folders["scored.csv.gz", "after"] / "scored.csv.gz")) == 120
    assert len(pd.read_parquet(folders["scored.parquet", "after"] / "scored.parquet")) == 120
    assert (folders["page.html", "after"] / "page.html").read_text().rstrip().endswith("</html>")
    assert "SELECT" in (folders["model.sql", "after"] / "model.sql").read_text()


def test_what_a_kill_leaves_does_not_stand_in_the_way_of_the_next_run(folders, monkeypatch):
    monkeypatch.chdir(folders["scored.parquet", "before"])
    assert run(*COMMANDS["scored.parquet"]).exit_code == 0
    assert len(pd.read_parquet("scored.parquet")) == 120


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_update_leaves_the_old_state_or_the_new_one(folders, tmp_path, moment):
    after = tmp_path / "after.db"
    assert watch(after, 1).exit_code == 0
    before = content(after)
    assert watch(after, 2).exit_code == 0
    state = folders["state.db", moment] / "state.db"
    assert content(state) == (before if moment == "before" else content(after))
    again = watch(state, 2)
    assert ("given before" in again.stdout) == (moment == "after"), again.output
    assert content(state) == content(after)
