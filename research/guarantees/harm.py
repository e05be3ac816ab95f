"""How often the default harms: real fits in worlds whose probabilities are known, group by group.

Labels follow an additive logit with curved effects. In some worlds, effects turn round or levels shift in random
regions; in others there is nothing to find. The error of a classifier in a group is then known exactly, for the
pooled classifier and for the one that the guard lets serve.
"""

import copy
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dafh import AuditResult, DAFHClassifier, Incumbent
from dafh.exceptions import DAFHWarning

WAYS: dict[str, dict[str, Any]] = {
    "linear, auto": {"pooled": "linear"},
    "linear, K = 4": {"pooled": "linear", "n_groups": 4},
    "scorecard, K = 4": {"n_groups": 4},
    "stale incumbent": {},
}
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
            in_region = (x[:, column] > cut) == above
            logit = logit + in_region * (level + x @ effects)
        return expit(logit)


def outcome(way: str, n_rows: int, seed: int, **options: Any) -> dict[str, float]:
    """Fit one model, audit it on a third as many held-out rows, and compare what both promise with the truth.

    Each promise is a gain with an interval. `covers` is the share of the intervals that hold the true gain, `optimism`
    the mean of promised minus true gain; both are NaN where nothing is promised.
    """
    world, rng = World(seed), np.random.default_rng([seed, 1])
    X = world.columns(n_rows, rng)
    y = (rng.random(n_rows) < world.probability(X)).astype(int)
    parameters = dict(WAYS[way])
    if way == "stale incumbent":
        parameters["pooled"] = stale_incumbent(world, n_rows, seed, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DAFHWarning)
        model = DAFHClassifier(**parameters, random_state=seed, **options).fit(X, y)
    fresh = world.columns(_FRESH_ROWS, rng)
    probability = world.probability(fresh)
    unguarded = copy.copy(model)
    unguarded._serve(None)  # The same classifiers, each serving its own group.

    def true_error(classifier: Any) -> NDArray[np.float64]:
        return np.where(classifier.predict(fresh) == 1, 1 - probability, probability)

    pooled_error = true_error(model.pooled_)
    served_gain, own_gain = pooled_error - true_error(model), pooled_error - true_error(unguarded)
    group = model.predict_group(fresh)
    members = [group == number for number in range(model.n_groups_)]
    served, own = (
        np.array([gain[rows].mean() if rows.any() else np.nan for rows in members]) for gain in (served_gain, own_gain)
    )
    harm = -np.nan_to_num(served)
    guard = model.guard_report_.table
    # Where a classifier never differs from the pooled one, gain and interval are 0 by construction.
    has_own = (guard["own_worse"] + guard["own_better"] > 0).to_numpy()
    is_kept = has_own & (guard["served_by"] != "pooled").to_numpy()
    held_out = world.columns(n_rows // 3, rng)
    result = AuditResult.of(model, held_out, (rng.random(len(held_out)) < world.probability(held_out)).astype(int))
    advice = result.recommendation
    recommended = np.array([str(number) in advice.deploy for number in range(model.n_groups_)])
    audited = result.by_group().iloc[: model.n_groups_]
    # The model as recommended: the pooled classifier serves all other groups.
    total_gain = np.array([(served_gain * recommended[group]).mean()])
    total = pd.DataFrame([advice.total])
    promises = {
        "beside rules": (guard, own, has_own),
        # Of these, the groups whose own classifier serves: the guard has chosen them by the gain on its rows.
        "beside rules, kept": (guard, own, is_kept),
        "audit, recommended groups": (audited, served, recommended),
        "audit, all rows": (total, total_gain, np.array([bool(advice.deploy)])),
    }
    measured = {
        "groups": float(model.n_groups_),
        "worst harm": float(harm.max()),
        "gain": float(served_gain.mean()),
        "gain without guard": float(own_gain.mean()),
        "certificates hold": float((harm <= guard["excluded_harm"] + 1e-12).all()),
    }
    for name, promise in promises.items():
        measured[f"{name}: covers"], measured[f"{name}: optimism"] = _against_truth(*promise)
    return measured


def stale_incumbent(world: World, n_rows: int, seed: int, rng: np.random.Generator) -> Incumbent:
    """Fit a logistic regression, blind to the category, to labels that half follow another world."""
    former, rows = World(seed + 100_000), world.columns(n_rows, rng)
    mixed = 0.5 * former.probability(rows) + 0.5 * world.probability(rows)
    return Incumbent(
        LogisticRegression().fit(rows[["x0", "x1", "x2", "x3"]], rng.random(n_rows) < mixed), labels=[0, 1]
    )


def _against_truth(
    promised: pd.DataFrame, truth: NDArray[np.float64], counted: NDArray[np.bool_]
) -> tuple[float, float]:
    """Share of intervals that cover the true gain, and mean of promised minus true gain, of the groups that count."""
    if not (counted & ~np.isnan(truth)).any():
        return np.nan, np.nan
    gain, low, high = (promised[name].to_numpy(np.float64)[counted] for name in ("gain", "low", "high"))
    truth = truth[counted]
    return float(((low <= truth) & (truth <= high)).mean()), float(np.nanmean(gain - truth))


def harm_table(
    n_worlds: int = 500, seed: int = 0, sizes: Sequence[int] = (3000, 7000), n_jobs: int = 2, **options: Any
) -> pd.DataFrame:
    """Share of fits that harm a group, how much of the gain is kept, and what promised gains are worth."""
    lines, seeds = [], range(seed, seed + n_worlds)
    for way, n_rows in itertools.product(WAYS, sizes):
        fits = pd.DataFrame(Parallel(n_jobs)(delayed(outcome)(way, n_rows, number, **options) for number in seeds))
        worst = fits.pop("worst harm")
        limits = {"harmed": 1e-9, "by 0.5 points": 0.005, "by 1 point": 0.01}
        harmed = {name: (worst > limit).mean() for name, limit in limits.items()}
        kept = fits["gain"].sum() / max(fits["gain without guard"].sum(), 1e-12)
        lines.append({"fit": way, "rows": n_rows, **harmed, "kept": kept, **fits.mean()})
    return pd.DataFrame(lines)
