"""What a job's PriorityClass is worth to plans, from Kubernetes' PriorityClass objects. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from synergy_api.cluster.nodes import Object, labels_of
from synergy_api.names import GROUP

URGENT: Final = f"{GROUP}/urgent"
"""Label or annotation of a PriorityClass whose jobs do not wait for the round's end: `"true"`."""


@dataclass(frozen=True)
class PriorityClass:
    """A PriorityClass. `urgent` is false where its preemptionPolicy is Never."""

    value: int
    urgent: bool = False


NO_CLASS: Final = PriorityClass(0)


@dataclass(frozen=True)
class PriorityClasses:
    """All PriorityClasses. `default` is the global default's name, empty where there is none."""

    by_name: Mapping[str, PriorityClass] = field(default_factory=dict)
    default: str = ""

    @property
    def of_jobs_without(self) -> PriorityClass:
        """What a job counts as that names no class."""
        return self.by_name.get(self.default, NO_CLASS)

    def of(self, name: str) -> PriorityClass | None:
        """The class of a job; None where there is no such class."""
        return self.by_name.get(name) if name else self.of_jobs_without


def read_priority_classes(objects: Iterable[Object]) -> PriorityClasses:
    """What PriorityClass objects say. Of several global defaults the one with the lowest value counts, as in
    Kubernetes."""
    found: dict[str, PriorityClass] = {}
    defaults: list[tuple[int, str]] = []
    for item in objects:
        name, value = str(item["metadata"]["name"]), int(item.get("value") or 0)
        marks = {**(item["metadata"].get("annotations") or {}), **labels_of(item)}
        urgent = marks.get(URGENT) == "true" and item.get("preemptionPolicy") != "Never"
        found[name] = PriorityClass(value, urgent)
        if item.get("globalDefault"):
            defaults.append((value, name))
    return PriorityClasses(found, min(defaults)[1] if defaults else "")
