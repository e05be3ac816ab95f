"""The command line: parse, call, print. Nothing heavy is imported before a command needs it.

- `fit`: from a table to a model file, with `training`, the tables it is fitted on;
- `use`: what is done with a model file (predict, audit, explain, report, show, export);
- `compare`: two models, of any kind: who loses from the change;
- `watch`: a model file over time, with `watching`, from a batch of rows to the next state;
- `data` and `demo`: the paper's data sets, and its experiment on synthetic data (`synthetic`).

What they share is in `options` and `output`. A new command gets a place in one of these files and in the list
below, help with an example, and a paragraph in the page of docs whose readers use it.
"""

import click

import dafh
from dafh.cli.compare import compare
from dafh.cli.data import data
from dafh.cli.demo import demo
from dafh.cli.fit import fit
from dafh.cli.output import OneSentence
from dafh.cli.use import audit, explain, export, predict, report, show
from dafh.cli.watch import watch


@click.group(cls=OneSentence, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(dafh.__version__, prog_name="dafh")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def main(debug: bool) -> None:
    """Fairness without harm, without demographics.

    Finds groups that a single model serves badly, trains a classifier for each, and tests whether any group is worse
    off.

    \b
    From a table to a report:
      dafh fit people.csv --target hired --test-size 0.25
      dafh audit model.dafh model.test.parquet
      dafh report model.dafh model.test.parquet

    \b
    Old model, new model: who loses?
      dafh compare rows.csv --target hired --old old --new new
    """  # noqa: D301


for command in (fit, predict, audit, explain, report, compare, watch, show, export, demo, data):
    main.add_command(command)
