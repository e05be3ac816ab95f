"""A state survives kill -9, and two processes at once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from watched import content, watch, watched_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")


@pytest.fixture(scope="module", params=[3, pytest.param(40, marks=pytest.mark.slow)])
def killed(request, tmp_path_factory):
    """States that an update was killed over, with those before it and after it."""
    folder = tmp_path_factory.mktemp("killed")
    before, after = folder / "before.db", folder / "after.db"
    assert watch(before, 1).exit_code == 0
    shutil.copy(before, after)
    assert watch(after, 2).exit_code == 0
    script = Path(__file__).parent / "kill_trials.py"
    command = [sys.executable, script, watched_folder(), before, folder, str(request.param)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    assert done.stdout.split()[1:] == ["[0,", "0]"], done.stderr
    return [folder / f"{trial}.db" for trial in range(request.param)], content(before), content(after)


def test_a_killed_update_leaves_the_old_state_or_the_new_one(killed):
    states, before, after = killed
    found = [content(state) for state in states]
    assert all(one in (before, after) for one in found)
    assert before in found


def test_an_update_after_a_kill_ends_where_an_undisturbed_one_does(killed):
    states, before, after = killed
    for state in states:
        was_old = content(state) == before
        result = watch(state, 2)
        assert result.exit_code == 0, result.stderr
        assert ("given before" in result.stdout) != was_old
        assert content(state) == after


def test_of_two_processes_at_once_one_waits_for_the_other(killed):
    states, _, _ = killed
    found = content(states[0].parent / "both.db")
    assert sorted(name for _, name, *_ in found["batches"]) == ["1.csv", "2.csv", "3.csv"]
    assert [number for number, *_ in found["batches"]] == [1, 2, 3]
