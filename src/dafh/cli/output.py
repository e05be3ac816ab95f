"""Output for readers and for programs."""

import json

import click


def say(text: str) -> None:
    """Print what is not the result. It goes to standard error, so that a pipe carries the result alone."""
    from dafh.text import CONTROLS  # Here, so that `dafh --help` imports nothing else.

    click.echo(text.translate(CONTROLS), err=True)


def print_json(value: object) -> None:
    """Print the result as JSON."""
    # NaN is no JSON and many readers refuse it: better to fail here than in the program that reads it.
    text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)
    # Terminals obey some letters, and turn the direction of a line at others, that JSON does not ask to be escaped.
    click.echo("".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text))
