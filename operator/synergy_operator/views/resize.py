"""What a pod's status says of an in-place resize: what its first container really has, and what keeps it from more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from synergy_api.pods import Amounts, amounts_of
from synergy_api.timestamps import parse_time

Object = Mapping[str, Any]
Hitch = Literal["", "Deferred", "Infeasible", "Error"]

_PENDING: Final = "PodResizePending"
_IN_PROGRESS: Final = "PodResizeInProgress"


@dataclass(frozen=True, slots=True)
class ResizeView:
    """`cpu_millis` and `memory_bytes` are what the container has; what its spec asks for may be on its way
    (`under_way`). `hitch` says how the newest resize stands where it does not get on, `problem` why and `since` from
    when on: Deferred (the kubelet tries again when there is room), Infeasible (it does not), Error (it tries again
    every few seconds)."""

    cpu_millis: int
    memory_bytes: int
    under_way: bool = False
    hitch: Hitch = ""
    problem: str = ""
    since: float | None = None


def read_resize(pod: Object) -> ResizeView:
    """The view of a Pod object. Before the container runs it has what its spec says."""
    spec, status = pod["spec"], pod.get("status") or {}
    first = spec["containers"][0]
    wanted = amounts_of((first.get("resources") or {}).get("requests") or {})
    has = _has(first["name"], status) or wanted
    conditions = {c["type"]: c for c in status.get("conditions") or [] if c.get("status") == "True"}
    hitch, problem, since = _hitch(conditions, pod["metadata"].get("generation"))
    under_way = _IN_PROGRESS in conditions or has[1:] != wanted[1:]
    return ResizeView(has.cpu_millis, has.memory_bytes, under_way, hitch, problem, since)


def _has(container: str, status: Object) -> Amounts | None:
    statuses = status.get("containerStatuses") or []
    found: Object = next((s.get("resources") or {} for s in statuses if s.get("name") == container), {})
    return amounts_of(found["requests"]) if "requests" in found else None


def _hitch(conditions: Mapping[str, Object], generation: int | None) -> tuple[Hitch, str, float | None]:
    """What the kubelet said of an older spec is no answer to the newest."""
    hitches: tuple[tuple[str, Hitch], ...] = ((_PENDING, "Deferred"), (_PENDING, "Infeasible"), (_IN_PROGRESS, "Error"))
    for kind, hitch in hitches:
        condition = conditions.get(kind) or {}
        seen = condition.get("observedGeneration")
        if condition.get("reason") == hitch and (seen is None or generation is None or seen >= generation):
            text, since = condition.get("message") or "", condition.get("lastTransitionTime")
            return hitch, f"{hitch}: {text}" if text else hitch, parse_time(since) if since else None
    return "", "", None
