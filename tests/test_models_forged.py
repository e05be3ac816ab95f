"""Model files from an attacker, who computes the checksum anew: refused in one sentence, quickly, in little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dafh
from dafh.exceptions import InputError
from dafh.models import read_card
from dafh.models.container import FORMAT
from model_files import SVC_TYPES, Parts, models, with_checksum
from model_forgeries import FORGERIES, TEXTS
from model_group_forgeries import GROUP_FORGERIES
from model_guard_forgeries import GUARD_FORGERIES


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """Valid files to forge from."""
    folder = tmp_path_factory.mktemp("valid")
    for name, (model, _) in models().items():
        dafh.save(model, folder / name, trusted=SVC_TYPES)
    return folder


@pytest.fixture(scope="module")
def forged(valid, tmp_path_factory):
    """Every forged file, with what should be said of it."""
    folder = tmp_path_factory.mktemp("forged")
    expected = {}
    for name, (source, change, reason) in {**FORGERIES, **GROUP_FORGERIES, **GUARD_FORGERIES}.items():
        parts = Parts(valid / source)
        change(parts)
        parts.write(folder / name)
        expected[name] = reason
    for name, (text, reason) in TEXTS.items():
        for part in ("card", "description"):
            Parts(valid / "dafh").write(folder / f"{part}: {name}", **{part: text})
            expected[f"{part}: {name}"] = reason
    for name, lengths in {"huge part": b"9999999999 0 0\n", "long line": b"1 " * 10**6, "no lengths": b"\n"}.items():
        (folder / name).write_bytes(with_checksum(lengths, FORMAT))
        expected[name] = ""
    return folder, expected


# Processor time: other tests may be running beside this one.
LOADER = """
import json, resource, sys, time
from pathlib import Path
import dafh
from dafh.exceptions import InputError
folder, warm_up, trusted = Path(sys.argv[1]), sys.argv[2], ["sklearn.svm._classes.SVC"]
dafh.load(warm_up, trusted=trusted)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, found = peak(), {}
for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_size):
    start = time.process_time()
    try:
        dafh.load(path, trusted=trusted)
        said = "loaded"
    except InputError as error:
        said = str(error)
    except BaseException as error:
        said = "FAILED " + repr(error)
    found[path.name] = said, time.process_time() - start, peak() - before
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def loaded(valid, forged):
    """What loading each forged file in a fresh process says, how long it takes, and the memory up to then."""
    command = [sys.executable, "-c", LOADER, str(forged[0]), str(valid / "foreign")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


def test_every_forged_file_is_refused_in_one_sentence(forged, loaded):
    folder, expected = forged
    wrong = {
        name: said
        for name, (said, _, _) in loaded.items()
        if not said.startswith(f"{folder / name} cannot be read: ")
        or expected[name] not in said.split(" cannot be read: ")[-1]  # Not in the name of the file.
        or "\n" in said
        or not said.endswith(".")
        or len(said) > len(str(folder / name)) + 400
    }
    assert not wrong
    assert set(loaded) == set(expected)


def test_every_forged_file_is_refused_within_a_second_and_200_mb(loaded):
    assert {name: seconds for name, (_, seconds, _) in loaded.items() if seconds > 1} == {}
    assert max(extra for _, _, extra in loaded.values()) < 200


def test_files_that_the_forgeries_are_made_of_are_valid(valid, tmp_path):
    for path in valid.iterdir():
        Parts(path).write(tmp_path / "copy")
        dafh.load(tmp_path / "copy", trusted=SVC_TYPES)


# ---- damage ----


@pytest.mark.parametrize("position", range(0, 100, 3))
def test_every_part_of_the_first_lines_counts(valid, tmp_path, position):
    content = bytearray((valid / "dafh").read_bytes())
    content[position] = ord("9") if content[position] != ord("9") else ord("8")
    (tmp_path / "damaged").write_bytes(content)
    with pytest.raises(InputError):
        dafh.load(tmp_path / "damaged")


def test_a_file_cut_short_is_refused(valid, tmp_path):
    content = (valid / "dafh").read_bytes()
    for length in (1, 5, 12, 80, len(content) // 2, len(content) - 1):
        (tmp_path / "cut").write_bytes(content[:length])
        with pytest.raises(InputError, match=r"checksum mismatch|not a dafh model file|malformed"):
            dafh.load(tmp_path / "cut")


def test_files_of_other_formats_are_refused_with_what_to_do(valid, tmp_path):
    content = (valid / "dafh").read_bytes()
    cases = {
        "is empty": b"",
        "not a dafh model file": b"PK\x03\x04 something else",
        "upgrade to read it": content.replace(b"model %d " % FORMAT, b"model %d " % (FORMAT + 1), 1),
        "format 2 is no longer read: fit and save the model again": b"dafh model 2 " + b"0" * 64 + b"\nPK",
        "malformed": b"dafh model " + b"1" * 5000 + b" x\n",
    }
    for sentence, changed in cases.items():
        (tmp_path / "bad").write_bytes(changed)
        with pytest.raises(InputError, match=sentence):
            dafh.load(tmp_path / "bad")


def test_what_is_no_file_is_refused(tmp_path):
    for place in (tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError, match="is not a file"):
            dafh.load(place)
    with pytest.raises(InputError, match="There is no model file"):
        dafh.load(tmp_path / "none.dafh")


WRONG = {"labels": 5, "settings": [1], "columns": "abc", "rows": "x", "guard": "x", "schema": 3, "guesses": [1],
         "dafh": None, "groups": True, "groups_by": None, "rules": [1], "losses": ["posix"], "threshold": 1.0,
         "data": "\ud800", "fingerprints": 5}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_card_with_a_wrong_entry_is_refused(valid, tmp_path, name):
    parts = Parts(valid / "dafh")
    parts.card[name] = WRONG[name]
    with pytest.raises(InputError, match="the model card is malformed"):
        read_card(parts.write(tmp_path / "wrong"))
