"""dafh export: a model as a program of another system."""

from pathlib import Path

import click

from dafh.cli.options import MODEL, check_writable
from dafh.cli.output import say

# Not from `dafh.sql`, which takes NumPy: help does without. A test compares the two.
DIALECTS = ("duckdb", "postgres", "snowflake", "sqlite")


@click.command(
    epilog="Example: dafh export model.dafh --to sql --dialect postgres --table customers --keep id --out score.sql"
)
@click.argument("model", type=MODEL)
@click.option("--to", "form", type=click.Choice(["sql"]), default="sql", show_default=True, help="What to write.")
@click.option(
    "--dialect", type=click.Choice(DIALECTS), default="duckdb", show_default=True, help="Database that will run it."
)
@click.option(
    "--table", default="rows_to_score", show_default=True, help="Table to score, with its schema if that is needed."
)
@click.option("--keep", multiple=True, metavar="NAME,...", help="Columns to carry over from the table, such as a key.")
@click.option("--out", default="-", metavar="FILE", help="File to write.  [default: standard output]")
def export(model: Path, form: str, dialect: str, table: str, keep: tuple[str, ...], out: str) -> None:
    """Write a model as SQL, to score rows where they live.

    The result is one SELECT that gives what predict gives: prediction, probability and group of each row. Groups by a
    network, and pooled classifiers other than scorecards and logistic regressions, cannot be exported.
    """
    if out != "-":
        check_writable(Path(out))
    from dafh.storage import replacing
    from dafh.workflows.exporting import sql_of_file

    statement = sql_of_file(model, dialect, table, keep)
    if out == "-":
        click.echo(statement, nl=False)
        return
    with replacing(Path(out)) as temporary:
        # As bytes: line breaks within names of categories stay as they are on every system.
        temporary.write_bytes(statement.encode())
    say(f"Wrote {form.upper()} for {dialect} to {out}.")
