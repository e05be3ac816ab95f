"""The pages docs/reproduction.md and research/rivals/README.md: their tables and figures come from stored results.

``python -m research.paper.document [RESULTS]`` takes over the results of a full run, if any are named, and fills both.
"""

import shutil
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from research.pages import fill, markdown
from research.paper import figures, tables
from research.paper.claims import composition_gaps, judge
from research.paper.plan import DATASETS, FIRST, jobs
from research.paper.rivals_tables import families_table, harmed_table, means_table, related_work, splits_of
from research.paper.store import STORED, Store
from research.paper.tables import NAMES, READINGS, Results, number

ROOT = Path(__file__).parents[2]
REPRODUCTION, RIVALS = ROOT / "docs" / "reproduction.md", ROOT / "research" / "rivals" / "README.md"
# Tables by the name of the table that was asked for; each has a place on the page.
TABLES: dict[str, dict[str, Callable[[Results, Iterable[str]], pd.DataFrame]]] = {
    "readings": {"readings": partial(tables.pairs_table, name="readings")},
    "k2": {
        "k2": partial(tables.pairs_table, name="k2"),
        "ours": partial(tables.pairs_table, name="ours"),
        "details": tables.details_table,
    },
    "clustering": {"clustering": tables.clustering_table},
    "manual": {"manual": tables.manual_table},
    "compare": {"compare": tables.compare_table},
    "grid": {"grid": tables.grid_table},
    "synthetic": {"synthetic": lambda results, _: tables.synthetic_table(results)},
}


def reproduction_tables(results: Results, datasets: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Tables for which there are results, by their places on the page."""
    chosen = tuple(datasets)
    made = {place: make(results, chosen) for name in names if name in TABLES for place, make in TABLES[name].items()}
    return {place: markdown(table) for place, table in made.items() if len(table)}


def reproduction_places(results: Results) -> dict[str, str]:
    """Everything on docs/reproduction.md that depends on results; all tables must be there."""
    claims = judge(results)
    counts = ", ".join(f"{count} × {verdict}" for verdict, count in claims["verdict"].value_counts().items())
    splits = ", ".join(f"{d} {results.rows(d, FIRST, 2)['split'].nunique()}" for d in DATASETS)
    versions = ", ".join(" ".join(item) for item in results.store.about.items())
    who = [
        f"{NAMES[method]} {', '.join(number(men, 0) for men, _ in composition_gaps(results, method))}"
        for method in (FIRST, "exceptions")
    ]
    return {
        "versions": f"Random splits: {splits}. Made with {versions}.",
        "claims": f"{len(claims)} claims: {counts}.\n\n{markdown(claims)}",
        "who": f"Difference between the two groups in their share of non-white men up to 45, in points by split: "
        f"{'; '.join(who)}.",
        "related": markdown(related_work(results.store.table("rival"))),
    } | reproduction_tables(results, DATASETS, TABLES)


def rivals_places(results: Results) -> dict[str, str]:
    """Everything on the page of the rivals that depends on results."""
    rows = results.store.table("rival")
    return {
        "rivals": f"{splits_of(rows)}\n\n{markdown(means_table(rows))}",
        "families": markdown(families_table(rows)),
        "harmed": markdown(harmed_table(rows)),
    }


def charts(results: Results) -> dict[str, Any]:
    """The figures of docs/reproduction.md."""
    steps = [
        results.rows("violent", method.replace("paper", "steps")).assign(update=title)
        for method, title in READINGS.items()
    ]
    trivial = {metric: results.mean("violent", "trivial", 2, metric) / 100 for metric in ("pr", "accuracy")}
    shares = [results.rows("arrest", f"composition-{m}").assign(way=NAMES[m]) for m in (FIRST, "exceptions")]
    return {
        "convergence": figures.convergence(pd.concat(steps), trivial),
        "composition": figures.composition(pd.concat(shares).query("split == 0")),
    }


def is_complete(store: Store) -> bool:
    """Whether every job of the study is done on at least one split."""
    done = {(job.dataset, job.method, job.k) for job in store.jobs}
    return {(job.dataset, job.method, job.k) for job in jobs(splits=1)} <= done


def write_pages(results: Results) -> None:
    """Fill both pages, and draw the figures."""
    for page, places in ((REPRODUCTION, reproduction_places(results)), (RIVALS, rivals_places(results))):
        for name, text in places.items():
            fill(page, name, text)
    for name, chart in charts(results).items():
        chart.save(REPRODUCTION.parent / "figures" / f"{name}.png", scale_factor=2)


if __name__ == "__main__":
    if sys.argv[1:]:
        shutil.copyfile(sys.argv[1], STORED)
    write_pages(Results(Store()))
