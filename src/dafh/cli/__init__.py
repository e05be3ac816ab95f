"""The command line: parse, call, print. Nothing heavy is imported before a command needs it."""

import click

import dafh
from dafh.cli._common import OneSentence
from dafh.cli.people import audit, completion, explain, fit, predict, report, show
from dafh.cli.research import data, demo, reproduce


@click.group(cls=OneSentence, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(dafh.__version__, prog_name="dafh")
def main() -> None:
    """Fairness without harm, without demographics.

    Finds the groups of people that one shared model serves badly, and gives each a classifier that it would choose
    for itself.

    \b
    From a table to a report:
      dafh fit people.csv --target hired --test-size 0.25
      dafh audit model.dafh model.test.parquet
      dafh report model.dafh model.test.parquet
    """  # noqa: D301


for command in (fit, predict, audit, explain, report, show, completion, demo, data, reproduce):
    main.add_command(command)
