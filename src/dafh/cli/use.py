"""What is done with a model file: predict, audit, explain, report, show and export."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dafh.cli.options import (
    AUDIT_OPTIONS,
    DATA,
    JSON,
    MODEL,
    PATH,
    SENSITIVE,
    TARGET,
    check_writable,
)
from dafh.cli.output import print_json, say

if TYPE_CHECKING:  # Importing it takes pandas, which `dafh --help` does without.
    from dafh.columns.read import DataFile

# Not from `dafh.sql`, which takes NumPy: help does without. A test compares the two.
DIALECTS = ("duckdb", "postgres", "snowflake", "sqlite")
_MOST_NAMES = 12
_MOST_SEARCHED = 200_000
"""Rows that an audit searches for groups that the model fails; everything else counts all rows."""


@click.command(epilog="Example: dafh predict model.dafh people.csv --keep id --out scored.csv")
@MODEL
@DATA
@click.option(
    "--out", default="-", metavar="FILE", help="File to write: .csv, .csv.gz or .parquet.  [default: standard output]"
)
@click.option("--keep", multiple=True, metavar="NAME,...", help='Columns to carry over from DATA; "all" for every one.')
def predict(model: Path, data: "DataFile", out: str, keep: tuple[str, ...]) -> None:
    """Score a table: prediction, probability and group of each row.

    DATA is read in pieces, so it may be larger than memory. Columns are matched by name. A value that cannot be read,
    such as text in a column of numbers, counts as missing and is reported. In CSV output, text that a spreadsheet would
    run as a formula gets an apostrophe in front.
    """
    import time

    if out != "-":
        check_writable(Path(out))
    from dafh.cli.model_file import ModelFile
    from dafh.columns.write import TableWriter

    loaded = ModelFile.open(model)
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


@click.command(epilog="Example: dafh audit model.dafh test.csv --sensitive sex,age --losses error,fnr")
@MODEL
@DATA
@AUDIT_OPTIONS
@click.option("--fail-on-harm", is_flag=True, help="Exit with code 1 if a group is shown to lose.")
@click.option("--details", is_flag=True, help="Show all questions and answers, kinds of error by group, and envy.")
@JSON
def audit(model: Path, data: "DataFile", fail_on_harm: bool, details: bool, as_json: bool, **options: Any) -> None:
    """Say whether to deploy a model, who is failed now, and who changes.

    Every group is compared with the pooled classifier: learned groups, and those that sensitive attributes define.
    DATA needs the training columns and the target. Use rows that the model has not seen.
    """
    from dafh.cli.model_file import ModelFile
    from dafh.explanation import adds_nothing, worth_of_groups

    loaded = ModelFile.open(model, options["target"])
    rows = loaded.read(data, **_pop_columns(options), most_features=_MOST_SEARCHED)
    result = loaded.audit(rows, **options)
    worth = worth_of_groups(loaded.model)
    for note in (*rows.notes, *([worth] if worth and adds_nothing(loaded.model) else [])):
        say(f"Note: {note}")
    if as_json:
        print_json({**result.to_dict(), "worth": worth, "notes": list(rows.notes)})
    else:
        click.echo(f"{result}\n\n{result.details()}" if details else str(result))
        if not details:
            say("All questions, answers and kinds of error: --details")
    if fail_on_harm and result.harm:
        raise click.exceptions.Exit(1)


def _pop_columns(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options that name columns of the rows to audit from the others."""
    return {name: options.pop(name) for name in ("sensitive", "target", "person", "weight")}


@click.command(epilog="Example: dafh explain model.dafh people.csv --sensitive sex")
@MODEL
@DATA
@SENSITIVE
@TARGET
@JSON
def explain(model: Path, data: "DataFile", sensitive: tuple[str, ...], target: str | None, as_json: bool) -> None:
    """Describe the groups in words.

    Says first whether groups help at all, and then describes each group: its size, its rule, the gain of its
    classifier, the columns in which it differs from the other rows, how its classifier differs from the pooled one,
    and how common each value of a sensitive attribute is in it. At the end are groups that the model fails, found and
    tested on different rows. The rules of exceptions are exact. For a network, the
    best short rule is shown, with its precision and recall.
    """
    from dafh.cli.model_file import ModelFile
    from dafh.explanation import explain as explain_groups

    loaded = ModelFile.open(model, target)
    rows = loaded.read(data, sensitive, target)
    words = explain_groups(loaded.model, rows.features, sensitive_features=rows.sensitive)
    failures = loaded.audit(rows).failures
    if as_json:
        print_json({**words.to_dict(), "failures": None if failures is None else failures.to_dict()})
    else:
        click.echo(f"{words}\n\n{failures}")


@click.command(epilog="Example: dafh report model.dafh test.csv --out report.html")
@MODEL
@DATA
@click.option("--out", type=PATH, default=Path("report.html"), show_default=True, help="HTML file to write.")
@AUDIT_OPTIONS
def report(model: Path, data: "DataFile", out: Path, **options: Any) -> None:
    """Write a report as one HTML file that needs no network.

    It begins with a recommendation: deploy, deploy but check, deploy for some groups only, keep the pooled classifier,
    or do not deploy. Printed, its first page is a summary for whoever decides.

    DATA needs the training columns and the target. Use rows that the model has not seen.
    """
    check_writable(out)
    from dafh.cli.model_file import ModelFile
    from dafh.explanation import explain as explain_groups
    from dafh.report import summarize, write_report

    loaded = ModelFile.open(model, options["target"])
    rows = loaded.read(data, **_pop_columns(options))
    result = loaded.audit(rows, **options)
    words = explain_groups(loaded.model, rows.features, sensitive_features=rows.sensitive)
    title = f"Fairness report: {loaded.card.get('data', 'model')}, {loaded.schema.target}"
    summary = summarize(loaded.model, result, words, title=title, card=loaded.card, notes=rows.notes)
    write_report(summary, out)
    for note in summary["notes"]:
        say(f"Note: {note}")
    click.echo(f"RECOMMENDATION: {summary['recommendation']['headline']}.")
    if summary["worth"]:
        click.echo(summary["worth"])
    click.echo(f"Report: {out.resolve()}")


@click.command(epilog="Example: dafh show model.dafh")
@MODEL
@JSON
def show(model: Path, as_json: bool) -> None:
    """Show what a model file contains.

    Settings, columns, the list of exceptions, and what the guard did; --json shows all. Nothing in the file is run.
    """
    from dafh.persistence import read_card

    card = read_card(model)
    if as_json:
        print_json(card)
        return
    for name, value in _card_lines(card, model):
        click.echo(f"{name + ':':<12} {value}")


def _card_lines(card: dict[str, Any], path: Path) -> Iterator[tuple[str, str]]:
    """What a card says, as headings and texts."""
    from dafh.cli.model_file import schema_of_card
    from dafh.text import clipped

    def text(value: Any) -> str:
        return clipped(value, 300)  # A card may come from anywhere.

    def listed(names: list[Any]) -> str:
        more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
        return f"{', '.join(map(text, names[:_MOST_NAMES]))}{more}"

    def pairs(values: dict[str, Any], sign: str) -> str:
        return ", ".join(f"{text(name)}{sign}{text(value)}" for name, value in values.items())

    schema, exceptions, columns = schema_of_card(card, path), card.get("exceptions") or [], card["columns"]
    counted = f"{card['groups']} group{'' if card['groups'] == 1 else 's'}"
    yield "Model", f"{text(card['model'])}, {counted}, pooled: {text(card['pooled'])}"
    if card.get("worth"):
        yield "Groups", text(card["worth"])
    for number, entry in enumerate(exceptions if len(exceptions) > 1 else []):
        yield f"Group {number}", f"{text(entry['rule'])}; {_gain_of_group(entry)}{text(entry['served_by'])}"
    yield "Labels", listed(card["labels"])
    yield "Settings", pairs(card["settings"], " = ") or "all defaults"
    yield "Columns", f"{len(columns)}: {listed([column['name'] for column in columns])}"
    yield "Data", f"{card['rows']:,} rows of {text(card.get('data'))}" if "rows" in card else "unknown"
    yield "Target", text(schema.target) if schema else "unknown"
    yield "Sensitive", (", ".join(map(text, schema.sensitive)) if schema else "") or "none named"
    if card.get("threshold"):
        yield "Cut-off", f"a probability of {card['threshold']:.3g}"
    yield "Guard", text(card["guard"]["summary"]).removeprefix("Guard ") if card.get("guard") else "off"
    yield "Written", f"{text(card['written'])} by dafh {text(card['dafh'])}"


def _gain_of_group(entry: dict[str, Any]) -> str:
    """Share of the rows, and gain with its limits, where they are known."""
    from dafh.evaluation.losses import Loss
    from dafh.text import percent, points

    share = "" if entry["rows"] is None else f"{percent(entry['rows'])} of rows; "
    if None in (entry["gain"], entry["low"], entry["high"]):
        return share
    gain, low, high = (points(entry[name]) for name in ("gain", "low", "high"))
    loss = Loss(entry["loss"])
    return f"{share}gain {gain} {loss.unit}{loss.of_gain} ({low} to {high}); "


@click.command(epilog="Example: dafh export model.dafh --dialect postgres --table customers --keep id --out score.sql")
@MODEL
@click.option(
    "--dialect", type=click.Choice(DIALECTS), default="duckdb", show_default=True, help="Database that will run it."
)
@click.option(
    "--table", default="rows_to_score", show_default=True, help="Table to score, with its schema if that is needed."
)
@click.option("--keep", multiple=True, metavar="NAME,...", help="Columns to carry over from the table, such as a key.")
@click.option("--out", default="-", metavar="FILE", help="File to write.  [default: standard output]")
def export(model: Path, dialect: str, table: str, keep: tuple[str, ...], out: str) -> None:
    """Write a model as SQL, to score rows where they live.

    The result is one SELECT that gives what predict gives: prediction, probability and group of each row. Groups by a
    network, and pooled classifiers other than scorecards, cannot be exported.
    """
    if out != "-":
        check_writable(Path(out))
    import hashlib

    from dafh.cli.model_file import schema_of_card
    from dafh.columns.schema import split_names
    from dafh.persistence import open_model
    from dafh.sql import to_sql
    from dafh.storage import replacing
    from dafh.text import clipped

    fitted, card = open_model(model)
    checksum = hashlib.sha256(model.read_bytes()).hexdigest()
    notes = [
        f"Model: {clipped(model.name)}, SHA-256 {checksum[:16]}..., written {clipped(card['written'])} by dafh "
        f"{clipped(card['dafh'])}."
    ]
    if "rows" in card:
        notes.append(f"Fitted on {card['rows']:,} rows of {clipped(card.get('data'))}.")
    # Without a schema, the model was saved from Python and says itself what its columns hold.
    schema = schema_of_card(card, model)
    statement = to_sql(fitted, dialect, table, schema=schema, keep=split_names(keep, ()), notes=notes)
    if out == "-":
        click.echo(statement, nl=False)
        return
    with replacing(Path(out)) as temporary:
        # As bytes: line breaks within names of categories stay as they are on every system.
        temporary.write_bytes(statement.encode())
    say(f"Wrote SQL for {dialect} to {out}.")
