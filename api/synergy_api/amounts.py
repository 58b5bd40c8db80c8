"""Resources as pods and nodes have them: the one vector type, and the one list of its dimensions.

GPUs are counted beside the dimensions, because the plan counts whole GPUs and pods ask for devices of several names. A
further dimension is a field of `Amounts` and an entry of `DIMENSIONS`. It then comes from a node's allocatable into the
plan, and from the plan into requests and limits of pods (`docs/contributing.md`, "A resource dimension").
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, sub
from typing import Any, Final, NamedTuple

from synergy_api.names import GPU_RESOURCES
from synergy_api.quantity import byte_count, cpu_millis, format_bytes, format_cpu, whole_count


class Amounts(NamedTuple):
    """GPUs (devices: a shared GPU is several), CPU (milli-CPU) and memory (bytes). All are integers.

    Tuples compare in order. `fits` compares field by field.
    """

    gpus: int = 0
    cpu_millis: int = 0
    memory_bytes: int = 0

    @classmethod
    def of(cls, holder: Any, *, gpus: int | None = None) -> "Amounts":
        """The amounts of an object with a field for each dimension; its own GPUs unless others are given."""
        return cls(holder.gpus if gpus is None else gpus, *[getattr(holder, one.field) for one in DIMENSIONS])

    @classmethod
    def parse(cls, resources: Mapping[str, Any], gpu_resources: Sequence[str] = GPU_RESOURCES) -> "Amounts":
        """A Kubernetes resource list such as `requests`; resources that are no dimension are left out.

        `gpu_resources` are the names under which GPUs or their devices are counted.

        Raises ValueError naming the quantity that does not parse.
        """
        gpus = sum(whole_count(resources.get(name, 0)) for name in gpu_resources)
        return cls(gpus, *[one.parse(resources.get(one.resource, 0)) for one in DIMENSIONS])

    @property
    def fields(self) -> dict[str, Any]:
        """The dimensions by field, without GPUs: what a constructor or a copy takes."""
        return {one.field: getattr(self, one.field) for one in DIMENSIONS}

    @property
    def quantities(self) -> dict[str, str]:
        """The dimensions as a Kubernetes resource list, without GPUs."""
        return {one.resource: one.format(getattr(self, one.field)) for one in DIMENSIONS}

    @property
    def beside_gpus(self) -> tuple[int, ...]:
        """The dimensions alone, in the order of `DIMENSIONS`."""
        return self[1:]

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

    def part(self, count: int, whole: int, *, up: bool = False) -> "Amounts":
        """`count` parts of `whole` of each dimension, rounded down or `up`; GPUs stay as they are."""
        parts = [-(-amount * count // whole) if up else amount * count // whole for amount in self.beside_gpus]
        return Amounts(self.gpus, *parts)

    def without_gpus(self) -> "Amounts":
        """The dimensions alone."""
        return self._replace(gpus=0)

    def fits(self, room: "Amounts") -> bool:
        """Whether no field is above that of `room`. A field of zero fits even where the room is overdrawn."""
        return all(have <= free or have <= 0 for have, free in zip(self, room, strict=True))


NOTHING: Final = Amounts()


@dataclass(frozen=True, slots=True)
class Dimension:
    """A resource beside GPUs that jobs are given by amount."""

    field: str
    """Its name in `Amounts`, in snapshots of the planner and, in camel case, in statuses."""
    resource: str
    """Its name in resource lists of pods and nodes."""
    parse: Callable[[Any], int]
    format: Callable[[int], str]
    """From and to a Kubernetes quantity. `parse` raises ValueError naming what does not parse."""

    @property
    def spec_field(self) -> str:
        """Its field in `spec.resources.min` and `max` and in a pool's `systemReserved`, each a quantity."""
        return self.resource.replace("-", "_")


DIMENSIONS: Final = (
    Dimension("cpu_millis", "cpu", cpu_millis, format_cpu),
    Dimension("memory_bytes", "memory", byte_count, format_bytes),
)
