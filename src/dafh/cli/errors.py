"""Errors in one sentence, with exit codes that scripts can rely on.

0: done. 1: harm or an alarm, for those who asked for this exit code. 2: bad input, or an environment that stands in the
way. 70: a mistake of ours. 130 and 141: stopped by the interrupt key, or by a closed pipe. A traceback is printed only
with ``--debug``, which every command takes.
"""

import contextlib
import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import click

from dafh.cli.output import say

_INPUT = 2
# Not 1, which `audit --fail-on-harm` uses: a script must be able to tell harm from a crash. 70 is EX_SOFTWARE of BSD.
_UNEXPECTED = 70
# What shells report for a command that was stopped by the interrupt key or by a closed pipe: 128 + SIGINT or SIGPIPE.
_INTERRUPTED, _CLOSED_PIPE = 130, 141
_DEBUG = "dafh.debug"


class OneSentence(click.Group):
    """Group of commands that turns errors of bad input into one sentence and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List commands in the order in which they were added, which is that of their use; click's is alphabetical."""
        return list(self.commands)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line in whatever environment it was started."""
        _prepare_streams()
        try:
            return super().main(*args, **extra)
        except SystemExit as end:
            # What is left in the buffer is written now. When Python does it at the end, a full disk is exit code 120.
            if (error := _flush()) is not None and end.code in (0, None):
                error.filename = "standard output"
                sys.exit(_end(error))
            raise
        except OSError as error:  # Standard error is full, and click had something to say.
            sys.exit(_end(error))

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse, and print help or the version if that is what is asked."""
        with _one_sentence({}):
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with warnings.catch_warnings(), _one_sentence(ctx.meta):
            warnings.showwarning = _show_warning
            return super().invoke(ctx)


def with_debug(command: click.Command) -> click.Command:
    """Let a command, or all commands of a group, take ``--debug``."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            with_debug(inner)
    else:
        command.params.append(
            click.Option(
                ["--debug"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_remember,
                help="Show where an error comes from.",
            )
        )
    return command


def _remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_DEBUG] = True


@contextlib.contextmanager
def _one_sentence(meta: dict[str, Any]) -> Iterator[None]:
    """Turn whatever is raised into a sentence and an exit code; click's own errors are left to click."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit):
        raise
    except (click.Abort, KeyboardInterrupt):
        # Click would exit with 1, which means harm.
        _print("dafh: interrupted.")
        sys.exit(_INTERRUPTED)
    except Exception as error:
        # A traceback says nothing to most users. Those who report the error can ask for it.
        if meta.get(_DEBUG):
            _print(traceback.format_exc().rstrip())
        sys.exit(_end(error))


def _end(error: Exception) -> int:
    """Say what went wrong, and return the exit code."""
    # Here, so that `dafh --help` imports nothing else.
    from dafh.exceptions import DAFHError
    from dafh.text import printable

    if _flush() is not None and isinstance(error, OSError):
        error.filename = "standard output"
    if isinstance(error, BrokenPipeError):  # The reader, `head` for example, has closed the pipe.
        return _CLOSED_PIPE
    if isinstance(error, DAFHError):
        _print(f"dafh: {printable(error)}")
    elif isinstance(error, MemoryError):
        _print("dafh: There is not enough memory for this: use fewer rows or columns, or a machine with more.")
    elif isinstance(error, OSError) and error.strerror:
        # A full disk, a folder that vanished: users can do something about it, and we cannot.
        where = f"{printable(error.filename)}: " if error.filename else ""
        _print(f"dafh: {where}{_without_folder() or error.strerror}.")
    else:
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        _print(f"dafh: unexpected error, please report it: {what} (--debug shows more)")
        return _UNEXPECTED
    return _INPUT


def _without_folder() -> str:
    """Say that the working folder was deleted, which the error itself does not."""
    try:
        os.getcwd()
    except OSError:
        return "the working folder no longer exists"
    return ""


def _print(text: str) -> None:
    """Print to standard error; where that is full or closed, the exit code has to do."""
    with contextlib.suppress(ValueError):
        say(text)


def _prepare_streams() -> None:
    """See that all three streams are there, and take every letter.

    If one is closed, the next file that is opened gets its number, and whatever a library prints would go into that
    file. In the C locale of old systems, or with PYTHONIOENCODING, a letter such as ± would be an error; results for
    programs (CSV, JSON, SQL) are UTF-8 everywhere.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # Gets the lowest number that is free, which is this one.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files may hold bytes that are no letters. A stream that has become another one by dup2 refuses.
            with contextlib.suppress(OSError):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _flush() -> OSError | None:
    """Write what is left in the buffers; return what stands in the way of standard output, if anything does."""
    found = None
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            found = error if stream is sys.stdout else found
            # Python flushes once more when it exits, and that would fail too, with a traceback.
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return found


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Show our own warnings as notes, and none of the libraries' ones: users can do nothing about those."""
    from dafh.exceptions import DAFHWarning

    if issubclass(category, DAFHWarning):
        say(f"Note: {message}")
