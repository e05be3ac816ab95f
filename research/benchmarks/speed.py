"""Start of the command line, audit of a million rows, and fits in fresh processes."""

import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from subprocess import run as run_command

import numpy as np
import pandas as pd

from dafh import audit
from research.benchmarks.measure import alone, best_of, run

FIT = """
import sys, time
import numpy as np
from dafh import DAFHClassifier
n, d, method = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
X = rng.normal(size=(n, d)); y = (X[:, 0] * X[:, 1] + rng.normal(size=n) > 0) * 1
start = time.perf_counter()
DAFHClassifier(random_state=0, method=method).fit(X, y)
print(time.perf_counter() - start, peak_memory())
"""


def auditing(n: int) -> Iterator[tuple[str, str]]:
    """Audit of eight classifiers with three attributes and all their intersections."""
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 2, n), rng.integers(0, 8, n)
    predictions = np.where(rng.random((n, 8)) < 0.8, y[:, None], 1 - y[:, None])
    pooled = np.where(rng.random(n) < 0.8, y, 1 - y)
    attributes = pd.DataFrame(
        {"sex": rng.choice(["f", "m", None], n), "race": rng.choice(list("abcde"), n), "age": rng.integers(18, 90, n)}
    )
    inputs = sum(part.nbytes for part in (y, groups, predictions, pooled)) + attributes.memory_usage().sum()
    work = partial(audit, y, predictions, groups, pooled=pooled, sensitive_features=attributes, depth=3)
    yield f"audit, {n:,} rows, K = 8, three attributes intersected", f"{best_of(work, 2):.1f} s"
    tracemalloc.start()
    work()
    yield "the same: peak memory, against the inputs", f"{tracemalloc.get_traced_memory()[1] / inputs:.2f}"
    tracemalloc.stop()


def fits(sizes: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, str]]:
    """Fits in processes of their own; networks with an empty and with a filled cache of compiled programs."""
    for n, d in sizes:
        seconds, peak = alone(FIT, n, d, "exceptions")
        yield f"fresh process, {n:,} × {d}: fit by exceptions, peak memory", f"{seconds:.1f} s, {peak:.0f} MiB"
        with tempfile.TemporaryDirectory() as cache:
            keep = {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
            cold, warm = (alone(FIT, n, d, "network", **keep) for _ in range(2))
        yield f"fresh process, {n:,} × {d}: network, empty / filled cache", f"{cold[0]:.1f} s / {warm[0]:.1f} s"


def lines(quick: bool) -> Iterator[dict[str, str]]:
    """One line for each figure; sizes are about those of Adult and of Arrest, encoded."""
    sizes = ((600, 5),) if quick else ((36_000, 103), (5_000, 12))
    script = Path(sys.executable).parent / "dafh"
    seconds = best_of(lambda: run_command([script, "--help"], capture_output=True, check=True), 5)
    yield {"what": "dafh --help", "figure": f"{seconds:.2f} s"}
    for part in (auditing(5_000 if quick else 1_000_000), fits(sizes)):
        for what, figure in part:
            yield {"what": what, "figure": figure}


if __name__ == "__main__":
    run(__file__, lines)
