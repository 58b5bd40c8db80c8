"""How long solving may take: the core reads no clock, so its caller says what is left."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Budget:
    """`left` is asked before each programme, and bounds it; seconds."""

    left: Callable[[], float] = lambda: inf

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.left() <= 0.0


class OutOfTimeError(Exception):
    """The budget ended before there was anything feasible."""
