"""dafh fit: learn groups and their classifiers from a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dafh.cli.options import (
    CLUSTER,
    JSON,
    MODEL,
    WEIGHT,
    CostsOfErrors,
    LossNames,
    check_writable,
    data_options,
)
from dafh.cli.output import print_json, say

if TYPE_CHECKING:
    from dafh.tables.read import DataFile
    from dafh.tables.schema import TableSchema


class NumberOfGroups(click.ParamType):  # type: ignore[type-arg]  # Not generic in older versions of click.
    """A number of groups, or "auto"."""

    name = "number of groups"
    _number = click.IntRange(1, 50)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take "auto" as it is, and refuse what is neither that nor a number from 1 to 50."""
        if value == "auto":
            return value
        if isinstance(value, str) and not value.removeprefix("-").isdecimal():
            self.fail(f"{value!r} is neither a number from 1 to 50 nor auto.", param, ctx)
        return self._number.convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Show what may be given."""
        return "[auto|1..50]"


_ABOUT_COLUMNS = ("drop", "sensitive", "categories", "protect", "person", "time", "weight", "test_size")
"""Options that say what columns are."""


@click.command(
    epilog="Example: dafh fit people.csv --target hired --sensitive sex,age --test-size 0.25 --out model.dafh"
)
@click.argument("data", metavar="DATA")
@click.option("--target", required=True, help="Column to predict.")
@click.option("--out", type=MODEL, default=Path("model.dafh"), show_default=True, help="Model file to write.")
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
    type=NumberOfGroups(),
    default="auto",
    show_default=True,
    help="Number of groups, 1 to 50, or auto: as many as held-out rows show to be worth it.",
)
@click.option(
    "--by",
    type=click.Choice(["rules", "network"]),
    default="rules",
    show_default=True,
    help="How rows are divided into groups. rules: by conditions on the columns that anyone can read. network: by a "
    "neural network, as in the paper (needs JAX).",
)
@click.option(
    "--guard",
    type=click.Choice(["veto", "proof", "none"]),
    default="veto",
    show_default=True,
    help="veto: a group keeps its own classifier only if it does better on calibration rows than the pooled one. "
    "proof: only if calibration rows show that it is not worse. none: always.",
)
@click.option(
    "--guard-losses",
    type=LossNames(),
    help="Losses that must not get worse: error, fpr (false positive rate), fnr (false negative rate), cost.  "
    "[default: error; cost with --costs]",
)
@click.option(
    "--costs",
    type=CostsOfErrors(),
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
    type=click.Choice(["scorecard", "linear", "boosting"]),
    default="scorecard",
    show_default=True,
    help="The pooled classifier: a scorecard, logistic regression, or gradient boosting.",
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
@click.option(
    "--incumbent-as-feature",
    is_flag=True,
    help="Let groups and their classifiers use the score and the decision as features, too.",
)
@WEIGHT
@click.option(
    "--test-size",
    type=click.FloatRange(0, 0.9),
    default=0.0,
    show_default=True,
    help="Share of the rows to set aside for audit and report; they are written beside the model.",
)
@CLUSTER
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
@data_options
@JSON
def fit(
    data: "DataFile",
    target: str,
    out: Path,
    guard: str,
    guard_losses: tuple[str, ...] | None,
    groups: int | Literal["auto"],
    by: str,
    as_json: bool,
    cluster: str | None,
    **options: Any,
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

    _check_places(out, with_test_rows=options["test_size"] > 0)
    from dafh.large import connected
    from dafh.workflows.reading import read_table
    from dafh.workflows.training import make_classifier

    start = monotonic()
    columns = {name: options.pop(name) for name in _ABOUT_COLUMNS}
    incumbent = _incumbent(options)
    if incumbent is not None:
        columns |= {"score": incumbent.score, "decision": incumbent.decision}
        options["pooled"] = incumbent
    options["guard"] = None if guard == "none" else guard
    # Whoever names costs is asked about costs: at their cut-off, the error rate is meant to rise.
    options["guard_losses"] = guard_losses or (("error",) if options.get("costs") is None else ("cost",))
    with connected(cluster):
        table = read_table(data, target, **columns, seed=options["seed"], on_cluster=cluster is not None)
        for note in (table.headline(), *table.notes, *_offers(table.schema)):
            say(note)
        unfitted: Any = make_classifier(table.schema, n_groups=groups, groups=by, verbose=1, **options)  # type: ignore[arg-type]
        model = table.fit(unfitted)
        card, test_rows = table.save(model, out)
        cutoff = table.about_cutoff(model) if incumbent is not None else None
    fitted = model[-1]
    history = getattr(fitted, "history_", None)
    epochs = "" if history is None else f"; kept epoch {fitted.best_epoch_} of {len(history)}"
    say(f"Trained in {monotonic() - start:.1f} s{epochs}.")
    if cutoff is not None:
        say(f"Note: {cutoff} Own classifiers keep its cut-off, unless you add --threshold 0.5 or --costs.")
    if as_json:
        print_json({**card, "file": str(out), "test_rows": None if test_rows is None else str(test_rows)})
        return
    _print_groups(fitted)
    _print_files(out, test_rows)


def _print_files(out: Path, test_rows: Path | None) -> None:
    """Say what was written, and what to do next."""
    click.echo(f"\nModel: {out}")
    stale = out.with_suffix(".test.parquet")
    if test_rows is None and stale.exists():
        say(f"Note: {stale} is from an earlier fit; this model may have been trained on its rows.")
    next_step = f"dafh show {out}"
    if test_rows is not None:
        click.echo(f"Test rows: {test_rows}")
        next_step = f"dafh audit {out} {test_rows}"
    click.echo(f"\nNext: {next_step}")


def _check_places(out: Path, *, with_test_rows: bool) -> None:
    """Refuse places that cannot be written to before the work, not after it."""
    check_writable(out)
    if with_test_rows:
        from dafh.storage import is_special
        from dafh.workflows.set_aside import held_out_path

        if is_special(out):
            raise click.UsageError(
                f"Test rows are written beside the model, and {out} is no file: leave out --test-size."
            )
        check_writable(held_out_path(out))


def _incumbent(options: dict[str, Any]) -> Any:
    """Take the options about a model in use, and make the pooled classifier of them; None without any."""
    names = ("incumbent_score", "incumbent_decision", "incumbent_threshold")
    score, decision, threshold = (options.pop(name) for name in names)
    as_features = options.pop("incumbent_as_feature")
    if score is None and decision is None:
        if threshold is not None or as_features:
            raise click.UsageError("Name the model in use: --incumbent-score, --incumbent-decision or both.")
        return None
    if click.get_current_context().get_parameter_source("pooled") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("The model in use is the pooled classifier: leave out --pooled.")
    from dafh.incumbents import IncumbentColumns

    return IncumbentColumns(score, decision, threshold=threshold, as_features=as_features)


def _offers(schema: "TableSchema") -> list[str]:
    """Say which option helps with columns that look like identifiers of persons."""
    found = [] if schema.person is not None else schema.shared_identifiers
    return [
        f"If rows with the same {name} belong to one person, add --person {name}: they then stay on one side of every "
        "split, and tests count persons."
        for name in found[:1]
    ]


def _print_groups(fitted: Any) -> None:
    """Say what groups were worth, which rules they are, and what the guard decided."""
    from dafh.explanation.worth import adds_nothing, worth_of_groups

    # The rules come with a sentence on what they are worth. Rules that nobody is served by need not be read.
    with_rules = fitted.rules_ is not None and fitted.n_groups_ > 1 and not adds_nothing(fitted)
    click.echo(f"\n{fitted.rules_ if with_rules else worth_of_groups(fitted)}")
    # For a single group the guard has nothing to add.
    report = fitted.guard_report_
    if report is not None and fitted.n_groups_ > 1:
        click.echo(f"\n{report}{'' if report.reasons() else chr(10)}")
        for group, server in enumerate(report.serves):
            if server == group:  # The others' reasons are part of the report.
                click.echo(report.sentence_of(group))
