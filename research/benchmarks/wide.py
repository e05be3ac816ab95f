"""Scorecards of wide tables beside gradient boosting: additive truths with thresholds in the tails."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from dafh import Scorecard
from research.benchmarks.measure import alone, run

# Rows, columns and worlds.
CELLS = (
    (2_000, 25, 10),
    (2_000, 100, 10),
    (2_000, 500, 10),
    (10_000, 50, 10),
    (10_000, 200, 3),
    (50_000, 25, 5),
    (50_000, 200, 2),
)
TEST_ROWS = 20_000
# What a fit needs beside the table itself, by the largest amount of memory that the process has used.
MEMORY = """
import sys, warnings
from dafh import Scorecard
from research.benchmarks.wide import world
warnings.simplefilter("ignore")
X, y, _ = world(*map(int, sys.argv[1:]), 100)
Scorecard().fit(X[:300], y[:300])
open("/proc/self/clear_refs", "w").write("5")  # The peak so far is that of making the table.
before = peak_memory()
Scorecard().fit(X, y)
print(peak_memory() - before)
"""


def world(n_rows: int, n_columns: int, seed: int) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.float64]]:
    """Correlated columns, labels and true logits; a fifth of the columns count below or above a cut in a tail."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n_rows, 3))[:, np.arange(n_columns) % 3]
    X = np.sqrt(0.3) * factors + np.sqrt(0.7) * rng.normal(size=(n_rows, n_columns))
    score = np.zeros(n_rows)
    for column in range(max(5, n_columns // 5)):
        tail = rng.uniform(0.01, 0.1)
        low, high = np.quantile(X[:, column], [tail, 1 - tail])
        sides = (X[:, column] < low, X[:, column] > high)
        size = rng.choice([-1, 1]) * rng.uniform(1, 2)
        score += size * (sides[column % 3] if column % 3 < 2 else sides[0] | sides[1])
    score = 1.2 * (score - score.mean()) / score.std() - 0.5
    return X, rng.random(n_rows) < 1 / (1 + np.exp(-score)), score


def lines(quick: bool) -> Iterator[dict[str, str]]:
    """One line for each number of rows and columns; seconds are those of one processor."""
    for n_rows, n_columns, n_worlds in CELLS[:1] if quick else CELLS:
        results = []
        for seed in range(n_worlds):
            X, y, score = world(n_rows + TEST_ROWS, n_columns, 100 + seed)
            line = [roc_auc_score(y[n_rows:], score[n_rows:])]
            for model in (HistGradientBoostingClassifier(), Scorecard()):
                with threadpool_limits(1):
                    start = time.process_time()
                    model.fit(X[:n_rows], y[:n_rows])
                    seconds = time.process_time() - start
                line += [roc_auc_score(y[n_rows:], model.decision_function(X[n_rows:])), seconds]
            results.append(line)
        truth, boosting, boosting_seconds, card, card_seconds = np.transpose(results)
        yield {
            "rows": f"{n_rows:,}",
            "columns": f"{n_columns}",
            "worlds": f"{n_worlds}",
            "AUC of the truth": f"{truth.mean():.3f}",
            "boosting": f"{boosting.mean():.4f}",
            "scorecard": f"{card.mean():.4f}",
            "difference": f"{(card - boosting).mean():+.4f}",
            "worst": f"{(card - boosting).min():+.4f}",
            "time, ratio": f"{card_seconds.sum() / boosting_seconds.sum():.2f}",
            "memory, MiB": f"{alone(MEMORY, n_rows, n_columns)[0]:.0f}",
        }


if __name__ == "__main__":
    run(__file__, lines)
