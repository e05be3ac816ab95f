"""How "veto" judges and what it keeps: the bias of its judged gain, and its rule beside the one it replaced."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom

from dafh.classifiers.logits import decide
from dafh.estimators.dafh import DAFHClassifier
from dafh.estimators.learning import FittedGroupRules, LearnedGroups
from dafh.stats import mcnemar_p

# The rule of before: a group lost its own classifier at this one-sided mid-p value of McNemar's test.
OLD_LEVEL = 0.4
_FRESH_ROWS = 4000


class WatchedClassifier(DAFHClassifier):
    """A `DAFHClassifier` that keeps its fold models, and does not ask its guard."""

    def _keep(self, learned: LearnedGroups) -> None:
        super()._keep(learned)
        self.learned_ = learned

    def _judge(self, *_: Any) -> None:
        # The guard's tables would take longer than these small fits, and nobody reads them.
        self._serve(None)


@dataclass(frozen=True)
class LinearWorld:
    """Rows of d independent columns whose label depends on five of them, differently on two sides of the first."""

    n_columns: int

    def draw(self, n_rows: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw columns and the probability of the positive class."""
        X = rng.normal(size=(n_rows, self.n_columns))
        logit = 0.8 * X[:, 0] - 0.6 * X[:, 1] + 0.4 * X[:, 2] + np.where(X[:, 0] > 0, 0.5, -0.5) * X[:, 3]
        return X, expit(logit)


def judged_and_true_gain(world: LinearWorld, n_rows: int, seed: int) -> tuple[float, float]:
    """Gain of the fold models as calibration rows judge it, and as it really is, from one fit with two groups."""
    rng = np.random.default_rng(seed)
    X, chance = world.draw(n_rows, rng)
    y = (rng.random(n_rows) < chance).astype(np.intp)
    # More calibration rows than by default: they change what is noise in the judged gain, not its bias.
    model = WatchedClassifier(2, groups="rules", pooled="linear", calibration_size=0.8, random_state=seed).fit(X, y)
    learned: LearnedGroups = model.learned_
    compared = learned.compared()
    judged = float(compared.own_right.mean() - compared.right[:, -1].mean())
    rules = learned.rules
    fresh, fresh_chance = world.draw(_FRESH_ROWS, rng)
    number = [len(rules.held_out.calibration(block)) for block in range(rules.held_out.n_folds)]
    gains = [_true_gain(rules, model, block, X, fresh, fresh_chance) for block in range(len(number))]
    return judged, float(np.average(gains, weights=number))


def _true_gain(
    rules: FittedGroupRules,
    model: DAFHClassifier,
    block: int,
    X: NDArray[np.float64],
    fresh: NDArray[np.float64],
    chance: NDArray[np.float64],
) -> float:
    """Gain of the models of one fold, from the known probabilities of fresh rows."""
    # The pooled classifier without this fold is linear, so that the logits of the fold's rows give it away.
    members = np.flatnonzero(rules.held_out.fold == block)
    columns = [np.column_stack([np.ones(len(rows)), rows]) for rows in (X[members], fresh)]
    coefficients, _, rank, _ = np.linalg.lstsq(columns[0], rules.problem.base[block][members], rcond=None)
    assert rank == columns[0].shape[1], "a fold has fewer rows than coefficients"
    pooled = columns[1] @ coefficients
    served, seen = rules.served(rules.fitted.folds[block]), model._view.see(fresh)
    own = served.every(seen, pooled)[np.arange(len(fresh)), served.assign(seen)]
    change = decide(own).astype(np.float64) - decide(pooled)
    return float((change * (2 * chance - 1)).mean())


def bias_table(n_worlds: int = 500, n_rows: int = 2000, seed: int = 1000) -> pd.DataFrame:
    """Mean of judged minus true gain for 20 and 60 columns, with its standard error, all as shares of rows."""
    table = []
    for n_columns in (20, 60):
        found = [judged_and_true_gain(LinearWorld(n_columns), n_rows, seed + i) for i in range(n_worlds)]
        judged, true = np.array(found).T
        error = float((judged - true).std(ddof=1) / np.sqrt(n_worlds))
        table.append((n_columns, float(judged.mean()), float(true.mean()), float((judged - true).mean()), error))
    return pd.DataFrame(table, columns=["columns", "judged gain", "true gain", "bias", "standard error"])


# ---- the rule ----


def kept_chances(n_rows: int, gain: float, discordance: float) -> tuple[float, float]:
    """Probability that a group keeps its own classifier by the rule of now, and by that of before; by enumeration.

    Now: it got more rows right than the pooled one. Before: the rows did not speak against it, by a one-sided mid-p
    McNemar test at 0.4.
    """
    total = np.arange(n_rows + 1)[:, None]
    won = np.arange(n_rows + 1)[None, :]
    chance = binom.pmf(total, n_rows, discordance) * binom.pmf(won, total, (discordance + gain) / 2 / discordance)
    lost = np.maximum(total - won, 0)
    before = (total > 0) & (np.asarray(mcnemar_p(lost, np.broadcast_to(won, lost.shape), mid=True)) > OLD_LEVEL)
    return float(chance[(won > lost) & (won <= total)].sum()), float(chance[before & (won <= total)].sum())


def veto_table(sizes: tuple[int, ...] = (50, 200, 1000), discordance: float = 0.1) -> pd.DataFrame:
    """Share of own classifiers kept that are worse by 1, 2 and 5 points or better by 2, now and before."""
    table = []
    for n_rows in sizes:
        row: dict[str, float] = {"rows": n_rows}
        for gain, word in (
            (-0.05, "5 worse"),
            (-0.02, "2 worse"),
            (-0.01, "1 worse"),
            (0.0, "equal"),
            (0.02, "2 better"),
        ):
            row[f"{word}, now"], row[f"{word}, before"] = kept_chances(n_rows, gain, discordance)
        table.append(row)
    return pd.DataFrame(table)
