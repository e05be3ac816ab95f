"""A few kills, full disks and all odd surroundings: what `make kill` tries at length.

One process tries them all, so that imports and fits are paid for once.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from killing import faults
from killing.environments import CASES

# Monitors are killed in test_watch_kills.py, too.
QUICK = ("fit", "predict to packed CSV", "data fetch")
pytestmark = pytest.mark.skipif(not faults.can_be_made(), reason="faults need Linux and a C compiler")


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """What became of the trials, and of the surroundings by their names."""
    size = ["--kills", "7", "--full", "1", *(f"--only={name}" for name in QUICK)]
    paths = [str(Path(__file__).parent), *sys.path]
    environment = faults.compiled(tmp_path_factory.mktemp("faults"))
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "killing.trials", "--json", "--surroundings", *size]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    found = json.loads(done.stdout)
    assert {count["command"] for count in found["commands"]} == set(QUICK)
    return found


def test_a_command_that_is_killed_loses_nothing_and_leaves_nothing_half_or_mixed(tried):
    for count in tried["commands"]:
        assert count["kills"] >= 2
        assert count["lost"] == count["partial"] == count["mixed"] == 0, count["reasons"]


def test_the_next_run_gets_as_far_as_if_nothing_had_happened_and_sweeps_up(tried):
    for count in tried["commands"]:
        assert count["not_resumed"] == count["stray"] == 0, count["reasons"]


def test_a_full_disk_is_one_sentence_and_the_old_files(tried):
    for count in tried["commands"]:
        assert count["full"] >= 1
        assert count["full_wrong"] == 0, count["reasons"]


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_in_odd_surroundings_a_command_ends_with_its_exit_code_and_at_most_one_sentence(tried, name):
    found = [ended for ended in tried["surroundings"] if ended["name"] == name]
    if not found:
        pytest.skip("only root can prepare this")
    assert found[0]["wrong"] == []
