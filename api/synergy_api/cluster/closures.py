"""When nodes must be empty: an administrator drains them, or their pool's maintenance begins. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from synergy_api.cluster.nodes import Object
from synergy_api.names import ANNOTATION_EMPTY_BY
from synergy_api.resources.gpu_pool import GPUPoolSpec, MaintenanceWindow
from synergy_api.timestamps import parse_time


@dataclass(frozen=True, slots=True)
class Closure:
    """Seconds since the epoch between which no job may run on a node; `end` is None where it is not known."""

    start: float
    end: float | None = None

    def is_over(self, now: float) -> bool:
        """The node takes jobs again."""
        return self.end is not None and self.end <= now


def closures_of(node: Object, pool: GPUPoolSpec | None) -> tuple[Closure, ...]:
    """Of the node and of its pool, in order of time. Raises ValueError that names the field."""
    windows = pool.maintenance if pool is not None else ()
    found = [_window(f"spec.maintenance[{index}]", window) for index, window in enumerate(windows)]
    drained = (node.get("metadata", {}).get("annotations") or {}).get(ANNOTATION_EMPTY_BY)
    if drained is not None:
        found.append(Closure(_time(f"annotation {ANNOTATION_EMPTY_BY}", drained)))
    return tuple(sorted(found, key=lambda one: one.start))


def next_closure(closures: Sequence[Closure], now: float) -> Closure | None:
    """The one that holds or comes next: its end is that of all that follow it without a pause."""
    left = [one for one in closures if not one.is_over(now)]
    if not left:
        return None
    first, *later = left
    return Closure(first.start, _end(first.end, later))


def _window(field: str, window: MaintenanceWindow) -> Closure:
    start, end = _time(f"the pool's {field}.start", window.start), _time(f"the pool's {field}.end", window.end)
    if end <= start:
        raise ValueError(f"the pool's {field}.end: {window.end} must be after start")
    return Closure(start, end)


def _end(end: float | None, later: Iterable[Closure]) -> float | None:
    for one in later:
        if end is None or one.start > end:
            return end
        end = None if one.end is None else max(end, one.end)
    return end


def _time(field: str, text: object) -> float:
    try:
        return parse_time(str(text))
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None
