"""How often the default harms: real fits in worlds whose probabilities are known, group by group.

Labels follow an additive logit with curved effects. In some worlds, effects turn round or levels shift in random
regions; in others there is nothing to find. The error of a classifier in a group is then known exactly, for the
pooled classifier and for the one that the guard lets serve.
"""

import copy
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

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
            in_region = (x[:, column] > cut) == above
            logit = logit + in_region * (level + x @ effects)
        return expit(logit)


class Outcome(NamedTuple):
    """What became of one fit, errors as shares; NaN where there is no such group."""

    worst_harm: float
    """Largest true increase of the error in any group."""
    gain: float
    """True gain of the model over the pooled classifier."""
    gain_unguarded: float
    certified: float
    """Whether every certificate holds."""
    n_groups: int
    guard_covers: float
    """Share of the groups with own classifiers whose true gain lies in the interval beside the rule."""
    guard_optimism: float
    """Mean of the gain beside the rule minus the true gain, over groups with own classifiers."""
    kept_covers: float
    """The same for groups whose own classifier serves: those that the guard has chosen by the gain on its rows."""
    kept_optimism: float
    audit_covers: float
    """The same in an audit of held-out rows, for the groups that it recommends."""
    audit_optimism: float
    total_covers: float
    """The same for the gain of all rows that stands beside the recommendation."""
    total_optimism: float


def outcome(way: str, n_rows: int, seed: int, **options: Any) -> Outcome:
    """Fit one model, audit it on a third as many held-out rows, and compare what both promise with the truth."""
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
    return Outcome(
        float(harm.max()),
        float(served_gain.mean()),
        float(own_gain.mean()),
        float((harm <= guard["excluded_harm"] + 1e-12).all()),
        model.n_groups_,
        *_against_truth(guard, own, has_own),
        *_against_truth(guard, own, is_kept),
        *_against_truth(audited, served, recommended),
        *_against_truth(total, total_gain, np.array([bool(advice.deploy)])),
    )


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


def outcomes(
    n_worlds: int, seed: int, sizes: Sequence[int] = SIZES, n_jobs: int = 2, **options: Any
) -> dict[tuple[str, int], pd.DataFrame]:
    """Outcomes of all worlds, for each way to fit and number of rows."""
    return {
        (way, n_rows): pd.DataFrame(
            Parallel(n_jobs)(delayed(outcome)(way, n_rows, seed + number, **options) for number in range(n_worlds)),
            columns=Outcome._fields,
        )
        for way in WAYS
        for n_rows in sizes
    }


def harm_table(n_worlds: int = 500, seed: int = 0, n_jobs: int = 2, **options: Any) -> pd.DataFrame:
    """Share of fits that harm a group, how much of the gain is kept, and how often intervals and certificates hold."""
    return pd.DataFrame(
        {
            "fit": way,
            "rows": n_rows,
            "groups": fits["n_groups"].mean(),
            "harmed": (fits["worst_harm"] > 1e-9).mean(),
            "by 0.5 points": (fits["worst_harm"] > 0.005).mean(),
            "by 1 point": (fits["worst_harm"] > 0.01).mean(),
            "gain": fits["gain"].mean(),
            "gain without guard": fits["gain_unguarded"].mean(),
            "kept": fits["gain"].sum() / max(fits["gain_unguarded"].sum(), 1e-12),
            "intervals cover": fits["guard_covers"].mean(),
            "certificates hold": fits["certified"].mean(),
        }
        for (way, n_rows), fits in outcomes(n_worlds, seed, n_jobs=n_jobs, **options).items()
    )


def optimism_table(n_worlds: int = 300, seed: int = 0, n_jobs: int = 2) -> pd.DataFrame:
    """How far the gain beside a rule or a recommendation exceeds the true one, and how often its interval covers it."""
    return pd.DataFrame(
        {"fit": way, "rows": n_rows} | {name: fits[name].mean() for name in Outcome._fields[5:]}
        for (way, n_rows), fits in outcomes(n_worlds, seed, (1500, *SIZES), n_jobs).items()
    )
