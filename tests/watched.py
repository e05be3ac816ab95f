"""Rows for monitors: the world in which a model was trained, and others."""

import atexit
import copy
import functools
import io
import shutil
import sqlite3
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from command_line import run
from models import rules_case, workers


@functools.cache
def good_rows(n=1500, seed=1):
    """Fresh rows of the world in which `rules_case` was trained: both groups gain by their own classifiers."""
    return workers(n, seed=seed)


@functools.cache
def bad_rows(n=1500, seed=2):
    """Rows of another world, in which experience no longer depends on the job: own classifiers do harm."""
    return workers(n, seed=seed, flip=0.0)


def fresh_model():
    """A copy that a test may change."""
    return copy.deepcopy(rules_case().model)


def parts_of(rows, size):
    """The rows in batches."""
    for first in range(0, len(rows.y), size):
        part = slice(first, first + size)
        yield SimpleNamespace(X=rows.X[part], y=rows.y[part], sensitive=rows.sensitive[part])


def same_evidence(one, other):
    """Compare two monitors by all that they count."""
    columns = ["rows", "own_worse", "own_better", "gain", "harm_evidence", "benefit_evidence"]
    np.testing.assert_allclose(one.table()[columns], other.table()[columns], rtol=1e-9)


# ---- files ----


@functools.cache
def watched_folder():
    """A folder with a model file, and rows of eight months: good ones, and from the fifth on bad ones."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    as_table(workers(1200)).to_csv(folder / "train.csv", index=False)
    options = ("--target", "hired", "--sensitive", "sex", "--groups", "2", "--method", "exceptions", "--out")
    assert run("fit", folder / "train.csv", *options, folder / "model.dafh").exit_code == 0
    for month in range(1, 9):
        rows = workers(300, seed=100 + month, flip=float(month < 5))
        as_table(rows, month).to_csv(folder / f"{month}.csv", index=False)
    return folder


def as_table(rows, month=0):
    """Rows as a file has them, with an identifier of each."""
    case = [f"{month}-{i}" for i in range(len(rows.y))]
    return rows.X.assign(case=case, sex=rows.sensitive["sex"].to_numpy(), hired=rows.y)


def watch(state, month, *options, model="model.dafh"):
    """Add a month to a state."""
    folder = watched_folder()
    data = folder / f"{month}.csv" if isinstance(month, int) else month
    model = folder / model if isinstance(model, str) else model
    return run("watch", model, data, "--state", state, *options)


def content(state):
    """All that a state holds, but for the times at which it was written."""
    found = {}
    # Not read-only: if the writer was killed within its write, the first reader undoes the half of it on the disk.
    with sqlite3.connect(f"file:{state}?mode=rw", uri=True) as connection:
        plain, arrays = connection.execute("SELECT plain, arrays FROM state").fetchone() or ("", None)
        found["state"] = plain
        if arrays is not None:
            with np.load(io.BytesIO(arrays)) as known:
                found |= {name: values.tobytes() for name, values in known.items()}
        queries = {
            "batches": "SELECT number, fingerprint, json_remove(plain, '$.added') FROM batches ORDER BY number",
            "models": "SELECT number, name FROM models ORDER BY number",
        }
        found |= {name: connection.execute(query).fetchall() for name, query in queries.items()}
    connection.close()
    return found
