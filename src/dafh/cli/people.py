"""Commands for people with a table: fit, predict, audit, explain, report, show, and shell completion."""

from pathlib import Path
from typing import Any

import click

from dafh.cli._common import MODEL, check_writable, data_options, print_json, say

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, for machines.")
_SENSITIVE = click.option(
    "--sensitive",
    multiple=True,
    metavar="NAME,...",
    help="Columns that name groups; without it those named in fit, as far as they are there.",
)
_TARGET = click.option("--target", help="Column with the truth, if it is not called as in fit.")
_LEVEL = click.option(
    "--level",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Probability of a wrong verdict that is accepted.",
)
_MARGIN = click.option(
    "--margin",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Harm that is tolerated, as a share of rows: 0.01 is one point.",
)
_DEPTH = click.option(
    "--depth", type=click.IntRange(min=1), default=2, show_default=True, help="Attributes to intersect at most."
)
_SEEDS = click.option(
    "--seeds",
    type=click.IntRange(0, 20),
    default=0,
    show_default=True,
    help="Seeds to fit copies with, two or more, to see how far the groups depend on it.",
)


@click.command(
    epilog="Example: dafh fit people.csv --target hired --sensitive sex,age --test-size 0.25 --out model.dafh"
)
@click.argument("data", metavar="DATA")
@click.option("--target", required=True, help="Column to predict.")
@click.option("--out", type=MODEL, default=Path("model.dafh"), show_default=True, help="Where the model goes.")
@click.option("--drop", multiple=True, metavar="NAME,...", help="Columns to leave out.")
@click.option(
    "--sensitive",
    multiple=True,
    metavar="NAME,...",
    help="Columns to keep out of training, and to audit named groups by.",
)
@click.option("--categories", multiple=True, metavar="NAME,...", help="Columns of numbers that are codes.")
@click.option("--groups", type=click.IntRange(1, 50), default=2, show_default=True, help="Number of groups.")
@click.option(
    "--guard",
    type=click.Choice(["veto", "proof", "none"]),
    default="veto",
    show_default=True,
    help="veto: the pooled model where held-out rows speak against a group's own. proof: its own only where they show "
    "that it does no harm.",
)
@click.option(
    "--pooled",
    type=click.Choice(["lr", "boosting"]),
    default="lr",
    show_default=True,
    help="The model for everybody: logistic regression or gradient boosting.",
)
@click.option(
    "--test-size",
    type=click.FloatRange(0, 0.9),
    default=0.0,
    show_default=True,
    help="Share of the rows to keep from training, for audit and report; written beside the model.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of everything random.")
@data_options
@_JSON
def fit(
    data: Any,
    target: str,
    out: Path,
    guard: str,
    groups: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn groups and their classifiers from a table.

    DATA is a CSV or Parquet file, packed by gzip or not; - is standard input. What the columns are is guessed and said:
    numbers, dates, categories, and identifiers, which are left out. Rows without a target are left out.
    """
    import time

    check_writable(out)
    from dafh.workflows import TrainingTable

    start = time.monotonic()
    columns = {name: options.pop(name) for name in ("drop", "sensitive", "categories", "test_size")}
    table = TrainingTable.read(data, target, **columns, seed=options["seed"])
    for note in (table.headline(), *table.notes):
        say(note)
    model = table.fit(n_groups=groups, guard=None if guard == "none" else guard, verbose=1, **options)  # type: ignore[arg-type]
    test_rows = table.save(model, out)
    say(f"Trained in {time.monotonic() - start:.0f} s.")
    if as_json:
        from dafh.persistence import read_card

        print_json({**read_card(out), "file": str(out), "test_rows": None if test_rows is None else str(test_rows)})
        return
    report = model[-1].guard_report_
    if report is not None:
        click.echo(f"\n{report}")
    click.echo(f"\nModel: {out}")
    stale = out.with_suffix(".test.parquet")
    if test_rows is None and stale.exists():
        say(f"Note: {stale} is from an earlier fit; this model may have been trained on its rows.")
    if test_rows is not None:
        click.echo(f"Rows kept back: {test_rows}\n\nNext: dafh audit {out} {test_rows}")


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
    from dafh.datafiles import TableWriter
    from dafh.workflows import FileModel

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


@click.command(epilog="Example: dafh audit model.dafh test.csv --sensitive sex,age")
@click.argument("model", type=MODEL)
@click.argument("data", metavar="DATA")
@_SENSITIVE
@_TARGET
@_LEVEL
@_MARGIN
@_DEPTH
@click.option("--fail-on-harm", is_flag=True, help="Exit with code 1 if harm is shown.")
@data_options
@_JSON
def audit(
    model: Path,
    data: Any,
    sensitive: tuple[str, ...],
    target: str | None,
    level: float,
    margin: float,
    depth: int,
    fail_on_harm: bool,
    as_json: bool,
) -> None:
    """Ask whether any group is served worse than it could be.

    DATA has the columns of the training and the truth, for people whom the model has not seen.
    """
    from dafh.workflows import FileModel

    loaded = FileModel.open(model)
    rows = loaded.read(data, sensitive, target)
    result = loaded.audit(rows, level=level, margin=margin, depth=depth)
    for note in rows.notes:
        say(f"Note: {note}")
    if as_json:
        print_json({**result.to_dict(), "notes": list(rows.notes)})
    else:
        click.echo(str(result))
    harmed = bool((result.to_frame()["verdict"] == "violated").any())
    if fail_on_harm and harmed:
        raise click.exceptions.Exit(1)


@click.command(epilog="Example: dafh explain model.dafh people.csv --sensitive sex")
@click.argument("model", type=MODEL)
@click.argument("data", metavar="DATA")
@_SENSITIVE
@_TARGET
@_SEEDS
@data_options
@_JSON
def explain(
    model: Path,
    data: Any,
    sensitive: tuple[str, ...],
    target: str | None,
    seeds: int,
    as_json: bool,
) -> None:
    """Put the groups into words.

    How large they are, a rule, what sets them apart, how their classifiers differ, and who is in them.
    """
    from dafh.workflows import FileModel

    loaded = FileModel.open(model)
    rows = loaded.read(data, sensitive, target)
    words = loaded.explain(rows, seeds)
    if as_json:
        print_json(words.to_dict())
    else:
        click.echo(str(words))


@click.command(epilog="Example: dafh report model.dafh test.csv --out report.html")
@click.argument("model", type=MODEL)
@click.argument("data", metavar="[DATA]", required=False)
@click.option("--out", type=MODEL, help="Where the page goes.  [default: report.html; none with --json]")
@click.option("--title", help="Heading of the page.")
@_SENSITIVE
@_TARGET
@_LEVEL
@_MARGIN
@_DEPTH
@_SEEDS
@data_options
@_JSON
def report(
    model: Path,
    data: Any,
    out: Path | None,
    title: str | None,
    sensitive: tuple[str, ...],
    target: str | None,
    level: float,
    margin: float,
    depth: int,
    seeds: int,
    as_json: bool,
) -> None:
    """Write one HTML file for a browser, online or not.

    DATA has the columns of the training and the truth, for people whom the model has not seen. Without it the report
    says what the guard saw, and that nobody was asked since.
    """
    out = out or (None if as_json else Path("report.html"))
    if out is not None:
        check_writable(out)
    from dafh.report import summarize, write_report
    from dafh.workflows import FileModel

    loaded = FileModel.open(model)
    title = title or f"Fairness report: {loaded.file.card.get('data', 'model')}, {loaded.schema.target}"
    if data is None:
        summary = summarize(loaded.model, title=title, card=loaded.file.card)
    else:
        rows = loaded.read(data, sensitive, target)
        result = loaded.audit(rows, level=level, margin=margin, depth=depth)
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
    click.echo(summary["verdict"]["sentence"])
    click.echo(f"Report: {out.resolve()}")


@click.command(epilog="Example: dafh show model.dafh")
@click.argument("model", type=MODEL)
@_JSON
def show(model: Path, as_json: bool) -> None:
    """Say what a model file holds.

    Version, settings, columns, and what the guard did. Nothing in the file is run.
    """
    from dafh.persistence import read_card

    card = read_card(model)
    if as_json:
        print_json(card)
        return
    for name, value in _card_lines(card):
        click.echo(f"{name + ':':<12} {value}")


def _card_lines(card: dict[str, Any]) -> list[tuple[str, str]]:
    from dafh._text import clipped

    def text(value: Any) -> str:
        return clipped(value, 300)

    columns = card.get("columns") or []
    names = ", ".join(text(column.get("name")) for column in columns[:12])
    return [
        ("Model", f"{text(card.get('model'))}, {card.get('groups')} groups, pooled model {text(card.get('pooled'))}"),
        ("Labels", ", ".join(text(label) for label in card.get("labels") or [])),
        ("Settings", ", ".join(f"{n} = {text(v)}" for n, v in (card.get("settings") or {}).items()) or "the defaults"),
        ("Columns", f"{len(columns)}: {names}{', …' if len(columns) > 12 else ''}"),
        ("Data", f"{card['rows']:,} rows of {text(card.get('data'))}" if "rows" in card else "not said"),
        ("Target", text((card.get("schema") or {}).get("target", "not said"))),
        ("Sensitive", ", ".join(map(text, (card.get("schema") or {}).get("sensitive", []))) or "none named"),
        ("Guard", text((card.get("guard") or {}).get("summary", "off"))),
        ("Written", f"{text(card.get('written'))} by dafh {text(card.get('dafh'))}"),
        ("With", ", ".join(f"{n} {text(v)}" for n, v in (card.get("versions") or {}).items())),
    ]


@click.command(epilog="Example: dafh completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script for completion in your shell."""
    from click.shell_completion import get_completion_class

    from dafh.cli import main

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "dafh", "_DAFH_COMPLETE").source())
