"""How often the default harms: real fits in worlds whose probabilities are known, group by group.

Labels follow an additive logit with curved effects. In some worlds, effects turn round or levels shift in random
regions; in others there is nothing to find. The error of a classifier in a group is then known exactly, for the
pooled classifier and for the one that the guard lets serve.
"""

import copy
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dafh import DAFHClassifier, Incumbent
from dafh.exceptions import DAFHWarning

WAYS: dict[str, dict[str, Any]] = {
    "linear, auto": {"pooled": "linear"},
    "linear, K = 4": {"pooled": "linear", "n_groups": 4},
    "scorecard, K = 4": {"n_groups": 4},
    "stale incumbent": {},
}
SIZES = (3000, 7000)
_FRESH_ROWS = 40_000


class World:
    """Columns and labels whose probabilities are known."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.linear = rng.normal(0, 0.6, 4)
        self.curved = rng.normal(0, 0.5, 4)
        self.jobs = rng.normal(0, 0.5, 6)
        self.regions = [
            (rng.integers(4), rng.uniform(-1, 1), rng.random() < 0.5, rng.normal(0, 0.7), rng.normal(0, 0.7, 4))
            for _ in range(rng.integers(0, 4))
        ]

    def columns(self, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw rows."""
        table = pd.DataFrame(rng.normal(size=(n_rows, 4)), columns=[f"x{number}" for number in range(4)])
        return table.assign(job=rng.choice(list("abcdef"), n_rows))

    def probability(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """Probability of the label 1."""
        x = table[[f"x{number}" for number in range(4)]].to_numpy()
        logit = x @ self.linear + np.sin(1.5 * x) @ self.curved + self.jobs[table["job"].map("abcdef".index)]
        for column, cut, above, level, effects in self.regions:
            inside = (x[:, column] > cut) == above
            logit = logit + inside * (level + x @ effects)
        return expit(logit)


class Outcome(NamedTuple):
    """What became of one fit, errors as shares."""

    worst_harm: float
    """Largest true increase of the error in any group."""
    gain: float
    """True gain of the model over the pooled classifier."""
    gain_unguarded: float
    covered: float
    """Share of the groups whose true gain lies in the interval beside its rule; NaN without groups."""
    certified: float
    """Whether every certificate holds."""
    optimism: float
    """Mean of shown gain minus true gain, over groups with own classifiers."""
    n_groups: int


def outcome(way: str, n_rows: int, seed: int, **options: Any) -> Outcome:
    """Fit one model, and compare what it promises with the truth."""
    world, rng = World(seed), np.random.default_rng([seed, 1])
    X = world.columns(n_rows, rng)
    y = (rng.random(n_rows) < world.probability(X)).astype(int)
    parameters = dict(WAYS[way])
    if way == "stale incumbent":
        before, old = World(seed + 100_000), world.columns(n_rows, rng)
        mixed = 0.5 * before.probability(old) + 0.5 * world.probability(old)
        stale = LogisticRegression().fit(old[["x0", "x1", "x2", "x3"]], rng.random(n_rows) < mixed)
        parameters["pooled"] = Incumbent(stale, labels=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DAFHWarning)
        model = DAFHClassifier(**parameters, random_state=seed, **options).fit(X, y)
    fresh = world.columns(_FRESH_ROWS, rng)
    probability = world.probability(fresh)
    unguarded = copy.copy(model)
    unguarded._serve(None)  # The same classifiers, each serving its own group.
    group, n_groups = model.predict_group(fresh), model.n_groups_

    def error(label: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.where(label == 1, 1 - probability, probability)

    pooled, served, own = (error(one.predict(fresh)) for one in (model.pooled_, model, unguarded))
    members = [group == number for number in range(n_groups)]
    harm = [float((served - pooled)[inside].mean()) if inside.any() else 0.0 for inside in members]
    true_gain = np.array([(pooled - own)[inside].mean() if inside.any() else np.nan for inside in members])
    report = model.guard_report_
    table = report.table
    has_own = (table["own_worse"] + table["own_better"] > 0).to_numpy()
    inside = ((table["low"] <= true_gain) & (true_gain <= table["high"])).to_numpy()
    shown = (table["gain"].to_numpy() - true_gain)[has_own]
    return Outcome(
        max(harm),
        float((pooled - served).mean()),
        float((pooled - own).mean()),
        float(inside[has_own].mean()) if has_own.any() else np.nan,
        float(all(h <= limit + 1e-12 for h, limit in zip(harm, table["excluded_harm"], strict=True))),
        float(np.nanmean(shown)) if len(shown) else np.nan,
        n_groups,
    )


def harm_table(n_worlds: int = 500, seed: int = 0, n_jobs: int = 2, **options: Any) -> pd.DataFrame:
    """Share of fits that harm a group, how much of the gain is kept, and how often intervals and certificates hold."""
    table = []
    for way in WAYS:
        for n_rows in SIZES:
            tasks = (delayed(outcome)(way, n_rows, seed + number, **options) for number in range(n_worlds))
            found = pd.DataFrame(Parallel(n_jobs)(tasks), columns=Outcome._fields)
            table.append(
                {
                    "fit": way,
                    "rows": n_rows,
                    "groups": found["n_groups"].mean(),
                    "harmed": (found["worst_harm"] > 1e-9).mean(),
                    "by 0.5 points": (found["worst_harm"] > 0.005).mean(),
                    "by 1 point": (found["worst_harm"] > 0.01).mean(),
                    "gain": found["gain"].mean(),
                    "gain without guard": found["gain_unguarded"].mean(),
                    "kept": found["gain"].sum() / max(found["gain_unguarded"].sum(), 1e-12),
                    "intervals cover": found["covered"].mean(),
                    "certificates hold": found["certified"].mean(),
                    "optimism": found["optimism"].mean(),
                }
            )
    return pd.DataFrame(table)
