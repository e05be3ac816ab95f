"""Reproduce the paper's tables and figures: ``python -m research.paper [NAME ...]``."""

import math
from pathlib import Path

import click

from dafh.exceptions import InputError
from research.paper.reproduce import ARTEFACTS, Request, reproduce
from research.paper.runner import Job

HELP = {
    "hyperparameters": "the paper's settings, and the chosen ones",
    "defaults": "what a user gets by default, beside one classifier for all rows",
    "k2": "K = 2 against Trivial partition and Pooled",
    "clustering": "K = 2, 3, 4 against Clustering",
    "manual": "the manual partition on Arrest",
    "harm": "violations, gains and disparity of DAFH, Trivial, LR-All, TreeLR",
    "stability": "how much the groups change when the rows are drawn again",
    "rivals": "other ways to be fair without demographics, and whom each of them harms",
    "synthetic": "figure: the synthetic data",
    "convergence": "figure: convergence on Violent",
    "composition": "figure: composition of the groups on Arrest",
}


def report(job: Job, done: int, total: int) -> None:
    """Write about 20 lines in all."""
    if done in (1, total) or done % math.ceil(total / 20) == 0:
        click.echo(f"{done} of {total} jobs done, last {job.key}", err=True)


@click.command(
    help="Reproduce the paper's tables and figures, with the published numbers beside ours.\n\n"
    "\b\nNAME is one or more of\n"
    + "\n".join(f"  {name:<16} {HELP[name]}" for name in ARTEFACTS)
    + '\nWithout a name, or with the name "all", everything is reproduced.\n\nResults are stored as they come in: an '
    "interrupted run continues where it stopped."
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--protocol",
    type=click.Choice(["honest", "paper"]),
    default="honest",
    show_default=True,
    help="honest: everything is chosen on training rows. paper: the paper's 96 settings and SGD, chosen on test rows.",
)
@click.option("--splits", type=click.IntRange(min=2), default=5, show_default=True, help="Random 75/25 splits.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Jobs to run at a time.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for tables, figures and stored results.",
)
@click.option("--cluster", metavar="ADDRESS", help="Address of a Dask scheduler whose workers run the jobs.")
def main(names: tuple[str, ...], protocol: str, splits: int, jobs: int, out: Path, cluster: str | None) -> None:
    """Run what was asked for, and name the files."""
    try:
        files = reproduce(Request.of(names, protocol, splits, out), n_jobs=jobs, cluster=cluster, on_done=report)
    except InputError as error:
        raise click.UsageError(str(error)) from error
    for file in files:
        click.echo(str(file))


if __name__ == "__main__":
    main()
