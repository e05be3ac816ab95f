"""Errors in one sentence, with exit codes that scripts can rely on."""

import os
import sys
import warnings
from typing import Any

import click

from dafh.cli.output import say

# What shells report for a command that was stopped by a closed pipe: 128 + SIGPIPE.
_CLOSED_PIPE = 141
# The same for the interrupt key: 128 + SIGINT.
_INTERRUPTED = 130
# Not 1, which `audit --fail-on-harm` uses: a script must be able to tell harm from a crash. 70 is EX_SOFTWARE of BSD.
_UNEXPECTED = 70


class OneSentence(click.Group):
    """Group of commands that turns errors of bad input into one sentence and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List commands in the order in which they were added, which is that of their use; click's is alphabetical."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; DAFH_TRACEBACK=1 shows where an unexpected error comes from."""
        from dafh.exceptions import DAFHError  # Here, so that `dafh --help` imports nothing else.

        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except DAFHError as error:
                click.echo(f"dafh: {error}", err=True)
                sys.exit(2)
            except (click.ClickException, click.exceptions.Exit):
                raise
            except (click.Abort, KeyboardInterrupt):
                # Click would exit with 1, which means harm.
                click.echo("dafh: interrupted.", err=True)
                sys.exit(_INTERRUPTED)
            except BrokenPipeError:
                # The reader, `head` for example, has closed the pipe. Python flushes the buffer once more when it
                # exits, and without this that would fail too, with a traceback.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(_CLOSED_PIPE)
            except Exception as error:
                # A traceback says nothing to most users. Those who report the error can ask for it.
                if os.environ.get("DAFH_TRACEBACK"):
                    raise
                if isinstance(error, OSError) and error.strerror:
                    # A full disk, a folder that vanished: users can do something about it, and we cannot.
                    where = f"{error.filename}: " if error.filename else ""
                    click.echo(f"dafh: {where}{error.strerror}.", err=True)
                    sys.exit(2)
                what = f"{type(error).__name__}: {' '.join(str(error).split())}"
                click.echo(f"dafh: unexpected error, please report it: {what} (DAFH_TRACEBACK=1 shows more)", err=True)
                sys.exit(_UNEXPECTED)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Show our own warnings as notes, and none of the libraries' ones: users can do nothing about those."""
    from dafh.exceptions import DAFHWarning

    if issubclass(category, DAFHWarning):
        say(f"Note: {message}")
