"""docs/reproduction.md: what agrees with the paper, what does not, and why; from the store of results.

``python -m dafh.study.document STORE FILE`` writes it.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from dafh.exceptions import InputError
from dafh.study.published import CLUSTERING
from dafh.study.reproduce import Request, chosen_settings, display, grid_values, provenance
from dafh.study.store import ResultStore
from dafh.study.tables import DATASETS, NAMES, TABLES, cells_won, significant_after_holm, summarize, with_yardsticks
from dafh.text import markdown

_LARGE = ("adult", "bank")


def write_document(store: Path, file: Path) -> None:
    """Write the page from the results of a store; both protocols must be complete."""
    with ResultStore(store) as opened:
        results = opened.frame(sorted(opened.keys()))
    parts = ["# The paper's tables, reproduced", _INTRODUCTION, *_honest(results, store.parent)]
    parts += _paper(results, store.parent)
    errata = pd.DataFrame(_ERRATA, columns=["in the paper", "what we find", "where it is shown"])
    parts += ["## Where the paper as printed cannot be right", markdown(errata)]
    file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _complete(results: pd.DataFrame, protocol: str, method: str, folder: Path) -> tuple[Request, pd.DataFrame]:
    """The request behind the results, and no others; refused if a job of it is missing."""
    done = results[(results["protocol"] == protocol) & (results["method"] == method)]
    if done.empty:
        raise InputError(
            f"The store has no results of the protocol {protocol}: run dafh reproduce --protocol {protocol}."
        )
    request = Request.of(tuple(TABLES), protocol, int(done["split"].max()) + 1, folder)
    kept = results[results["split"] < request.n_splits]
    names = kept["protocol"] + "/" + kept["dataset"] + "/" + kept["method"] + "/K" + kept["n_groups"].astype(str)
    if {job.key for job in request.jobs()} - set(names + "/split" + kept["split"].astype(str)):
        raise InputError(f"The store has not all results of the protocol {protocol}: run dafh reproduce again.")
    return request, kept


def _honest(results: pd.DataFrame, folder: Path) -> list[str]:
    request, results = _complete(results, "honest", "dafh", folder)
    tables = {name: with_yardsticks(make()) for name, make in TABLES.items()}
    summaries = {name: summarize(table, results, "honest") for name, table in tables.items()}
    parts = ["## Protocol honest", provenance(request), "### What was aimed at, and what came of it"]
    parts.append(markdown(_targets(summaries["clustering"], results)))
    parts.append(_clustering(summaries["clustering"]))
    for name, table in tables.items():
        parts += [f"### {table.title}", markdown(display(summaries[name], table.metrics))]
        parts += [table.note] if table.note else []
    return [*parts, *(f"### Figure: {title}\n\n![{title}](figures/{name}.png)" for name, title in _FIGURES.items())]


def _targets(summary: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """What can be claimed, counted, not chosen."""
    won, lost = cells_won(summary)
    mine = summary[summary["method"] == NAMES["dafh"]]
    large = mine[mine["dataset"].isin(_LARGE)]
    unsure = [f"{row['dataset']} K = {row['K']}" for _, row in large.iterrows() if row["to pooled low"] <= 0]
    tolerated = mine["dataset"].map({"german": -0.3}).fillna(-0.1)
    lower = mine[mine["to pooled"] < tolerated]
    significant, n_tests = significant_after_holm(results)
    at_two = results[(results["method"] == "dafh") & (results["n_groups"] == 2)].groupby("dataset")
    violations, shares = at_two["violations"].mean(), at_two["smallest_share"].min()
    rows = [
        ("Pr and accuracy above the published ones in 14 of 15 cells", f"{len(won)} of 15; not {_named(lost)}"),
        ("what is lost, within one published deviation", _within(mine, lost)),
        (
            "better than pooled on Adult and Bank, 95 % interval above zero",
            f"not {_named(unsure)}" if unsure else "yes",
        ),
        (
            "nowhere lower than pooled by more than 0.1 points (German 0.3)",
            "yes" if lower.empty else _named(lower["dataset"]),
        ),
        ("no violation after Holm over all tests of all models", f"{significant} of {n_tests:,}"),
        ("fewer than one violation (point estimate) per model at K = 2", _listing(violations.round(1))),
        ("no group under 2 % of the rows at K = 2", f"smallest: {_listing((100 * shares).round().astype(int), ' %')}"),
    ]
    return pd.DataFrame(rows, columns=["aim", "result"])


def _within(mine: pd.DataFrame, lost: list[str]) -> str:
    """Whether the cells that are lost lie within one published deviation."""
    found = []
    for _, row in mine.iterrows():
        name = f"{row['dataset']} K = {row['K']}"
        if name in lost:
            cell = CLUSTERING[row["dataset"], "dafh"][row["K"] - 2]
            near = all(row[f"{metric} difference"] >= -(cell[metric].deviation or 0) for metric in ("pr", "accuracy"))
            found.append(f"{name}: {'yes' if near else 'no'}")
    return ", ".join(found) or "nothing is lost"


def _clustering(summary: pd.DataFrame) -> str:
    cells = summary.pivot_table(index=["dataset", "K"], columns="method", values="accuracy")
    ahead = cells.index[cells[NAMES["clustering"]] > cells[NAMES["dafh"]]]
    names = [f"{dataset} K = {k}" for dataset, k in ahead]
    return f"Clustering, fitted to convergence, is more accurate than DAFH for {_named(names)}, with a lower Pr."


def _named(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names)) or "none"


def _listing(values: Any, unit: str = "") -> str:
    return ", ".join(f"{name} {values[name]}{unit}" for name in DATASETS if name in values)


def _paper(results: pd.DataFrame, folder: Path) -> list[str]:
    request, results = _complete(results, "paper", "grid", folder)
    parts = ["## Protocol paper", provenance(request), "### The paper's settings", markdown(grid_values())]
    for make in TABLES.values():
        table = with_yardsticks(make())
        parts += [f"### {table.title}", markdown(display(summarize(table, results, "paper"), table.metrics))]
    return [*parts, "### Chosen settings, published and ours", markdown(chosen_settings(results))]


_INTRODUCTION = """\
This page is made from the store of results by `python -m dafh.study.document`; no number is typed. Published values
stand beside ours with the difference. Two yardsticks are in every table: logistic regression **converged** on all
training rows, which is what a user would have otherwise, and the most frequent label. Pr without harm is 100 % for
copies of the pooled classifier, so accuracy against pooled, disagreement and the size of the smallest group stand
beside it."""

_FIGURES = {
    "synthetic": "the synthetic data",
    "convergence": "convergence on Violent with the paper's settings, from a pooled classifier",
    "composition": "who is in the groups on Arrest",
}
_ERRATA = [
    (
        "the surrogate has no absolute value",
        "both labels have the same gradient: nothing is learned",
        "test_objective.py",
    ),
    ("the penalty is added", "it would reward one large group; it is subtracted", "test_objective.py"),
    ("the second sum of the objective runs over i", "it runs over k", "dafh.engine.objective"),
    (
        "Proposition 1 is a lower bound",
        "only where every group is rational and envy-free already",
        "the proof in the paper needs it",
    ),
    ("Theorems 1 and 2 have the constant 3", "4 − 2/K; the printed one is broken for K > 2", "test_stats.py"),
    ('"min envy" is a maximum', "both are offered, each under its own name", "PreferenceMatrix"),
    ("settings are chosen on test rows", "protocol paper does so and says so, honest does not", "the tables above"),
    ("weak baselines", "converged logistic regression beats the printed pooled row everywhere", "the yardsticks above"),
    ("Violent, K = 2 (first table)", "lies below the most frequent label", "the yardsticks above"),
    ("tables disagree on Violent and Arrest, K = 2", "each value is kept with its table", "dafh.study.published"),
    (
        "the printed settings",
        "fail from a random start, and reach the printed numbers from a pooled one",
        "chosen settings",
    ),
]


if __name__ == "__main__":
    write_document(Path(sys.argv[1]), Path(sys.argv[2]))
