"""Fill docs/rivals.md from the stored results, and draw its figure.

``python -m research.paper.rivals_page reproduction/results.sqlite docs/rivals.md`` does both.
"""

import sys
from pathlib import Path

import pandas as pd

from dafh.exceptions import InputError
from research.pages import fill, markdown
from research.paper.figures import harm_and_worst
from research.paper.rivals import PREFIX, rival_jobs
from research.paper.rivals_tables import (
    RIVALS_NOTE,
    display_rivals,
    figure_points,
    harmed_table,
    over_data_sets,
    summarize_rivals,
    verdict_sentences,
)
from research.paper.store import ResultStore

MARK = "rivals"


def write_page(store: Path, page: Path) -> None:
    """Fill the page, and draw its figure."""
    results = complete_results(store)
    summary = summarize_rivals(results)
    fill(page, MARK, _results(results, summary))
    figure = page.parent / "figures" / "rivals.png"
    figure.parent.mkdir(exist_ok=True)
    harm_and_worst(figure_points(summary)).save(figure, scale_factor=2)


def complete_results(store: Path) -> pd.DataFrame:
    """Return the results of all rivals; refuse a store in which a job is missing."""
    with ResultStore(store) as opened:
        keys = {key for key in opened.keys() if f"/{PREFIX}" in key}  # noqa: SIM118 - a method, not a mapping
        splits = sorted({int(key.rpartition("split")[2]) for key in keys})
        needed = {job.key for split in splits for job in rival_jobs(range(split, split + 1))}
        missing = needed - keys
        if not keys or missing:
            what = f"lacks {len(missing)} of {len(needed)} results" if keys else "has no results"
            raise InputError(f"The store {what} about rivals: run python -m research.paper rivals first.")
        return opened.frame(sorted(needed))


def _results(results: pd.DataFrame, summary: pd.DataFrame) -> str:
    n_splits = results["split"].nunique()
    parts = [
        f"Means of the five data sets, {n_splits} random splits 75/25 of each. {RIVALS_NOTE}",
        markdown(display_rivals(over_data_sets(summary))),
        "\n".join(f"- {sentence}" for sentence in verdict_sentences(results)),
        "![Accuracy of the worst named group against people harmed](figures/rivals.png)",
        "### Whom they harm",
        "Named groups that are shown to be harmed, with the number of splits in which they are. Methods that are not "
        "listed harm nobody as far as these rows can show: German has 250 test rows, and hides what is smaller than "
        "several percentage points.",
        markdown(harmed_table(results)),
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    write_page(*(Path(name) for name in sys.argv[1:]))
