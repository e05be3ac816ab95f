"""dafh compare: who gains and who loses when a new model replaces an old one."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dafh.cli.options import JSON, PATH, check_writable, costs_of_errors, data_options, loss_names
from dafh.cli.output import print_json, say

if TYPE_CHECKING:
    from dafh.tables.read import DataFile

_CUTOFF = click.FloatRange(0, 1, max_open=True)
_SHARE = click.FloatRange(0, 0.5, min_open=True, max_open=True)


@click.command(epilog="Example: dafh compare rows.csv --target hired --old old --new new --fail-on-harm")
@click.argument("data", metavar="DATA")
@click.option("--old", required=True, metavar="NAME", help="Column with the old model's decisions, or a model file.")
@click.option("--new", required=True, metavar="NAME", help="Column with the new model's decisions, or a model file.")
@click.option("--target", help="Column with the true label.  [default: none, which says who is decided differently]")
@click.option("--sensitive", multiple=True, metavar="NAME,...", help="Attributes that define named groups.")
@click.option("--drop", multiple=True, metavar="NAME,...", help="Columns that rules must not be about.")
@click.option(
    "--person", metavar="NAME", help="Column that identifies the person of each row; tests then count persons."
)
@click.option(
    "--time", metavar="NAME", help="Column with the date of each row: rules are found on earlier rows, tested on later."
)
@click.option("--weight", metavar="NAME", help="Column that says how much each row counts, such as a survey weight.")
@click.option(
    "--losses",
    type=loss_names,
    metavar="LOSS,...",
    help="Losses to test: error, fpr (false positive rate), fnr (false negative rate), cost.  "
    "[default: error; cost with --costs]",
)
@click.option(
    "--costs",
    type=costs_of_errors,
    metavar="fp=COST,fn=COST",
    help="What a false positive and a false negative cost, such as fp=1,fn=5.",
)
@click.option("--old-cutoff", type=_CUTOFF, default=0.5, show_default=True, help="Old scores above it predict 'yes'.")
@click.option("--new-cutoff", type=_CUTOFF, default=0.5, show_default=True, help="New scores above it predict 'yes'.")
@click.option(
    "--level",
    type=_SHARE,
    default=0.05,
    show_default=True,
    help="Accepted probability that any group is shown to lose and does not.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Tolerated harm, as a share of rows: 0.01 is one percentage point.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 3),
    default=2,
    show_default=True,
    help="Most conditions of a rule, and most attributes to combine.",
)
@click.option(
    "--smallest", type=_SHARE, default=0.01, show_default=True, help="Smallest group, as a share of the rows."
)
@click.option(
    "--every-rule",
    type=_SHARE,
    metavar="SHARE",
    help="Also give one limit for the harm of every group of at least this share that two conditions describe.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Divides the rows into halves.")
@click.option("--fail-on-harm", is_flag=True, help="Exit with code 1 if any group is shown to lose.")
@click.option("--out", type=PATH, help="HTML file to write.")
@click.option("--title", help="Heading of the page.")
@data_options
@JSON
def compare(
    data: "DataFile",
    old: str,
    new: str,
    fail_on_harm: bool,
    out: Path | None,
    title: str | None,
    as_json: bool,
    seed: int,
    **options: Any,
) -> None:
    """Find who loses from a change of model.

    Nobody has to be named: rules for groups that lose are found on one half of the rows and tested on the other, and
    the reverse. A column of decisions holds labels of the target, or scores from 0 to 1. Use rows that neither model
    was trained on.
    """
    if out is not None:
        check_writable(out)
    from dafh.evaluation.compare import compare as compare_models
    from dafh.scoring import read_decided

    roles = {name: options.pop(name) for name in ("target", "sensitive", "drop", "person", "time", "weight")}
    rows, notes = read_decided(data, old, new, seed=seed, **roles)
    result = compare_models(**rows, random_state=seed, **options)
    for note in notes:
        say(f"Note: {note}")
    if out is not None:
        from dafh.report import summarize_comparison, write_report

        write_report(summarize_comparison(result, title=title or f"{old} and {new}: who loses?", notes=notes), out)
    if as_json:
        print_json({**result.to_dict(), "notes": list(notes)})
    else:
        click.echo(str(result))
        if out is not None:
            click.echo(f"\nReport: {out.resolve()}")
    if fail_on_harm and result.status == "harm":
        raise click.exceptions.Exit(1)
