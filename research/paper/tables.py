"""The paper's tables: which jobs each needs, and our numbers beside the published ones."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t as student

from research.paper import published
from research.paper.grid import Setting
from research.paper.methods import BY_ATTRIBUTES
from research.paper.runner import Job, Row

DATASETS = ("adult", "arrest", "violent", "german", "bank")
_HARM_DATASETS = ("adult", "arrest", "violent")
YARDSTICKS = ("pooled", "scorecard", "boosting", "majority")
# Ways to divide rows that the paper does not have: shown beside its own, under the honest protocol only.
OTHER_WAYS = ("dafh-network",)
OURS = ("dafh", *OTHER_WAYS)
_PERCENT = {
    "pr",
    "accuracy",
    "auc",
    "calibration",
    "max_gain",
    "max_envy_gap",
    "disparity_change",
    "disagreement",
    "smallest_share",
}
NAMES = {
    "dafh": "DAFH",
    "dafh-network": "DAFH, network",
    "default": "Scorecard and groups",
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
METRICS = {
    "pr": "Pr w/o harm",
    "accuracy": "accuracy",
    "violations": "violations",
    "max_gain": "max gain",
    "max_envy_gap": "min envy (paper's name)",
    "disparity_change": "Δ disparity",
    "n_models": "models",
    "disagreement": "disagreement",
    "smallest_share": "smallest group",
    "log_loss": "log-loss",
    "auc": "AUC",
    "calibration": "calibration error",
    "seconds": "seconds",
    "n_found": "groups",
}
BESIDE = ("log_loss", "auc", "calibration", "disagreement", "smallest_share")
"""Shown in every table, without published values."""


@dataclass(frozen=True)
class Line:
    """One row of a table: a method on a data set, and the numbers that the paper prints for it."""

    dataset: str
    method: str
    n_groups: int
    printed: published.Cell


@dataclass(frozen=True)
class Table:
    """A table of the paper."""

    name: str
    title: str
    lines: list[Line]
    metrics: tuple[str, ...]
    note: str = ""

    def under(self, protocol: str) -> "Table":
        """Return the table with the lines that a protocol has."""
        if protocol == "honest":
            return self
        return replace(self, lines=[line for line in self.lines if line.method not in OTHER_WAYS])

    def jobs(self, protocol: str, n_splits: int) -> list[Job]:
        """Jobs that the table needs."""
        needed = {(line.dataset, line.method, line.n_groups) for line in self.under(protocol).lines}
        return [
            Job(_protocol(protocol, method), dataset, _method(protocol, method), n_groups, split)
            for split in range(n_splits)
            for dataset, method, n_groups in sorted(needed)
        ]


def _protocol(protocol: str, method: str) -> str:
    """Protocol that a method runs under; yardsticks are the same under both, and run once."""
    return "honest" if method in (*YARDSTICKS, "default") else protocol


def _method(protocol: str, method: str) -> str:
    """Name of the job of a method: the paper's protocol trains all methods on its grid, by its SGD."""
    if protocol == "honest" or method in (*YARDSTICKS, *BY_ATTRIBUTES, "default"):
        return method
    return "grid" if method == "dafh" else f"grid-{method}"


def _printed(method: str) -> str:
    """Method of the paper whose numbers stand beside a line."""
    return "dafh" if method in OURS else method


def _defaults() -> Table:
    lines = [Line(d, "default", 1, {}) for d in DATASETS]
    note = (
        "Groups are learned on top of the scorecard, and only where held-out rows show that they add something: 1 "
        "group means that they did not. Seconds are those of one fit while other jobs ran on the same cores; "
        "research/benchmarks/speed.md has ratios measured in one run."
    )
    return Table("defaults", "What a user gets by default", lines, ("accuracy", "seconds", "n_found"), note)


def _k2() -> Table:
    lines = [Line(d, m, 2, published.K2[d, _printed(m)]) for d in DATASETS for m in (*OURS, "trivial")]
    return Table("k2", "K = 2 against Trivial partition and Pooled", lines, ("pr", "accuracy"))


def _clustering() -> Table:
    lines = [
        Line(d, m, k, published.CLUSTERING[d, _printed(m)][k - 2])
        for d in DATASETS
        for k in (2, 3, 4)
        for m in (*OURS, "clustering")
    ]
    return Table("clustering", "K = 2, 3, 4 against Clustering", lines, ("pr", "accuracy"))


def _manual() -> Table:
    lines = [Line("arrest", m, 2, published.MANUAL[m]) for m in ("dafh", "manual", "trivial")]
    return Table("manual", "The manual partition on Arrest", lines, ("pr", "accuracy"))


def _harm() -> Table:
    methods = ("dafh", "trivial", "lr-all", "treelr")
    lines = [Line(d, m, 2, published.HARM[d, m]) for d in _HARM_DATASETS for m in methods]
    metrics = ("violations", "max_gain", "max_envy_gap", "disparity_change", "n_models")
    note = (
        "LR-All and TreeLR divide rows by attributes, which are therefore not among their features, and are fitted "
        "to convergence under both protocols. Their gains are over a pooled classifier without those features, which "
        "is weaker by about 3 points on Adult and Arrest: they are not comparable with the other rows; accuracy to "
        "converged pooled is. Groups: sex × born in the US × marital status on Adult, sex × age on Arrest and Violent."
    )
    return Table("harm", "Violations, gains and disparity against methods that see attributes", lines, metrics, note)


TABLES: dict[str, Callable[[], Table]] = {
    "defaults": _defaults,
    "k2": _k2,
    "clustering": _clustering,
    "manual": _manual,
    "harm": _harm,
}


def with_yardsticks(table: Table) -> Table:
    """Add the converged pooled classifier and the majority class for every data set of the table."""
    datasets = dict.fromkeys(line.dataset for line in table.lines)
    printed = {d: published.K2.get((d, "pooled"), {}) for d in datasets}
    extra = [Line(d, m, 1, printed[d] if m == "pooled" else {}) for d in datasets for m in YARDSTICKS]
    lines = [line for d in datasets for line in [*table.lines, *extra] if line.dataset == d]
    return replace(table, lines=lines)


def summarize(table: Table, results: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """Summarise results: for each line of the table and each metric the published value, ours and the difference.

    Under the protocol "paper" the setting with the best mean accuracy on the test rows is taken, as in the paper.
    Accuracy against the pooled classifier, disagreement and group sizes are always there, because copies of the pooled
    classifier would win several of the paper's metrics.
    """
    pooled = results[(results["method"] == "pooled") & (results["protocol"] == "honest")]
    yardstick = pooled.set_index(["dataset", "split"])["accuracy"]
    rows = []
    for line in table.under(protocol).lines:
        mine = _choose(_select(results, line, protocol))
        row: Row = {"dataset": line.dataset, "K": _shown_groups(line), "method": NAMES[line.method]}
        for metric in (*table.metrics, *BESIDE):
            row |= _compare(metric, mine, line.printed.get(metric))
        rows.append(row | _against_pooled(mine, yardstick, line.dataset))
    return pd.DataFrame(rows)


def _shown_groups(line: Line) -> int | str:
    """K of a line, for methods whose number of groups is given."""
    if line.method == "default":
        return "auto"
    return "–" if line.method in BY_ATTRIBUTES else line.n_groups


def _select(results: pd.DataFrame, line: Line, protocol: str) -> pd.DataFrame:
    wanted = {
        "protocol": _protocol(protocol, line.method),
        "dataset": line.dataset,
        "method": _method(protocol, line.method),
        "n_groups": line.n_groups,
    }
    return results[np.logical_and.reduce([results[name] == value for name, value in wanted.items()])]


SETTING = list(Setting._fields)


def _choose(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the setting with the best mean accuracy on the test rows; results without settings stay as they are."""
    if "batch_size" not in rows or rows["batch_size"].isna().all():
        return rows
    best: Any = rows.groupby(SETTING)["accuracy"].mean().idxmax()
    return rows[(rows[SETTING] == list(best)).all(axis=1)]


def _compare(metric: str, mine: pd.DataFrame, printed: published.Value | None) -> Row:
    scale = 100.0 if metric in _PERCENT else 1.0
    values = scale * mine[metric].astype(float) if metric in mine else pd.Series(dtype=float)
    ours = values.mean()
    if metric in BESIDE:
        return {metric: ours}
    return {
        f"{metric} published": np.nan if printed is None else printed.mean,
        metric: ours,
        f"{metric} sd": values.std(ddof=1),
        f"{metric} difference": np.nan if printed is None else ours - printed.mean,
    }


def _against_pooled(mine: pd.DataFrame, yardstick: pd.Series, dataset: str) -> Row:
    """Accuracy minus that of the converged pooled classifier on the same splits, with the paired 95% interval."""
    difference = 100 * (mine.set_index("split")["accuracy"] - yardstick[dataset]).dropna().to_numpy()
    mean, low, high = paired_mean(difference)
    return {"to pooled": mean, "to pooled low": low, "to pooled high": high}


def paired_mean(differences: ArrayLike) -> tuple[float, float, float]:
    """Mean of paired differences with its 95% interval (Student's t)."""
    values = np.asarray(differences, np.float64)
    if len(values) < 2:
        return (float(values.mean()) if len(values) else np.nan), np.nan, np.nan
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(values.mean() - half), float(values.mean() + half)
