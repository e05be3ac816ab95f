"""Scorecards beside the additive models of another library: EBM of `interpret`, without pairs.

``pip install interpret-core``, then ``python benchmarks/ebm.py`` writes benchmarks/ebm.md; ``--quick`` tries one split
of German and writes nothing. Not a part of ``make bench``, because EBM takes minutes a fit on the large data sets.
"""

import os
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from dafh import Scorecard
from research.paper.methods import load_split

# Development splits; few of the large data sets, whose splits differ less.
SPLITS = {"arrest": 10, "violent": 10, "german": 10, "bank": 2, "adult": 2}
FIRST = 100
PAGE = """# Beside EBM

Written by `python benchmarks/ebm.py`: `ExplainableBoostingClassifier(interactions=0)` of interpret-core {version} and
`Scorecard()`, both with their defaults, on the same development splits (from {first} on), one after the other in one
process that may use {cores} cores. Means over splits; "difference" is Scorecard minus EBM, with its standard error over
splits where there are several; "time" is the sum of the times of EBM's fits over that of Scorecard's.

{table}
"""


def measure(model, data):
    start = time.perf_counter()
    model.fit(data.table, data.y)
    seconds = time.perf_counter() - start
    positive = model.predict_proba(data.table_test)[:, 1]
    right = np.mean(model.predict(data.table_test) == data.y_test)
    return [seconds, 100 * right, 100 * roc_auc_score(data.y_test, positive), log_loss(data.y_test, positive)]


def line(dataset, n_splits, make_ebm):
    """One line of the table."""
    found = []
    for split in range(FIRST, FIRST + n_splits):
        data = load_split(dataset, split)
        found.append([measure(make_ebm(), data), measure(Scorecard(), data)])
    ebm, ours = np.array(found).swapaxes(0, 1)
    gain = (ours - ebm)[:, 1]
    error = f" ± {gain.std(ddof=1) / np.sqrt(n_splits):.2f}" if n_splits > 2 else ""
    digits = (2, 2, 2, 4)
    seconds, right, auc, loss = (
        f"{a:.{d}f} / {b:.{d}f}" for a, b, d in zip(ebm.mean(0), ours.mean(0), digits, strict=True)
    )
    ratio = ebm[:, 0].sum() / ours[:, 0].sum()
    return (
        f"| {dataset} | {n_splits} | {right} | {gain.mean():+.2f}{error} | {auc} | {loss} | {seconds} | {ratio:.0f} |"
    )


def main(*, quick):
    warnings.simplefilter("ignore")
    from interpret.glassbox import ExplainableBoostingClassifier

    def make_ebm():
        return ExplainableBoostingClassifier(interactions=0, random_state=0)

    titles = ("data set", "splits", "accuracy, EBM / Scorecard", "difference", "AUC", "log-loss", "seconds", "time")
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for dataset, n_splits in ({"german": 1} if quick else SPLITS).items():
        lines.append(line(dataset, n_splits, make_ebm))
        print(lines[-1], flush=True)
    if not quick:
        text = PAGE.format(version=version("interpret-core"), first=FIRST, cores=os.cpu_count(), table="\n".join(lines))
        Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
