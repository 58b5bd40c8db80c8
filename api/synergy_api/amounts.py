"""A vector of resources as pods and nodes have them."""

from operator import add, sub
from typing import Final, NamedTuple


class Amounts(NamedTuple):
    """GPUs (devices: a shared GPU is several), CPU (milli-CPU) and memory (bytes); ordered as a vector, compared field
    by field with `fits`."""

    gpus: int = 0
    cpu_millis: int = 0
    memory_bytes: int = 0

    def plus(self, other: "Amounts") -> "Amounts":
        """Sum of each field."""
        return Amounts(*map(add, self, other))

    def minus(self, other: "Amounts") -> "Amounts":
        """Difference of each field; may be negative."""
        return Amounts(*map(sub, self, other))

    def at_least(self, other: "Amounts") -> "Amounts":
        """The greater of each field."""
        return Amounts(*map(max, self, other))

    def at_most(self, other: "Amounts") -> "Amounts":
        """The smaller of each field."""
        return Amounts(*map(min, self, other))

    def fits(self, room: "Amounts") -> bool:
        """Whether no field is above that of `room`. A field of zero fits even where the room is overdrawn."""
        return all(have <= free or have <= 0 for have, free in zip(self, room, strict=True))


NOTHING: Final = Amounts()
