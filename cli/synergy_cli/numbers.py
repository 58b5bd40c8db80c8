"""Numbers of options: `click.FloatRange` alone accepts nan, which is not below or above anything."""

from math import isfinite
from typing import Any

import click

_CENTURY_S = 100 * 365 * 86400.0


class Seconds(click.FloatRange):
    """A finite number of seconds, at most a century."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or click's error that names the option."""
        number = float(super().convert(value, param, ctx))
        if not number <= _CENTURY_S:
            self.fail(f"{value} is not a number of seconds of at most {_CENTURY_S:,.0f}.", param, ctx)
        return number


class Within(click.FloatRange):
    """A finite number within a range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or click's error that names the option."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number
