"""Running pods follow the plan's CPU and memory by in-place resize.

Who shrinks before whom is the plan's business: what stands in `allocation.workers` is free to be used.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from synergy_api.quantity import format_bytes, format_cpu
from synergy_api.reasons import Finding, Reason, say
from synergy_operator.actions import ResizePod
from synergy_operator.conditions import Verdict, no, yes
from synergy_operator.gang import Member, by_rank
from synergy_operator.observed import Refusals
from synergy_operator.views import PodView


@dataclass(frozen=True, slots=True)
class Resizing:
    """The resizes to ask for, and what the condition ResourcesAsPlanned says."""

    actions: tuple[ResizePod, ...]
    verdict: Verdict


def resizes(gang: Iterable[Member], pods: Iterable[PodView], refusals: Refusals) -> Resizing:
    """What brings the pods to the sizes of their places. A size that was refused is not asked for again."""
    places = by_rank(gang)
    held = [pod for pod in pods if pod.rank in places and not pod.terminal and not pod.deleting]
    wishes = {pod.rank: _wish(places[pod.rank], pod) for pod in held}
    refused = {pod.rank: _refused(wishes[pod.rank], pod, refusals) for pod in held}
    actions = tuple(wish for rank, wish in sorted(wishes.items()) if wish is not None and not refused[rank])
    return Resizing(actions, _verdict(held, refused, actions) or yes(_as_planned(held)))


def _wish(member: Member, pod: PodView) -> ResizePod | None:
    cpu = member.place.cpu_millis - pod.beside_cpu_millis
    memory = member.place.memory_bytes - pod.beside_memory_bytes
    if (cpu, memory) == (pod.cpu_millis, pod.memory_bytes) or cpu <= 0 or memory <= 0:
        return None
    return ResizePod(pod.name, pod.uid, pod.container, cpu, memory)


def _refused(wish: ResizePod | None, pod: PodView, refusals: Refusals) -> str:
    cpu, memory, message = refusals.resizes.get(pod.uid, (0, 0, ""))
    return message if wish is not None and (cpu, memory) == (wish.cpu_millis, wish.memory_bytes) else ""


def _as_planned(held: Iterable[PodView]) -> Finding:
    cpu = sum(pod.cpu_millis + pod.beside_cpu_millis for pod in held)
    memory = sum(pod.memory_bytes + pod.beside_memory_bytes for pod in held)
    return say(Reason.AS_PLANNED, cpu=format_cpu(cpu), memory=format_bytes(memory))


def _verdict(held: Iterable[PodView], refused: Mapping[int, str], actions: tuple[ResizePod, ...]) -> Verdict | None:
    """What is not as planned."""
    for pod in held:
        if refused[pod.rank]:
            return no(say(Reason.RESIZE_REFUSED, rank=pod.rank, problem=refused[pod.rank]))
    for pod in held:
        if pod.resize_problem:
            return no(say(Reason.RESIZE_PENDING, rank=pod.rank, problem=pod.resize_problem))
    under_way = len(actions) + sum(pod.resizing for pod in held)
    return no(say(Reason.RESIZING, workers=under_way)) if under_way else None
