"""dafh fit: learn groups and their classifiers from a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dafh.cli.options import JSON, PATH, WEIGHT, check_writable, costs_of_errors, data_options, loss_names
from dafh.cli.output import print_json, say

if TYPE_CHECKING:
    from dafh.columns.read import DataFile


def _number_of_groups(value: Any) -> Any:
    """Take "auto" as it is, and refuse what is neither that nor a number from 1 to 50."""
    if value == "auto":
        return value
    if not value.removeprefix("-").isdecimal():
        raise click.BadParameter(f"{value!r} is neither a number from 1 to 50 nor auto.")
    return click.IntRange(1, 50).convert(value, None, None)


@click.command(
    epilog="Example: dafh fit people.csv --target hired --sensitive sex,age --test-size 0.25 --out model.dafh"
)
@click.argument("data", metavar="DATA")
@click.option("--target", required=True, help="Column to predict.")
@click.option("--out", type=PATH, default=Path("model.dafh"), show_default=True, help="Model file to write.")
@click.option("--drop", multiple=True, metavar="NAME,...", help="Columns to leave out.")
@click.option(
    "--sensitive",
    multiple=True,
    metavar="NAME,...",
    help="Sensitive attributes: kept out of training, used in the audit.",
)
@click.option(
    "--protect",
    multiple=True,
    metavar="NAME,...",
    help="Columns that the guard sees and training does not, such as sex. Within each group, the guard also checks the "
    "rows of each of their values. A column may be both protected and sensitive.",
)
@click.option(
    "--person",
    metavar="NAME",
    help="Column that identifies the person of each row, if persons have several rows: kept out of training. A "
    "person's rows are never on both sides of a split, and tests count persons.",
)
@click.option(
    "--time",
    metavar="NAME",
    help="Column with the date of each row: kept out of training. The latest rows are held out instead of random ones, "
    "for the guard and for --test-size.",
)
@click.option(
    "--categories", multiple=True, metavar="NAME,...", help="Columns of numbers to treat as categories, such as codes."
)
@click.option(
    "--groups",
    type=_number_of_groups,
    metavar="[auto|1..50]",
    default="auto",
    show_default=True,
    help="Number of groups, 1 to 50, or auto: as many as held-out rows show to be worth it.",
)
@click.option(
    "--method",
    type=click.Choice(["exceptions", "network"]),
    default="exceptions",
    show_default=True,
    help="How rows are divided into groups. exceptions: by a short list of conditions that anyone can read. network: "
    "by a neural network, as in the paper (needs JAX).",
)
@click.option(
    "--guard",
    type=click.Choice(["evidence", "proof", "none"]),
    default="evidence",
    show_default=True,
    help="evidence: a group keeps its own classifier only if held-out rows favour it over the pooled one. proof: only "
    "if rows that nothing else has seen show that it is not worse. none: always.",
)
@click.option(
    "--guard-losses",
    type=loss_names,
    metavar="LOSS,...",
    help="Losses that must not get worse: error, fpr (false positive rate), fnr (false negative rate), cost.  "
    "[default: error; cost with --costs, or where the cut-off is not 0.5]",
)
@click.option(
    "--costs",
    type=costs_of_errors,
    metavar="fp=COST,fn=COST",
    help="What a false positive and a false negative cost, such as fp=1,fn=5; sets the cut-off. The second label in "
    "sorted order is the positive one.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Cut-off: the probability above which the second label is predicted.  [default: 0.5, or as the costs imply]",
)
@click.option(
    "--pooled",
    type=click.Choice(["scorecard", "linear"]),
    default="scorecard",
    show_default=True,
    help="The pooled classifier: a scorecard, or logistic regression.",
)
@click.option(
    "--incumbent-score",
    metavar="NAME",
    help="Column with the score of a model that is in use: that model is then the pooled classifier. Tables to be "
    "scored need the column too. Groups do not use it as a feature.",
)
@click.option(
    "--incumbent-decision",
    metavar="NAME",
    help="Column with the decision of a model in use, or of a person, as a label of the target; with or without a "
    "score.",
)
@click.option(
    "--incumbent-threshold",
    type=float,
    help="Score at which the model in use decides, if its decisions are not in the table.  [default: 0.5]",
)
@WEIGHT
@click.option(
    "--test-size",
    type=click.FloatRange(0, 0.9),
    default=0.0,
    show_default=True,
    help="Share of the rows to set aside for audit and report; they are written beside the model.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Address of a Dask scheduler, such as tcp://host:8786: its workers do the work.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
@data_options
@JSON
def fit(
    data: "DataFile",
    target: str,
    out: Path,
    groups: int | Literal["auto"],
    method: Literal["exceptions", "network"],
    guard: Literal["evidence", "proof", "none"],
    guard_losses: tuple[str, ...] | None,
    costs: dict[str, float] | None,
    threshold: float | None,
    pooled: Any,
    incumbent_score: str | None,
    incumbent_decision: str | None,
    incumbent_threshold: float | None,
    cluster: str | None,
    seed: int,
    as_json: bool,
    **columns: Any,
) -> None:
    """Learn groups and their classifiers from a table.

    First, one pooled classifier is fitted for all rows. Groups get classifiers of their own only if held-out rows show
    that this is worth it. If it is not, the output says so.

    DATA is a CSV or Parquet file, compressed with gzip or not, a folder of them, or a pattern such as 'rows/*.parquet';
    - is standard input. What each column holds is guessed and reported: numbers, dates, categories, and identifiers,
    which are left out. So are rows without a target. A few words in a column of numbers, such as "unknown", count as
    missing.

    With more than 200,000 rows, a sample of 200,000 determines what the columns hold, the groups and their rules;
    coefficients are fitted on all rows, which are read in pieces. A network learns from the sample alone.
    """
    from time import monotonic

    check_writable(out)
    from dafh.cli.training import TrainingTable
    from dafh.estimators.dafh import DAFHClassifier
    from dafh.exceptions import InputError
    from dafh.large import connected
    from dafh.scoring import held_out_path

    if columns["test_size"]:
        check_writable(held_out_path(out))
    start = monotonic()
    if guard == "none" and columns["protect"]:
        raise InputError("Only the guard protects columns, and it is off: set it to evidence or proof.")
    incumbent = _incumbent(incumbent_score, incumbent_decision, incumbent_threshold)
    if incumbent is not None:
        columns |= {"score": incumbent.score, "decision": incumbent.decision}
    unfitted = DAFHClassifier(
        groups,
        method=method,
        pooled=pooled if incumbent is None else incumbent,
        guard=None if guard == "none" else guard,
        guard_losses=guard_losses or "auto",  # type: ignore[arg-type]
        costs=costs,
        threshold=threshold,
        random_state=seed,
        verbose=1,
    )
    with connected(cluster):
        table = TrainingTable.read(data, target, **columns, seed=seed, on_cluster=cluster is not None)
        for note in (table.headline(), *table.notes):
            say(note)
        for name in table.schema.shared_identifiers[:1] if columns["person"] is None else []:
            say(
                f"If rows with the same {name} belong to one person, add --person {name}: they then stay on one side "
                "of every split, and tests count persons."
            )
        model = table.fit(unfitted)
        card, test_rows = table.save(model, out)
    fitted = model[-1]
    history = getattr(fitted, "history_", None)
    epochs = "" if history is None else f"; kept epoch {fitted.best_epoch_} of {len(history)}"
    say(f"Trained in {monotonic() - start:.1f} s{epochs}.")
    if as_json:
        print_json({**card, "file": str(out), "test_rows": None if test_rows is None else str(test_rows)})
        return
    _print_groups(fitted)
    _print_files(out, test_rows)


def _print_files(out: Path, test_rows: Path | None) -> None:
    """Say what was written, and what to do next."""
    click.echo(f"\nModel: {out}")
    if test_rows is not None:
        click.echo(f"Test rows: {test_rows}\n\nNext: dafh audit {out} {test_rows}")
        return
    stale = out.with_suffix(".test.parquet")
    if stale.exists():
        say(f"Note: {stale} is from an earlier fit; this model may have been trained on its rows.")
    click.echo(f"\nNext: dafh show {out}")


def _incumbent(score: str | None, decision: str | None, threshold: float | None) -> Any:
    """Make the pooled classifier of a model in use; None without any."""
    if score is None and decision is None:
        if threshold is not None:
            raise click.UsageError("Name the model in use: --incumbent-score, --incumbent-decision or both.")
        return None
    if click.get_current_context().get_parameter_source("pooled") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("The model in use is the pooled classifier: leave out --pooled.")
    from dafh.incumbents import IncumbentColumns

    return IncumbentColumns(score, decision, threshold=threshold)


def _print_groups(fitted: Any) -> None:
    """Say what groups are worth, list the exceptions, and say what the guard decided."""
    from dafh.explanation import worth_of_groups

    exceptions = fitted.exceptions_
    click.echo(f"\n{worth_of_groups(fitted) if exceptions is None else exceptions}")
    report = fitted.guard_report_
    if report is None:
        return
    if fitted.n_groups_ == 1:  # The guard has nothing to add but how it judged.
        click.echo("\n".join(report.notes), nl=bool(report.notes))
        return
    # The list has gains and servers already; for groups by a network, the guard's table is the only one.
    click.echo(f"\n{report if exceptions is None else report.brief()}")
