"""A gang of which kube-scheduler has bound a part: how long the others may take."""

from collections.abc import Iterable
from typing import Final

from synergy_operator.views import PodView

BIND_SECONDS: Final = 30.0
"""How long a gang may be partly bound, and how long after its gates fell a worker may find no room."""


def half_bound(pods: Iterable[PodView], now: float) -> tuple[list[PodView], float | None]:
    """The workers that keep the gang from being whole, and the seconds that are left for them.

    Time counts from the first binding, so that a gang that a kube-scheduler was late for is not taken back in the midst
    of being bound. A gang of which nobody is bound and nobody was found without room waits: no scheduler has come to
    it.
    """
    listed = list(pods)
    bound = [pod for pod in listed if pod.node]
    unbound = [pod for pod in listed if not pod.node]
    late = [pod for pod in unbound if pod.unschedulable] or (unbound if bound else [])
    if not late:
        return [], None
    since = min(_bound_at(pod) for pod in bound) if bound else min(ungated_at(pod) for pod in late)
    return late, since + BIND_SECONDS - now


def ungated_at(pod: PodView) -> float:
    """When the pod's gate fell, as far as that is known."""
    return pod.ungated_at if pod.ungated_at is not None else pod.created_at


def _bound_at(pod: PodView) -> float:
    return max(pod.bound_at, ungated_at(pod)) if pod.bound_at is not None else ungated_at(pod)
