"""dafh fit: learn groups and their classifiers from a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dafh.cli.options import JSON, MODEL, check_writable, data_options
from dafh.cli.output import print_json, say

if TYPE_CHECKING:
    from dafh.tables.files import DataFile


@click.command(
    epilog="Example: dafh fit people.csv --target hired --sensitive sex,age --test-size 0.25 --out model.dafh"
)
@click.argument("data", metavar="DATA")
@click.option("--target", required=True, help="Column to predict.")
@click.option("--out", type=MODEL, default=Path("model.dafh"), show_default=True, help="Model file to write.")
@click.option("--drop", multiple=True, metavar="NAME,...", help="Columns to leave out.")
@click.option(
    "--sensitive",
    multiple=True,
    metavar="NAME,...",
    help="Sensitive attributes: kept out of training, used in the audit.",
)
@click.option(
    "--categories", multiple=True, metavar="NAME,...", help="Columns of numbers to treat as categories, such as codes."
)
@click.option("--groups", type=click.IntRange(1, 50), default=2, show_default=True, help="Number of groups.")
@click.option(
    "--guard",
    type=click.Choice(["veto", "proof", "none"]),
    default="veto",
    show_default=True,
    help="veto: use the pooled classifier for a group if calibration rows favour it or the two never disagree. proof: "
    "keep a group's own classifier only if calibration rows show that it is not worse.",
)
@click.option(
    "--pooled",
    type=click.Choice(["lr", "boosting"]),
    default="lr",
    show_default=True,
    help="The pooled classifier: logistic regression or gradient boosting.",
)
@click.option(
    "--test-size",
    type=click.FloatRange(0, 0.9),
    default=0.0,
    show_default=True,
    help="Share of the rows to set aside for audit and report; they are written beside the model.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@data_options
@JSON
def fit(
    data: "DataFile",
    target: str,
    out: Path,
    guard: str,
    groups: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn groups and their classifiers from a table.

    DATA is a CSV or Parquet file, compressed with gzip or not; - is standard input. What each column holds is guessed
    and reported: numbers, dates, categories, and identifiers, which are left out. So are rows without a target. A few
    words in a column of numbers, such as "unknown", count as missing.
    """
    import time

    check_writable(out)
    from dafh.workflows.training import TrainingTable

    start = time.monotonic()
    columns = {name: options.pop(name) for name in ("drop", "sensitive", "categories", "test_size")}
    table = TrainingTable.read(data, target, **columns, seed=options["seed"])
    for note in (table.headline(), *table.notes):
        say(note)
    model = table.fit(n_groups=groups, guard=None if guard == "none" else guard, verbose=1, **options)  # type: ignore[arg-type]
    test_rows = table.save(model, out)
    fitted = model[-1]
    epochs = f"kept epoch {fitted.best_epoch_} of {len(fitted.history_)}"
    say(f"Trained in {time.monotonic() - start:.0f} s; {epochs}.")
    if as_json:
        from dafh.models.files import read_card

        print_json({**read_card(out), "file": str(out), "test_rows": None if test_rows is None else str(test_rows)})
        return
    report = fitted.guard_report_
    if report is not None:
        click.echo(f"\n{report}")
    click.echo(f"\nModel: {out}")
    stale = out.with_suffix(".test.parquet")
    if test_rows is None and stale.exists():
        say(f"Note: {stale} is from an earlier fit; this model may have been trained on its rows.")
    if test_rows is not None:
        click.echo(f"Test rows: {test_rows}\n\nNext: dafh audit {out} {test_rows}")
