"""Everything that writes: how it is called, what is there before, and how its files are compared."""

import atexit
import contextlib
import functools
import gzip
import hashlib
import json
import pickle
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from unittest import mock

from click.testing import CliRunner

from command_line import people
from dafh.cli import main
from dafh.models.container import read_content
from large import grouped_table, written_in_files
from watched import content as state_content
from watched import watched_folder

_FIT = ("--target", "hired", "--sensitive", "sex", "--test-size", "0.3", "--by", "rules", "--out", "model.dafh")
_OLD = "old content\n"


@dataclass(frozen=True)
class Command:
    """A command, called in a folder that has `files` from an earlier run."""

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], None]
    patch: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext
    check: tuple[str, ...] = ()
    """A command that must refuse files of two runs side by side."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables; {folder} is the folder it runs in."""


def run_here(folder, *arguments):
    """Run a command that prepares something; it must succeed."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == 0, done.output


# ---- what is there before ----


def _people(folder):
    people().to_csv(folder / "people.csv", index=False)


def _fitted(folder):
    _people(folder)
    run_here(folder, "fit", "people.csv", *_FIT, "--seed", "1")


def _with_old(*names):
    def prepare(folder):
        _fitted(folder)
        for name in names:
            (folder / name).write_text(_OLD)

    return prepare


def _watched(*months):
    def prepare(folder):
        for path in watched_folder().iterdir():
            shutil.copy(path, folder)
        for month in months:
            run_here(folder, "watch", "model.dafh", f"{month}.csv", "--state", "watch.db")

    return prepare


def _large(folder):
    written_in_files(folder / "rows", grouped_table(2600), 3)


def _raw_file(folder):
    (folder / "published.csv").write_bytes(_RAW)


# ---- what is changed, so that a command needs no network and no hours ----

_RAW = b"age;y\n30;1\n" * 5000


def _small_sample():
    return mock.patch("dafh.large.SAMPLE_SIZE", 2000)


def _one_data_set():
    from dafh.datasets.registry import Dataset, RawFile, Wheel

    file = RawFile(
        name="raw.csv",
        sha256=hashlib.sha256(_RAW).hexdigest(),
        url=Path("published.csv").absolute().as_uri(),
        wheel=Wheel("carrier", "1.0"),
        members=(),
    )
    stack = contextlib.ExitStack()
    known = mock.Mock(spec=Dataset, files=(file,))
    stack.enter_context(mock.patch("dafh.datasets.registry.DATASETS", {"raw": known}))
    return stack


def _made_up_table():
    table = people()
    found = mock.Mock(X=table[["age", "job"]], sensitive_features=table[["sex"]], y=table["hired"])
    return mock.patch("dafh.datasets.FETCHERS", {"made-up": lambda: found})


def _experiment(folder):
    """Run the experiment in a process of its own, since JAX has threads and this one makes children by fork."""
    run = "import pickle; from dafh.study.synthetic import run_synthetic as run"
    code = f"{run}; pickle.dump(run(400), open('made', 'wb'))"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder)


def _known_experiment():
    made = pickle.loads(Path("made").read_bytes())
    return mock.patch("dafh.study.synthetic.run_synthetic", return_value=made)


def _made_up_results():
    def execute(job):
        figures = dict.fromkeys(("accuracy", "pr", "log_loss", "auc", "calibration", "disagreement"), 0.8)
        figures |= dict.fromkeys(("violations", "n_models", "n_found", "max_gain", "max_envy_gap"), 1)
        figures |= {"disparity_change": 0.1, "smallest_share": 0.3, "p_values": [0.5], "seconds": 1.0}
        return [{**figures, "accuracy": 0.8 + job.split / 100}]

    return mock.patch("dafh.study.reproduce.execute", execute)


COMMANDS = [
    Command(
        "fit",
        ("fit", "people.csv", *_FIT, "--seed", "2"),
        _fitted,
        check=("audit", "model.dafh", "model.test.parquet"),
    ),
    Command(
        "predict to CSV", ("predict", "model.dafh", "people.csv", "--out", "scored.csv"), _with_old("scored.csv")
    ),
    Command(
        "predict to packed CSV",
        ("predict", "model.dafh", "people.csv", "--out", "scored.csv.gz"),
        _with_old("scored.csv.gz"),
    ),
    Command(
        "predict to Parquet",
        ("predict", "model.dafh", "people.csv", "--out", "scored.parquet"),
        _with_old("scored.parquet"),
    ),
    Command(
        "report",
        ("report", "model.dafh", "model.test.parquet", "--seeds", "0", "--out", "report.html"),
        _with_old("report.html"),
    ),
    Command("export", ("export", "model.dafh", "--out", "score.sql"), _with_old("score.sql")),
    Command("watch, first batch", ("watch", "model.dafh", "1.csv", "--state", "watch.db"), _watched()),
    Command("watch", ("watch", "model.dafh", "2.csv", "--state", "watch.db"), _watched(1)),
    Command(
        "watch --apply",
        ("watch", "model.dafh", "8.csv", "--state", "watch.db", "--apply"),
        _watched(5, 6, 7),
    ),
    Command("watch report", ("watch", "report", "watch.db", "--out", "watch.html"), _watched(1)),
    Command(
        "data fetch",
        ("data", "fetch", "raw"),
        _raw_file,
        _one_data_set,
        environment={"XDG_CACHE_HOME": "{folder}/cache"},
    ),
    Command("data export", ("data", "export", "made-up", "--out", "people.csv"), _people, _made_up_table),
    Command("reproduce", ("reproduce", "k2", "--splits", "2", "--out", "study"), lambda _: None, _made_up_results),
    Command(
        "fit of a large table",
        ("fit", "rows", "--target", "y", "--by", "rules", "--test-size", "0.2", "--out", "model.dafh"),
        _large,
        _small_sample,
        check=("audit", "model.dafh", "model.test.parquet"),
    ),
    Command(
        "fit of a large table on a cluster",
        ("fit", "{folder}/rows", "--target", "y", "--by", "rules", "--out", "model.dafh", "--cluster", "{cluster}"),
        _large,
        _small_sample,
    ),
    Command("demo", ("demo", "--out", "figure.svg"), _experiment, _known_experiment),
]  # fmt: skip


@functools.cache
def cluster():
    """Start a scheduler with one worker, in processes of their own; return its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    dask = [sys.executable, "-m", "dask"]
    where = ["--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--no-dashboard"]
    worker = [address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", tempfile.mkdtemp()]
    for command in ([*dask, "scheduler", *where], [*dask, "worker", *worker]):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(process.kill)
    # Asked by another process: a client has threads, and this one makes children by fork.
    code = f"from distributed import Client; Client({address!r}).wait_for_workers(1, timeout=60)"
    subprocess.run([sys.executable, "-c", code], check=True)
    return address


# ---- how files are compared ----

_TIMES = re.compile(rb"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00)?")


def content(folder):
    """What every file below a folder holds, but for the times at which it was written; half a file is None.

    Databases are recovered first, as whoever opens them next does: call this on a copy.
    """
    found = {}
    for path in [*Path(folder).rglob("*.db"), *Path(folder).rglob("*.sqlite")]:
        with contextlib.closing(sqlite3.connect(path)) as store:
            store.execute("SELECT count(*) FROM sqlite_master").fetchall()
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            try:
                found[str(path.relative_to(folder))] = _canonical(path)
            except Exception:
                found[str(path.relative_to(folder))] = None
    # A state without a batch is as good as no state.
    return {name: value for name, value in found.items() if value != b"" or not name.endswith(".db")}


def _canonical(path):
    data = path.read_bytes()
    if path.suffix == ".dafh":
        return _model(data)
    if path.suffix == ".gz" and data != _OLD.encode():
        return gzip.decompress(data)
    if path.name == "watch.db":
        return json.dumps(state_content(path), default=repr, sort_keys=True) if data else b""
    if path.suffix == ".sqlite":
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
            return sorted(store.execute("SELECT key, job, rows FROM results").fetchall())
    return _TIMES.sub(b"", data)


def _model(data):
    parts = read_content(BytesIO(data), len(data))
    card = {name: value for name, value in json.loads(parts.card).items() if name != "written"}
    return json.dumps(card, sort_keys=True), parts.description, parts.arrays


def is_whole(name, found, before, after):
    """Whether a file is that of before, that of after, or, where jobs are stored one by one, something between."""
    if found in (before, after):
        return True
    return name.endswith(".sqlite") and found is not None and set(found) <= set(after)
