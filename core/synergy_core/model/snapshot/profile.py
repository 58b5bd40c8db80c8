"""The sensitivity matrix of a job on one GPU type."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Annotated, ClassVar

from pydantic import AfterValidator, ConfigDict, Field

from synergy_core.model.snapshot.limits import STRICT, FieldError, Positive, check_speed


def _checked(matrix: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    for index, row in enumerate(matrix):
        for place, speed in enumerate(row):
            check_speed(speed, f"[{index}][{place}]")
    return matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Sensitivity matrix of a job on one GPU type (Synergy, section 3.1).

    `steps_per_s[i][j]` is the speed of the whole job, all its GPUs together, with `cpu_millis[i]` and
    `memory_bytes[j]`. All axes ascend strictly. With further axes there is a column for each combination of memory
    with a point of each of them, in the order of their names, the last one varying fastest.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    cpu_millis: Annotated[tuple[Positive, ...], Field(min_length=1)]
    memory_bytes: Annotated[tuple[Positive, ...], Field(min_length=1)]
    steps_per_s: Annotated[tuple[tuple[float, ...], ...], AfterValidator(_checked)]
    further: Mapping[str, Annotated[tuple[Positive, ...], Field(min_length=1)]] = field(
        default_factory=dict, hash=False
    )
    """Axes of further resources by name."""
    client_thread_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Of each GPU's threads, what MPS left the job while it was measured: the speeds have that limit in them."""

    def __post_init__(self) -> None:
        axes = {"cpu_millis": self.cpu_millis, "memory_bytes": self.memory_bytes}
        axes.update((f"further.{name}", axis) for name, axis in sorted(self.further.items()))
        for name, axis in axes.items():
            for index in range(1, len(axis)):
                if axis[index] <= axis[index - 1]:
                    raise FieldError(f"{name}[{index}]", f"{axis[index]} is not above {axis[index - 1]}; sort the axis")
        if len(self.steps_per_s) != len(self.cpu_millis):
            problem = f"has {len(self.steps_per_s)} rows for {len(self.cpu_millis)} CPU points; give one row per point"
            raise FieldError("steps_per_s", problem)
        columns = prod(len(axis) for axis in axes.values()) // len(self.cpu_millis)
        points = "combinations of memory and further points" if self.further else "memory points"
        each = "one per combination" if self.further else "one per point"
        for index, row in enumerate(self.steps_per_s):
            if len(row) != columns:
                problem = f"has {len(row)} values for {columns} {points}; give {each}"
                raise FieldError(f"steps_per_s[{index}]", problem)
