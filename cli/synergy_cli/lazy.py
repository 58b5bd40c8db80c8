"""Commands of rooms that need more than a plain installation: found by name, imported when used."""

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass

import click

from synergy_cli.errors import OneLineGroup


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is, and which extra of the distribution brings what it needs."""

    module: str
    attribute: str
    extra: str


class LazyGroup(OneLineGroup):
    """A group with commands that are imported only when they are called or listed."""

    lazy: Mapping[str, LazyCommand] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands that are there."""
        return sorted([*super().list_commands(ctx), *(name for name in self.lazy if _is_there(self.lazy[name]))])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; one that says what to install where a library is missing."""
        where = self.lazy.get(cmd_name)
        if where is None or not _is_there(where):
            return super().get_command(ctx, cmd_name)
        try:
            command: click.Command = getattr(importlib.import_module(where.module), where.attribute)
        except ModuleNotFoundError as error:
            return _explanation(cmd_name, where, error.name or "a library")
        return command


def _is_there(where: LazyCommand) -> bool:
    return importlib.util.find_spec(where.module.partition(".")[0]) is not None


def _explanation(name: str, where: LazyCommand, missing: str) -> click.Command:
    message = f"{name} needs {missing}: install kube-synergy[{where.extra}]"

    @click.command(name, short_help=f"(not installed: kube-synergy[{where.extra}])", add_help_option=False)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def explain(arguments: tuple[str, ...]) -> None:
        raise click.ClickException(message)

    explain.ignore_unknown_options = True
    return explain
