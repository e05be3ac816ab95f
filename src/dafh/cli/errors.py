"""Errors of bad input in one sentence, with an exit code that scripts can rely on."""

import os
import sys
import warnings
from typing import Any

import click

from dafh.cli.output import say

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
