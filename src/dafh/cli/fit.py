"""dafh fit: learn groups and their classifiers from a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dafh.cli.options import DATA, PATH, check_writable, costs_of_errors, test_rows_path
from dafh.cli.output import say

if TYPE_CHECKING:
    from dafh.columns.read import DataFile


def _number_of_groups(value: Any) -> Any:
    """Take "auto" as it is, and refuse what is neither that nor a number from 1 to 50."""
    if value == "auto":
        return value
    if not value.removeprefix("-").isdecimal():
        raise click.BadParameter(f"{value!r} is neither a number from 1 to 50 nor auto.")
    return click.IntRange(1, 50).convert(value, None, None)


@click.command(epilog="Example: dafh fit people.csv --target hired --sensitive sex,age --test-size 0.25")
@DATA
@click.option("--target", required=True, help="Column to predict.")
@click.option("--out", type=PATH, default=Path("model.dafh"), show_default=True, help="Model file to write.")
@click.option("--drop", multiple=True, metavar="NAME,...", help="Columns to leave out.")
@click.option(
    "--categories", multiple=True, metavar="NAME,...", help="Columns of numbers to treat as categories, such as codes."
)
@click.option(
    "--sensitive",
    multiple=True,
    metavar="NAME,...",
    help="Sensitive attributes: kept out of training, used in the audit.",
)
@click.option(
    "--person",
    metavar="NAME",
    help="Column that identifies the person of each row, if persons have several rows. A person's rows are never on "
    "both sides of a split, and tests count persons.",
)
@click.option(
    "--time",
    metavar="NAME",
    help="Column with the date of each row. The latest rows are held out instead of random ones, for the guard and for "
    "--test-size.",
)
@click.option("--weight", metavar="NAME", help="Column that says how much each row counts, such as a survey weight.")
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
    "--pooled",
    default="scorecard",
    show_default=True,
    metavar="[scorecard|linear|NAME]",
    help="The pooled classifier: a scorecard, logistic regression, or a model in use, by the column of the table that "
    "has its decisions (labels of the target) or its scores (0 to 1).",
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
    "--costs",
    type=costs_of_errors,
    metavar="fp=COST,fn=COST",
    help="What a false positive and a false negative cost, such as fp=1,fn=5; sets the cut-off. The second label in "
    "sorted order is the positive one.",
)
@click.option(
    "--test-size",
    type=click.FloatRange(0, 0.9),
    default=0.0,
    show_default=True,
    help="Share of the rows to set aside for audit and report; they are written beside the model.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
def fit(
    data: "DataFile",
    target: str,
    out: Path,
    groups: int | Literal["auto"],
    method: Literal["exceptions", "network"],
    pooled: str,
    guard: Literal["evidence", "proof", "none"],
    costs: dict[str, float] | None,
    test_size: float,
    seed: int,
    **roles: Any,
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

    if test_size:
        check_writable(test_rows_path(out))
    start = monotonic()
    in_use = None if pooled in ("scorecard", "linear") else pooled
    table = TrainingTable.read(data, target, pooled=in_use, test_size=test_size, seed=seed, **roles)
    for note in (table.headline(), *table.notes):
        say(note)
    for name in table.schema.shared_identifiers[:1] if roles["person"] is None else []:
        say(
            f"If rows with the same {name} belong to one person, add --person {name}: they then stay on one side of "
            "every split, and tests count persons."
        )
    unfitted = DAFHClassifier(
        groups,
        method=method,
        pooled=pooled if in_use is None else table.model_in_use(costs),  # type: ignore[arg-type]
        guard=None if guard == "none" else guard,
        costs=costs,
        random_state=seed,
        verbose=1,
    )
    model = table.fit(unfitted)
    test_rows = table.save(model, out)
    fitted = model[-1]
    history = getattr(fitted, "history_", None)
    epochs = "" if history is None else f"; kept epoch {fitted.best_epoch_} of {len(history)}"
    say(f"Trained in {monotonic() - start:.1f} s{epochs}.")
    if test_rows is not None:
        click.echo(f"\n{_quality(out, test_rows)}")
    _print_groups(fitted)
    _print_files(out, test_rows)


# Enough rows for an accuracy to within a tenth of a percentage point.
_MOST_MEASURED = 200_000


def _quality(path: Path, test_rows: Path) -> str:
    """How well the pooled classifier and the whole model predict the test rows, beside the majority class."""
    import numpy as np
    import pandas as pd
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    from dafh.classifiers import split_pipeline
    from dafh.cli.model_file import ModelFile
    from dafh.columns.read import DataFile
    from dafh.explanation import adds_nothing
    from dafh.text import percent, render_text

    model_file = ModelFile.open(path)
    rows = model_file.read(DataFile(test_rows), most_features=_MOST_MEASURED)
    measured = slice(None) if rows.with_features is None else rows.with_features
    classes = model_file.model.classes_
    y = classes[rows.codes[measured, 0]]
    weight = None if rows.weights is None else rows.weights.to_numpy()[measured]
    final, encoded = split_pipeline(model_file.model, rows.features)
    shares = np.array([np.average(y == label, weights=weight) for label in classes])
    predicted = {
        "majority class": (np.full(len(y), classes[shares.argmax()]), np.tile(shares, (len(y), 1))),
        "pooled classifier": (classes[rows.codes[measured, 1]], final.pooled_proba(encoded)),
        "with own classifiers": (final.predict(encoded), final.predict_proba(encoded)),
    }
    if adds_nothing(final):
        del predicted["with own classifiers"]
    several = {"labels": classes, "multi_class": "ovr"} if len(classes) > 2 else {}
    lines = []
    for name, (labels, probability) in predicted.items():
        score = probability[:, 1] if len(classes) == 2 else probability
        # With one label only, or a rare one that no test row has, there is nothing to rank.
        auc = roc_auc_score(y, score, sample_weight=weight, **several) if (shares > 0).all() else np.nan
        loss = log_loss(y, probability, labels=classes, sample_weight=weight)
        accuracy = percent(accuracy_score(y, labels, sample_weight=weight))
        lines.append((name, accuracy, "–" if np.isnan(auc) else f"{auc:.3f}", f"{loss:.4f}"))
    title = f"{len(y):,} held-out rows"
    return render_text(pd.DataFrame(lines, columns=[title, "accuracy", "AUC", "log-loss"]), left=(title,))


def _print_files(out: Path, test_rows: Path | None) -> None:
    """Say what was written, and what to do next."""
    click.echo(f"\nModel: {out}")
    if test_rows is not None:
        click.echo(f"Test rows: {test_rows}\n\nNext: dafh audit {out} {test_rows}")
        return
    click.echo(f"\nNext: dafh show {out}; with --test-size 0.25, fit sets rows aside to measure and audit the model.")


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
