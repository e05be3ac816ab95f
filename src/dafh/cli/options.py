"""Options that several commands share, and the data file they describe."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dafh.tables.files import DataFile

MODEL = click.Path(path_type=Path)


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a text file is laid out, and hand the command a DataFile as `data`."""

    @functools.wraps(command)
    def with_file(*, data: str | None, **rest: Any) -> Any:
        layout = {name: rest.pop(name) for name in ("delimiter", "header", "encoding", "decimal")}
        return command(data=None if data is None else _data_file(data, **layout), **rest)

    wrapped: Callable[..., Any] = with_file
    options = [
        click.option("--delimiter", metavar="CHAR", help="Separator of the cells of a CSV file.  [default: detect]"),
        click.option(
            "--header/--no-header", default=None, help="Whether the first line has the column names.  [default: detect]"
        ),
        click.option(
            "--encoding", default="utf-8-sig", metavar="NAME", help="Encoding of a CSV file.  [default: UTF-8]"
        ),
        click.option(
            "--decimal",
            type=click.Choice([".", ","]),
            help="Decimal mark of a CSV file.  [default: detect in fit, then as in training]",
        ),
    ]
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def _data_file(path: str, delimiter: str | None, header: bool | None, encoding: str, decimal: str | None) -> "DataFile":
    from dafh.tables.files import DataFile

    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    return DataFile(path, delimiter, header, encoding, decimal)


def check_writable(out: Path) -> None:
    """Refuse a path that cannot be written to before the work, not after it."""
    from dafh.tables import writing

    writing.check_writable(out)


JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, for scripts.")
SENSITIVE = click.option(
    "--sensitive",
    multiple=True,
    metavar="NAME,...",
    help="Sensitive attributes that define named groups.  [default: those named in fit]",
)
TARGET = click.option("--target", help="Target column, if it has another name than in training.")
LEVEL = click.option(
    "--level",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Accepted probability of a wrong verdict.",
)
MARGIN = click.option(
    "--margin",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Tolerated harm, as a share of rows: 0.01 is one percentage point.",
)
DEPTH = click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Largest number of attributes to intersect.",
)
SEEDS = click.option(
    "--seeds",
    type=click.IntRange(0, 20),
    default=0,
    show_default=True,
    help="Refit on DATA this many times, 2 to 20, to see how much the groups change: rules on random samples of the "
    "rows, networks with other seeds; 0 skips this.",
)
