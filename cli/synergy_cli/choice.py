"""Options with a list of values: a misspelt one gets a suggestion."""

from typing import Any

import click

from synergy_core.model.names import not_there


class Choice(click.Choice[str]):
    """`click.Choice` whose error suggests the value that is most like the given one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value, or click's error that names the option."""
        if value not in self.choices:
            self.fail(not_there(str(value), self.choices), param, ctx)
        return str(value)
