"""`dafh predict` against pandas and scikit-learn on a long CSV file: fresh processes, in turns.

Ours also writes label, probability and group of each row.
"""

import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dafh.datasets import fetch_adult
from research.benchmarks.measure import run

REPEATS, TIMES = 5, 10
MODELS = {
    "scorecard + exceptions, K = 4": ("--method", "exceptions", "--groups", "4"),
    "linear + exceptions, K = 4": ("--method", "exceptions", "--groups", "4", "--pooled", "linear"),
    "scorecard + network, K = 2": ("--method", "network", "--groups", "2"),
}
# What most people would write: read the table, load the pipeline, predict.
THEIRS = """
import pickle, sys
import pandas as pd
with open(sys.argv[1], "rb") as file:
    model = pickle.load(file)
model.predict(pd.read_csv(sys.argv[2]))
"""


def timed(*command: object) -> tuple[float, float, str]:
    """Seconds of wall clock, seconds of all processors, and what went to standard error."""
    # Both sides keep their compiled modules, as installed packages do.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start, before = time.perf_counter(), os.times()
    done = subprocess.run([sys.executable, *map(str, command)], check=True, capture_output=True, text=True, env=clean)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, used, done.stderr


def race(ours: tuple[object, ...], theirs: tuple[object, ...], repeats: int) -> dict[str, str]:
    """Run both in turns; files and modules are in the cache of the system after the first run."""
    timed(*ours), timed(*theirs)
    pairs = [(timed(*ours), timed(*theirs)) for _ in range(repeats)]
    seconds, used = ([median(pair[side][what] for pair in pairs) for side in (0, 1)] for what in (0, 1))
    ratios = sorted(one[0] / other[0] for one, other in pairs)
    rates = [re.search(r"\(([\d,]+) rows/s\)", one[2]) for one, _ in pairs]
    rate = median(int(found[1].replace(",", "")) for found in rates if found)
    return {
        "ours, s": f"{seconds[0]:.2f}",
        "theirs, s": f"{seconds[1]:.2f}",
        "ratio": f"{seconds[0] / seconds[1]:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        "ratio of processor time": f"{used[0] / used[1]:.2f}",
        "rows a second after the start": f"{rate:,.0f}",
    }


def lines(quick: bool) -> Iterator[dict[str, str]]:
    """One line for each model."""
    data = fetch_adult()
    table = data.X.assign(race=data.sensitive_features["race"], income=data.y)
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    theirs = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(data.X, data.y)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table.to_csv(folder / "adult.csv", index=False)
        pd.concat([table] * (1 if quick else TIMES)).to_csv(folder / "long.csv", index=False)
        (folder / "theirs.pickle").write_bytes(pickle.dumps(theirs))
        for title, options in list(MODELS.items())[: 1 if quick else None]:
            model, target = folder / "model.dafh", ("--target", "income", "--sensitive", "race")
            timed("-m", "dafh", "fit", folder / "adult.csv", *target, "--out", model, *options)
            ours = ("-m", "dafh", "predict", model, folder / "long.csv", "--out", folder / "scored.csv")
            others = ("-c", THEIRS, folder / "theirs.pickle", folder / "long.csv")
            yield {"model": title} | race(ours, others, 1 if quick else REPEATS)


if __name__ == "__main__":
    run(__file__, lines)
