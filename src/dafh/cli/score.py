"""dafh predict: score a table."""

from pathlib import Path
from typing import Any

import click

from dafh.cli.options import MODEL, check_writable, data_options
from dafh.cli.output import say


@click.command(epilog="Example: dafh predict model.dafh people.csv --keep id --out scored.csv")
@click.argument("model", type=MODEL)
@click.argument("data", metavar="DATA")
@click.option(
    "--out", default="-", metavar="FILE", help="Where the scores go: .csv, .csv.gz or .parquet.  [default: stdout]"
)
@click.option("--keep", multiple=True, metavar="NAME,...", help='Columns to carry over from DATA; "all" for every one.')
@data_options
def predict(
    model: Path,
    data: Any,
    out: str,
    keep: tuple[str, ...],
) -> None:
    """Score a table: prediction, probability and group of each row.

    DATA is read in pieces, so that a file larger than the memory is fine. In CSV output, text that a spreadsheet would
    run as a formula gets an apostrophe in front.
    """
    import time

    if out != "-":
        check_writable(Path(out))
    from dafh.tables.writing import TableWriter
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
        say(f"{writer.n_defused:,} cells would be formulas in a spreadsheet: they got an apostrophe in front.")
    seconds = time.monotonic() - start
    say(f"{n_rows:,} rows in {seconds:.1f} s ({n_rows / max(seconds, 1e-9):,.0f} rows a second).")
