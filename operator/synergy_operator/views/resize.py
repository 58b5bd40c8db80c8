"""The state of an in-place resize: what a pod's first container really has, and why it does not get more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from synergy_api.amounts import Amounts
from synergy_api.timestamps import parse_time
from synergy_operator.views.metadata import Object

ResizeReason = Literal["", "Deferred", "Infeasible", "Error"]

_PENDING: Final = "PodResizePending"
_IN_PROGRESS: Final = "PodResizeInProgress"


@dataclass(frozen=True, slots=True)
class ResizeView:
    """`has` is what the first container has now, without GPUs.

    `under_way` is true while that differs from the spec. If the resize makes no progress, `reason` is the kubelet's
    reason, `message` its text and `since` the time:

    - Deferred: the kubelet tries again when the node has room.
    - Infeasible: the kubelet does not try again.
    - Error: the kubelet tries again every few seconds.
    """

    has: Amounts
    under_way: bool = False
    reason: ResizeReason = ""
    message: str = ""
    since: float | None = None


def read_resize(pod: Object) -> ResizeView:
    """The resize state of a Pod object. Before the container runs, it has what its spec requests."""
    spec, status = pod["spec"], pod.get("status") or {}
    first = spec["containers"][0]
    wanted = Amounts.parse((first.get("resources") or {}).get("requests") or {})
    has = _has(first["name"], status) or wanted
    conditions = {c["type"]: c for c in status.get("conditions") or [] if c.get("status") == "True"}
    reason, message, since = _stalled(conditions, pod["metadata"].get("generation"))
    under_way = _IN_PROGRESS in conditions or has.without_gpus() != wanted.without_gpus()
    return ResizeView(has.without_gpus(), under_way, reason, message, since)


def _has(container: str, status: Object) -> Amounts | None:
    statuses = status.get("containerStatuses") or []
    found: Object = next((s.get("resources") or {} for s in statuses if s.get("name") == container), {})
    return Amounts.parse(found["requests"]) if "requests" in found else None


def _stalled(conditions: Mapping[str, Object], generation: int | None) -> tuple[ResizeReason, str, float | None]:
    """Reason, message and time of a resize without progress. An answer to an older generation of the spec does not
    count."""
    reasons: tuple[tuple[str, ResizeReason], ...] = (
        (_PENDING, "Deferred"),
        (_PENDING, "Infeasible"),
        (_IN_PROGRESS, "Error"),
    )
    for kind, reason in reasons:
        condition = conditions.get(kind) or {}
        seen = condition.get("observedGeneration")
        if condition.get("reason") == reason and (seen is None or generation is None or seen >= generation):
            text, since = condition.get("message") or "", condition.get("lastTransitionTime")
            return reason, f"{reason}: {text}" if text else reason, parse_time(since) if since else None
    return "", "", None
