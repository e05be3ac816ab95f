"""Speed and memory, side by side in one run and as ratios: these figures travel between machines, seconds do not.

Run with ``make bench``; the table goes to benchmarks/README.md.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from dafh import DAFHClassifier, Recipe, audit
from dafh.engine.objective import Rows, Settings
from dafh.engine.population import Plan, init_population, train_population
from dafh.tables.files import DataFile
from dafh.workflows.training import TrainingTable

SIZES = ((36_000, 103), (5_000, 12))
WIDTH, N_GROUPS, N_REPLICAS = 100, 2, 12
HERE = Path(__file__).parent
Table = list[tuple[str, str]]


def best_of(function, repeats=3):
    """Shortest of several runs: what the machine's other tenants add only ever lengthens one."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def epoch_time(run):
    """Time of one epoch, from runs of one and of five epochs: set-up cancels out."""
    run(1)
    return (best_of(lambda: run(5)) - best_of(lambda: run(1))) / 4


def make_data(n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] + rng.normal(size=n) > 0).astype(np.int32)


def mlp_epoch(X, y, batch):
    def run(epochs):
        model = MLPClassifier((WIDTH,), batch_size=batch, max_iter=epochs, n_iter_no_change=99, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)

    return epoch_time(run)


def replica_epoch(X, y, batch, n_replicas):
    n, d = X.shape
    rows = Rows(X, y, np.zeros((n, 1), np.float32), np.zeros(n, np.float32), np.ones(n, np.float32), np.full(n, -1))
    few = Rows(*(field[:batch] for field in rows))
    plan = Plan((d, WIDTH, N_GROUPS), (d, 1))
    start = init_population(plan, np.full(n_replicas, 0.3), np.random.SeedSequence(0))
    settings = Settings(*(np.full(n_replicas, value) for value in (0.5, 0.3, 1.0, 1.0, 1e-4, 1e-3, 5e-3, -1.0)))

    def run(epochs):
        rng = np.random.default_rng(0)
        train_population(rows, few, start, settings, plan, batch_size=batch, max_epochs=epochs, rng=rng)

    return epoch_time(run) / n_replicas


def products_epoch(X, batch):
    """The two large matrix products of a step alone: features to hidden units, and back to the gradient."""
    weights = np.ones((X.shape[1], WIDTH), np.float32)

    def run():
        for first in range(0, len(X), batch):
            rows = X[first : first + batch]
            rows.T @ (rows @ weights)

    return best_of(run, 5)


def training(report: Table):
    for n, d in SIZES:
        X, y = make_data(n, d)
        for batch in (256, 1024):
            mlp, products = mlp_epoch(X, y, batch), products_epoch(X, batch)
            for n_replicas in (1, N_REPLICAS):
                ours = replica_epoch(X, y, batch, n_replicas)
                name = f"one replica-epoch of {n_replicas}, {n:,} × {d}, batches of {batch}"
                report.append((f"{name}, against an MLPClassifier epoch", f"{ours / mlp:.2f}"))
            report.append(("the same, against the two large matrix products alone", f"{ours / products:.1f}"))


def paper_grid(report: Table):
    """The paper's 96 settings on one split: as populations with checkpoints, and one fit at a time, extrapolated.

    16 settings share a batch size and a run of 4 epochs; alone, each is trained anew for 2, 3 and 4 epochs.
    """
    for n, d in SIZES:
        X, y = make_data(n, d)
        together = alone = 0.0
        for batch in (256, 1024):
            together += 4 * 16 * replica_epoch(X, y, batch, 16)
            alone += (2 + 3 + 4) * 16 * replica_epoch(X, y, batch, 1)
        name = f"the paper's 96 settings, {n:,} × {d}"
        report.append((f"{name}: training as populations, against one fit at a time", f"{together / alone:.2f}"))
        report.append((f"{name}: the same in seconds (one at a time: extrapolated)", f"{together:.1f} / {alone:.0f} s"))


def auditing(report: Table):
    """A million rows, eight classifiers, three attributes with all their intersections."""
    rng = np.random.default_rng(0)
    n, n_groups = 1_000_000, 8
    y, groups = rng.integers(0, 2, n), rng.integers(0, n_groups, n)
    predictions = np.where(rng.random((n, n_groups)) < 0.8, y[:, None], 1 - y[:, None])
    pooled = np.where(rng.random(n) < 0.8, y, 1 - y)
    people = pd.DataFrame(
        {"sex": rng.choice(["f", "m", None], n), "race": rng.choice(list("abcde"), n), "age": rng.integers(18, 90, n)}
    )
    inputs = sum(part.nbytes for part in (y, groups, predictions, pooled)) + people.memory_usage().sum()
    run = partial(audit, y, predictions, groups, pooled=pooled, sensitive_features=people, depth=3)
    seconds = best_of(run, 2)
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    report.append(("audit, 1,000,000 rows, K = 8, three attributes intersected", f"{seconds:.1f} s"))
    report.append(("the same: peak memory, against the inputs", f"{peak / inputs:.2f}"))


def prediction(report: Table):
    for n, d in SIZES:
        for dtype in (np.float64, np.float32):
            X, y = make_data(n, d)
            X = X.astype(dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mlp = MLPClassifier((WIDTH,), max_iter=1, random_state=0).fit(X, y)
            model = DAFHClassifier(random_state=0, recipe=Recipe(max_epochs=1)).fit(X, y)
            model.predict(X)
            ratio = best_of(partial(model.predict, X), 15) / best_of(partial(mlp.predict, X), 15)
            report.append((f"predict, {n:,} × {d}, {np.dtype(dtype).name}, against MLPClassifier", f"{ratio:.2f}"))


# The high-water mark of the process itself, in MiB: what getrusage says includes that of its parent.
PEAK_MEMORY = """
def peak_memory():
    status = dict(line.split(":") for line in open("/proc/self/status"))
    return int(status["VmHWM"].split()[0]) / 1024
"""
FRESH_PROCESS = (
    PEAK_MEMORY
    + """
import sys, time
started, n, d, epochs = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
import sklearn.linear_model, jax
imported = time.time() - started
import numpy as np
import pandas as pd
import dafh.engine.population as population
from dafh import DAFHClassifier, audit
first = []
train_chunk = population._train_chunk
def watched(*arguments):
    result = jax.block_until_ready(train_chunk(*arguments))
    first.append(time.time() - started)
    return result
population._train_chunk = watched
rng = np.random.default_rng(0)
X = rng.normal(size=(n, d)); y = (X[:, 0] * X[:, 1] + rng.normal(size=n) > 0) * 1
before = time.time()
options = {"max_epochs": epochs, "patience": epochs} if epochs else {}
DAFHClassifier(random_state=0, **options).fit(X, y)
print(imported, first[0], time.time() - before, peak_memory())
"""
)


def fresh_process(n, d, cache, epochs=0):
    """Seconds to the imports and to the first step, seconds of the fit, and peak memory in MiB."""
    command = [sys.executable, "-c", FRESH_PROCESS, str(time.time()), str(n), str(d), str(epochs)]
    done = subprocess.run(
        command, env=os.environ | {"DAFH_COMPILATION_CACHE": cache}, capture_output=True, text=True, check=True
    )
    return [float(figure) for figure in done.stdout.split()]


def processes(report: Table):
    with tempfile.TemporaryDirectory() as cache:
        for n, d in SIZES:
            cold = fresh_process(n, d, cache)
            warm = min((fresh_process(n, d, cache) for _ in range(3)), key=lambda figures: figures[1])
            name = f"fresh process, {n:,} × {d}"
            report.append(
                (f"{name}, empty cache: first step after (imports alone)", f"{cold[1]:.1f} s ({cold[0]:.1f} s)")
            )
            report.append(
                (f"{name}, filled cache: first step after (imports alone)", f"{warm[1]:.1f} s ({warm[0]:.1f} s)")
            )
            report.append((f"{name}: fit with defaults, empty / filled cache", f"{cold[2]:.1f} s / {warm[2]:.1f} s"))
            report.append((f"{name}: peak memory", f"{warm[3]:.0f} MiB"))
        fresh_process(1_000, 10, cache, epochs=1)  # compiles
        lengths = [(n, fresh_process(n, 10, cache, epochs=4)) for n in (10_000, 100_000, 1_000_000)]
        per_row = [figures[2] / n for n, figures in lengths]
        for (n, figures), cost in zip(lengths, per_row, strict=True):
            report.append((f"fit of 4 epochs, {n:,} × 10: time a row, against 10,000 rows", f"{cost / per_row[0]:.2f}"))
            report.append(
                (f"fit of 4 epochs, {n:,} × 10: seconds, peak memory", f"{figures[2]:.1f} s, {figures[3]:.0f} MiB")
            )


def command_line(report: Table):
    script = Path(sys.executable).parent / "dafh"
    seconds = best_of(lambda: subprocess.run([script, "--help"], capture_output=True, check=True), 5)
    report.append(("dafh --help", f"{seconds:.2f} s"))


SCORING = (
    PEAK_MEMORY
    + """
import sys
from click.testing import CliRunner
from dafh.cli import main
result = CliRunner().invoke(main, ["predict", *sys.argv[1:]])
assert result.exit_code == 0, result.output
print(peak_memory())
"""
)


def scoring(report: Table):
    """Score files of 6 numbers and 8 categories: memory must not grow with them."""
    rng = np.random.default_rng(0)

    def people(n):
        numbers = {f"number {i}": rng.normal(size=n).round(3) for i in range(6)}
        words = {f"word {i}": rng.choice([f"value {j}" for j in range(12)], n) for i in range(8)}
        return pd.DataFrame(numbers | words)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        table = people(5_000)
        table.assign(y=(table["number 0"] > 0) * 1).to_csv(path / "train.csv", index=False)
        training = TrainingTable.read(DataFile(path / "train.csv"), "y")
        training.save(training.fit(recipe=Recipe(n_replicas=2, max_epochs=2)), path / "model.dafh")
        figures = []
        for n in (100_000, 1_000_000):
            people(n).to_csv(path / "new.csv", index=False)
            command = [sys.executable, "-c", SCORING, path / "model.dafh", path / "new.csv", "--out", path / "out.csv"]
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            figures.append((n / (time.perf_counter() - start), float(done.stdout)))
    for (speed, memory), n in zip(figures, ("100,000", "1,000,000"), strict=True):
        report.append((f"dafh predict, {n} × 14: rows a second, peak memory", f"{speed:,.0f}, {memory:.0f} MiB"))
    report.append(
        ("the same: peak memory of the ten times longer file, as a ratio", f"{figures[1][1] / figures[0][1]:.2f}")
    )


def machine():
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    libraries = ", ".join(f"{name} {version(name)}" for name in ("jax", "optax", "scikit-learn", "numpy"))
    return f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}, {libraries}"


INTRODUCTION = """# Benchmarks

Written by `make bench`. Ratios below 1 mean that dafh is the faster one; both sides ran in the same process or right
after each other. MLPClassifier is scikit-learn's, with the same hidden width (100), batch size, precision and data.
An epoch of a replica trains a group network of that width *and* the classifiers of two groups.

Machine: {machine}.

| what | figure |
|---|---|
{rows}
"""


def main():
    report: Table = []
    for part in (command_line, scoring, auditing, processes, training, paper_grid, prediction):
        part(report)
        print(*(f"{what}: {figure}" for what, figure in report), sep="\n", end="\n\n", flush=True)
    rows = "\n".join(f"| {what} | {figure} |" for what, figure in report)
    (HERE / "README.md").write_text(INTRODUCTION.format(machine=machine(), rows=rows))


if __name__ == "__main__":
    main()
