"""Notes for readers, results for programs, and errors in one sentence, with exit codes that scripts can rely on.

0: done. 1: harm or an alarm, for those who asked for this exit code. 2: bad input, or an environment that stands in the
way. 70: a mistake of ours. 130 and 141: stopped by the interrupt key, or by a closed pipe. A traceback is printed only
with ``dafh --debug``.
"""

import contextlib
import io
import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import click

_INPUT = 2
# Not 1, which `audit --fail-on-harm` uses: a script must be able to tell harm from a crash. 70 is EX_SOFTWARE of BSD.
_UNEXPECTED = 70
# What shells report for a command that was stopped by the interrupt key or by a closed pipe: 128 + SIGINT or SIGPIPE.
_INTERRUPTED, _CLOSED_PIPE = 130, 141


def say(text: str) -> None:
    """Print what is not the result. It goes to standard error, so that a pipe carries the result alone."""
    from dafh.text import CONTROLS  # Here, so that `dafh --help` imports nothing else.

    click.echo(text.translate(CONTROLS), err=True)


def print_json(value: object) -> None:
    """Print the result as JSON."""
    # NaN is no JSON and many readers refuse it: better to fail here than in the program that reads it.
    text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)
    # Terminals obey some letters, and turn the direction of a line at others, that JSON does not ask to be escaped.
    click.echo("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


class OneSentence(click.Group):
    """Group of commands that turns errors of bad input into one sentence and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List commands in the order in which they were added, which is that of their use; click's is alphabetical."""
        return list(self.commands)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; results for programs (CSV, JSON, SQL) are UTF-8 everywhere."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        return super().main(*args, **extra)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse, and print help or the version if that is what is asked."""
        with _one_sentence():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with warnings.catch_warnings(), _one_sentence(debug=ctx.params.get("debug", False)):
            warnings.showwarning = _show_warning
            return super().invoke(ctx)


@contextlib.contextmanager
def _one_sentence(debug: bool = False) -> Iterator[None]:
    """Turn whatever is raised into a sentence and an exit code; click's own errors are left to click."""
    try:
        yield
        sys.stdout.flush()
    except (click.ClickException, click.exceptions.Exit):
        raise
    except (click.Abort, KeyboardInterrupt):
        # Click would exit with 1, which means harm.
        say("dafh: interrupted.")
        sys.exit(_INTERRUPTED)
    except Exception as error:
        # A traceback says nothing to most users. Those who report the error can ask for it.
        if debug:
            say(traceback.format_exc().rstrip())
        sys.exit(_end(error))


def _end(error: Exception) -> int:
    """Say what went wrong, and return the exit code."""
    # Here, so that `dafh --help` imports nothing else.
    from dafh.exceptions import DAFHError
    from dafh.text import printable

    if isinstance(error, OSError):
        _give_up_output()
    if isinstance(error, BrokenPipeError):  # The reader, `head` for example, has closed the pipe.
        return _CLOSED_PIPE
    if isinstance(error, DAFHError):
        say(f"dafh: {printable(error)}")
    elif isinstance(error, MemoryError):
        say("dafh: There is not enough memory for this: use fewer rows or columns, or a machine with more.")
    elif isinstance(error, OSError) and error.strerror:
        # A full disk, a folder that vanished: users can do something about it, and we cannot.
        where = f"{printable(error.filename)}: " if error.filename else ""
        say(f"dafh: {where}{error.strerror}.")
    else:
        mistake = f"{type(error).__name__}: {' '.join(str(error).split())}"
        say(f"dafh: unexpected error, please report it: {mistake} (dafh --debug shows more)")
        return _UNEXPECTED
    return _INPUT


def _give_up_output() -> None:
    """Write what is left in the buffer; if that fails, drop it: Python would try again at its end, with a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Show our own warnings as notes, and none of the libraries' ones: users can do nothing about those."""
    from dafh.exceptions import DAFHWarning

    if issubclass(category, DAFHWarning):
        say(f"Note: {message}")
