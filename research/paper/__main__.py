"""Reproduce the paper's tables and figures: ``python -m research.paper [TABLE ...]``."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import click
import numpy as np
from joblib import Parallel, delayed, parallel_config

from dafh.exceptions import DAFHWarning, InputError
from research.pages import markdown
from research.paper import study
from research.paper.claims import judge
from research.paper.document import is_complete, reproduction_tables
from research.paper.plan import DATASETS, TABLES, jobs
from research.paper.store import Job, Row, Store
from research.paper.tables import Results


@click.command(
    help="Reproduce tables of the paper, with the published numbers beside ours.\n\n"
    f"TABLE: {', '.join(TABLES)}; all by default."
)
@click.argument("tables", nargs=-1, type=click.Choice(TABLES), metavar="[TABLE]...")
@click.option("--data", type=click.Choice(DATASETS), multiple=True, help="Data set; all by default.")
@click.option("--splits", type=click.IntRange(1), default=5, show_default=True, help="Random splits, 75% to 25%.")
@click.option("--jobs", "n_jobs", type=click.IntRange(1), default=2, show_default=True, help="Jobs at a time.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("reproduction"), show_default=True
)
def main(tables: tuple[str, ...], data: tuple[str, ...], splits: int, n_jobs: int, out: Path) -> None:
    """Run the jobs that are not done yet, write the tables, and print them if they are short."""
    warnings.simplefilter("ignore", DAFHWarning)
    warnings.filterwarnings("ignore", "A worker stopped")  # joblib replaces workers that have grown.
    chosen = jobs(tables or TABLES, data or DATASETS, splits)
    try:
        out.mkdir(parents=True, exist_ok=True)
        store = Store(out / "results.json")
        pending = [job for job in chosen if job not in store.jobs]
        minutes = Store().expected_seconds(pending) / 60 / n_jobs
        expected = "time unknown" if np.isnan(minutes) else f"about {math.ceil(minutes)} min on {n_jobs} idle cores"
        click.echo(
            f"{len(pending)} of {len(chosen)} jobs to do: {expected}. An interrupted run goes on where it stopped."
        )
        started = time.perf_counter()
        run(pending, store, n_jobs=n_jobs)
    except (InputError, OSError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"Done in {(time.perf_counter() - started) / 60:.1f} minutes.\n")
    results, page = Results(store), out / "reproduction.md"
    sections = list(reproduction_tables(results, data or DATASETS, tables or TABLES).values())
    if is_complete(store):
        sections.insert(0, markdown(judge(results)))
    text = "\n\n".join(sections)
    page.write_text(text + "\n", encoding="utf-8")
    click.echo(text if len(text.splitlines()) <= 40 else "")
    click.echo(
        f"\nPr without harm / accuracy in percent, means over splits. Written to {page}. {compare_with_stored(store)} "
        "What the columns mean, and all tables: docs/reproduction.md"
    )


def run(
    jobs: list[Job],
    store: Store,
    *,
    n_jobs: int = 1,
    execute: Callable[[Job], list[Row]] | None = None,
) -> int:
    """Run the jobs that the store does not have, store each as soon as it is done, and return how many that were."""
    store.require_same_versions()
    pending = [job for job in dict.fromkeys(jobs) if job not in store.jobs]
    with parallel_config("loky" if n_jobs > 1 else "sequential", n_jobs=n_jobs):
        parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=2 * n_jobs)
        results = parallel(delayed(_timed)(execute or study.execute, job) for job in pending)
        for number, (job, rows, seconds) in enumerate(results, 1):
            store.put(job, rows, seconds)
            if number in (1, len(pending)) or number % math.ceil(len(pending) / 20) == 0:
                click.echo(f"{number} of {len(pending)} jobs done, last {astuple(job)}", err=True)
    return len(pending)


def _timed(execute: Callable[[Job], list[Row]], job: Job) -> tuple[Job, list[Row], float]:
    # CPU time does not depend on what else runs on the machine.
    started = time.process_time()
    rows = execute(job)
    return job, rows, time.process_time() - started


def compare_with_stored(store: Store) -> str:
    """Say how far accuracies are from those of the same jobs in the repository."""
    keys = ["dataset", "method", "k", "split"]
    both = store.table("models").merge(Store().table("models"), on=keys, suffixes=("", " stored"))
    if not len(both):
        return "The repository has none of these results."
    largest = 100 * (both["accuracy"] - both["accuracy stored"]).abs().max()
    return f"Largest difference of an accuracy from the stored results: {largest:.2f} percentage points."


if __name__ == "__main__":
    main()
