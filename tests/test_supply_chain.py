"""What development installs is known to the byte."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "release"))

from vulnerabilities import judge  # noqa: E402

LOCK = (ROOT / "requirements-dev.lock").read_text()
PINS = dict(re.findall(r"^([a-z0-9._-]+)==([^ ;]+)", LOCK, flags=re.M))


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_locked_file_has_a_hash_and_no_address():
    requirements = re.split(r"\n(?=\S)", LOCK[LOCK.index("\n", LOCK.index("make lock")) + 1 :].rstrip())
    assert len(requirements) == len(PINS) > 50
    assert all("--hash=sha256:" in requirement for requirement in requirements)
    assert "://" not in LOCK


def test_the_lock_has_the_versions_that_ci_runs():
    constraints = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), flags=re.M))
    known = {normal(name): version for name, version in constraints.items()}
    assert {name: PINS[name] for name in PINS if name in known} == {name: known[name] for name in PINS if name in known}


def test_the_lock_has_everything_that_development_asks_for():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(line for name in ("dask", "sql", "dev", "docs") for line in extras[name])]
    names = {normal(re.match(r"[\w.-]+", line)[0]) for line in asked} - {"dafh"}
    assert names <= set(PINS)


# ---- known vulnerabilities ----


def answer(**packages):
    return json.dumps({"dependencies": [{"name": name, "version": "1", **about} for name, about in packages.items()]})


SOUND = {"vulns": []}
BROKEN = {"vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
UNKNOWN = {"skip_reason": "not found"}


@pytest.mark.parametrize(
    ("found", "code", "text"),
    [
        (answer(numpy=SOUND, pandas=SOUND), 0, "2 packages, no vulnerability known to OSV."),
        (answer(numpy=SOUND, pandas=BROKEN), 1, "pandas 1: PYSEC-1, fixed in 2"),
        (answer(numpy=UNKNOWN, pandas=BROKEN), 1, "pandas 1: PYSEC-1, fixed in 2"),
        (answer(numpy=UNKNOWN, pandas=SOUND), 2, "Not checked: OSV has no data on 1 of 2 packages."),
        (answer(), 2, "Not checked: OSV has no data on 0 of 0 packages."),
        ("", 2, "Not checked: OSV cannot be reached."),
    ],
)
def test_packages_that_nobody_knows_are_not_called_safe(found, code, text):
    assert judge(found, "OSV") == (code, text)
