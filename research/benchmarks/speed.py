"""Start of the command line, and an audit of a million rows."""

import sys
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from subprocess import run as run_command

import numpy as np
import pandas as pd

from dafh import audit
from research.benchmarks.measure import best_of, run


def auditing(n: int) -> Iterator[dict[str, str]]:
    """Audit of eight classifiers with three attributes and all their intersections."""
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 2, n), rng.integers(0, 8, n)
    predictions = np.where(rng.random((n, 8)) < 0.8, y[:, None], 1 - y[:, None])
    pooled = np.where(rng.random(n) < 0.8, y, 1 - y)
    attributes = pd.DataFrame(
        {"sex": rng.choice(["f", "m", None], n), "race": rng.choice(list("abcde"), n), "age": rng.integers(18, 90, n)}
    )
    inputs = sum(array.nbytes for array in (y, groups, predictions, pooled)) + attributes.memory_usage().sum()
    work = partial(audit, y, predictions, groups, pooled=pooled, sensitive_features=attributes, depth=3)
    title = f"audit, {n:,} rows, K = 8, three attributes intersected"
    yield {"what": title, "figure": f"{best_of(work, 2):.1f} s"}
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1] / inputs
    tracemalloc.stop()
    yield {"what": "the same: peak memory, against the inputs", "figure": f"{peak:.2f}"}


def lines(quick: bool) -> Iterator[dict[str, str]]:
    """One line for each figure."""
    script = Path(sys.executable).parent / "dafh"
    seconds = best_of(lambda: run_command([script, "--help"], capture_output=True, check=True), 5)
    yield {"what": "dafh --help", "figure": f"{seconds:.2f} s"}
    yield from auditing(5_000 if quick else 1_000_000)


if __name__ == "__main__":
    run(__file__, lines)
