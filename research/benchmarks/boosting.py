"""Fits of scorecards and groups as ratios to gradient boosting on the same rows, on the paper's data."""

from collections.abc import Iterator
from functools import partial

from sklearn.ensemble import HistGradientBoostingClassifier

from dafh import DAFHClassifier, Scorecard
from research.benchmarks.measure import best_of, run
from research.paper.plan import DATASETS
from research.paper.study import load_split

SPLIT = 100

MODELS = {
    "Scorecard": Scorecard(),
    "Scorecard + exceptions": DAFHClassifier(random_state=0),
    "linear + exceptions": DAFHClassifier(pooled="linear", random_state=0),
    "linear + exceptions, K = 2": DAFHClassifier(2, pooled="linear", random_state=0),
}


def lines(quick: bool) -> Iterator[dict[str, str]]:
    """One line for each data set."""
    for dataset in ("german",) if quick else DATASETS:
        data = load_split(dataset, SPLIT)
        boosting = best_of(partial(HistGradientBoostingClassifier().fit, data.X, data.y))
        line = {"data set": dataset, "boosting, s": f"{boosting:.2f}"}
        for name, model in MODELS.items():
            model.fit(data.table, data.y)  # Compiles what is to be compiled.
            line[name] = f"{best_of(partial(model.fit, data.table, data.y)) / boosting:.1f}"
        yield line


if __name__ == "__main__":
    run(__file__, lines)
