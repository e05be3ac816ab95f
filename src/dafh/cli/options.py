"""Options and arguments that several commands share."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

PATH = click.Path(path_type=Path)


def data_file(path: str) -> Any:
    """Name a table, which is not opened yet."""
    from dafh.columns.read import DataFile  # It takes pandas, which help does without.

    return DataFile(path)


DATA = click.argument("data", metavar="DATA", type=data_file)
MODEL = click.argument("model", type=PATH)

# Not from `dafh.evaluation.losses`, which takes NumPy: help does without. A test compares the two.
LOSSES = ("error", "fpr", "fnr", "cost")


def loss_names(value: str) -> tuple[str, ...]:
    """Split names of losses at commas."""
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    unknown = [repr(name) for name in names if name not in LOSSES] if names else ["an empty list"]
    if unknown:
        raise click.BadParameter(f"{unknown[0]} is not a loss: choose from {', '.join(LOSSES)}, joined by commas.")
    return names


def costs_of_errors(value: str) -> dict[str, float]:
    """Read what a false positive and a false negative cost, as fp=1,fn=5."""
    pairs = [pair.partition("=") for pair in value.split(",")]
    try:
        costs = {name.strip(): float(number) for name, _, number in pairs}
    except ValueError:
        costs = {}
    if len(pairs) != 2 or set(costs) != {"fp", "fn"} or not all(0 < cost < math.inf for cost in costs.values()):
        raise click.BadParameter(f"{value!r} is not of the form fp=1,fn=5 with two positive numbers.")
    return costs


def check_writable(out: Path) -> None:
    """Refuse a path that cannot be written to before the work, not after it."""
    from dafh import storage

    storage.check_writable(out)


def test_rows_path(model: Path) -> Path:
    """Where the test rows of a model are written."""
    return model.with_suffix(".test.parquet")


JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, for scripts.")
SENSITIVE = click.option(
    "--sensitive",
    multiple=True,
    metavar="NAME,...",
    help="Sensitive attributes that define named groups.  [default: those of fit]",
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
MARGIN = click.option(
    "--margin",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Tolerated harm, as a share of rows: 0.01 is one percentage point.",
)


def AUDIT_OPTIONS(command: Callable[..., Any]) -> Any:  # noqa: N802
    """What a user decides about an audit."""
    for option in reversed((SENSITIVE, TARGET, PERSON, WEIGHT, TESTED_LOSSES, COSTS, MARGIN)):
        command = option(command)
    return command
