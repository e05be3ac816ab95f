"""Model files changed at random: refused in one sentence, or harmless."""

import json
import re
import time
import warnings

import numpy as np
import pytest

import dafh
from dafh import Scorecard
from dafh.exceptions import InputError
from model_files import SVC_TYPES, Parts, models

ODD_VALUES = [
    None, True, False, 0, 1, -1, 2, 7, 999, -(2**63), 2**63, 2**64 - 1, 10**12, 0.5, -1e300, 1e-300, 1e150, "", "x",
    "kind", "\ud83d\ude00", "posix.system", "n" * 3000, [], {}, [[]], [0, 0], {"array": 0}, {"kind": "foreign"},
    {"kind": "pipeline", "steps": []},
]  # fmt: skip
ODD_CELLS = [0, 1, -1, 2**31, -(2**63), np.nan, np.inf, -np.inf, 1e308, 5e-324]


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("valid")
    found = {}
    for name, (model, rows) in models().items():
        dafh.save(model, folder / name, trusted=SVC_TYPES)
        found[folder / name] = rows
    return found


def places(node):
    """Every container in a description, with its keys or positions."""
    if isinstance(node, dict | list):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield node, key
            yield from places(node[key])


def change_value(parts, rng):
    """Replace, remove, double or swap values somewhere in the description, in the tables or in the card."""
    where = [parts.model, parts.model, parts.model, parts.table, parts.names, parts.card][rng.integers(6)]
    found = list(places(where))
    if not found:
        return
    node, key = found[rng.integers(len(found))]
    other, at = found[rng.integers(len(found))]
    action = rng.integers(6)
    if action == 0:
        del node[key]
    elif action == 1 and isinstance(node, list):
        node.insert(key, json.loads(json.dumps(node[key])))
    elif action == 2:
        node[key], other[at] = json.loads(json.dumps([other[at], node[key]]))
    elif action == 3 and isinstance(node[key], int | float):
        node[key] = node[key] + int(rng.integers(-3, 4))
    elif action == 4 and isinstance(node, dict):
        node[str(rng.choice(["_in_fit", "n_jobs", "memory", "kind", "settings"]))] = node[key]
    else:
        node[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]


def change_array(parts, rng):
    """Set a cell to something odd, or a byte to anything."""
    number = int(rng.integers(len(parts.table)))
    array = parts.array(number)
    if not array.size:
        return
    if rng.random() < 0.5:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array.flat[rng.integers(array.size)] = np.array(ODD_CELLS[rng.integers(len(ODD_CELLS))]).astype(array.dtype)
    else:
        array.reshape(-1).view(np.uint8)[rng.integers(array.nbytes)] = rng.integers(256)
    parts.set_array(number, array)


def change_text(parts, rng):
    """Put another byte somewhere into the description."""
    text = bytearray(json.dumps({"arrays": parts.table, "column_names": parts.names, "model": parts.model}).encode())
    text[rng.integers(len(text))] = int(rng.choice(list(b'0123456789-.eE"[]{},:\\ntf \xff')))
    return bytes(text)


def changed_bytes(content, rng):
    """Flip, cut, insert or repeat bytes, without a new checksum."""
    at, length = int(rng.integers(len(content))), int(rng.integers(1, 50))
    return [
        content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :],
        content[:at],
        content[:at] + rng.bytes(length) + content[at:],
        content[:at] + content[at + length :],
        content[:at] + content[at : at + length] + content[at:],
    ][rng.integers(5)]


def change_file(path, target, rng):
    parts = Parts(path)
    action = rng.integers(8)
    if action == 0:
        target.write_bytes(changed_bytes(path.read_bytes(), rng))
        return
    for _ in range(rng.integers(1, 3)):
        if action <= 4:
            change_value(parts, rng)
        elif action <= 6:
            change_array(parts, rng)
    parts.write(target, description=change_text(parts, rng) if action == 7 else None)


OTHER_COLUMNS = re.compile(r"^(The feature names should match|X has \d+ features|sensitive_features has no column)")


def outcome(path, rows):
    """Load a file and use it in every way; anything but a refusal and a result fails the test."""
    try:
        model = dafh.load(path, trusted=SVC_TYPES)
    except InputError as error:
        return "refused" if "\n" not in str(error) and len(str(error)) < 1000 else "refused at length"
    try:
        use(model, rows)
    except ValueError as error:  # A changed model may ask for columns that these rows do not have.
        if not OTHER_COLUMNS.match(str(error)) and "are missing now" not in str(error):
            raise
    return "loaded"


def use(model, rows):
    for method in ("predict", "predict_proba", "predict_group"):
        if hasattr(model, method):
            assert len(getattr(model, method)(*rows)) == 20
    if len(rows) == 1 and hasattr(model, "predict_all"):
        model.predict_all(*rows)
    repr(model)
    for name in ("guard_report_", "rules_", "pooled_"):
        str(getattr(model, name, None))
    if isinstance(model, Scorecard):
        str(model)


def check_changes(valid, tmp_path, n_changes, seed):
    rng = np.random.default_rng(seed)
    counts = {"refused": 0, "loaded": 0}
    files = list(valid.items())
    for number in range(n_changes):
        path, rows = files[number % len(files)]
        target = tmp_path / "changed.dafh"
        change_file(path, target, rng)
        start = time.perf_counter()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            counts[outcome(target, rows)] += 1
        assert time.perf_counter() - start < 5
    return counts


def test_a_few_hundred_random_changes_are_refused_or_harmless(valid, tmp_path):
    counts = check_changes(valid, tmp_path, 300, seed=0)
    assert min(counts.values()) > 30


@pytest.mark.slow
def test_two_thousand_random_changes_are_refused_or_harmless(valid, tmp_path):
    counts = check_changes(valid, tmp_path, 2000, seed=1)
    assert min(counts.values()) > 200
