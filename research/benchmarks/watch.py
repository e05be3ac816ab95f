"""How long the monitor takes for a million rows, beside `predict` alone, in one run.

``python benchmarks/watch.py`` writes benchmarks/watch.md. With ``--quick`` it runs on a few rows and writes nothing.
"""

import platform
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd

from dafh import DAFHClassifier, Monitor
from dafh.datasets import fetch_adult
from dafh.text import markdown

HERE = Path(__file__).parent
TRAINED = 20_000


def seconds(work, repeats=3):
    """Shortest of several runs, in seconds of processor time: other processes do not count, but for what they evict."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def peak(work):
    """Largest memory that Python has asked for during a run, in MB."""
    tracemalloc.start()
    work()
    used = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return used


def measure(n_rows):
    data = fetch_adult()
    X, y, people = data.X, np.asarray(data.y), data.sensitive_features
    chosen = np.random.default_rng(0).integers(TRAINED, len(X), n_rows)
    rows, labels, attributes = X.iloc[chosen], y[chosen], people.iloc[chosen]
    first = X[:TRAINED], people[:TRAINED]
    lines = []
    for name, pooled in (("a scorecard", "scorecard"), ("logistic regression", "linear")):
        model = DAFHClassifier(3, groups="rules", pooled=pooled, random_state=0).fit(first[0], y[:TRAINED])
        works = {
            "`predict`": lambda model=model: model.predict(rows),
            "`Monitor.update`": lambda model=model: Monitor(model, reference=first[0]).update(rows, labels),
            "the same, rows without labels": lambda model=model: Monitor(model, reference=first[0]).update(rows),
            "three losses, subgroups by sex": lambda model=model: Monitor(
                model, reference=first[0], losses=("error", "fpr", "fnr"), sensitive_features=first[1][["sex"]]
            ).update(rows, labels, sensitive_features=attributes[["sex"]]),
            "three losses, subgroups by six attributes": lambda model=model: Monitor(
                model, reference=first[0], losses=("error", "fpr", "fnr"), sensitive_features=first[1]
            ).update(rows, labels, sensitive_features=attributes),
        }
        alone = None
        for what, work in works.items():
            took, used = seconds(work), peak(work)
            alone = alone or (took, used)
            ratios = [f"{took / alone[0]:.1f}", f"{used / alone[1]:.1f}"]
            lines.append([name, what, f"{took:.2f}", f"{used:,.0f}", *ratios])
    columns = ["pooled classifier", "work", "seconds", "peak, MB", "time / predict", "memory / predict"]
    return pd.DataFrame(lines, columns=columns)


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    table = measure(5_000 if quick else 1_000_000)
    text = f"""# The monitor

A million rows of Adult, drawn with replacement, in one update; three groups by rules. Processor time, best of three
runs on one core of {platform.machine()}, {platform.system()}. `python benchmarks/watch.py` makes this page.

{markdown(table)}

The reference rows (20,000) are looked at in the same time. The aim is at most 3 times `predict`. Rows without labels
are hashed, so that their labels can be matched later.
"""
    print(text)
    if not quick:
        (HERE / "watch.md").write_text(text)
