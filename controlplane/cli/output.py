"""What commands print: a table for people, JSON for programs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from msgspec import json
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_json(document: Any) -> None:
    """One JSON document, indented."""
    click.echo(json.format(json.encode(document), indent=2).decode())


def print_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, empty: str) -> None:
    """Rows as a table with these columns; the sentence `empty` when there are none."""
    found = list(rows)
    if not found:
        click.echo(empty)
        return
    table = Table(*[name.replace("_", " ") for name in columns], box=None, pad_edge=False)
    for row in found:
        table.add_row(*[_cell(row.get(name)) for name in columns])
    console = Console()
    # A pipe has no width; cutting there would hide what the next program looks for.
    (console if console.is_terminal else Console(width=400)).print(table)


def print_fields(document: Mapping[str, Any]) -> None:
    """One document, a field a line; what is null is left out."""
    width = max((len(name) for name in document), default=0)
    for name, value in document.items():
        if value is not None:
            click.echo(f"{name:<{width}}  {literal(value)}")


def literal(value: Any) -> str:
    """A value as text that is safe to show: no control character in it reaches the terminal."""
    shown = "" if value is None else value if isinstance(value, str) else json.encode(value).decode()
    return "".join(character if character.isprintable() else "·" for character in shown)


def _cell(value: Any) -> Text:
    """A value as a cell: nothing in it is read as markup."""
    return Text(literal(value))
