"""The command line: parse, call, print. Nothing heavy is imported before a command needs it.

One file per family of commands: `fit`, `score` (predict), `audit` (audit and explain), `report`, `watch`, `files`
(show), `export`, `data`, `demo` (with `synthetic`, its experiment), `completion`. What they share is in `options`,
`errors` and `output`.

A new command gets a file here, an import and a place in the list below, help with an example, and a paragraph in
docs/commands.md. What it does with tables and model files belongs in `dafh.workflows`.
"""

import click

import dafh
from dafh.cli.audit import audit, explain
from dafh.cli.completion import completion
from dafh.cli.data import data
from dafh.cli.demo import demo
from dafh.cli.errors import OneSentence, with_debug
from dafh.cli.export import export
from dafh.cli.files import show
from dafh.cli.fit import fit
from dafh.cli.report import report
from dafh.cli.score import predict
from dafh.cli.watch import watch


@click.group(cls=OneSentence, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(dafh.__version__, prog_name="dafh")
def main() -> None:
    """Fairness without harm, without demographics.

    Finds groups that a single model serves badly, trains a classifier for each, and tests whether any group is worse
    off.

    \b
    From a table to a report:
      dafh fit people.csv --target hired --test-size 0.25
      dafh audit model.dafh model.test.parquet
      dafh report model.dafh model.test.parquet
    """  # noqa: D301


for command in (fit, predict, audit, explain, report, watch, show, export, completion, demo, data):
    main.add_command(with_debug(command))
