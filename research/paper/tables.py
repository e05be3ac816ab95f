"""The paper's tables: our figures beside the published ones, in percent, as means over splits.

A cell is "Pr without harm/accuracy", or the accuracy alone where one classifier serves all rows.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import sem
from scipy.stats import t as student

from research.paper import published
from research.paper.plan import COMPARED, DATASETS, FIRST
from research.paper.store import Job, Store
from research.paper.study import OURS

NAMES = {
    FIRST: "DAFH",
    "exceptions": "Exceptions",
    "network": "Network",
    "trivial": "Trivial partition",
    "clustering": "Clusters",
    "manual": "Manual partition",
    "lr-all": "LR-All",
    "treelr": "TreeLR",
}
READINGS = {
    "paper-row": "one update per row",
    "paper-batch_mean": "batch means",
    "paper-batch_sum": "batch sums",
}
# Rates are shown in percent, and their differences in percentage points; the second number is that of digits.
METRICS = {
    "violations": ("violations", 1, 1),
    "max_gain": ("max gain", 100, 1),
    "max_envy_gap": ("min envy (paper's name)", 100, 1),
    "disparity_change": ("Δ disparity", 100, 1),
    "n_models": ("models", 1, 0),
    "accuracy": ("accuracy", 100, 1),
}
COMPARED_METHODS = (FIRST, "trivial", "lr-all", "treelr")
_GRID = ["epochs", "rate", "group_rate", "penalty"]


@dataclass(frozen=True)
class Results:
    """Stored results, with the means and paired differences that tables and claims are made of."""

    store: Store

    def rows(self, dataset: str, method: str, k: int | None = None) -> pd.DataFrame:
        """Rows of a method on a data set, one for each split."""
        table = self.store.table(Job(dataset, method, 0, 0).kind)
        chosen = (table["dataset"] == dataset) & (table["method"] == method)
        return table[chosen if k is None else chosen & (table["k"] == k)]

    def mean(self, dataset: str, method: str, k: int, metric: str) -> float:
        """Mean of a rate over splits, in percent; NaN without results."""
        rows = self.rows(dataset, method, k)
        return 100 * float(rows[metric].mean()) if metric in rows else np.nan

    def difference(
        self, dataset: str, first: tuple[str, int], second: tuple[str, int], metric: str
    ) -> "pd.Series[Any]":
        """Differences of a rate of two methods on the splits that both have, in percentage points."""
        values = [self.rows(dataset, *method).set_index("split")[metric].astype(float) for method in (first, second)]
        return 100 * (values[0] - values[1]).dropna()

    def has(self, dataset: str, *methods: tuple[str, int]) -> bool:
        """Whether there are results of all methods on a data set."""
        return all(len(self.rows(dataset, *method)) for method in methods)

    def pair(self, dataset: str, method: str, k: int) -> str:
        """Pr without harm and accuracy."""
        return pair({metric: self.mean(dataset, method, k, metric) for metric in ("pr", "accuracy")})


def paired_mean(differences: ArrayLike) -> tuple[float, float]:
    """Mean of paired differences with half of its 95% interval (Student's t); NaN for fewer than three splits."""
    values = np.asarray(differences, np.float64)
    # With two splits, Student's factor is 12.7: such an interval says nothing.
    if len(values) < 3:
        return (float(values.mean()) if len(values) else np.nan), np.nan
    return float(values.mean()), float(student.ppf(0.975, len(values) - 1) * sem(values))


def number(value: float, digits: int = 1, sign: str = "") -> str:
    """Write a number, or a dash where there is none."""
    return "–" if np.isnan(value) else f"{value:{sign}z.{digits}f}"


def pair(values: published.Cell) -> str:
    """Write Pr and accuracy in percent; the accuracy alone where there is no Pr."""
    pr, accuracy = values.get("pr", np.nan), number(values.get("accuracy", np.nan))
    return accuracy if np.isnan(pr) else f"{number(pr)}/{accuracy}"


# ---- tables of pairs: one line for each data set ----


# Columns of a table: a method with its number of groups, or the name of a published cell at K = 2.
COLUMNS: dict[str, dict[str, Any]] = {
    "readings": {title: (method, 2) for method, title in READINGS.items()},
    "k2": {
        "DAFH, published": "dafh",
        "DAFH": (FIRST, 2),
        "trivial, published": "trivial",
        "trivial": ("trivial", 2),
        "pooled, published": "pooled",
        "pooled": ("pooled", 1),
    },
    "ours": {
        **{name.capitalize(): (name, 2) for name in OURS},
        **{name.capitalize(): (name, 1) for name in ("default", "scorecard", "boosting", "majority")},
    },
}


def pairs_table(results: Results, datasets: Iterable[str], name: str) -> pd.DataFrame:
    """One of the tables in `COLUMNS`, all at K = 2."""
    lines = []
    for d in _with_results(results, datasets):
        cells = {
            title: pair(published.K2[d, cell]) if isinstance(cell, str) else results.pair(d, *cell)
            for title, cell in COLUMNS[name].items()
        }
        lines.append({"data set": d, **cells})
    return pd.DataFrame(lines)


def details_table(results: Results, datasets: Iterable[str] = DATASETS) -> pd.DataFrame:
    """What a Pr without harm needs beside it: copies of the pooled classifier have a perfect one."""
    lines = []
    for d, method in itertools.product(_with_results(results, datasets), (FIRST, "exceptions")):
        mean, half = paired_mean(results.difference(d, (method, 2), ("pooled", 1), "accuracy"))
        lines.append(
            {
                "data set": d,
                "method": NAMES[method],
                "accuracy to pooled, points": number(mean, 1, "+") + ("" if np.isnan(half) else f"±{half:.1f}"),
                "decided differently, %": number(results.mean(d, method, 2, "disagreement")),
                "smallest group, %": number(results.mean(d, method, 2, "smallest_share")),
            }
        )
    return pd.DataFrame(lines)


_CLUSTERED = {FIRST: "dafh", "clustering": "clustering"}


def clustering_table(results: Results, datasets: Iterable[str] = DATASETS) -> pd.DataFrame:
    """K = 2, 3 and 4 against K-means clusters, as published and as measured."""
    lines = []
    for d, (method, name) in itertools.product(_with_results(results, datasets), _CLUSTERED.items()):
        line = {"data set": d, "method": NAMES[method]}
        for k, cell in zip((2, 3, 4), published.CLUSTERING[d, name], strict=True):
            line |= {f"K = {k}, published": pair(cell), f"K = {k}": results.pair(d, method, k)}
        lines.append(line)
    return pd.DataFrame(lines)


def manual_table(results: Results, datasets: Iterable[str] = DATASETS) -> pd.DataFrame:
    """Groups by race, sex and age on Arrest."""
    line = {}
    for title, method in (("DAFH", FIRST), ("manual", "manual"), ("trivial", "trivial")):
        line |= {f"{title}, published": pair(published.MANUAL[title.lower()]), title: results.pair("arrest", method, 2)}
    return pd.DataFrame([line] if "arrest" in _with_results(results, datasets) else [])


def _with_results(results: Results, datasets: Iterable[str]) -> list[str]:
    """Data sets on which the paper's algorithm has run, as in every table of pairs."""
    return [d for d in datasets if results.has(d, (FIRST, 2))]


# ---- the paper's protocol ----


def best_setting(results: Results, dataset: str, method: str) -> pd.DataFrame:
    """Rows of the setting of the grid with the highest Pr on the test rows, as the text of the paper says.

    For the pooled classifier, which has no Pr, of the most accurate one. All on the splits that the paper's method has.
    """
    rows, paper = (results.rows(dataset, f"sgd-{name}") for name in (method, "paper"))
    rows = rows[rows["split"].isin(paper["split"])]
    keys = [key for key in _GRID if key in rows and rows[key].notna().any()]
    if not len(rows):
        return rows
    best: Any = rows.groupby(keys)["accuracy" if method == "pooled" else "pr"].mean().idxmax()
    return rows[(rows[keys] == list(best)).all(axis=1)]


def grid_table(results: Results, datasets: Iterable[str] = DATASETS) -> pd.DataFrame:
    """K = 2, the same SGD for all methods: the best settings of each, and the printed one of the paper's."""
    lines = []
    for d in datasets:
        rows = results.rows(d, "sgd-paper")
        if not len(rows):
            continue
        _, epochs, group_rate, rate, penalty = published.CHOSEN_SETTINGS[d]
        printed = rows[(rows[_GRID] == [epochs, rate, group_rate, penalty]).all(axis=1)]
        line = {"data set": d, "DAFH, printed setting": _pair_of(printed)}
        for method, title in (
            ("paper", "DAFH"),
            ("trivial", "trivial"),
            ("clustering", "clusters"),
            ("pooled", "pooled"),
        ):
            line[f"{title}, best setting"] = _pair_of(best_setting(results, d, method))
        lines.append(line)
    return pd.DataFrame(lines)


def _pair_of(rows: pd.DataFrame) -> str:
    return pair({m: 100 * float(rows[m].mean()) for m in ("pr", "accuracy") if m in rows})


# ---- methods that see attributes, and the synthetic data ----


def best_run(results: Results, dataset: str, method: str) -> "pd.Series[Any]":
    """Return the run with the best test accuracy, over numbers of models and splits, as in the paper's table."""
    rows = results.rows(dataset, method)
    return rows.loc[rows["accuracy"].astype(float).idxmax()]


def compare_table(results: Results, datasets: Iterable[str] = COMPARED) -> pd.DataFrame:
    """Published figures, those of the run with the best test accuracy, and the honest mean over splits (K = 2)."""
    lines = []
    for d in datasets:
        for method in COMPARED_METHODS if results.has(d, ("lr-all", 1)) else ():
            best = best_run(results, d, method)
            mean = results.rows(d, method, 1 if method in ("lr-all", "treelr") else 2)
            printed = published.HARM.get((d, "dafh" if method == FIRST else method), {})
            line: dict[str, Any] = {"data set": d, "method": NAMES[method]}
            for metric, (title, scale, digits) in METRICS.items():
                cells = [printed[metric]] if metric in printed else []
                cells += [scale * float(best[metric]), scale * float(mean[metric].mean())]
                line[title] = "/".join(number(cell, digits) for cell in cells)
            lines.append(line)
    return pd.DataFrame(lines)


def synthetic_table(results: Results) -> pd.DataFrame:
    """Means over the seeds of the synthetic data."""
    table = results.store.table("synthetic")
    if not len(table):
        return table
    names = {way.removeprefix("paper-"): f"DAFH, {title}" for way, title in READINGS.items()}
    names |= {"network": "our network", "exceptions": "our exceptions"}
    ways = table.groupby("way", sort=False)
    line = {names.get(way, way): _pair_of(rows) for way, rows in ways}
    return pd.DataFrame([line | {"seeds": int(table["split"].nunique())}])
