"""Running pods follow the plan's CPU and memory by in-place resize.

Who shrinks before whom is the plan's business: what stands in `allocation.workers` is free to be used. A pod gives
memory back after its CPU has changed: the kubelet carries out nothing of a resize while more memory is in use than the
new limit, and a job may need a moment to make room.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from synergy_api.pods import Amounts
from synergy_api.quantity import format_bytes, format_cpu
from synergy_api.reasons import Finding, Reason, say
from synergy_api.sizes import SizeLimits
from synergy_operator.actions import ResizePod
from synergy_operator.conditions import Verdict, no, yes
from synergy_operator.pods.gang import GangWorker, by_rank
from synergy_operator.run.step import finding_of
from synergy_operator.views.pod import PodView


@dataclass(frozen=True, slots=True)
class Resizing:
    """The resizes to ask for, and what the condition ResourcesAsPlanned says."""

    actions: tuple[ResizePod, ...]
    verdict: Verdict


def resizes(gang: Iterable[GangWorker], pods: Iterable[PodView], limits: SizeLimits | None, gpus: int) -> Resizing:
    """What brings the pods to the sizes of their places, within what is known to be possible; `gpus` are the job's."""
    places = by_rank(gang)
    held = [pod for pod in pods if pod.rank in places and not pod.terminal and not pod.deleting]
    wishes = [_wanted_resize(places[pod.rank], pod, limits, gpus) for pod in sorted(held, key=lambda pod: pod.rank)]
    actions = tuple(wish for wish in wishes if wish is not None)
    as_planned = all(_wanted_resize(places[pod.rank], pod, None, gpus) is None for pod in held)
    return Resizing(actions, _verdict(held, limits, actions, as_planned=as_planned) or yes(_as_planned(held)))


def _wanted_resize(member: GangWorker, pod: PodView, limits: SizeLimits | None, gpus: int) -> ResizePod | None:
    place = member.place.amounts
    if limits is not None:
        place = _within(place, limits.clamp(place, gpus), pod)
    cpu = place.cpu_millis - pod.beside_cpu_millis
    memory = place.memory_bytes - pod.beside_memory_bytes
    if pod.main.running and cpu != pod.resize.cpu_millis:
        memory = max(memory, pod.resize.memory_bytes)
    if (cpu, memory) == (pod.cpu_millis, pod.memory_bytes) or cpu <= 0 or memory <= 0:
        return None
    return ResizePod(pod.name, pod.uid, pod.container, cpu, memory)


def _within(place: Amounts, bounded: Amounts, pod: PodView) -> Amounts:
    """The place within the bounds. What it lacks of them a pod asks for only as far as it has it: more is the plan's
    to give, once it is free."""
    has = Amounts(
        place.gpus, pod.resize.cpu_millis + pod.beside_cpu_millis, pod.resize.memory_bytes + pod.beside_memory_bytes
    )
    return bounded.at_most(place.at_least(has))


def _as_planned(held: Iterable[PodView]) -> Finding:
    cpu = sum(pod.cpu_millis + pod.beside_cpu_millis for pod in held)
    memory = sum(pod.memory_bytes + pod.beside_memory_bytes for pod in held)
    return say(Reason.AS_PLANNED, cpu=format_cpu(cpu), memory=format_bytes(memory))


def _verdict(
    held: Iterable[PodView], limits: SizeLimits | None, actions: tuple[ResizePod, ...], *, as_planned: bool
) -> Verdict | None:
    """What is not as planned, or was not to be had when it was asked for. An error may pass, as soon as a job has made
    room in its memory: it is told once it teaches something."""
    if limits is not None and (limits.until is not None or not as_planned):
        return no(finding_of(limits.reason) or Finding(Reason.RESIZE_REFUSED, limits.reason))
    for pod in held:
        if pod.resize.hitch == "Deferred":
            return no(say(Reason.RESIZE_PENDING, rank=pod.rank, problem=pod.resize.problem))
    under_way = len(actions) + sum(pod.resize.under_way for pod in held)
    return no(say(Reason.RESIZING, workers=under_way)) if under_way else None
