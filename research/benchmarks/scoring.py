"""`dafh predict` against pandas and scikit-learn on a long CSV file, and its peak memory on longer ones.

``python benchmarks/scoring.py`` writes benchmarks/scoring.md; ``--quick`` takes one small file and writes nothing. Both
sides are fresh processes that read the same file, in turns; ours also writes label, probability and group of each row.
"""

import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dafh import load
from dafh.datasets import fetch_adult

HERE = Path(__file__).parent
REPEATS = 5
MODELS = {
    "scorecard + rules, K = 4": ("--by", "rules", "--groups", "4"),
    "linear + rules, K = 4": ("--by", "rules", "--groups", "4", "--pooled", "linear"),
    "scorecard + network, K = 2": ("--by", "network", "--groups", "2"),
}
# What most people would write: read the table, load the pipeline, predict.
THEIRS = """
import pickle, sys
import pandas as pd
with open(sys.argv[1], "rb") as file:
    model = pickle.load(file)
model.predict(pd.read_csv(sys.argv[2]))
"""
# The command, and its own peak memory at the end: getrusage would begin with that of the process that started it.
OURS = """
import re, sys
from pathlib import Path
from dafh.cli import main
try:
    main(sys.argv[1:], prog_name="dafh")
finally:
    print("heavy", *{"jax", "altair", "skops"} & set(sys.modules), file=sys.stderr)
    print(re.search(r"VmHWM:\\s*\\d+", Path("/proc/self/status").read_text())[0], file=sys.stderr)
"""
PAGE = """# Scoring

Written by `python benchmarks/scoring.py`. Adult, {times} times its rows, as a CSV file of {rows:,} rows, 13 features
and 2 more columns. Both sides are fresh processes, start of Python and imports included: `dafh predict`, which writes
label, probability and group of each row to a CSV file; and `pandas.read_csv` with `predict` of scikit-learn's pipeline
(one-hot, standardised, logistic regression), which writes nothing. Medians of {repeats} runs in turns, with the range
of the ratios of neighbouring runs. Rows a second are those that the command prints. {machine}

{ratios}

`predict` in Python, on a data frame of the same rows (median of {repeats}):

{frames}

Peak memory of `dafh predict` (scorecard + rules) by the length of the file:

{memory}
"""


def clean_environment():
    """Let both sides keep their compiled modules, as installed packages do."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def timed(command):
    """Seconds of wall clock, seconds of all processors, and what went to standard error."""
    start, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [sys.executable, *map(str, command)], check=True, capture_output=True, text=True, env=clean_environment()
    )
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, used, done.stderr


def make_files(folder, times):
    """Adult as CSV, as often as asked for."""
    data = fetch_adult()
    table = data.X.assign(race=data.sensitive_features["race"], income=data.y)
    paths = {}
    for n in times:
        paths[n] = folder / f"adult{n}.csv"
        pd.concat([table] * n).to_csv(paths[n], index=False)
    return paths, table


def fit_theirs(table, path):
    X, y = table.drop(columns=["race", "income"]), table["income"]
    numbers = list(X.select_dtypes("number"))
    others = [name for name in X if name not in numbers]
    columns = ColumnTransformer(
        [("number", StandardScaler(), numbers), ("category", OneHotEncoder(handle_unknown="ignore"), others)]
    )
    model = Pipeline([("columns", columns), ("model", LogisticRegression(max_iter=1000))]).fit(X, y)
    path.write_bytes(pickle.dumps(model))
    return model


def predict_command(model, path):
    return ["-c", OURS, "predict", model, path, "--out", path.with_suffix(".scored")]


def peak_memory(stderr):
    return int(re.search(r"VmHWM:\s*(\d+)", stderr)[1]) / 1024


def race(model, path, theirs, repeats):
    """Run both in turns; return a line of the table."""
    ours, others = predict_command(model, path), ["-c", THEIRS, theirs, path]
    timed(ours), timed(others)  # Files and modules are in the cache of the system from here on.
    pairs = []
    for number in range(repeats):
        one, other = (timed(ours), timed(others)) if number % 2 else reversed((timed(others), timed(ours)))
        assert "heavy\n" in one[2], f"scoring imported {one[2]}"
        pairs.append((one, other))
    seconds = [median(pair[side][0] for pair in pairs) for side in (0, 1)]
    used = [median(pair[side][1] for pair in pairs) for side in (0, 1)]
    ratios = sorted(one[0] / other[0] for one, other in pairs)
    spread = f"{seconds[0] / seconds[1]:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    rate = median(int(re.search(r"\(([\d,]+) rows/s\)", one[2])[1].replace(",", "")) for one, _ in pairs)
    return f"{seconds[0]:.2f} | {seconds[1]:.2f} | {spread} | {used[0] / used[1]:.2f} | {rate:,.0f}"


def in_python(models, theirs, table, repeats):
    """Time `predict` on a data frame in memory."""
    frame = table.drop(columns=["race", "income"])
    lines = ["| model | ours, s | scikit-learn's pipeline, s | ratio |", "|---|---|---|---|"]

    def run(model):
        start = time.perf_counter()
        model.predict(frame)
        return time.perf_counter() - start

    for name, path in models.items():
        model = load(path)
        pairs = [(run(model), run(theirs)) for _ in range(repeats)]
        one, other = (median(pair[side] for pair in pairs) for side in (0, 1))
        lines.append(f"| {name} | {one:.2f} | {other:.2f} | {one / other:.2f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main(*, quick):
    times, repeats = ((1,), 1) if quick else ((1, 10, 40), REPEATS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths, table = make_files(folder, times)
        theirs = fit_theirs(table, folder / "theirs.pickle")
        models, longest = {}, times[min(1, len(times) - 1)]
        for number, (title, options) in enumerate(list(MODELS.items())[: 1 if quick else None]):
            models[title] = folder / f"model{number}.dafh"
            target = ["--target", "income", "--sensitive", "race", "--out", models[title]]
            timed(["-m", "dafh", "fit", paths[1], *target, *options])
        lines = [
            "| model | ours, s | theirs, s | ratio | ratio of processor time | rows a second after the start |",
            "|---" * 6 + "|",
        ]
        for title, path in models.items():
            lines.append(f"| {title} | {race(path, paths[longest], folder / 'theirs.pickle', repeats)} |")
            print(lines[-1], flush=True)
        frames = in_python(models, theirs, pd.concat([table] * longest, ignore_index=True), repeats)
        memory = ["| rows | peak memory, MiB |", "|---|---|"]
        first = next(iter(models.values()))
        for n, path in paths.items():
            memory.append(f"| {n * len(table):,} | {peak_memory(timed(predict_command(first, path))[2]):.0f} |")
            print(memory[-1], flush=True)
        if quick:
            return
        page = PAGE.format(
            times=longest,
            rows=len(table) * longest,
            repeats=repeats,
            machine=f"Machine: {os.cpu_count()} cores, load average {os.getloadavg()[2]:.1f} over the last 15 minutes.",
            ratios="\n".join(lines),
            frames=frames,
            memory="\n".join(memory),
        )
        (HERE / "scoring.md").write_text(page)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
