"""Scorecards and groups against gradient boosting on the paper's data, and against the number of rows and columns.

``python benchmarks/boosting.py`` writes benchmarks/boosting.md; ``--quick`` uses small sizes and writes nothing. Times
of fits are ratios to ``HistGradientBoostingClassifier().fit`` on the same rows, encoded, in the same run, with
cross-validation and everything else included.
"""

import subprocess
import sys
import warnings
from pathlib import Path

from sklearn.ensemble import HistGradientBoostingClassifier

from bench import best_of
from dafh import DAFHClassifier, Scorecard
from research.paper.methods import load_split

HERE = Path(__file__).parent
DATASETS = ("adult", "arrest", "violent", "german", "bank")
SPLIT = 100
MODELS = {
    "Scorecard": Scorecard,
    "Scorecard + rules": lambda: DAFHClassifier(groups="rules", random_state=0),
    "Scorecard + auto": lambda: DAFHClassifier(random_state=0),
    "linear + rules, K = 2": lambda: DAFHClassifier(2, groups="rules", pooled="linear", random_state=0),
    "linear + auto, K = 2": lambda: DAFHClassifier(2, pooled="linear", random_state=0),
}
# Fits in a process of their own, so that the peak memory is its own: rows, columns, kind.
ALONE = """
import re, sys, time
from pathlib import Path
import numpy as np
from dafh import DAFHClassifier, Scorecard
n, d, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
X = rng.normal(size=(n, d)).astype(np.float32)
y = (X[:, 0] * (X[:, 1] > 0) + rng.logistic(size=n).astype(np.float32) > 0).astype(np.int8)
model = Scorecard() if kind == "scorecard" else DAFHClassifier(groups="rules", random_state=0)
start = time.perf_counter()
model.fit(X, y)
seconds = time.perf_counter() - start
# Not ru_maxrss: it starts at the size of the process that started this one.
peak = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
print(seconds, peak / 2**20, "jax" in sys.modules)
"""
PAGE = """# Against boosting

Written by `python benchmarks/boosting.py`. Seconds of `HistGradientBoostingClassifier().fit` on encoded training rows
(split {split}), and times of ours as ratios to it, the best of {repeats} in one run: folds, search and guard included.
Networks are timed with compiled programs.

{ratios}

Numbers drawn at random (float32, two classes), each fit in a process of its own.

{sizes}
"""


def against_boosting(datasets, repeats):
    lines = [f"| data set | boosting, s | {' | '.join(MODELS)} |", "|---" * (len(MODELS) + 2) + "|"]
    for dataset in datasets:
        data = load_split(dataset, SPLIT)
        boosting = best_of(lambda data=data: HistGradientBoostingClassifier().fit(data.X, data.y), repeats)
        ratios = []
        for make in MODELS.values():
            make().fit(data.table, data.y)  # Compiles what is to be compiled.
            ratios.append(best_of(lambda make=make, data=data: make().fit(data.table, data.y), repeats) / boosting)
        lines.append(f"| {dataset} | {boosting:.2f} | {' | '.join(f'{ratio:.1f}' for ratio in ratios)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def by_size(sizes):
    lines = ["| rows | columns | what | seconds | seconds per million values | peak memory, GiB |", "|---" * 6 + "|"]
    for n, d, kind in sizes:
        done = subprocess.run(
            [sys.executable, "-c", ALONE, str(n), str(d), kind], capture_output=True, text=True, check=True
        )
        seconds, peak, jax = done.stdout.split()
        assert jax == "False", "a fit by rules imported JAX"
        per_value = float(seconds) / (n * d / 1e6)
        lines.append(f"| {n:,} | {d:,} | {kind} | {float(seconds):.1f} | {per_value:.2f} | {float(peak):.1f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main(*, quick):
    warnings.simplefilter("ignore")
    if quick:
        against_boosting(("german",), 1)
        by_size([(2_000, 5, "rules")])
        return
    sizes = [(10**power, 20, kind) for power in (4, 5, 6) for kind in ("scorecard", "rules")]
    sizes += [(5_000, 1_000, "scorecard"), (5_000, 1_000, "rules"), (10**7, 20, "scorecard"), (10**7, 20, "rules")]
    ratios, table = against_boosting(DATASETS, 3), by_size(sizes)
    (HERE / "boosting.md").write_text(PAGE.format(split=SPLIT, repeats=3, ratios=ratios, sizes=table))


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
