"""Reproduce the paper's tables and figures: ``python -m research.paper [TABLE ...]``."""

import math
import time
import warnings
from pathlib import Path

import click
import numpy as np

from dafh.exceptions import DAFHWarning, InputError
from research.paper.document import is_complete, reproduction, rivals_text, write_reproduction
from research.paper.plan import DATASETS, TABLES, jobs
from research.paper.run import run
from research.paper.store import Job, Store
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
    """Run what is not done yet, write the page, and print it if it is short."""
    warnings.simplefilter("ignore", DAFHWarning)
    try:
        out.mkdir(parents=True, exist_ok=True)
        store = Store(out / "results.json")
        wanted = jobs(tables or TABLES, data or DATASETS, splits)
        pending = [job for job in wanted if not store.has(job)]
        minutes = Store().seconds(pending) / 60 / n_jobs
        expected = (
            "no time known" if np.isnan(minutes) else f"about {math.ceil(minutes)} minutes on {n_jobs} idle cores"
        )
        click.echo(
            f"{len(pending)} of {len(wanted)} jobs to do: {expected}. An interrupted run goes on where it stopped."
        )
        started = time.perf_counter()
        run(pending, store, n_jobs=n_jobs, on_done=report)
    except (InputError, OSError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"Done in {(time.perf_counter() - started) / 60:.1f} minutes.\n")
    results, page = Results(store), out / "reproduction.md"
    if is_complete(store):
        write_reproduction(results, page)
        (out / "rivals.md").write_text(rivals_text(results) + "\n", encoding="utf-8")
    else:
        sections = reproduction(results, data or DATASETS, tables or TABLES)
        text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections)
        page.write_text(text + "\n", encoding="utf-8")
        click.echo(text if len(text.splitlines()) <= 40 else "")
    click.echo(f"\nWritten to {page}. {compare_with_stored(store)} All tables as they are stored: docs/reproduction.md")


def compare_with_stored(store: Store) -> str:
    """Say how far accuracies are from those of the same jobs in the repository."""
    keys = ["dataset", "method", "k", "split"]
    both = store.table("models").merge(Store().table("models"), on=keys, suffixes=("", " stored"))
    if not len(both):
        return "The repository has none of these results."
    largest = 100 * (both["accuracy"] - both["accuracy stored"]).abs().max()
    return f"Largest difference of an accuracy from the stored results: {largest:.2f} percentage points."


def report(job: Job, done: int, total: int) -> None:
    """Write about 20 lines in all."""
    if done in (1, total) or done % math.ceil(total / 20) == 0:
        click.echo(f"{done} of {total} jobs done, last {job.dataset} {job.method}, split {job.split}", err=True)


if __name__ == "__main__":
    main()
