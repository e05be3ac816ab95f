"""How "veto" judges and what it keeps: the bias of its judged gain, and its rule."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom
from sklearn.base import clone

from dafh import DAFHClassifier

_FRESH_ROWS = 4000


def draw_rows(n_rows: int, n_columns: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Independent columns, and the probability of the label: it depends on four, differently where the first is > 0."""
    X = rng.normal(size=(n_rows, n_columns))
    logit = 0.8 * X[:, 0] - 0.6 * X[:, 1] + 0.4 * X[:, 2] + np.where(X[:, 0] > 0, 0.5, -0.5) * X[:, 3]
    return X, expit(logit)


def judged_and_true_gain(n_columns: int, n_rows: int, seed: int) -> tuple[float, float]:
    """Gain of own classifiers as calibration rows judge it, and as it really is, from one fit with two groups.

    Folds that hold calibration rows out judge classifiers that were fitted without them; the true gain is that of the
    classifiers of the model, which have seen all rows. Judged gains should be no larger.
    """
    rng = np.random.default_rng(seed)
    X, chance = draw_rows(n_rows, n_columns, rng)
    y = (rng.random(n_rows) < chance).astype(np.intp)
    # More calibration rows than by default: they change what is noise in the judged gain, not its bias.
    model = DAFHClassifier(2, groups="rules", pooled="linear", calibration_size=0.8, random_state=seed).fit(X, y)
    report = model.guard_report_.table
    judged = float((report["own_better"] - report["own_worse"]).sum() / report["rows"].sum())
    fresh, fresh_chance = draw_rows(_FRESH_ROWS, n_columns, rng)
    # Without a guard, own classifiers serve also where the guard would have chosen the pooled one.
    own = clone(model).set_params(guard=None).fit(X, y).predict(fresh)
    change = own.astype(np.float64) - model.pooled_.predict(fresh)
    return judged, float((change * (2 * fresh_chance - 1)).mean())


def bias_table(n_worlds: int = 100, n_rows: int = 2000, seed: int = 1000) -> pd.DataFrame:
    """Mean of judged minus true gain for 20 and 60 columns, with its standard error, all as shares of rows."""
    table = []
    for n_columns in (20, 60):
        found = [judged_and_true_gain(n_columns, n_rows, seed + i) for i in range(n_worlds)]
        judged, true = np.array(found).T
        error = float((judged - true).std(ddof=1) / np.sqrt(n_worlds))
        table.append((n_columns, float(judged.mean()), float(true.mean()), float((judged - true).mean()), error))
    return pd.DataFrame(table, columns=["columns", "judged gain", "true gain", "bias", "standard error"])


# ---- the rule ----


def kept_chance(n_rows: int, gain: float, discordance: float) -> float:
    """Probability that a group keeps its own classifier, which must get more rows right; by enumeration."""
    total = np.arange(n_rows + 1)
    # Of so many discordant rows, more than half must be won.
    won = binom.sf(total // 2, total, (discordance + gain) / 2 / discordance)
    return float(binom.pmf(total, n_rows, discordance) @ won)


def veto_table(sizes: tuple[int, ...] = (50, 200, 1000), discordance: float = 0.1) -> pd.DataFrame:
    """Share of own classifiers kept that are worse by 5, 2 and 1 points, equal, or better by 2."""
    gains = {"5 worse": -0.05, "2 worse": -0.02, "1 worse": -0.01, "equal": 0.0, "2 better": 0.02}
    return pd.DataFrame(
        [
            {"rows": n_rows, **{name: kept_chance(n_rows, gain, discordance) for name, gain in gains.items()}}
            for n_rows in sizes
        ]
    )
