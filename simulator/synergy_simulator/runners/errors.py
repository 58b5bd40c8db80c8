"""What goes wrong with the place where simulations run, not with a simulation."""

from typing import Self


class RunnerError(Exception):
    """One line that says what to change."""

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (str(self),)


class PlaceError(RunnerError):
    """The place cannot be used: its address or what is installed there is wrong."""


class OtherCodeError(PlaceError):
    """A process computes with other code than the one that asks: its answers could differ."""


class LostError(RunnerError):
    """The place failed after the work began."""
