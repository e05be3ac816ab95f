"""Output for readers and for programs."""

import contextlib
import json

import click


def say(text: str) -> None:
    """Print what is not the result. It goes to standard error, so that a pipe carries the result alone.

    If standard error is full or closed, the note is lost: a result must not be lost with it.
    """
    with contextlib.suppress(OSError):
        click.echo(text.translate(_CONTROLS | _LOW_CONTROLS), err=True)


# Terminals obey these characters, and JSON does not ask for them to be escaped as it does for those below a blank.
_CONTROLS = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
_LOW_CONTROLS = {code: f"\\x{code:02x}" for code in range(0x20) if chr(code) not in "\n\t"}


def print_json(value: object) -> None:
    """Print the result as JSON."""
    # NaN is no JSON and many readers refuse it: better to fail here than in the program that reads it.
    click.echo(json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False).translate(_CONTROLS))
