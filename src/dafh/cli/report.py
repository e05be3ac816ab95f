"""dafh report: one HTML file."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dafh.cli.options import (
    COSTS,
    DEPTH,
    JSON,
    LEVEL,
    LOSSES,
    MARGIN,
    MODEL,
    PERSON,
    SEEDS,
    SENSITIVE,
    TARGET,
    WEIGHT,
    check_writable,
    data_options,
)
from dafh.cli.output import print_json, say

if TYPE_CHECKING:  # Importing it takes pandas, which `dafh --help` does without.
    from dafh.tables.read import DataFile


@click.command(epilog="Example: dafh report model.dafh test.csv --out report.html")
@click.argument("model", type=MODEL)
@click.argument("data", metavar="[DATA]", required=False)
@click.option("--out", type=MODEL, help="HTML file to write.  [default: report.html; none with --json]")
@click.option("--title", help="Heading of the page.")
@SENSITIVE
@TARGET
@PERSON
@WEIGHT
@LOSSES
@COSTS
@LEVEL
@MARGIN
@DEPTH
@SEEDS
@data_options
@JSON
def report(
    model: Path,
    data: "DataFile | None",
    out: Path | None,
    title: str | None,
    sensitive: tuple[str, ...],
    target: str | None,
    person: str | None,
    weight: str | None,
    losses: tuple[str, ...] | None,
    costs: dict[str, float] | None,
    level: float,
    margin: float,
    depth: int,
    seeds: int | None,
    as_json: bool,
) -> None:
    """Write a report as one HTML file that needs no network.

    It begins with a recommendation: deploy, deploy for some groups only, keep the pooled classifier, or do not deploy.
    Printed, its first page is a summary for whoever decides.

    DATA needs the training columns and the target. Use rows that the model has not seen. Without it the report
    shows only what the guard decided in training, and the verdict is "not audited".
    """
    out = out or (None if as_json else Path("report.html"))
    if out is not None:
        check_writable(out)
    from dafh.report import summarize, write_report
    from dafh.workflows.serving import FileModel

    loaded = FileModel.open(model, target)
    title = title or f"Fairness report: {loaded.file.card.get('data', 'model')}, {loaded.schema.target}"
    if data is None:
        summary = summarize(loaded.model, title=title, card=loaded.file.card)
    else:
        rows = loaded.read(data, sensitive, target, person, weight)
        result = loaded.audit(rows, losses=losses or (), costs=costs, level=level, margin=margin, depth=depth)
        words = loaded.explain(rows, seeds)
        summary = summarize(loaded.model, result, words, title=title, card=loaded.file.card, notes=rows.notes)
    if out is not None:
        write_report(summary, out)
    if as_json:
        print_json(summary)
        return
    assert out is not None
    for note in summary["notes"]:
        say(f"Note: {note}")
    advice, verdict = summary["recommendation"], summary["verdict"]
    click.echo(f"RECOMMENDATION: {advice['headline']}.")
    click.echo(f"{verdict['headline'].upper()}: {verdict['sentence']}")
    if summary["worth"]:
        click.echo(summary["worth"])
    click.echo(f"Report: {out.resolve()}")
