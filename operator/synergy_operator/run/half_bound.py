"""A gang of which kube-scheduler has bound a part: how long the others may take."""

from collections.abc import Iterable
from typing import Final

from synergy_operator.views.pod import PodView

BIND_SECONDS: Final = 30.0
"""How long a gang may be partly bound, and how long after its gates fell a worker may find no room."""
UNSEEN_SECONDS: Final = 120.0
"""How long after its gates fell a gang may be looked at by no scheduler: while none runs no other job could start in
its place, but some pods (a resource claim that does not exist) no scheduler ever looks at."""


def half_bound(pods: Iterable[PodView], now: float) -> tuple[list[PodView], float | None]:
    """The workers that keep the gang from being whole, and the seconds that are left for them.

    Time counts from the first binding, so that a gang that a kube-scheduler was late for is not taken back in the midst
    of being bound. A worker with somebody else's scheduling gate cannot be bound. A gang of which nobody is bound and
    nobody was found without room waits longer: no scheduler has come to it.
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
    """What keeps an unbound worker from its node, as far as it shows."""
    if pod.unschedulable:
        return pod.unschedulable
    if pod.gates:
        return f"spec.template has the scheduling gate {pod.gates[0]}, which nobody has taken away"
    return "kube-scheduler has not bound it; it looks at no pod whose resource claims do not exist"


def ungated_at(pod: PodView) -> float:
    """When the pod's gate fell, as far as that is known."""
    return pod.ungated_at if pod.ungated_at is not None else pod.created_at


def _bound_at(pod: PodView) -> float:
    return max(pod.bound_at, ungated_at(pod)) if pod.bound_at is not None else ungated_at(pod)
