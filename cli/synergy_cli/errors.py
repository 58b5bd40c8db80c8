"""How the command line fails: one line on stderr, exit 2 for bad input, 1 for the rest."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from synergy_core.model.names import nearest
from synergy_core.model.snapshot import FieldError
from synergy_view.words import printable


class BadInputError(click.ClickException):
    """Input that cannot be used. The message names the field and what to change."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Write the one line."""
        click.echo(f"error: {printable(self.format_message())}", file=file, err=True)


class OneLineGroup(click.Group):
    """A group whose usage errors, those of its commands included, are one line each."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """See click.Command.make_context."""
        with _usage_errors_as_one_line():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """See click.Command.invoke."""
        with _usage_errors_as_one_line(), _file_errors_as_one_line():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See click.Group.resolve_command; a misspelt command gets a suggestion."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            meant = nearest(name, self.list_commands(ctx))
            suggestion = "" if meant is None else f" Did you mean {meant!r}?"
            ctx.fail(f"No such command {name!r}.{suggestion}")
        return super().resolve_command(ctx, args)


@contextmanager
def bad_options() -> Iterator[None]:
    """Turn what the planner says of its configuration into bad input that names the option."""
    try:
        yield
    except FieldError as error:
        option = "" if error.path.startswith("nodes") else "--"  # what the snapshot lacks for the policy asked for
        raise BadInputError(f"{option}{error.path}: {error.problem}") from error


@contextmanager
def _file_errors_as_one_line() -> Iterator[None]:
    """Name the file that could not be read or written."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise click.ClickException(f"{error.filename}: {error.strerror}") from error


@contextmanager
def _usage_errors_as_one_line() -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise BadInputError(" ".join(error.format_message().split())) from error
