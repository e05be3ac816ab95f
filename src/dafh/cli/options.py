"""Options that several commands share, and the data file they describe."""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

PATH = click.Path(path_type=Path)


# Not from `dafh.evaluation.losses`, which takes NumPy: help does without. A test compares the two.
LOSSES = ("error", "fpr", "fnr", "cost")


def loss_names(value: str) -> tuple[str, ...]:
    """Split names of losses at commas."""
    names = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    unknown = [name for name in names if name not in LOSSES]
    if unknown or not names:
        what = repr(unknown[0]) if unknown else "an empty list"
        raise click.BadParameter(f"{what} is not a loss: choose from {', '.join(LOSSES)}, joined by commas.")
    return names


def costs_of_errors(value: str) -> dict[str, float]:
    """Read what a false positive and a false negative cost, as fp=1,fn=5."""
    parts = [part.partition("=") for part in value.split(",")]
    try:
        costs = {name.strip(): float(number) for name, _, number in parts}
    except ValueError:
        costs = {}
    if len(parts) != 2 or set(costs) != {"fp", "fn"} or not all(0 < cost < math.inf for cost in costs.values()):
        raise click.BadParameter(f"{value!r} is not of the form fp=1,fn=5 with two positive numbers.")
    return costs


def in_order(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """One decorator of several options, which help lists in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_layout_options = in_order(
    click.option("--delimiter", metavar="CHAR", help="Separator of the cells of a CSV file.  [default: detect]"),
    click.option(
        "--header/--no-header", default=None, help="Whether the first line has the column names.  [default: detect]"
    ),
    click.option("--encoding", default="utf-8-sig", metavar="NAME", help="Encoding of a CSV file.  [default: UTF-8]"),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal mark of a CSV file.  [default: detect in fit; elsewhere as in fit]",
    ),
)


def data_options(command: Callable[..., Any]) -> Any:
    """Add the options that say how a text file is laid out, and hand the command a DataFile as `data`."""

    @functools.wraps(command)
    def with_file(
        *, data: str | None, delimiter: str | None, header: bool | None, encoding: str, decimal: str | None, **rest: Any
    ) -> Any:
        from dafh.columns.read import DataFile

        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter or "", delimiter)
        return command(data=None if data is None else DataFile(data, delimiter, header, encoding, decimal), **rest)

    return _layout_options(with_file)


def check_writable(out: Path) -> None:
    """Refuse a path that cannot be written to before the work, not after it."""
    from dafh import storage

    storage.check_writable(out)


JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, for scripts.")
SENSITIVE = click.option(
    "--sensitive",
    multiple=True,
    metavar="NAME,...",
    help="Sensitive attributes that define named groups.  [default: the sensitive and protected columns of fit]",
)
COSTS = click.option(
    "--costs",
    type=costs_of_errors,
    metavar="fp=COST,fn=COST",
    help="What a false positive and a false negative cost, for the loss cost.  [default: those of fit, if any]",
)
WEIGHT = click.option(
    "--weight",
    metavar="NAME",
    help="Column that says how much each row counts, such as a survey weight.  "
    "[default in audit and report: that of fit]",
)
TARGET = click.option(
    "--target", help="Target column, if it has another name than in training, or if the model was saved from Python."
)
PERSON = click.option(
    "--person",
    metavar="NAME",
    help="Column that identifies the person of each row, if persons have several rows; tests then count persons.  "
    "[default in audit and report: that of fit]",
)
TESTED_LOSSES = click.option(
    "--losses",
    type=loss_names,
    metavar="LOSS,...",
    help="Losses to test: error, fpr (false positive rate), fnr (false negative rate), cost.  "
    "[default: those of the guard in fit, in compare error; cost with --costs]",
)
LEVEL = click.option(
    "--level",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Accepted probability of any wrong claim of harm, and also of any wrong claim that there is none.",
)
MARGIN = click.option(
    "--margin",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Tolerated harm, as a share of rows: 0.01 is one percentage point.",
)
