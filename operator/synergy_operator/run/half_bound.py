"""Gangs of which kube-scheduler has bound only a part: how long the other workers may take."""

from collections.abc import Iterable
from typing import Final

from synergy_operator.views.pod import PodView

BIND_SECONDS: Final = 30.0
"""How long a gang may be partly bound, and how long an ungated worker may be unschedulable."""
UNSEEN_SECONDS: Final = 120.0
"""How long a gang may wait for a scheduler to look at it after its gates were removed.

Without a running scheduler no other job could start instead. But some pods are never looked at, for example those with
a resource claim that does not exist.
"""


def half_bound(pods: Iterable[PodView], now: float) -> tuple[list[PodView], float | None]:
    """The workers that keep the gang from being whole, and the seconds that they have left.

    - The time counts from the first binding. A gang that kube-scheduler comes to late is not evicted while it is bound.
    - A worker with another scheduling gate than the operator's cannot be bound.
    - A gang without a bound or unschedulable worker waits longer, because no scheduler has looked at it yet.
    """
    listed = list(pods)
    bound = [pod for pod in listed if pod.node]
    unbound = [pod for pod in listed if not pod.node]
    late = [pod for pod in unbound if pod.unschedulable or pod.gates] or unbound
    if not late:
        return [], None
    since = min(_bound_at(pod) for pod in bound) if bound else min(ungated_at(pod) for pod in late)
    seen = bound or any(pod.unschedulable or pod.gates for pod in late)
    return late, since + (BIND_SECONDS if seen else UNSEEN_SECONDS) - now


def unbound_reason(pod: PodView) -> str:
    """Why an unbound worker has no node, as far as its pod shows it."""
    if pod.unschedulable:
        return pod.unschedulable
    if pod.gates:
        return f"spec.template has the scheduling gate {pod.gates[0]}, which has not been removed"
    return "kube-scheduler has not bound it; it ignores pods whose resource claims do not exist"


def ungated_at(pod: PodView) -> float:
    """When the operator removed the pod's gate, or the pod's creation if that is unknown."""
    return pod.ungated_at if pod.ungated_at is not None else pod.created_at


def _bound_at(pod: PodView) -> float:
    return max(pod.bound_at, ungated_at(pod)) if pod.bound_at is not None else ungated_at(pod)
