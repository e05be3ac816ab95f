"""dafh watch: a model in use, batch by batch."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dafh.cli.options import COSTS, DATA, JSON, MODEL, PATH, SENSITIVE, TARGET, check_writable, loss_names
from dafh.cli.output import print_json, say

if TYPE_CHECKING:  # Importing them takes pandas, which `dafh --help` does without.
    from dafh.cli.watching import WatchedBatch
    from dafh.columns.read import DataFile


class WithDefault(click.Group):
    """Group of commands whose first one may be left out: `dafh watch model.dafh march.csv` adds a batch."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name of the first command where it is left out before an option."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take what is no command for the first argument of the first one."""
        if args and args[0] not in self.commands:
            name = next(iter(self.commands))
            return name, self.commands[name], args
        return super().resolve_command(ctx, args)


@click.group(cls=WithDefault, epilog="Example: dafh watch model.dafh march.csv --state watch.db")
def watch() -> None:
    """Watch a model in use, and say when a group is worse off than with the pooled classifier.

    \b
    dafh watch MODEL DATA --state FILE    adds a batch of rows, the same as "watch batch"
    dafh watch report FILE                writes a page about all batches

    You may look after every batch, forever: if no group is ever worse off, the probability of any alarm of harm is at
    most 5%; so is that of any alarm about the model by itself if its error and its probabilities stay as they are.
    """  # noqa: D301


@watch.command(epilog="Example: dafh watch batch model.dafh march.csv --state watch.db --fail-on-alarm")
@MODEL
@DATA
@click.option("--state", type=PATH, required=True, help="File that keeps what is known; made with the first batch.")
@click.option("--name", help="What the batch is called.  [default: the name of its file]")
@click.option("--id", "id_column", metavar="NAME", help="Column that identifies a row: known rows are left out.")
@TARGET
@click.option(
    "--person",
    metavar="NAME",
    help="Column that identifies the person of each row; the first row of a person counts.  [default: that of fit]",
)
@click.option("--weight", metavar="NAME", help="Column that says how much each row counts.  [default: that of fit]")
@click.option(
    "--largest-weight",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="Largest weight that any row will ever have; without it, each row counts once.",
)
@SENSITIVE
@click.option(
    "--losses",
    type=loss_names,
    metavar="LOSS,...",
    help="What must not get worse: error, fpr (false positive rate), fnr (false negative rate), cost.  "
    "[default: those of the guard in fit; cost with --costs]",
)
@COSTS
@click.option(
    "--level",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    help="Accepted probability of any false alarm, ever.  [default: 0.05]",
)
@click.option(
    "--drift-margin",
    type=click.FloatRange(0, 1, max_open=True),
    help="Change of a share that is tolerated: 0.01 is one percentage point.  [default: 0]",
)
@click.option(
    "--level-margin",
    type=click.FloatRange(0, 1, max_open=True),
    help="Rise of the model's error, and distance of predicted from observed shares, that is tolerated.  "
    "[default: 0.02]",
)
@click.option(
    "--min-labelled",
    type=click.FloatRange(0, 1),
    help="A batch counts when this share of its rows has labels; 0: each label as it comes.  [default: 0.95]",
)
@click.option("--by-batch", is_flag=True, default=None, help="Count each batch once: its rows may share a shock.")
@click.option("--apply", is_flag=True, help="Change who serves whom after alarms and proofs, and replace MODEL.")
@click.option("--fail-on-alarm", is_flag=True, help="Exit with code 1 while an alarm stands and MODEL still serves.")
@JSON
def batch(model: Path, data: "DataFile", state: Path, fail_on_alarm: bool, as_json: bool, **options: Any) -> None:
    """Add a batch of rows and print what changed.

    DATA needs the training columns. Rows without a target count for drift, and wait for their labels: give them again
    when the labels are known. A batch counts when nearly all its rows have labels. Rows that were given before are left
    out. What --losses, --level and the like say is settled with the first batch.
    """
    from dafh.cli.watching import watch_batch

    result = watch_batch(model, data, state, **options)
    for note in result.notes:
        say(f"Note: {note}")
    if as_json:
        print_json(result.to_dict())
    else:
        click.echo("\n".join(_lines(result)))
    if fail_on_alarm and result.standing:
        raise click.exceptions.Exit(1)


def _lines(result: "WatchedBatch") -> list[str]:
    """What a batch has changed, and what still stands."""
    from dafh.text import clipped

    if result.update is None:
        assert result.repeated is not None
        name = f" ({clipped(result.repeated.name)})" if result.repeated.name else ""
        lines = [f"These rows were given before, as batch {result.repeated.number}{name}: nothing is counted again."]
    else:
        lines = [str(result.update)]
    lines += [str(change) for change in result.changes]
    groups = set() if result.update is None else {alarm.group for alarm in result.update.alarms}
    for alarm in sorted(result.standing, key=lambda alarm: alarm.row):
        if alarm.group not in groups:  # One line for each group, and none for those of this batch.
            groups.add(alarm.group)
            # An alarm about the level is about no group's classifier.
            who = "the model in use by itself" if alarm.group is None else f"group {alarm.group}"
            lines.append(f"Alarm still standing: {who}, since batch {alarm.batch} (row {alarm.row:,}).")
    if any(alarm.group is not None for alarm in result.standing):
        lines.append("The model file still serves with these classifiers: --apply takes them out of service.")
    return lines


@watch.command(epilog="Example: dafh watch report watch.db --out watch.html")
@click.argument("state", type=PATH)
@click.option("--out", type=PATH, help="HTML file to write.  [default: watch.html; none with --json]")
@click.option("--title", help="Heading of the page.")
@JSON
def report(state: Path, out: Path | None, title: str | None, as_json: bool) -> None:
    """Write a page about all batches as one HTML file that needs no network.

    It shows alarms, who served whom when, and, batch by batch, evidence, gains and shares of rows.
    """
    out = out or (None if as_json else Path("watch.html"))
    if out is not None:
        check_writable(out)
    from dafh.monitor.store import WatchStore
    from dafh.report import write_report
    from dafh.report.watched import summarize_watch

    with WatchStore(state, must_exist=True) as store:
        summary = summarize_watch(store, title=title)
    if out is not None:
        write_report(summary, out)
    if as_json:
        print_json({name: value for name, value in summary.items() if name not in ("tables", "charts")})
        return
    assert out is not None
    click.echo(f"{summary['verdict']['headline'].upper()}: {summary['verdict']['sentence']}")
    click.echo(f"Report: {out.resolve()}")
