"""dafh predict: score a table."""

import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dafh.cli.options import MODEL, check_writable, data_options
from dafh.cli.output import say

if TYPE_CHECKING:
    from dafh.tables.read import DataFile


@click.command(epilog="Example: dafh predict model.dafh people.csv --keep id --out scored.csv")
@click.argument("model", type=MODEL)
@click.argument("data", metavar="DATA")
@click.option(
    "--out", default="-", metavar="FILE", help="File to write: .csv, .csv.gz or .parquet.  [default: standard output]"
)
@click.option("--keep", multiple=True, metavar="NAME,...", help='Columns to carry over from DATA; "all" for every one.')
@data_options
def predict(
    model: Path,
    data: "DataFile",
    out: str,
    keep: tuple[str, ...],
) -> None:
    """Score a table: prediction, probability and group of each row.

    DATA is read in pieces, so it may be larger than memory. Columns are matched by name. A value that cannot be read,
    such as text in a column of numbers, counts as missing and is reported. In CSV output, text that a spreadsheet would
    run as a formula gets an apostrophe in front.
    """
    import time

    if out != "-":
        check_writable(Path(out))
    with _without_collecting():
        from dafh.tables.write import TableWriter
        from dafh.workflows.serving import FileModel

        loaded = FileModel.open(model)
    start, n_rows = time.monotonic(), 0
    with TableWriter(out) as writer:
        for chunk in loaded.score(data, keep):
            writer.write(chunk)
            n_rows += len(chunk)
    for note in data.notes:
        say(note)
    if writer.n_defused:
        say(f"{writer.n_defused:,} cells would be formulas in a spreadsheet: an apostrophe was put in front of each.")
    seconds = time.monotonic() - start
    say(f"{n_rows:,} rows in {seconds:.1f} s ({n_rows / max(seconds, 1e-9):,.0f} rows/s).")


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Import without the collector of garbage, and let it never look at what was imported.

    It would walk through all modules again and again and find nothing: 0.2 of 1.9 s before the first row is read.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
