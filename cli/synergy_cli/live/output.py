"""Output of live commands."""

import json
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import click
import yaml

from synergy_cli.text_table import text_table
from synergy_view.words import printable

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "unknown": "cyan"}


def plain(value: Any) -> Any:
    """Dataclasses as objects of JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(inner) for name, inner in asdict(value).items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return value


def write_data(value: Any, output: str) -> None:
    """The answer as JSON or YAML."""
    document = plain(value)
    if output == "json":
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(yaml.safe_dump(document, sort_keys=False).rstrip())


def write_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, nothing: str) -> None:
    """A table, or the sentence `nothing` if there are no rows."""
    click.echo(text_table(header, rows) if rows else nothing)


def write_line(text: str, *, err: bool = False) -> None:
    """One line, which stays one whatever the cluster's texts in it have."""
    click.echo(printable(text), err=err)


def coloured(level: str) -> str:
    """The word of a level in its colour. Click leaves colours out if the output is no terminal."""
    return click.style(level, fg=_COLOURS.get(level))


def heading(text: str) -> None:
    """Print a heading."""
    click.echo(click.style(printable(text), bold=True))


def note(text: str) -> None:
    """Print a note on stderr: a pipe gets the answer only."""
    if text:
        write_line(f"note: {text}", err=True)
