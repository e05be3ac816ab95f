"""dafh audit and dafh explain: how well a model serves the rows of a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    data_options,
)
from dafh.cli.output import print_json, say

if TYPE_CHECKING:  # Importing it takes pandas, which `dafh --help` does without.
    from dafh.tables.read import DataFile


@click.command(epilog="Example: dafh audit model.dafh test.csv --sensitive sex,age --losses error,fnr")
@click.argument("model", type=MODEL)
@click.argument("data", metavar="DATA")
@SENSITIVE
@TARGET
@PERSON
@WEIGHT
@LOSSES
@COSTS
@LEVEL
@MARGIN
@DEPTH
@click.option("--fail-on-harm", is_flag=True, help="Exit with code 1 if the verdict is harm.")
@data_options
@JSON
def audit(
    model: Path,
    data: "DataFile",
    sensitive: tuple[str, ...],
    target: str | None,
    person: str | None,
    weight: str | None,
    losses: tuple[str, ...] | None,
    costs: dict[str, float] | None,
    level: float,
    margin: float,
    depth: int,
    fail_on_harm: bool,
    as_json: bool,
) -> None:
    """Test whether any group would do better with another classifier.

    Every group is compared with the pooled classifier, and learned groups also with the classifiers of other groups.
    DATA needs the training columns and the target. Use rows that the model has not seen.
    """
    from dafh.explanation.words import adds_nothing, worth_of_groups
    from dafh.workflows.serving import FileModel

    loaded = FileModel.open(model, target)
    asked: dict[str, Any] = {"losses": losses or (), "costs": costs, "level": level, "margin": margin, "depth": depth}
    rows = loaded.read(data, sensitive, target, person, weight, with_features=False)
    result, notes = loaded.audit(rows, **asked), rows.notes
    worth = worth_of_groups(loaded.model)
    for note in (*notes, *([worth] if worth and adds_nothing(loaded.model) else [])):
        say(f"Note: {note}")
    if as_json:
        print_json({**result.to_dict(), "worth": worth, "notes": list(notes)})
    else:
        click.echo(str(result))
    if fail_on_harm and result.verdict.status == "harm":
        raise click.exceptions.Exit(1)


@click.command(epilog="Example: dafh explain model.dafh people.csv --sensitive sex")
@click.argument("model", type=MODEL)
@click.argument("data", metavar="DATA")
@SENSITIVE
@TARGET
@SEEDS
@data_options
@JSON
def explain(
    model: Path,
    data: "DataFile",
    sensitive: tuple[str, ...],
    target: str | None,
    seeds: int | None,
    as_json: bool,
) -> None:
    """Describe the groups in words.

    Says first whether groups help at all, and then describes each group: its size, its rule, the gain of its
    classifier, the columns in which it differs from the other rows, how its classifier differs from the pooled one,
    and how common each value of a sensitive attribute is in it. If rows are divided by rules, these are exact. For a
    network, the best short rule is shown, with its precision and recall.
    """
    from dafh.workflows.serving import FileModel

    loaded = FileModel.open(model, target)
    rows = loaded.read(data, sensitive, target)
    words = loaded.explain(rows, seeds or 0)
    if as_json:
        print_json(words.to_dict())
    else:
        click.echo(str(words))
