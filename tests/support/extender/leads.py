"""The leadership that a test gives and takes."""

from dataclasses import dataclass


@dataclass
class Leads:
    """A `Lead` that holds for `left_s` seconds from any moment."""

    leading: bool = True
    left_s: float = 60.0
    near: bool = False
