"""Write docs/reproduction.md from the stored results: what agrees with the paper, what does not, and why.

``python -m research.paper.document reproduction/results.sqlite docs/reproduction.md`` writes the page.
"""

import sys
from pathlib import Path

import pandas as pd

from dafh.exceptions import InputError
from research.pages import markdown
from research.paper.reproduce import (
    STABILITY_NOTE,
    Request,
    chosen_settings,
    display,
    grid_values,
    provenance,
    stability_table,
)
from research.paper.store import ResultStore
from research.paper.tables import TABLES, Table, summarize


def write_document(store: Path, file: Path) -> None:
    """Write the page from the results of a store; each protocol must be complete, and "paper" may be missing."""
    with ResultStore(store) as opened:
        results = opened.frame(sorted(opened.keys()))
    parts = ["# The paper's tables, reproduced", _INTRODUCTION, *_honest(results, store.parent)]
    parts += _paper(results, store.parent) if _has(results, "paper", "grid") else [_WITHOUT_PAPER]
    errata = pd.DataFrame(_ERRATA, columns=["in the paper", "what we find", "where it is shown"])
    parts += ["## Where the paper as printed cannot be right", markdown(errata)]
    file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _has(results: pd.DataFrame, protocol: str, method: str) -> bool:
    return bool(((results["protocol"] == protocol) & (results["method"] == method)).any())


def _complete(
    results: pd.DataFrame, protocol: str, method: str, wanted: tuple[str, ...], folder: Path
) -> tuple[Request, pd.DataFrame]:
    """Return the request behind the results, and its results only; refuse results with a missing job."""
    if not _has(results, protocol, method):
        raise InputError(f"The store has no results of the protocol {protocol!r}: reproduce all tables with it first.")
    done = results[(results["protocol"] == protocol) & (results["method"] == method)]
    request = Request.of(wanted, protocol, int(done["split"].max()) + 1, folder)
    kept = results[results["split"] < request.n_splits]
    names = kept["protocol"] + "/" + kept["dataset"] + "/" + kept["method"] + "/K" + kept["n_groups"].astype(str)
    needed = {job.key for job in request.jobs()}
    missing = needed - set(names + "/split" + kept["split"].astype(str))
    if missing:
        raise InputError(
            f"The store lacks {len(missing)} of {len(needed)} results of the protocol {protocol!r}, such as "
            f"{min(missing)}: reproduce all tables with it again."
        )
    return request, kept


def _honest(results: pd.DataFrame, folder: Path) -> list[str]:
    request, results = _complete(results, "honest", "dafh", (*TABLES, "stability"), folder)
    parts = ["## Protocol honest", provenance(request)]
    for table in request.tables():
        parts += _table(table, results, "honest")
    parts += ["### Stability of the rules", markdown(stability_table(results)), STABILITY_NOTE]
    return [*parts, *(f"### Figure: {title}\n\n![{title}](figures/{name}.png)" for name, title in _FIGURES.items())]


def _table(table: Table, results: pd.DataFrame, protocol: str) -> list[str]:
    shown = markdown(display(summarize(table, results, protocol), table.metrics))
    return [f"### {table.title}", shown, *([table.note] if table.note else [])]


def _paper(results: pd.DataFrame, folder: Path) -> list[str]:
    # The table of defaults is the same under both protocols.
    names = tuple(name for name in TABLES if name != "defaults")
    request, results = _complete(results, "paper", "grid", names, folder)
    parts = ["## Protocol paper", provenance(request), "### The paper's settings", markdown(grid_values())]
    for table in request.tables():
        parts += _table(table, results, "paper")
    return [*parts, "### Chosen settings, published and ours", markdown(chosen_settings(results))]


_INTRODUCTION = """\
`make reproduce` makes the results, and `python -m research.paper.document` writes this page from them; no number is
typed by hand. Every table shows the published values, ours and the difference, and four yardsticks, each one classifier
for all rows, fitted on all training rows: logistic regression, fitted to convergence ("Pooled, converged"); our
scorecard, which shows how much of a gain over logistic regression needs no groups; gradient boosting with the defaults
of scikit-learn; and the majority class.

DAFH has logistic regression as its pooled classifier, as in the paper. "DAFH" has exceptions, and "DAFH, network"
a network that starts at them. "Scorecard and groups" is the default of `DAFHClassifier`: the scorecard is the pooled
classifier, and held-out rows choose the number of groups.

Copies of the pooled classifier would have a Pr without harm of 100%. Accuracy against the pooled classifier,
disagreement and the size of the smallest group are therefore shown beside it. Where a method has probabilities, tables
also show log-loss, AUC and the calibration error: the mean distance between predicted probability and share of positive
labels, over ten parts of equal size."""
_WITHOUT_PAPER = """\
## Protocol paper

The store has no results of this protocol yet, so that its tables and the chosen settings are missing here."""

_FIGURES = {
    "synthetic": "the synthetic data",
    "convergence": "convergence on Violent with the paper's settings, from a pooled classifier",
    "composition": "who is in the groups on Arrest",
}
_ERRATA = [
    (
        "the surrogate has no absolute value",
        "both labels have the same gradient, and nothing is learned",
        "tests/test_objective.py",
    ),
    ("the penalty is added", "this would reward one large group; we subtract it", "tests/test_objective.py"),
    ("the second sum of the objective runs over i", "it runs over k", "dafh.engine.objective"),
    (
        "Proposition 1 is a lower bound",
        "only where every group is already rational and envy-free",
        "the proof in the paper needs it",
    ),
    (
        "Theorems 1 and 2 have the constant 3",
        "the constant is 4 − 2/K; a counterexample breaks 3 for K > 2",
        "tests/test_stats.py",
    ),
    ('"min envy" is a maximum', "both are computed, each under its own name", "PreferenceMatrix"),
    ("settings are chosen on test rows", "only the protocol paper does, and says so", "the tables above"),
    (
        "weak baselines",
        "logistic regression fitted to convergence beats the printed pooled classifier on every data set",
        "the yardsticks above",
    ),
    ("Violent, K = 2 (first table)", "less accurate than the majority class", "the yardsticks above"),
    (
        "tables disagree on Violent and Arrest, K = 2",
        "we compare each table with its own values",
        "research.paper.published",
    ),
    (
        "the printed settings",
        "fail from a random start, and reach the printed numbers from a pooled classifier",
        "chosen settings",
    ),
]


if __name__ == "__main__":
    write_document(Path(sys.argv[1]), Path(sys.argv[2]))
