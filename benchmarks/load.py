"""Threads, processes and days: predictions at the same time, a thousand fits in one process, a day of batches.

``python benchmarks/load.py`` writes benchmarks/load.md; names of parts (threads, processes, rules, network, monitor,
state) run only those, and write nothing. With ``--quick`` all is small, and nothing is written.
"""

import gc
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

import dafh
from dafh import DAFHClassifier, Monitor, Recipe
from dafh.tables.read import DataFile
from dafh.text import markdown
from dafh.workflows.training import TrainingTable, make_classifier
from dafh.workflows.watching import WatchSettings, watch_batch

HERE = Path(__file__).parent
N_THREADS = 8
BATCHES_A_DAY = 24 * 60


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    age, job = rng.integers(18, 80, n), rng.choice(["cook", "clerk", "pilot"], n)
    logit = 0.08 * (age - 45) * np.where(job == "cook", 1, -1)
    hired = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no")
    table = {"age": age, "job": job, "income": rng.normal(30, 8, n), "sex": rng.choice(["f", "m"], n), "hired": hired}
    return pd.DataFrame(table)


def features(table):
    return table.drop(columns=["hired", "sex"])


def resident():
    """Memory that this process holds, in MiB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# ---- at the same time ----


def threads(n_rows, repeats=3):
    """Eight threads that predict at the same time, against the same eight predictions one after the other."""
    train, rows = people(2_000), features(people(n_rows, seed=1))
    lines = []
    for name, settings in {
        "rules on a scorecard": {"groups": "rules"},
        "rules on logistic regression": {"groups": "rules", "pooled": "linear"},
        "network": {"groups": "network", "recipe": Recipe(max_epochs=2)},
    }.items():
        model = DAFHClassifier(2, random_state=0, **settings).fit(features(train), train["hired"])
        expected = model.predict_proba(rows)
        apart, together, same = [], [], True
        for _ in range(repeats):
            start = time.perf_counter()
            for _ in range(N_THREADS):
                model.predict_proba(rows)
            apart.append(time.perf_counter() - start)
            start = time.perf_counter()
            with ThreadPoolExecutor(N_THREADS) as pool:
                found = list(pool.map(lambda _, model=model: model.predict_proba(rows), range(N_THREADS)))
            together.append(time.perf_counter() - start)
            same &= all(np.array_equal(one, expected) for one in found)
        figure = f"{min(together) / min(apart):.2f} of the time of one after the other; {same_words(same)}"
        lines.append([f"8 threads predict {n_rows:,} rows each, {name}", figure])
    return lines


def same_words(same):
    return "same answers" if same else "OTHER ANSWERS"


def saved_model(folder):
    people(2_000).to_csv(folder / "train.csv", index=False)
    table = TrainingTable.read(DataFile(folder / "train.csv"), "hired", sensitive=["sex"])
    table.save(table.fit(make_classifier(table.schema, n_groups=2, groups="rules")), folder / "model.dafh")
    return folder / "model.dafh"


def processes(n_rows):
    """Eight commands at once, against the same eight one after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, rows = saved_model(folder), folder / "rows.csv"
        people(n_rows, seed=1).to_csv(rows, index=False)

        def begin(i):
            command = [
                sys.executable,
                "-m",
                "dafh",
                "predict",
                str(model),
                str(rows),
                "--out",
                str(folder / f"{i}.csv"),
            ]
            return subprocess.Popen(command, stderr=subprocess.DEVNULL)

        start = time.perf_counter()
        codes = [begin(i).wait() for i in range(N_THREADS)]
        apart, expected = time.perf_counter() - start, (folder / "0.csv").read_bytes()
        start = time.perf_counter()
        codes += [process.wait() for process in [begin(i) for i in range(N_THREADS)]]
        together = time.perf_counter() - start
        same = not any(codes) and all((folder / f"{i}.csv").read_bytes() == expected for i in range(N_THREADS))
        figure = f"{together / apart:.2f} of the time of one after the other; {same_words(same)}"
        return [[f"8 commands `dafh predict` on {n_rows:,} rows each", figure]]


# ---- a thousand fits ----


def fits(name, n_fits, **settings):
    """Memory after a tenth of the fits and after the last; every table has another number of rows and columns."""
    rng = np.random.default_rng(0)
    held, start = {}, time.perf_counter()
    for number in range(1, n_fits + 1):
        table = people(int(rng.integers(100, 300)), seed=number)
        more = {f"x{i}": rng.normal(size=len(table)) for i in range(number % 3)}
        model = DAFHClassifier(2, random_state=number, **settings)
        model.fit(features(table).assign(**more), table["hired"])
        if number in (n_fits // 10, n_fits):
            held[number] = resident()
    early, late = held.values()
    seconds = time.perf_counter() - start
    figure = f"{early:,.0f} MiB after {n_fits // 10:,}, {late:,.0f} MiB after {n_fits:,}: {late / early - 1:+.1%}"
    return [[f"{n_fits:,} fits in one process, {name}", f"{figure} ({seconds:,.0f} s)"]]


# ---- a day of batches ----


def monitor(n_batches, rows_each):
    """A day with a batch every minute, in memory."""
    train = people(2_000)
    model = DAFHClassifier(2, groups="rules", random_state=0).fit(features(train), train["hired"])
    watched = Monitor(model, reference=features(train))
    before, start = None, time.perf_counter()
    for number in range(n_batches):
        rows = people(rows_each, seed=10_000 + number)
        watched.update(features(rows), rows["hired"].to_numpy(), sensitive_features=rows[["sex"]])
        if number == n_batches // 10:
            before = resident()
    seconds, after = time.perf_counter() - start, resident()
    figure = f"{seconds:,.0f} s, {len(watched.alarms)} alarms; memory {after / before - 1:+.1%} since the first tenth"
    return [[f"`Monitor`: {n_batches:,} batches of {rows_each} rows", figure]]


def state(n_batches, rows_each):
    """The same by files: every batch is read, judged and stored."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, before, start = saved_model(folder), None, time.perf_counter()
        for number in range(n_batches):
            people(rows_each, seed=10_000 + number).to_csv(folder / "batch.csv", index=False)
            watch_batch(model, DataFile(folder / "batch.csv"), folder / "state.db", WatchSettings())
            if number == n_batches // 10:
                before = resident(), (time.perf_counter() - start) / (number + 1)
        seconds, after = time.perf_counter() - start, resident()
        size = (folder / "state.db").stat().st_size / 2**20
        figure = f"{seconds:,.0f} s; memory {after / before[0] - 1:+.1%} since the first tenth, state {size:.1f} MiB"
        return [[f"the same by `dafh watch`, with a state file: {n_batches:,} batches of {rows_each} rows", figure]]


def parts(quick):
    n_fits, network = (30, 10) if quick else (1_000, 200)
    recipe = Recipe(n_replicas=1, max_epochs=1, group_hidden=(8,), n_folds=1)
    return {
        "threads": lambda: threads(5_000 if quick else 50_000),
        "processes": lambda: processes(1_000 if quick else 50_000),
        "rules": lambda: fits("rules", n_fits, groups="rules"),
        "network": lambda: fits("network", network, groups="network", recipe=recipe),
        "monitor": lambda: monitor(50 if quick else BATCHES_A_DAY, 100),
        "state": lambda: state(10 if quick else BATCHES_A_DAY, 100),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    quick = "--quick" in sys.argv
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")]
    lines = []
    for name, work in parts(quick).items():
        if not chosen or name in chosen:
            found = work()
            print(*(": ".join(line) for line in found), sep="\n", flush=True)
            lines += found
    text = f"""# Load

{platform.machine()}, {platform.system()}, {os.cpu_count()} cores, dafh {dafh.__version__}. `python benchmarks/load.py`
makes this page. A day is a batch every minute.

{markdown(pd.DataFrame(lines, columns=["what", "figure"]))}

Aims: eight threads are no slower than one after the other, with the same answers; memory after the last of 1,000 fits
is within 5% of that after the first hundred.
"""
    if not quick and not chosen:
        (HERE / "load.md").write_text(text)
