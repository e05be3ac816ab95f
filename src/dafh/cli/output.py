"""Output for people and for machines."""

import json
from typing import Any

import click


def say(text: str) -> None:
    """Tell the user something that is not the result: it goes to standard error, out of the way of pipes."""
    click.echo(text, err=True)


def print_json(value: Any) -> None:
    """Print the result for machines."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False))
