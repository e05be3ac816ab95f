"""dafh show: what a model file holds."""

from pathlib import Path
from typing import Any

import click

from dafh.cli.options import JSON, MODEL
from dafh.cli.output import print_json


@click.command(epilog="Example: dafh show model.dafh")
@click.argument("model", type=MODEL)
@JSON
def show(model: Path, as_json: bool) -> None:
    """Show what a model file contains.

    Version, settings, columns, rules of the groups, and what the guard did. Nothing in the file is run.
    """
    from dafh.persistence.files import read_card

    card = read_card(model)
    if as_json:
        print_json(card)
        return
    for name, value in _card_lines(card):
        click.echo(f"{name + ':':<12} {value}")


def _card_lines(card: dict[str, Any]) -> list[tuple[str, str]]:
    from dafh.evaluation.losses import TITLES
    from dafh.text import clipped

    def text(value: Any) -> str:
        return clipped(value, 300)

    def names_of(entry: str) -> list[Any]:
        """Return names that the schema lists; a card may come from anywhere, and hold anything in their place."""
        return list(schema[entry]) if isinstance(schema.get(entry), list | dict) else []

    columns, schema = card.get("columns") or [], card.get("schema") or {}
    names = ", ".join(text(column.get("name")) for column in columns[:12])
    labels = card.get("labels") or []
    return [
        (
            "Model",
            f"{text(card.get('model'))}, {_counted(card.get('groups'))}, pooled: {text(card.get('pooled'))}",
        ),
        *([("Groups", text(card["worth"]))] if isinstance(card.get("worth"), str) else []),
        *_rule_lines(card.get("rules")),
        ("Labels", f"{', '.join(text(label) for label in labels[:12])}{_more(labels)}"),
        (
            "Settings",
            ", ".join(f"{text(n)} = {text(v)}" for n, v in (card.get("settings") or {}).items()) or "all defaults",
        ),
        ("Columns", f"{len(columns)}: {names}{_more(columns)}"),
        ("Data", f"{card['rows']:,} rows of {text(card.get('data'))}" if "rows" in card else "unknown"),
        ("Target", text(schema.get("target", "unknown"))),
        ("Sensitive", ", ".join(map(text, names_of("sensitive"))) or "none named"),
        *([("Protected", ", ".join(map(text, names_of("protected"))))] if names_of("protected") else []),
        *([("Persons", f"rows with the same {text(schema['person'])}")] if schema.get("person") else []),
        *([("Time", ", ".join(map(text, names_of("time"))))] if names_of("time") else []),
        ("Losses", ", ".join(TITLES[loss] for loss in card.get("losses") or []) or "none"),
        *([("Cut-off", f"a probability of {card['threshold']:.3g}")] if card.get("threshold") else []),
        ("Guard", text((card.get("guard") or {}).get("summary", "off")).removeprefix("Guard ")),
        ("Written", f"{text(card.get('written'))} by dafh {text(card.get('dafh'))}"),
        ("Libraries", ", ".join(f"{text(n)} {text(v)}" for n, v in (card.get("versions") or {}).items())),
    ]


def _more(entries: list[Any]) -> str:
    return f" and {len(entries) - 12:,} more" if len(entries) > 12 else ""


def _counted(groups: object) -> str:
    return f"{groups} group{'' if groups == 1 else 's'}"


def _rule_lines(rules: object) -> list[tuple[str, str]]:
    """Rules of the groups, if the card has some; a card may come from anywhere, and hold anything in their place."""
    from dafh.text import clipped

    if not isinstance(rules, list) or len(rules) < 2:
        return []
    return [(f"Group {number}", clipped(rule, 300)) for number, rule in enumerate(rules)]
