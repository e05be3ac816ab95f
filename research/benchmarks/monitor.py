"""How long the monitor takes for a million rows, beside `predict` alone, in one run."""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from dafh import DAFHClassifier, Monitor
from dafh.datasets import fetch_adult
from research.benchmarks.measure import best_of, run

TRAINED = 20_000


def peak(work: Callable[[], object]) -> float:
    """Largest memory that Python has asked for during a run, in MB."""
    tracemalloc.start()
    work()
    used = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return used


def lines(quick: bool) -> Iterator[dict[str, str]]:
    """One line for each pooled classifier and kind of work; seconds are those of the processor."""
    data = fetch_adult()
    X, y, people = data.X, np.asarray(data.y), data.sensitive_features
    chosen = np.random.default_rng(0).integers(TRAINED, len(X), 5_000 if quick else 1_000_000)
    rows, labels, attributes = X.iloc[chosen], y[chosen], people.iloc[chosen]
    first, first_people = X[:TRAINED], people[:TRAINED]

    def update(model: DAFHClassifier, names: list[str] | None = None, *, labelled: bool = True) -> None:
        watched = {} if names is None else {"sensitive_features": first_people[names]}
        losses = ("error",) if names is None else ("error", "fpr", "fnr")
        known = {} if names is None else {"sensitive_features": attributes[names]}
        monitor = Monitor(model, reference=first, losses=losses, **watched)
        monitor.update(rows, labels if labelled else None, **known)

    for name, pooled in (("a scorecard", "scorecard"), ("logistic regression", "linear")):
        model = DAFHClassifier(3, pooled=pooled, random_state=0).fit(first, y[:TRAINED])
        works: dict[str, Callable[[], object]] = {
            "`predict`": partial(model.predict, rows),
            "`Monitor.update`": partial(update, model),
            "the same, rows without labels": partial(update, model, labelled=False),
            "three losses, subgroups by sex": partial(update, model, ["sex"]),
            "three losses, subgroups by six attributes": partial(update, model, list(people)),
        }
        alone = best_of(works["`predict`"], clock=time.process_time), peak(works["`predict`"])
        for what, work in works.items():
            took, used = best_of(work, clock=time.process_time), peak(work)
            ratios = {"time / predict": f"{took / alone[0]:.1f}", "memory / predict": f"{used / alone[1]:.1f}"}
            yield {
                "pooled classifier": name,
                "work": what,
                "seconds": f"{took:.2f}",
                "peak, MB": f"{used:,.0f}",
            } | ratios


if __name__ == "__main__":
    run(__file__, lines)
