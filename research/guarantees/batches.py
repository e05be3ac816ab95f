"""What the monitor does with files as they come: sorted, overlapping, labelled late, with shocks, inverted.

Rows hold the decisions of both classifiers, which a model reads off, so that thousands of batches take seconds. Own and
pooled classifier are right equally often, unless a world says otherwise: every alarm of harm is then a false one.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from dafh import DecoupledClassifier, Monitor
from dafh.partitions import PooledPartition

MONTHS, ROWS, DISCORDANCE = 40, 500, 0.1
"""20,000 rows, and evidence is looked at after every one of them."""


class ReadOff(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predict what stands in a column of scores."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, X: Any, y: Any) -> Self:
        """Learn nothing but the labels."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Read the score."""
        score = np.asarray(X, np.float64)[:, self.column]
        return np.column_stack([1 - score, score])

    def predict(self, X: Any) -> NDArray[Any]:
        """Decide at one half."""
        return self.classes_[(self.predict_proba(X)[:, 1] >= 0.5).astype(int)]


class Batch(NamedTuple):
    """Rows with scores of both classifiers and a number of their own, and their labels."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]


def draw(rng: np.random.Generator, n_rows: int = ROWS, harm: float = 0.0) -> Batch:
    """Draw rows on which the pooled classifier is wrong by its scores, and own is worse by `harm`.

    Own classifiers win on positive rows what they lose on negative ones.
    """
    score = rng.choice([0.1, 0.3, 0.7, 0.9], n_rows)
    positive = rng.random(n_rows) < score
    pooled_right = (score >= 0.5) == positive
    # Of a row that one of the two gets right: own wins most positive ones, and loses most negative ones.
    discordant = rng.random(n_rows) < DISCORDANCE
    own_right = rng.random(n_rows) < np.where(positive, 0.9, 0.1) - harm / DISCORDANCE / 2
    right = np.where(discordant, own_right, pooled_right)
    own_score = np.where(discordant, np.where(right == positive, 0.7, 0.3), score)
    pooled_score = np.where(discordant, 1 - own_score, score)
    return Batch(np.column_stack([own_score, pooled_score, rng.normal(size=n_rows)]), positive.astype(int))


@cache
def make_model() -> DecoupledClassifier:
    """Fit a model of one group, which its own classifier serves."""
    first = draw(np.random.default_rng(0), 2000)
    model = DecoupledClassifier(PooledPartition(), ReadOff(0), pooled=ReadOff(1), random_state=0)
    return model.fit(first.X, first.y)


Call = dict[str, Any]
"""What a monitor is told: arguments of `update`, or of `label`."""
World = Callable[[np.random.Generator], Iterator[Call]]


def in_random_order(rng: np.random.Generator, harm: float = 0.0) -> Iterator[Call]:
    """Yield months whose rows stand in random order."""
    for _ in range(MONTHS):
        yield draw(rng, harm=harm)._asdict()


def sorted_by_label(rng: np.random.Generator) -> Iterator[Call]:
    """Yield months whose negative rows come first."""
    for _ in range(MONTHS):
        X, y = draw(rng)
        order = np.argsort(y, kind="stable")
        yield {"X": X[order], "y": y[order]}


def overlapping(rng: np.random.Generator, again: float = 0.8) -> Iterator[Call]:
    """Yield files that begin with the last rows of the file before; without identifiers."""
    X, y = draw(rng)
    for _ in range(MONTHS):
        yield {"X": X, "y": y}
        kept, fresh = X[round((1 - again) * ROWS) :], draw(rng, round((1 - again) * ROWS))
        X, y = np.vstack([kept, fresh.X]), np.append(y[-len(kept) :], fresh.y)


def late_by_class(rng: np.random.Generator) -> Iterator[Call]:
    """Yield months whose negative labels come at once, and positive ones a month later."""
    late = None
    for month in range(MONTHS):
        X, y = draw(rng)
        ids = month * ROWS + np.arange(ROWS)
        yield {"X": X, "y": np.where(y == 0, y.astype(float), np.nan), "ids": ids}
        if late is not None:
            yield late
        late = {"ids": ids[y == 1], "y": y[y == 1]}


def with_shocks(rng: np.random.Generator, deviation: float = 0.1) -> Iterator[Call]:
    """Yield months in which all discordant rows together lean to one side, by chance, and to neither on average."""
    for _ in range(MONTHS):
        yield draw(rng, harm=float(rng.normal(0, deviation)) * 2 * DISCORDANCE)._asdict()


def inverted(rng: np.random.Generator, good: int = 6) -> Iterator[Call]:
    """Yield good months, and one with all labels the other way round and a column multiplied by ten."""
    for _ in range(good):
        yield draw(rng)._asdict()
    X, y = draw(rng)
    yield {"X": X * [1, 1, 10], "y": 1 - y}


def noticed(world: World, seed: int, **settings: Any) -> dict[str, int]:
    """Kinds of notices, and the number of the first call with each."""
    first, found = draw(np.random.default_rng([seed, 1]), 2000), {}
    monitor = Monitor(make_model(), reference=first.X, reference_labels=first.y, **settings)
    for call, given in enumerate(world(np.random.default_rng([seed, 0])), start=1):
        update = monitor.update(**given) if "X" in given else monitor.label(**given)
        for notice in update.notices:
            found.setdefault(notice.kind, call)
    return found


WORLDS: dict[str, tuple[World, Call]] = {
    "random order": (in_random_order, {}),
    "sorted by label": (sorted_by_label, {}),
    "80% of each file in the file before, no ids": (overlapping, {}),
    "positive labels a month late": (late_by_class, {}),
    "a month's rows share a shock": (with_shocks, {}),
    "the same, counted by batch": (with_shocks, {"by_batch": True}),
}
_KINDS = {"harm": "alarm, harm", "level": "alarm, level", "drift": "drift", "shock": "warning of shocks"}


def batch_share(name: str, n_worlds: int, first_seed: int = 0) -> dict[str, float]:
    """Percentage of worlds of one kind with each kind of notice."""
    world, settings = WORLDS[name]
    found = [noticed(world, seed, **settings) for seed in range(first_seed, first_seed + n_worlds)]
    return {title: 100 * float(np.mean([kind in one for one in found])) for kind, title in _KINDS.items()}


def inverted_share(n_worlds: int, good: int = 6) -> float:
    """Share of worlds in which a batch of inverted labels raises an alarm within itself, and none before it."""
    found = [noticed(partial(inverted, good=good), seed).get("level") for seed in range(n_worlds)]
    return float(np.mean([call == good + 1 for call in found]))


def files_table(n_worlds: int = 100) -> pd.DataFrame:
    """Percentage of worlds of 20,000 rows with any notice of each kind, where there is no harm."""
    return pd.DataFrame([{"files": name} | batch_share(name, n_worlds) for name in WORLDS])
