"""What all commands share: errors in one sentence, options for data files, output for people and for machines."""

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

MODEL = click.Path(path_type=Path)
_CLOSED_PIPE = 141
"""What a shell says of a command that was stopped by a closed pipe."""


class OneSentence(click.Group):
    """Turns errors of bad input into one sentence and exit code 2; commands are listed as they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List commands in the order in which they are used."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; DAFH_TRACEBACK=1 shows where an unexpected error comes from."""
        from dafh.exceptions import DAFHError

        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except DAFHError as error:
                click.echo(f"dafh: {error}", err=True)
                sys.exit(2)
            except (click.ClickException, click.Abort, click.exceptions.Exit, KeyboardInterrupt):
                raise
            except BrokenPipeError:
                # Whoever read the output has seen enough. What is left in the buffer must not be tried again.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(_CLOSED_PIPE)
            except Exception as error:
                if os.environ.get("DAFH_TRACEBACK"):
                    raise
                what = f"{type(error).__name__}: {' '.join(str(error).split())}"
                click.echo(f"dafh: unexpected error, please report it: {what} (DAFH_TRACEBACK=1 shows more)", err=True)
                sys.exit(1)


def _show_warning(message: Any, category: Any, *_: Any, **__: Any) -> None:
    from dafh.exceptions import DAFHWarning

    if issubclass(category, DAFHWarning):
        say(f"Note: {message}")


def say(text: str) -> None:
    """Tell the user something that is not the result: it goes to standard error, out of the way of pipes."""
    click.echo(text, err=True)


def print_json(value: Any) -> None:
    """Print the result for machines."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False))


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a text file is laid out, and hand the command a DataFile as `data`."""

    @functools.wraps(command)
    def with_file(*, data: str | None, delimiter: str | None, header: bool | None, encoding: str, **rest: Any) -> Any:
        return command(data=None if data is None else _data_file(data, delimiter, header, encoding), **rest)

    wrapped: Callable[..., Any] = with_file
    options = [
        click.option("--delimiter", metavar="CHAR", help="Between the cells of a CSV file; guessed if not given."),
        click.option("--header/--no-header", default=None, help="Whether the first line has the names; guessed."),
        click.option("--encoding", default="utf-8-sig", metavar="NAME", help="Of a CSV file.  [default: UTF-8]"),
    ]
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def _data_file(path: str, delimiter: str | None, header: bool | None, encoding: str) -> Any:
    from dafh.datafiles import DataFile

    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1:
            raise click.BadParameter(f"{delimiter!r} is not one character.", param_hint="--delimiter")
    return DataFile(path, delimiter, header, encoding)


def check_writable(out: Path) -> None:
    """Refuse before the work, not after it."""
    from dafh import datafiles

    datafiles.check_writable(out)
