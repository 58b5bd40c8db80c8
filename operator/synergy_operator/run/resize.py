"""In-place resize: running pods follow the plan's CPU and memory.

The plan determines who shrinks before whom: whatever `allocation.workers` gives is free to use. A pod gives memory back
after its CPU has changed. The kubelet carries out no part of a resize while more memory is in use than the new limit,
and a job may need a moment to free it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.parts.sizes import SizeLimits
from synergy_api.reasons import Finding, Reason, say
from synergy_operator.actions import ResizePod
from synergy_operator.conditions import ConditionUpdate, no, yes
from synergy_operator.pods.gang import GangWorker, workers_by_rank
from synergy_operator.run.step import finding_of
from synergy_operator.views.pod import PodView


@dataclass(frozen=True, slots=True)
class Resizing:
    """The resizes to request, and the condition ResourcesAsPlanned."""

    actions: tuple[ResizePod, ...]
    condition: ConditionUpdate


def resizes(gang: Iterable[GangWorker], pods: Iterable[PodView], limits: SizeLimits | None, gpus: int) -> Resizing:
    """The resizes that bring the pods to their shares, within `limits`. `gpus` are the job's."""
    workers = workers_by_rank(gang)
    held = [pod for pod in pods if pod.rank in workers and not pod.terminal and not pod.deleting]
    requests = [_wanted_resize(workers[pod.rank], pod, limits, gpus) for pod in sorted(held, key=lambda pod: pod.rank)]
    actions = tuple(request for request in requests if request is not None)
    as_planned = all(_wanted_resize(workers[pod.rank], pod, None, gpus) is None for pod in held)
    return Resizing(actions, _condition(held, limits, actions, as_planned=as_planned) or yes(_as_planned(held)))


def _wanted_resize(worker: GangWorker, pod: PodView, limits: SizeLimits | None, gpus: int) -> ResizePod | None:
    share = worker.share.amounts
    if limits is not None:
        share = _within(share, limits.clamp(share, gpus), pod)
    wanted = share.minus(pod.beside).without_gpus()
    if pod.main.running and wanted.cpu_millis != pod.resize.has.cpu_millis:
        wanted = wanted._replace(memory_bytes=max(wanted.memory_bytes, pod.resize.has.memory_bytes))
    if wanted == pod.requests or min(wanted.beside_gpus) <= 0:
        return None
    return ResizePod(pod.name, pod.uid, pod.container, wanted)


def _within(share: Amounts, bounded: Amounts, pod: PodView) -> Amounts:
    """The share within the bounds.

    If the share is below the bounds, a pod requests the difference only as far as it has it already. More is the plan's
    to give, once it is free.
    """
    has = pod.resize.has.plus(pod.beside)._replace(gpus=share.gpus)
    return bounded.at_most(share.at_least(has))


def _as_planned(held: Iterable[PodView]) -> Finding:
    return say(Reason.AS_PLANNED, **reduce(Amounts.plus, (pod.amounts for pod in held), NOTHING).quantities)


def _condition(
    held: Iterable[PodView], limits: SizeLimits | None, actions: tuple[ResizePod, ...], *, as_planned: bool
) -> ConditionUpdate | None:
    """What is not as planned, or was refused when it was requested.

    An error may pass once the job has freed memory, so it does not show until it becomes a bound.
    """
    if limits is not None and (limits.until is not None or not as_planned):
        return no(finding_of(limits.reason) or Finding(Reason.RESIZE_REFUSED, limits.reason))
    for pod in held:
        if pod.resize.reason == "Deferred":
            return no(say(Reason.RESIZE_PENDING, rank=pod.rank, problem=pod.resize.message))
    under_way = len(actions) + sum(pod.resize.under_way for pod in held)
    return no(say(Reason.RESIZING, workers=under_way)) if under_way else None
