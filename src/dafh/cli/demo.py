"""dafh demo: the paper's experiment on synthetic data."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dafh.cli.options import check_writable

if TYPE_CHECKING:
    import pandas as pd


@click.command(epilog="Example: dafh demo --seed 7 --out figure.svg")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of data and training."
)
@click.option("--samples", type=click.IntRange(min=400), default=20_000, show_default=True, help="Rows to draw.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("dafh-demo.png"),
    show_default=True,
    help="File for the figure: .png, .svg or .html.",
)
def demo(seed: int, samples: int, out: Path) -> None:
    """Run the paper's synthetic experiment and draw its figure.

    Two hidden attributes decide which side of each cluster is positive. One linear classifier for all rows is hardly
    better than chance, and one for each value of either attribute is no real improvement. The paper's algorithm, row by
    row from the best of eight random starts, finds groups in which a linear classifier is enough, without seeing the
    attributes.
    """
    if out.suffix not in (".png", ".svg", ".html"):
        raise click.BadParameter(f"{out.name} must end in .png, .svg or .html.", param_hint="--out")
    check_writable(out)
    from dafh.cli.synthetic import run_synthetic
    from dafh.plots import synthetic_panels
    from dafh.storage import replacing

    experiment = run_synthetic(samples, random_state=seed, verbose=1)
    _print_demo(experiment.table(), len(experiment.y))
    with replacing(out) as temporary:
        synthetic_panels(experiment).save(temporary, **({"scale_factor": 2} if out.suffix == ".png" else {}))
    click.echo(f"\nFigure: {out.resolve()}")


def _print_demo(table: "pd.DataFrame", n_rows: int) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    lines = Table(
        title=f"The paper's synthetic data, {n_rows:,} test rows",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    lines.add_column("", no_wrap=True)
    headings = ("Pr w/o\nharm", "accu-\nracy", "viola-\ntions", "\ngain", "worst\ngain", "small-\nest", "dis-\nagree")
    for heading in headings:
        lines.add_column(heading, justify="right", no_wrap=True)
    for method, row in table.iterrows():
        cells = [
            f"{row.pr_without_harm:.1%}",
            f"{row.accuracy:.1%}",
            f"{row.violations:.0f}",
            f"{100 * row.gain:+.1f}",
            f"{100 * row.smallest_group_gain:+.1f}",
            f"{row.smallest_group:.0%}",
            f"{row.disagreement:.1%}",
        ]
        if method == "Pooled":  # there is nothing to compare it with
            cells = ["–", cells[1], *("–" for _ in cells[2:])]
        lines.add_row(str(method), *cells, style="bold" if method == "DAFH" else None)
    console = Console(highlight=False)
    console.print(lines)
    console.print(_DEMO_NOTES, style="dim")


_DEMO_NOTES = """\
Pr w/o harm  share of rows that no other classifier serves better
violations   comparisons in which a group's own classifier makes more errors than another
gain         accuracy minus pooled accuracy, in percentage points
worst gain   the same for the group with the smallest gain
smallest     share of rows in the smallest group
disagree     share of rows on which the classifiers disagree"""
