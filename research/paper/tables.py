"""The paper's tables: our figures beside the published ones."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t as student

from research.paper import published
from research.paper.plan import COMPARED, DATASETS, FIRST, YARDSTICKS
from research.paper.store import Store
from research.paper.study import OURS, PAPER

NAMES = {
    FIRST: "DAFH",
    "paper-batch_mean": "DAFH, batch means",
    "paper-batch_sum": "DAFH, batch sums",
    "exceptions": "Exceptions",
    "network": "Network",
    "default": "Default",
    "pooled": "Pooled, converged",
    "scorecard": "Scorecard for all rows",
    "boosting": "Gradient boosting",
    "majority": "Majority class",
    "trivial": "Trivial partition",
    "clustering": "Clustering",
    "manual": "Manual partition",
    "lr-all": "LR-All",
    "treelr": "TreeLR",
}
# Title, factor (rates are shown in percent) and digits of every figure.
METRICS = {
    "pr": ("Pr w/o harm", 100, 2),
    "accuracy": ("accuracy", 100, 2),
    "violations": ("violations", 1, 1),
    "max_gain": ("max gain", 100, 2),
    "max_envy_gap": ("min envy (paper's name)", 100, 2),
    "disparity_change": ("Δ disparity", 100, 2),
    "n_models": ("models", 1, 1),
    "seconds": ("CPU seconds", 1, 1),
    "disagreement": ("disagreement", 100, 1),
    "smallest_share": ("smallest group", 100, 1),
}
_BESIDE = ("disagreement", "smallest_share")
_GRID = ["epochs", "rate", "group_rate", "penalty"]


@dataclass(frozen=True)
class Results:
    """Stored results, with the means and paired differences that tables and claims are made of."""

    store: Store

    def rows(self, dataset: str, method: str, k: int | None = None) -> pd.DataFrame:
        """Rows of a method on a data set, one for each split."""
        table = self.store.table(_kind(method))
        chosen = (table["dataset"] == dataset) & (table["method"] == method)
        return table[chosen if k is None else chosen & (table["k"] == k)]

    def mean(self, dataset: str, method: str, k: int, metric: str) -> float:
        """Mean over splits; rates in percent."""
        return scaled(self.rows(dataset, method, k), metric).mean()

    def difference(self, dataset: str, first: tuple[str, int], second: tuple[str, int], metric: str) -> float:
        """Mean difference of two methods on the splits that both have; rates in percentage points."""
        values = [scaled(self.rows(dataset, *method).set_index("split"), metric) for method in (first, second)]
        return float((values[0] - values[1]).mean())

    def has(self, dataset: str, *methods: tuple[str, int]) -> bool:
        """Whether there are results of all methods on a data set."""
        return all(len(self.rows(dataset, *method)) for method in methods)


def _kind(method: str) -> str:
    return method.partition("-")[0] if method.startswith(("sgd-", "steps-", "composition-", "rival-")) else "models"


def scaled(rows: pd.DataFrame, metric: str) -> pd.Series:
    """Values of a metric, rates in percent."""
    values = rows[metric].astype(float) if metric in rows else pd.Series(np.nan, rows.index)
    return values * METRICS[metric][1]


def paired_mean(differences: ArrayLike) -> tuple[float, float, float]:
    """Mean of paired differences with its 95% interval (Student's t); no interval for fewer than three splits."""
    values = np.asarray(differences, np.float64)
    if len(values) < 3:
        return (float(values.mean()) if len(values) else np.nan), np.nan, np.nan
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(values.mean() - half), float(values.mean() + half)


def number(value: float, digits: int = 2, sign: str = "") -> str:
    """Write a number, or a dash where there is none."""
    return "–" if np.isnan(value) else f"{value:{sign}z.{digits}f}"


def cells(rows: pd.DataFrame, metrics: Iterable[str], *, spread: bool = False) -> dict[str, str]:
    """Mean of each metric over some rows, and its standard deviation if that is asked for, under its title."""
    texts = {}
    for metric in metrics:
        title, _, digits = METRICS[metric]
        values = scaled(rows, metric)
        more = f" ± {values.std(ddof=1):.{digits}f}" if spread and values.notna().sum() > 1 else ""
        texts[title] = number(values.mean(), digits) + more
    return texts


def beside(printed: published.Cell, texts: dict[str, str]) -> dict[str, str]:
    """Put the published Pr and accuracy before ours."""
    both = {}
    for metric in ("pr", "accuracy"):
        title = METRICS[metric][0]
        if title in texts:
            both |= {f"{title}, published": number(printed.get(metric, np.nan)), title: texts[title]}
    return both | texts


# ---- tables of lines: data set, number of groups, method ----


@dataclass(frozen=True)
class Line:
    """One row of a table: a method on a data set, and what the paper prints for it."""

    dataset: str
    method: str
    k: int
    printed: published.Cell


def lines_of(table: str, datasets: Iterable[str] = DATASETS) -> list[Line]:
    """Lines of a table; one classifier for all rows and our default stand below each data set at K = 2."""
    lines = []
    for d in datasets:
        if table == "k2":
            lines += [Line(d, FIRST, 2, published.K2[d, "dafh"]), *(Line(d, m, 2, {}) for m in OURS)]
            lines += [Line(d, "trivial", 2, published.K2[d, "trivial"]), Line(d, "default", 1, {})]
            lines += [Line(d, m, 1, published.K2[d, "pooled"] if m == "pooled" else {}) for m in YARDSTICKS]
        elif table == "clustering":
            for k in (2, 3, 4):
                lines += [Line(d, FIRST, k, published.CLUSTERING[d, "dafh"][k - 2]), *(Line(d, m, k, {}) for m in OURS)]
                lines += [Line(d, "clustering", k, published.CLUSTERING[d, "clustering"][k - 2])]
        elif table == "manual" and d == "arrest":
            lines += [Line(d, FIRST, 2, published.MANUAL["dafh"]), *(Line(d, m, 2, {}) for m in OURS)]
            lines += [Line(d, name, 2, published.MANUAL[name]) for name in ("manual", "trivial")]
        elif table == "readings":
            lines += [Line(d, m, 2, published.K2[d, "dafh"]) for m in PAPER]
    return lines


SHOWN = {
    "k2": ("pr", "accuracy", "violations"),
    "clustering": ("pr", "accuracy", "violations"),
    "manual": ("pr", "accuracy", "violations"),
    "readings": ("pr", "accuracy", "violations", "seconds"),
}


def show(results: Results, lines: Sequence[Line], metrics: Sequence[str]) -> pd.DataFrame:
    """Figures of the lines that have results: published and ours, and the accuracy against the pooled classifier."""
    shown = []
    for line in lines:
        rows = results.rows(line.dataset, line.method, line.k)
        if len(rows):
            k = "auto" if line.method == "default" else line.k
            row: dict[str, Any] = {"data set": line.dataset, "K": k, "method": NAMES[line.method]}
            row |= beside(line.printed, cells(rows, metrics, spread=True))
            row |= {"accuracy to pooled": _to_pooled(results, line), **cells(rows, _BESIDE), "splits": len(rows)}
            shown.append(row)
    return pd.DataFrame(shown)


def _to_pooled(results: Results, line: Line) -> str:
    rows, pooled = (results.rows(line.dataset, *m).set_index("split") for m in ((line.method, line.k), ("pooled", 1)))
    if not len(pooled):
        return "–"
    mean, low, high = paired_mean((100 * (rows["accuracy"] - pooled["accuracy"])).dropna())
    return number(mean, 2, "+") + ("" if np.isnan(low) else f" ({low:+z.2f} to {high:+z.2f})")


# ---- the paper's protocol ----


def grid_table(results: Results, datasets: Iterable[str] = DATASETS) -> pd.DataFrame:
    """K = 2, the same SGD for all methods: the setting with the highest Pr on the test rows, as the text says.

    For the pooled classifier, which has no Pr, the most accurate one. The printed setting stands below.
    """
    names = {**NAMES, "paper": NAMES[FIRST], "pooled": "Pooled"}
    shown = []
    for dataset, method in itertools.product(datasets, ("paper", "trivial", "clustering", "manual", "pooled")):
        # All on the splits that the paper's method has, because they are compared with it.
        rows, paper = (results.rows(dataset, f"sgd-{name}") for name in (method, "paper"))
        rows = rows[rows["split"].isin(paper["split"])]
        if not len(rows):
            continue
        keys = [key for key in _GRID if key in rows and rows[key].notna().any()]
        criterion = "accuracy" if method == "pooled" else "pr"
        best: Any = rows.groupby(keys)[criterion].mean().idxmax()
        choices = {"most accurate" if method == "pooled" else "highest Pr": best}
        if method == "paper":
            _, epochs, group_rate, rate, penalty = published.CHOSEN_SETTINGS[dataset]
            choices["printed"] = (epochs, rate, group_rate, penalty)
        for choice, setting in choices.items():
            chosen = rows[(rows[keys] == list(setting)).all(axis=1)]
            row: dict[str, Any] = {"data set": dataset, "method": names[method]}
            row |= {"setting": choice} | dict.fromkeys(_GRID, "–")
            row |= {key: f"{value:g}" for key, value in zip(keys, setting, strict=True)}
            texts = cells(chosen, ("pr", "accuracy", "disagreement", "smallest_share"))
            shown.append(row | beside(_printed(dataset, method), texts) | {"splits": len(chosen)})
    return pd.DataFrame(shown).rename(columns={"rate": "rate of the h", "group_rate": "rate of θ", "penalty": "λ"})


def _printed(dataset: str, method: str) -> published.Cell:
    if method == "clustering":
        return published.CLUSTERING[dataset, "clustering"][0]
    return published.MANUAL["manual"] if method == "manual" else published.K2[dataset, method.replace("paper", "dafh")]


# ---- methods that see attributes ----

COMPARED_METHODS = (FIRST, *OURS, "trivial", "lr-all", "treelr")


def best_run(results: Results, dataset: str, method: str) -> "pd.Series[Any] | None":
    """Return the run with the best test accuracy, over numbers of models and splits, as in the paper's table."""
    rows = results.rows(dataset, method)
    return rows.loc[rows["accuracy"].astype(float).idxmax()] if len(rows) else None


def compare_table(results: Results, datasets: Iterable[str] = COMPARED) -> pd.DataFrame:
    """Published figures, those of the run with the best test accuracy, and the honest mean over splits (K = 2)."""
    shown = []
    for dataset in (name for name in datasets if name in COMPARED):
        for method in COMPARED_METHODS:
            best = best_run(results, dataset, method)
            if best is None:
                continue
            mean = results.rows(dataset, method, 1 if method in ("lr-all", "treelr") else 2)
            printed = published.HARM.get((dataset, "dafh" if method == FIRST else method))
            as_rows = {"best run": best.to_frame().T, "mean": mean}
            if printed:
                unscaled = {m: value / METRICS[m][1] for m, value in printed.items()}
                as_rows = {"published": pd.DataFrame([unscaled]), **as_rows}
            for run, rows in as_rows.items():
                row: dict[str, Any] = {"data set": dataset, "method": NAMES[method], "run": run}
                row |= cells(rows, (*published.HARM_METRICS, "accuracy"))
                shown.append(row | {"splits": "–" if run == "published" else len(mean)})
    return pd.DataFrame(shown)


def synthetic_table(results: Results) -> pd.DataFrame:
    """Means over the seeds of the synthetic data."""
    metrics = ("pr", "accuracy", "violations", "disagreement", "smallest_share")
    table = results.store.table("synthetic")
    ways = table.groupby("way", sort=False) if len(table) else ()
    shown = [(NAMES.get(f"paper-{way}", NAMES.get(way, way)), rows) for way, rows in ways]
    return pd.DataFrame([{"method": name, **cells(rows, metrics), "seeds": len(rows)} for name, rows in shown])
