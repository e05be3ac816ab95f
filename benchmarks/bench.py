"""Speed and memory, mostly as ratios of two measurements in one run, which depend less on the machine than seconds.

``make bench`` writes the table to benchmarks/README.md. ``python benchmarks/bench.py --quick`` runs everything on small
sizes and writes nothing: its figures mean nothing, but it shows in a few minutes that the benchmark still runs.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from dataclasses import dataclass
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
from dafh.tables.read import DataFile
from dafh.workflows.training import TrainingTable, make_classifier

WIDTH, N_GROUPS, N_REPLICAS = 100, 2, 12
HERE = Path(__file__).parent
Table = list[tuple[str, str]]


@dataclass(frozen=True)
class Sizes:
    """Rows (and columns) that each part works on."""

    trained: tuple[tuple[int, int], ...] = ((36_000, 103), (5_000, 12))
    """About the training rows and encoded columns of Adult and of Arrest."""
    audited: int = 1_000_000
    scored: tuple[int, int] = (100_000, 1_000_000)
    fitted: tuple[int, ...] = (10_000, 100_000, 1_000_000)


QUICK = Sizes(((600, 5),), 5_000, (1_000, 2_000), (1_000, 2_000))


def best_of(function, repeats=3):
    """Shortest of several runs: other processes on the machine can only make a run longer."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def epoch_time(run):
    """Time of one epoch, from runs of one and of five epochs, so that set-up cancels out."""
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
    rows = Rows(
        x=X,
        answers=np.zeros((n, 1, 0), np.int8),
        label=y,
        base=np.zeros((n, 1, 1), np.float32),
        pooled_right=np.zeros((n, 1), np.float32),
        weight=np.ones(n, np.float32),
        fold=np.full(n, -1),
    )
    few = Rows(*(field[:batch] for field in rows))
    plan = Plan((d, WIDTH, N_GROUPS), (d, 1))
    start = init_population(plan, np.full((1, n_replicas), 0.3), np.random.SeedSequence(0), [None])
    settings = Settings(*(np.full(n_replicas, value) for value in (0.5, 0.3, 1.0, 1.0, 1e-4, 1e-3, 5e-3, -1.0, 0.0)))

    def run(epochs):
        rng = np.random.default_rng(0)
        train_population(rows, few, start, settings, plan, batch_size=batch, max_epochs=epochs, rng=rng)

    return epoch_time(run) / n_replicas


def products_epoch(X, batch):
    """Only the two large matrix products of a step: from features to hidden units, and back to the gradient."""
    weights = np.ones((X.shape[1], WIDTH), np.float32)

    def run():
        for first in range(0, len(X), batch):
            rows = X[first : first + batch]
            rows.T @ (rows @ weights)

    return best_of(run, 5)


def training(report: Table, sizes: Sizes):
    for n, d in sizes.trained:
        X, y = make_data(n, d)
        for batch in (256, 1024):
            mlp, products = mlp_epoch(X, y, batch), products_epoch(X, batch)
            for n_replicas in (1, N_REPLICAS):
                ours = replica_epoch(X, y, batch, n_replicas)
                name = f"one replica-epoch of {n_replicas}, {n:,} × {d}, batches of {batch}"
                report.append((f"{name}, against an MLPClassifier epoch", f"{ours / mlp:.2f}"))
            report.append(("the same, against the two large matrix products alone", f"{ours / products:.1f}"))


def paper_grid(report: Table, sizes: Sizes):
    """The paper's 96 settings on one split: as populations with checkpoints, and one fit at a time (extrapolated).

    In a population, 16 settings share a batch size and a run of 4 epochs. One at a time, each is trained for 2, 3 and 4
    epochs in separate runs.
    """
    for n, d in sizes.trained:
        X, y = make_data(n, d)
        together = alone = 0.0
        for batch in (256, 1024):
            together += 4 * 16 * replica_epoch(X, y, batch, 16)
            alone += (2 + 3 + 4) * 16 * replica_epoch(X, y, batch, 1)
        name = f"the paper's 96 settings, {n:,} × {d}"
        report.append((f"{name}: training as populations, against one fit at a time", f"{together / alone:.2f}"))
        report.append((f"{name}: the same in seconds (one at a time: extrapolated)", f"{together:.1f} / {alone:.0f} s"))


def auditing(report: Table, sizes: Sizes):
    """Audit of eight classifiers with three attributes and all their intersections."""
    rng = np.random.default_rng(0)
    n, n_groups = sizes.audited, 8
    y, groups = rng.integers(0, 2, n), rng.integers(0, n_groups, n)
    predictions = np.where(rng.random((n, n_groups)) < 0.8, y[:, None], 1 - y[:, None])
    pooled = np.where(rng.random(n) < 0.8, y, 1 - y)
    attributes = pd.DataFrame(
        {"sex": rng.choice(["f", "m", None], n), "race": rng.choice(list("abcde"), n), "age": rng.integers(18, 90, n)}
    )
    inputs = sum(part.nbytes for part in (y, groups, predictions, pooled)) + attributes.memory_usage().sum()
    run = partial(audit, y, predictions, groups, pooled=pooled, sensitive_features=attributes, depth=3)
    seconds = best_of(run, 2)
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    report.append((f"audit, {n:,} rows, K = 8, three attributes intersected", f"{seconds:.1f} s"))
    report.append(("the same: peak memory, against the inputs", f"{peak / inputs:.2f}"))


def prediction(report: Table, sizes: Sizes):
    for n, d in sizes.trained:
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


# Peak memory of the process itself, in MiB. getrusage would include the peak of the parent process.
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
from dafh import DAFHClassifier, Recipe
first = []
train_chunk = population.train_chunk
def watched(*arguments):
    result = jax.block_until_ready(train_chunk(*arguments))
    first.append(time.time() - started)
    return result
population.train_chunk = watched
rng = np.random.default_rng(0)
X = rng.normal(size=(n, d)); y = (X[:, 0] * X[:, 1] + rng.normal(size=n) > 0) * 1
before = time.time()
recipe = Recipe(max_epochs=epochs, patience=epochs) if epochs else None
DAFHClassifier(random_state=0, recipe=recipe).fit(X, y)
print(imported, first[0], time.time() - before, peak_memory())
"""
)


def fresh_process(n, d, cache, epochs=0):
    """Seconds until the imports are done and until the first step is, seconds of the fit, and peak memory in MiB."""
    command = [sys.executable, "-c", FRESH_PROCESS, str(time.time()), str(n), str(d), str(epochs)]
    done = subprocess.run(
        command, env=os.environ | {"DAFH_COMPILATION_CACHE": cache}, capture_output=True, text=True, check=True
    )
    return [float(figure) for figure in done.stdout.split()]


def processes(report: Table, sizes: Sizes):
    with tempfile.TemporaryDirectory() as cache:
        for n, d in sizes.trained:
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
        lengths = [(n, fresh_process(n, 10, cache, epochs=4)) for n in sizes.fitted]
        per_row = [figures[2] / n for n, figures in lengths]
        for (n, figures), cost in zip(lengths, per_row, strict=True):
            report.append(
                (
                    f"fit of 4 epochs, {n:,} × 10: time per row, against {sizes.fitted[0]:,} rows",
                    f"{cost / per_row[0]:.2f}",
                )
            )
            report.append(
                (f"fit of 4 epochs, {n:,} × 10: seconds, peak memory", f"{figures[2]:.1f} s, {figures[3]:.0f} MiB")
            )


def command_line(report: Table, _: Sizes):
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


def scoring(report: Table, sizes: Sizes):
    """Score files of 6 numbers and 8 categories: peak memory must not grow with the file."""
    rng = np.random.default_rng(0)

    def table_of(n):
        numbers = {f"number {i}": rng.normal(size=n).round(3) for i in range(6)}
        words = {f"word {i}": rng.choice([f"value {j}" for j in range(12)], n) for i in range(8)}
        return pd.DataFrame(numbers | words)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        table = table_of(5_000)
        table.assign(y=(table["number 0"] > 0) * 1).to_csv(path / "train.csv", index=False)
        training = TrainingTable.read(DataFile(path / "train.csv"), "y")
        training.save(
            training.fit(make_classifier(training.schema, recipe=Recipe(n_replicas=2, max_epochs=2))),
            path / "model.dafh",
        )
        figures = []
        for n in sizes.scored:
            table_of(n).to_csv(path / "new.csv", index=False)
            command = [sys.executable, "-c", SCORING, path / "model.dafh", path / "new.csv", "--out", path / "out.csv"]
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            figures.append((n / (time.perf_counter() - start), float(done.stdout)))
    for (speed, memory), n in zip(figures, sizes.scored, strict=True):
        report.append((f"dafh predict, {n:,} × 14: rows per second, peak memory", f"{speed:,.0f}, {memory:.0f} MiB"))
    report.append(
        ("the same: peak memory of the longer file, against the shorter one", f"{figures[1][1] / figures[0][1]:.2f}")
    )


def machine():
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    libraries = ", ".join(f"{name} {version(name)}" for name in ("jax", "optax", "scikit-learn", "numpy"))
    return f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}, {libraries}"


INTRODUCTION = """# Benchmarks

Written by `make bench`. A ratio below 1 means that dafh is faster; both sides ran in the same process or directly
after each other. MLPClassifier is scikit-learn's, with the same hidden width (100), batch size, precision and data. One
epoch of a replica trains a group network of that width *and* the classifiers of two groups.

Machine: {machine}.

| what | figure |
|---|---|
{rows}
"""


def main(*, quick: bool):
    report: Table = []
    for part in (command_line, scoring, auditing, processes, training, paper_grid, prediction):
        part(report, QUICK if quick else Sizes())
        print(*(f"{what}: {figure}" for what, figure in report), sep="\n", end="\n\n", flush=True)
    if quick:
        return
    rows = "\n".join(f"| {what} | {figure} |" for what, figure in report)
    (HERE / "README.md").write_text(INTRODUCTION.format(machine=machine(), rows=rows))


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
