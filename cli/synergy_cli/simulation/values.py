"""What options of the simulator's commands say, read from their text."""

from collections import Counter
from typing import Any, Literal

import click

from synergy_core.model.snapshot import Tenant
from synergy_simulator.workloads.generator import Split, parse_split


class JobsPerHour(click.FloatRange):
    """A load that gives arrivals that a simulation can take."""

    name = "load"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or click's error that names the option."""
        number = float(super().convert(value, param, ctx))
        if not _LEAST_LOAD <= number <= _MOST_LOAD:
            self.fail(f"{value} is not a load from {_LEAST_LOAD:g} to {_MOST_LOAD:g} jobs per hour.", param, ctx)
        return number


_LEAST_LOAD, _MOST_LOAD = 1e-3, 1e6


def as_window(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """`A:B`, jobs A to B - 1."""
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise click.BadParameter(f"must be two counts A:B with A below B, is {text!r}")
    return int(first), int(last)


def as_split(_context: click.Context, _option: click.Parameter, text: str) -> Split:
    """Parts of image, language and speech models."""
    try:
        return parse_split(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def as_tenants(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> tuple[Tenant, ...]:
    """`NAME=WEIGHT`, or `NAME=WEIGHT:fifo`."""
    tenants = tuple(map(_tenant, texts))
    for name, times in Counter(tenant.name for tenant in tenants).items():
        if times > 1:
            raise click.BadParameter(f"{name} is there {times} times; give each tenant once")
    return tenants


def _tenant(text: str) -> Tenant:
    name, _, rest = text.rpartition("=")
    weight, colon, policy = rest.partition(":")
    try:
        number = float(weight)
    except ValueError:
        number = 0.0
    if not name or not 0.0 < number < _MOST_WEIGHT or (colon and policy not in _WITHIN):
        raise click.BadParameter(
            f"must be NAME=WEIGHT, with :fairness or :fifo behind it, the weight above 0; is {text!r}"
        )
    return Tenant(name, number, _WITHIN.get(policy, "fairness"))


_WITHIN: dict[str, Literal["fairness", "fifo"]] = {"fairness": "fairness", "fifo": "fifo"}
_MOST_WEIGHT = 1e6
