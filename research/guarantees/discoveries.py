"""Groups that are found without being named: how often wrongly where nobody loses, and how often where somebody does.

Columns are independent of the labels, a third of them categories. In worlds without harm every claim is false: "equal"
models err equally often, on different rows; "better" is a new model that errs less in every group; "random labels" are
predicted by two rules about different columns, so that where the models differ depends on the columns. Of one model,
"uniform" errors are equally frequent everywhere, and "calibrated" scores are the true probabilities. In planted worlds,
one region of two conditions loses.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from dafh import compare, find_failures
from dafh.evaluation.discovery import RowHarm, count_rules
from dafh.stats import Differences

KINDS = ("equal", "better", "random labels", "uniform", "calibrated")
CELLS = tuple((n_rows, n_columns) for n_rows in (2_000, 5_000, 20_000, 50_000) for n_columns in (10, 100))
"""Rows and columns."""
_CATEGORIES = list("abcdefgh")
_DISCORDANCE = 0.06


def make_columns(n_rows: int, n_columns: int, rng: np.random.Generator) -> pd.DataFrame:
    """Independent columns: whole numbers, fractions, categories."""
    makers = (
        lambda: rng.integers(0, 60, n_rows).astype(float),
        lambda: rng.normal(size=n_rows),
        lambda: rng.choice(_CATEGORIES, n_rows),
    )
    return pd.DataFrame({f"x{number}": makers[number % 3]() for number in range(n_columns)})


def plant(table: pd.DataFrame, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A region of two conditions with about this share of the rows."""
    member = np.ones(len(table), bool)
    for name in rng.choice(table.columns, 2, replace=False):
        column = table[name]
        if column.dtype.kind in "fi":
            member &= (column > np.quantile(column, 1 - np.sqrt(share))).to_numpy()
        else:
            member &= column.isin(_CATEGORIES[: max(1, round(len(_CATEGORIES) * np.sqrt(share)))]).to_numpy()
    return member


def change(
    y: NDArray[np.intp], old: NDArray[np.intp], rng: np.random.Generator, mended: float = 0.0
) -> NDArray[np.intp]:
    """Decisions that become wrong and right equally often, but for a share of the rows that is mended."""
    wrong = old != y
    # Probabilities that depend on who was right before, so that as many rows turn either way.
    chance = np.where(wrong, (_DISCORDANCE / 2 + mended) / max(wrong.mean(), 1e-9), _DISCORDANCE / 2 / (~wrong).mean())
    return np.where(rng.random(len(y)) < chance, 1 - old, old)


def is_false_claim(kind: str, n_rows: int, n_columns: int, seed: int) -> bool:
    """Whether any group is shown to lose, or to fail, in one world where none does."""
    rng = np.random.default_rng(seed)
    table = make_columns(n_rows, n_columns, rng)
    if kind == "calibrated":
        # Errors are more frequent where scores are near one half: only claims about rates are false.
        score = expit(table["x0"] / 30 - 1 + 0.7 * table["x1"] + (table["x2"] == "a")).to_numpy()
        failures = find_failures(rng.binomial(1, score), score, table).discovered.table
        return bool((failures["shown"] & failures["loss"].isin(["above", "below"])).any())
    y = rng.integers(0, 2, n_rows)
    old = np.where(rng.random(n_rows) < 0.8, y, 1 - y)
    if kind == "uniform":
        return bool(find_failures(y, old, table).discovered.table["shown"].any())
    if kind == "random labels":
        old, new = ((table[name] > table[name].median()).to_numpy().astype(int) for name in ("x0", "x1"))
    else:
        new = change(y, old, rng, mended=0.01 if kind == "better" else 0.0)
    return compare(y, old, new, table, table[["x2"]], random_state=seed).status == "harm"


def false_discovery_table(n_worlds: int = 500, cells: tuple[tuple[int, int], ...] = CELLS) -> pd.DataFrame:
    """Share of worlds with any false claim."""
    lines = []
    for n_rows, n_columns in cells:
        shares = [
            np.mean([is_false_claim(kind, n_rows, n_columns, seed) for seed in range(n_worlds)]) for kind in KINDS
        ]
        lines.append((n_rows, n_columns, n_worlds, *shares))
    return pd.DataFrame(lines, columns=["rows", "columns", "worlds", *KINDS])


@dataclass(frozen=True)
class Planted:
    """One region that loses by a known amount."""

    n_rows: int
    share: float
    loss: float
    n_columns: int = 12

    def draw(self, seed: int) -> tuple[pd.DataFrame, NDArray[np.bool_], dict[str, NDArray[np.intp]]]:
        """Columns, the region, and labels with the decisions of both models."""
        rng = np.random.default_rng([self.n_rows, round(1000 * self.share), round(1000 * self.loss), seed])
        table = make_columns(self.n_rows, self.n_columns, rng)
        member = plant(table, self.share, rng)
        y = rng.integers(0, 2, self.n_rows)
        old = np.where(rng.random(self.n_rows) < 0.8, y, 1 - y)
        new = change(y, old, rng)
        # Of rows that stay right: four fifths of the region, so that its error rises by the loss.
        spoiled = member & (new == y) & (rng.random(self.n_rows) < self.loss / 0.8)
        return table, member, {"y": y, "old": old, "new": np.where(spoiled, 1 - y, new)}


def every_rule_misses(n_rows: int, n_columns: int, loss: float, seed: int, share: float = 0.05) -> bool:
    """Whether the limit of any rule lies below its true harm; a tenth of the rows loses by a known amount."""
    table, member, rows = Planted(n_rows, 0.1, loss, n_columns).draw(seed)
    difference = (rows["new"] != rows["y"]).astype(float) - (rows["old"] != rows["y"])
    ones = np.ones(n_rows)
    kinds = np.array([-1.0, 0.0, 1.0])
    counts = count_rules(table, RowHarm("error", difference, ones), kinds)
    members = count_rules(table, RowHarm("error", member * 1.0, ones), np.array([0.0, 1.0]))
    large = counts.sum(axis=1) >= share * n_rows
    truth = loss * members[large, 1] / members[large].sum(axis=1)
    p = Differences(kinds, np.ones(3), counts[large]).p_within(truth)
    return bool((p <= 0.05 / large.sum()).any())


def every_rule_table(n_worlds: int = 200) -> pd.DataFrame:
    """Share of worlds in which any limit of a class of rules is missed."""
    cells = [(2_000, 6, 0.0), (2_000, 6, 0.1), (10_000, 6, 0.0), (10_000, 6, 0.1)]
    shares = [np.mean([every_rule_misses(*cell, seed) for seed in range(n_worlds)]) for cell in cells]
    lines = [(*cell, n_worlds, share) for cell, share in zip(cells, shares, strict=True)]
    return pd.DataFrame(lines, columns=["rows", "columns", "planted loss", "worlds", "missed"])
