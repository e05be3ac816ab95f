"""Options that several commands share, and the data file they describe."""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

PATH = click.Path(path_type=Path)


class LossNames(click.ParamType):  # type: ignore[type-arg]  # Not generic in older versions of click.
    """Names of losses, joined by commas."""

    name = "losses"
    # Not from `dafh.evaluation.losses`, which takes NumPy: help does without. A test compares the two.
    known = ("error", "fpr", "fnr", "cost")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Split at commas, and refuse what is not a loss."""
        if not isinstance(value, str):
            return value
        names = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
        unknown = [name for name in names if name not in self.known]
        if unknown or not names:
            what = repr(unknown[0]) if unknown else "an empty list"
            self.fail(f"{what} is not a loss: choose from {', '.join(self.known)}, joined by commas.", param, ctx)
        return names

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Show what may be given."""
        return "LOSS,..."


class CostsOfErrors(click.ParamType):  # type: ignore[type-arg]
    """What a false positive and a false negative cost, as fp=1,fn=5."""

    name = "costs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read two positive numbers."""
        if not isinstance(value, str):
            return value
        parts = [part.partition("=") for part in value.split(",")]
        try:
            costs = {name.strip(): float(number) for name, _, number in parts}
        except ValueError:
            costs = {}
        if len(parts) != 2 or set(costs) != {"fp", "fn"} or not all(0 < cost < math.inf for cost in costs.values()):
            self.fail(f"{value!r} is not of the form fp=1,fn=5 with two positive numbers.", param, ctx)
        return costs

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Show what may be given."""
        return "fp=COST,fn=COST"


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
        from dafh.tables.read import DataFile

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
    type=CostsOfErrors(),
    help="What a false positive and a false negative cost, for the loss cost.  [default: as in fit]",
)
WEIGHT = click.option(
    "--weight",
    metavar="NAME",
    help="Column that says how much each row counts, such as a survey weight.  "
    "[default in audit and report: that of fit]",
)
TARGET = click.option(
    "--target",
    help="Target column, if it has another name than in training, or if the model was saved from Python.",
)
