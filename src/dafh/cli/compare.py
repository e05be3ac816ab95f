"""dafh compare: who gains and who loses when a new model replaces an old one."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dafh.cli.options import (
    COSTS,
    DATA,
    JSON,
    MARGIN,
    PATH,
    PERSON,
    TESTED_LOSSES,
    WEIGHT,
    check_writable,
)
from dafh.cli.output import print_json, say

if TYPE_CHECKING:
    from dafh.columns.read import DataFile

_CUTOFF = click.FloatRange(0, 1, max_open=True)


@click.command(epilog="Example: dafh compare rows.csv --target hired --old old --new new --fail-on-harm")
@DATA
@click.option("--old", required=True, metavar="NAME", help="Column with the old model's decisions, or a model file.")
@click.option("--new", required=True, metavar="NAME", help="Column with the new model's decisions, or a model file.")
@click.option("--target", help="Column with the true label.  [default: none, which says who is decided differently]")
@click.option("--sensitive", multiple=True, metavar="NAME,...", help="Attributes that define named groups.")
@click.option("--drop", multiple=True, metavar="NAME,...", help="Columns that rules must not be about.")
@PERSON
@click.option(
    "--time", metavar="NAME", help="Column with the date of each row: rules are found on earlier rows, tested on later."
)
@WEIGHT
@TESTED_LOSSES
@COSTS
@click.option("--old-cutoff", type=_CUTOFF, default=0.5, show_default=True, help="Old scores above it predict 'yes'.")
@click.option("--new-cutoff", type=_CUTOFF, default=0.5, show_default=True, help="New scores above it predict 'yes'.")
@MARGIN
@click.option(
    "--every-rule",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    metavar="SHARE",
    help="Also give one limit for the harm of every group of at least this share that two conditions describe.",
)
@click.option("--fail-on-harm", is_flag=True, help="Exit with code 1 if any group is shown to lose.")
@click.option("--out", type=PATH, help="HTML file to write.")
@JSON
def compare(
    data: "DataFile", old: str, new: str, fail_on_harm: bool, out: Path | None, as_json: bool, **options: Any
) -> None:
    """Find who loses from a change of model.

    Nobody has to be named: rules for groups that lose are found on one half of the rows and tested on the other, and
    the reverse. A column of decisions holds labels of the target, or scores from 0 to 1. Use rows that neither model
    was trained on.
    """
    if out is not None:
        check_writable(out)
    from dafh.cli.decided import read_decided
    from dafh.evaluation.compare import compare as compare_models

    roles = {name: options.pop(name) for name in ("target", "sensitive", "drop", "person", "time", "weight")}
    rows, notes = read_decided(data, old, new, **roles)
    result = compare_models(**rows, **options)
    for note in notes:
        say(f"Note: {note}")
    if out is not None:
        from dafh.report import summarize_comparison, write_report

        write_report(summarize_comparison(result, title=f"{old} and {new}: who loses?", notes=notes), out)
    if as_json:
        print_json({**result.to_dict(), "notes": list(notes)})
    else:
        click.echo(str(result))
        if out is not None:
            click.echo(f"\nReport: {out.resolve()}")
    if fail_on_harm and result.status == "harm":
        raise click.exceptions.Exit(1)
