"""Scorecards beside the additive models of another library: EBM of `interpret`, without pairs.

``pip install interpret-core`` first. Not a part of ``make bench``: EBM takes minutes a fit on the large data sets.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from dafh import Scorecard
from research.benchmarks.measure import SPLIT, run
from research.paper.methods import Split, load_split

# Few of the large data sets, whose splits differ less.
SPLITS = {"arrest": 10, "violent": 10, "german": 10, "bank": 2, "adult": 2}


def figures(model: Any, data: Split) -> list[float]:
    """Seconds of a fit, accuracy, AUC and log-loss."""
    start = time.perf_counter()
    model.fit(data.table, data.y)
    seconds = time.perf_counter() - start
    positive = model.predict_proba(data.table_test)[:, 1]
    right = np.mean(model.predict(data.table_test) == data.y_test)
    return [seconds, 100 * right, 100 * roc_auc_score(data.y_test, positive), log_loss(data.y_test, positive)]


def lines(quick: bool) -> Iterator[dict[str, object]]:
    """One line for each data set."""
    from interpret.glassbox import ExplainableBoostingClassifier

    for dataset, n_splits in ({"german": 1} if quick else SPLITS).items():
        found = []
        for split in range(SPLIT, SPLIT + n_splits):
            data = load_split(dataset, split)
            models = (ExplainableBoostingClassifier(interactions=0, random_state=0), Scorecard())
            found.append([figures(model, data) for model in models])
        ebm, ours = np.array(found).swapaxes(0, 1)
        gain = (ours - ebm)[:, 1]
        error = f" ± {gain.std(ddof=1) / np.sqrt(n_splits):.2f}" if n_splits > 2 else ""
        both = [f"{a:.{d}f} / {b:.{d}f}" for a, b, d in zip(ebm.mean(0), ours.mean(0), (2, 2, 2, 4), strict=True)]
        yield {
            "data set": dataset,
            "splits": n_splits,
            "accuracy, EBM / Scorecard": both[1],
            "difference": f"{gain.mean():+.2f}{error}",
            "AUC": both[2],
            "log-loss": both[3],
            "seconds": both[0],
            "time": f"{ebm[:, 0].sum() / ours[:, 0].sum():.0f}",
        }


if __name__ == "__main__":
    run(__file__, lines)
